/* Local response normalisation across channels (Krizhevsky et al. 2012).
 *
 * Channels are the lanes, so the window over channels slides within a vector and into its
 * neighbours. For a tile of pixels three blocks stand side by side in a small buffer, previous,
 * this and next, zeros beyond the first and the last; a term of the window is then a load at an
 * odd address. The buffer moves on block by block:
 *
 *   forward    for b:  x: [b-1 | b | b+1] -> scale(b) -> y(b)
 *   backward   for b:  x: [b-1 | b | b+1] -> scale(b) -> q(b) = dy x scale^-(beta+1)
 *                      q: [b-2 | b-1 | b] -> dx(b-1) = dy scale^-beta - 2 alpha beta/size x sum(q)
 *
 * where the sum over q runs over the channels whose window holds this one. scale^-beta is
 * exp(-beta log(scale)) with our own exp and log. */
#include "kernel/isa/isa.h"
#include "kernel/isa/math.h"
#include "kernel/ops_kernels.h"

#include <string.h>

/* Pixels of a tile: enough that what was stored into the windows has left the store buffer when it
 * is loaded at other addresses, which cannot be forwarded. */
enum { TILE = 32, B = TUTTI_BLOCK };

/* Three blocks of a tile of pixels. */
typedef struct window {
    float at[TILE][3 * B];
} window;

/* Drops the previous block, takes block b (or zeros where there is none) as the next. */
INLINE void advance(window *win, const float *x, int tile)
{
    for (int t = 0; t < tile; t++)
        for (int l = 0; l < B; l += VLEN) {
            float *to = win->at[t];
            vf_store(to + l, vf_load(to + B + l));
            vf_store(to + B + l, vf_load(to + 2 * B + l));
            vf_store(to + 2 * B + l, x ? vf_load(x + t * B + l) : vf_zero());
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

INLINE void forward(const tutti_lrn *lrn, int size, int blocks, int pixels, int begin, int end,
                    const float *x, float *y, bool stream)
{
    const vf power = vf_set1(-lrn->beta);
    const size_t plane = (size_t)pixels * B;
    for (int pixel = begin; pixel < end; pixel += TILE) {
        const int tile = end - pixel < TILE ? end - pixel : TILE;
        const size_t first = (size_t)pixel * B;
        window win;
        memset(&win, 0, sizeof win);
        advance(&win, x + first, tile);
        for (int b = 0; b < blocks; b++) {
            const size_t at = (size_t)b * plane + first;
            advance(&win, b + 1 < blocks ? x + at + plane : NULL, tile);
            UNROLL(2)
            for (int i = 0; i < tile * B; i += VLEN) {
                const float *lane = win.at[i / B] + B + i % B;
                const vf shrink = vf_exp(vf_mul(power, vf_log(scale_of(lrn, size, lane))));
                vf_put(y + at + i, vf_mul(vf_load(lane), shrink), stream);
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

/* What a tile carries from block to block in the backward pass. */
typedef struct carried {
    window x, q;
    float direct[2][TILE][B]; /* dy scale^-beta of this block and the previous one */
} carried;

/* Block b: its q joins the window of q. dy is NULL beyond the last block. */
INLINE void take_block(const tutti_lrn *lrn, int size, carried *c, int b, const float *dy, int tile)
{
    float q[TILE * B];
    const vf power = vf_set1(-lrn->beta);
    for (int t = 0; dy && t < tile; t++)
        for (int l = 0; l < B; l += VLEN) {
            const float *lane = c->x.at[t] + B + l;
            const vf scale = scale_of(lrn, size, lane);
            const vf shrink = vf_exp(vf_mul(power, vf_log(scale)));
            const vf direct = vf_mul(vf_load(dy + t * B + l), shrink);
            vf_store(c->direct[b % 2][t] + l, direct);
            vf_store(q + t * B + l, vf_div(vf_mul(direct, vf_load(lane)), scale));
        }
    advance(&c->q, dy ? q : NULL, tile);
}

/* dx of block b, when the window of x has moved to block b+1. */
INLINE void give_block(const tutti_lrn *lrn, int size, const carried *c, int b, const float *mask,
                       float *dx, int tile, bool stream)
{
    const vf factor = vf_set1(-2.0f * lrn->alpha * lrn->beta / (float)lrn->size);
    for (int t = 0; t < tile; t++)
        for (int l = 0; l < B; l += VLEN) {
            const vf x = vf_load(c->x.at[t] + l), sum = sum_of(size, c->q.at[t] + B + l);
            vf d = vf_fma(vf_mul(factor, x), sum, vf_load(c->direct[b % 2][t] + l));
            if (mask) d = vf_gate(d, vf_load(mask + t * B + l));
            vf_put(dx + t * B + l, d, stream);
        }
}

INLINE void backward(const tutti_lrn *lrn, int size, int blocks, int pixels, int begin, int end,
                     const float *x, const float *dy, const float *mask, float *dx, bool stream)
{
    const size_t plane = (size_t)pixels * B;
    for (int pixel = begin; pixel < end; pixel += TILE) {
        const int tile = end - pixel < TILE ? end - pixel : TILE;
        const size_t first = (size_t)pixel * B;
        carried c;
        memset(&c, 0, sizeof c);
        advance(&c.x, x + first, tile);
        for (int b = 0; b <= blocks; b++) {
            const size_t at = (size_t)b * plane + first;
            advance(&c.x, b + 1 < blocks ? x + at + plane : NULL, tile);
            take_block(lrn, size, &c, b, b < blocks ? dy + at : NULL, tile);
            if (b == 0) continue;
            const size_t before = at - plane;
            give_block(lrn, size, &c, b - 1, mask ? mask + before : NULL, dx + before, tile,
                       stream);
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
