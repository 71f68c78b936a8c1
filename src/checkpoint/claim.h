/* A directory belongs to one run, and a run to one process at a time.
 *
 * RUN/lock is locked (fcntl's lock, which NFS carries and which ends with its owner, however that
 * ends) by the process that writes into the run: rank 0's. Its text, host, pid and since when, is
 * for the sentence that others get and decides nothing. It is removed when the run ends.
 *
 *   claim.c   the lock; what a directory holds; moving that out of the way
 *   beat.c    where the file system has no locks: a file that its owner keeps young */
#ifndef TUTTI_CHECKPOINT_CLAIM_H
#define TUTTI_CHECKPOINT_CLAIM_H

#include <stdbool.h>

#include <tutti/log.h>
#include "checkpoint/files.h"

typedef struct tutti_claim tutti_claim;

/* Claims the directory 'run', which is made if it is missing. TUTTI_IN_USE names who has it.
 * Borrows the log. */
tutti_status tutti_claim_open(tutti_claim **out, const char *run,
                              const tutti_log *log) TUTTI_MUST_CHECK;

/* Gives it back, and removes it again if the claim made it and it is empty. */
void tutti_claim_close(tutti_claim **claim);

/* TUTTI_IN_USE if another process took the run meanwhile, which cannot happen where there are
 * locks. Cheap. NULL is fine. */
tutti_status tutti_claim_check(const tutti_claim *claim) TUTTI_MUST_CHECK;

/* Is there a process that holds the run in this directory? Takes nothing and writes nothing. Where
 * there are no locks the age of the file tells, by this machine's clock. */
bool tutti_claim_is_held(const char *run);

/* Are there checkpoints, metrics or a state? Foreign files are no run. */
bool tutti_claim_holds_run(const tutti_claim *claim);

/* Is 'where' the claimed directory or one of its checkpoints? */
bool tutti_claim_has(const tutti_claim *claim, const char *where);

/* Where tutti_claim_clear would move the directory: RUN.old, or RUN.old.2 and so on if that is
 * there. */
tutti_status tutti_claim_old_name(char out[TUTTI_PATH_BYTES],
                                  const tutti_claim *claim) TUTTI_MUST_CHECK;

/* Moves all that is there out of the way, by one rename, and claims an empty directory in its
 * place. */
tutti_status tutti_claim_clear(tutti_claim *claim) TUTTI_MUST_CHECK;

#endif
