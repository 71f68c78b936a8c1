/* Normalisation: one plane, a channel block of one sample, at a time (kernel/norm.h). Channels are
 * the lanes, so each lane sums by itself. */
#include "kernel/isa/isa.h"
#include "kernel/ops_kernels.h"

enum { B = TUTTI_BLOCK, CHUNK = TUTTI_NORM_CHUNK, CHAINS = 8, PAIRS = 4 };

/* Joins chains pairwise: ((0 1)(2 3))((4 5)(6 7)). */
INLINE vf joined(int count, const vf *chain)
{
    vf sum[CHAINS];
    UNROLL(8)
    for (int j = 0; j < count; j++) sum[j] = chain[j];
    UNROLL(3)
    for (; count > 1; count /= 2) {
        UNROLL(4)
        for (int j = 0; j < count / 2; j++) sum[j] = vf_add(sum[2 * j], sum[2 * j + 1]);
    }
    return sum[0];
}

/* The sum over a chunk's pixels: chain j takes pixels j, j + 8, ... */
INLINE vf sum_of(int pixels, const float *x)
{
    vf chain[CHAINS];
    int p = 0;
    UNROLL(8)
    for (int j = 0; j < CHAINS; j++) chain[j] = vf_zero();
    for (; p + CHAINS <= pixels; p += CHAINS) {
        UNROLL(8)
        for (int j = 0; j < CHAINS; j++) chain[j] = vf_add(chain[j], vf_load(x + (p + j) * B));
    }
    UNROLL(8)
    for (int j = 0; j < CHAINS; j++)
        if (p + j < pixels) chain[j] = vf_add(chain[j], vf_load(x + (p + j) * B));
    return joined(CHAINS, chain);
}

/* Two sums over a chunk's pixels: chain j of each takes pixels j, j + 4, ... */
typedef struct pair {
    vf sum[PAIRS], product[PAIRS];
} pair;

INLINE void add_distance(pair *s, int j, const float *x, vf middle)
{
    __builtin_prefetch(x + CHUNK * B, 0, 3); /* the next chunk comes while this one is computed */
    const vf d = vf_sub(vf_load(x), middle);
    s->sum[j] = vf_add(s->sum[j], d);
    s->product[j] = vf_fma(d, d, s->product[j]);
}

INLINE pair no_pair(void)
{
    pair s;
    UNROLL(4)
    for (int j = 0; j < PAIRS; j++) s.sum[j] = s.product[j] = vf_zero();
    return s;
}

/* Distances from 'middle': their sum and that of their squares. */
INLINE void distances_of(int pixels, const float *x, vf middle, float *sum, float *squares)
{
    pair s = no_pair();
    int p = 0;
    for (; p + PAIRS <= pixels; p += PAIRS) {
        UNROLL(4)
        for (int j = 0; j < PAIRS; j++) add_distance(&s, j, x + (p + j) * B, middle);
    }
    UNROLL(4)
    for (int j = 0; j < PAIRS; j++)
        if (p + j < pixels) add_distance(&s, j, x + (p + j) * B, middle);
    vf_store(sum, joined(PAIRS, s.sum));
    vf_store(squares, joined(PAIRS, s.product));
}

/* A chunk joins those before it. The sum of distances corrects what 'middle' lacks of the mean;
 * squares that rounding made negative are 0, and NaN stays. */
INLINE void join_chunk(int before, int pixels, const float *middle, const float *sum,
                       const float *squares, double *mean, double *all_squares)
{
    const double each = 1.0 / pixels, share = pixels / (double)(before + pixels);
    const double weight = before * share;
    for (int l = 0; l < B; l++) {
        const double rest = (double)sum[l] * each, own = (double)squares[l] - rest * (double)sum[l];
        const double apart = (double)middle[l] + rest - mean[l];
        mean[l] += apart * share;
        all_squares[l] += (own < 0 ? 0 : own) + apart * apart * weight;
    }
}

tutti_norm_moments_fn NAME(op_norm_moments);
void NAME(op_norm_moments)(int pixels, const float *x, double *mean, double *squares)
{
    float middle[B], sum[B], square[B];
    for (int l = 0; l < B; l++) mean[l] = squares[l] = 0;
    for (int at = 0; at < pixels; at += CHUNK, x += CHUNK * B) {
        const int n = pixels - at < CHUNK ? pixels - at : CHUNK;
        for (int l = 0; l < B; l += VLEN) {
            const vf about = vf_mul(sum_of(n, x + l), vf_set1(1.0f / (float)n));
            vf_store(middle + l, about);
            distances_of(n, x + l, about, sum + l, square + l);
        }
        join_chunk(at, n, middle, sum, square, mean, squares);
    }
}

INLINE vf centred(const float *x, vf high, vf low)
{
    return vf_sub(vf_sub(vf_take(x), high), low);
}

/* Where x is counted from: the mean of each channel, or of each pixel, then in units of 1 / inverse
 * of that. */
