/* A keeper writes a stepper into checkpoints and reads it again, on any number of ranks.
 *
 *   keeper.c    saving
 *   weights.c   weights for a new run, from anywhere
 *   match.c     whose names of tensors are whose
 *   resume.c    going on where a run stood
 *   tensors.c   parameters and what the optimizer keeps, out and in
 *   snapshot.c  what a rank writes, in memory
 *   writer.c    the thread that writes it
 *   state.c     state.json
 *   files.c     the birth of a checkpoint: whole, or not there
 *   remove.c    its end, and that of what crashes leave
 *   find.c      the checkpoint that somebody means, and whether it is whole
 *   claim.c     whose the directory is */
#ifndef TUTTI_CHECKPOINT_KEEPER_H
#define TUTTI_CHECKPOINT_KEEPER_H

#include <tutti/log.h>
#include "checkpoint/files.h"
#include "step/rank.h"
#include "step/stepper.h"

typedef struct tutti_keeper tutti_keeper;

/* Borrows all of them; rank and stepper must outlive the keeper. */
tutti_status tutti_keeper_create(tutti_keeper **out, const tutti_rank *rank, tutti_stepper *stepper,
                                 const tutti_log *log) TUTTI_MUST_CHECK;

/* Finishes what is being written, unless that needs ranks that are not known to have flushed. */
void tutti_keeper_destroy(tutti_keeper **keeper);

/* Before the first save: what the headers of the model's files are to carry. Copied; the same on
 * all ranks. */
tutti_status tutti_keeper_describe(tutti_keeper *keeper, const tutti_fact *facts,
                                   int count) TUTTI_MUST_CHECK;

/* ---- Saving: a copy in memory, and a thread that writes it while training goes on ----
 *
 * At most one checkpoint is being written. Ranks tell each other in their notes whether they still
 * write or have failed. When the news of a later step say that nobody writes any more, or that
 * somebody failed (tutti_keeper_is_certain), all ranks call tutti_keeper_wait, at the same step. */

typedef struct tutti_save {
    const char *run;          /* directory */
    const tutti_state *state; /* its step is the stepper's */
    tutti_checkpoint_finish_options finish;
    bool sync; /* write from the stepper itself, without a copy, and return when all is done */
} tutti_save;

/* Collective. Takes the checkpoint of the stepper, which is settled: copies what this rank writes
 * and returns. The one before must have been waited for. */
tutti_status tutti_keeper_save(tutti_keeper *keeper, const tutti_save *save) TUTTI_MUST_CHECK;

/* Is there one that was not waited for yet? This rank's part of it: is it being written, has it
 * failed? */
bool tutti_keeper_has_one(const tutti_keeper *keeper);
bool tutti_keeper_writes(tutti_keeper *keeper);
bool tutti_keeper_has_failed(tutti_keeper *keeper);

/* Do the news of step 'step', that somebody wrote or that somebody had failed, tell of the last one
 * that waiting for it will be short? */
bool tutti_keeper_is_certain(const tutti_keeper *keeper, int64_t step, bool writes, bool failed);

/* Collective. Waits until the last one is a checkpoint, or has failed, and returns that. */
tutti_status tutti_keeper_wait(tutti_keeper *keeper) TUTTI_MUST_CHECK;

/* ---- Loading ---- */

/* Collective. Parameters from a file, a checkpoint or a run, of which it takes the best; 'rename'
 * is a file of names (checkpoint/match.h), or NULL. A line says what is taken; tensors that are
 * missing or do not fit are left as they are; with 'all' none may. */
tutti_status tutti_keeper_load_weights(tutti_keeper *keeper, const char *where, const char *rename,
                                       bool all) TUTTI_MUST_CHECK;

/* Collective. The checkpoint that 'where' means (tutti_checkpoint_find), the same on all ranks: its
 * path, and its state, the caller's to close; "" and NULL where there is none and none need be. */
tutti_status tutti_resume_find(tutti_comm *comm, const char *where, bool must_exist,
                               char path[TUTTI_PATH_BYTES],
                               tutti_state_file **found) TUTTI_MUST_CHECK;

/* Collective. The stepper goes on with the checkpoint at 'path', of step 'step'. */
tutti_status tutti_keeper_restore(tutti_keeper *keeper, const char *path,
                                  int64_t step) TUTTI_MUST_CHECK;

#endif
