/* The order of a checkpoint's birth, and what a crash leaves behind at each point:
 *
 *   step_N.X.tmp/ made, files written      a directory nobody looks at; the next finish removes it
 *   files brought to the disk, sums        as before
 *   step_N.X.tmp renamed to step_N         a whole checkpoint that is not the latest yet
 *   step_N's entry brought to the disk
 *   latest.X.tmp renamed to latest         the run stands here: what best is follows from its state
 *   best.X.tmp renamed to best             all done; if it is missed, the next one mends it
 *   old ones renamed to step_M.Y.tmp       and removed: a half removed one is not looked at
 *
 * rename replaces a link in one step, so 'latest' always names a whole checkpoint. Which one is the
 * best stands in its state.json: the link 'best' only repeats it, for people and paths. */
#define _GNU_SOURCE
#include "checkpoint/names.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/memory.h"
#include "checkpoint/remove.h"
#include "format/file.h"
#include "checkpoint/tally.h"
#include "format/json.h"

/* A mark is called "rank_7.MODEL.OPTIMIZER.AVERAGE": who has flushed, and tallies of its pieces. */
#define MARK_FORMAT "%d.%016" PRIx64 ".%016" PRIx64 ".%016" PRIx64

enum { CHUNK_BYTES = 256 << 10, NUMBER = sizeof(float) };

/* One of the files of tensors; without a layout there is none. */
typedef struct part {
    const tutti_safetensors_layout *layout;
    tutti_safetensors_writer *writer;
    uint64_t tally;   /* of this rank's pieces; of all when all have flushed */
    tutti_hash *hash; /* of the first 'hashed' bytes */
    uint64_t hashed;
} part;

struct tutti_checkpoint {
    char run[TUTTI_PATH_BYTES];
    char name[TUTTI_TEMPORARY_BYTES];
    char unfinished[TUTTI_PATH_BYTES]; /* RUN/name */
    int64_t step;
    int rank, ranks;
    part parts[TUTTI_PARTS];
};

static tutti_status io_failure(const char *verb, const char *path)
{
    return tutti_file_failure(verb, path);
}

/* ---- Writing ------------------------------------------------------------------------------ */

static tutti_status find_name(tutti_checkpoint *c, const char *found)
{
    char step[TUTTI_STEP_NAME_BYTES];
    tutti_checkpoint_step_name(step, c->step);
    if (c->rank == 0) tutti_temporary_name(c->name, step);
    else snprintf(c->name, sizeof c->name, "%s", found);
    TUTTI_TRY(tutti_checkpoint_path(c->unfinished, c->run, c->name, ""));
    return c->rank == 0 ? tutti_file_make_directories(c->unfinished) : TUTTI_OK;
}

tutti_status tutti_checkpoint_begin(tutti_checkpoint **out, const tutti_checkpoint_spec *spec)
{
    tutti_checkpoint *c = NULL;
    TUTTI_TRY(tutti_alloc(&c, 1, sizeof *c));
    c->step = spec->step;
    c->rank = spec->rank;
    c->ranks = spec->ranks;
    tutti_status s = TUTTI_OK;
    for (int p = 0; p < TUTTI_PARTS && !s; p++) {
        c->parts[p].layout = spec->layouts[p];
        s = tutti_hash_create(&c->parts[p].hash);
    }
    if (!s && snprintf(c->run, sizeof c->run, "%s", spec->run) >= (int)sizeof c->run)
        s = tutti_fail(TUTTI_ARGUMENT, "the path '%.100s...' is too long", spec->run);
    if (!s) s = find_name(c, spec->name);
    if (s) tutti_checkpoint_abandon(&c);
    else *out = c;
    return s;
}

const char *tutti_checkpoint_name(const tutti_checkpoint *checkpoint)
{
    return checkpoint->name;
}

/* Who writes the header alone has written the first bytes of the file. */
static tutti_status open_part(tutti_checkpoint *c, int which)
{
    part *p = &c->parts[which];
    char path[TUTTI_PATH_BYTES];
    size_t length;
    if (p->writer) return TUTTI_OK;
    TUTTI_TRY(tutti_checkpoint_path(path, c->unfinished, tutti_checkpoint_files[which], ""));
    TUTTI_TRY(tutti_safetensors_writer_open(&p->writer, path, p->layout, c->rank == 0));
    const char *header = tutti_safetensors_layout_header(p->layout, &length);
    tutti_hash_add(p->hash, header, length);
    p->hashed = length;
    return TUTTI_OK;
}

/* The numbers before a tensor's element, in the file. */
static uint64_t place_of(const part *p, int tensor, int64_t element)
{
    const uint64_t data = tutti_safetensors_layout_begin(p->layout, 0);
    return (tutti_safetensors_layout_begin(p->layout, tensor) - data) / NUMBER + (uint64_t)element;
}

static void account(part *p, int tensor, int64_t first, const void *values, int64_t count)
{
    const uint64_t offset =
        tutti_safetensors_layout_begin(p->layout, tensor) + (uint64_t)first * NUMBER;
    p->tally += tutti_tally(place_of(p, tensor, first), values, (size_t)count);
    if (offset != p->hashed) return;
    tutti_hash_add(p->hash, values, (size_t)count * NUMBER);
    p->hashed += (uint64_t)count * NUMBER;
}

