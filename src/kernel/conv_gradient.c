/* Backward-weights: the loops around the register tile.
 *
 * A thread owns tiles of dw, a few blocks of features by a few blocks of channels that stay in its
 * second-level cache, and sums each over all samples. Within a sample it walks over strips of dy, a
 * few rows (or a part of one row) such that the strip of one channel block of x and of one register
 * tile's blocks of dy stay in the first-level cache while all taps of the kernel use them:
 *
 *   for each tile, grain, sample, strip
 *     for each channel block, feature blocks of a register tile
 *       for each kernel row, kernel column, run of channels: one register tile
 *
 * Strips follow each other in the order of the chain (rows, then columns), so their size does not
 * show in the bits. A finished grain is joined to the ones before it like a bit in a binary counter
 * (base/tree.h); the partial sums are tiles, not gradients, and stay in cache. The first of them is
 * dw itself.
 *
 * When there are fewer tiles than threads, the grains of a tile are summed side by side into
 * gradients of their own, and joined at the end in the same tree. */
#include "kernel/conv_plan.h"

#include <string.h>

#include "base/memory.h"
#include "base/tree.h"
#include "kernel/ref_conv.h"

static int min_of(int a, int b)
{
    return a < b ? a : b;
}

static int max_of(int a, int b)
{
    return a > b ? a : b;
}

/* ---- planning ---- */

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

/* A strip of 'rows' rows of what a register tile reads, in floats. */
static size_t strip_floats(const tutti_conv *conv, int rows)
{
    const tutti_conv_gradient *g = &conv->gradient;
    const tutti_conv_shape *shape = &conv->shape;
    const long x_rows = (rows - 1) * shape->stride_h + (shape->r - 1) * shape->dilation_h + 1;
    return (size_t)(g->dy_row * g->tile_blocks * rows + g->x_row * x_rows);
}

static int tiles_of(const tutti_conv_gradient *g)
{
    return g->groups * tutti_ceil_div(g->features, g->blocks.features) *
           tutti_ceil_div(g->channels, g->blocks.channels);
}

/* Smaller tiles where there would be too few for the threads to share evenly. */
static void share_tiles(tutti_conv *conv)
{
    tutti_conv_gradient_blocks *blocks = &conv->gradient.blocks;
    const tutti_conv_gradient *g = &conv->gradient;
    while (tiles_of(g) < 4 * conv->threads &&
           (blocks->channels > 1 || blocks->features > g->tile_blocks)) {
        const int tiles = tutti_ceil_div(blocks->features, g->tile_blocks);
        if (tiles > 1) blocks->features = (tiles + 1) / 2 * g->tile_blocks;
        else blocks->channels = (blocks->channels + 1) / 2;
    }
}

/* Features and channels by the search for the least bytes per operation in half of the second
 * level; rows so that a strip fits into the first. */
static void choose_blocks(tutti_conv *conv)
{
    const tutti_conv_gradient_tiles *tiles = conv->kernels->gradient;
    const tutti_conv_shape *shape = &conv->shape;
    tutti_conv_gradient *g = &conv->gradient;
    const int run = shape->compact ? shape->s * shape->c : TUTTI_BLOCK;
    g->tile_blocks = tutti_conv_tile_blocks(tiles->max_width, g->features, tiles->vectors, run);
    int rows = max_of(conv->out_h, 1);
    while (rows > 1 && strip_floats(conv, rows) * sizeof(float) > conv->caches.l1 * 3 / 4)
        rows = (rows + 1) / 2;
    const tutti_loops all = {1,
                             g->channels * g->width,
                             g->features * TUTTI_BLOCK,
                             rows,
                             conv->out_w,
                             shape->r,
                             shape->s,
                             shape->stride_h,
                             shape->stride_w};
    const tutti_loops least = {
        .n = 1, .c = g->width, .k = g->tile_blocks * TUTTI_BLOCK, .h = rows, .w = conv->out_w};
    g->blocking = tutti_block_search(&all, &least, conv->caches.l2 / 2);
    g->blocks = (tutti_conv_gradient_blocks){
        .features = g->blocking.block.k / TUTTI_BLOCK,
        .channels = g->blocking.block.c / g->width,
        .rows = rows,
        .cols = max_of(conv->out_w, 1),
    };
    share_tiles(conv);
}

