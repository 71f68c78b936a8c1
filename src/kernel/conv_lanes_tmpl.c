/* The register tiles of narrow groups: groups of 1 (depthwise), 2, 4 or 8 channels that have as
 * many features, so that several groups share a block of 16 and every feature reads channels of
 * its own block only.
 *
 * A lane of y is a feature, and its channels lie in the lanes of its group. So instead of a
 * scalar that all lanes share, a multiply-add takes x's block with channel j of each group spread
 * over the group's lanes: the vector itself where a group is one channel. Weights are
 * [r][s][j][16 k] for each block: one vector for each tap and channel, shared by all pixels of
 * the tile.
 *
 * Forward and backward-data: per tap and channel of the group one vector of weights, and for each
 * pixel one load (with its permutation) and one multiply-add; taps that miss pixels as in
 * conv_fwd_tmpl.c. Backward-weights: for each pixel of dy, each tap and channel of the group one
 * load of x and one multiply-add, the sums of several taps of a kernel row in registers. */
#include "kernel/conv_kernels.h"
#include "kernel/isa/isa.h"

/* A union is as large as the largest of its members, so these are of the largest tiles. */
#define WIDTH_OF(nb, widest)    char width_##nb[widest];
#define TAPS_OF(channels, most) char taps_##channels[(channels) * (most)];
enum {
    VECTORS = 16 / VLEN, /* of a block */
    WIDEST = sizeof(union {LANES_TILES(WIDTH_OF)}),
    SUMS = sizeof(union {LANES_GRADIENT_TILES(TAPS_OF)})
};

/* Vector 'v' of the block, each lane that of channel j of its group. */
INLINE vf spread(const float *block, int v, int channels, int j)
{
    const float *const x = block + v * VLEN;
    if (channels == 1) return vf_load(x);
    return vf_spread(x, vs_of(v * VLEN, channels, j));
}

/* ---- forward and backward-data ---- */

/* acc += x * w for one tap, of pixels lo .. hi-1. */
INLINE void tap(vf *acc, int channels, int lo, int hi, const float *x, long x_pixel, const float *w)
{
    UNROLL(8)
    for (int j = 0; j < channels; j++) UNROLL(16)
    for (int v = 0; v < VECTORS; v++) {
        vf wv = vf_load(w + j * 16 + v * VLEN);
        HOLD(wv);
        UNROLL(14)
        for (int p = lo; p < hi; p++)
            acc[p * VECTORS + v] =
                vf_fma(spread(x + p * x_pixel, v, channels, j), wv, acc[p * VECTORS + v]);
    }
}

INLINE void sum_range(vf *acc, const tutti_conv_range *range, const float **x, const float **w,
                      int channels, int lo, int hi, long x_pixel)
{
    for (int runs = range->runs; runs; runs--) {
        tap(acc, channels, lo, hi, *x, x_pixel, *w);
        *x += range->x;
        *w += range->w;
    }
}

INLINE void sum_taps(vf *acc, const tutti_conv_tile *t, const tutti_conv_segment *seg,
                     const float *x0, const float *w0, int channels, int width, long x_pixel)
{
    const tutti_conv_range *const all = &seg->ranges[TUTTI_CONV_CLIP];
    for (int r = 0; r < t->rows; r++) {
        const float *x = x0 + r * t->x_row, *w = w0 + r * t->w_row;
        if (seg->left) UNROLL(4)
        for (int d = TUTTI_CONV_CLIP; d > 0; d--)
            if (d < width) sum_range(acc, all - d, &x, &w, channels, d, width, x_pixel);
        sum_range(acc, all, &x, &w, channels, 0, width, x_pixel);
        if (seg->right) UNROLL(4)
        for (int d = 1; d <= TUTTI_CONV_CLIP; d++)
            if (d < width) sum_range(acc, all + d, &x, &w, channels, 0, width - d, x_pixel);
    }
}

INLINE vf finished(vf sum, const tutti_conv_tile *t, const float *mask, int v)
{
    if (t->bias) sum = vf_add(sum, vf_load(t->bias + v * VLEN));
    if (t->relu) sum = vf_max(vf_zero(), sum);
    return mask ? vf_gate(sum, vf_load(mask + v * VLEN)) : sum;
}

INLINE void finish(const vf *acc, const tutti_conv_tile *t, float *y, const float *mask, int width,
                   bool stream)
{
    UNROLL(14)
    for (int p = 0; p < width; p++) UNROLL(16)
    for (int v = 0; v < VECTORS; v++)
        vf_put(y + p * t->y_pixel + v * VLEN,
               finished(acc[p * VECTORS + v], t, mask ? mask + p * t->y_pixel : NULL, v), stream);
}

INLINE void run_tile(const tutti_conv_tile *t, const tutti_conv_segment *seg, const float *x,
                     const float *w, float *y, const float *mask, int channels, int width)
{
    const tutti_conv_tile own = *t; /* nothing y could overlap */
    for (int i = 0; i < seg->tiles; i++) {
        vf acc[WIDEST * VECTORS];
        UNROLL(28)
        for (int a = 0; a < width * VECTORS; a++) acc[a] = vf_zero();
        if (own.x_pixel == 16) sum_taps(acc, &own, seg, x, w, channels, width, 16);
        else sum_taps(acc, &own, seg, x, w, channels, width, own.x_pixel);
        if (own.stream) finish(acc, &own, y, mask, width, true);
        else finish(acc, &own, y, mask, width, false);
        x += seg->x_next;
        y += seg->y_next;
        if (mask) mask += seg->y_next;
    }
}