/* As they are in the file: an int64 is two numbers there. */
static void account_values(part *p, int tensor, int64_t first, const float *values, int64_t count)
{
    if (tutti_safetensors_layout_tensor(p->layout, tensor)->dtype == TUTTI_F32) {
        account(p, tensor, first, values, count);
        return;
    }
    for (int64_t i = 0; i < count; i++) {
        const int64_t whole = (int64_t)values[i];
        account(p, tensor, 2 * (first + i), &whole, 2);
    }
}

tutti_status tutti_checkpoint_write(tutti_checkpoint *checkpoint, tutti_checkpoint_part which,
                                    int tensor, int64_t first, const float *values, int64_t count)
{
    part *p = &checkpoint->parts[which];
    TUTTI_TRY(open_part(checkpoint, (int)which));
    for (int64_t done = 0; done < count;) { /* by pieces that stay in the cache */
        const int64_t most = CHUNK_BYTES / NUMBER, left = count - done;
        const int64_t n = left < most ? left : most;
        TUTTI_TRY(tutti_safetensors_write(p->writer, tensor, first + done, values + done, n));
        account_values(p, tensor, first + done, values + done, n);
        done += n;
    }
    return TUTTI_OK;
}

static tutti_status leave_mark(const tutti_checkpoint *c)
{
    char name[TUTTI_TEMPORARY_BYTES], path[TUTTI_PATH_BYTES];
    snprintf(name, sizeof name, TUTTI_MARK MARK_FORMAT, c->rank, c->parts[0].tally,
             c->parts[1].tally, c->parts[2].tally);
    TUTTI_TRY(tutti_checkpoint_path(path, c->unfinished, name, ""));
    const int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
    if (fd < 0 || close(fd)) return io_failure("create", path);
    return TUTTI_OK;
}

tutti_status tutti_checkpoint_flush(tutti_checkpoint *c)
{
    for (int p = 0; p < TUTTI_PARTS; p++) {
        if (!c->parts[p].layout) continue;
        TUTTI_TRY(open_part(c, p));
        TUTTI_TRY(tutti_safetensors_writer_close(&c->parts[p].writer));
    }
    return c->ranks == 1 ? TUTTI_OK : leave_mark(c);
}

tutti_status tutti_checkpoint_is_flushed(tutti_checkpoint *c, bool *all)
{
    uint64_t sums[TUTTI_PARTS] = {0}, tallies[TUTTI_PARTS];
    int marks = 0, rank;
    *all = c->ranks == 1;
    if (*all) return TUTTI_OK;
    DIR *dir = opendir(c->unfinished); /* anew each time: a network's file system looks anew, too */
    if (!dir) return io_failure("read", c->unfinished);
    for (const struct dirent *entry; (entry = readdir(dir));) {
        if (sscanf(entry->d_name, TUTTI_MARK "%d.%" SCNx64 ".%" SCNx64 ".%" SCNx64, &rank,
                   &tallies[0], &tallies[1], &tallies[2]) != 1 + TUTTI_PARTS)
            continue;
        for (int p = 0; p < TUTTI_PARTS; p++) sums[p] += tallies[p];
        marks++;
    }
    closedir(dir);
    *all = marks == c->ranks;
    for (int p = 0; p < TUTTI_PARTS && *all; p++) c->parts[p].tally = sums[p];
    return TUTTI_OK;
}

/* Frees; what is on the disk stays. */
static void forget(tutti_checkpoint **checkpoint)
{
    for (int p = 0; p < TUTTI_PARTS; p++) {
        tutti_safetensors_writer_abandon(&(*checkpoint)->parts[p].writer);
        tutti_hash_destroy(&(*checkpoint)->parts[p].hash);
    }
    tutti_free(*checkpoint);
    *checkpoint = NULL;
}

void tutti_checkpoint_abandon(tutti_checkpoint **checkpoint)
{
    tutti_checkpoint *c = *checkpoint;
    if (!c) return;
    if (c->rank == 0 && c->name[0]) tutti_checkpoint_discard(c->run, c->name, NULL);
    forget(checkpoint);
}

/* ---- Finishing ---------------------------------------------------------------------------- */

/* What the file holds is what was written: then its hash may be trusted. */
static tutti_status read_again(const tutti_checkpoint *c, int which, int fd, const char *path,
                               char *chunk)
{
    const part *p = &c->parts[which];
    size_t header;
    const char *head = tutti_safetensors_layout_header(p->layout, &header);
    const uint64_t bytes = tutti_safetensors_layout_bytes(p->layout);
    struct stat info;
    uint64_t tally = 0;
    bool same = fstat(fd, &info) == 0 && (uint64_t)info.st_size == bytes;
    tutti_hash_restart(p->hash);
    for (uint64_t at = 0, n; at < bytes; at += n) {
        const uint64_t most = at < header ? header - at : bytes - at;
        n = most < CHUNK_BYTES ? most : CHUNK_BYTES;
        TUTTI_TRY(tutti_file_read_at(fd, path, chunk, (size_t)n, at));
        tutti_hash_add(p->hash, chunk, (size_t)n);
        if (at < header) same = same && memcmp(chunk, head + at, (size_t)n) == 0;
        else tally += tutti_tally((at - header) / NUMBER, chunk, (size_t)n / NUMBER);
    }
    if (same && tally == p->tally) return TUTTI_OK;
    return tutti_fail(TUTTI_IO,
                      "'%s' does not hold what was written: the file system lost or changed it, or "
                      "not all ranks see the same directory",
                      path);
}

