/* Checkpoints: whole or absent, whatever happens while they are written. The system calls that
 * change a disk are wrapped here, so that each of them can fail, or be the last one. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/memory.h"
#include "checkpoint/names.h"
#include "scratch.h"

/* ---- Faults ------------------------------------------------------------------------------- */

static int calls_left = -1; /* until the fault; negative: none */
static bool fault_kills;

static bool fault(void)
{
    if (calls_left < 0 || calls_left-- > 0) return false;
    if (fault_kills) _exit(9);
    errno = EIO;
    return true;
}

#define WRAP(name, parameters, arguments) \
    int __real_##name parameters;         \
    int __wrap_##name parameters;         \
    int __wrap_##name parameters          \
    {                                     \
        if (fault()) return -1;           \
        return __real_##name arguments;   \
    }

WRAP(fsync, (int fd), (fd))
WRAP(rename, (const char *a, const char *b), (a, b))
WRAP(renameat2, (int da, const char *a, int db, const char *b, unsigned f), (da, a, db, b, f))
WRAP(symlink, (const char *a, const char *b), (a, b))
WRAP(mkdir, (const char *a, mode_t m), (a, m))
WRAP(unlink, (const char *a), (a))
WRAP(rmdir, (const char *a), (a))
WRAP(ftruncate64, (int fd, off_t n), (fd, n))

ssize_t __real_pwrite64(int fd, const void *bytes, size_t count, off_t offset);
ssize_t __wrap_pwrite64(int fd, const void *bytes, size_t count, off_t offset);
ssize_t __wrap_pwrite64(int fd, const void *bytes, size_t count, off_t offset)
{
    return fault() ? -1 : __real_pwrite64(fd, bytes, count, offset);
}

/* ---- A small run -------------------------------------------------------------------------- */

static const tutti_tensor_spec model_specs[] = {{"fc1.weight", 2, {4, 3}, TUTTI_F32},
                                                {"fc1.bias", 1, {4}, TUTTI_F32}};

static int64_t best_so_far; /* the step; -1: none */
static int warnings;

typedef struct fixture {
    scratch dir;
    char run[512];
    tutti_safetensors_layout *layout;
} fixture;

static int setup(void **state)
{
    static fixture f;
    f = (fixture){0};
    scratch_open(&f.dir);
    best_so_far = -1;
    warnings = 0;
    snprintf(f.run, sizeof f.run, "%s/a/run", f.dir.path);
    *state = &f;
    return tutti_safetensors_layout_create(&f.layout, model_specs, 2);
}

static int teardown(void **state)
{
    fixture *f = *state;
    tutti_safetensors_layout_destroy(&f->layout);
    scratch_close(&f->dir);
    return 0;
}

static const tutti_state_option options[] = {{"lr", "0.01"}, {"data", "a \"b\"\\c"}};
static const tutti_state_metric metrics[] = {{"loss", 0.1}, {"minus_zero", -0.0}, {"gone", NAN}};

static tutti_state state_at(int64_t step)
{
    return (tutti_state){.step = step,
                         .epoch = 1,
                         .epoch_sample = 77,
                         .seed = INT64_MAX,
                         .batch_size = 32,
                         .grains = 8,
                         .net = "lenet",
                         .net_sha256 = "0123",
                         .options = options,
                         .option_count = 2,
                         .metrics = metrics,
                         .metric_count = 3};
}

static tutti_status write_all(tutti_checkpoint *c, int64_t step, int share, int shares)
{
    for (int part = 0; part < 2; part++)
        for (int t = 0; t < 2; t++) {
            float values[12];
            const int64_t n = tutti_tensor_elements(&model_specs[t]);
            const int64_t first = n * share / shares, end = n * (share + 1) / shares;
            for (int64_t i = first; i < end; i++)
                values[i] = (float)(step * 1000 + part * 100 + t * 50 + i);
            TUTTI_TRY(tutti_checkpoint_write(c, (tutti_checkpoint_part)part, t, first,
                                             values + first, end - first));
        }
    return tutti_checkpoint_flush(c);
}

static void count_warning(void *user, tutti_log_level level, const char *line)
{
    (void)user;
    (void)line;
    if (level == TUTTI_LOG_WARNING) warnings++;
}

