/* Checkpoints: what is on the disk is a whole checkpoint, or is not there.
 *
 *   RUN/step_00001200/model.safetensors        weights, PyTorch's names and layouts
 *                     optimizer.safetensors    what the optimizer keeps
 *                     ema.safetensors          an average of the weights, where one is kept
 *                     state.json               where the run stands
 *                     SHA256SUMS               of them all, as sha256sum(1) writes and checks it
 *   RUN/latest -> step_00001200                symbolic links, so that people can use them
 *   RUN/best   -> step_00000900                in paths: RUN/best/model.safetensors
 *
 * A checkpoint is written as RUN/step_00001200.HOST-PID-CHANCE.tmp, a name that no other process
 * makes, brought to the disk, and renamed; then the links are replaced, by rename as well. A crash
 * at any moment leaves the previous checkpoint and links as they were, or the new ones complete.
 *
 * The bytes depend on the run (net, data, seed, batch, options, step) and on nothing else: not on
 * the number of ranks or threads, the machine or the hour. Equal runs have equal files.
 *
 * Several ranks write their pieces into the same files and need not talk meanwhile: each makes what
 * it does not find, and when its pieces are on the disk it leaves a mark, an empty file. Rank 0
 * finishes when it sees a mark of every rank.
 *
 * The sums are of what was written, not of what happens to be read again. Who writes a file alone
 * and in order hashes what is in memory. Otherwise rank 0 has to read what others wrote: then each
 * rank tallies its pieces in memory (tally.h), its mark carries the result, and what rank 0 reads
 * is only believed if its tally is the sum of theirs.
 *
 * No function here communicates. */
#ifndef TUTTI_CHECKPOINT_FILES_H
#define TUTTI_CHECKPOINT_FILES_H

#include <stdbool.h>
#include <stdint.h>
#include <tutti/log.h>
#include "base/status.h"
#include "format/safetensors.h"
#include "checkpoint/state.h"

enum { TUTTI_PATH_BYTES = 4096 };

/* ---- Writing ------------------------------------------------------------------------------ */

typedef enum tutti_checkpoint_part {
    TUTTI_PART_MODEL,
    TUTTI_PART_OPTIMIZER,
    TUTTI_PART_AVERAGE, /* where its layout is not NULL */
    TUTTI_PARTS
} tutti_checkpoint_part;

typedef struct tutti_checkpoint tutti_checkpoint;

typedef struct tutti_checkpoint_spec {
    const char *run; /* the directory */
    int64_t step;
    const tutti_safetensors_layout *layouts[TUTTI_PARTS]; /* borrowed until finish or abandon */
    int rank, ranks;
    const char *name; /* that rank 0's begin has found; ignored on rank 0 */
} tutti_checkpoint_spec;

/* Starts a checkpoint. Rank 0 finds its temporary name and makes the directory (also 'run'); the
 * others begin afterwards, with that name. */
tutti_status tutti_checkpoint_begin(tutti_checkpoint **out,
                                    const tutti_checkpoint_spec *spec) TUTTI_MUST_CHECK;
const char *tutti_checkpoint_name(const tutti_checkpoint *checkpoint);

/* Writes elements first .. first+count-1 of a tensor of one of the layouts. */
tutti_status tutti_checkpoint_write(tutti_checkpoint *checkpoint, tutti_checkpoint_part part,
                                    int tensor, int64_t first, const float *values,
                                    int64_t count) TUTTI_MUST_CHECK;

/* Brings this rank's pieces to the disk and leaves its mark. Every rank calls it once, after its
 * last write. */
tutti_status tutti_checkpoint_flush(tutti_checkpoint *checkpoint) TUTTI_MUST_CHECK;

/* Rank 0: have all ranks left their mark? */
tutti_status tutti_checkpoint_is_flushed(tutti_checkpoint *checkpoint, bool *all) TUTTI_MUST_CHECK;

/* What finish does besides making the checkpoint the latest. */
typedef struct tutti_checkpoint_finish_options {
    int64_t best_step; /* of the best checkpoint so far, as in the state; -1: there is none */
    int keep;          /* of those up to this one the newest 'keep' stay; 0: all do */
    bool alone;        /* no other process writes in this run: it is claimed */
    tutti_status (*before)(void *user); /* called before the checkpoint can be seen; or NULL */
    void *user;                         /* its argument */
    void (*after)(int64_t step);        /* called when it is the latest; or NULL */
    const tutti_log *log; /* hears of strangers' files in a checkpoint that goes; borrowed */
} tutti_checkpoint_finish_options;

/* Rank 0, when all ranks have flushed: writes state.json, whose text is 'state', and the sums,
 * renames, sets the links, removes checkpoints beyond 'keep', never the latest, the best or the
 * beginning (step 0). That removing fails is no failure: remove.h. A checkpoint of the same step
 * that is already there is replaced. TUTTI_IO if a file does not hold what was written. Frees
 * *checkpoint in any case and leaves NULL. */
tutti_status tutti_checkpoint_finish(tutti_checkpoint **checkpoint, const char *state,
                                     tutti_checkpoint_finish_options options) TUTTI_MUST_CHECK;

/* Closes without finishing and frees: the other ranks after flush, everybody after a failure. Rank
 * 0 removes the temporary directory. */
void tutti_checkpoint_abandon(tutti_checkpoint **checkpoint);

/* Makes RUN/best point to the checkpoint of 'step', which the latest state calls the best, if it is
 * in this run: a crash after RUN/latest was set may have left the link behind. */
tutti_status tutti_checkpoint_mend_best(const char *run, int64_t step) TUTTI_MUST_CHECK;

/* ---- Finding and checking ----------------------------------------------------------------- */

/* Finds the checkpoint that --resume means. 'where' is a run, or one of its step directories, or
 * a link to one. Stores its path (ends without a slash). *found is false, with TUTTI_OK, if
 * 'where' does not exist or holds no checkpoint: for --resume auto that is a fresh start.
 * The checkpoint's sums are checked: a damaged one is TUTTI_CHECKPOINT, and the sentence names the
 * file and the newest older checkpoint that is whole, if there is one. */
tutti_status tutti_checkpoint_find(char path[TUTTI_PATH_BYTES], bool *found,
                                   const char *where) TUTTI_MUST_CHECK;

/* Checks one step directory: all files are there and have their sums. TUTTI_CHECKPOINT names the
 * first file that does not. */
tutti_status tutti_checkpoint_verify(const char *directory) TUTTI_MUST_CHECK;

/* The file of weights that 'where' means: itself, or that of a checkpoint, or a run's best. Of one
 * that keeps an average that is it. */
tutti_status tutti_checkpoint_weights(char path[TUTTI_PATH_BYTES],
                                      const char *where) TUTTI_MUST_CHECK;

/* Checks one file against the SHA256SUMS beside it, links followed. Where there are no sums, or
 * none of a file that is not a checkpoint's, there is nothing to check. TUTTI_CHECKPOINT names the
 * file. */
tutti_status tutti_checkpoint_verify_file(const char *path) TUTTI_MUST_CHECK;

#endif
