/* Local response normalisation across channels (Krizhevsky et al. 2012).
 *
 * Channels are the lanes, so the window over channels slides within a vector and into its
 * neighbours. A tile of pixels is therefore copied into a small buffer where the channels of a
 * pixel lie side by side, with a block of zeros where there is no neighbour; a term of the window
 * is then a load at an odd address. A tile takes CHUNK blocks of channels at a time:
 *
 *   forward    x -> scale -> y = x scale^-beta
 *   backward   x -> scale -> q = dy x scale^-(beta+1), of one block more on either side;
 *              q -> dx = dy scale^-beta - 2 alpha beta/size x sum(q)
 *
 * where the sum over q runs over the channels whose window holds this one. The usual beta of 3/4
 * has a function of its own, any other is exp(-beta log(scale)) with our own exp and log. */
#include "kernel/isa/isa.h"
#include "kernel/isa/math.h"
#include "kernel/ops_kernels.h"

/* The buffers stay in the first-level cache. A whole chunk is stored before any of it is loaded:
 * what lies at two other addresses cannot be forwarded from the store buffer, and waits. */
enum { TILE = 16, CHUNK = 8, B = TUTTI_BLOCK, X_ROW = (CHUNK + 4) * B, Q_ROW = (CHUNK + 2) * B };

/* Where a tile of a sample lies. */
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

/* to[pixel][k] = block first + k of x, zero where there is none; rows X_ROW apart. */
INLINE void side_by_side(float *to, const place *at, int first, int count, const float *x)
{
    for (int k = 0; k < count; k++) {
        const int b = first + k;
        const bool is = is_block(at, b);
        const float *from = x + (is ? (size_t)b * at->plane + at->first : 0);
        for (int t = 0; t < at->tile; t++)
            for (int l = 0; l < B; l += VLEN)
                vf_store(to + t * X_ROW + k * B + l, is ? vf_load(from + t * B + l) : vf_zero());
    }
}

/* k + alpha/size * sum of x^2; 'lane' points at this block's lane in the window. 'size' is
 * lrn->size, known to the compiler where it is the usual one. */
INLINE vf scale_of(const tutti_lrn *lrn, int size, const float *lane)
{
    vf sum = vf_zero();
    UNROLL(8)
    for (int d = -(size / 2); d <= (size - 1) / 2; d++) {
        const vf x = vf_load(lane + d);
        sum = vf_fma(x, x, sum);
    }
    return vf_fma(vf_set1(lrn->alpha / (float)size), sum, vf_set1(lrn->k));
}

INLINE vf sum_of(int size, const float *lane)
{
    vf sum = vf_zero();
    UNROLL(8)
    for (int d = -((size - 1) / 2); d <= size / 2; d++) sum = vf_add(sum, vf_load(lane + d));
    return sum;
}

/* scale^-beta */
INLINE vf shrink_of(const tutti_lrn *lrn, vf scale)
{
    if (lrn->beta == 0.75f) return vf_pow_minus_3_4(scale);
    return vf_exp(vf_mul(vf_set1(-lrn->beta), vf_log(scale)));
}

INLINE void forward(const tutti_lrn *lrn, int size, int blocks, int pixels, int begin, int end,
                    const float *x, float *y, bool stream)
{
    float row[TILE * X_ROW];
    for (int pixel = begin; pixel < end; pixel += TILE) {
        const place at = {blocks, end - pixel < TILE ? end - pixel : TILE, (size_t)pixels * B,
                          (size_t)pixel * B};
        for (int b = 0; b < blocks; b += CHUNK) {
            const int count = blocks - b < CHUNK ? blocks - b : CHUNK;
            side_by_side(row, &at, b - 1, count + 2, x);
            for (int k = 0; k < count; k++) {
                const size_t here = (size_t)(b + k) * at.plane + at.first;
                for (int i = 0; i < at.tile * B; i += VLEN) {
                    FETCH_TILE(x + here + i);
                    const float *lane = row + i / B * X_ROW + (k + 1) * B + i % B;
                    const vf shrink = shrink_of(lrn, scale_of(lrn, size, lane));
                    vf_put(y + here + i, vf_mul(vf_load(lane), shrink), stream);
                }
            }
        }
    }
    if (stream) vf_stream_end();
}

