/* Backward-weights: what a shape, a cache and a number of threads make of the loops. */
#include "kernel/conv_plan.h"

#include "base/memory.h"
#include "base/tree.h"

static int min_of(int a, int b)
{
    return a < b ? a : b;
}

static int max_of(int a, int b)
{
    return a > b ? a : b;
}

/* ---- which outputs a tap touches ---- */

/* The outputs whose tap lies inside the image. */
static void touched(int outputs, int in, int stride, int first, int *begin, int *end)
{
    *begin = 0;
    *end = outputs;
    while (*begin < *end && first + *begin * stride < 0) ++*begin;
    while (*end > *begin && first + (*end - 1) * stride >= in) --*end;
}

static tutti_status plan_ranges(int **begin, int **end, int outputs, int in, int kernel, int stride,
                                int dilation, int pad)
{
    TUTTI_TRY(tutti_alloc(begin, (size_t)kernel, sizeof **begin));
    TUTTI_TRY(tutti_alloc(end, (size_t)kernel, sizeof **end));
    for (int tap = 0; tap < kernel; tap++)
        touched(outputs, in, stride, tap * dilation - pad, &(*begin)[tap], &(*end)[tap]);
    return TUTTI_OK;
}

/* Runs of output columns that the same taps touch, in order. */
static tutti_status plan_columns(tutti_conv *conv)
{
    const tutti_conv_shape *shape = &conv->shape;
    tutti_conv_gradient *g = &conv->gradient;
    TUTTI_TRY(tutti_alloc(&g->columns, (size_t)conv->out_w, sizeof *g->columns));
    for (int col = 0; col < conv->out_w; col++) {
        tutti_conv_columns now = {.begin = col, .count = 1};
        for (int s = 0; s < shape->s; s++)
            if (col >= g->col_begin[s] && col < g->col_end[s] && now.taps++ == 0) now.first_tap = s;
        tutti_conv_columns *last = g->column_count ? &g->columns[g->column_count - 1] : NULL;
        if (last && last->first_tap == now.first_tap && last->taps == now.taps) last->count++;
        else g->columns[g->column_count++] = now;
    }
    return TUTTI_OK;
}

/* ---- strips, in the first-level cache ---- */

/* Bytes that a register tile reads of a strip through one row of the kernel. */
static size_t strip_bytes(const tutti_conv *conv, int rows, int cols)
{
    const tutti_conv_gradient *g = &conv->gradient;
    const tutti_conv_shape *shape = &conv->shape;
    const long x_cols = (cols - 1) * shape->stride_w + (shape->s - 1) * shape->dilation_w + 1;
    const long x = (long)rows * min_of((int)x_cols, shape->w) * g->width;
    const long dy = (long)rows * cols * g->tile_blocks * TUTTI_BLOCK;
    return (size_t)(x + dy) * sizeof(float);
}

/* The largest strip that leaves a quarter of the cache to dw: whole rows if one fits, else a part
 * of a row. Equal parts. */
static void choose_strip(tutti_conv *conv)
{
    tutti_conv_gradient_blocks *b = &conv->gradient.blocks;
    const size_t room = conv->caches.l1 * 3 / 4;
    const int rows = max_of(conv->out_h, 1), cols = max_of(conv->out_w, 1);
    b->rows = rows;
    b->cols = cols;
    for (int parts = 2; b->rows > 1 && strip_bytes(conv, b->rows, cols) > room; parts++)
        b->rows = tutti_ceil_div(rows, parts);
    for (int parts = 2; b->cols > TUTTI_BLOCK && strip_bytes(conv, b->rows, b->cols) > room;
         parts++)
        b->cols = tutti_ceil_div(cols, parts);
}

/* ---- parts of dw, in the second-level cache, and threads ---- */

/* Blocks of a part, in the mean. */
static double features_of(const tutti_conv_gradient *g)
{
    return (double)g->features / g->blocks.features;
}

static double channels_of(const tutti_conv_gradient *g)
{
    return (double)g->channels / g->blocks.channels;
}

/* One part more, by features or by channels: whichever leaves the parts closer to a square, which
 * reads the least of x and dy for its size. False when there is nothing left to cut. */
static bool cut_once(tutti_conv_gradient *g)
{
    const bool features = g->blocks.features < g->feature_tiles;
    const bool channels = g->blocks.channels < g->channels;
    if (features && (!channels || features_of(g) >= channels_of(g))) g->blocks.features++;
    else if (channels) g->blocks.channels++;
    return features || channels;
}

