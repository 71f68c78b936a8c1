/* Running an elementwise kernel over an array with a team. */
#ifndef TUTTI_KERNEL_ELEMENTWISE_H
#define TUTTI_KERNEL_ELEMENTWISE_H

#include "kernel/ops_kernels.h"

/* Applies the kernel to elements 0 .. count-1, any count. */
void tutti_elementwise_run(tutti_team *team, tutti_elementwise_fn *kernel,
                           const tutti_elementwise *job, size_t count);

/* A kernel f with f(0) != 0, which heeds 'lanes': what fills up the last block stays zero. */
void tutti_elementwise_channels(tutti_team *team, tutti_elementwise_fn *kernel, tutti_extent extent,
                                const float *x, float *y);

#endif