static const tutti_log counting = {.sink = count_warning, .level = TUTTI_LOG_INFO, .rank = -1};

static tutti_status begin(const fixture *f, tutti_checkpoint **out, int64_t step, int rank,
                          int ranks, const char *name)
{
    const tutti_checkpoint_spec spec = {f->run, step, {f->layout, f->layout}, rank, ranks, name};
    return tutti_checkpoint_begin(out, &spec);
}

static tutti_status save(const fixture *f, int64_t step, bool best, int keep)
{
    tutti_checkpoint *c = NULL;
    const tutti_state state = state_at(step);
    if (best) best_so_far = step;
    const tutti_checkpoint_finish_options o = {
        .best_step = best_so_far, .keep = keep, .log = &counting};
    TUTTI_TRY(begin(f, &c, step, 0, 1, NULL));
    tutti_status s = write_all(c, step, 0, 1);
    char *text = NULL;
    if (!s) s = tutti_state_text(&text, &state);
    if (!s) s = tutti_checkpoint_finish(&c, text, o);
    tutti_checkpoint_abandon(&c);
    tutti_free(text);
    return s;
}

static void assert_saved(const fixture *f, int64_t step, bool best, int keep)
{
    const tutti_status s = save(f, step, best, keep);
    if (s) fail_msg("step %d: %s", (int)step, tutti_message());
}

/* The step that would be resumed; it is whole and holds that step's numbers. -1: none. */
static int64_t resumed(const fixture *f)
{
    char path[TUTTI_PATH_BYTES], file[TUTTI_PATH_BYTES + 32];
    bool found = false;
    if (tutti_checkpoint_find(path, &found, f->run)) fail_msg("%s", tutti_message());
    if (!found) return -1;
    tutti_state_file *state = NULL;
    snprintf(file, sizeof file, "%s/state.json", path);
    assert_int_equal(tutti_state_open(&state, file), TUTTI_OK);
    const int64_t step = tutti_state_of(state)->step;
    tutti_state_close(&state);

    tutti_safetensors *model = NULL;
    float bias[4];
    snprintf(file, sizeof file, "%s/optimizer.safetensors", path);
    assert_int_equal(tutti_safetensors_open(&model, file), TUTTI_OK);
    const int t = tutti_safetensors_find(model, "fc1.bias");
    assert_int_equal(tutti_safetensors_read(model, t, 0, bias, 4), TUTTI_OK);
    tutti_safetensors_close(&model);
    for (int i = 0; i < 4; i++) assert_true(bias[i] == (float)(step * 1000 + 150 + i));
    return step;
}

static bool exists(const fixture *f, const char *name)
{
    char path[1024];
    struct stat info;
    snprintf(path, sizeof path, "%s/%s", f->run, name);
    return lstat(path, &info) == 0;
}

static int shell(const char *format, const char *run)
{
    char command[4096];
    int n = 0;
    for (const char *p = format; *p && n < (int)sizeof command - 600; p++)
        n += *p == '@' ? snprintf(command + n, sizeof command - (size_t)n, "%s", run)
                       : snprintf(command + n, sizeof command - (size_t)n, "%c", *p);
    return system(command);
}

/* ---- Tests -------------------------------------------------------------------------------- */

static void a_run_without_checkpoints_has_none(void **state)
{
    const fixture *f = *state;
    assert_int_equal(resumed(f), -1);
    assert_int_equal(shell("mkdir -p @", f->run), 0);
    assert_int_equal(resumed(f), -1);
}

static void what_is_saved_is_found(void **state)
{
    const fixture *f = *state;
    char path[TUTTI_PATH_BYTES], link[1024];
    bool found = false;
    assert_saved(f, 100, false, 0);
    assert_int_equal(resumed(f), 100);
    assert_saved(f, 200, true, 0);
    assert_int_equal(resumed(f), 200);
    assert_int_equal(shell("cd @/latest && sha256sum --quiet -c SHA256SUMS", f->run), 0);
    assert_int_equal(shell("test $(readlink @/best) = step_00000200", f->run), 0);

    snprintf(link, sizeof link, "%s/step_00000100/", f->run);
    assert_int_equal(tutti_checkpoint_find(path, &found, link), TUTTI_OK);
    assert_non_null(strstr(path, "/run/step_00000100"));
    snprintf(link, sizeof link, "%s/best", f->run);
    assert_int_equal(tutti_checkpoint_find(path, &found, link), TUTTI_OK);
    assert_non_null(strstr(path, "/run/step_00000200"));
}