typedef struct centre {
    const float *high, *low, *inverse; /* no inverse: of channels */
} centre;

INLINE vf away(const centre *c, bool of_pixels, const float *x, int pixel, int lane)
{
    if (!of_pixels) return centred(x, vf_load(c->high + lane), vf_load(c->low + lane));
    return vf_mul(centred(x, vf_set1(c->high[pixel]), vf_set1(c->low[pixel])),
                  vf_set1(c->inverse[pixel]));
}

/* What the sums take from dy: itself, or, of values with weights of their own, times those. */
INLINE vf weighted(const float *dy, const float *weight)
{
    return weight ? vf_mul(vf_take(dy), vf_load(weight)) : vf_take(dy);
}

INLINE void add_product(pair *s, int j, vf d, vf distance)
{
    s->sum[j] = vf_add(s->sum[j], d);
    s->product[j] = vf_fma(d, distance, s->product[j]);
}

/* What is summed up over a plane's pixels. */
typedef struct plane {
    const float *x, *dy, *weight; /* no weight: 1 */
    centre centre;
} plane;

INLINE void add_pixel(pair *s, int j, const plane *from, bool of_pixels, int pixel, int lane)
{
    const size_t at = (size_t)(pixel * B + lane);
    add_product(s, j, weighted(from->dy + at, from->weight ? from->weight + at : NULL),
                away(&from->centre, of_pixels, from->x + at, pixel, lane));
}

/* Of pixels 'at' and on, lanes 'lane' and on. */
INLINE void products_of(int pixels, const plane *from, bool of_pixels, int at, int lane, float *sum,
                        float *product)
{
    pair s = no_pair();
    int p = 0;
    for (; p + PAIRS <= pixels; p += PAIRS) {
        UNROLL(4)
        for (int j = 0; j < PAIRS; j++) add_pixel(&s, j, from, of_pixels, at + p + j, lane);
    }
    UNROLL(4)
    for (int j = 0; j < PAIRS; j++)
        if (p + j < pixels) add_pixel(&s, j, from, of_pixels, at + p + j, lane);
    vf_store(sum + lane, joined(PAIRS, s.sum));
    vf_store(product + lane, joined(PAIRS, s.product));
}

INLINE void sums(int pixels, const plane *from, bool of_pixels, double *all, double *products)
{
    float sum[B], product[B];
    for (int l = 0; l < B; l++) all[l] = products[l] = 0;
    for (int at = 0; at < pixels; at += CHUNK) {
        const int n = pixels - at < CHUNK ? pixels - at : CHUNK;
        for (int l = 0; l < B; l += VLEN) products_of(n, from, of_pixels, at, l, sum, product);
        for (int l = 0; l < B; l++) {
            all[l] += (double)sum[l];
            products[l] += (double)product[l];
        }
    }
}

tutti_norm_sums_fn NAME(op_norm_sums);
void NAME(op_norm_sums)(int pixels, const float *x, const float *dy, const float *high,
                        const float *low, double *all, double *products)
{
    sums(pixels, &(plane){x, dy, NULL, {high, low, NULL}}, false, all, products);
}

tutti_pixel_norm_sums_fn NAME(op_pixel_norm_sums);
void NAME(op_pixel_norm_sums)(int pixels, const float *x, const float *dy, const float *high,
                              const float *low, const float *inverse, double *all, double *products)
{
    sums(pixels, &(plane){x, dy, NULL, {high, low, inverse}}, true, all, products);
}

/* A row of 16 coefficients in registers: a line of memory is written whole, and once. */
enum { PARTS = B / VLEN };
typedef struct row16 {
    vf part[PARTS];
} row16;

INLINE row16 row_at(const float *row)
{
    row16 r;
    UNROLL(16)
    for (int k = 0; k < PARTS; k++) r.part[k] = vf_load(row + k * VLEN);
    return r;
}

INLINE void forward(int pixels, const tutti_norm_plane *p, const float *x, const float *plus,
                    bool relu, float *y, bool stream)
{
    const row16 high = row_at(p->high), low = row_at(p->low);
    const row16 factor = row_at(p->factor), addend = row_at(p->addend);
    UNROLL(2)
    for (int i = 0; i < pixels * B; i += B) {
        UNROLL(16)
        for (int k = 0; k < PARTS; k++) {
            const vf d = centred(x + i + k * VLEN, high.part[k], low.part[k]);
            const vf own = vf_fma(d, factor.part[k], addend.part[k]);
            const vf value = plus ? vf_add(own, vf_take(plus + i + k * VLEN)) : own;
            vf_put(y + i + k * VLEN, relu ? vf_gate(value, value) : value, stream);
        }
    }
}

tutti_norm_forward_fn NAME(op_norm_forward);
void NAME(op_norm_forward)(int pixels, const tutti_norm_plane *p, const float *x, const float *plus,
                           bool relu, float *y, bool stream)
{
    if (plus && relu && stream) forward(pixels, p, x, plus, true, y, true);
    else if (plus) forward(pixels, p, x, plus, relu, y, stream);
    else if (relu && stream) forward(pixels, p, x, NULL, true, y, true);
    else if (relu) forward(pixels, p, x, NULL, true, y, false);
    else if (stream) forward(pixels, p, x, NULL, false, y, true);
    else forward(pixels, p, x, NULL, false, y, false);
}

