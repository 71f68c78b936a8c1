/* The order of a checkpoint's birth, and what a crash leaves behind at each point:
 *
 *   step_N.tmp/ made, files written        a directory nobody looks at; the next finish removes it
 *   files brought to the disk, sums        as before
 *   step_N.tmp renamed to step_N           a whole checkpoint that is not the latest yet
 *   step_N's entry brought to the disk
 *   latest.tmp made, renamed to latest     all done
 *   old checkpoints renamed to .tmp        and removed: a half removed one is not looked at
 *
 * rename replaces a link in one step, so 'latest' always names a whole checkpoint. */
#define _GNU_SOURCE
#include "checkpoint/names.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/memory.h"
#include "format/file.h"
#include "format/json.h"

enum { PARTS = 2 };

struct tutti_checkpoint {
    char run[TUTTI_PATH_BYTES];
    char unfinished[TUTTI_PATH_BYTES]; /* RUN/step_N.tmp */
    int64_t step;
    bool creates;
    tutti_safetensors_writer *writers[PARTS];
};

static tutti_status io_failure(const char *verb, const char *path)
{
    return tutti_fail(TUTTI_IO, "cannot %s '%s': %s", verb, path, strerror(errno));
}

/* ---- Removing ----------------------------------------------------------------------------- */

static tutti_status remove_files(const char *path, DIR *dir)
{
    for (const struct dirent *entry; (entry = readdir(dir));) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) continue;
        char file[TUTTI_PATH_BYTES];
        TUTTI_TRY(tutti_checkpoint_path(file, path, entry->d_name, ""));
        if (unlink(file)) return io_failure("remove", file);
    }
    return TUTTI_OK;
}

/* Removes a directory of files; one that is not there is removed already. */
static tutti_status remove_directory(const char *path)
{
    DIR *dir = opendir(path);
    if (!dir && errno == ENOENT) return TUTTI_OK;
    if (!dir) return io_failure("open", path);
    const tutti_status s = remove_files(path, dir);
    closedir(dir);
    if (!s && rmdir(path)) return io_failure("remove", path);
    return s;
}

/* A finished checkpoint stops being one before its first file goes. */
static tutti_status remove_checkpoint(const char *run, int64_t step)
{
    char name[TUTTI_STEP_NAME_BYTES], path[TUTTI_PATH_BYTES], doomed[TUTTI_PATH_BYTES];
    tutti_checkpoint_step_name(name, step);
    TUTTI_TRY(tutti_checkpoint_path(path, run, name, ""));
    TUTTI_TRY(tutti_checkpoint_path(doomed, run, name, ".tmp"));
    TUTTI_TRY(remove_directory(doomed));
    if (rename(path, doomed)) return io_failure("remove", path);
    return remove_directory(doomed);
}

/* Keeps the newest 'keep' of the checkpoints up to 'step' (later ones belong to a future that this
 * run has left by resuming an earlier step: not ours to judge), the latest and the best. */
static tutti_status remove_old(const char *run, int64_t step, int keep)
{
    int64_t *steps = NULL;
    int count = 0;
    tutti_status s = tutti_checkpoint_steps(&steps, &count, run);
    const int64_t best = tutti_checkpoint_link(run, "best");
    for (int i = count - 1, kept = 0; i >= 0 && !s; i--) {
        if (steps[i] > step || kept++ < keep || steps[i] == best) continue;
        s = remove_checkpoint(run, steps[i]);
    }
    tutti_free(steps);
    return s;
}

/* Is it "step_00000100.tmp" or "step_00000100.replaced"? */
static bool is_unfinished(const char *entry)
{
    static const char *const suffixes[] = {".tmp", ".replaced"};
    char name[TUTTI_STEP_NAME_BYTES];
    const size_t n = strcspn(entry, ".");
    if (n >= sizeof name) return false;
    memcpy(name, entry, n);
    name[n] = 0;
    if (tutti_checkpoint_step_of(name) < 0) return false;
    return strcmp(entry + n, suffixes[0]) == 0 || strcmp(entry + n, suffixes[1]) == 0;
}

