/* Normalisation over the channels of each pixel (kernel/pixel_norm.h), a tile of pixels at a time.
 * Channels are the lanes: a pixel has 16 sums, which are added when 'joined' has turned the sums of
 * several pixels around, so that pixels are the lanes. */
#include "kernel/isa/isa.h"
#include "kernel/ops_kernels.h"

enum { B = TUTTI_BLOCK, TILE = TUTTI_PIXEL_TILE, PARTS = B / VLEN, CHUNK = TUTTI_NORM_CHUNK };

#define EACH_PART(k)   UNROLL(16) for (int k = 0; k < PARTS; k++)
#define EACH(j, count) UNROLL(4) for (int j = 0; j < count; j++)

typedef struct sums {
    float lane[TILE * B];
} sums;

/* Pixels that the tile does not have. */
INLINE void clear_rest(sums *s, int pixels)
{
    for (int i = pixels * B; i < TILE * B; i += VLEN) vf_store(s->lane + i, vf_zero());
}

/* A row of 16 numbers in registers. */
typedef struct row16 {
    vf part[PARTS];
} row16;

INLINE row16 row_at(const float *row)
{
    row16 r;
    EACH_PART(k) r.part[k] = vf_load(row + k * VLEN);
    return r;
}

/* Adds 'count' vectors, a power of two, by halves. */
INLINE vf by_halves(int count, vf *v)
{
    UNROLL(4)
    for (count /= 2; count; count /= 2) {
        UNROLL(8)
        for (int i = 0; i < count; i++) v[i] = vf_add(v[i], v[i + count]);
    }
    return v[0];
}

/* to[pixel] = the sum of its 16 lanes. */
INLINE void joined(const sums *s, float *to)
{
    for (int p = 0; p < TILE; p += VLEN) {
        vf pixel[VLEN];
        UNROLL(16)
        for (int i = 0; i < VLEN; i++) {
            vf part[PARTS];
            EACH_PART(k) part[k] = vf_load(s->lane + (p + i) * B + k * VLEN);
            pixel[i] = by_halves(PARTS, part);
        }
        vf_transpose(pixel);
        vf_store(to + p, by_halves(VLEN, pixel));
    }
}

/* The next tile comes while this one is computed: its lines are too few in a row for the
 * processors' own prefetchers. */
#define FETCH_TILE(address) __builtin_prefetch((address) + TILE * B, 0, 3)

/* Of the last block, what is only filled up stays zero, even beside NaN. */
INLINE vf kept(const tutti_pixel_tile *t, bool last, int k, vf v)
{
    return last ? vf_gate(v, vf_load(t->lanes + k * VLEN)) : v;
}

/* ---- forward ---- */

/* The lanes' sums of 'count' pixels from p on, in registers. */
INLINE void add_values(const tutti_pixel_tile *t, int count, int p, sums *s)
{
    vf sum[TOGETHER][PARTS];
    EACH(j, count) EACH_PART(k) sum[j][k] = vf_zero();
    for (int b = 0; b < t->blocks; b++) {
        const float *x = t->x + (size_t)b * t->plane + p * B;
        EACH(j, count) EACH_PART(k) sum[j][k] = vf_add(sum[j][k], vf_load(x + j * B + k * VLEN));
    }
    EACH(j, count) EACH_PART(k) vf_store(s->lane + (p + j) * B + k * VLEN, sum[j][k]);
}

/* Two sums for each lane. */
typedef struct pair {
    vf first[TOGETHER][PARTS], second[TOGETHER][PARTS];
} pair;

INLINE pair no_pair(int count)
{
    pair s;
    EACH(j, count) EACH_PART(k) s.first[j][k] = s.second[j][k] = vf_zero();
    return s;
}

INLINE void put_pair(const pair *s, int count, int p, sums *first, sums *second)
{
    EACH(j, count) EACH_PART(k)
    {
        vf_store(first->lane + (p + j) * B + k * VLEN, s->first[j][k]);
        vf_store(second->lane + (p + j) * B + k * VLEN, s->second[j][k]);
    }
}

/* The same of their distances from 'high', and of the squares of these. */