static void a_copy_without_links_is_found(void **state)
{
    const fixture *f = *state;
    assert_saved(f, 9, false, 0);
    assert_saved(f, 123456789, false, 0);
    assert_int_equal(shell("rm @/latest", f->run), 0);
    assert_int_equal(resumed(f), 123456789);
}

/* Begins, and writes and flushes the pieces of all ranks but 'missing'; the last rank first. */
static void write_together(const fixture *f, tutti_checkpoint **c, int ranks, int missing)
{
    for (int r = 0; r < ranks; r++) {
        const char *name = r ? tutti_checkpoint_name(c[0]) : NULL;
        assert_int_equal(begin(f, &c[r], 300, r, ranks, name), TUTTI_OK);
    }
    for (int r = ranks - 1; r >= 0; r--)
        if (r != missing) assert_int_equal(write_all(c[r], 300, r, ranks), TUTTI_OK);
}

static bool is_flushed(tutti_checkpoint *c)
{
    bool all = false;
    assert_int_equal(tutti_checkpoint_is_flushed(c, &all), TUTTI_OK);
    return all;
}

/* Rank 0 finishes what all have written; the others let go of it. */
static tutti_status finish_together(tutti_checkpoint **c, int ranks)
{
    char *text = NULL;
    const tutti_state at = state_at(300);
    const tutti_checkpoint_finish_options o = {.best_step = -1};
    for (int r = ranks - 1; r > 0; r--) tutti_checkpoint_abandon(&c[r]);
    assert_int_equal(tutti_state_text(&text, &at), TUTTI_OK);
    const tutti_status s = tutti_checkpoint_finish(&c[0], text, o);
    assert_null(c[0]);
    tutti_free(text);
    return s;
}

static void ranks_write_together(void **state)
{
    const fixture *f = *state;
    assert_saved(f, 300, false, 0);
    assert_int_equal(shell("cp -r @/step_00000300 @/../alone", f->run), 0);
    for (int ranks = 2; ranks <= 5; ranks++) {
        tutti_checkpoint *c[5] = {NULL};
        assert_int_equal(shell("rm -rf @", f->run), 0);
        write_together(f, c, ranks, -1);
        assert_true(is_flushed(c[0]));
        assert_int_equal(finish_together(c, ranks), TUTTI_OK);
        assert_int_equal(shell("diff -r @/step_00000300 @/../alone", f->run), 0);
    }
}

static void a_rank_that_has_not_flushed_is_waited_for(void **state)
{
    const fixture *f = *state;
    for (int missing = 0; missing < 3; missing++) {
        tutti_checkpoint *c[3] = {NULL};
        write_together(f, c, 3, missing);
        assert_false(is_flushed(c[0]));
        assert_int_equal(write_all(c[missing], 300, missing, 3), TUTTI_OK);
        assert_true(is_flushed(c[0]));
        assert_int_equal(finish_together(c, 3), TUTTI_OK);
    }
}

/* The sums are of what was written: a file that changes before it is hashed makes no checkpoint. */
static void what_was_not_written_is_not_believed(void **state)
{
    const fixture *f = *state;
    static const char *const damage[] = {
        "printf x | dd of=$(ls -d @/step*tmp)/model.safetensors bs=1 seek=200 conv=notrunc",
        "printf x >> $(ls -d @/step*tmp)/model.safetensors",
        "printf x | dd of=$(ls -d @/step*tmp)/optimizer.safetensors bs=1 seek=9 conv=notrunc",
        "truncate -s -4 $(ls -d @/step*tmp)/optimizer.safetensors",
        "truncate -s -4 $(ls -d @/step*tmp)/model.safetensors && "
        "truncate -s +4 $(ls -d @/step*tmp)/model.safetensors",
    };
    for (size_t i = 0; i < sizeof damage / sizeof *damage; i++) {
        tutti_checkpoint *c[2] = {NULL};
        char script[512];
        assert_int_equal(shell("rm -rf @", f->run), 0);
        assert_saved(f, 299, false, 0);
        write_together(f, c, 2, -1);
        assert_true(is_flushed(c[0]));
        snprintf(script, sizeof script, "( %s ) 2>/dev/null", damage[i]);
        assert_int_equal(shell(script, f->run), 0);
        if (finish_together(c, 2) != TUTTI_IO) fail_msg("%zu: believed", i);
        assert_non_null(strstr(tutti_message(), i == 3 ? "too early" : "what was written"));
        assert_int_equal(resumed(f), 299);
        assert_false(exists(f, "step_00000300"));
    }
}

