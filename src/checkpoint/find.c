#define _GNU_SOURCE
#include "checkpoint/names.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/memory.h"
#include "checkpoint/state.h"
#include "format/file.h"

const char *const tutti_checkpoint_files[TUTTI_CHECKPOINT_FILES] = {
    TUTTI_MODEL_FILE,
    "optimizer.safetensors",
    TUTTI_AVERAGE_FILE,
    TUTTI_STATE_FILE,
};

/* ---- Names -------------------------------------------------------------------------------- */

tutti_status tutti_checkpoint_path(char out[TUTTI_PATH_BYTES], const char *directory,
                                   const char *name, const char *suffix)
{
    const int n = snprintf(out, TUTTI_PATH_BYTES, "%s/%s%s", directory, name, suffix);
    if (n < 0 || n >= TUTTI_PATH_BYTES)
        return tutti_fail(TUTTI_ARGUMENT, "the path '%.100s...' is too long", directory);
    return TUTTI_OK;
}

void tutti_checkpoint_step_name(char out[TUTTI_STEP_NAME_BYTES], int64_t step)
{
    snprintf(out, TUTTI_STEP_NAME_BYTES, "step_%08lld", (long long)step);
}

int64_t tutti_checkpoint_step_of(const char *name)
{
    char again[TUTTI_STEP_NAME_BYTES];
    if (strncmp(name, "step_", 5) != 0) return -1;
    const long long step = strtoll(name + 5, NULL, 10);
    if (step < 0) return -1;
    tutti_checkpoint_step_name(again, step);
    return strcmp(name, again) == 0 ? step : -1;
}

