/* The register tile of forward and backward-data.
 *
 * Per channel of x: one load for every vector of weights, one broadcast for every pixel, and
 * pixels x vectors multiply-adds, all accumulators in registers. AVX-512 holds 2 blocks x 14
 * pixels = 28 accumulators: 16 loads feed 28 multiply-adds. AVX2 holds one block (two vectors) x 6
 * pixels = 12: 8 loads feed 12.
 *
 * A tap that misses pixels at the edge of the image runs over the pixels it touches and leaves the
 * others alone, in the same loops and registers: 'lo' and 'hi' are constants after inlining. Every
 * width is its own function, so that no remainder wastes work. */
#include "kernel/conv_kernels.h"
#include "kernel/isa/isa.h"

enum {
    VECTORS = 16 / VLEN, /* of a block */
    MAX_BLOCKS = NREG >= 32 ? 2 : 1,
    MAX_PIXELS = VLEN == 1    ? 1
                 : NREG >= 32 ? 14
                              : 6,
};

/* acc[pixel][vector] += x[pixel] * w[vector] over the channels of one tap. */
INLINE void tap(vf *acc, int nv, int lo, int hi, const float *x, long x_pixel, const float *w,
                long w_output, int channels)
{
    for (int c = 0; c < channels; c++) {
        vf wv[MAX_BLOCKS * VECTORS];
        UNROLL(16)
        for (int v = 0; v < nv; v++)
            wv[v] = vf_load(w + v / VECTORS * w_output + v % VECTORS * VLEN + c * 16L);
        UNROLL(14)
        for (int p = lo; p < hi; p++) {
            const vf xv = vf_set1(x[p * x_pixel + c]);
            UNROLL(16)
            for (int v = 0; v < nv; v++) acc[p * nv + v] = vf_fma(xv, wv[v], acc[p * nv + v]);
        }
    }
}

INLINE void sum_tile(vf *acc, const tutti_conv_tile *t, int nv, int width, int clip, long x_pixel)
{
    for (int b = 0; b < t->blocks; b++)
        for (int r = 0; r < t->rows; r++) {
            const float *x = t->x + b * t->x_block + r * t->x_row;
            const float *w = t->w + b * t->w_block + r * t->w_row;
            UNROLL(5)
            for (int d = -clip; d <= clip; d++) {
                const int lo = d < 0 ? -d : 0, hi = d > 0 ? width - d : width;
                if (hi <= lo) continue;
                for (int s = t->taps[TUTTI_CONV_CLIP + d]; s; s--) {
                    tap(acc, nv, lo, hi, x, x_pixel, w, t->w_output, t->channels);
                    x += t->x_tap;
                    w += t->w_tap;
                }
            }
        }
}

INLINE vf finished(vf sum, const tutti_conv_tile *t, int v, const float *mask)
{
    if (t->bias) sum = vf_add(sum, vf_load(t->bias + v * VLEN));
    if (t->relu) sum = vf_max(vf_zero(), sum);
    if (mask) sum = vf_gate(sum, vf_load(mask));
    return sum;
}

INLINE void run_tile(const tutti_conv_tile *t, int nv, int width, int clip, long x_pixel)
{
    vf acc[MAX_PIXELS * MAX_BLOCKS * VECTORS];
    UNROLL(14)
    for (int p = 0; p < width; p++) UNROLL(16)
    for (int v = 0; v < nv; v++)
        acc[p * nv + v] =
            t->resume
                ? vf_load(t->y + p * t->y_pixel + v / VECTORS * t->y_output + v % VECTORS * VLEN)
                : vf_zero();
    sum_tile(acc, t, nv, width, clip, x_pixel);
    UNROLL(14)
    for (int p = 0; p < width; p++) UNROLL(16)
    for (int v = 0; v < nv; v++) {
        const long at = p * t->y_pixel + v / VECTORS * t->y_output + v % VECTORS * VLEN;
        vf sum = acc[p * nv + v];
        if (t->finish) sum = finished(sum, t, v, t->mask ? t->mask + at : 0);
        vf_store(t->y + at, sum);
    }
}

/* One function per (blocks, width, clip), with the pixels of x 16 floats apart (the blocked layout
 * at stride 1) or at any distance. */
#define TILE(nb, width, clip)                                            \
    static void tile_##nb##_##width##_##clip(const tutti_conv_tile *t)   \
    {                                                                    \
        if (t->x_pixel == 16) run_tile(t, nb *VECTORS, width, clip, 16); \
        else run_tile(t, nb *VECTORS, width, clip, t->x_pixel);          \
    }
#define TILES(nb, width) TILE(nb, width, 0) TILE(nb, width, 1) TILE(nb, width, 2)
#define ENTRY(nb, width) \
    {tile_##nb##_##width##_0, tile_##nb##_##width##_1, tile_##nb##_##width##_2},

// clang-format off
#if VLEN == 1
#define WIDTHS(X, nb) X(nb, 1)
#elif NREG < 32
#define WIDTHS(X, nb) X(nb, 1) X(nb, 2) X(nb, 3) X(nb, 4) X(nb, 5) X(nb, 6)
#else
#define WIDTHS(X, nb) X(nb, 1) X(nb, 2) X(nb, 3) X(nb, 4) X(nb, 5) X(nb, 6) X(nb, 7) \
    X(nb, 8) X(nb, 9) X(nb, 10) X(nb, 11) X(nb, 12) X(nb, 13) X(nb, 14)
#endif

WIDTHS(TILES, 1)
#if NREG >= 32
WIDTHS(TILES, 2)
#endif
// clang-format on

typedef void tile_fn(const tutti_conv_tile *t);
static tile_fn *const tiles[MAX_BLOCKS][MAX_PIXELS][TUTTI_CONV_CLIP + 1] = {
    {WIDTHS(ENTRY, 1)},
#if NREG >= 32
    {WIDTHS(ENTRY, 2)},
#endif
};

static void tile(const tutti_conv_tile *t)
{
    tiles[t->nblocks - 1][t->width - 1][t->clip](t);
}

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
    .max_pixels = MAX_PIXELS,
    .max_blocks = MAX_BLOCKS,
    .tile = tile,
    .transpose = transpose,
};