/* Who writes alone hashes what it has in memory: what the disk did is seen by whoever reads. */
static void the_sums_of_one_rank_are_of_its_memory(void **state)
{
    const fixture *f = *state;
    char path[TUTTI_PATH_BYTES];
    tutti_checkpoint *c = NULL;
    bool found;
    assert_int_equal(begin(f, &c, 300, 0, 1, NULL), TUTTI_OK);
    assert_int_equal(write_all(c, 300, 0, 1), TUTTI_OK);
    assert_int_equal(shell("printf x | dd of=$(ls -d @/step*tmp)/model.safetensors bs=1 seek=300 "
                           "conv=notrunc 2>/dev/null",
                           f->run),
                     0);
    assert_int_equal(finish_together(&c, 1), TUTTI_OK);
    assert_int_equal(tutti_checkpoint_find(path, &found, f->run), TUTTI_CHECKPOINT);
}

/* Two processes at the same step never meet in a directory. */
static void temporary_names_never_meet(void **state)
{
    const fixture *f = *state;
    tutti_checkpoint *a = NULL, *b = NULL;
    assert_int_equal(begin(f, &a, 300, 0, 1, NULL), TUTTI_OK);
    assert_int_equal(begin(f, &b, 300, 0, 1, NULL), TUTTI_OK);
    assert_string_not_equal(tutti_checkpoint_name(a), tutti_checkpoint_name(b));
    assert_int_equal(write_all(a, 300, 0, 1), TUTTI_OK);
    assert_int_equal(write_all(b, 300, 0, 1), TUTTI_OK);
    assert_int_equal(finish_together(&a, 1), TUTTI_OK);
    tutti_checkpoint_abandon(&b);
    assert_int_equal(resumed(f), 300);
}

static void the_state_comes_back(void **state)
{
    const fixture *f = *state;
    char path[1024];
    tutti_state_file *file = NULL;
    assert_saved(f, 5, false, 0);
    snprintf(path, sizeof path, "%s/latest/state.json", f->run);
    assert_int_equal(tutti_state_open(&file, path), TUTTI_OK);
    const tutti_state *s = tutti_state_of(file), want = state_at(5);
    assert_memory_equal(s, &want, offsetof(tutti_state, net));
    assert_string_equal(s->net, "lenet");
    assert_string_equal(s->net_sha256, "0123");
    assert_string_equal(tutti_state_option_value(s, "data"), "a \"b\"\\c");
    assert_null(tutti_state_option_value(s, "nothing"));
    assert_true(tutti_state_metric_value(s, "loss") == 0.1);
    assert_true(signbit(tutti_state_metric_value(s, "minus_zero")));
    assert_true(isnan(tutti_state_metric_value(s, "gone")));
    tutti_state_close(&file);
}