static int increasing(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

tutti_status tutti_checkpoint_steps(int64_t **out, int *count, const char *run)
{
    int64_t *steps = NULL;
    size_t room = 0;
    int n = 0;
    tutti_status s = TUTTI_OK;
    DIR *dir = opendir(run);
    if (!dir) return tutti_fail(TUTTI_IO, "cannot read '%s': %s", run, strerror(errno));
    for (const struct dirent *entry; !s && (entry = readdir(dir));) room++;
    rewinddir(dir);
    s = tutti_alloc(&steps, room, sizeof *steps);
    for (const struct dirent *entry; !s && (size_t)n < room && (entry = readdir(dir));) {
        const int64_t step = tutti_checkpoint_step_of(entry->d_name);
        if (step >= 0) steps[n++] = step;
    }
    closedir(dir);
    if (s) return s;
    qsort(steps, (size_t)n, sizeof *steps, increasing);
    *out = steps;
    *count = n;
    return TUTTI_OK;
}

int64_t tutti_checkpoint_link(const char *run, const char *link)
{
    char path[TUTTI_PATH_BYTES], target[TUTTI_STEP_NAME_BYTES];
    if (tutti_checkpoint_path(path, run, link, "")) return -1;
    const ssize_t n = readlink(path, target, sizeof target - 1);
    if (n < 0) return -1;
    target[n] = 0;
    return tutti_checkpoint_step_of(target);
}

/* ---- Checking ----------------------------------------------------------------------------- */

static tutti_status verify_file(const char *directory, const char *name, const char *wanted)
{
    char path[TUTTI_PATH_BYTES], hex[TUTTI_HASH_HEX];
    TUTTI_TRY(tutti_checkpoint_path(path, directory, name, ""));
    if (tutti_hash_file(hex, path))
        return tutti_fail(TUTTI_CHECKPOINT, "the checkpoint is damaged: %s", tutti_message());
    if (strncmp(hex, wanted, TUTTI_HASH_HEX - 1) != 0)
        return tutti_fail(TUTTI_CHECKPOINT,
                          "the checkpoint is damaged: '%s' is not the file that was written "
                          "(its SHA-256 is not the one in " TUTTI_SUMS_FILE ")",
                          path);
    return TUTTI_OK;
}

/* A line is 64 digits, two blanks, the name: as sha256sum writes it. The sum of 'name', or NULL. */
static const char *sum_of(const char *sums, const char *name)
{
    const size_t digits = TUTTI_HASH_HEX - 1, length = strlen(name);
    for (const char *line = sums; *line;) {
        const size_t n = strcspn(line, "\n");
        if (n == digits + 2 + length && memcmp(line + digits, "  ", 2) == 0 &&
            memcmp(line + digits + 2, name, length) == 0)
            return line;
        line += n + (line[n] == '\n');
    }
    return NULL;
}

static tutti_status verify_by(const char *sums, const char *directory, const char *name)
{
    const char *sum = sum_of(sums, name);
    if (sum) return verify_file(directory, name, sum);
    return tutti_fail(TUTTI_CHECKPOINT,
                      "the checkpoint is damaged: '%s/" TUTTI_SUMS_FILE "' has no line for %s",
                      directory, name);
}

static tutti_status load_sums(char **out, const char *directory)
{
    enum { MOST_BYTES = 1 << 20 };
    char path[TUTTI_PATH_BYTES];
    size_t length = 0;
    TUTTI_TRY(tutti_checkpoint_path(path, directory, TUTTI_SUMS_FILE, ""));
    if (tutti_file_load(out, &length, path, MOST_BYTES))
        return tutti_fail(TUTTI_CHECKPOINT, "the checkpoint is damaged: %s", tutti_message());
    return TUTTI_OK;
}

/* The average: neither a sum of it nor the file is there. */
static bool is_left_out(const char *sums, const char *directory, const char *name)
{
    char path[TUTTI_PATH_BYTES];
    if (strcmp(name, TUTTI_AVERAGE_FILE) || sum_of(sums, name)) return false;
    return !tutti_checkpoint_path(path, directory, name, "") && access(path, F_OK);
}

tutti_status tutti_checkpoint_verify(const char *directory)
{
    char *sums = NULL;
    tutti_status s = TUTTI_OK;
    TUTTI_TRY(load_sums(&sums, directory));
    for (int i = 0; i < TUTTI_CHECKPOINT_FILES && !s; i++)
        if (!is_left_out(sums, directory, tutti_checkpoint_files[i]))
            s = verify_by(sums, directory, tutti_checkpoint_files[i]);
    tutti_free(sums);
    return s;
}

static bool is_checkpoint_file(const char *name)
{
    for (int i = 0; i < TUTTI_CHECKPOINT_FILES; i++)
        if (!strcmp(name, tutti_checkpoint_files[i])) return true;
    return false;
}

/* 'path' is absolute and without links. */
static tutti_status verify_beside(char *path)
{
    char beside[TUTTI_PATH_BYTES];
    char *slash = strrchr(path, '/'), *sums = NULL;
    const char *name = slash + 1;
    *slash = 0;
    TUTTI_TRY(tutti_checkpoint_path(beside, path, TUTTI_SUMS_FILE, ""));
    if (access(beside, F_OK)) return TUTTI_OK;
    TUTTI_TRY(load_sums(&sums, path));
    const tutti_status s =
        is_checkpoint_file(name) || sum_of(sums, name) ? verify_by(sums, path, name) : TUTTI_OK;
    tutti_free(sums);
    return s;
}

tutti_status tutti_checkpoint_verify_file(const char *path)
{
    char *real = realpath(path, NULL);
    if (!real) return TUTTI_OK; /* whoever opens it will say why it cannot be */
    const tutti_status s = verify_beside(real);
    free(real);
    return s;
}

/* ---- Finding ------------------------------------------------------------------------------ */

/* The newest whole checkpoint of the run before 'step'; "" if there is none. */
static tutti_status find_older(char out[TUTTI_PATH_BYTES], const char *run, int64_t step)
{
    int64_t *steps = NULL;
    int count = 0;
    TUTTI_TRY(tutti_checkpoint_steps(&steps, &count, run));
    out[0] = 0;
    tutti_status s = TUTTI_OK;
    for (int i = count - 1; i >= 0 && !s && !out[0]; i--) {
        char name[TUTTI_STEP_NAME_BYTES];
        if (steps[i] >= step) continue;
        tutti_checkpoint_step_name(name, steps[i]);
        s = tutti_checkpoint_path(out, run, name, "");
        if (!s && tutti_checkpoint_verify(out)) out[0] = 0;
    }
    tutti_free(steps);
    return s;
}

/* Adds to the sentence of a damaged checkpoint which older one could take its place. */
static tutti_status offer_older(const char *run, int64_t step)
{
    char damage[512], older[TUTTI_PATH_BYTES];
    snprintf(damage, sizeof damage, "%s", tutti_message());
    TUTTI_TRY(find_older(older, run, step));
    if (!older[0])
        return tutti_fail(TUTTI_CHECKPOINT, "%s; '%s' holds no older checkpoint that is whole",
                          damage, run);
    return tutti_fail(TUTTI_CHECKPOINT, "%s; the one before it is whole: --resume %s", damage,
                      older);
}

static bool is_directory(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

/* The step directory that 'where' is, or that it has as the latest; *step < 0: there is none. A run
 * that lost its links in a copy falls back to its highest step. */
static tutti_status locate(char run[TUTTI_PATH_BYTES], int64_t *step, const char *where)
{
    char *real = realpath(where, NULL);
    *step = -1;
    if (!real && errno == ENOENT) return TUTTI_OK;
    if (!real) return tutti_fail(TUTTI_IO, "cannot read '%s': %s", where, strerror(errno));
    char *base = strrchr(real, '/');
    *step = tutti_checkpoint_step_of(base + 1);
    if (*step >= 0) *base = 0;
    const int n = snprintf(run, TUTTI_PATH_BYTES, "%s", real);
    free(real);
    if (n >= TUTTI_PATH_BYTES) return tutti_fail(TUTTI_ARGUMENT, "'%s' is too long", where);
    if (*step >= 0) return TUTTI_OK;

    *step = tutti_checkpoint_link(run, "latest");
    if (*step >= 0 || !is_directory(run)) return TUTTI_OK;
    int64_t *steps = NULL;
    int count = 0;
    TUTTI_TRY(tutti_checkpoint_steps(&steps, &count, run));
    if (count) *step = steps[count - 1];
    tutti_free(steps);
    return TUTTI_OK;
}

tutti_status tutti_checkpoint_find(char path[TUTTI_PATH_BYTES], bool *found, const char *where)
{
    char run[TUTTI_PATH_BYTES], name[TUTTI_STEP_NAME_BYTES];
    int64_t step = -1;
    TUTTI_TRY(locate(run, &step, where));
    *found = step >= 0;
    if (!*found) return TUTTI_OK;
    tutti_checkpoint_step_name(name, step);
    TUTTI_TRY(tutti_checkpoint_path(path, run, name, ""));
    return tutti_checkpoint_verify(path) ? offer_older(run, step) : TUTTI_OK;
}

/* "best_top1", "best_loss": whatever decides. */
static bool has_best(const tutti_state *state)
{
    for (int i = 0; i < state->metric_count; i++) {
        const tutti_state_metric *m = &state->metrics[i];
        if (!strncmp(m->name, "best_", 5) && strcmp(m->name, "best_step") && isfinite(m->value))
            return true;
    }
    return false;
}

/* The best step as the latest state knows it; -1: it does not. A link can be damaged, and after a
 * crash 'best' may be one behind. */
static int64_t best_in(const char *run)
{
    char path[TUTTI_PATH_BYTES];
    tutti_state_file *file = NULL;
    if (tutti_checkpoint_path(path, run, "latest/" TUTTI_STATE_FILE, "")) return -1;
    if (tutti_checkpoint_verify_file(path) || tutti_state_open(&file, path)) return -1;
    const tutti_state *state = tutti_state_of(file);
    const double step = tutti_state_metric_value(state, "best_step");
    const bool known = has_best(state) && isfinite(step);
    tutti_state_close(&file);
    return known ? (int64_t)step : -1;
}

/* The average if the checkpoint has one, or should have. */
static tutti_status weights_in(char path[TUTTI_PATH_BYTES], const char *where, const char *folder)
{
    char directory[TUTTI_PATH_BYTES], *sums = NULL;
    TUTTI_TRY(tutti_checkpoint_path(directory, where, folder, ""));
    TUTTI_TRY(tutti_checkpoint_path(path, directory, TUTTI_AVERAGE_FILE, ""));
    if (access(path, R_OK) == 0) return TUTTI_OK;
    const bool should = !load_sums(&sums, directory) && sum_of(sums, TUTTI_AVERAGE_FILE);
    tutti_free(sums);
    return should ? TUTTI_OK : tutti_checkpoint_path(path, directory, TUTTI_MODEL_FILE, "");
}

static bool has_model(const char *where, const char *folder)
{
    char path[TUTTI_PATH_BYTES];
    return !tutti_checkpoint_path(path, where, folder, "/" TUTTI_MODEL_FILE) &&
           access(path, R_OK) == 0;
}

tutti_status tutti_checkpoint_weights(char path[TUTTI_PATH_BYTES], const char *where)
{
    char best[TUTTI_STEP_NAME_BYTES];
    tutti_checkpoint_step_name(best, best_in(where));
    const char *const places[] = {best, "best", "latest", "."};
    for (size_t i = 0; i < sizeof places / sizeof *places; i++)
        if (has_model(where, places[i])) return weights_in(path, where, places[i]);
    const size_t length = strlen(where);
    if (length >= TUTTI_PATH_BYTES) return tutti_fail(TUTTI_ARGUMENT, "'%s' is too long", where);
    memcpy(path, where, length + 1);
    return TUTTI_OK;
}
