/* Sweeps: how the rows of an output are cut into register tiles, and backward-data into phases.
 *
 * The cut. A tap that leaves the image at the left or right touches only some pixels of a tile, and
 * few pixels make poor use of the weights loaded for them. So tiles at the edges should be wide,
 * those in the middle may be narrow: 28 pixels under 5 taps that reach 4 pixels beyond both
 * edges are 9 + 5 + 5 + 9, not four times 7. Of all cuts into tiles the row has functions for, and
 * of all numbers of feature blocks in a tile, the cheapest is found by dynamic programming.
 *
 * Backward-data at stride d. Pixel i of dx gets a term from tap r when i + pad - r*dilation is a
 * multiple of d, so pixels of the same i mod d (a phase) share their taps: every (d/g)th, g =
 * gcd(d, dilation), and from one of them to the one before it dy's index grows by dilation/g.
 * Within a phase that is a correlation at stride 1 over dy, with the kernel turned around. */
#include "kernel/conv_plan.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/tree.h"

/* The pixels begin .. begin+width-1 for which a tap lies inside the image: lo .. hi-1 of them. */
static void touched(const tutti_conv_sweep *sweep, int begin, int width, int tap, int *lo, int *hi)
{
    const int first = begin * sweep->step_w + sweep->first_w + tap * sweep->tap_w;
    *lo = 0;
    *hi = width;
    while (*lo < *hi && first + *lo * sweep->step_w < 0) ++*lo;
    while (*hi > *lo && first + (*hi - 1) * sweep->step_w >= sweep->in_w) --*hi;
}

/* Which pixels a tile's taps touch: counts the taps of each range, from tap 'first' on. False when
 * they miss pixels in a way no tile knows. */
static bool count_taps(const tutti_conv_sweep *sweep, int begin, int width, int *first,
                       int taps[TUTTI_CONV_RANGES])
{
    int end = -1, last = -TUTTI_CONV_CLIP;
    *first = 0;
    for (int s = 0; s < sweep->taps_w; s++) {
        int lo, hi;
        touched(sweep, begin, width, s, &lo, &hi);
        if (lo == hi) continue;
        if (end < 0) *first = end = s;
        const int missed = lo ? -lo : width - hi;
        if (s != end || (lo && hi < width) || missed < last || missed > TUTTI_CONV_CLIP)
            return false;
        taps[TUTTI_CONV_CLIP + missed]++;
        last = missed;
        end = s + 1;
    }
    return true;
}

/* Describes the tile of these pixels; false when there is none. */
static bool describe(const tutti_conv_sweep *sweep, int begin, int width, int channels,
                     tutti_conv_segment *out)
{
    const bool neighbours = sweep->tap_w == 1 && sweep->w_tap == (long)channels * TUTTI_BLOCK;
    const bool dense = neighbours && channels == TUTTI_BLOCK && sweep->step_w == 1;
    int first, taps[TUTTI_CONV_RANGES] = {0};
    if (!count_taps(sweep, begin, width, &first, taps)) return false;
    *out = (tutti_conv_segment){
        .begin = begin,
        .width = width,
        .tiles = 1,
        .x_next = (long)width * sweep->step_w * sweep->x_pixel,
        .y_next = width * sweep->y_pixel,
        .x = ((long)begin * sweep->step_w + first * sweep->tap_w + sweep->first_w) * sweep->x_pixel,
        .w = first * sweep->w_tap,
        .y = begin * sweep->y_pixel,
    };
    const long x_tap = sweep->tap_w * sweep->x_pixel;
    for (int i = 0; i < TUTTI_CONV_RANGES; i++) {
        const int merged = neighbours ? taps[i] : 1;
        out->ranges[i] = (tutti_conv_range){taps[i] / (merged ? merged : 1), merged * channels,
                                            merged * x_tap, merged * sweep->w_tap};
        if (taps[i] && i < TUTTI_CONV_CLIP) out->left = true;
        if (taps[i] && i > TUTTI_CONV_CLIP) out->right = true;
    }
    if (dense) out->kind = TUTTI_CONV_DENSE;
    else if (!out->left && !out->right && out->ranges[TUTTI_CONV_CLIP].runs == 1)
        out->kind = TUTTI_CONV_WHOLE;
    return true;
}

