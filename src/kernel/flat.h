/* Running an elementwise kernel over an array with a team. */
#ifndef TUTTI_KERNEL_FLAT_H
#define TUTTI_KERNEL_FLAT_H

#include "kernel/ops_kernels.h"

/* Applies the kernel to elements 0 .. count-1, any count. */
void tutti_flat_run(tutti_team *team, tutti_flat_fn *kernel, const tutti_flat *flat, size_t count);

#endif
