/* The order of a checkpoint's birth, and what a crash leaves behind at each point:
 *
 *   step_N.tmp/ made, files written        a directory nobody looks at; the next finish removes it
 *   files brought to the disk, sums        as before
 *   step_N.tmp renamed to step_N           a whole checkpoint that is not the latest yet
 *   step_N's entry brought to the disk
 *   latest.tmp made, renamed to latest     the run stands here: what best is follows from its state
 *   best.tmp made, renamed to best         all done; if it is missed, the next one mends it
 *   old checkpoints renamed to .tmp        and removed: a half removed one is not looked at
 *
 * rename replaces a link in one step, so 'latest' always names a whole checkpoint. Which one is the
 * best stands in its state.json: the link 'best' only repeats it, for people and paths. */
#define _GNU_SOURCE
#include "checkpoint/names.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/memory.h"
#include "checkpoint/remove.h"
#include "format/file.h"
#include "format/json.h"

enum { PARTS = 2 };

struct tutti_checkpoint {
    char run[TUTTI_PATH_BYTES];
    char name[TUTTI_STEP_NAME_BYTES + 8]; /* step_N.tmp */
    char unfinished[TUTTI_PATH_BYTES];    /* RUN/step_N.tmp */
    int64_t step;
    bool creates;
    tutti_safetensors_writer *writers[PARTS];
};

static tutti_status io_failure(const char *verb, const char *path)
{
    return tutti_file_failure(verb, path);
}

/* ---- Writing ------------------------------------------------------------------------------ */

static tutti_status make_directories(const tutti_checkpoint *c)
{
    TUTTI_TRY(tutti_file_make_directories(c->run));
    tutti_checkpoint_discard(c->run, c->name, NULL);
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
    snprintf(c->name, sizeof c->name, "%s.tmp", name);
    if (!s) s = tutti_checkpoint_path(c->unfinished, run, c->name, "");
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
    if ((*checkpoint)->creates)
        tutti_checkpoint_discard((*checkpoint)->run, (*checkpoint)->name, NULL);
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
static tutti_status take_place(const tutti_checkpoint *c, const tutti_log *log)
{
    char name[TUTTI_STEP_NAME_BYTES], path[TUTTI_PATH_BYTES];
    tutti_checkpoint_step_name(name, c->step);
    TUTTI_TRY(tutti_checkpoint_path(path, c->run, name, ""));
    if (rename(c->unfinished, path) == 0) return TUTTI_OK;
    if (errno != ENOTEMPTY && errno != EEXIST) return io_failure("rename", c->unfinished);
    if (renameat2(AT_FDCWD, c->unfinished, AT_FDCWD, path, RENAME_EXCHANGE) == 0) {
        tutti_checkpoint_discard(c->run, c->name, log);
        return TUTTI_OK;
    }
    char replaced_name[TUTTI_STEP_NAME_BYTES + 16], replaced[TUTTI_PATH_BYTES];
    snprintf(replaced_name, sizeof replaced_name, "%s.replaced", name);
    TUTTI_TRY(tutti_checkpoint_path(replaced, c->run, replaced_name, ""));
    tutti_checkpoint_discard(c->run, replaced_name, log);
    if (rename(path, replaced)) return io_failure("rename", path);
    if (rename(c->unfinished, path)) return io_failure("rename", c->unfinished);
    tutti_checkpoint_discard(c->run, replaced_name, log);
    return TUTTI_OK;
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

tutti_status tutti_checkpoint_mend_best(const char *run, int64_t step)
{
    char name[TUTTI_STEP_NAME_BYTES], path[TUTTI_PATH_BYTES];
    if (step < 0 || tutti_checkpoint_link(run, "best") == step) return TUTTI_OK;
    tutti_checkpoint_step_name(name, step);
    TUTTI_TRY(tutti_checkpoint_path(path, run, name, "/" TUTTI_SUMS_FILE));
    return access(path, F_OK) == 0 ? set_link(run, "best", step) : TUTTI_OK;
}

static tutti_status finish(const tutti_checkpoint *c, const tutti_state *state,
                           const tutti_checkpoint_finish_options *options)
{
    TUTTI_TRY(write_state(c, state));
    TUTTI_TRY(write_sums(c));
    TUTTI_TRY(tutti_file_sync_directory(c->unfinished));
    TUTTI_TRY(take_place(c, options->log));
    TUTTI_TRY(tutti_file_sync_directory(c->run));
    TUTTI_TRY(set_link(c->run, "latest", c->step));
    TUTTI_TRY(tutti_checkpoint_mend_best(c->run, options->best_step));
    tutti_checkpoint_remove_old(c->run, c->step, options);
    tutti_checkpoint_remove_unfinished(c->run);
    return TUTTI_OK;
}

tutti_status tutti_checkpoint_finish(tutti_checkpoint **checkpoint, const tutti_state *state,
                                     tutti_checkpoint_finish_options options)
{
    TUTTI_ASSERT((*checkpoint)->creates && (*checkpoint)->step == state->step);
    const tutti_status s = finish(*checkpoint, state, &options);
    if (s) tutti_checkpoint_abandon(checkpoint);
    else forget(checkpoint);
    return s;
}