/* Whether b is a's tile again, right after it. */
static bool continues(const tutti_conv_segment *a, const tutti_conv_segment *b)
{
    return a->width == b->width && a->kind == b->kind && a->w == b->w &&
           !memcmp(a->ranges, b->ranges, sizeof a->ranges) && b->x == a->x + a->tiles * a->x_next &&
           b->y == a->y + a->tiles * a->y_next;
}

/* ---- the cheapest cut ---- */

/* A row of 'outputs' output blocks, cut into tiles of at most 'tile_blocks' of them. */
typedef struct cover {
    const tutti_conv_tiles *kernels;
    int outputs, tile_blocks;
    long channels; /* that each tap sums, over all blocks and rows of the kernel */
    int run;       /* of them that follow each other in a pixel of x; 0: a tap is no run */
} cover;

/* Half cycles for 'width' pixels of all output blocks under one tap and channel. */
static double step_cost(const cover *c, int width)
{
    const int tiles = tutti_ceil_div(c->outputs, c->tile_blocks);
    const int least = c->outputs / tiles, more = c->outputs % tiles;
    const int vectors = c->kernels->vectors;
    double cost = (tiles - more) * tutti_conv_tile_cost(least, vectors, width);
    if (more) cost += more * tutti_conv_tile_cost(least + 1, vectors, width);
    return cost;
}

/* Half cycles of the tiles of these pixels; infinite when no function does it. */
static double segment_cost(const tutti_conv_sweep *sweep, const cover *c, int begin, int width)
{
    int first, taps[TUTTI_CONV_RANGES] = {0};
    if (!count_taps(sweep, begin, width, &first, taps)) return INFINITY;
    const int tiles = tutti_ceil_div(c->outputs, c->tile_blocks);
    double cost = tiles * 40.0 + 2.0 * c->outputs * c->kernels->vectors * width;
    for (int i = 0; i < TUTTI_CONV_RANGES; i++)
        if (taps[i])
            cost += (double)c->channels * taps[i] * step_cost(c, width - abs(i - TUTTI_CONV_CLIP));
    return cost;
}

/* What the columns from 'begin' on cost when cut best, and the width of their first tile. */
typedef struct cut {
    double cost;
    int width;
} cut;

/* The best cuts from each column on; a single pixel always fits. Wider tiles come first where it
 * does not matter, so that equal ones are neighbours. */
static void find_cuts(const tutti_conv_sweep *sweep, const cover *c, cut *cuts)
{
    const int max = c->kernels->max_width[c->tile_blocks];
    cuts[sweep->cols] = (cut){0, 0};
    for (int begin = sweep->cols - 1; begin >= 0; begin--) {
        cuts[begin].cost = INFINITY;
        for (int width = 1; width <= max && begin + width <= sweep->cols; width++) {
            const double cost = segment_cost(sweep, c, begin, width) + cuts[begin + width].cost;
            if (cost <= cuts[begin].cost * (1 + 1e-9)) cuts[begin] = (cut){cost, width};
        }
    }
}

static tutti_status cut_columns(tutti_conv_sweep *sweep, const cover *c, cut *cuts)
{
    if (sweep->cols <= 0) return TUTTI_OK;
    TUTTI_TRY(tutti_alloc(&sweep->segments, (size_t)sweep->cols, sizeof *sweep->segments));
    find_cuts(sweep, c, cuts);
    for (int begin = 0; begin < sweep->cols; begin += cuts[begin].width) {
        tutti_conv_segment *seg = &sweep->segments[sweep->segment_count];
        TUTTI_ASSERT(describe(sweep, begin, cuts[begin].width, c->run, seg));
        if (sweep->segment_count && continues(seg - 1, seg)) seg[-1].tiles++;
        else sweep->segment_count++;
    }
    return TUTTI_OK;
}

static cover cover_of(const tutti_conv *conv, const tutti_conv_pass *pass,
                      const tutti_conv_sweep *sweep, int tile_blocks)
{
    return (cover){conv->tiles, pass->outputs, tile_blocks,
                   (long)pass->inputs * sweep->x_pixel * sweep->taps_h,
                   conv->lanes ? 0 : (int)sweep->x_pixel};
}

