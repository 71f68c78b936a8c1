/* What the three passes of fully connected layers share: fc.c, fc_data.c, fc_weights.c. */
#ifndef TUTTI_KERNEL_FC_PARTS_H
#define TUTTI_KERNEL_FC_PARTS_H

#include "base/memory.h"
#include "base/tree.h"
#include "kernel/fc.h"
#include "kernel/fc_kernels.h"

struct tutti_fc {
    int in, out; /* rounded up to 16 */
    int features;
    tutti_precision precision;
    int threads;
    const tutti_fc_kernels *kernels;
    tutti_caches caches;
};

enum {
    TUTTI_FC_SAMPLES = 128, /* that backward-data holds in cache at a time */
    TUTTI_FC_NEAR_STACK = TUTTI_TREE_LEVELS * TUTTI_FC_NEAR, /* floats, per thread */
};

static inline int tutti_fc_blocks(int count)
{
    return tutti_ceil_div(count, TUTTI_BLOCK);
}

static inline int tutti_fc_filled(int count)
{
    return tutti_fc_blocks(count) * TUTTI_BLOCK;
}

static inline int tutti_fc_least(int a, int b)
{
    return a < b ? a : b;
}

static inline float *tutti_fc_take(tutti_arena *arena, size_t floats)
{
    return tutti_arena_take(arena, floats * sizeof(float));
}

/* Whether 'count' floats leave the caches of all threads before they are used again. */
static inline bool tutti_fc_beyond_caches(const tutti_fc *fc, size_t count)
{
    return count * sizeof(float) > fc->caches.l3 * (size_t)fc->threads;
}

/* Bytes of scratch of the passes that need some. */
size_t tutti_fc_data_scratch(const tutti_fc *fc, int n);
size_t tutti_fc_weights_scratch(const tutti_fc *fc, int n);

/* A rectangle of the output: pieces a .. a_end-1 by b .. b_end-1. */
typedef struct tutti_fc_part {
    int a, a_end, b, b_end;
} tutti_fc_part;

/* The part of thread 'thread' of 'threads' of an output of a x b pieces: the grid of parts whose
 * largest part is smallest, cut along a rather than b. */
tutti_fc_part tutti_fc_part_of(int a, int b, int thread, int threads);

#endif