INLINE void add_block(const tutti_pixel_tile *t, int count, int p, int b, bool last, pair *d)
{
    const float *x = t->x + (size_t)b * t->plane + p * B;
    EACH(j, count)
    {
        const vf middle = vf_set1(t->high[p + j]);
        FETCH_TILE(x + j * B);
        EACH_PART(k)
        {
            const vf away = kept(t, last, k, vf_sub(vf_load(x + j * B + k * VLEN), middle));
            d->first[j][k] = vf_add(d->first[j][k], away);
            d->second[j][k] = vf_fma(away, away, d->second[j][k]);
        }
    }
}

INLINE void add_distances(const tutti_pixel_tile *t, int count, int p, sums *sum, sums *square)
{
    pair d = no_pair(count);
    for (int b = 0; b < t->blocks - 1; b++) add_block(t, count, p, b, false, &d);
    add_block(t, count, p, t->blocks - 1, true, &d);
    put_pair(&d, count, p, sum, square);
}

/* What 'high' lacks of the mean, and the inverse. Squares that rounding made negative are 0, and
 * NaN stays. */
INLINE void complete(const tutti_pixel_tile *t, const float *distance, const float *square)
{
    const vf share = vf_set1(t->share);
    for (int p = 0; p < TILE; p += VLEN) {
        const vf sum = vf_load(distance + p), low = vf_mul(sum, share);
        const vf own = vf_sub(vf_load(square + p), vf_mul(low, sum));
        const vf variance = vf_fma(vf_max(vf_zero(), own), share, vf_set1(t->eps));
        vf_store(t->low + p, low);
        vf_store(t->inverse + p, vf_div(vf_set1(1.0f), vf_sqrt(variance)));
    }
}

INLINE void measure(const tutti_pixel_tile *t)
{
    sums distance, square;
    float total[TILE], squares[TILE];
    int p = 0;
    clear_rest(&distance, t->pixels), clear_rest(&square, t->pixels);
    for (; p + TOGETHER <= t->pixels; p += TOGETHER) add_values(t, TOGETHER, p, &distance);
    for (; p < t->pixels; p++) add_values(t, 1, p, &distance);
    joined(&distance, total);
    for (p = 0; p < TILE; p += VLEN)
        vf_store(t->high + p, vf_mul(vf_load(total + p), vf_set1(t->share)));
    for (p = 0; p + TOGETHER <= t->pixels; p += TOGETHER)
        add_distances(t, TOGETHER, p, &distance, &square);
    for (; p < t->pixels; p++) add_distances(t, 1, p, &distance, &square);
    joined(&distance, total);
    joined(&square, squares);
    complete(t, total, squares);
}

/* y = ((x - high) * inverse - low * inverse) * weight + bias */
INLINE void give_block(const tutti_pixel_tile *t, int b, bool last, const float *shift, bool stream)
{
    const float *x = t->x + (size_t)b * t->plane;
    const row16 weight = row_at(t->weight + b * B), bias = row_at(t->bias + b * B);
    float *y = t->y + (size_t)b * t->plane;
    for (int p = 0; p < t->pixels; p++) {
        const vf high = vf_set1(t->high[p]), inverse = vf_set1(t->inverse[p]);
        const vf by = vf_set1(shift[p]);
        EACH_PART(k)
        {
            const int i = p * B + k * VLEN;
            const vf away = vf_fma(vf_sub(vf_load(x + i), high), inverse, by);
            const vf v = vf_fma(away, weight.part[k], bias.part[k]);
            vf_put(y + i, kept(t, last, k, v), stream);
        }
    }
}

INLINE void set_shifts(const tutti_pixel_tile *t, float *shift)
{
    for (int p = 0; p < TILE; p += VLEN)
        vf_store(shift + p,
                 vf_sub(vf_zero(), vf_mul(vf_load(t->low + p), vf_load(t->inverse + p))));
}

INLINE void forward(const tutti_pixel_tile *t, bool stream)
{
    float shift[TILE];
    measure(t);
    set_shifts(t, shift);
    for (int b = 0; b < t->blocks - 1; b++) give_block(t, b, false, shift, stream);
    give_block(t, t->blocks - 1, true, shift, stream);
}

tutti_pixel_norm_fn NAME(op_pixel_norm);
void NAME(op_pixel_norm)(const tutti_pixel_tile *t, bool stream)
{
    if (stream) forward(t, true);
    else forward(t, false);
}

