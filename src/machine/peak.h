/* How fast this machine computes and moves memory. */
#ifndef TUTTI_MACHINE_PEAK_H
#define TUTTI_MACHINE_PEAK_H

#include <stdint.h>

#include "step/rank.h"

/* Best speeds seen, 0 where not measured. */
typedef struct tutti_speeds {
    double fma_one, fma_all;   /* GFLOP/s with one thread, with all */
    double bf16_one, bf16_all; /* of products of bf16, likewise */
    double read, write, copy;  /* GB/s with all threads; copying counts both ways */
} tutti_speeds;

/* Spends about 'seconds' on the team. 'memory_free' is the host's. */
tutti_status tutti_speeds_measure(tutti_speeds *speeds, const tutti_rank *me, uint64_t memory_free,
                                  double seconds) TUTTI_MUST_CHECK;

/* The part of its threads' peak that is left for this rank where ranks share cores. */
double tutti_peak_share(const tutti_rank *me);

/* The FMA peak of the team alone, GFLOP/s; on a busy machine at least half of what one thread
 * reaches, for each. */
tutti_status tutti_peak_measure(double *gflops, tutti_exec exec, double seconds) TUTTI_MUST_CHECK;

#endif
