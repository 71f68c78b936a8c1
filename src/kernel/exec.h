/* Who computes, and how much: what the drivers of kernels have in common. */
#ifndef TUTTI_KERNEL_EXEC_H
#define TUTTI_KERNEL_EXEC_H

#include <stddef.h>

#include "base/team.h"
#include "kernel/table.h"

/* The kernels of an instruction set and the team that runs them; both are borrowed. */
typedef struct tutti_exec {
    const tutti_kernels *row;
    tutti_team *team; /* NULL: the caller alone */
} tutti_exec;

/* Activations [n][c/16][pixels][16]; those of a fully connected layer have one pixel. */
typedef struct tutti_extent {
    int n, c, pixels;
} tutti_extent;

/* Blocks of 16 that 'c' channels take, the last one filled up. */
static inline size_t tutti_channel_blocks(int c)
{
    return ((size_t)c + TUTTI_BLOCK - 1) / TUTTI_BLOCK;
}

/* Floats of one channel block of one sample, of a sample, and of all. */
static inline size_t tutti_extent_plane(tutti_extent extent)
{
    return (size_t)extent.pixels * TUTTI_BLOCK;
}

static inline size_t tutti_extent_sample(tutti_extent extent)
{
    return tutti_channel_blocks(extent.c) * tutti_extent_plane(extent);
}

static inline size_t tutti_extent_floats(tutti_extent extent)
{
    return (size_t)extent.n * tutti_extent_sample(extent);
}

#endif
