/* Fully connected layers: the inner loops of backward-data; see fc_tile.h. */
#include "kernel/isa/isa.h"

#include "kernel/fc_tile.h"

/* A job is one leaf of the tree for many inputs: the leaf's dy stays in the first-level cache while
 * tile after tile of inputs passes by, and what waits for a leaf is on a stack of such jobs'
 * results in the second level. So of a tile's operands only its few weights and the sums it joins
 * come from outside the first level.
 *
 * Fetching. Both come to the first level a tile ahead, and the next job's weights and dy to the
 * second. Every step fetches a few lines, never all that a tile needs at once: prefetches that wait
 * for memory occupy what loads need to get at the second level, and a burst of them stops
 * multiplying for as long as memory takes, which matters most when other programs use the same
 * memory. Narrow tiles have time for the next job's weights only. */
enum {
    WIDE = FC_DATA_FETCHES,
    TAIL = 4,            /* steps at the end of a leaf, ... */
    PAIR = FC_TAIL_ROWS, /* ... for this many rows at a time */
    SHORT_BLOCK = TUTTI_BLOCK - TAIL,
};

/* What the steps of a block fetch, each a share of it: to the first level weights of the next tile
 * and sums that it will join or replace, to the second weights and dy of the next job. Distances
 * count from this tile's own; 0 fetches what is there already. */
typedef struct fetched {
    ptrdiff_t near_w, far_w, far_dy;
    const float *sums;
} fetched;

/* Lines of 'rows' x 'blocks' that each of a block's steps fetches. */
INLINE int share_of(int rows, int blocks)
{
    return (rows * blocks + SHORT_BLOCK - 1) / SHORT_BLOCK;
}

INLINE void fetch(const fetched *ahead, int rows, int blocks, const float *w, int k)
{
    const int weights = share_of(rows, 1), sums = share_of(rows, blocks);
    UNROLL(2)
    for (int i = 0; i < weights; i++) {
        const float *line = w + (k * weights + i) * TUTTI_BLOCK;
        if (WIDE) __builtin_prefetch(line + ahead->near_w, 0, 3);
        if (WIDE || ahead->far_w) FETCH(line + ahead->far_w);
    }
    UNROLL(2)
    for (int i = 0; i < sums * WIDE; i++)
        __builtin_prefetch(ahead->sums + (k * sums + i) * TUTTI_BLOCK, 1, 3);
}

/* 'steps' of 16 outputs. */
INLINE void data_block(vf *acc, int rows, int blocks, const float *w, const float *dy,
                       size_t dy_block, const fetched *ahead, int steps)
{
    const fetched later = *ahead;
    for (int k = 0; k < steps; k++) {
        step(acc, rows, blocks, w + k, TUTTI_BLOCK, dy, dy_block);
        if (WIDE) FETCH(dy + later.far_dy);
        fetch(&later, rows, blocks, w, k);
        dy += TUTTI_BLOCK;
    }
}

/* TAIL steps of PAIR rows; 'column' is where each block's dy lies. */
INLINE void tail_steps(vf *sums, int blocks, const float *w, const float *const *column)
{
    const int count = blocks * VECS;
    UNROLL(4)
    for (int k = 0; k < TAIL; k++) {
        vf at[DATA_BLOCKS * VECS];
        UNROLL(16)
        for (int v = 0; v < count; v++) {
            at[v] = vf_load(column[v / VECS] + k * TUTTI_BLOCK + v % VECS * VLEN);
            HOLD(at[v]);
        }
        UNROLL(2)
        for (int r = 0; r < PAIR; r++) {
            const vf scalar = vf_set1(w[r * TUTTI_BLOCK + k]);
            UNROLL(16)
            for (int v = 0; v < count; v++)
                sums[r * count + v] = vf_fma(scalar, at[v], sums[r * count + v]);
        }
    }
}

/* The last steps of a leaf, two rows at a time, so that sums are joined and stored while the next
 * rows still multiply. A burst of stores holds up multiplying: the 24 of a tile for 32 cycles
 * (Zen 4); one store after every four multiply-adds does not hold it up at all. */
INLINE void data_tail(vf *acc, int rows, int blocks, const float *w, const float *dy,
                      const tutti_fc_data_job *job, size_t at)
{
    const int count = blocks * VECS, joins = job->joins;
    const size_t row = (size_t)blocks * TUTTI_BLOCK, level = job->level;
    const float *column[DATA_BLOCKS];
    float *to = job->to + at;
    UNROLL(4)
    for (int b = 0; b < blocks; b++) {
        column[b] = dy + b * job->dy_block;
        FORGET(column[b]);
    }
    UNROLL(28)
    for (int r = 0; r < rows; r += PAIR) {
        vf *sums = acc + r * count;
        tail_steps(sums, blocks, w + r * TUTTI_BLOCK, column);
        const float *waiting = to + r * row + joins * level;
        for (int j = 0; j < joins; j++) add_from(sums, PAIR * count, waiting -= level);
        store_to(to + r * row, PAIR * count, sums);
        FORGET(column[0]);
    }
}

/* A tile of inputs from 'input' on. */
INLINE void data_tile(const tutti_fc_data_job *job, int input, int rows, int blocks)
{
    vf acc[TILE];
    const size_t w_block = job->w_block, dy_block = job->dy_block;
    const size_t row = (size_t)blocks * TUTTI_BLOCK, at = input * row;
    const float *w = job->w + (size_t)input * TUTTI_BLOCK, *dy = job->dy;
    const int tile = input / rows;
    const bool last = input + rows >= job->inputs;
    fetched ahead = {
        .near_w = last ? job->next_w - w : rows * TUTTI_BLOCK,
        .far_w = job->next_w - job->w,
        .far_dy = tile < blocks ? job->next_dy - dy + tile * (ptrdiff_t)dy_block : 0,
        .sums = job->to + at + rows * row,
    };
    zero(acc, rows * blocks * VECS);
    for (int left = job->output_blocks;; left--) {
        if (left == 1) {
            data_block(acc, rows, blocks, w, dy, dy_block, &ahead, SHORT_BLOCK);
            break;
        }
        data_block(acc, rows, blocks, w, dy, dy_block, &ahead, TUTTI_BLOCK);
        w += w_block;
        dy += TUTTI_BLOCK * TUTTI_BLOCK;
        if (job->output_blocks - left + 1 < job->joins) ahead.sums += job->level;
    }
    data_tail(acc, rows, blocks, w + SHORT_BLOCK, dy + SHORT_BLOCK * TUTTI_BLOCK, job, at);
}

/* Each shape is a function of its own, because the compiler runs out of registers for addresses
 * when all are inlined. The narrower the panel, the more rows fit in the registers. */
#define TILES(name, rows, blocks)                                                               \
    static __attribute__((noinline)) int name(const tutti_fc_data_job *job, int input)          \
    {                                                                                           \
        for (; input + rows <= job->inputs; input += rows) data_tile(job, input, rows, blocks); \
        return input;                                                                           \
    }
#define BOTH(blocks, large, small)          \
    TILES(large_of_##blocks, large, blocks) \
    TILES(small_of_##blocks, small, blocks)
FC_DATA_TILES(BOTH)

void NAME(fc_data)(const tutti_fc_data_job *job)
{
    int input = 0;
#define PANEL(blocks, large, small)                               \
    case blocks:                                                  \
        input = large_of_##blocks(job, input);                    \
        if (small < large) input = small_of_##blocks(job, input); \
        break;
    switch (job->blocks) {
        FC_DATA_TILES(PANEL)
    }
#undef PANEL
}
