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
#include "checkpoint_run.h"

/* ---- Faults ------------------------------------------------------------------------------- */

int calls_left = -1;
bool fault_kills;

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

int64_t best_so_far;
int warnings;

int setup(void **state)
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

int teardown(void **state)
{
    fixture *f = *state;
    tutti_safetensors_layout_destroy(&f->layout);
    scratch_close(&f->dir);
    return 0;
}

static const tutti_state_option options[] = {{"lr", "0.01"}, {"data", "a \"b\"\\c"}};
static const tutti_state_metric metrics[] = {{"loss", 0.1}, {"minus_zero", -0.0}, {"gone", NAN}};

tutti_state state_at(int64_t step)
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

tutti_status write_all(tutti_checkpoint *c, int64_t step, int share, int shares)
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

tutti_status begin(const fixture *f, tutti_checkpoint **out, int64_t step, int rank, int ranks,
                   const char *name)
{
    const tutti_checkpoint_spec spec = {f->run, step,  {f->layout, f->layout, NULL},
                                        rank,   ranks, name};
    return tutti_checkpoint_begin(out, &spec);
}

tutti_status save(const fixture *f, int64_t step, bool best, int keep)
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

void assert_saved(const fixture *f, int64_t step, bool best, int keep)
{
    const tutti_status s = save(f, step, best, keep);
    if (s) fail_msg("step %d: %s", (int)step, tutti_message());
}

int64_t resumed(const fixture *f)
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

bool exists(const fixture *f, const char *name)
{
    char path[1024];
    struct stat info;
    snprintf(path, sizeof path, "%s/%s", f->run, name);
    return lstat(path, &info) == 0;
}

int shell(const char *format, const char *run)
{
    char command[4096];
    int n = 0;
    for (const char *p = format; *p && n < (int)sizeof command - 600; p++)
        n += *p == '@' ? snprintf(command + n, sizeof command - (size_t)n, "%s", run)
                       : snprintf(command + n, sizeof command - (size_t)n, "%c", *p);
    return system(command);
}
