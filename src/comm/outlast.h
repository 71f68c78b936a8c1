/* Waiting for MPI to begin and to end, which it does on no rank before it has on all. */
#ifndef TUTTI_COMM_OUTLAST_H
#define TUTTI_COMM_OUTLAST_H

#include "comm/exchange.h"

/* Returns when *word is no longer 0; the communication thread rings the bell 'finished' then. Warns
 * after --stall-warn seconds that this process waits in 'call'; after --stall-abort seconds says so
 * and ends the process with the exit code of TUTTI_STALL: MPI itself can no longer be asked to,
 * but the launcher then ends the job. */
void tutti_outlast(tutti_comm *comm, const atomic_uint *word, const char *call);

#endif
