/* A rank: one of 'size' processes that work together, with its kernels, its threads and what each
 * thread has of the caches. Whoever computes opens it here, so that training, calibration, the
 * doctor and benchmarks take the same paths. */
#ifndef TUTTI_STEP_RANK_H
#define TUTTI_STEP_RANK_H

#include "base/topology.h"
#include "comm/comm.h"
#include "format/trace.h"
#include "kernel/caches.h"
#include "kernel/exec.h"

typedef struct tutti_rank {
    tutti_comm *comm;
    int rank, size;
    tutti_topology *topology; /* as it was before threads were pinned */
    tutti_exec exec;
    tutti_caches caches; /* a thread's share */
} tutti_rank;

/* Collective. Without a number of threads in the options OMP_NUM_THREADS decides, else there is one
 * for each core of this rank that the communication thread does not take. On failure nothing stays
 * open. */
tutti_status tutti_rank_open(tutti_rank *out, const tutti_comm_options *options) TUTTI_MUST_CHECK;

/* Collective. Writes what the ranks recorded into one file, by one clock; 'begun' is its time 0, by
 * rank 0's. */
tutti_status tutti_rank_write_trace(const tutti_rank *rank, const tutti_trace *trace,
                                    const char *path, double begun) TUTTI_MUST_CHECK;

/* Collective. Closing what was never opened (all zero) is fine; leaves it so. */
void tutti_rank_close(tutti_rank *rank);

#endif
