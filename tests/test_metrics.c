/* Metrics, traces and what a run prints. Python's parser says whether JSON is JSON. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <cmocka.h>

#include "format/json.h"
#include "format/metrics_row.h"
#include "format/trace.h"
#include "scratch.h"

static int setup(void **state)
{
    static scratch dir;
    scratch_open(&dir);
    *state = &dir;
    return 0;
}

static int teardown(void **state)
{
    scratch_close(*state);
    return 0;
}

static const char *slurp(const char *path)
{
    static char text[1 << 16];
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    text[fread(text, 1, sizeof text - 1, f)] = 0;
    fclose(f);
    return text;
}

/* Runs Python with the file as argument 1. */
static void python_agrees(const char *script, const char *path)
{
    char command[4096];
    snprintf(command, sizeof command, "python3 -c '%s' '%s'", script, path);
    if (system(command)) fail_msg("python3 does not agree: %s", script);
}

static void strings_and_numbers_are_json(void **state)
{
    (void)state;
    tutti_string s = {0};
    tutti_string_append(&s, "{", 1);
    tutti_json_field_string(&s, "a\"\\\n\x01", "\t\x7f\xc3\xa9");
    tutti_json_field_real(&s, "nan", NAN, 9);
    tutti_json_field_real(&s, "inf", -INFINITY, 9);
    tutti_json_field_real(&s, "third", 1.0 / 3, 9);
    tutti_json_field_int(&s, "n", INT64_MIN);
    tutti_string_append(&s, "}", 1);
    assert_int_equal(tutti_string_status(&s), TUTTI_OK);
    assert_string_equal(s.data, "{\"a\\\"\\\\\\n\\u0001\":\"\\t\\u007f\xc3\xa9\",\"nan\":null,"
                                "\"inf\":null,\"third\":0.333333333,\"n\":-9223372036854775808}");
    for (int i = 0; i < 10000; i++) tutti_string_printf(&s, "%d,", i);
    assert_int_equal(tutti_string_status(&s), TUTTI_OK);
    assert_int_equal(strlen(s.data), s.length);
    tutti_string_deinit(&s);
}

/* ---- Metrics ------------------------------------------------------------------------------ */

/* The disk: how many bytes it takes before it is full. */
static size_t disk_room = SIZE_MAX;

ssize_t __real_write(int fd, const void *bytes, size_t count);
ssize_t __wrap_write(int fd, const void *bytes, size_t count);
ssize_t __wrap_write(int fd, const void *bytes, size_t count)
{
    if (disk_room == SIZE_MAX) return __real_write(fd, bytes, count);
    if (count > disk_room) count = disk_room;
    disk_room -= count;
    if (count) return __real_write(fd, bytes, count);
    errno = ENOSPC;
    return -1;
}

typedef struct heard {
    int lines;
    char last[1024];
} heard;

static void hear(void *user, tutti_log_level level, const char *line)
{
    heard *h = user;
    h->lines += level <= TUTTI_LOG_WARNING;
    snprintf(h->last, sizeof h->last, "%s", line);
}

static tutti_log log_to(heard *h)
{
    *h = (heard){0};
    return (tutti_log){.sink = hear, .user = h, .level = TUTTI_LOG_INFO, .rank = -1};
}

static void write_steps(tutti_metrics *m, int first, int last)
{
    for (int step = first; step <= last; step++) {
        tutti_metrics_row row = tutti_metrics_row_empty(step, step / 8.0, "train");
        row.loss = step == 2 ? INFINITY : 1.0 / step;
        row.lr = 0.01;
        row.samples_per_s = 1234.5;
        tutti_metrics_write(m, &row);
    }
    assert_int_equal(tutti_metrics_flush(m), TUTTI_OK);
    assert_int_equal(tutti_metrics_sync(m), TUTTI_OK);
}

static void write_run(const scratch *dir, int last)
{
    tutti_metrics *m = NULL;
    assert_int_equal(tutti_metrics_open(&m, dir->path, 0, NULL), TUTTI_OK);
    write_steps(m, 1, last);
    tutti_metrics_close(&m);
}