/* The work of the busiest thread over the mean: 1 when all have the same. */
static double imbalance(const tutti_conv_gradient *g, int threads)
{
    const int parts = tutti_conv_gradient_part_count(g);
    long most = 0;
    for (int i = 0; i < threads; i++) {
        const int end = tutti_share_begin(parts, threads, i + 1);
        long work = 0;
        for (int at = tutti_share_begin(parts, threads, i); at < end; at++) {
            const tutti_conv_gradient_part part = tutti_conv_gradient_part_of(g, at);
            work += (long)part.nf * part.nc;
        }
        if (work > most) most = work;
    }
    return (double)most * threads / ((double)g->groups * g->features * g->channels);
}

/* Tiles that winograd4_gradient.c takes at a time. Fewer (64: 250 instead of 300 % of the peak)
 * read and write sums too often, more only take memory. */
enum { WAVE_TILES = 192 };

/* Bytes of the second-level cache for 16 by 16 weights in winograd_gradient.c and
 * winograd4_gradient.c: the points of their sums, and their share of the tiles'. */
enum { TILED_BLOCK = 36 << 10, TILED_BLOCK4 = 256 << 10 };

/* Blocks of 16 by 16 weights that a part may have. */
static double blocks_of_part(const tutti_conv *conv)
{
    const double l2 = (double)conv->caches.l2;
    if (conv->algorithm == TUTTI_CONV_WINOGRAD_2X2) return l2 / TILED_BLOCK;
    if (conv->algorithm == TUTTI_CONV_WINOGRAD_4X4) return l2 / TILED_BLOCK4;
    return l2 / 4 / ((double)conv->gradient.w_tile * sizeof(float));
}

/* Where operands are rounded, a part packs what it multiplies, so there are few parts: as many as
 * threads, and fewer where dw is so small that grains, of which there are several samples' worth,
 * can be summed side by side. */
static void choose_rounded_parts(tutti_conv *conv)
{
    enum { SMALL = 1 << 16, GRAIN = 8 };
    tutti_conv_gradient *g = &conv->gradient;
    const bool small = (long)g->groups * g->features * g->channels * g->w_tile <= SMALL;
    const int grains = small ? max_of(conv->n / GRAIN, 1) : 1;
    const int least = tutti_ceil_div(conv->threads, grains);
    g->blocks.features = g->blocks.channels = 1;
    while (tutti_conv_gradient_part_count(g) < least && cut_once(g)) continue;
}

/* The fewest parts that leave half of the cache to what streams through while two of them, a
 * grain's and the sum before it, are joined there; more where that gives the threads more equal
 * work. */
static void choose_parts(tutti_conv *conv)
{
    tutti_conv_gradient *g = &conv->gradient;
    const double room = blocks_of_part(conv);
    g->blocks.features = g->blocks.channels = 1;
    while (features_of(g) * channels_of(g) > room && cut_once(g)) continue;
    tutti_conv_gradient_blocks best = g->blocks;
    double least = imbalance(g, conv->threads);
    while (least > 1.02 && cut_once(g)) {
        const double now = imbalance(g, conv->threads);
        if (now >= least) continue;
        least = now;
        best = g->blocks;
    }
    g->blocks = best;
}

/* Each part of dw has x's channels by all taps times dy's features to sum. */
static double bytes_per_flop(const tutti_conv *conv)
{
    const tutti_conv_gradient *g = &conv->gradient;
    const double nf = features_of(g) * TUTTI_BLOCK, nc = channels_of(g) * g->width;
    const double x = nc * conv->shape.h * conv->shape.w, dy = nf * conv->out_h * conv->out_w;
    const double flops = 2 * nf * nc * conv->shape.r * conv->shape.s * conv->out_h * conv->out_w;
    return flops > 0 ? (x + dy) * sizeof(float) / flops : 0;
}

static void choose_blocks(tutti_conv *conv)
{
    const tutti_conv_gradient_tiles *tiles = conv->kernels->gradient;
    tutti_conv_gradient *g = &conv->gradient;
    const int run = g->merged ? conv->shape.s * conv->shape.c : g->width;
    const bool rounds = tutti_conv_rounds(&conv->shape);
    g->tile_blocks =
        rounds ? min_of(2, g->features)
        : conv->algorithm == TUTTI_CONV_DIRECT
            ? tutti_conv_tile_blocks(tiles->max_width, g->features, tiles->vectors, run)
            : 1;
    g->feature_tiles = tutti_ceil_div(g->features, g->tile_blocks);
    choose_strip(conv);
    g->blocks.tiles = WAVE_TILES;
    if (rounds) choose_rounded_parts(conv);
    else choose_parts(conv);
    g->bytes_per_flop = bytes_per_flop(conv);
}

