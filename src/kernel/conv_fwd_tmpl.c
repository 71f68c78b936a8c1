/* The register tile of forward and backward-data.
 *
 * Per channel of x: one load for every vector of weights, one broadcast for every pixel, and pixels
 * x vectors multiply-adds, all accumulators in registers. What matters beyond the number of
 * accumulators is the number of loads: an Ice Lake server sustains 1.1 loads per cycle beside its
 * two multiply-adds, so that a tile of 14 pixels x 2 blocks (16 loads, 28 multiply-adds) reaches
 * 96 % of the peak, one of 6 x 4 (10 loads, 24) or 9 x 3 (12, 27) 100 %. AVX2 has registers for
 * 6 pixels x 1 block of two vectors.
 *
 * A tap that misses pixels at the edge of the image runs over the pixels it touches and leaves the
 * others alone, in the same loops and registers: 'lo' and 'hi' are constants after inlining. Every
 * width is its own function, so that no remainder wastes work. */
#include "kernel/conv_kernels.h"
#include "kernel/isa/isa.h"

/* A union is as large as the largest of its members, so these are of the largest tiles. */
#define BLOCKS_OF(nb, widest) char blocks_##nb[nb];
#define SIZE_OF(nb, widest)   char size_##nb[(nb) * (widest)];
enum {
    VECTORS = 16 / VLEN, /* of a block */
    MAX_BLOCKS = sizeof(union {CONV_TILES(BLOCKS_OF)}),
    ACCUMULATORS = sizeof(union {CONV_TILES(SIZE_OF)}) * VECTORS,
};

/* acc[pixel][vector] += x[pixel] * w[vector] for one channel of one tap. */
INLINE void channel(vf *acc, int nv, int lo, int hi, const float *x, long x_pixel, const float *w,
                    long w_output)
{
    vf wv[MAX_BLOCKS * VECTORS];
    UNROLL(16)
    for (int v = 0; v < nv; v++) {
        wv[v] = vf_load(w + v / VECTORS * w_output + v % VECTORS * VLEN);
        HOLD(wv[v]);
    }
    UNROLL(14)
    for (int p = lo; p < hi; p++) {
        vf xv = vf_set1(x[p * x_pixel]);
        HOLD(xv);
        UNROLL(16)
        for (int v = 0; v < nv; v++) acc[p * nv + v] = vf_fma(xv, wv[v], acc[p * nv + v]);
    }
}

INLINE void run(vf *acc, int nv, int lo, int hi, const float *x, long x_pixel, const float *w,
                long w_output, long channels)
{
    for (; channels; channels--, x++, w += 16) {
        FORGET(x); /* pixel p+1 now is pixel p 16 channels on: do not keep it till then */
        channel(acc, nv, lo, hi, x, x_pixel, w, w_output);
    }
}

/* One range of taps of a row of the kernel; dense ones are one run. */
INLINE void sum_range(vf *acc, const tutti_conv_range *range, const float **x, const float **w,
                      long w_output, int nv, int lo, int hi, long x_pixel, bool dense)
{
    for (int runs = range->runs; runs; runs--) {
        run(acc, nv, lo, hi, *x, x_pixel, *w, w_output, range->channels);
        *x += range->x;
        *w += range->w;
        if (dense) break;
    }
}

/* For row r of the kernel and one block of x. */
INLINE void fetch_next(const float *x, const tutti_conv_tile *t, int r, int width)
{
    if (!t->next.ahead || r < t->rows - t->next.rows) return;
    x += t->next.ahead;
    for (int i = width * t->next.pixels; i; i--, x += t->next.pixel) __builtin_prefetch(x, 0, 2);
}

/* The general sum: every range of taps. */
INLINE void sum_ranges(vf *acc, const tutti_conv_tile *t, const tutti_conv_segment *seg,
                       const float *x0, const float *w0, int nv, int width, bool dense)
{
    const tutti_conv_range *const all = &seg->ranges[TUTTI_CONV_CLIP];
    const long x_pixel = dense ? 16 : t->x_pixel;
    for (int b = 0; b < t->blocks; b++)
        for (int r = 0; r < t->rows; r++) {
            const float *x = x0 + b * t->x_block + r * t->x_row;
            const float *w = w0 + b * t->w_block + r * t->w_row;
            fetch_next(x, t, r, width);
            if (seg->left) UNROLL(4)
            for (int d = TUTTI_CONV_CLIP; d > 0; d--)
                if (d < width)
                    sum_range(acc, all - d, &x, &w, t->w_output, nv, d, width, x_pixel, dense);
            sum_range(acc, all, &x, &w, t->w_output, nv, 0, width, x_pixel, dense);
            if (seg->right) UNROLL(4)
            for (int d = 1; d <= TUTTI_CONV_CLIP; d++)
                if (d < width)
                    sum_range(acc, all + d, &x, &w, t->w_output, nv, 0, width - d, x_pixel, dense);
        }
}

/* The sum when each kernel row is one run of channels that touches all pixels. */
INLINE void sum_whole(vf *acc, const tutti_conv_tile *t, const tutti_conv_segment *seg,
                      const float *x, const float *w, int nv, int width)
{
    const int channels = seg->ranges[TUTTI_CONV_CLIP].channels;
    for (int b = 0; b < t->blocks; b++)
        for (int r = 0; r < t->rows; r++) {
            fetch_next(x + b * t->x_block + r * t->x_row, t, r, width);
            run(acc, nv, 0, width, x + b * t->x_block + r * t->x_row, t->x_pixel,
                w + b * t->w_block + r * t->w_row, t->w_output, channels);
        }
}

