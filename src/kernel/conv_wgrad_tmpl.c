/* The register tile of backward-weights.
 *
 * Per pixel: one load for every vector of dy, one broadcast for every channel of x, and channels x
 * vectors multiply-adds. As in forward (conv_fwd_tmpl.c) several blocks share each broadcast,
 * because loads are the second limit. */
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

INLINE void run_tile(const tutti_conv_gradient_tile *t, int nv, int width)
{
    vf acc[ACCUMULATORS];
    UNROLL(12)
    for (int c = 0; c < width; c++) UNROLL(16)
    for (int v = 0; v < nv; v++)
        acc[c * nv + v] = vf_load(t->dw + v / VECTORS * t->dw_output + c * 16 + v % VECTORS * VLEN);
    for (int row = 0; row < t->rows; row++) {
        const float *x = t->x + row * t->x_row, *dy = t->dy + row * t->dy_row;
        for (int col = t->cols; col; col--, x += t->x_pixel, dy += 16) {
            vf d[MAX_BLOCKS * VECTORS];
            UNROLL(16)
            for (int v = 0; v < nv; v++) {
                d[v] = vf_load(dy + v / VECTORS * t->dy_output + v % VECTORS * VLEN);
                IN_REGISTER(d[v]);
            }
            UNROLL(12)
            for (int c = 0; c < width; c++) {
                vf xv = vf_set1(x[c]);
                IN_REGISTER(xv);
                UNROLL(16)
                for (int v = 0; v < nv; v++) acc[c * nv + v] = vf_fma(xv, d[v], acc[c * nv + v]);
            }
        }
    }
    UNROLL(12)
    for (int c = 0; c < width; c++) UNROLL(16)
    for (int v = 0; v < nv; v++)
        vf_store(t->dw + v / VECTORS * t->dw_output + c * 16 + v % VECTORS * VLEN, acc[c * nv + v]);
}

#define TILE(nb, width)                                                \
    static void tile_##nb##_##width(const tutti_conv_gradient_tile *t) \
    {                                                                  \
        run_tile(t, nb *VECTORS, width);                               \
    }
#define ENTRY(nb, width) [nb - 1][width - 1] = tile_##nb##_##width,

// clang-format off
#define UP_TO_1(X, nb) X(nb, 1)
#define UP_TO_6(X, nb) UP_TO_1(X, nb) X(nb, 2) X(nb, 3) X(nb, 4) X(nb, 5) X(nb, 6)
#define UP_TO_9(X, nb) UP_TO_6(X, nb) X(nb, 7) X(nb, 8) X(nb, 9)
#define UP_TO_12(X, nb) UP_TO_9(X, nb) X(nb, 10) X(nb, 11) X(nb, 12)
#if VLEN == 1
#define ALL(X) UP_TO_1(X, 1)
#elif NREG < 32
#define ALL(X) UP_TO_6(X, 1)
#else
#define ALL(X) UP_TO_12(X, 1) UP_TO_12(X, 2) UP_TO_9(X, 3) UP_TO_6(X, 4)
#endif
ALL(TILE)
// clang-format on

typedef void tile_fn(const tutti_conv_gradient_tile *t);
static tile_fn *const tiles[MAX_BLOCKS][MAX_WIDTH] = {ALL(ENTRY)};

static void tile(const tutti_conv_gradient_tile *t)
{
    tiles[t->nblocks - 1][t->width - 1](t);
}

/* Every vector is a chain of its own; several together hide the latency of the additions. */
INLINE void sum_bias(const tutti_conv_gradient_tile *t, int nv, float *db)
{
    vf acc[4 * VECTORS];
    UNROLL(16)
    for (int v = 0; v < nv; v++) acc[v] = vf_load(db + v * VLEN);
    for (int row = 0; row < t->rows; row++) {
        const float *dy = t->dy + row * t->dy_row;
        for (int col = t->cols; col; col--, dy += 16) UNROLL(16)
        for (int v = 0; v < nv; v++)
            acc[v] = vf_add(acc[v], vf_load(dy + v / VECTORS * t->dy_output + v % VECTORS * VLEN));
    }
    UNROLL(16)
    for (int v = 0; v < nv; v++) vf_store(db + v * VLEN, acc[v]);
}

static void bias(const tutti_conv_gradient_tile *t, float *db)
{
    tutti_conv_gradient_tile part = *t;
    for (int left = t->nblocks; left > 0; left -= 4, db += 64, part.dy += 4 * t->dy_output)
        if (left >= 4) sum_bias(&part, 4 * VECTORS, db);
        else if (left == 3) sum_bias(&part, 3 * VECTORS, db);
        else if (left == 2) sum_bias(&part, 2 * VECTORS, db);
        else sum_bias(&part, VECTORS, db);
}

extern const tutti_conv_gradient_tiles NAME(conv_gradient_tiles);
const tutti_conv_gradient_tiles NAME(conv_gradient_tiles) = {
    .vectors = VECTORS,
#if NREG >= 32
    .max_width = {0, 12, 12, 9, 6},
#else
    .max_width = {0, MAX_WIDTH},
#endif
    .tile = tile,
    .bias = bias,
};
