/* The register tile of backward-weights.
 *
 * Per pixel: one load for every vector of dy, one broadcast for every channel of x, and channels x
 * vectors multiply-adds. As in forward (conv_fwd_tmpl.c) several blocks share each broadcast,
 * because loads are the second limit. */
#include "kernel/conv_kernels.h"
#include "kernel/isa/isa.h"

/* A union is as large as the largest of its members, so these are of the largest tiles. */
#define BLOCKS_OF(nb, widest) char blocks_##nb[nb];
#define SIZE_OF(nb, widest)   char size_##nb[(nb) * (widest)];
enum {
    VECTORS = 16 / VLEN, /* of a block */
    MAX_BLOCKS = sizeof(union {CONV_GRADIENT_TILES(BLOCKS_OF)}),
    ACCUMULATORS = sizeof(union {CONV_GRADIENT_TILES(SIZE_OF)}) * VECTORS,
};

/* Where the first channel of block b is. Nothing is known about the pointer, so that no address
 * is kept, at the expense of a register, between the loads at the beginning and the stores at the
 * end. */
INLINE float *block_of(float *dw, long dw_output, int b)
{
    float *block = dw + b * dw_output;
    FORGET(block);
    return block;
}

/* acc[c][k] += x[row][col][c] * dy[row][col][k] */
INLINE void sum_pixels(vf *acc, const tutti_conv_gradient_piece *piece, int rows, int cols,
                       const float *x, const float *dy, long ahead, int nb, int width, bool fetches)
{
    const int nv = nb * VECTORS;
    const tutti_conv_gradient_piece own = *piece;
    for (; rows; rows--, x += own.x_row, dy += own.dy_row) {
        const float *xp = x, *dp = dy;
        for (int col = cols; col; col--, xp += own.x_pixel, dp += 16) {
            vf d[MAX_BLOCKS * VECTORS];
            if (fetches) __builtin_prefetch(dp + ahead, 0, 2);
            UNROLL(16)
            for (int v = 0; v < nv; v++) {
                d[v] = vf_load(dp + v / VECTORS * own.dy_output + v % VECTORS * VLEN);
                HOLD(d[v]);
            }
            UNROLL(12)
            for (int c = 0; c < width; c++) {
                vf xv = vf_set1(xp[c]);
                HOLD(xv);
                UNROLL(16)
                for (int v = 0; v < nv; v++) acc[c * nv + v] = vf_fma(xv, d[v], acc[c * nv + v]);
            }
        }
    }
}

INLINE void run_tile(const tutti_conv_gradient_piece *piece, int rows, int cols, const float *x,
                     const float *dy, float *dw, long ahead, int nb, int width)
{
    const int nv = nb * VECTORS;
    vf acc[ACCUMULATORS];
    if (piece->fresh) UNROLL(28)
    for (int i = 0; i < nv * width; i++) acc[i] = vf_zero();
    else UNROLL(4) for (int b = 0; b < nb; b++)
    {
        const float *block = block_of(dw, piece->dw_output, b);
        UNROLL(12)
        for (int c = 0; c < width; c++) UNROLL(16)
        for (int v = 0; v < VECTORS; v++)
            acc[c * nv + b * VECTORS + v] = vf_load(block + c * 16 + v * VLEN);
    }
    if (ahead) sum_pixels(acc, piece, rows, cols, x, dy, ahead, nb, width, true);
    else sum_pixels(acc, piece, rows, cols, x, dy, 0, nb, width, false);
    UNROLL(4)
    for (int b = 0; b < nb; b++) {
        float *block = block_of(dw, piece->dw_output, b);
        UNROLL(12)
        for (int c = 0; c < width; c++) UNROLL(16)
        for (int v = 0; v < VECTORS; v++)
            vf_store(block + c * 16 + v * VLEN, acc[c * nv + b * VECTORS + v]);
    }
}

#define TILE(nb, width)                                                                         \
    static void tile_##nb##_##width(const tutti_conv_gradient_piece *piece, int rows, int cols, \
                                    const float *x, const float *dy, float *dw, long ahead)     \
    {                                                                                           \
        run_tile(piece, rows, cols, x, dy, dw, ahead, nb, width);                               \
    }
#define ENTRY(nb, width) [nb - 1][width - 1] = tile_##nb##_##width,

#define TILES_UP_TO(nb, widest)   UP_TO_##widest(TILE, nb)
#define ENTRIES_UP_TO(nb, widest) UP_TO_##widest(ENTRY, nb)
#define WIDEST(nb, widest)        [nb] = widest,

CONV_GRADIENT_TILES(TILES_UP_TO)

/* Every vector is a chain of its own; several together hide the latency of the additions. */
INLINE void sum_bias(const tutti_conv_gradient_piece *piece, int nv, int rows, int cols,
                     const float *dy, float *db)
{
    vf acc[4 * VECTORS];
    UNROLL(16)
    for (int v = 0; v < nv; v++) acc[v] = vf_load(db + v * VLEN);
    for (; rows; rows--, dy += piece->dy_row) {
        const float *dp = dy;
        for (int col = cols; col; col--, dp += 16) UNROLL(16)
        for (int v = 0; v < nv; v++)
            acc[v] =
                vf_add(acc[v], vf_load(dp + v / VECTORS * piece->dy_output + v % VECTORS * VLEN));
    }
    UNROLL(16)
    for (int v = 0; v < nv; v++) vf_store(db + v * VLEN, acc[v]);
}

static void bias(const tutti_conv_gradient_piece *piece, int nblocks, int rows, int cols,
                 const float *dy, float *db)
{
    for (; nblocks > 0; nblocks -= 4, db += 64, dy += 4 * piece->dy_output)
        if (nblocks >= 4) sum_bias(piece, 4 * VECTORS, rows, cols, dy, db);
        else if (nblocks == 3) sum_bias(piece, 3 * VECTORS, rows, cols, dy, db);
        else if (nblocks == 2) sum_bias(piece, 2 * VECTORS, rows, cols, dy, db);
        else sum_bias(piece, VECTORS, rows, cols, dy, db);
}

static void join(float *restrict to, const float *restrict from, long floats)
{
    for (long i = 0; i < floats; i += 16) UNROLL(16)
    for (int v = 0; v < 16; v += VLEN)
        vf_store(to + i + v, vf_add(vf_load(to + i + v), vf_load(from + i + v)));
}

extern const tutti_conv_gradient_tiles NAME(conv_gradient_tiles);
const tutti_conv_gradient_tiles NAME(conv_gradient_tiles) = {
    .vectors = VECTORS,
    .max_width = {CONV_GRADIENT_TILES(WIDEST)},
    .tile = {CONV_GRADIENT_TILES(ENTRIES_UP_TO)},
    .bias = bias,
    .join = join,
};