static void rows_have_the_promised_shape(void **state)
{
    const scratch *dir = *state;
    tutti_metrics *m = NULL;
    assert_int_equal(tutti_metrics_open(&m, dir->path, 0, NULL), TUTTI_OK);
    write_steps(m, 3, 3);
    tutti_metrics_write_json(m, 3, "layers", "\"layer\":\"fc6\"");
    tutti_metrics_close(&m);
    const char *text = slurp(scratch_file(dir, "metrics.jsonl"));
    static const char first[] =
        "{\"step\":3,\"epoch\":0.375,\"phase\":\"train\",\"loss\":0.333333333,"
        "\"lr\":0.01,\"time\":{\"samples_per_s\":1234.5},\"crc\":\"",
                      second[] = "{\"step\":3,\"phase\":\"layers\",\"layer\":\"fc6\",\"crc\":\"";
    assert_memory_equal(text, first, strlen(first));
    assert_memory_equal(strchr(text, '\n') + 1, second, strlen(second));
    assert_string_equal(slurp(scratch_file(dir, "metrics.csv")),
                        "step,epoch,phase,loss,top1,top5,pixel_accuracy,mean_iou,mae,rmse,r2,"
                        "accuracy,f1,lr,gradient_norm,samples,seconds,"
                        "samples_per_s,percent_of_peak,data_wait_s,comm_exposed_s\n"
                        "3,0.375,train,0.333333333,,,,,,,,,,0.01,,,,1234.5,,,\n");
    python_agrees("import json,sys,zlib\n"
                  "for l in open(sys.argv[1], \"rb\"):\n"
                  "  body = l.rpartition(b\",\\\"crc\\\":\")[0]\n"
                  "  assert int(json.loads(l)[\"crc\"], 16) == zlib.crc32(body), l",
                  scratch_file(dir, "metrics.jsonl"));
    python_agrees("import csv,sys; r = list(csv.DictReader(open(sys.argv[1]))); "
                  "assert r[0][\"samples_per_s\"] == \"1234.5\"",
                  scratch_file(dir, "metrics.csv"));
}

/* Both files of a whole run up to step 10. */
typedef struct whole_run {
    char jsonl[1 << 16], csv[1 << 16];
} whole_run;

static void read_run(whole_run *out, const scratch *dir)
{
    snprintf(out->jsonl, sizeof out->jsonl, "%s", slurp(scratch_file(dir, "metrics.jsonl")));
    snprintf(out->csv, sizeof out->csv, "%s", slurp(scratch_file(dir, "metrics.csv")));
}

/* Runs 1..7, breaks the files as told, resumes at 'step', runs to 10: as if nothing happened. */
static void resume_after(const scratch *dir, const char *damage, int step, heard *h)
{
    char command[1024];
    tutti_metrics *m = NULL;
    const tutti_log log = log_to(h);
    write_run(dir, 7);
    snprintf(command, sizeof command, "cd '%s' && rm -f metrics.damaged && %s", dir->path, damage);
    assert_int_equal(system(command), 0);
    assert_int_equal(tutti_metrics_open(&m, dir->path, step, &log), TUTTI_OK);
    write_steps(m, step + 1, 10);
    tutti_metrics_close(&m);
}

static void a_resumed_run_goes_on_in_its_files(void **state)
{
    const scratch *dir = *state;
    static const struct {
        const char *damage;
        bool is_said;
    } cases[] = {
        {"true", false},
        {"truncate -s -3 metrics.jsonl", true},
        {"printf '12' >> metrics.jsonl", true},
        {"printf '\\n\\n' >> metrics.jsonl", true}, /* not lines of ours */
        {"printf '5x,\\n' >> metrics.jsonl", true},
        {"rm metrics.csv", false},
        {"sed -i '3s/0/1/' metrics.csv", false}, /* it is derived */
    };
    whole_run want, have;
    heard h;
    write_run(dir, 10);
    read_run(&want, dir);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int step = 1; step <= 6; step++) {
            resume_after(dir, cases[i].damage, step, &h);
            read_run(&have, dir);
            assert_string_equal(have.jsonl, want.jsonl);
            assert_string_equal(have.csv, want.csv);
            assert_int_equal(h.lines, cases[i].is_said);
        }
    resume_after(dir, "rm metrics.*", 6, &h);
    read_run(&have, dir);
    assert_string_equal(have.jsonl, strstr(want.jsonl, "{\"step\":7,"));
    assert_string_equal(strstr(have.csv, "\n7,"), strstr(want.csv, "\n7,"));
}