/* Whether each tap touches some output. */
static bool touches_all(const tutti_conv *conv)
{
    const tutti_conv_gradient *g = &conv->gradient;
    for (int r = 0; r < conv->shape.r; r++)
        if (g->row_begin[r] >= g->row_end[r]) return false;
    for (int s = 0; s < conv->shape.s; s++)
        if (g->col_begin[s] >= g->col_end[s]) return false;
    return true;
}

tutti_status tutti_conv_plan_gradient(tutti_conv *conv)
{
    const tutti_conv_shape *shape = &conv->shape;
    tutti_conv_gradient *g = &conv->gradient;
    const int width = shape->compact ? shape->c : TUTTI_BLOCK;
    const int pad_left = conv->packed ? 0 : shape->pad_left;
    const int in_w = conv->packed ? (int)(conv->packed_row / width) : shape->w;
    *g = (tutti_conv_gradient){
        .groups = conv->lanes ? tutti_ceil_div(shape->c, TUTTI_BLOCK) : shape->groups,
        .features = tutti_ceil_div(shape->k / shape->groups, TUTTI_BLOCK),
        .channels = tutti_ceil_div(shape->c / shape->groups, TUTTI_BLOCK),
        .width = width,
        .merged = shape->compact && shape->dilation_w == 1,
        .pad_left = pad_left,
        .x_row = (long)in_w * width,
        .x_block = (long)shape->h * shape->w * width,
        .x_sample = (long)shape->h * shape->w * width * tutti_ceil_div(shape->c, TUTTI_BLOCK),
        .dy_row = (long)conv->out_w * TUTTI_BLOCK,
        .dy_block = (long)conv->out_h * conv->out_w * TUTTI_BLOCK,
        .dy_sample =
            (long)conv->out_h * conv->out_w * TUTTI_BLOCK * tutti_ceil_div(shape->k, TUTTI_BLOCK),
        .w_tile = (long)shape->r * shape->s * tutti_conv_tap_channels(conv) * TUTTI_BLOCK,
    };
    TUTTI_TRY(plan_ranges(&g->row_begin, &g->row_end, conv->out_h, shape->h, shape->r,
                          shape->stride_h, shape->dilation_h, shape->pad_top));
    TUTTI_TRY(plan_ranges(&g->col_begin, &g->col_end, conv->out_w, in_w, shape->s, shape->stride_w,
                          shape->dilation_w, pad_left));
    TUTTI_TRY(plan_columns(conv));
    g->starts_afresh = !g->merged && !conv->lanes && touches_all(conv);
    choose_blocks(conv);
    return TUTTI_OK;
}

int tutti_conv_gradient_part_count(const tutti_conv_gradient *g)
{
    return g->groups * g->blocks.features * g->blocks.channels;
}

static int first_block(const tutti_conv_gradient *g, int tile)
{
    return tutti_share_begin(g->features, g->feature_tiles, tile);
}

tutti_conv_gradient_part tutti_conv_gradient_part_of(const tutti_conv_gradient *g, int index)
{
    const int down = g->blocks.features, across = g->blocks.channels;
    const int group = index / (down * across), f = index % down, c = index / down % across;
    const int begin = first_block(g, tutti_share_begin(g->feature_tiles, down, f));
    const int end = first_block(g, tutti_share_begin(g->feature_tiles, down, f + 1));
    const int channels = tutti_share_begin(g->channels, across, c);
    return (tutti_conv_gradient_part){
        .features = group * g->features + begin,
        .nf = end - begin,
        .channels = channels,
        .nc = tutti_share_begin(g->channels, across, c + 1) - channels,
        .first_channel = group * g->channels,
    };
}

void tutti_conv_gradient_deinit(tutti_conv_gradient *g)
{
    tutti_free(g->row_begin);
    tutti_free(g->row_end);
    tutti_free(g->col_begin);
    tutti_free(g->col_end);
    tutti_free(g->columns);
    *g = (tutti_conv_gradient){0};
}