/* ---- backward ----
 *
 * With g = dy * weight and n = (x - mean) * inverse: dx = inverse * (g - mean of g - n * mean of
 * g n), the means being over channels. */

INLINE vf normal(vf x, vf high, vf inverse, vf shift)
{
    return vf_fma(vf_sub(x, high), inverse, shift);
}

INLINE void add_products(const tutti_pixel_tile *t, int count, int p, const float *shift,
                         sums *plain, sums *product)
{
    pair s = no_pair(count);
    for (int b = 0; b < t->blocks; b++) {
        const size_t at = (size_t)b * t->plane + (size_t)(p * B);
        const float *x = t->x + at, *dy = t->dy + at;
        const row16 weight = row_at(t->weight + b * B);
        EACH(j, count)
        {
            const vf high = vf_set1(t->high[p + j]), inverse = vf_set1(t->inverse[p + j]);
            FETCH_TILE(x + j * B);
            FETCH_TILE(dy + j * B);
            EACH_PART(k)
            {
                const int i = j * B + k * VLEN;
                const vf g = vf_mul(vf_load(dy + i), weight.part[k]);
                const vf n = normal(vf_load(x + i), high, inverse, vf_set1(shift[p + j]));
                s.first[j][k] = vf_add(s.first[j][k], g);
                s.second[j][k] = vf_fma(g, n, s.second[j][k]);
            }
        }
    }
    put_pair(&s, count, p, plain, product);
}

/* What is subtracted from g, in the form a + (x - high) * b. */
INLINE void average(const tutti_pixel_tile *t, const float *shift, float *plain, float *product)
{
    const vf share = vf_set1(t->share);
    for (int p = 0; p < TILE; p += VLEN) {
        const vf mean = vf_mul(vf_load(product + p), share);
        const vf constant = vf_mul(vf_load(plain + p), share);
        vf_store(plain + p, vf_fma(mean, vf_load(shift + p), constant));
        vf_store(product + p, vf_mul(mean, vf_load(t->inverse + p)));
    }
}

INLINE void give_gradient(const tutti_pixel_tile *t, int b, bool last, const float *plain,
                          const float *slope, bool gated, bool stream)
{
    const size_t at = (size_t)b * t->plane;
    const float *x = t->x + at, *dy = t->dy + at;
    const row16 weight = row_at(t->weight + b * B);
    for (int p = 0; p < t->pixels; p++) {
        const vf high = vf_set1(t->high[p]), inverse = vf_set1(t->inverse[p]);
        const vf mean = vf_set1(plain[p]), by = vf_set1(slope[p]);
        EACH_PART(k)
        {
            const int i = p * B + k * VLEN;
            const vf value = vf_load(x + i), less = vf_fma(vf_sub(value, high), by, mean);
            const vf sum = vf_fms(vf_load(dy + i), weight.part[k], less);
            const vf v = kept(t, last, k, vf_mul(inverse, sum));
            vf_put(t->y + at + i, gated ? vf_gate(v, value) : v, stream);
        }
    }
}

INLINE void backward(const tutti_pixel_tile *t, bool gated, bool stream)
{
    sums plain, product;
    float shift[TILE], mean[TILE], slope[TILE];
    int p = 0;
    set_shifts(t, shift);
    clear_rest(&plain, t->pixels), clear_rest(&product, t->pixels);
    for (; p + TOGETHER <= t->pixels; p += TOGETHER)
        add_products(t, TOGETHER, p, shift, &plain, &product);
    for (; p < t->pixels; p++) add_products(t, 1, p, shift, &plain, &product);
    joined(&plain, mean);
    joined(&product, slope);
    average(t, shift, mean, slope);
    for (int b = 0; b < t->blocks - 1; b++) give_gradient(t, b, false, mean, slope, gated, stream);
    give_gradient(t, t->blocks - 1, true, mean, slope, gated, stream);
}

tutti_pixel_norm_fn NAME(op_pixel_norm_backward);
void NAME(op_pixel_norm_backward)(const tutti_pixel_tile *t, bool stream)
{
    if (t->gated && stream) backward(t, true, true);
    else if (t->gated) backward(t, true, false);
    else if (stream) backward(t, false, true);
    else backward(t, false, false);
}