tutti_status tutti_conv_plan_gradient(tutti_conv *conv)
{
    const tutti_conv_shape *shape = &conv->shape;
    tutti_conv_gradient *g = &conv->gradient;
    const int width = shape->compact ? shape->c : TUTTI_BLOCK;
    *g = (tutti_conv_gradient){
        .groups = shape->groups,
        .features = tutti_ceil_div(shape->k / shape->groups, TUTTI_BLOCK),
        .channels = tutti_ceil_div(shape->c / shape->groups, TUTTI_BLOCK),
        .width = width,
        .x_row = (long)shape->w * width,
        .x_block = (long)shape->h * shape->w * width,
        .x_sample = (long)shape->h * shape->w * width * tutti_ceil_div(shape->c, TUTTI_BLOCK),
        .dy_row = (long)conv->out_w * TUTTI_BLOCK,
        .dy_block = (long)conv->out_h * conv->out_w * TUTTI_BLOCK,
        .dy_sample =
            (long)conv->out_h * conv->out_w * TUTTI_BLOCK * tutti_ceil_div(shape->k, TUTTI_BLOCK),
        .w_tile = (long)shape->r * shape->s * width * TUTTI_BLOCK,
    };
    TUTTI_TRY(plan_ranges(&g->row_begin, &g->row_end, conv->out_h, shape->h, shape->r,
                          shape->stride_h, shape->dilation_h, shape->pad_top));
    TUTTI_TRY(plan_ranges(&g->col_begin, &g->col_end, conv->out_w, shape->w, shape->s,
                          shape->stride_w, shape->dilation_w, shape->pad_left));
    TUTTI_TRY(plan_columns(conv));
    choose_blocks(conv);
    return TUTTI_OK;
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

/* ---- one tile, one grain ---- */

typedef struct job {
    const tutti_conv *conv;
    const tutti_grains *grains;
    const float *x, *dy;
    float *dw, *db, *scratch;
} job;

/* Feature blocks features .. features+nf-1 by channel blocks channels .. channels+nc-1 (within the
 * features' group). */
typedef struct tile {
    int features, nf, channels, nc, first_channel;
} tile;

/* Where a tile's sum lives: in dw, or in scratch. */
typedef struct place {
    float *dw, *db; /* db NULL: not wanted, or another tile's */
    long feature;   /* floats from one feature block to the next */
} place;

/* Rows and columns of dy. */
typedef struct strip {
    int row_begin, row_end, col_begin, col_end;
} strip;

static tile tile_of(const tutti_conv_gradient *g, int index)
{
    const int across = tutti_ceil_div(g->channels, g->blocks.channels);
    const int per_group = tutti_ceil_div(g->features, g->blocks.features) * across;
    const int group = index / per_group, in_group = index % per_group;
    const int f = in_group / across * g->blocks.features;
    const int c = in_group % across * g->blocks.channels;
    return (tile){
        .features = group * g->features + f,
        .nf = min_of(g->blocks.features, g->features - f),
        .channels = c,
        .nc = min_of(g->blocks.channels, g->channels - c),
        .first_channel = group * g->channels,
    };
}

static void run_widths(const job *j, tutti_conv_gradient_tile t, int width)
{
    const tutti_conv_gradient_tiles *kernels = j->conv->kernels->gradient;
    const int parts = tutti_ceil_div(width, kernels->max_width[j->conv->gradient.tile_blocks]);
    const float *const x = t.x;
    float *const dw = t.dw;
    for (int i = 0; i < parts; i++) {
        const int begin = tutti_share_begin(width, parts, i);
        t.width = tutti_share_begin(width, parts, i + 1) - begin;
        t.x = x + begin;
        t.dw = dw + begin * TUTTI_BLOCK;
        kernels->tile(&t);
    }
}

/* A rectangle of outputs that touch 'taps' taps from (r, s) on, in x's and dy's first block; taps
 * > 1 only where they are one run of channels. */
static void run_taps(const job *j, tutti_conv_gradient_tile t, strip at, int r, int s, int taps)
{
    const tutti_conv_gradient *g = &j->conv->gradient;
    const tutti_conv_shape *shape = &j->conv->shape;
    if (at.row_begin >= at.row_end || at.col_begin >= at.col_end || !taps) return;
    const int h = at.row_begin * shape->stride_h - shape->pad_top + r * shape->dilation_h;
    const int w = at.col_begin * shape->stride_w - shape->pad_left + s * shape->dilation_w;
    t.x += h * g->x_row + (long)w * g->width;
    t.dy += at.row_begin * g->dy_row + at.col_begin * TUTTI_BLOCK;
    t.dw += ((long)r * shape->s + s) * g->width * TUTTI_BLOCK;
    t.rows = at.row_end - at.row_begin;
    t.cols = at.col_end - at.col_begin;
    run_widths(j, t, taps * g->width);
}

/* Blocked inputs: one tap at a time, each with the outputs it touches. */
static void run_each_tap(const job *j, tutti_conv_gradient_tile t, strip at, int r)
{
    const tutti_conv_gradient *g = &j->conv->gradient;
    for (int s = 0; s < j->conv->shape.s; s++) {
        strip part = at;
        part.col_begin = max_of(at.col_begin, g->col_begin[s]);
        part.col_end = min_of(at.col_end, g->col_end[s]);
        run_taps(j, t, part, r, s, 1);
    }
}

/* Compact inputs: the taps of a kernel row are one run of channels. Where the edges of the image
 * cut taps off, rows are taken one by one and in runs of columns with the same taps. */
static void run_tap_row(const job *j, tutti_conv_gradient_tile t, strip at, int r)
{
    const tutti_conv_gradient *g = &j->conv->gradient;
    const int step = g->column_count == 1 ? max_of(at.row_end - at.row_begin, 1) : 1;
    for (int row = at.row_begin; row < at.row_end; row += step)
        for (int i = 0; i < g->column_count; i++) {
            const tutti_conv_columns *cols = &g->columns[i];
            const strip part = {row, row + step, max_of(at.col_begin, cols->begin),
                                min_of(at.col_end, cols->begin + cols->count)};
            run_taps(j, t, part, r, cols->first_tap, cols->taps);
        }
}

/* All taps for one strip, one channel block and the feature blocks of one register tile. */
static void run_strip(const job *j, tutti_conv_gradient_tile t, strip at)
{
    const tutti_conv_gradient *g = &j->conv->gradient;
    const bool merged = j->conv->shape.compact && j->conv->shape.dilation_w == 1;
    for (int r = 0; r < j->conv->shape.r; r++) {
        strip part = at;
        part.row_begin = max_of(at.row_begin, g->row_begin[r]);
        part.row_end = min_of(at.row_end, g->row_end[r]);
        if (merged) run_tap_row(j, t, part, r);
        else run_each_tap(j, t, part, r);
    }
}

static void sum_strip(const job *j, const tile *tl, place p, const float *x, const float *dy,
                      strip at)
{
    const tutti_conv_gradient *g = &j->conv->gradient;
    const int parts = tutti_ceil_div(tl->nf, g->tile_blocks);
    tutti_conv_gradient_tile t = {
        .x_row = g->x_row * j->conv->shape.stride_h,
        .x_pixel = (long)g->width * j->conv->shape.stride_w,
        .dy_row = g->dy_row,
        .dy_output = g->dy_block,
        .dw_output = p.feature,
    };
    if (p.db) {
        t.dy = dy + at.row_begin * g->dy_row + at.col_begin * TUTTI_BLOCK;
        t.nblocks = tl->nf;
        t.rows = at.row_end - at.row_begin;
        t.cols = at.col_end - at.col_begin;
        j->conv->kernels->gradient->bias(&t, p.db);
    }
    for (int c = 0; c < tl->nc; c++)
        for (int i = 0; i < parts; i++) {
            const int f = tutti_share_begin(tl->nf, parts, i);
            t.nblocks = tutti_share_begin(tl->nf, parts, i + 1) - f;
            t.x = x + c * g->x_block;
            t.dy = dy + f * g->dy_block;
            t.dw = p.dw + f * p.feature + c * g->w_tile;
            run_strip(j, t, at);
        }
}

static void clear(const tutti_conv_gradient *g, const tile *tl, place p)
{
    for (int f = 0; f < tl->nf; f++)
        memset(p.dw + f * p.feature, 0, (size_t)(tl->nc * g->w_tile) * sizeof(float));
    if (p.db) memset(p.db, 0, (size_t)tl->nf * TUTTI_BLOCK * sizeof(float));
}

static void sum_grain(const job *j, const tile *tl, place p, int grain)
{
    const tutti_conv_gradient *g = &j->conv->gradient;
    const tutti_conv_gradient_blocks *blocks = &g->blocks;
    clear(g, tl, p);
    for (int n = j->grains->begin[grain]; n < j->grains->begin[grain + 1]; n++) {
        const float *x = j->x + n * g->x_sample + (tl->first_channel + tl->channels) * g->x_block;
        const float *dy = j->dy + n * g->dy_sample + tl->features * g->dy_block;
        for (int row = 0; row < j->conv->out_h; row += blocks->rows)
            for (int col = 0; col < j->conv->out_w; col += blocks->cols) {
                const strip at = {row, min_of(row + blocks->rows, j->conv->out_h), col,
                                  min_of(col + blocks->cols, j->conv->out_w)};
                sum_strip(j, tl, p, x, dy, at);
            }
    }
}

/* ---- joining grains ---- */

/* below += top, for a tile. */
static void join(const tutti_conv_gradient *g, const tile *tl, place below, place top)
{
    for (int f = 0; f < tl->nf; f++) {
        float *restrict to = below.dw + f * below.feature;
        const float *restrict from = top.dw + f * top.feature;
        for (long i = 0; i < tl->nc * g->w_tile; i++) to[i] += from[i];
    }
    if (below.db)
        for (int i = 0; i < tl->nf * TUTTI_BLOCK; i++) below.db[i] += top.db[i];
}

static long stack_level(const tutti_conv_gradient *g)
{
    const tutti_conv_gradient_blocks *blocks = &g->blocks;
    return blocks->features * (blocks->channels * g->w_tile + TUTTI_BLOCK);
}

/* Place 'depth' of the stack: dw itself at the bottom, above it this thread's scratch. */
static place place_of(const job *j, const tile *tl, float *stack, int depth)
{
    const tutti_conv_gradient *g = &j->conv->gradient;
    const bool bias = j->db && tl->channels == 0;
    if (depth == 0) {
        const long at = ((long)tl->features * g->channels + tl->channels) * g->w_tile;
        return (place){j->dw + at, bias ? j->db + (long)tl->features * TUTTI_BLOCK : NULL,
                       g->channels * g->w_tile};
    }
    float *level = stack + (depth - 1) * stack_level(g);
    return (place){level, bias ? level + tl->nf * tl->nc * g->w_tile : NULL, tl->nc * g->w_tile};
}

static void sum_tile(const job *j, int index, float *stack)
{
    const tutti_conv_gradient *g = &j->conv->gradient;
    const tile tl = tile_of(g, index);
    int depth = 0;
    if (!j->grains->count) clear(g, &tl, place_of(j, &tl, stack, 0));
    for (int i = 0; i < j->grains->count; i++) {
        sum_grain(j, &tl, place_of(j, &tl, stack, depth++), i);
        int joins = tutti_tree_joins(i);
        if (i == j->grains->count - 1) joins = depth - 1;
        for (; joins; joins--, depth--)
            join(g, &tl, place_of(j, &tl, stack, depth - 2), place_of(j, &tl, stack, depth - 1));
    }
}

static void sum_tiles_member(void *arg, int member, int size)
{
    const job *j = arg;
    const tutti_conv_gradient *g = &j->conv->gradient;
    const int levels = tutti_tree_height(max_of(j->conv->n, 1));
    const int tiles = tiles_of(g), end = tutti_share_begin(tiles, size, member + 1);
    float *stack = j->scratch + member * levels * stack_level(g);
    for (int i = tutti_share_begin(tiles, size, member); i < end; i++) sum_tile(j, i, stack);
}

/* ---- fewer tiles than threads: grains side by side ---- */

static bool splits_grains(const tutti_conv *conv, int threads)
{
    return tiles_of(&conv->gradient) < threads;
}

/* Floats of one grain's gradient: dw, then db. */
static size_t gradient_count(const tutti_conv *conv)
{
    return tutti_conv_weight_count(conv) + tutti_conv_bias_count(conv);
}

static void sum_grains_member(void *arg, int member, int size)
{
    const job *j = arg;
    const int tiles = tiles_of(&j->conv->gradient), total = tiles * j->grains->count;
    const int end = tutti_share_begin(total, size, member + 1);
    for (int i = tutti_share_begin(total, size, member); i < end; i++) {
        job own = *j;
        own.dw = j->scratch + gradient_count(j->conv) * (size_t)(i / tiles);
        own.db = own.dw + tutti_conv_weight_count(j->conv);
        const tile tl = tile_of(&j->conv->gradient, i % tiles);
        sum_grain(&own, &tl, place_of(&own, &tl, NULL, 0), i / tiles);
    }
}

/* Neighbours pairwise, level by level; a thread does so for its share of the elements. */
static void join_grains_member(void *arg, int member, int size)
{
    const job *j = arg;
    const size_t count = gradient_count(j->conv), weights = tutti_conv_weight_count(j->conv);
    const size_t begin = count * (size_t)member / (size_t)size;
    const size_t end = count * ((size_t)member + 1) / (size_t)size;
    for (int step = 1; step < j->grains->count; step *= 2)
        for (int i = 0; i + step < j->grains->count; i += 2 * step) {
            float *restrict to = j->scratch + (size_t)i * count;
            const float *restrict from = to + (size_t)step * count;
            for (size_t e = begin; e < end; e++) to[e] += from[e];
        }
    for (size_t e = begin; e < end; e++)
        if (e < weights) j->dw[e] = j->scratch[e];
        else if (j->db) j->db[e - weights] = j->scratch[e];
}

size_t tutti_conv_gradient_scratch(const tutti_conv *conv)
{
    const int levels = tutti_tree_height(max_of(conv->n, 1));
    const size_t stacks =
        (size_t)conv->threads * (size_t)levels * (size_t)stack_level(&conv->gradient);
    const size_t grains =
        splits_grains(conv, conv->threads) ? (size_t)conv->n * gradient_count(conv) : 0;
    return (stacks > grains ? stacks : grains) * sizeof(float);
}

/* ---- shapes without a fast path ---- */

static float plain_tree(const job *j, int first, int end, int k, int c, int r, int s)
{
    const int *begin = j->grains->begin;
    if (end - first == 1)
        return c < 0 ? tutti_ref_conv_db(&j->conv->shape, j->dy, begin[first], begin[end], k).chain
                     : tutti_ref_conv_dw(&j->conv->shape, j->x, j->dy, begin[first], begin[end], k,
                                         c, r, s)
                           .chain;
    int half = 1;
    while (2 * half < end - first) half *= 2;
    return plain_tree(j, first, first + half, k, c, r, s) +
           plain_tree(j, first + half, end, k, c, r, s);
}

static void plain_feature(const job *j, int k)
{
    const tutti_conv_shape *shape = &j->conv->shape;
    for (int c = 0; c < shape->c / shape->groups; c++)
        for (int r = 0; r < shape->r; r++)
            for (int s = 0; s < shape->s; s++)
                j->dw[tutti_ref_w_at(shape, k, c, r, s)] =
                    plain_tree(j, 0, j->grains->count, k, c, r, s);
    if (j->db) j->db[k] = plain_tree(j, 0, j->grains->count, k, -1, 0, 0);
}

static void plain_member(void *arg, int member, int size)
{
    const job *j = arg;
    const int end = tutti_share_begin(j->conv->shape.k, size, member + 1);
    for (int k = tutti_share_begin(j->conv->shape.k, size, member); k < end; k++)
        plain_feature(j, k);
}

static void run_plain(job *j, tutti_team *team)
{
    memset(j->dw, 0, tutti_conv_weight_count(j->conv) * sizeof(float));
    if (j->db) memset(j->db, 0, tutti_conv_bias_count(j->conv) * sizeof(float));
    if (j->grains->count) tutti_team_run(team, plain_member, j);
}

void tutti_conv_backward_weights(const tutti_conv *conv, tutti_team *team, void *scratch,
                                 const tutti_grains *grains, const float *x, const float *dy,
                                 float *dw, float *db)
{
    job j = {conv, grains, x, dy, dw, db, scratch};
    TUTTI_ASSERT(tutti_team_size(team) <= conv->threads && grains->count <= conv->n);
    if (conv->plain) {
        run_plain(&j, team);
    } else if (splits_grains(conv, tutti_team_size(team)) && grains->count > 1) {
        tutti_team_run(team, sum_grains_member, &j);
        tutti_team_run(team, join_grains_member, &j);
    } else {
        tutti_team_run(team, sum_tiles_member, &j);
    }
}