static void bad_states_are_named(void **state)
{
    const fixture *f = *state;
    static const struct {
        const char *script, *part;
    } bad[] = {
        {"sed -i 's/\"format\": 3/\"format\": 1/' @/latest/state.json",
         "by an earlier version (format 1)"},
        {"sed -i 's/\"format\": 3/\"format\": 2/' @/latest/state.json",
         "by an earlier version (format 2)"},
        {"sed -i 's/\"format\": 3/\"format\": 4/' @/latest/state.json", "has format 4"},
        {"sed -i 's/\"step\": 5/\"step\": -5/' @/latest/state.json", "'step' is missing or"},
        {"sed -i 's/\"grains\": 8/\"grains\": 0/' @/latest/state.json", "'grains' is missing or"},
        {"sed -i 's/\"seed\"/\"sead\"/' @/latest/state.json", "'seed' is missing or"},
        {"sed -i 's/\"0.01\"/0.01/' @/latest/state.json", "'lr' is missing or"},
        {"sed -i '$d' @/latest/state.json", "state.json':"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char path[1024];
        tutti_state_file *file = NULL;
        assert_saved(f, 5, false, 0);
        assert_int_equal(shell(bad[i].script, f->run), 0);
        snprintf(path, sizeof path, "%s/latest/state.json", f->run);
        assert_int_equal(tutti_state_open(&file, path), TUTTI_CHECKPOINT);
        if (!strstr(tutti_message(), bad[i].part)) fail_msg("%zu: %s", i, tutti_message());
        assert_null(file);
    }
}

static void damage_is_named_and_the_one_before_offered(void **state)
{
    const fixture *f = *state;
    static const struct {
        const char *script, *part;
    } damage[] = {
        {"printf x | dd of=@/latest/model.safetensors bs=1 seek=300 conv=notrunc 2>/dev/null",
         "model.safetensors' is not the file that was written"},
        {"truncate -s -4 @/latest/optimizer.safetensors", "optimizer.safetensors' is not the file"},
        {"rm @/latest/state.json", "state.json"},
        {"rm @/latest/SHA256SUMS", "SHA256SUMS"},
        {"sed -i '/state.json/d' @/latest/SHA256SUMS", "has no line for state.json"},
        {"rm -r @/step_00000300", "SHA256SUMS"},
    };
    for (size_t i = 0; i < sizeof damage / sizeof *damage; i++) {
        char path[TUTTI_PATH_BYTES];
        bool found = false;
        assert_int_equal(shell("rm -rf @", f->run), 0);
        for (int64_t step = 100; step <= 300; step += 100) assert_saved(f, step, false, 0);
        assert_int_equal(shell(damage[i].script, f->run), 0);
        assert_int_equal(tutti_checkpoint_find(path, &found, f->run), TUTTI_CHECKPOINT);
        if (!strstr(tutti_message(), damage[i].part) ||
            !strstr(tutti_message(), "run/step_00000200"))
            fail_msg("%zu: %s", i, tutti_message());
        assert_int_equal(shell("rm @/step_00000200/state.json", f->run), 0);
        assert_int_equal(tutti_checkpoint_find(path, &found, f->run), TUTTI_CHECKPOINT);
        assert_non_null(strstr(tutti_message(), "run/step_00000100"));
        assert_int_equal(shell("rm @/step_00000100/state.json", f->run), 0);
        assert_int_equal(tutti_checkpoint_find(path, &found, f->run), TUTTI_CHECKPOINT);
        assert_non_null(strstr(tutti_message(), "holds no older checkpoint that is whole"));
    }
}

static void old_ones_go_but_not_the_best(void **state)
{
    const fixture *f = *state;
    for (int64_t step = 1; step <= 6; step++) assert_saved(f, step, step == 2, 2);
    assert_false(exists(f, "step_00000001"));
    assert_true(exists(f, "step_00000002"));
    assert_false(exists(f, "step_00000003"));
    assert_false(exists(f, "step_00000004"));
    assert_true(exists(f, "step_00000005"));
    assert_true(exists(f, "step_00000006"));
    assert_int_equal(resumed(f), 6);
    /* Back to step 3, say; what lies in the future of that run is left alone. */
    assert_saved(f, 4, false, 1);
    assert_true(exists(f, "step_00000002") && exists(f, "step_00000005"));
    assert_int_equal(resumed(f), 4);
    assert_int_equal(tutti_checkpoint_mend_best(f->run, 3), TUTTI_OK);
    assert_int_equal(shell("test $(readlink @/best) = step_00000002", f->run), 0);
    assert_int_equal(tutti_checkpoint_mend_best(f->run, 4), TUTTI_OK);
    assert_int_equal(shell("test $(readlink @/best) = step_00000004", f->run), 0);
    best_so_far = 4;
    assert_saved(f, 7, false, 1);
    assert_true(exists(f, "step_00000004") && exists(f, "step_00000007"));
    assert_false(exists(f, "step_00000002") || exists(f, "step_00000005"));
}

static void the_beginning_stays(void **state)
{
    const fixture *f = *state;
    for (int64_t step = 0; step <= 4; step++) assert_saved(f, step, false, 1);
    assert_true(exists(f, "step_00000000") && exists(f, "step_00000004"));
    assert_false(exists(f, "step_00000001") || exists(f, "step_00000003"));
}

/* What people put into a checkpoint is theirs, and ends no training. */
static void strangers_files_stay(void **state)
{
    const fixture *f = *state;
    assert_saved(f, 1, false, 1);
    assert_int_equal(shell("mkdir @/step_00000001/mine && echo > @/step_00000001/notes", f->run),
                     0);
    for (int64_t step = 2; step <= 4; step++) assert_saved(f, step, false, 1);
    assert_false(exists(f, "step_00000001") || exists(f, "step_00000003"));
    assert_int_equal(
        shell("test \"$(ls @/step_00000001.rest | tr '\\n' ' ')\" = 'mine notes '", f->run), 0);
    assert_int_equal(warnings, 1);
    assert_int_equal(resumed(f), 4);
    assert_int_equal(shell("echo > @/step_00000004/notes", f->run), 0);
    assert_saved(f, 4, false, 1);
    assert_true(exists(f, "step_00000004.rest/notes"));
    assert_int_equal(warnings, 2);
}

static void the_same_step_is_replaced(void **state)
{
    const fixture *f = *state;
    assert_saved(f, 8, false, 0);
    assert_int_equal(shell("rm @/latest/state.json", f->run), 0);
    assert_saved(f, 8, false, 0);
    assert_int_equal(resumed(f), 8);
    assert_false(exists(f, "step_00000008.tmp") || exists(f, "step_00000008.replaced"));
}

/* A temporary name as the process 'pid' of 'host' would make it. */
static void make_left(const fixture *f, const char *host, int pid, char name[256])
{
    char command[1024];
    snprintf(name, 256, "step_00000007.%s-%d-0a1b2c3d.tmp", host, pid);
    snprintf(command, sizeof command, "mkdir -p @/%s && touch @/%s/rank_0.1.2", name, name);
    assert_int_equal(shell(command, f->run), 0);
}

static void leftovers_of_a_crash_are_removed(void **state)
{
    const fixture *f = *state;
    char here[65] = "", name[4][256];
    const pid_t dead = fork();
    if (dead == 0) _exit(0);
    assert_int_equal(waitpid(dead, NULL, 0), dead);
    gethostname(here, sizeof here - 1);
    assert_int_equal(
        shell("mkdir -p @/step_00000003.tmp && touch @/step_00000003.tmp/state.json && "
              "mkdir @/step_00000004.replaced @/mine.tmp @/step_00000004.rest && "
              "ln -s step_00000003 @/latest.tmp",
              f->run),
        0);
    make_left(f, here, (int)dead, name[0]);
    make_left(f, here, (int)getpid(), name[1]);
    make_left(f, here, (int)getppid(), name[2]);
    make_left(f, "another.host", (int)dead, name[3]);
    assert_saved(f, 5, false, 0);
    assert_false(exists(f, "step_00000003.tmp") || exists(f, "step_00000004.replaced"));
    assert_false(exists(f, "latest.tmp") || exists(f, name[0]) || exists(f, name[1]));
    assert_true(exists(f, "mine.tmp") && exists(f, "step_00000004.rest"));
    assert_true(exists(f, name[2]) && exists(f, name[3])); /* perhaps still at work */
    assert_true(tutti_temporary_is_left(name[3], true));
    assert_false(tutti_temporary_is_left("step_00000005", true));
}

/* Every system call that changes the disk fails in turn: the save says so, and what was there
 * before is whole. A failure after the rename may leave the new one. */
static void any_call_may_fail(void **state)
{
    const fixture *f = *state;
    int faults = 0;
    for (int call = 0;; call++) {
        assert_int_equal(shell("rm -rf @", f->run), 0);
        assert_saved(f, 1, false, 0);
        assert_saved(f, 2, false, 0);
        calls_left = call;
        const tutti_status s = save(f, 3, true, 1);
        const bool finished = calls_left >= 0;
        calls_left = -1;
        if (finished) break;
        faults++;
        /* an unlink of a link that does not exist may fail */
        const int64_t step = resumed(f);
        assert_true(step == 2 || step == 3);
        if (!s) assert_int_equal(step, 3);
        assert_saved(f, 3, true, 1);
        assert_int_equal(resumed(f), 3);
    }
    assert_true(faults > 25);
}

/* The process dies in each of these calls in turn, also while it replaces a checkpoint. */
static void any_call_may_be_the_last(void **state)
{
    const fixture *f = *state;
    int deaths = 0;
    for (int call = 0;; call++) {
        int status = 0;
        assert_int_equal(shell("rm -rf @", f->run), 0);
        assert_saved(f, 1, false, 0);
        assert_saved(f, 2, false, 0);
        const pid_t child = fork();
        if (child == 0) {
            calls_left = call;
            fault_kills = true;
            const tutti_status s = call % 2 ? save(f, 2, true, 1) : save(f, 3, true, 1);
            _exit(s ? 1 : 0);
        }
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFEXITED(status));
        if (WEXITSTATUS(status) == 0) break;
        assert_int_equal(WEXITSTATUS(status), 9);
        deaths++;
        const int64_t step = resumed(f);
        assert_true(step == 2 || step == 3);
        assert_saved(f, 4, false, 0);
        assert_int_equal(resumed(f), 4);
        assert_int_equal(shell("test -z \"$(ls @ | grep -e step.*tmp -e replaced)\"", f->run), 0);
    }
    assert_true(deaths > 25);
}

