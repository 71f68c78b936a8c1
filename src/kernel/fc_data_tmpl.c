/* Fully connected layers: the inner loops of backward-data; see fc_tile.h. */
#include "kernel/isa/isa.h"

#include "kernel/fc_tile.h"

/* Fetching. Operands come to the second-level cache a job ahead, to the first some steps ahead: the
 * next job's weights and dy beside this one's, weights two blocks and dy 8 steps before their use.
 * Every step fetches a few lines, never all that a block needs at once: prefetches that wait for
 * memory occupy what loads need to get at the second level, and a burst of them stops multiplying
 * for as long as memory takes, which with other programs on the same memory is what decides. Narrow
 * tiles have time for the next job's weights only. */
enum {
    WIDE = VLEN == 16,
    DY_AHEAD = 8,      /* steps */
    WEIGHTS_AHEAD = 2, /* blocks of 16 steps */
    LEAF_BLOCKS = TUTTI_FC_LEAF / TUTTI_BLOCK,
    TAIL = 4,                /* steps at the end of a leaf, ... */
    PAIR = VLEN > 1 ? 2 : 1, /* ... for so many rows at a time */
    SHORT_BLOCK = TUTTI_BLOCK - TAIL,
};

/* A leaf of a tile, and what becomes of it: the sums that wait are joined to it from the top of the
 * stack down, those of its run and, if it ends the run, those of the tree over runs; then it is put
 * down. Tiles lie on a stack row by row. */
typedef struct leaf_job {
    const float *w, *dy;
    const float *next; /* weights of the leaf after this one */
    size_t w_block, dy_block;
    ptrdiff_t w_ahead, dy_ahead; /* floats from this job's to the next one's; 0: none */
    int output_blocks;
    int joins, far_joins;
    const float *top, *far_top;
    float *to;
    size_t to_row;
} leaf_job;

/* Weights that a block of steps fetches: as many as it multiplies by. */
typedef struct fetched {
    const float *near, *far; /* to the first level, to the second */
} fetched;

INLINE void fetch_weights(const fetched *w, int rows, int k)
{
    const int share = (rows * TUTTI_BLOCK + SHORT_BLOCK - 1) / SHORT_BLOCK; /* floats a step */
    UNROLL(2)
    for (int i = 0; i < share; i += TUTTI_BLOCK) {
        if (WIDE) __builtin_prefetch(w->near + k * share + i, 0, 3);
        if (WIDE || w->far) FETCH(w->far + k * share + i);
    }
}

/* 'steps' of 16 outputs. */
INLINE void data_block(vf *acc, int rows, int blocks, const float *w, const float *dy,
                       const leaf_job *job, const fetched *later, int steps)
{
    const size_t dy_block = job->dy_block;
    const ptrdiff_t dy_ahead = job->dy_ahead;
    for (int k = 0; k < steps; k++) {
        step(acc, rows, blocks, w + k, TUTTI_BLOCK, dy, dy_block);
        UNROLL(4)
        for (int b = 0; b < blocks * WIDE; b++)
            __builtin_prefetch(dy + b * dy_block + DY_AHEAD * TUTTI_BLOCK, 0, 3);
        if (WIDE) FETCH(dy + dy_ahead);
        fetch_weights(later, rows, k);
        dy += TUTTI_BLOCK;
    }
}