tutti_lrn_fn NAME(op_lrn_forward);
void NAME(op_lrn_forward)(const tutti_lrn *lrn, int blocks, int pixels, int begin, int end,
                          const float *x, const float *dy, const float *mask, float *y, bool stream)
{
    (void)dy, (void)mask;
    if (lrn->size == 5) forward(lrn, 5, blocks, pixels, begin, end, x, y, stream);
    else forward(lrn, lrn->size, blocks, pixels, begin, end, x, y, stream);
}

/* A chunk of the backward pass: x from two blocks before it on, q from one block before it on, and
 * dy scale^-beta. */
typedef struct chunk {
    float x[TILE * X_ROW], q[TILE * Q_ROW], direct[TILE * Q_ROW];
} chunk;

/* q and dy scale^-beta of block b, number k of the chunk; zero where there is no such block. */
INLINE void weigh_block(chunk *c, const tutti_lrn *lrn, int size, const place *at, int b, int k,
                        const float *dy)
{
    const bool is = is_block(at, b);
    const float *from = dy + (is ? (size_t)b * at->plane + at->first : 0);
    for (int i = 0; i < at->tile * B; i += VLEN) {
        const int t = i / B, l = i % B;
        const float *lane = c->x + t * X_ROW + (k + 2) * B + l;
        vf direct = vf_zero(), q = vf_zero();
        FETCH_TILE(from + i);
        if (is) {
            const vf scale = scale_of(lrn, size, lane);
            direct = vf_mul(vf_load(from + i), shrink_of(lrn, scale));
            q = vf_div(vf_mul(direct, vf_load(lane)), scale);
        }
        vf_store(c->direct + t * Q_ROW + (k + 1) * B + l, direct);
        vf_store(c->q + t * Q_ROW + (k + 1) * B + l, q);
    }
}

/* dx of block number k of the chunk; 'from' is where its x came from. */
INLINE void give_block(const chunk *c, const tutti_lrn *lrn, int size, int tile, int k,
                       const float *from, const float *mask, float *dx, bool stream)
{
    const vf factor = vf_set1(-2.0f * lrn->alpha * lrn->beta / (float)lrn->size);
    for (int i = 0; i < tile * B; i += VLEN) {
        const int t = i / B, l = i % B, at = t * Q_ROW + (k + 1) * B + l;
        const vf x = vf_load(c->x + t * X_ROW + (k + 2) * B + l), sum = sum_of(size, c->q + at);
        FETCH_TILE(from + i);
        vf d = vf_fma(vf_mul(factor, x), sum, vf_load(c->direct + at));
        if (mask) d = vf_gate(d, vf_load(mask + i));
        vf_put(dx + i, d, stream);
    }
}

INLINE void backward(const tutti_lrn *lrn, int size, int blocks, int pixels, int begin, int end,
                     const float *x, const float *dy, const float *mask, float *dx, bool stream)
{
    chunk c;
    for (int pixel = begin; pixel < end; pixel += TILE) {
        const place at = {blocks, end - pixel < TILE ? end - pixel : TILE, (size_t)pixels * B,
                          (size_t)pixel * B};
        for (int b = 0; b < blocks; b += CHUNK) {
            const int count = blocks - b < CHUNK ? blocks - b : CHUNK;
            side_by_side(c.x, &at, b - 2, count + 4, x);
            for (int k = -1; k <= count; k++) weigh_block(&c, lrn, size, &at, b + k, k, dy);
            for (int k = 0; k < count; k++) {
                const size_t to = (size_t)(b + k) * at.plane + at.first;
                give_block(&c, lrn, size, at.tile, k, x + to, mask ? mask + to : NULL, dx + to,
                           stream);
            }
        }
    }
    if (stream) vf_stream_end();
}

tutti_lrn_fn NAME(op_lrn_backward);
void NAME(op_lrn_backward)(const tutti_lrn *lrn, int blocks, int pixels, int begin, int end,
                           const float *x, const float *dy, const float *mask, float *dx,
                           bool stream)
{
    if (lrn->size == 5) backward(lrn, 5, blocks, pixels, begin, end, x, dy, mask, dx, stream);
    else backward(lrn, lrn->size, blocks, pixels, begin, end, x, dy, mask, dx, stream);
}
