/* Ranks: processes that work together, opened once and used by any number of sessions, trainings
 * and parts (part.h), one after another or side by side.
 *
 *     tutti_ranks *ranks = NULL;
 *     tutti_ranks_options o = tutti_ranks_defaults();
 *     if (tutti_ranks_open(&ranks, &o) != TUTTI_OK) fprintf(stderr, "%s\n", tutti_message());
 *     ...
 *     tutti_ranks_close(&ranks);
 *
 * Without a launcher there is one rank, and nothing calls MPI. Under mpirun or srun they are all
 * processes of the job, and Tutti starts and ends MPI. A program that has an MPI communicator of
 * its own hands it over instead: see mpi.h, the only header that needs MPI.
 *
 * "Collective." means: every rank makes the call, in the same order as the other collective calls.
 * A rank's handles belong to the thread that opened its ranks: no other may use them. That thread
 * and its helpers (OpenMP's) are pinned to cores while ranks are open, unless the environment binds
 * them already (OMP_PROC_BIND), and unpinned afterwards. */
#ifndef TUTTI_RANKS_H
#define TUTTI_RANKS_H

#include <stdbool.h>
#include <stddef.h>

#include <tutti/log.h>
#include <tutti/status.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tutti_ranks tutti_ranks;

typedef struct tutti_ranks_options {
    int threads;   /* of this rank; 0: OMP_NUM_THREADS, else one per core */
    int comm_core; /* core of the communication thread; -1: auto, -2: not pinned */
    /* true: no thread of Tutti's calls MPI, only the caller's does, inside calls that wait. Then
     * MPI needs no MPI_THREAD_MULTIPLE, and less communication is hidden behind computing. */
    bool no_thread;
    double stall_warn,
        stall_abort;      /* seconds until a rank that does not arrive is named, and until */
                          /* the job ends because of it; 0: never */
    tutti_log log;        /* what it has to say about stalls; a copy is kept */
    const void *mpi_comm; /* see mpi.h; NULL: the job, or one rank */
    size_t mpi_comm_bytes;
} tutti_ranks_options;

TUTTI_API tutti_ranks_options tutti_ranks_defaults(void);

/* Collective. Gives *out to the caller, who gives it to tutti_ranks_close. TUTTI_MISMATCH names the
 * ranks that run another version of the library. On failure *out is NULL. */
TUTTI_API tutti_status tutti_ranks_open(tutti_ranks **out,
                                        const tutti_ranks_options *options) TUTTI_MUST_CHECK;

/* Collective. After everything that was created on them is destroyed. MPI ends here if Tutti has
 * started it. NULL inside is fine; leaves NULL. */
TUTTI_API void tutti_ranks_close(tutti_ranks **ranks);

TUTTI_API int tutti_ranks_rank(const tutti_ranks *ranks); /* this one, from 0 */
TUTTI_API int tutti_ranks_size(const tutti_ranks *ranks);
TUTTI_API int tutti_ranks_threads(const tutti_ranks *ranks); /* this one computes with */

/* Collective. Makes a failure of one everybody's: a rank that was fine gets TUTTI_PEER and the
 * sentence of the lowest rank that failed. Call it where one rank may fail alone (a file that is
 * missing), before the next collective call, or the others wait there until the stall limit. */
TUTTI_API tutti_status tutti_ranks_agree(tutti_ranks *ranks, tutti_status mine) TUTTI_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