/* How many output blocks a tile should have. */
static int choose_tile_blocks(const tutti_conv *conv, const tutti_conv_pass *pass, cut *cuts)
{
    const int *const max_width = conv->tiles->max_width;
    int best = 1;
    double least = INFINITY;
    for (int nb = 1; nb <= TUTTI_CONV_MAX_BLOCKS && nb <= pass->outputs && max_width[nb]; nb++) {
        double cost = 0;
        for (int i = 0; i < pass->sweep_count; i++) {
            const tutti_conv_sweep *sweep = &pass->sweeps[i];
            const cover c = cover_of(conv, pass, sweep, nb);
            find_cuts(sweep, &c, cuts);
            cost += sweep->rows * cuts[0].cost;
        }
        if (cost >= least) continue;
        best = nb;
        least = cost;
    }
    return best;
}

/* Cuts the sweeps of a pass into tiles. */
static tutti_status cut_pass(const tutti_conv *conv, tutti_conv_pass *pass)
{
    cut *cuts = NULL;
    int cols = 0;
    for (int i = 0; i < pass->sweep_count; i++)
        if (pass->sweeps[i].cols > cols) cols = pass->sweeps[i].cols;
    TUTTI_TRY(tutti_alloc(&cuts, (size_t)cols + 1, sizeof *cuts));
    pass->tile_blocks = choose_tile_blocks(conv, pass, cuts);
    tutti_status s = TUTTI_OK;
    for (int i = 0; i < pass->sweep_count && s == TUTTI_OK; i++) {
        const cover c = cover_of(conv, pass, &pass->sweeps[i], pass->tile_blocks);
        s = cut_columns(&pass->sweeps[i], &c, cuts);
    }
    tutti_free(cuts);
    return s;
}

/* Groups that share no block of channels with another: narrow ones count as one where they do. */
static int blocks_of_groups(const tutti_conv *conv)
{
    return conv->lanes ? tutti_ceil_div(conv->shape.c, TUTTI_BLOCK) : conv->shape.groups;
}

/* ---- forward ---- */

tutti_status tutti_conv_plan_forward(tutti_conv *conv)
{
    const tutti_conv_shape *shape = &conv->shape;
    const int channels = shape->compact ? shape->c : TUTTI_BLOCK;
    const long tap = (long)tutti_conv_tap_channels(conv) * TUTTI_BLOCK;
    const int padding = conv->packed ? shape->pad_left + shape->pad_right : 0;
    tutti_conv_pass *pass = &conv->forward;
    *pass = (tutti_conv_pass){
        .groups = blocks_of_groups(conv),
        .inputs = tutti_ceil_div(shape->c / shape->groups, TUTTI_BLOCK),
        .outputs = tutti_ceil_div(shape->k / shape->groups, TUTTI_BLOCK),
        .rows = conv->out_h,
        .x_block = (long)shape->h * shape->w * channels,
        .y_block = (long)conv->out_h * conv->out_w * TUTTI_BLOCK,
        .w_tile = shape->r * shape->s * tap,
    };
    TUTTI_TRY(tutti_alloc(&pass->sweeps, 1, sizeof *pass->sweeps));
    pass->sweep_count = 1;
    pass->sweeps[0] = (tutti_conv_sweep){
        .rows = conv->out_h,
        .cols = conv->out_w,
        .y_row = (long)conv->out_w * TUTTI_BLOCK,
        .y_pixel = TUTTI_BLOCK,
        .in_h = shape->h,
        .in_w = shape->w + padding,
        .taps_h = shape->r,
        .taps_w = shape->s,
        .tap_h = shape->dilation_h,
        .tap_w = shape->dilation_w,
        .step_h = shape->stride_h,
        .step_w = shape->stride_w,
        .first_h = -shape->pad_top,
        .first_w = conv->packed ? 0 : -shape->pad_left,
        .x_row = (long)(shape->w + padding) * channels,
        .x_pixel = channels,
        .w_row = shape->s * tap,
        .w_tap = tap,
    };
    return cut_pass(conv, pass);
}

/* ---- backward-data ---- */