static tutti_status check_part(const tutti_checkpoint *c, int which, const char *path)
{
    char *chunk = NULL;
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return io_failure("open", path);
    tutti_status s = tutti_alloc(&chunk, CHUNK_BYTES, 1);
    if (!s) s = read_again(c, which, fd, path, chunk);
    tutti_free(chunk);
    close(fd);
    return s;
}

static tutti_status add_sums(tutti_string *sums, const tutti_checkpoint *c, const char *state)
{
    char path[TUTTI_PATH_BYTES], hex[TUTTI_HASH_HEX];
    for (int i = 0; i < TUTTI_PARTS; i++) {
        const part *p = &c->parts[i];
        if (!p->layout) continue;
        TUTTI_TRY(tutti_checkpoint_path(path, c->unfinished, tutti_checkpoint_files[i], ""));
        if (c->ranks > 1 || p->hashed != tutti_safetensors_layout_bytes(p->layout))
            TUTTI_TRY(check_part(c, i, path));
        tutti_hash_finish(p->hash, hex);
        tutti_string_printf(sums, "%s  %s\n", hex, tutti_checkpoint_files[i]);
    }
    TUTTI_TRY(tutti_hash_bytes(hex, state, strlen(state)));
    tutti_string_printf(sums, "%s  %s\n", hex, TUTTI_STATE_FILE);
    return tutti_string_status(sums);
}

static tutti_status write_text(const tutti_checkpoint *c, const char *name, const char *text)
{
    char path[TUTTI_PATH_BYTES];
    TUTTI_TRY(tutti_checkpoint_path(path, c->unfinished, name, ""));
    return tutti_file_save(path, text, strlen(text));
}

static tutti_status write_sums(const tutti_checkpoint *c, const char *state)
{
    tutti_string sums = {0};
    tutti_status s = add_sums(&sums, c, state);
    if (!s) s = write_text(c, TUTTI_SUMS_FILE, sums.data);
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
    char replaced_name[TUTTI_TEMPORARY_BYTES], replaced[TUTTI_PATH_BYTES];
    tutti_temporary_name(replaced_name, name);
    TUTTI_TRY(tutti_checkpoint_path(replaced, c->run, replaced_name, ""));
    if (rename(path, replaced)) return io_failure("rename", path);
    if (rename(c->unfinished, path)) return io_failure("rename", c->unfinished);
    tutti_checkpoint_discard(c->run, replaced_name, log);
    return TUTTI_OK;
}

static tutti_status set_link(const char *run, const char *link, int64_t step)
{
    char target[TUTTI_STEP_NAME_BYTES], name[TUTTI_TEMPORARY_BYTES];
    char path[TUTTI_PATH_BYTES], fresh[TUTTI_PATH_BYTES];
    tutti_checkpoint_step_name(target, step);
    tutti_temporary_name(name, link);
    TUTTI_TRY(tutti_checkpoint_path(path, run, link, ""));
    TUTTI_TRY(tutti_checkpoint_path(fresh, run, name, ""));
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

static tutti_status finish(const tutti_checkpoint *c, const char *state,
                           const tutti_checkpoint_finish_options *options)
{
    TUTTI_TRY(write_sums(c, state));
    TUTTI_TRY(write_text(c, TUTTI_STATE_FILE, state));
    tutti_checkpoint_remove_marks(c->unfinished);
    TUTTI_TRY(tutti_file_sync_directory(c->unfinished));
    if (options->before) TUTTI_TRY(options->before(options->user));
    TUTTI_TRY(take_place(c, options->log));
    TUTTI_TRY(tutti_file_sync_directory(c->run));
    TUTTI_TRY(set_link(c->run, "latest", c->step));
    if (options->after) options->after(c->step);
    TUTTI_TRY(tutti_checkpoint_mend_best(c->run, options->best_step));
    tutti_checkpoint_remove_old(c->run, c->step, options);
    tutti_checkpoint_remove_unfinished(c->run, options->alone);
    return TUTTI_OK;
}

tutti_status tutti_checkpoint_finish(tutti_checkpoint **checkpoint, const char *state,
                                     tutti_checkpoint_finish_options options)
{
    TUTTI_ASSERT((*checkpoint)->rank == 0);
    const tutti_status s = finish(*checkpoint, state, &options);
    if (s) tutti_checkpoint_abandon(checkpoint);
    else forget(checkpoint);
    return s;
}
