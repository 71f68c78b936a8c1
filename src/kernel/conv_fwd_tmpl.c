/* The register tile of forward and backward-data.
 *
 * Per channel of x: one load for every vector of weights, one broadcast for every pixel, and
 * pixels x vectors multiply-adds, all accumulators in registers. What matters beyond the number of
 * accumulators is the number of loads: an Ice Lake server sustains 1.1 loads a cycle beside its two
 * multiply-adds, so that a tile of 14 pixels x 2 blocks (16 loads, 28 multiply-adds) ends at 96 %
 * of the peak, and one of 6 x 4 (10 loads, 24) or 9 x 3 (12, 27) at 100 %. AVX2 has registers for
 * 6 pixels x 1 block of two vectors.
 *
 * A tap that misses pixels at the edge of the image runs over the pixels it touches and leaves the
 * others alone, in the same loops and registers: 'lo' and 'hi' are constants after inlining. Every
 * width is its own function, so that no remainder wastes work. */
#include "kernel/conv_kernels.h"
#include "kernel/isa/isa.h"

enum {
    VECTORS = 16 / VLEN, /* of a block */
    MAX_BLOCKS = NREG >= 32 ? 4 : 1,
    ACCUMULATORS = NREG >= 32 ? 28
                   : VLEN > 1 ? 12
                              : 16,
    MAX_WIDTH = NREG >= 32 ? 14
                : VLEN > 1 ? 6
                           : 1,
};

/* How a tile's taps look: anything; whole blocks at stride and dilation 1; one run of channels
 * for each row of the kernel. */
enum { ANY, DENSE, RUNS, KINDS };