/* What data_block fetches of dy, for steps 'k' and 'k' + 1 of the tail. */
INLINE void fetch_tail(const float *const *column, int blocks, ptrdiff_t dy_ahead, int k)
{
    UNROLL(2)
    for (int i = k; i < k + 2; i++) {
        UNROLL(4)
        for (int b = 0; b < blocks; b++)
            __builtin_prefetch(column[b] + (DY_AHEAD + i) * TUTTI_BLOCK, 0, 3);
        FETCH(column[0] + dy_ahead + i * TUTTI_BLOCK);
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
            IN_REGISTER(at[v]);
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

/* The last steps of a leaf, two rows after the other, so that sums are joined and stored while the
 * next rows still multiply. A burst of stores holds multiplying up: the 24 of a tile for 32 cycles
 * (Zen 4), one after every four multiply-adds not at all. 'joins' is the job's, known to the
 * compiler, or negative: then those over runs may follow. */
INLINE void data_tail(vf *acc, int rows, int blocks, const float *w, const float *dy, int joins,
                      const leaf_job *job)
{
    const int count = blocks * VECS, near_joins = job->joins, far_joins = job->far_joins;
    const size_t row = (size_t)blocks * TUTTI_BLOCK, slot = rows * row;
    const size_t to_row = joins < 0 ? job->to_row : row;
    const float *top = job->top, *far_top = job->far_top, *column[DATA_BLOCKS];
    float *to = job->to;
    UNROLL(4)
    for (int b = 0; b < blocks; b++) {
        column[b] = dy + b * job->dy_block;
        FORGET(column[b]);
    }
    UNROLL(28)
    for (int r = 0; r < rows; r += PAIR) {
        vf *sums = acc + r * count;
        tail_steps(sums, blocks, w + r * TUTTI_BLOCK, column);
        if (WIDE && r < TAIL) fetch_tail(column, blocks, job->dy_ahead, r);
        UNROLL(2)
        for (int j = 0; j < (joins < 0 ? 0 : joins); j++)
            add_from(sums, PAIR * count, top + r * row - j * slot);
        for (int j = 0; j < (joins < 0 ? near_joins : 0); j++)
            add_from(sums, PAIR * count, top + r * row - j * slot);
        for (int j = 0; j < (joins < 0 ? far_joins : 0); j++)
            add_from(sums, PAIR * count, far_top + r * row - j * slot);
        UNROLL(16)
        for (int v = 0; v < PAIR * count; v++)
            vf_store(to + (r + v / count) * to_row + v % count * VLEN, sums[v]);
        FORGET(column[0]);
    }
}

/* What to fetch beside the block at 'w', 'left' blocks before the leaf's end. */
INLINE fetched fetched_beside(const leaf_job *job, const float *w, int left)
{
    return (fetched){.near = left > WEIGHTS_AHEAD
                                 ? w + WEIGHTS_AHEAD * job->w_block
                                 : job->next + (WEIGHTS_AHEAD - left) * job->w_block,
                     .far = WIDE || job->w_ahead ? w + job->w_ahead : NULL};
}

INLINE void data_leaf(int rows, int blocks, int joins, const leaf_job *job)
{
    vf acc[TILE];
    const size_t w_block = job->w_block;
    const float *w = job->w, *dy = job->dy;
    zero(acc, rows * blocks * VECS);
    for (int left = job->output_blocks;; left--) {
        const fetched later = fetched_beside(job, w, left);
        if (left == 1) {
            data_block(acc, rows, blocks, w, dy, job, &later, SHORT_BLOCK);
            break;
        }
        data_block(acc, rows, blocks, w, dy, job, &later, TUTTI_BLOCK);
        w += w_block;
        dy += TUTTI_BLOCK * TUTTI_BLOCK;
    }
    data_tail(acc, rows, blocks, w + SHORT_BLOCK, dy + SHORT_BLOCK * TUTTI_BLOCK, joins, job);
}

/* A leaf of a wide tile is a function of its own, for the compiler runs out of registers for
 * addresses when all are inlined; and one for each number of joins, for the processor does not
 * foresee the end of loops that short. A narrow one is too little work for a call. */
typedef void leaf_fn(const leaf_job *job);
typedef struct leaf_fns {
    leaf_fn *joined[3], *any;
} leaf_fns;

INLINE void do_leaf(int rows, int blocks, int joins, const leaf_job *job, const leaf_fns *fns)
{
    if (!fns) data_leaf(rows, blocks, -1, job);
    else (joins >= 0 && joins < 3 ? fns->joined[joins] : fns->any)(job);
}

/* How far ahead a tile fetches: weights of the same rows, and one block of samples of dy. */
INLINE ptrdiff_t weights_ahead(const tutti_fc_data_job *job)
{
    return job->next_w ? job->next_w - job->w : 0;
}

INLINE ptrdiff_t dy_ahead(const tutti_fc_data_job *job, int tile, int blocks)
{
    if (!job->next_dy || tile >= blocks) return 0;
    return job->next_dy - job->dy + tile * (ptrdiff_t)job->dy_block;
}

/* A leaf that others of the run follow. */
INLINE void inner_leaf(const tutti_fc_data_job *job, int input, int rows, int blocks, int leaf,
                       const leaf_fns *fns)
{
    const size_t row = (size_t)blocks * TUTTI_BLOCK, slot = rows * row;
    const int depth = __builtin_popcount((unsigned)leaf), joins = tutti_tree_joins(leaf);
    const float *w = job->w + leaf * LEAF_BLOCKS * job->w_block + (size_t)input * TUTTI_BLOCK;
    const leaf_job part = {.w = w,
                           .dy = job->dy + (size_t)leaf * TUTTI_FC_LEAF * TUTTI_BLOCK,
                           .next = w + LEAF_BLOCKS * job->w_block,
                           .w_block = job->w_block,
                           .dy_block = job->dy_block,
                           .w_ahead = weights_ahead(job),
                           .dy_ahead = dy_ahead(job, input / rows, blocks),
                           .output_blocks = LEAF_BLOCKS,
                           .joins = joins,
                           .top = job->near + (depth ? depth - 1 : 0) * slot,
                           .to = job->near + (depth - joins) * slot,
                           .to_row = row};
    do_leaf(rows, blocks, joins, &part, fns);
}

/* The run's last one, with its place in the tree over runs. */
INLINE void last_leaf(const tutti_fc_data_job *job, int input, int rows, int blocks, int leaf,
                      const leaf_fns *fns)
{
    const size_t row = (size_t)blocks * TUTTI_BLOCK, slot = rows * row;
    const bool last = job->run + 1 == job->runs;
    const int depth = __builtin_popcount((unsigned)leaf);
    const int far_depth = __builtin_popcount((unsigned)job->run);
    const int far_joins = last ? far_depth : tutti_tree_joins(job->run);
    const float *w = job->w + (size_t)input * TUTTI_BLOCK;
    float *far = job->far + input * row * job->levels;
    const leaf_job part = {
        .w = w + leaf * LEAF_BLOCKS * job->w_block,
        .dy = job->dy + (size_t)leaf * TUTTI_FC_LEAF * TUTTI_BLOCK,
        .next = w + rows * TUTTI_BLOCK,
        .w_block = job->w_block,
        .dy_block = job->dy_block,
        .w_ahead = weights_ahead(job),
        .dy_ahead = dy_ahead(job, input / rows, blocks),
        .output_blocks = job->output_blocks - leaf * LEAF_BLOCKS,
        .joins = depth,
        .far_joins = far_joins,
        .top = job->near + (depth ? depth - 1 : 0) * slot,
        .far_top = far + (far_depth ? far_depth - 1 : 0) * slot,
        .to = last ? job->dx + input * job->dx_row : far + (far_depth - far_joins) * slot,
        .to_row = last ? job->dx_row : row,
    };
    do_leaf(rows, blocks, -1, &part, fns);
}

/* One run for one tile. */
INLINE void data_tile(const tutti_fc_data_job *job, int input, int rows, int blocks,
                      const leaf_fns *fns)
{
    const int last = (job->output_blocks - 1) / LEAF_BLOCKS;
    for (int leaf = 0; leaf < last; leaf++) inner_leaf(job, input, rows, blocks, leaf, fns);
    last_leaf(job, input, rows, blocks, last, fns);
}

#define LEAF(rows, blocks, joins, name)                                                        \
    static __attribute__((noinline)) void leaf_##rows##x##blocks##_##name(const leaf_job *job) \
    {                                                                                          \
        data_leaf(rows, blocks, joins, job);                                                   \
    }
#define WIDE_TILE(rows, blocks)                                                                   \
    LEAF(rows, blocks, 0, 0)                                                                      \
    LEAF(rows, blocks, 1, 1)                                                                      \
    LEAF(rows, blocks, 2, 2)                                                                      \
    LEAF(rows, blocks, -1, any)                                                                   \
    static void tile_##rows##x##blocks(const tutti_fc_data_job *job, int input)                   \
    {                                                                                             \
        static const leaf_fns fns = {                                                             \
            {leaf_##rows##x##blocks##_0, leaf_##rows##x##blocks##_1, leaf_##rows##x##blocks##_2}, \
            leaf_##rows##x##blocks##_any};                                                        \
        data_tile(job, input, rows, blocks, &fns);                                                \
    }
#define NARROW_TILE(rows, blocks)                                               \
    static void tile_##rows##x##blocks(const tutti_fc_data_job *job, int input) \
    {                                                                           \
        data_tile(job, input, rows, blocks, NULL);                              \
    }

/* The narrower the panel, the more rows fit in the registers. */
#if VLEN == 16
WIDE_TILE(24, 1)
WIDE_TILE(8, 1)
WIDE_TILE(12, 2)
WIDE_TILE(4, 2)
WIDE_TILE(8, 3)
WIDE_TILE(6, 4)
WIDE_TILE(2, 4)
#elif VLEN == 8
NARROW_TILE(6, 1)
NARROW_TILE(2, 1)
#else
NARROW_TILE(1, 1)
#endif

void NAME(fc_data)(const tutti_fc_data_job *job)
{
    const int rows = job->inputs;
    int i = 0;
#if VLEN == 16
    switch (job->blocks) {
    case 1:
        for (; i + 24 <= rows; i += 24) tile_24x1(job, i);
        for (; i < rows; i += 8) tile_8x1(job, i);
        break;
    case 2:
        for (; i + 12 <= rows; i += 12) tile_12x2(job, i);
        for (; i < rows; i += 4) tile_4x2(job, i);
        break;
    case 3:
        for (; i < rows; i += 8) tile_8x3(job, i);
        break;
    default:
        for (; i + 6 <= rows; i += 6) tile_6x4(job, i);
        for (; i < rows; i += 2) tile_2x4(job, i);
    }
#elif VLEN == 8
    for (; i + 6 <= rows; i += 6) tile_6x1(job, i);
    for (; i < rows; i += 2) tile_2x1(job, i);
#else
    for (; i < rows; i++) tile_1x1(job, i);
#endif
}
