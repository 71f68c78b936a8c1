/* A keeper writes a session into checkpoints and reads it again, on any number of ranks.
 *
 *   keeper.c    saving, and weights for a new run
 *   resume.c    going on where a run stood
 *   tensors.c   parameters and what the optimizer keeps, out and in
 *   state.c     state.json
 *   files.c     the birth of a checkpoint: whole, or not there
 *   remove.c    its end, and that of what crashes leave
 *   find.c      the checkpoint that somebody means, and whether it is whole
 *   claim.c     whose the directory is */
#ifndef TUTTI_CHECKPOINT_KEEPER_H
#define TUTTI_CHECKPOINT_KEEPER_H

#include <tutti/log.h>
#include "checkpoint/files.h"
#include "step/session.h"

typedef struct tutti_keeper tutti_keeper;

/* Borrows all of them; the session must outlive the keeper. */
tutti_status tutti_keeper_create(tutti_keeper **out, tutti_comm *comm, tutti_session *session,
                                 const tutti_log *log) TUTTI_MUST_CHECK;
void tutti_keeper_destroy(tutti_keeper **keeper);

/* Collective. Writes the checkpoint of the session, which is settled, into the directory 'run'.
 * state->step is the session's. */
tutti_status tutti_keeper_save(tutti_keeper *keeper, const char *run, const tutti_state *state,
                               tutti_checkpoint_finish_options options) TUTTI_MUST_CHECK;

/* Collective. Parameters from a file, a checkpoint or a run, of which it takes the best. Tensors
 * that are missing or do not fit are left as they are, with a warning; with 'all' none may. */
tutti_status tutti_keeper_load_weights(tutti_keeper *keeper, const char *where,
                                       bool all) TUTTI_MUST_CHECK;

/* Collective. The checkpoint that 'where' means (tutti_checkpoint_find), the same on all ranks: its
 * path, and its state, the caller's to close; "" and NULL where there is none and none need be. */
tutti_status tutti_resume_find(tutti_comm *comm, const char *where, bool must_exist,
                               char path[TUTTI_PATH_BYTES],
                               tutti_state_file **found) TUTTI_MUST_CHECK;

/* Collective. The session goes on with the checkpoint at 'path', of step 'step'. */
tutti_status tutti_keeper_restore(tutti_keeper *keeper, const char *path,
                                  int64_t step) TUTTI_MUST_CHECK;

#endif