/* The text without its line 'number', counted from 1. */
static void drop_line(char *text, int number)
{
    char *line = text;
    while (--number) line = strchr(line, '\n') + 1;
    char *next = strchr(line, '\n') + 1;
    memmove(line, next, strlen(next) + 1);
}

static void a_damaged_row_costs_no_other(void **state)
{
    const scratch *dir = *state;
    whole_run whole, want, have;
    heard h;
    write_run(dir, 10);
    read_run(&whole, dir);
    for (int line = 1; line <= 7; line++) {
        char damage[64], says[64];
        snprintf(damage, sizeof damage, "sed -i '%ds/loss/lost/' metrics.jsonl", line);
        snprintf(says, sizeof says, "metrics.jsonl': line %d is damaged", line);
        resume_after(dir, damage, 7, &h);
        want = whole;
        drop_line(want.jsonl, line);
        drop_line(want.csv, line + 1);
        read_run(&have, dir);
        assert_string_equal(have.jsonl, want.jsonl);
        assert_string_equal(have.csv, want.csv);
        assert_int_equal(h.lines, 1);
        if (!strstr(h.last, says)) fail_msg("%s", h.last);
        assert_non_null(strstr(slurp(scratch_file(dir, "metrics.damaged")), "\"lost\":"));
    }
}

