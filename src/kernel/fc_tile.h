/* Fully connected layers: what the inner loops share. Included by kernel bodies after isa.h.
 *
 * All three passes are one idea. A register tile is 'rows' scalars by 'blocks' blocks of 16
 * columns; a step of the chain loads the columns' vectors, broadcasts one scalar per row and does
 * rows x blocks fused multiply-adds. What differs is where the scalars come from and what happens
 * at the end of a chain:
 *
 *   pass      rows     columns  chain          at its end
 *   forward   samples  outputs  inputs         bias, ReLU
 *   data      inputs   samples  64 outputs     joined by the tree over outputs
 *   weights   inputs   outputs  one grain      joined by the tree over grains
 *
 * Weights [o/16][i][16] serve forward as columns and data as scalars, so nobody transposes them.
 *
 * The tree is a binary counter: what waits for its right neighbour is on a stack of register tiles
 * in cache; a finished chain is joined with the top of the stack while it is still in registers. */
#ifndef TUTTI_FC_TILE_H
#define TUTTI_FC_TILE_H

#include "base/tree.h"
#include "kernel/fc.h"
#include "kernel/fc_kernels.h"

enum { VECS = TUTTI_BLOCK / VLEN }; /* vectors in a block */

/* The most blocks and rows of the row's tiles: a union is as large as its largest member. */
#define BLOCKS_OF(blocks, ...) char blocks_##blocks[blocks];
#define ROWS_OF(blocks, rows)  char rows_##blocks[rows];
enum {
    FORWARD_BLOCKS = sizeof(union {FC_FORWARD_TILES(BLOCKS_OF)}),
    FORWARD_ROWS = sizeof(union {FC_FORWARD_TILES(ROWS_OF)}),
    WEIGHTS_BLOCKS = sizeof(union {FC_WEIGHTS_TILES(BLOCKS_OF)}),
    DATA_BLOCKS = sizeof(union {FC_DATA_TILES(BLOCKS_OF)}),
    TILE = 28 * VECS, /* the most vectors of any */
};

/* acc[row][column vector] += a[row] b[column]; or, for the first step, the product in place of a
 * sum that starts at +0: one instruction and no register to clear. */
INLINE void multiply(vf *acc, int rows, int blocks, const float *a, size_t a_row, const float *b,
                     size_t b_block, bool first)
{
    vf column[DATA_BLOCKS * VECS];
    UNROLL(16)
    for (int v = 0; v < blocks * VECS; v++)
        column[v] = vf_load(b + (v / VECS) * b_block + (v % VECS) * VLEN);
    UNROLL(28)
    for (int r = 0; r < rows; r++) {
        const vf scalar = vf_set1(a[r * a_row]);
        UNROLL(16)
        for (int v = 0; v < blocks * VECS; v++) {
            vf *sum = &acc[r * blocks * VECS + v];
            *sum = first ? vf_mul(scalar, column[v]) : vf_fma(scalar, column[v], *sum);
        }
    }
}

INLINE void step(vf *acc, int rows, int blocks, const float *a, size_t a_row, const float *b,
                 size_t b_block)
{
    multiply(acc, rows, blocks, a, a_row, b, b_block, false);
}

/* acc[row][column vector] += a[row][k] b[k][column], k = 0 .. count-1 in order. */
INLINE void chain(vf *acc, int rows, int blocks, int count, const float *a, size_t a_row,
                  size_t a_step, const float *b, size_t b_block)
{
    for (int k = 0; k < count; k++) {
        step(acc, rows, blocks, a, a_row, b, b_block);
        a += a_step;
        b += TUTTI_BLOCK;
    }
}

INLINE void zero(vf *acc, int count)
{
    UNROLL(32)
    for (int i = 0; i < count; i++) acc[i] = vf_zero();
}

/* Brings a cache line to the second level. */
#define FETCH(address) __builtin_prefetch(address, 0, 2)

/* ---- the tree ---- */

INLINE void add_from(vf *acc, int count, const float *stack)
{
    UNROLL(32)
    for (int i = 0; i < count; i++) acc[i] = vf_add(vf_load(stack + i * VLEN), acc[i]);
}

INLINE void load_from(vf *acc, int count, const float *stack)
{
    UNROLL(32)
    for (int i = 0; i < count; i++) acc[i] = vf_load(stack + i * VLEN);
}

INLINE void store_to(float *stack, int count, const vf *acc)
{
    UNROLL(32)
    for (int i = 0; i < count; i++) vf_store(stack + i * VLEN, acc[i]);
}

/* Joins a finished leaf with what waits for it. Leaves the sum in acc when it was the last one,
 * else on the stack. */
INLINE void join_leaf(vf *acc, int count, int leaf, int leaves, float *stack)
{
    int depth = __builtin_popcount((unsigned)leaf);
    const bool last = leaf + 1 == leaves;
    for (int joins = last ? depth : tutti_tree_joins(leaf); joins; joins--)
        add_from(acc, count, stack + --depth * count * VLEN);
    if (!last) store_to(stack + depth * count * VLEN, count, acc);
}

void NAME(fc_data)(const tutti_fc_data_job *job);
extern const tutti_fc_few NAME(fc_few);

#endif
