/* Fully connected layers: the inner loops.
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
 * The tree is a binary counter: what waits for its right neighbour lies on a stack of register
 * tiles in the first-level cache; a finished chain is joined with the top of the stack while it
 * is still in registers. */
#include "kernel/isa/isa.h"

#include <string.h>

#include "base/tree.h"
#include "kernel/fc.h"
#include "kernel/fc_kernels.h"

enum { VECS = TUTTI_BLOCK / VLEN }; /* vectors in a block */

/* Tiles: as many accumulators as registers allow beside the columns and a scalar. */
#if VLEN == 16
enum { BLOCKS = 3, FORWARD_ROWS = 8, WEIGHTS_ROWS = 8 };
#define BLOCKS_3 1
#elif VLEN == 8
enum { BLOCKS = 1, FORWARD_ROWS = 6, WEIGHTS_ROWS = 6 };
#define BLOCKS_3 0
#else
enum { BLOCKS = 1, FORWARD_ROWS = 2, WEIGHTS_ROWS = 2 };
#define BLOCKS_3 0
#endif
enum { TILE = 28 * VECS };

/* acc[row][column vector] += a[row] b[column] */
INLINE void step(vf *acc, int rows, int blocks, const float *a, size_t a_row, const float *b,
                 size_t b_block)
{
    vf column[BLOCKS * VECS];
    UNROLL(16)
    for (int v = 0; v < blocks * VECS; v++)
        column[v] = vf_load(b + (v / VECS) * b_block + (v % VECS) * VLEN);
    UNROLL(28)
    for (int r = 0; r < rows; r++) {
        const vf scalar = vf_set1(a[r * a_row]);
        UNROLL(16)
        for (int v = 0; v < blocks * VECS; v++)
            acc[r * blocks * VECS + v] = vf_fma(scalar, column[v], acc[r * blocks * VECS + v]);
    }
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

/* The same with the product of the first step in place of a sum that starts at +0: one instruction
 * and no register to clear. */
INLINE void first_step(vf *acc, int rows, int blocks, const float *a, size_t a_row, const float *b,
                       size_t b_block)
{
    vf column[BLOCKS * VECS];
    UNROLL(16)
    for (int v = 0; v < blocks * VECS; v++)
        column[v] = vf_load(b + (v / VECS) * b_block + (v % VECS) * VLEN);
    UNROLL(28)
    for (int r = 0; r < rows; r++) {
        const vf scalar = vf_set1(a[r * a_row]);
        UNROLL(16)
        for (int v = 0; v < blocks * VECS; v++)
            acc[r * blocks * VECS + v] = vf_mul(scalar, column[v]);
    }
}

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

/* ---- forward ---- */

INLINE void forward_start(vf *acc, int rows, int blocks, const float *y, size_t y_row, bool first)
{
    UNROLL(28)
    for (int r = 0; r < rows; r++) {
        UNROLL(16)
        for (int v = 0; v < blocks * VECS; v++)
            acc[r * blocks * VECS + v] = first ? vf_zero() : vf_load(y + r * y_row + v * VLEN);
    }
}

INLINE void forward_end(vf *acc, int rows, int blocks, const tutti_fc_forward_job *job)
{
    if (!job->last) return;
    UNROLL(28)
    for (int r = 0; r < rows; r++) {
        UNROLL(16)
        for (int v = 0; v < blocks * VECS; v++) {
            vf *sum = &acc[r * blocks * VECS + v];
            if (job->bias) *sum = vf_add(*sum, vf_load(job->bias + v * VLEN));
            if (job->relu) *sum = vf_max(vf_zero(), *sum);
        }
    }
}

INLINE void forward_tile(const tutti_fc_forward_job *job, int sample, int rows, int blocks)
{
    vf acc[TILE];
    float *y = job->y + (size_t)sample * job->y_row;
    forward_start(acc, rows, blocks, y, job->y_row, job->first);
    chain(acc, rows, blocks, job->inputs, job->x + (size_t)sample * job->x_row, job->x_row, 1,
          job->w, job->w_block);
    forward_end(acc, rows, blocks, job);
    UNROLL(28)
    for (int r = 0; r < rows; r++) {
        UNROLL(16)
        for (int v = 0; v < blocks * VECS; v++)
            vf_store(y + r * job->y_row + v * VLEN, acc[r * blocks * VECS + v]);
    }
}

typedef void forward_fn(const tutti_fc_forward_job *job, int sample);
#define FORWARD(rows, blocks)                                                          \
    static void forward_##rows##x##blocks(const tutti_fc_forward_job *job, int sample) \
    {                                                                                  \
        forward_tile(job, sample, rows, blocks);                                       \
    }
// clang-format off
#define FORWARD_COLUMN(X, b) X(1, b) X(2, b) X(3, b) X(4, b) X(5, b) X(6, b) X(7, b) X(8, b)
#define FORWARD_PAIR(X, b)   X(1, b) X(2, b)
#define FORWARD_SIX(X, b)    FORWARD_PAIR(X, b) X(3, b) X(4, b) X(5, b) X(6, b)
// clang-format on
#define ENTRY(rows, blocks) [blocks][rows] = forward_##rows##x##blocks,

#if VLEN == 16
FORWARD_COLUMN(FORWARD, 1)
FORWARD_COLUMN(FORWARD, 2)
FORWARD_COLUMN(FORWARD, 3)
static forward_fn *const forward_tiles[BLOCKS + 1][FORWARD_ROWS + 1] = {
    FORWARD_COLUMN(ENTRY, 1) FORWARD_COLUMN(ENTRY, 2) FORWARD_COLUMN(ENTRY, 3)};
#elif VLEN == 8
FORWARD_SIX(FORWARD, 1)
static forward_fn *const forward_tiles[BLOCKS + 1][FORWARD_ROWS + 1] = {FORWARD_SIX(ENTRY, 1)};
#else
FORWARD_PAIR(FORWARD, 1)
static forward_fn *const forward_tiles[BLOCKS + 1][FORWARD_ROWS + 1] = {FORWARD_PAIR(ENTRY, 1)};
#endif

static void forward(const tutti_fc_forward_job *job)
{
    const int tiles = (job->samples + FORWARD_ROWS - 1) / FORWARD_ROWS;
    for (int t = 0; t < tiles; t++) { /* tiles of equal size rather than a small last one */
        const int begin = tutti_share_begin(job->samples, tiles, t);
        const int end = tutti_share_begin(job->samples, tiles, t + 1);
        forward_tiles[job->blocks][end - begin](job, begin);
    }
}

/* ---- backward-data ---- */

INLINE void data_leaf(vf *acc, int rows, int blocks, const tutti_fc_data_job *job, int input,
                      int leaf)
{
    const int per_leaf = TUTTI_FC_LEAF / TUTTI_BLOCK, begin = leaf * per_leaf;
    const int end = begin + per_leaf < job->output_blocks ? begin + per_leaf : job->output_blocks;
    for (int o = begin; o < end; o++)
        chain(acc, rows, blocks, TUTTI_BLOCK,
              job->w + o * job->w_block + (size_t)input * TUTTI_BLOCK, TUTTI_BLOCK, 1,
              job->dy + (size_t)o * TUTTI_BLOCK * TUTTI_BLOCK, job->dy_block);
}

INLINE void data_store(const tutti_fc_data_job *job, int input, int rows, int blocks, const vf *acc)
{
    UNROLL(28)
    for (int r = 0; r < rows; r++) {
        UNROLL(16)
        for (int v = 0; v < blocks * VECS; v++)
            vf_store(job->dx + (size_t)(input + r) * job->dx_row + v * VLEN,
                     acc[r * blocks * VECS + v]);
    }
}

INLINE void data_tile(const tutti_fc_data_job *job, int input, int rows, int blocks)
{
    float *stack = job->stack + (size_t)input * blocks * TUTTI_BLOCK * job->levels;
    for (int leaf = job->leaf; leaf < job->leaf_end; leaf++) {
        vf acc[TILE];
        zero(acc, rows * blocks * VECS);
        data_leaf(acc, rows, blocks, job, input, leaf);
        join_leaf(acc, rows * blocks * VECS, leaf, job->leaves, stack);
        if (leaf + 1 == job->leaves) data_store(job, input, rows, blocks, acc);
    }
}

/* The narrower the panel, the more rows fit in the registers. */
static void data(const tutti_fc_data_job *job)
{
    const int rows = job->inputs;
    int i = 0;
#if VLEN == 16
    switch (job->blocks) {
    case 1:
        for (; i + 24 <= rows; i += 24) data_tile(job, i, 24, 1);
        for (; i < rows; i += 8) data_tile(job, i, 8, 1);
        break;
    case 2:
        for (; i + 12 <= rows; i += 12) data_tile(job, i, 12, 2);
        for (; i < rows; i += 4) data_tile(job, i, 4, 2);
        break;
    default:
        for (; i < rows; i += 8) data_tile(job, i, 8, 3);
    }
#elif VLEN == 8
    for (; i + 6 <= rows; i += 6) data_tile(job, i, 6, 1);
    for (; i < rows; i += 2) data_tile(job, i, 2, 1);
#else
    for (; i < rows; i++) data_tile(job, i, 1, 1);
#endif
}

/* ---- backward-weights ---- */

INLINE void weights_store(float *dw, size_t dw_block, bool stream, int rows, int blocks,
                          const vf *acc)
{
    UNROLL(28)
    for (int r = 0; r < rows; r++) {
        UNROLL(16)
        for (int v = 0; v < blocks * VECS; v++) {
            float *to = dw + (v / VECS) * dw_block + r * TUTTI_BLOCK + (v % VECS) * VLEN;
            if (stream) vf_stream(to, acc[r * blocks * VECS + v]);
            else vf_store(to, acc[r * blocks * VECS + v]);
        }
    }
}

/* Where a tile finds its operands: sample s at x + s * x_step and dy + s * 16. */
typedef struct operands {
    const float *x, *dy;
    size_t x_row, x_step, dy_block;
} operands;

/* A chain over samples 'sample' .. 'end'-1, which acc continues or starts. */
INLINE void samples(vf *acc, int rows, int blocks, const operands *from, int sample, int end,
                    bool start)
{
    const float *x = from->x + sample * from->x_step;
    const float *dy = from->dy + (size_t)sample * TUTTI_BLOCK;
    if (start && sample == end) zero(acc, rows * blocks * VECS);
    else if (start) {
        first_step(acc, rows, blocks, x, from->x_row, dy, from->dy_block);
        chain(acc, rows, blocks, end - sample - 1, x + from->x_step, from->x_row, from->x_step,
              dy + TUTTI_BLOCK, from->dy_block);
    } else chain(acc, rows, blocks, end - sample, x, from->x_row, from->x_step, dy, from->dy_block);
}

INLINE void sum_grains(vf *acc, const tutti_fc_weights_job *job, int rows, int blocks,
                       const operands *from)
{
    const int grains = job->grains, *const begin = job->begin, zeroth = begin[0];
    float *const stack = job->near;
    for (int g = 0; g < grains; g++) {
        samples(acc, rows, blocks, from, begin[g] - zeroth, begin[g + 1] - zeroth, job->first);
        join_leaf(acc, rows * blocks * VECS, g, grains, stack);
    }
}

/* The same with neighbouring grains joined before they touch the stack: with 4 samples a grain
 * loads and stores of partial sums would cost as much as the products. */
INLINE void grain_of_4(vf *acc, int rows, int blocks, const operands *from, int sample)
{
    const float *x = from->x + sample * from->x_step;
    const float *dy = from->dy + (size_t)sample * TUTTI_BLOCK;
    first_step(acc, rows, blocks, x, from->x_row, dy, from->dy_block);
    UNROLL(3)
    for (int k = 1; k < 4; k++)
        step(acc, rows, blocks, x + k * from->x_step, from->x_row, dy + k * TUTTI_BLOCK,
             from->dy_block);
}

INLINE void sum_pair(vf *acc, int rows, int blocks, const operands *from, int first, int middle,
                     int end)
{
    vf right[TILE];
    if (middle - first == 4 && end - middle == 4) {
        grain_of_4(acc, rows, blocks, from, first);
        grain_of_4(right, rows, blocks, from, middle);
    } else {
        samples(acc, rows, blocks, from, first, middle, true);
        samples(right, rows, blocks, from, middle, end, true);
    }
    UNROLL(32)
    for (int i = 0; i < rows * blocks * VECS; i++) acc[i] = vf_add(acc[i], right[i]);
}

INLINE void sum_pairs(vf *acc, const tutti_fc_weights_job *job, int rows, int blocks,
                      const operands *from)
{
    const int grains = job->grains, *const begin = job->begin, zeroth = begin[0];
    float *const stack = job->near;
    for (int g = 0; g < grains; g += 2) {
        const int first = begin[g] - zeroth, middle = begin[g + 1] - zeroth;
        if (g + 1 < grains) sum_pair(acc, rows, blocks, from, first, middle, begin[g + 2] - zeroth);
        else samples(acc, rows, blocks, from, first, middle, true);
        join_leaf(acc, rows * blocks * VECS, g / 2, (grains + 1) / 2, stack);
    }
}

/* One run for one tile, and its place in the tree over runs. */
INLINE void weights_tile(const tutti_fc_weights_job *job, int input, int rows, int blocks,
                         bool pairs)
{
    vf acc[TILE];
    const int count = rows * blocks * VECS;
    const operands from = {job->x + input / TUTTI_BLOCK * job->x_block + input % TUTTI_BLOCK,
                           job->dy, 1, TUTTI_BLOCK, job->dy_block};
    float *far = job->far + (size_t)input * blocks * TUTTI_BLOCK * job->levels;
    float *const top = far + __builtin_popcount((unsigned)job->run) * count * VLEN;
    zero(acc, count);
    if (!job->first) load_from(acc, count, top);
    if (pairs) sum_pairs(acc, job, rows, blocks, &from);
    else sum_grains(acc, job, rows, blocks, &from);
    if (!job->last) {
        store_to(top, count, acc);
        return;
    }
    join_leaf(acc, count, job->run, job->runs, far);
    if (job->run + 1 < job->runs) return;
    float *dw = job->dw + (size_t)input * TUTTI_BLOCK;
    if (job->stream) weights_store(dw, job->dw_block, true, rows, blocks, acc);
    else weights_store(dw, job->dw_block, false, rows, blocks, acc);
}

/* All inputs, a panel of 'blocks' blocks wide. */
INLINE void weights_panel(const tutti_fc_weights_job *job, int blocks)
{
    enum { REST = TUTTI_BLOCK % WEIGHTS_ROWS };
    for (int i = 0; i < job->inputs; i += TUTTI_BLOCK) {
        int r = 0;
        for (; r + WEIGHTS_ROWS <= TUTTI_BLOCK; r += WEIGHTS_ROWS)
            weights_tile(job, i + r, WEIGHTS_ROWS, blocks, false);
        if (REST) weights_tile(job, i + r, REST ? REST : 1, blocks, false);
    }
}

#if VLEN == 16
INLINE void weights_panel_of_pairs(const tutti_fc_weights_job *job, int blocks)
{
    for (int i = 0; i < job->inputs; i += 4) weights_tile(job, i, 4, blocks, true);
}
#else
#define weights_panel_of_pairs weights_panel /* too few registers for two tiles of sums */
#endif

static void weights(const tutti_fc_weights_job *job)
{
    switch (job->blocks + (job->pairs ? BLOCKS : 0)) {
    case 1: weights_panel(job, 1); break;
#if BLOCKS_3
    case 2: weights_panel(job, 2); break;
    case 3: weights_panel(job, 3); break;
#endif
    case BLOCKS + 1: weights_panel_of_pairs(job, 1); break;
#if BLOCKS_3
    case BLOCKS + 2: weights_panel_of_pairs(job, 2); break;
    case BLOCKS + 3: weights_panel_of_pairs(job, 3); break;
#endif
    }
    if (job->stream) vf_stream_end();
}

static void bias(const tutti_fc_weights_job *job, float *db)
{
    static const float one = 1.0f;
    for (int b = 0; b < job->blocks; b++) {
        vf acc[TILE];
        const operands from = {&one, job->dy + b * job->dy_block, 0, 0, 0};
        zero(acc, VECS);
        sum_grains(acc, job, 1, 1, &from);
        store_to(db + b * TUTTI_BLOCK, VECS, acc);
    }
}

/* ---- changes of layout ---- */

static void pack(int n, int columns, const float *from, size_t from_row, float *to, size_t to_block)
{
    for (int c = 0; c < columns; c += TUTTI_BLOCK)
        for (int i = 0; i < n; i++)
            memcpy(to + c / TUTTI_BLOCK * to_block + (size_t)i * TUTTI_BLOCK,
                   from + (size_t)i * from_row + c, TUTTI_BLOCK * sizeof *to);
}

/* VLEN x VLEN floats; rows from 'n' on are zero. */
INLINE void load_transposed(vf v[VLEN], int n, const float *from, size_t from_row)
{
    UNROLL(16)
    for (int i = 0; i < VLEN; i++) v[i] = i < n ? vf_load(from + i * from_row) : vf_zero();
    vf_transpose(v);
}

static void pack_transposed(int n, int columns, const float *from, size_t from_row, float *to,
                            size_t to_block)
{
    const int filled = (n + TUTTI_BLOCK - 1) / TUTTI_BLOCK * TUTTI_BLOCK;
    for (int c = 0; c < columns; c += VLEN)
        for (int i = 0; i < filled; i += VLEN) {
            vf v[VLEN];
            load_transposed(v, n - i, from + (size_t)i * from_row + c, from_row);
            float *out =
                to + i / TUTTI_BLOCK * to_block + (size_t)c * TUTTI_BLOCK + i % TUTTI_BLOCK;
            UNROLL(16)
            for (int j = 0; j < VLEN; j++) vf_store(out + j * TUTTI_BLOCK, v[j]);
        }
}

static void unpack_transposed(int n, int columns, const float *from, size_t from_row,
                              const float *mask, float *to, size_t to_row)
{
    for (int c = 0; c < columns; c += VLEN)
        for (int i = 0; i < n; i += VLEN) {
            vf v[VLEN];
            load_transposed(v, VLEN, from + (size_t)c * from_row + i, from_row);
            UNROLL(16)
            for (int j = 0; j < VLEN; j++) {
                const size_t at = (size_t)(i + j) * to_row + c;
                if (i + j >= n) break;
                vf_store(to + at, mask ? vf_gate(v[j], vf_load(mask + at)) : v[j]);
            }
        }
}

extern const tutti_fc_kernels NAME(fc);

const tutti_fc_kernels NAME(fc) = {
    .forward_blocks = BLOCKS,
    .data_blocks = BLOCKS,
    .weights_blocks = BLOCKS,
    .forward = forward,
    .data = data,
    .weights = weights,
    .bias = bias,
    .pack = pack,
    .pack_transposed = pack_transposed,
    .unpack_transposed = unpack_transposed,
};
