/* Local response normalisation across channels (Krizhevsky et al. 2012).
 *
 * Channels are the lanes, so the window over channels slides within a vector and into its
 * neighbours. The squares of a tile of pixels therefore go into a small buffer where the channels
 * of a pixel lie side by side, with a block of zeros where there is no neighbour; a term of the
 * window is then a load at an odd address. A tile takes CHUNK blocks of channels at a time:
 *
 *   forward    x^2 -> scale -> y = x scale^-beta
 *   backward   x^2 -> scale -> q = dy x scale^-(beta+1), of one block more on either side;
 *              q -> dx = dy scale^-beta - 2 alpha beta/size x sum(q)
 *
 * where the sum over q runs over the channels whose window holds this one. The usual beta of 3/4
 * has a function of its own, any other is exp(-beta log(scale)) with our own exp and log. */
#include "kernel/isa/isa.h"
#include "kernel/isa/math.h"
#include "kernel/ops_kernels.h"

/* The buffers stay in the first-level cache. A whole chunk is stored before any of it is loaded:
 * a load that spans two stores cannot be forwarded from the store buffer, and waits. */
enum { TILE = 16, CHUNK = 8, B = TUTTI_BLOCK, X_ROW = (CHUNK + 4) * B, Q_ROW = (CHUNK + 2) * B };

/* Where a tile of a sample is. */
typedef struct place {
    int blocks, tile; /* tile: its pixels */
    size_t plane;     /* floats from one block to the next */
    size_t first;     /* of the tile's first pixel, in a block */
} place;

/* Meanwhile fetches what the next tile will copy: its lines are too few in a row for the
 * processors' own prefetchers. */
#define FETCH_TILE(address) __builtin_prefetch((address) + TILE * B, 0, 3)

INLINE bool is_block(const place *at, int b)
{
    return b >= 0 && b < at->blocks;
}

/* A layer's numbers, and how many channels its window has: known to the compiler where they are the
 * usual ones. */
typedef struct window {
    int size;
    float part, k, beta; /* part: alpha / size */
} window;

INLINE window window_of(const tutti_lrn *lrn, int size)
{
    return (window){size, lrn->alpha / (float)size, lrn->k, lrn->beta};
}

/* to[pixel][k] = squares of block first + k of x, zero where there is none; rows X_ROW apart. */
INLINE void square_side_by_side(float *to, const place *at, int first, int count, const float *x)
{
    for (int k = 0; k < count; k++) {
        const int b = first + k;
        const bool is = is_block(at, b);
        const float *from = x + (is ? (size_t)b * at->plane + at->first : 0);
        for (int t = 0; t < at->tile; t++)
            for (int l = 0; l < B; l += VLEN) {
                const vf value = is ? vf_load(from + t * B + l) : vf_zero();
                vf_store(to + t * X_ROW + k * B + l, vf_mul(value, value));
            }
    }
}

/* Where in a buffer element i of a tile's block number k is; rows 'row' apart. */
INLINE int lane_of(int i, int k, int row)
{
    return i / B * row + k * B + i % B;
}

/* For 'count' vectors from element i of block number k of the buffer on: scale[] = k + alpha/size *
 * sum of the squares in the window. */
INLINE void scales_of(int count, window w, const float *squares, int i, int k, vf *scale)
{
    TOGETHER_EACH(v)
    {
        const float *lane = squares + lane_of(i + v * VLEN, k, X_ROW);
        vf sum = vf_load(lane - w.size / 2);
        UNROLL(8)
        for (int d = 1 - w.size / 2; d <= (w.size - 1) / 2; d++)
            sum = vf_add(sum, vf_load(lane + d));
        scale[v] = vf_fma(vf_set1(w.part), sum, vf_set1(w.k));
    }
}

INLINE vf sum_of(int size, const float *lane)
{
    vf sum = vf_load(lane - (size - 1) / 2);
    UNROLL(8)
    for (int d = 1 - (size - 1) / 2; d <= size / 2; d++) sum = vf_add(sum, vf_load(lane + d));
    return sum;
}

/* scale[] becomes scale^-beta, and inverse[], if there is one, 1 / scale. */
INLINE void shrink(int count, window w, vf *scale, vf *inverse)
{
    if (w.beta == 0.75f) {
        vf_pow_minus_3_4(count, scale, inverse);
        return;
    }
    TOGETHER_EACH(v)
    {
        if (inverse) inverse[v] = vf_div(vf_set1(1.0f), scale[v]);
        scale[v] = vf_exp(vf_mul(vf_set1(-w.beta), vf_log(scale[v])));
    }
}

/* y = x scale^-beta of 'count' vectors from element i of block number k of the chunk on. */
INLINE void forward_vectors(int count, window w, const float *squares, int i, int k, const float *x,
                            float *y, bool stream)
{
    vf factor[TOGETHER];
    TOGETHER_EACH(v) FETCH_TILE(x + i + v * VLEN);
    scales_of(count, w, squares, i, k + 1, factor);
    shrink(count, w, factor, NULL);
    TOGETHER_EACH(v)
    vf_put(y + i + v * VLEN, vf_mul(vf_load(x + i + v * VLEN), factor[v]), stream);
}

