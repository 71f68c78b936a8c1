/* Taking checkpoints away. Nothing here fails a checkpoint: what cannot be removed stays.
 *
 * Only files that checkpoints are made of are removed. What somebody else has put into a directory
 * stays there; the directory is then called step_N.rest, and nobody looks at it again. */
#ifndef TUTTI_CHECKPOINT_REMOVE_H
#define TUTTI_CHECKPOINT_REMOVE_H

#include <stdint.h>
#include "checkpoint/files.h"

/* Removes a directory that is no checkpoint any more, or never was one. 'log' hears of strangers'
 * files and where they are now. */
void tutti_checkpoint_discard(const char *run, const char *name, const tutti_log *log);

/* Keeps the newest options.keep of the checkpoints up to 'step' (later ones belong to a future that
 * this run has left by resuming an earlier step: not ours to judge), the beginning (step 0) and
 * options.best_step. */
void tutti_checkpoint_remove_old(const char *run, int64_t step,
                                 const tutti_checkpoint_finish_options *options);

/* What crashes have left in the run; 'alone' as in tutti_temporary_is_left. */
void tutti_checkpoint_remove_unfinished(const char *run, bool alone);

/* The marks of ranks in an unfinished checkpoint. */
void tutti_checkpoint_remove_marks(const char *path);

#endif
