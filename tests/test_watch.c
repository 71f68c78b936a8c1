/* What can be seen of a run by its files: lines that grow, curves in bounded memory, who was slow,
 * how the run stands. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include <jansson.h>

#include "checkpoint/claim.h"
#include "format/journal.h"
#include "format/metrics_row.h"
#include "scratch.h"
#include "train/chronicle.h"
#include "watch/page.h"
#include "watch/runs.h"
#include "watch/tail.h"

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

static void append(const char *path, const char *bytes, size_t count)
{
    FILE *f = fopen(path, "ab");
    assert_non_null(f);
    assert_int_equal(fwrite(bytes, 1, count, f), count);
    fclose(f);
}

static void add_line(const char *path, int64_t step, const char *phase, const char *fields)
{
    tutti_string line = {0};
    tutti_metrics_fields_json(&line, step, phase, fields);
    append(path, line.data, line.length);
    tutti_string_deinit(&line);
}

/* ---- files that grow ---- */

static int64_t next_step(tutti_tail *t)
{
    size_t length;
    int64_t step = -1;
    return tutti_tail_next(t, &length, &step) ? step : -1;
}

static void a_tail_gives_whole_lines(void **state)
{
    const char *path = scratch_file(*state, "a.jsonl");
    char run[4096];
    bool anew;
    tutti_tail t;
    tutti_string line = {0};
    snprintf(run, sizeof run, "%s", ((scratch *)*state)->path);
    assert_int_equal(tutti_tail_open(&t, run, "a.jsonl"), TUTTI_OK);
    assert_false(tutti_tail_read(&t, 1 << 20, &anew)); /* not there yet */
    add_line(path, 1, "x", "\"a\":1");
    tutti_metrics_fields_json(&line, 2, "x", "\"a\":2");
    append(path, line.data, line.length / 2);
    assert_true(tutti_tail_read(&t, 1 << 20, &anew));
    assert_int_equal(next_step(&t), 1);
    assert_int_equal(next_step(&t), -1); /* half a line is waited for */
    append(path, line.data + line.length / 2, line.length - line.length / 2);
    append(path, "no line of ours\n", 16);
    add_line(path, 3, "x", "\"a\":3");
    assert_true(tutti_tail_read(&t, 1 << 20, &anew));
    size_t length;
    int64_t step;
    const char *two = tutti_tail_next(&t, &length, &step);
    assert_int_equal(step, 2);
    assert_int_equal(strlen(two), length); /* it does not read on in the next */
    assert_int_equal(next_step(&t), 3);
    assert_int_equal(t.damaged, 1);
    assert_false(tutti_tail_read(&t, 1 << 20, &anew));
    assert_int_equal(unlink(path), 0); /* another file takes its place */
    add_line(path, 9, "x", "\"a\":9");
    assert_true(tutti_tail_read(&t, 1 << 20, &anew));
    assert_true(anew);
    assert_int_equal(next_step(&t), 9);
    assert_int_equal(t.damaged, 0);
    tutti_tail_close(&t);
    tutti_string_deinit(&line);
}

static void a_tail_gives_up_endless_lines(void **state)
{
    const char *path = scratch_file(*state, "long.jsonl");
    char *much = malloc(1 << 20);
    bool anew;
    tutti_tail t;
    memset(much, 'x', 1 << 20);
    assert_int_equal(tutti_tail_open(&t, ((scratch *)*state)->path, "long.jsonl"), TUTTI_OK);
    for (int i = 0; i < 10; i++) {
        append(path, much, 1 << 20);
        tutti_tail_read(&t, 1 << 20, &anew);
        assert_int_equal(next_step(&t), -1);
        assert_true(t.rest.length - t.given <= TUTTI_LONGEST_LINE);
    }
    append(path, "\n", 1);
    add_line(path, 5, "x", "\"a\":5");
    tutti_tail_read(&t, 1 << 20, &anew);
    assert_int_equal(next_step(&t), 5);
    assert_int_equal(t.damaged, 1);
    tutti_tail_close(&t);
    free(much);
}

static void a_journal_is_cut_and_mended(void **state)
{
    const char *run = ((scratch *)*state)->path, *path = scratch_file(*state, "j.jsonl");
    tutti_journal *j = NULL;
    for (int i = 1; i <= 5; i++) add_line(path, i, "ranks", "\"a\":1");
    append(path, "{\"step\":6,", 10); /* cut off by a kill */
    assert_int_equal(tutti_journal_open(&j, run, "j.jsonl", NULL), TUTTI_OK);
    tutti_journal_write(j, 7, "ranks", "\"a\":2");
    tutti_journal_close(&j);
    assert_int_equal(tutti_journal_cut(run, "j.jsonl", 3), 3);
    assert_int_equal(tutti_journal_cut(run, "j.jsonl", 100), 3);
    assert_int_equal(tutti_journal_cut(run, "missing.jsonl", 100), 0);
}

/* ---- curves ---- */