/* What crashes have left. */
static tutti_status remove_unfinished(const char *run)
{
    tutti_status s = TUTTI_OK;
    DIR *dir = opendir(run);
    if (!dir) return io_failure("read", run);
    for (const struct dirent *entry; !s && (entry = readdir(dir));) {
        char path[TUTTI_PATH_BYTES];
        if (!is_unfinished(entry->d_name)) continue;
        s = tutti_checkpoint_path(path, run, entry->d_name, "");
        if (!s) s = remove_directory(path);
    }
    closedir(dir);
    return s;
}

/* ---- Writing ------------------------------------------------------------------------------ */

static tutti_status make_directories(const tutti_checkpoint *c)
{
    TUTTI_TRY(tutti_file_make_directories(c->run));
    TUTTI_TRY(remove_directory(c->unfinished));
    return tutti_file_make_directories(c->unfinished);
}

static tutti_status open_parts(tutti_checkpoint *c, const tutti_safetensors_layout *model,
                               const tutti_safetensors_layout *optimizer)
{
    const tutti_safetensors_layout *const layouts[PARTS] = {model, optimizer};
    char path[TUTTI_PATH_BYTES];
    for (int p = 0; p < PARTS; p++) {
        TUTTI_TRY(tutti_checkpoint_path(path, c->unfinished, tutti_checkpoint_files[p], ""));
        TUTTI_TRY(tutti_safetensors_writer_open(&c->writers[p], path, layouts[p], c->creates));
    }
    return TUTTI_OK;
}

tutti_status tutti_checkpoint_begin(tutti_checkpoint **out, const char *run, int64_t step,
                                    const tutti_safetensors_layout *model,
                                    const tutti_safetensors_layout *optimizer, bool creates)
{
    tutti_checkpoint *c = NULL;
    char name[TUTTI_STEP_NAME_BYTES];
    tutti_status s = tutti_alloc(&c, 1, sizeof *c);
    if (s) return s;
    c->step = step;
    c->creates = creates;
    tutti_checkpoint_step_name(name, step);
    if (snprintf(c->run, sizeof c->run, "%s", run) >= (int)sizeof c->run)
        s = tutti_fail(TUTTI_ARGUMENT, "the path '%.100s...' is too long", run);
    if (!s) s = tutti_checkpoint_path(c->unfinished, run, name, ".tmp");
    if (!s && creates) s = make_directories(c);
    if (!s) s = open_parts(c, model, optimizer);
    if (s) tutti_checkpoint_abandon(&c);
    else *out = c;
    return s;
}

tutti_status tutti_checkpoint_write(tutti_checkpoint *checkpoint, tutti_checkpoint_part part,
                                    int tensor, int64_t first, const float *values, int64_t count)
{
    return tutti_safetensors_write(checkpoint->writers[part], tensor, first, values, count);
}

tutti_status tutti_checkpoint_flush(tutti_checkpoint *checkpoint)
{
    for (int p = 0; p < PARTS; p++)
        TUTTI_TRY(tutti_safetensors_writer_close(&checkpoint->writers[p]));
    return TUTTI_OK;
}

/* Frees; what is on the disk stays. */
static void forget(tutti_checkpoint **checkpoint)
{
    for (int p = 0; p < PARTS; p++) tutti_safetensors_writer_abandon(&(*checkpoint)->writers[p]);
    tutti_free(*checkpoint);
    *checkpoint = NULL;
}

void tutti_checkpoint_abandon(tutti_checkpoint **checkpoint)
{
    if (!*checkpoint) return;
    /* A failure to remove changes nothing that matters, and must not hide the one before it. */
    char message[512];
    snprintf(message, sizeof message, "%s", tutti_message());
    if ((*checkpoint)->creates && remove_directory((*checkpoint)->unfinished))
        tutti_fail(TUTTI_IO, "%s", message);
    forget(checkpoint);
}

/* ---- Finishing ---------------------------------------------------------------------------- */

static tutti_status write_state(const tutti_checkpoint *c, const tutti_state *state)
{
    char path[TUTTI_PATH_BYTES];
    char *text = NULL;
    TUTTI_TRY(tutti_checkpoint_path(path, c->unfinished, "state.json", ""));
    TUTTI_TRY(tutti_state_text(&text, state));
    const tutti_status s = tutti_file_save(path, text, strlen(text));
    tutti_free(text);
    return s;
}