INLINE void backward(int pixels, const tutti_norm_plane *p, const float *x, const float *dy,
                     bool gated, float *dx, bool stream)
{
    const row16 high = row_at(p->high), low = row_at(p->low);
    const row16 factor = row_at(p->factor), addend = row_at(p->addend);
    const row16 factor_x = row_at(p->factor_x);
    UNROLL(2)
    for (int i = 0; i < pixels * B; i += B) {
        UNROLL(16)
        for (int k = 0; k < PARTS; k++) {
            const int at = i + k * VLEN;
            const vf direct = vf_fma(factor.part[k], vf_take(dy + at), addend.part[k]);
            const vf d =
                vf_fma(factor_x.part[k], centred(x + at, high.part[k], low.part[k]), direct);
            vf_put(dx + at, gated ? vf_gate(d, vf_load(x + at)) : d, stream);
        }
    }
}

tutti_norm_backward_fn NAME(op_norm_backward);
void NAME(op_norm_backward)(int pixels, const tutti_norm_plane *p, const float *x, const float *dy,
                            bool gated, float *dx, bool stream)
{
    if (gated && stream) backward(pixels, p, x, dy, true, dx, true);
    else if (gated) backward(pixels, p, x, dy, true, dx, false);
    else if (stream) backward(pixels, p, x, dy, false, dx, true);
    else backward(pixels, p, x, dy, false, dx, false);
}

/* ---- values with weights and biases of their own (kernel/value_norm.h) ---- */

tutti_value_sums_fn NAME(op_value_sums);
void NAME(op_value_sums)(int pixels, const tutti_value_plane *p, double *all, double *products)
{
    sums(pixels, &(plane){p->x, p->dy, p->weight, {p->by.high, p->by.low, NULL}}, false, all,
         products);
}

INLINE void value_forward(int pixels, const tutti_value_plane *p, float *y, bool stream)
{
    const row16 high = row_at(p->by.high), low = row_at(p->by.low), factor = row_at(p->by.factor);
    for (int i = 0; i < pixels * B; i += B) {
        UNROLL(16)
        for (int k = 0; k < PARTS; k++) {
            const int at = i + k * VLEN;
            const vf d = centred(p->x + at, high.part[k], low.part[k]);
            const vf weight = vf_load(p->weight + at), bias = vf_load(p->bias + at);
            vf_put(y + at, vf_fma(vf_mul(d, factor.part[k]), weight, bias), stream);
        }
    }
}

tutti_value_pass_fn NAME(op_value_forward);
void NAME(op_value_forward)(int pixels, const tutti_value_plane *p, float *y, bool stream)
{
    if (stream) value_forward(pixels, p, y, true);
    else value_forward(pixels, p, y, false);
}

INLINE void value_backward(int pixels, const tutti_value_plane *p, float *dx, bool stream)
{
    const row16 high = row_at(p->by.high), low = row_at(p->by.low), factor = row_at(p->by.factor);
    const row16 addend = row_at(p->by.addend), factor_x = row_at(p->by.factor_x);
    for (int i = 0; i < pixels * B; i += B) {
        UNROLL(16)
        for (int k = 0; k < PARTS; k++) {
            const int at = i + k * VLEN;
            const vf g = weighted(p->dy + at, p->weight + at), x = vf_load(p->x + at);
            const vf direct = vf_fma(factor.part[k], g, addend.part[k]);
            const vf d =
                vf_fma(factor_x.part[k], centred(p->x + at, high.part[k], low.part[k]), direct);
            vf_put(dx + at, p->gated ? vf_gate(d, x) : d, stream);
        }
    }
}

tutti_value_pass_fn NAME(op_value_backward);
void NAME(op_value_backward)(int pixels, const tutti_value_plane *p, float *dx, bool stream)
{
    if (stream) value_backward(pixels, p, dx, true);
    else value_backward(pixels, p, dx, false);
}

tutti_value_gradient_fn NAME(op_value_gradient);
void NAME(op_value_gradient)(int pixels, const tutti_value_plane *p, float *dw, float *db)
{
    const row16 high = row_at(p->by.high), low = row_at(p->by.low), factor = row_at(p->by.factor);
    for (int i = 0; i < pixels * B; i += B) {
        UNROLL(16)
        for (int k = 0; k < PARTS; k++) {
            const int at = i + k * VLEN;
            const vf dy = vf_load(p->dy + at);
            const vf n = vf_mul(centred(p->x + at, high.part[k], low.part[k]), factor.part[k]);
            vf_store(dw + at, vf_fma(dy, n, vf_load(dw + at)));
            vf_store(db + at, vf_add(vf_load(db + at), dy));
        }
    }
}