/* A function per channels of a group and width. */
#define TILE(channels, width)                                                                      \
    static void tile_##channels##_##width(const tutti_conv_tile *t, const tutti_conv_segment *seg, \
                                          const float *x, const float *w, float *y,                \
                                          const float *mask)                                       \
    {                                                                                              \
        run_tile(t, seg, x, w, y, mask, channels, width);                                          \
    }
#define ENTRY(channels, width) \
    [width - 1] = {tile_##channels##_##width, tile_##channels##_##width, tile_##channels##_##width},
#define WIDEST_OF(nb, widest) [nb] = widest,

#define TILES_OF_1(nb, widest)   UP_TO_##widest(TILE, 1)
#define TILES_OF_2(nb, widest)   UP_TO_##widest(TILE, 2)
#define TILES_OF_4(nb, widest)   UP_TO_##widest(TILE, 4)
#define TILES_OF_8(nb, widest)   UP_TO_##widest(TILE, 8)
#define ENTRIES_OF_1(nb, widest) UP_TO_##widest(ENTRY, 1)
#define ENTRIES_OF_2(nb, widest) UP_TO_##widest(ENTRY, 2)
#define ENTRIES_OF_4(nb, widest) UP_TO_##widest(ENTRY, 4)
#define ENTRIES_OF_8(nb, widest) UP_TO_##widest(ENTRY, 8)

LANES_TILES(TILES_OF_1)
LANES_TILES(TILES_OF_2)
LANES_TILES(TILES_OF_4)
LANES_TILES(TILES_OF_8)

/* ---- backward-data's weights ---- */

/* A tap's [channel][16 features] to [feature][16 channels], within each group. */
INLINE void turn(float *restrict out, const float *restrict in, int channels)
{
    for (int j = 0; j < channels; j++)
        for (int l = 0; l < 16; l++)
            out[j * 16 + l] = in[l % channels * 16 + l / channels * channels + j];
}

/* ---- backward-weights ---- */

/* One pixel of dy; where 'clipped', for the taps that touch it. */
INLINE void add_pixel(vf *acc, const tutti_conv_lanes_piece *piece, const float *x, const float *dy,
                      int col, int v, int channels, int taps, bool clipped)
{
    const vf d = vf_load(dy + (long)col * 16 + v * VLEN);
    const float *const at = x + col * piece->x_pixel;
    UNROLL(8)
    for (int s = 0; s < taps; s++)
        if (!clipped || (col >= piece->begin[s] && col < piece->end[s])) UNROLL(8)
    for (int j = 0; j < channels; j++)
        acc[s * channels + j] =
            vf_fma(spread(at + s * piece->x_tap, v, channels, j), d, acc[s * channels + j]);
}

INLINE void sum_rows(vf *acc, const tutti_conv_lanes_piece *piece, int rows, const float *x,
                     const float *dy, int v, int channels, int taps)
{
    const tutti_conv_lanes_piece own = *piece;
    for (; rows; rows--, x += own.x_row, dy += own.dy_row) {
        int col = own.first;
        for (; col < own.whole_begin; col++)
            add_pixel(acc, piece, x, dy, col, v, channels, taps, true);
        for (; col < own.whole_end; col++)
            add_pixel(acc, &own, x, dy, col, v, channels, taps, false);
        for (; col < own.last; col++) add_pixel(acc, piece, x, dy, col, v, channels, taps, true);
    }
}

INLINE void run_gradient(const tutti_conv_lanes_piece *piece, int rows, const float *x,
                         const float *dy, float *dw, int channels, int taps)
{
    for (int v = 0; v < VECTORS; v++) {
        vf acc[SUMS];
        UNROLL(32)
        for (int i = 0; i < taps * channels; i++) acc[i] = vf_load(dw + i * 16 + v * VLEN);
        sum_rows(acc, piece, rows, x, dy, v, channels, taps);
        UNROLL(32)
        for (int i = 0; i < taps * channels; i++) vf_store(dw + i * 16 + v * VLEN, acc[i]);
    }
}

#define GRADIENT(channels, taps)                                                            \
    static void gradient_##channels##_##taps(const tutti_conv_lanes_piece *piece, int rows, \
                                             const float *x, const float *dy, float *dw)    \
    {                                                                                       \
        run_gradient(piece, rows, x, dy, dw, channels, taps);                               \
    }
#define GRADIENT_ENTRY(channels, taps)  [taps - 1] = gradient_##channels##_##taps,
#define GRADIENTS_UP_TO(channels, most) UP_TO_##most(GRADIENT, channels)

LANES_GRADIENT_TILES(GRADIENTS_UP_TO)

/* ---- the table ---- */

#define TABLE(channels, most)                                                  \
    static void turn_##channels(float *restrict out, const float *restrict in) \
    {                                                                          \
        turn(out, in, channels);                                               \
    }                                                                          \
    static const tutti_conv_tiles tiles_##channels = {                         \
        .vectors = VECTORS,                                                    \
        .max_width = {LANES_TILES(WIDEST_OF)},                                 \
        .tile = {{LANES_TILES(ENTRIES_OF_##channels)}},                        \
        .transpose = turn_##channels,                                          \
    };
LANES_GRADIENT_TILES(TABLE)

#define LANES(channels, most) \
    {channels, &tiles_##channels, most, {UP_TO_##most(GRADIENT_ENTRY, channels)}},

extern const tutti_conv_lanes NAME(conv_lanes)[];
const tutti_conv_lanes NAME(conv_lanes)[] = {LANES_GRADIENT_TILES(LANES){0}};