/* Every bucket has the mean and the extremes of its steps, however many there are. */
static void buckets_are_means_and_extremes(void **state)
{
    (void)state;
    static tutti_series s;
    enum { STEPS = 10000 };
    char line[128];
    tutti_series_clear(&s);
    for (int i = 1; i <= STEPS; i++) {
        snprintf(line, sizeof line, "{\"step\":%d,\"phase\":\"train\",\"loss\":%d}", i,
                 i * 7 % 1000);
        tutti_series_add(&s, i, line);
    }
    assert_int_equal(s.width, 8);
    assert_int_equal(s.last, STEPS);
    for (int b = 0; b < TUTTI_BUCKETS; b++) {
        double sum = 0, least = INFINITY, most = -INFINITY;
        int count = 0;
        for (int i = b * 8 + 1; i <= b * 8 + 8 && i <= STEPS; i++, count++) {
            sum += i * 7 % 1000;
            least = fmin(least, i * 7 % 1000);
            most = fmax(most, i * 7 % 1000);
        }
        assert_int_equal(s.bucket[b].count[TUTTI_SERIES_loss], count);
        if (!count) continue;
        assert_true(tutti_series_mean(&s, b, TUTTI_SERIES_loss) == sum / count);
        assert_true(s.bucket[b].least[TUTTI_SERIES_loss] == least);
        assert_true(s.bucket[b].most[TUTTI_SERIES_loss] == most);
    }
}

static void odd_steps_and_losses_do_no_harm(void **state)
{
    (void)state;
    static tutti_series s;
    static const int64_t steps[] = {0, -1, INT64_MIN, INT64_MAX, 1, INT64_C(1) << 53};
    tutti_series_clear(&s);
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++)
        tutti_series_add(&s, steps[i], "{\"loss\":1}");
    tutti_series_add(&s, 7, "{\"loss\":null}");
    tutti_series_add(&s, 8, "{}");
    assert_int_equal(s.last, INT64_C(1) << 53);
    assert_int_equal(s.odd, 2);
    assert_int_equal(s.first_odd, 7);
}

/* ---- ranks ---- */

static void add_ranks(tutti_ranks *r, int64_t step, const double *compute, int count)
{
    tutti_string s = {0};
    tutti_string_printf(&s, "{\"steps\":10,\"compute_us\":[");
    for (int i = 0; i < count; i++) tutti_string_printf(&s, i ? ",%g" : "%g", compute[i]);
    tutti_string_printf(&s, "],\"exposed_us\":[],\"memory_mib\":[5]}");
    assert_int_equal(tutti_ranks_add(r, step, s.data), TUTTI_OK);
    tutti_string_deinit(&s);
}

/* Four ranks; rank 2 takes 'slow' longer in every 'every'-th of 100 rows, from row 'from' on. */
static tutti_verdict judged(double slow, int from, int every)
{
    tutti_ranks *r = NULL;
    assert_int_equal(tutti_ranks_create(&r), TUTTI_OK);
    for (int i = 0; i < 100; i++) {
        double compute[] = {1000, 1001, 1000, 1002};
        if (i >= from && (i - from) % every == 0) compute[2] += slow;
        add_ranks(r, 10 * (i + 1), compute, 4);
    }
    const tutti_verdict v = tutti_ranks_judge(r);
    tutti_ranks_destroy(&r);
    return v;
}

static void the_slow_are_named(void **state)
{
    (void)state;
    assert_int_equal(judged(0, 0, 1).kind, TUTTI_PACE_EVEN);
    tutti_verdict v = judged(300, 0, 1);
    assert_int_equal(v.kind, TUTTI_PACE_CHRONIC);
    assert_int_equal(v.rank, 2);
    assert_true(v.share > 0.99);
    v = judged(50000, 60, 100);
    assert_int_equal(v.kind, TUTTI_PACE_ONCE);
    assert_int_equal(v.rank, 2);
    assert_int_equal(v.step, 610);
    assert_true(v.worst > 0.049 && v.worst < 0.051);
    assert_int_equal(judged(500, 0, 5).kind, TUTTI_PACE_SOMETIMES);
}

static void odd_rows_of_ranks_do_no_harm(void **state)
{
    (void)state;
    static const char *const lines[] = {
        "{}", "{\"compute_us\":[]}", "{\"compute_us\":[1,2",
        "{\"compute_us\":[-1,1e400,null,\"x\"],\"exposed_us\":7,\"steps\":-5}",
        "{\"compute_us\":\"no\",\"steps\":1e300}"};
    tutti_ranks *r = NULL;
    tutti_string s = {0};
    assert_int_equal(tutti_ranks_create(&r), TUTTI_OK);
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
        assert_int_equal(tutti_ranks_add(r, (int64_t)i, lines[i]), TUTTI_OK);
    tutti_ranks_json(&s, r);
    json_t *json = json_loads(s.data, 0, NULL);
    assert_non_null(json);
    json_decref(json);
    tutti_string_deinit(&s);
    tutti_ranks_destroy(&r);
}