/* One dimension of a phase. */
typedef struct phase {
    int count;             /* pixels of dx */
    int taps, first, step; /* kernel taps, counted from the last: first, first + step, .. */
    int in_first, in_tap;  /* dy index of pixel 0 under the first tap; from tap to tap */
} phase;

static phase phase_of(int at, int size, int pad, int kernel, int stride, int dilation)
{
    phase p = {.count = size > at ? tutti_ceil_div(size - at, stride) : 0, .step = 1, .in_tap = 1};
    for (int r = kernel - 1, last = 0; r >= 0; r--) {
        if ((at + pad - r * dilation) % stride) continue;
        if (p.taps++ == 0) {
            p.first = kernel - 1 - r;
            p.in_first = (at + pad - r * dilation) / stride;
        } else if (p.taps == 2) {
            p.step = last - r;
            p.in_tap = p.step * dilation / stride;
        }
        last = r;
    }
    return p;
}

static tutti_conv_sweep sweep_of(const tutti_conv *conv, int phase_h, int phase_w)
{
    const tutti_conv_shape *shape = &conv->shape;
    const phase h =
        phase_of(phase_h, shape->h, shape->pad_top, shape->r, shape->stride_h, shape->dilation_h);
    const phase w =
        phase_of(phase_w, shape->w, shape->pad_left, shape->s, shape->stride_w, shape->dilation_w);
    const long tile = (long)tutti_conv_tap_channels(conv) * TUTTI_BLOCK;
    return (tutti_conv_sweep){
        .rows = h.count,
        .cols = w.count,
        .y_first = ((long)phase_h * shape->w + phase_w) * TUTTI_BLOCK,
        .y_row = (long)shape->stride_h * shape->w * TUTTI_BLOCK,
        .y_pixel = (long)shape->stride_w * TUTTI_BLOCK,
        .in_h = conv->out_h,
        .in_w = conv->out_w,
        .taps_h = h.taps,
        .taps_w = w.taps,
        .tap_h = h.in_tap,
        .tap_w = w.in_tap,
        .step_h = 1,
        .step_w = 1,
        .first_h = h.in_first,
        .first_w = w.in_first,
        .x_row = (long)conv->out_w * TUTTI_BLOCK,
        .x_pixel = TUTTI_BLOCK,
        .w_first = ((long)h.first * shape->s + w.first) * tile,
        .w_row = (long)h.step * shape->s * tile,
        .w_tap = (long)w.step * tile,
    };
}

tutti_status tutti_conv_plan_backward(tutti_conv *conv)
{
    const tutti_conv_shape *shape = &conv->shape;
    const int phases = shape->stride_h * shape->stride_w;
    tutti_conv_pass *pass = &conv->backward;
    *pass = (tutti_conv_pass){
        .groups = blocks_of_groups(conv),
        .inputs = tutti_ceil_div(shape->k / shape->groups, TUTTI_BLOCK),
        .outputs = tutti_ceil_div(shape->c / shape->groups, TUTTI_BLOCK),
        .rows = tutti_ceil_div(shape->h, shape->stride_h),
        .x_block = (long)conv->out_h * conv->out_w * TUTTI_BLOCK,
        .y_block = (long)shape->h * shape->w * TUTTI_BLOCK,
        .w_tile = (long)shape->r * shape->s * tutti_conv_tap_channels(conv) * TUTTI_BLOCK,
        .transposed = true,
    };
    TUTTI_TRY(tutti_alloc(&pass->sweeps, (size_t)phases, sizeof *pass->sweeps));
    for (; pass->sweep_count < phases; pass->sweep_count++) {
        tutti_conv_sweep *sweep = &pass->sweeps[pass->sweep_count];
        *sweep = sweep_of(conv, pass->sweep_count / shape->stride_w,
                          pass->sweep_count % shape->stride_w);
    }
    return cut_pass(conv, pass);
}

void tutti_conv_pass_deinit(tutti_conv_pass *pass)
{
    for (int i = 0; i < pass->sweep_count; i++) tutti_free(pass->sweeps[i].segments);
    tutti_free(pass->sweeps);
    *pass = (tutti_conv_pass){0};
}