/* acc[pixel][vector] += x[pixel] * w[vector] for one channel of one tap. */
INLINE void channel(vf *acc, int nv, int lo, int hi, const float *x, long x_pixel, const float *w,
                    long w_output)
{
    vf wv[MAX_BLOCKS * VECTORS];
    UNROLL(16)
    for (int v = 0; v < nv; v++) {
        wv[v] = vf_load(w + v / VECTORS * w_output + v % VECTORS * VLEN);
        IN_REGISTER(wv[v]);
    }
    UNROLL(12)
    for (int p = lo; p < hi; p++) {
        vf xv = vf_set1(x[p * x_pixel]);
        IN_REGISTER(xv);
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

/* The taps of one range, one by one; 'dense' ones are one run of channels, in x as in w. */
INLINE void taps(vf *acc, const tutti_conv_tile *t, int nv, int lo, int hi, int count,
                 const float **x, const float **w, bool dense)
{
    if (dense) {
        const long channels = count * 16L;
        run(acc, nv, lo, hi, *x, 16, *w, t->w_output, channels);
        *x += channels;
        *w += channels * 16;
        return;
    }
    for (; count; count--) {
        run(acc, nv, lo, hi, *x, t->x_pixel, *w, t->w_output, t->channels);
        *x += t->x_tap;
        *w += t->w_tap;
    }
}

/* The general sum: every range of taps. */
INLINE void sum_ranges(vf *acc, const tutti_conv_tile *t, int nv, int width, bool dense)
{
    for (int b = 0; b < t->blocks; b++)
        for (int r = 0; r < t->rows; r++) {
            const float *x = t->x + b * t->x_block + r * t->x_row;
            const float *w = t->w + b * t->w_block + r * t->w_row;
            UNROLL(5)
            for (int d = -TUTTI_CONV_CLIP; d <= TUTTI_CONV_CLIP; d++) {
                const int lo = d < 0 ? -d : 0, hi = d > 0 ? width - d : width;
                if (hi > lo) taps(acc, t, nv, lo, hi, t->taps[TUTTI_CONV_CLIP + d], &x, &w, dense);
            }
        }
}

/* The sum when each kernel row is one run of channels that touches all pixels. */
INLINE void sum_runs(vf *acc, const tutti_conv_tile *t, int nv, int width)
{
    const tutti_conv_tile own = *t;
    for (int b = 0; b < own.blocks; b++)
        for (int r = 0; r < own.rows; r++)
            run(acc, nv, 0, width, own.x + b * own.x_block + r * own.x_row, own.x_pixel,
                own.w + b * own.w_block + r * own.w_row, own.w_output, own.channels);
}

/* Floats from the tile's first to vector v of pixel p. */
INLINE long at(const tutti_conv_tile *t, int p, int v)
{
    return p * t->y_pixel + v / VECTORS * t->y_output + v % VECTORS * VLEN;
}

INLINE void start(vf *acc, const tutti_conv_tile *t, int nv, int width)
{
    const tutti_conv_tile own = *t; /* nothing y could overlap */
    UNROLL(12)
    for (int p = 0; p < width; p++) UNROLL(16)
    for (int v = 0; v < nv; v++)
        acc[p * nv + v] = own.resume ? vf_load(own.y + at(&own, p, v)) : vf_zero();
}

INLINE void finish(vf *acc, const tutti_conv_tile *t, int nv, int width)
{
    if (t->bias) UNROLL(16)
    for (int v = 0; v < nv; v++) {
        const vf bias = vf_load(t->bias + v * VLEN);
        UNROLL(12)
        for (int p = 0; p < width; p++) acc[p * nv + v] = vf_add(acc[p * nv + v], bias);
    }
    if (t->relu) UNROLL(28)
    for (int i = 0; i < width * nv; i++) acc[i] = vf_max(vf_zero(), acc[i]);
    if (t->mask) UNROLL(12)
    for (int p = 0; p < width; p++) UNROLL(16)
    for (int v = 0; v < nv; v++)
        acc[p * nv + v] = vf_gate(acc[p * nv + v], vf_load(t->mask + at(t, p, v)));
}

INLINE void run_tile(const tutti_conv_tile *t, int nv, int width, int kind)
{
    vf acc[ACCUMULATORS];
    start(acc, t, nv, width);
    if (kind == RUNS) sum_runs(acc, t, nv, width);
    else sum_ranges(acc, t, nv, width, kind == DENSE);
    if (t->finish) finish(acc, t, nv, width);
    const tutti_conv_tile own = *t;
    UNROLL(12)
    for (int p = 0; p < width; p++) UNROLL(16)
    for (int v = 0; v < nv; v++) vf_store(own.y + at(&own, p, v), acc[p * nv + v]);
}

/* Three functions per (blocks, width). */
#define TILE(nb, width)                                        \
    static void any_##nb##_##width(const tutti_conv_tile *t)   \
    {                                                          \
        run_tile(t, nb *VECTORS, width, ANY);                  \
    }                                                          \
    static void dense_##nb##_##width(const tutti_conv_tile *t) \
    {                                                          \
        run_tile(t, nb *VECTORS, width, DENSE);                \
    }                                                          \
    static void runs_##nb##_##width(const tutti_conv_tile *t)  \
    {                                                          \
        run_tile(t, nb *VECTORS, width, RUNS);                 \
    }
#define ENTRY(nb, width) \
    [nb - 1][width - 1] = {any_##nb##_##width, dense_##nb##_##width, runs_##nb##_##width},

// clang-format off
#define UP_TO_1(X, nb) X(nb, 1)
#define UP_TO_6(X, nb) UP_TO_1(X, nb) X(nb, 2) X(nb, 3) X(nb, 4) X(nb, 5) X(nb, 6)
#define UP_TO_8(X, nb) UP_TO_6(X, nb) X(nb, 7) X(nb, 8)
#define UP_TO_9(X, nb) UP_TO_8(X, nb) X(nb, 9)
#define UP_TO_12(X, nb) UP_TO_9(X, nb) X(nb, 10) X(nb, 11) X(nb, 12)
#if VLEN == 1
#define ALL(X) UP_TO_1(X, 1)
#elif NREG < 32
#define ALL(X) UP_TO_6(X, 1)
#else
#define ALL(X) UP_TO_8(X, 1) UP_TO_12(X, 2) UP_TO_9(X, 3) UP_TO_6(X, 4)
#endif
ALL(TILE)
// clang-format on

typedef void tile_fn(const tutti_conv_tile *t);
static tile_fn *const tiles[MAX_BLOCKS][MAX_WIDTH][KINDS] = {ALL(ENTRY)};

static int kind_of(const tutti_conv_tile *t)
{
    if (t->x_pixel == 16 && t->x_tap == 16 && t->channels == 16 && t->w_tap == 256) return DENSE;
    for (int i = 0; i < TUTTI_CONV_RANGES; i++)
        if (t->taps[i] != (i == TUTTI_CONV_CLIP)) return ANY;
    return RUNS;
}

static void tile(const tutti_conv_tile *t)
{
    tiles[t->nblocks - 1][t->width - 1][kind_of(t)](t);
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

static void stream_end(void)
{
    vf_stream_end();
}

extern const tutti_conv_tiles NAME(conv_tiles);
const tutti_conv_tiles NAME(conv_tiles) = {
    .vectors = VECTORS,
#if NREG >= 32
    .max_width = {0, 8, 12, 9, 6},
#else
    .max_width = {0, MAX_WIDTH},
#endif
    .tile = tile,
    .transpose = transpose,
    .stream_end = stream_end,
};