static tutti_status add_sums(tutti_string *sums, const tutti_checkpoint *c)
{
    for (int i = 0; i < TUTTI_CHECKPOINT_FILES; i++) {
        char path[TUTTI_PATH_BYTES], hex[TUTTI_HASH_HEX];
        TUTTI_TRY(tutti_checkpoint_path(path, c->unfinished, tutti_checkpoint_files[i], ""));
        TUTTI_TRY(tutti_hash_file(hex, path));
        tutti_string_printf(sums, "%s  %s\n", hex, tutti_checkpoint_files[i]);
    }
    return tutti_string_status(sums);
}

static tutti_status write_sums(const tutti_checkpoint *c)
{
    char path[TUTTI_PATH_BYTES];
    tutti_string sums = {0};
    tutti_status s = add_sums(&sums, c);
    if (!s) s = tutti_checkpoint_path(path, c->unfinished, TUTTI_SUMS_FILE, "");
    if (!s) s = tutti_file_save(path, sums.data, sums.length);
    tutti_string_deinit(&sums);
    return s;
}

/* Gives the directory its name. One of the same step that is there already is exchanged in one
 * step where the file system can (NFS cannot: there, for a moment, the step has no checkpoint). */
static tutti_status take_place(const tutti_checkpoint *c)
{
    char name[TUTTI_STEP_NAME_BYTES], path[TUTTI_PATH_BYTES];
    tutti_checkpoint_step_name(name, c->step);
    TUTTI_TRY(tutti_checkpoint_path(path, c->run, name, ""));
    if (rename(c->unfinished, path) == 0) return TUTTI_OK;
    if (errno != ENOTEMPTY && errno != EEXIST) return io_failure("rename", c->unfinished);
    if (renameat2(AT_FDCWD, c->unfinished, AT_FDCWD, path, RENAME_EXCHANGE) == 0)
        return remove_directory(c->unfinished);

    char replaced[TUTTI_PATH_BYTES];
    TUTTI_TRY(tutti_checkpoint_path(replaced, c->run, name, ".replaced"));
    TUTTI_TRY(remove_directory(replaced));
    if (rename(path, replaced)) return io_failure("rename", path);
    if (rename(c->unfinished, path)) return io_failure("rename", c->unfinished);
    return remove_directory(replaced);
}

static tutti_status set_link(const char *run, const char *link, int64_t step)
{
    char target[TUTTI_STEP_NAME_BYTES], path[TUTTI_PATH_BYTES], fresh[TUTTI_PATH_BYTES];
    tutti_checkpoint_step_name(target, step);
    TUTTI_TRY(tutti_checkpoint_path(path, run, link, ""));
    TUTTI_TRY(tutti_checkpoint_path(fresh, run, link, ".tmp"));
    if (unlink(fresh) && errno != ENOENT) return io_failure("remove", fresh);
    if (symlink(target, fresh)) return io_failure("make the symbolic link", fresh);
    if (rename(fresh, path)) return io_failure("replace the link", path);
    return tutti_file_sync_directory(run);
}

static tutti_status finish(const tutti_checkpoint *c, const tutti_state *state,
                           tutti_checkpoint_finish_options options)
{
    TUTTI_TRY(write_state(c, state));
    TUTTI_TRY(write_sums(c));
    TUTTI_TRY(tutti_file_sync_directory(c->unfinished));
    TUTTI_TRY(take_place(c));
    TUTTI_TRY(tutti_file_sync_directory(c->run));
    TUTTI_TRY(set_link(c->run, "latest", c->step));
    if (options.best) TUTTI_TRY(set_link(c->run, "best", c->step));
    if (options.keep > 0) TUTTI_TRY(remove_old(c->run, c->step, options.keep));
    return remove_unfinished(c->run);
}

tutti_status tutti_checkpoint_finish(tutti_checkpoint **checkpoint, const tutti_state *state,
                                     tutti_checkpoint_finish_options options)
{
    TUTTI_ASSERT((*checkpoint)->creates && (*checkpoint)->step == state->step);
    const tutti_status s = finish(*checkpoint, state, options);
    if (s) tutti_checkpoint_abandon(checkpoint);
    else forget(checkpoint);
    return s;
}

tutti_status tutti_checkpoint_set_best(const char *run, int64_t step)
{
    return set_link(run, "best", step);
}
