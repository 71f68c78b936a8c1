/* Checkpoints: what is on the disk is a whole checkpoint, or is not there.
 *
 *   RUN/step_00001200/model.safetensors        weights, PyTorch's names and layouts
 *                     optimizer.safetensors    what the optimizer keeps
 *                     state.json               where the run stands
 *                     SHA256SUMS               of the three, as sha256sum(1) writes and checks it
 *   RUN/latest -> step_00001200                symbolic links, so that people can use them
 *   RUN/best   -> step_00000900                in paths: RUN/best/model.safetensors
 *
 * A checkpoint is written as RUN/step_00001200.tmp, brought to the disk, and renamed; then the
 * links are replaced, by rename as well. A crash at any moment leaves the previous checkpoint
 * and links as they were, or the new ones complete.
 *
 * The bytes depend on the run (net, data, seed, batch, options, step) and on nothing else: not on
 * the number of ranks or threads, the machine or the hour. Equal runs have equal files.
 *
 * With several ranks one creates and finishes, all write their pieces into the same files. No
 * function here communicates; the caller puts a barrier (or better: an agreement on success)
 * where it says so. */
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
    TUTTI_PARTS
} tutti_checkpoint_part;

typedef struct tutti_checkpoint tutti_checkpoint;

/* Starts the checkpoint of step 'step' in the directory 'run'. The rank that creates makes the
 * directories (also 'run'), the files and their headers; [barrier] then the others open them.
 * Borrows the layouts until finish or abandon. */
tutti_status tutti_checkpoint_begin(tutti_checkpoint **out, const char *run, int64_t step,
                                    const tutti_safetensors_layout *model,
                                    const tutti_safetensors_layout *optimizer,
                                    bool creates) TUTTI_MUST_CHECK;

/* Writes elements first .. first+count-1 of a tensor of one of the layouts. */
tutti_status tutti_checkpoint_write(tutti_checkpoint *checkpoint, tutti_checkpoint_part part,
                                    int tensor, int64_t first, const float *values,
                                    int64_t count) TUTTI_MUST_CHECK;

/* Brings this rank's pieces to the disk. Every rank calls it once, after its last write. [barrier]
 * (The one that finishes reads the others' pieces: to hash them, it opens the files anew.) */
tutti_status tutti_checkpoint_flush(tutti_checkpoint *checkpoint) TUTTI_MUST_CHECK;

/* What finish does besides making the checkpoint the latest. */
typedef struct tutti_checkpoint_finish_options {
    int64_t best_step;    /* of the best checkpoint so far, as in the state; -1: there is none */
    int keep;             /* of those up to this one the newest 'keep' stay; 0: all do */
    const tutti_log *log; /* hears of strangers' files in a checkpoint that goes; borrowed */
} tutti_checkpoint_finish_options;

/* The rank that creates: writes state.json and the sums, renames, sets the links, removes
 * checkpoints beyond 'keep', never the latest, the best or the beginning (step 0). That removing
 * fails is no failure: remove.h. state->step must be the step of begin. A checkpoint of the same
 * step that is already there is replaced. Frees *checkpoint in any case and leaves NULL. */
tutti_status tutti_checkpoint_finish(tutti_checkpoint **checkpoint, const tutti_state *state,
                                     tutti_checkpoint_finish_options options) TUTTI_MUST_CHECK;

/* Closes without finishing and frees: the other ranks after flush, everybody after a failure. The
 * rank that creates removes the temporary directory. */
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

/* Checks one file against the SHA256SUMS beside it, links followed. Where there are no sums, or
 * none of a file that is not a checkpoint's, there is nothing to check. TUTTI_CHECKPOINT names the
 * file. */
tutti_status tutti_checkpoint_verify_file(const char *path) TUTTI_MUST_CHECK;

#endif