static void rows_that_are_gone_are_missed(void **state)
{
    const scratch *dir = *state;
    static const struct {
        const char *damage, *says;
    } cases[] = {
        {"sed -i 3d metrics.jsonl",
         "metrics.jsonl': the rows of 1 step are missing, from step 3 on"},
        {"sed -i '5,$d' metrics.jsonl", "the rows of 3 steps are missing, from step 5 on"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        heard h;
        resume_after(dir, cases[i].damage, 7, &h);
        assert_int_equal(h.lines, 1);
        if (!strstr(h.last, cases[i].says)) fail_msg("%s", h.last);
    }
}

static void every_damaged_bit_is_noticed(void **state)
{
    (void)state;
    tutti_string line = {0};
    int64_t step = 0;
    tutti_metrics_row row = tutti_metrics_row_empty(12, 0.5, "test");
    row.loss = 1.0 / 3;
    tutti_metrics_row_json(&line, &row);
    assert_true(tutti_metrics_line_is_whole(line.data, line.length, &step));
    assert_int_equal(step, 12);
    for (size_t i = 0; i < line.length; i++) {
        assert_false(tutti_metrics_line_is_whole(line.data, i, &step));
        for (int bit = 0; bit < 8; bit++) {
            line.data[i] ^= (char)(1 << bit);
            if (tutti_metrics_line_is_whole(line.data, line.length, &step))
                fail_msg("byte %zu, bit %d", i, bit);
            line.data[i] ^= (char)(1 << bit);
        }
    }
    tutti_string_deinit(&line);
}

static void rows_wait_for_room_on_the_disk(void **state)
{
    const scratch *dir = *state;
    whole_run want, have;
    heard h;
    const tutti_log log = log_to(&h);
    tutti_metrics *m = NULL;
    write_run(dir, 10);
    read_run(&want, dir);
    assert_int_equal(tutti_metrics_open(&m, dir->path, 0, &log), TUTTI_OK);
    write_steps(m, 1, 3);
    disk_room = 40;
    for (int step = 4; step <= 7; step++) {
        tutti_metrics_row row = tutti_metrics_row_empty(step, step / 8.0, "train");
        row.loss = 1.0 / step;
        row.lr = 0.01;
        row.samples_per_s = 1234.5;
        tutti_metrics_write(m, &row);
        assert_int_equal(h.lines, 1);
        assert_int_equal(tutti_metrics_flush(m), TUTTI_DISK_FULL);
    }
    read_run(&have, dir); /* no line has begun */
    assert_memory_equal(have.jsonl, want.jsonl, strlen(have.jsonl));
    assert_string_equal(strchr(have.jsonl, 0) - 3, "\"}\n");
    assert_non_null(strstr(h.last, "metrics.jsonl': No space left on device; training goes on"));
    disk_room = SIZE_MAX;
    write_steps(m, 8, 10);
    assert_string_equal(h.last, "metrics are written again");
    tutti_metrics_close(&m);
    read_run(&have, dir);
    assert_string_equal(have.jsonl, want.jsonl);
    assert_string_equal(have.csv, want.csv);
}

static void a_directory_that_is_not_there_is_named(void **state)
{
    const scratch *dir = *state;
    tutti_metrics *m = NULL;
    assert_int_equal(tutti_metrics_open(&m, scratch_file(dir, "no/where"), 0, NULL), TUTTI_IO);
    assert_non_null(strstr(tutti_message(), "no/where/metrics.jsonl"));
    assert_null(m);
}

static void traces_of_all_ranks_are_one_json(void **state)
{
    const scratch *dir = *state;
    const char *path = scratch_file(dir, "trace.json");
    for (int rank = 0; rank < 3; rank++) {
        tutti_trace *t = NULL;
        assert_int_equal(tutti_trace_create(&t, rank, 100), TUTTI_OK);
        for (int i = 0; i < 100 + rank; i++) {
            const double start = 1000 * rank + i * 1e-3;
            tutti_trace_span(t, TUTTI_TRACE_COMPUTE, "forward", "conv\"1\"", i, -1, start,
                             start + 5e-4);
        }
        tutti_trace_span(t, TUTTI_TRACE_COMM, "reduce", "fc6", 7, 4096, 1000 * rank + 0.5,
                         1000 * rank + 0.75);
        tutti_trace_span(t, TUTTI_TRACE_DATA, "read", NULL, 7, -1, 1000 * rank, 1000 * rank + 1.0);
        assert_int_equal(tutti_trace_write(t, path, 1000 * rank), TUTTI_OK);
        tutti_trace_destroy(&t);
        assert_null(t);
    }
    tutti_trace_span(NULL, TUTTI_TRACE_COMM, "nobody", "listens", 0, 0, 0, 0);
    assert_int_equal(tutti_trace_join(path, 4), TUTTI_IO); /* rank 3 has no piece */
    assert_non_null(strstr(tutti_message(), "trace.json.rank00003"));
    assert_int_equal(tutti_trace_join(path, 3), TUTTI_OK);
    python_agrees("import json,sys\n"
                  "e = json.load(open(sys.argv[1]))[\"traceEvents\"]\n"
                  "x = [v for v in e if v[\"ph\"] == \"X\"]\n"
                  "assert len(x) == 3 * 102 and {v[\"pid\"] for v in x} == {0, 1, 2}\n"
                  "r = [v for v in x if v[\"name\"] == \"reduce fc6\"]\n"
                  "assert len(r) == 3\n"
                  "for v in r: assert (v[\"ts\"], v[\"dur\"]) == (5e5, 2.5e5)\n"
                  "assert r[0][\"args\"] == {\"step\": 7, \"bytes\": 4096}\n"
                  "d = [v[\"name\"] for v in e if v[\"ph\"] == \"i\"]\n"
                  "assert d == [\"1 later events dropped\", \"2 later events dropped\"]\n"
                  "n = [v[\"args\"][\"name\"] for v in e if v[\"name\"] == \"process_name\"]\n"
                  "assert n == [\"rank 0\", \"rank 1\", \"rank 2\"]",
                  path);
    struct stat info;
    assert_int_not_equal(stat(scratch_file(dir, "trace.json.rank00000"), &info), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(strings_and_numbers_are_json),       TEST(rows_have_the_promised_shape),
        TEST(a_resumed_run_goes_on_in_its_files), TEST(a_damaged_row_costs_no_other),
        TEST(rows_that_are_gone_are_missed),      TEST(every_damaged_bit_is_noticed),
        TEST(rows_wait_for_room_on_the_disk),     TEST(a_directory_that_is_not_there_is_named),
        TEST(traces_of_all_ranks_are_one_json),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