/* Wherever the process dies, the checkpoint that the latest state calls the best stays, and the
 * link is set right by the next one. */
static void the_best_outlives_any_crash(void **state)
{
    const fixture *f = *state;
    int latest = 0;
    for (int call = 0, status = 0;; call++) {
        assert_int_equal(shell("rm -rf @", f->run), 0);
        assert_saved(f, 1, true, 0);
        assert_saved(f, 2, false, 0);
        const pid_t child = fork();
        if (child == 0) {
            calls_left = call;
            fault_kills = true;
            _exit(save(f, 3, true, 1) ? 1 : 0);
        }
        assert_int_equal(waitpid(child, &status, 0), child);
        if (WEXITSTATUS(status) == 0) break;
        best_so_far = resumed(f) == 3 ? 3 : 1;
        latest += best_so_far == 3;
        for (int64_t step = 4; step <= 6; step++) assert_saved(f, step, false, 1);
        if (!exists(f, best_so_far == 3 ? "step_00000003" : "step_00000001"))
            fail_msg("killed in call %d: the best checkpoint is gone", call);
        assert_int_equal(tutti_checkpoint_link(f->run, "best"), best_so_far);
    }
    assert_true(latest > 2);
}

static void a_run_that_cannot_be_written_says_why(void **state)
{
    fixture *f = *state;
    assert_int_equal(shell("mkdir -p @ && rmdir @ && touch @", f->run), 0);
    assert_int_equal(save(f, 1, false, 0), TUTTI_IO);
    assert_non_null(strstr(tutti_message(), "cannot create the directory"));
    assert_non_null(strstr(tutti_message(), f->run));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_run_without_checkpoints_has_none),
        TEST(what_is_saved_is_found),
        TEST(a_copy_without_links_is_found),
        TEST(ranks_write_together),
        TEST(a_rank_that_has_not_flushed_is_waited_for),
        TEST(what_was_not_written_is_not_believed),
        TEST(the_sums_of_one_rank_are_of_its_memory),
        TEST(temporary_names_never_meet),
        TEST(the_state_comes_back),
        TEST(bad_states_are_named),
        TEST(damage_is_named_and_the_one_before_offered),
        TEST(old_ones_go_but_not_the_best),
        TEST(the_beginning_stays),
        TEST(strangers_files_stay),
        TEST(the_best_outlives_any_crash),
        TEST(the_same_step_is_replaced),
        TEST(leftovers_of_a_crash_are_removed),
        TEST(any_call_may_fail),
        TEST(any_call_may_be_the_last),
        TEST(a_run_that_cannot_be_written_says_why),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
