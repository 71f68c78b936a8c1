/* Backward-weights of narrow groups: a block of 16 channels meets no features but its own, so a
 * part of dw is the taps of one block, and a strip of dy is whole rows. Each kernel row is a walk
 * over the strip, in runs of taps whose sums fit into the registers; forward and backward-data
 * are ordinary passes with tiles of their own (conv_lanes_tmpl.c). */
#include "base/memory.h"
#include "base/tree.h"
#include "kernel/conv_plan.h"

static int min_of(int a, int b)
{
    return a < b ? a : b;
}

static int max_of(int a, int b)
{
    return a > b ? a : b;
}

/* Taps tap .. tap+count-1 of a kernel row: which columns of the strip touch them. */
static tutti_conv_lanes_piece piece_of(const tutti_conv *conv, const tutti_conv_strip *strip,
                                       int tap, int count)
{
    const tutti_conv_gradient *g = &conv->gradient;
    tutti_conv_lanes_piece piece = {
        .x_row = g->x_row * conv->shape.stride_h,
        .x_pixel = (long)g->width * conv->shape.stride_w,
        .x_tap = (long)g->width * conv->shape.dilation_w,
        .dy_row = g->dy_row,
        .first = strip->col_end,
        .whole_end = strip->col_end,
    };
    for (int s = 0; s < count; s++) {
        const int begin = max_of(g->col_begin[tap + s], strip->col_begin);
        const int end = min_of(g->col_end[tap + s], strip->col_end);
        piece.begin[s] = begin;
        piece.end[s] = end;
        piece.whole_begin = max_of(piece.whole_begin, begin);
        piece.whole_end = min_of(piece.whole_end, end);
        if (begin < end) piece.first = min_of(piece.first, begin);
        if (begin < end) piece.last = max_of(piece.last, end);
    }
    if (piece.whole_begin >= piece.whole_end) piece.whole_begin = piece.whole_end = piece.last;
    return piece;
}

static void sum_kernel_row(const tutti_conv *conv, const float *x, const float *dy, float *dw,
                           const tutti_conv_strip *strip, int r)
{
    const tutti_conv_shape *shape = &conv->shape;
    const tutti_conv_gradient *g = &conv->gradient;
    const tutti_conv_lanes *lanes = conv->lanes;
    const int runs = tutti_ceil_div(shape->s, lanes->max_taps);
    const long tap_floats = (long)lanes->channels * TUTTI_BLOCK;
    const int begin = max_of(strip->row_begin, g->row_begin[r]);
    const int end = min_of(strip->row_end, g->row_end[r]);
    if (begin >= end) return;
    const int h = begin * shape->stride_h - shape->pad_top + r * shape->dilation_h;
    for (int i = 0; i < runs; i++) {
        const int tap = tutti_share_begin(shape->s, runs, i);
        const int count = tutti_share_begin(shape->s, runs, i + 1) - tap;
        const tutti_conv_lanes_piece piece = piece_of(conv, strip, tap, count);
        const long left = (long)tap * shape->dilation_w - g->pad_left;
        lanes->gradient[count - 1](&piece, end - begin, x + h * g->x_row + left * g->width,
                                   dy + begin * g->dy_row, dw + tap * tap_floats);
    }
}

void tutti_conv_lanes_sum(const tutti_conv *conv, const float *x, const float *dy, float *dw,
                          const tutti_conv_strip *strip)
{
    const tutti_conv_shape *shape = &conv->shape;
    const long row = (long)shape->s * conv->lanes->channels * TUTTI_BLOCK;
    for (int r = 0; r < shape->r; r++) sum_kernel_row(conv, x, dy, dw + r * row, strip, r);
}