/* Pixels of one block of features, in y or in the mask. Nothing is known about the pointer, so that
 * no address is kept, at the expense of a register, over the sum. */
INLINE float *block_of(float *y, const tutti_conv_tile *t, int b)
{
    float *block = y + b * t->y_output;
    FORGET(block);
    return block;
}

INLINE void start(vf *acc, const tutti_conv_tile *t, float *y, int nb, int width)
{
    const int nv = nb * VECTORS;
    if (!t->resume) UNROLL(28)
    for (int i = 0; i < nv * width; i++) acc[i] = vf_zero();
    else UNROLL(4) for (int b = 0; b < nb; b++)
    {
        const float *block = block_of(y, t, b);
        UNROLL(14)
        for (int p = 0; p < width; p++, block += t->y_pixel) UNROLL(16)
        for (int v = 0; v < VECTORS; v++) acc[p * nv + b * VECTORS + v] = vf_load(block + v * VLEN);
    }
}

INLINE void finish(vf *acc, const tutti_conv_tile *t, float *mask, int nb, int width)
{
    const int nv = nb * VECTORS;
    if (t->bias) UNROLL(16)
    for (int v = 0; v < nv; v++) {
        const vf bias = vf_load(t->bias + v * VLEN);
        UNROLL(14)
        for (int p = 0; p < width; p++) acc[p * nv + v] = vf_add(acc[p * nv + v], bias);
    }
    if (t->relu) UNROLL(28)
    for (int i = 0; i < width * nv; i++) acc[i] = vf_max(vf_zero(), acc[i]);
    if (mask) UNROLL(4)
    for (int b = 0; b < nb; b++) {
        const float *block = block_of(mask, t, b);
        UNROLL(14)
        for (int p = 0; p < width; p++, block += t->y_pixel) UNROLL(16)
        for (int v = 0; v < VECTORS; v++) {
            vf *const a = &acc[p * nv + b * VECTORS + v];
            *a = vf_gate(*a, vf_load(block + v * VLEN));
        }
    }
}

INLINE void store(const vf *acc, const tutti_conv_tile *t, float *y, int nb, int width, bool stream)
{
    const int nv = nb * VECTORS;
    UNROLL(4)
    for (int b = 0; b < nb; b++) {
        float *block = block_of(y, t, b);
        UNROLL(14)
        for (int p = 0; p < width; p++, block += t->y_pixel) UNROLL(16)
        for (int v = 0; v < VECTORS; v++)
            vf_put(block + v * VLEN, acc[p * nv + b * VECTORS + v], stream);
    }
}

INLINE void run_tile(const tutti_conv_tile *t, const tutti_conv_segment *seg, const float *x,
                     const float *w, float *y, const float *mask, int nb, int width,
                     tutti_conv_kind kind)
{
    const int nv = nb * VECTORS;
    const tutti_conv_tile own = *t; /* nothing y could overlap */
    for (int i = 0; i < seg->tiles; i++) {
        vf acc[ACCUMULATORS];
        start(acc, &own, y, nb, width);
        if (kind == TUTTI_CONV_WHOLE) sum_whole(acc, &own, seg, x, w, nv, width);
        else sum_ranges(acc, &own, seg, x, w, nv, width, kind == TUTTI_CONV_DENSE);
        if (own.finish) finish(acc, &own, mask ? (float *)mask + i * seg->y_next : NULL, nb, width);
        if (own.stream) store(acc, &own, y, nb, width, true);
        else store(acc, &own, y, nb, width, false);
        x += seg->x_next;
        y += seg->y_next;
    }
}

/* A function per kind, blocks and width. */
#define TILE_OF(kind, nb, width)                                                            \
    static void tile_##kind##_##nb##_##width(const tutti_conv_tile *t,                      \
                                             const tutti_conv_segment *seg, const float *x, \
                                             const float *w, float *y, const float *mask)   \
    {                                                                                       \
        run_tile(t, seg, x, w, y, mask, nb, width, TUTTI_CONV_##kind);                      \
    }
#define TILE(nb, width)       \
    TILE_OF(ANY, nb, width)   \
    TILE_OF(DENSE, nb, width) \
    TILE_OF(WHOLE, nb, width)
#define ENTRY(nb, width)                                                       \
    [nb - 1][width - 1] = {tile_ANY_##nb##_##width, tile_DENSE_##nb##_##width, \
                           tile_WHOLE_##nb##_##width},

#define TILES_UP_TO(nb, widest)   UP_TO_##widest(TILE, nb)
#define ENTRIES_UP_TO(nb, widest) UP_TO_##widest(ENTRY, nb)
#define WIDEST(nb, widest)        [nb] = widest,

CONV_TILES(TILES_UP_TO)

static void transpose(float *restrict out, const float *restrict in)
{
    UNROLL(16)
    for (int i = 0; i < 16; i += VLEN) UNROLL(16)
    for (int j = 0; j < 16; j += VLEN) {
        vf v[VLEN];
        UNROLL(16)
        for (int l = 0; l < VLEN; l++) v[l] = vf_load(in + (i + l) * 16 + j);
        vf_transpose(v);
        UNROLL(16)
        for (int l = 0; l < VLEN; l++) vf_store(out + (j + l) * 16 + i, v[l]);
    }
}

extern const tutti_conv_tiles NAME(conv_tiles);
const tutti_conv_tiles NAME(conv_tiles) = {
    .vectors = VECTORS,
    .max_width = {CONV_TILES(WIDEST)},
    .tile = {CONV_TILES(ENTRIES_UP_TO)},
    .transpose = transpose,
};