INLINE void forward(window w, int blocks, int pixels, int begin, int end, const float *x, float *y,
                    bool stream)
{
    float squares[TILE * X_ROW];
    for (int pixel = begin; pixel < end; pixel += TILE) {
        const place at = {blocks, end - pixel < TILE ? end - pixel : TILE, (size_t)pixels * B,
                          (size_t)pixel * B};
        for (int b = 0; b < blocks; b += CHUNK) {
            const int count = blocks - b < CHUNK ? blocks - b : CHUNK;
            square_side_by_side(squares, &at, b - 1, count + 2, x);
            for (int k = 0; k < count; k++) {
                const size_t here = (size_t)(b + k) * at.plane + at.first;
                int i = 0;
                for (; i + TOGETHER * VLEN <= at.tile * B; i += TOGETHER * VLEN)
                    forward_vectors(TOGETHER, w, squares, i, k, x + here, y + here, stream);
                for (; i < at.tile * B; i += VLEN)
                    forward_vectors(1, w, squares, i, k, x + here, y + here, stream);
            }
        }
    }
}

tutti_lrn_fn NAME(op_lrn_forward);
void NAME(op_lrn_forward)(const tutti_lrn *lrn, int blocks, int pixels, int begin, int end,
                          const float *x, const float *dy, const float *mask, float *y, bool stream)
{
    (void)dy, (void)mask;
    if (lrn->size == 5) forward(window_of(lrn, 5), blocks, pixels, begin, end, x, y, stream);
    else forward(window_of(lrn, lrn->size), blocks, pixels, begin, end, x, y, stream);
}

/* A chunk of the backward pass: squares from two blocks before it on, q and dy scale^-beta from one
 * block before it on. */
typedef struct chunk {
    float squares[TILE * X_ROW], q[TILE * Q_ROW], direct[TILE * Q_ROW];
} chunk;

/* q and dy scale^-beta of 'count' vectors from element i of block number k of the chunk on. */
INLINE void weigh_vectors(int count, chunk *c, window w, int i, int k, const float *x,
                          const float *dy)
{
    vf factor[TOGETHER], inverse[TOGETHER];
    TOGETHER_EACH(v) FETCH_TILE(dy + i + v * VLEN);
    scales_of(count, w, c->squares, i, k + 2, factor);
    shrink(count, w, factor, inverse);
    TOGETHER_EACH(v)
    {
        const int from = i + v * VLEN, to = lane_of(from, k + 1, Q_ROW);
        const vf direct = vf_mul(vf_load(dy + from), factor[v]);
        vf_store(c->direct + to, direct);
        vf_store(c->q + to, vf_mul(vf_mul(direct, vf_load(x + from)), inverse[v]));
    }
}

/* Of block b, number k of the chunk; q is zero where there is no such block. */
INLINE void weigh_block(chunk *c, window w, const place *at, int b, int k, const float *x,
                        const float *dy)
{
    const size_t from = (size_t)b * at->plane + at->first;
    int i = 0;
    if (!is_block(at, b)) {
        for (; i < at->tile * B; i += VLEN) vf_store(c->q + lane_of(i, k + 1, Q_ROW), vf_zero());
        return;
    }
    for (; i + TOGETHER * VLEN <= at->tile * B; i += TOGETHER * VLEN)
        weigh_vectors(TOGETHER, c, w, i, k, x + from, dy + from);
    for (; i < at->tile * B; i += VLEN) weigh_vectors(1, c, w, i, k, x + from, dy + from);
}

/* dx of block number k of the chunk. */
INLINE void give_block(const chunk *c, window w, int tile, int k, const float *x, const float *mask,
                       float *dx, bool stream)
{
    const vf factor = vf_set1(-2.0f * w.beta * w.part);
    UNROLL(2)
    for (int i = 0; i < tile * B; i += VLEN) {
        const int at = lane_of(i, k + 1, Q_ROW);
        FETCH_TILE(x + i);
        vf d = vf_fma(vf_mul(factor, vf_load(x + i)), sum_of(w.size, c->q + at),
                      vf_load(c->direct + at));
        if (mask) d = vf_gate(d, vf_load(mask + i));
        vf_put(dx + i, d, stream);
    }
}

INLINE void backward(window w, int blocks, int pixels, int begin, int end, const float *x,
                     const float *dy, const float *mask, float *dx, bool stream)
{
    chunk c;
    for (int pixel = begin; pixel < end; pixel += TILE) {
        const place at = {blocks, end - pixel < TILE ? end - pixel : TILE, (size_t)pixels * B,
                          (size_t)pixel * B};
        for (int b = 0; b < blocks; b += CHUNK) {
            const int count = blocks - b < CHUNK ? blocks - b : CHUNK;
            square_side_by_side(c.squares, &at, b - 2, count + 4, x);
            for (int k = -1; k <= count; k++) weigh_block(&c, w, &at, b + k, k, x, dy);
            for (int k = 0; k < count; k++) {
                const size_t to = (size_t)(b + k) * at.plane + at.first;
                give_block(&c, w, at.tile, k, x + to, mask ? mask + to : NULL, dx + to, stream);
            }
        }
    }
}

tutti_lrn_fn NAME(op_lrn_backward);
void NAME(op_lrn_backward)(const tutti_lrn *lrn, int blocks, int pixels, int begin, int end,
                           const float *x, const float *dy, const float *mask, float *dx,
                           bool stream)
{
    const window any = window_of(lrn, lrn->size), usual = window_of(lrn, 5);
    if (any.size == 5) backward(usual, blocks, pixels, begin, end, x, dy, mask, dx, stream);
    else backward(any, blocks, pixels, begin, end, x, dy, mask, dx, stream);
}
