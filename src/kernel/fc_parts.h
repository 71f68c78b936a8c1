/* What the three passes of fully connected layers share: fc.c, fc_data.c, fc_weights.c. */
#ifndef TUTTI_KERNEL_FC_PARTS_H
#define TUTTI_KERNEL_FC_PARTS_H

#include "base/memory.h"
#include "base/tree.h"
#include "kernel/bf16_kernels.h"
#include "kernel/fc.h"
#include "kernel/fc_kernels.h"

struct tutti_fc {
    int in, out; /* rounded up to 16 */
    int features;
    tutti_precision precision;
    int threads;
    const tutti_fc_kernels *kernels;
    const tutti_bf16_kernels *bf16;
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

/* A leaf's place on the stack: how many sums wait below it, and how many of them it joins. */
typedef struct tutti_fc_place {
    int depth, joins;
} tutti_fc_place;

static inline tutti_fc_place tutti_fc_place_of(int leaf, int leaves)
{
    const int depth = __builtin_popcount((unsigned)leaf);
    return (tutti_fc_place){depth, leaf + 1 == leaves ? depth : tutti_tree_joins(leaf)};
}

/* Bytes of scratch of the passes that need some. */
size_t tutti_fc_data_scratch(const tutti_fc *fc, int n);
size_t tutti_fc_weights_scratch(const tutti_fc *fc, int n);

/* The passes of layers that round to bf16; see fc_bf16.c. */
size_t tutti_fc_bf16_scratch(const tutti_fc *fc, int n);
size_t tutti_fc_bf16_data_scratch(const tutti_fc *fc, int n);
size_t tutti_fc_bf16_weights_scratch(const tutti_fc *fc, int n);
void tutti_fc_bf16_forward(const tutti_fc *fc, const tutti_task *task, const float *x,
                           const float *w, const float *bias, bool relu, float *y);
void tutti_fc_bf16_backward_weights(const tutti_fc *fc, const tutti_task *task, const float *x,
                                    const float *dy, float *dw, float *db);

/* dx from 'outputs' outputs (a multiple of 16, > 0): rows of dy are dy_row floats apart. */
typedef struct tutti_fc_data_call {
    int outputs;
    const float *dy;
    size_t dy_row;
    const float *w, *mask;
    float *dx;
} tutti_fc_data_call;
void tutti_fc_bf16_backward_data(const tutti_fc *fc, const tutti_task *task,
                                 const tutti_fc_data_call *call);

/* Blocks of terms in a sum over 'count' of them, the terms of block k. */
static inline int tutti_fc_bf16_blocks(int count)
{
    return tutti_ceil_div(count, TUTTI_BF16_TERMS);
}

static inline int tutti_fc_bf16_terms(int count, int k)
{
    return tutti_fc_least(count - k * TUTTI_BF16_TERMS, TUTTI_BF16_TERMS);
}

/* A rectangle of the output: pieces a .. a_end-1 by b .. b_end-1. */
typedef struct tutti_fc_part {
    int a, a_end, b, b_end;
} tutti_fc_part;

/* The part of thread 'thread' of 'threads' of an output of a x b pieces: the grid of parts whose
 * largest part is smallest, cut along a rather than b. */
tutti_fc_part tutti_fc_part_of(int a, int b, int thread, int threads);

#endif