/* However often a run is prolonged, its rows of ranks stay below their limit; none is lost. */
static void rows_of_ranks_stay_few(void **state)
{
    const char *run = ((scratch *)*state)->path;
    static const tutti_rank_times times[2] = {{.compute = 1, .memory = 1 << 20}, {.compute = 2}};
    int64_t done = 0, sum = 0, lines = 0;
    char *line = NULL;
    size_t room = 0;
    for (int64_t steps = 1000; steps <= 64000; steps *= 4) {
        tutti_chronicle *c = NULL;
        assert_int_equal(tutti_chronicle_create(&c, (tutti_log){0}), TUTTI_OK);
        assert_int_equal(tutti_chronicle_open(c, run, done, steps, 2), TUTTI_OK);
        while (done < steps)
            tutti_chronicle_hear(c, &(tutti_news){.step = ++done, .ranks = times}, 1);
        tutti_chronicle_destroy(&c);
    }
    FILE *f = fopen(scratch_file(*state, "ranks.jsonl"), "r");
    while (getline(&line, &room, f) > 0) {
        json_t *row = json_loads(line, 0, NULL);
        sum += json_integer_value(json_object_get(row, "steps"));
        assert_int_equal(json_integer_value(json_object_get(row, "step")), sum);
        json_decref(row);
        lines++;
    }
    fclose(f);
    free(line);
    assert_int_equal(sum, done);
    assert_in_range(lines, 1000, TUTTI_CHRONICLE_ROWS);
}

/* ---- the whole ---- */

static tutti_outlook stand(const char *run)
{
    tutti_feed *f = NULL;
    tutti_outlook s;
    bool more = true;
    assert_int_equal(tutti_feed_open(&f, run), TUTTI_OK);
    while (more) assert_int_equal(tutti_feed_read(f, 1 << 20, &more), TUTTI_OK);
    tutti_feed_stand(f, &s);
    tutti_feed_close(&f);
    return s;
}

static void a_run_stands_as_its_files_say(void **state)
{
    char run[4096], path[4200];
    const struct timespec old[2] = {{.tv_sec = 1000000}, {.tv_sec = 1000000}};
    tutti_claim *claim = NULL;
    snprintf(run, sizeof run, "%s", scratch_file(*state, "run"));
    tutti_feed *f = NULL;
    assert_int_equal(tutti_feed_open(&f, run), TUTTI_IO);
    assert_int_equal(mkdir(run, 0777), 0);
    assert_int_equal(tutti_feed_open(&f, run), TUTTI_DATA);
    assert_int_equal(tutti_claim_open(&claim, run, NULL), TUTTI_OK);
    assert_int_equal(stand(run).state, TUTTI_RUN_RUNNING);
    snprintf(path, sizeof path, "%s/events.jsonl", run);
    add_line(path, 0, "event",
             "\"event\":\"begun\",\"at\":5,\"steps\":10,\"batch\":2,\"samples\":8");
    assert_int_equal(stand(run).state, TUTTI_RUN_RUNNING);
    assert_int_equal(stand(run).steps, 10);
    assert_int_equal(utimensat(AT_FDCWD, path, old, 0), 0);
    assert_int_equal(stand(run).state, TUTTI_RUN_STALLED);
    tutti_claim_close(&claim);
    assert_int_equal(stand(run).state, TUTTI_RUN_FAILED); /* gone without a word */
    add_line(path, 4, "event",
             "\"event\":\"ended\",\"at\":6,\"code\":143,\"text\":\"SIGTERM: stopped\"");
    assert_int_equal(stand(run).state, TUTTI_RUN_FAILED);
    assert_string_equal(stand(run).why, "SIGTERM: stopped");
    add_line(path, 9, "event", "\"event\":\"ended\",\"at\":6,\"code\":0,\"text\":\"done\"");
    assert_int_equal(stand(run).state, TUTTI_RUN_DONE);
}

/* Whatever a run's names are, the page's data end where they should. */
static void no_name_leaves_its_element(void **state)
{
    (void)state;
    tutti_string json = {0}, page = {0};
    tutti_string_append(&json, "{", 1);
    tutti_json_field_string(&json, "name", "</script><script>alert(1)//<!--&amp;");
    tutti_string_append(&json, "}", 1);
    tutti_page_write(&page, json.data, json.length);
    assert_null(strstr(page.data, "alert(1)//<"));
    assert_null(strstr(page.data, "</script><script>alert"));
    assert_non_null(strstr(page.data, "\\u003c/script\\u003e\\u003cscript\\u003ealert(1)"));
    assert_true(page.length < 300000);
    tutti_string_deinit(&json);
    tutti_string_deinit(&page);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_tail_gives_whole_lines, setup, teardown),
        cmocka_unit_test_setup_teardown(a_tail_gives_up_endless_lines, setup, teardown),
        cmocka_unit_test_setup_teardown(a_journal_is_cut_and_mended, setup, teardown),
        cmocka_unit_test(buckets_are_means_and_extremes),
        cmocka_unit_test(odd_steps_and_losses_do_no_harm),
        cmocka_unit_test(the_slow_are_named),
        cmocka_unit_test(odd_rows_of_ranks_do_no_harm),
        cmocka_unit_test_setup_teardown(rows_of_ranks_stay_few, setup, teardown),
        cmocka_unit_test_setup_teardown(a_run_stands_as_its_files_say, setup, teardown),
        cmocka_unit_test(no_name_leaves_its_element),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
