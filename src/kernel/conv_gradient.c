/* Backward-weights: the loops around the register tile.
 *
 * A thread owns parts of dw, a few blocks of features by a few blocks of channels that stay in its
 * second-level cache, and sums each over all samples. Within a sample it walks over strips of dy, a
 * few rows (or a part of one row) such that the strip of one channel block of x and of one register
 * tile's blocks of dy stay in the first-level cache while all taps of the kernel use them:
 *
 *   for each part, grain, sample, strip
 *     for each channel block, feature blocks of a register tile
 *       for each kernel row, kernel column, run of channels: one register tile
 *
 * (3x3 kernels at stride 1 go by Winograd's tiles instead of strips and taps: winograd_gradient.c.)
 * Strips follow each other in the order of the chain (rows, then columns), so their size does not
 * show in the bits. A finished grain is joined to the ones before it like a bit in a binary counter
 * (base/tree.h); the partial sums are parts, not gradients, and stay in cache. The first of them is
 * dw itself.
 *
 * When there are fewer parts than threads, the grains of a part are summed side by side into
 * gradients of their own, and joined at the end in the same tree. */
#include "kernel/conv_plan.h"

#include <string.h>

#include "base/memory.h"
#include "base/tree.h"
#include "kernel/conv_bf16.h"

static int min_of(int a, int b)
{
    return a < b ? a : b;
}

static int max_of(int a, int b)
{
    return a > b ? a : b;
}

/* ---- one part, one grain ---- */

typedef struct job {
    const tutti_conv *conv;
    const tutti_grains *grains;
    const float *x, *dy;
    float *dw, *db, *scratch;
    float *room; /* a thread's own, for a packed image or winograd_gradient.c */
} job;

typedef tutti_conv_gradient_part part;

/* Where a part's sum is kept: in dw, or in scratch. */
typedef struct place {
    float *dw, *db; /* db NULL: not wanted, or another part's */
    long feature;   /* floats from one feature block to the next */
} place;

typedef tutti_conv_strip strip;

/* Memory that the next strip will read. It comes from far, and is fetched a few lines at a time
 * while this strip is summed. */
typedef struct ahead {
    const float *at, *end;
    int lines; /* at a time */
} ahead;

static void fetch(ahead *a)
{
    enum { LINE = TUTTI_CACHE_LINE / sizeof(float) };
    for (int i = 0; i < a->lines && a->at < a->end; i++, a->at += LINE)
        __builtin_prefetch(a->at, 0, 2);
}

/* 'rows' rows of an image from 'row' on, as far as it has them, within 'times' times. */
static ahead rows_ahead(const float *image, long row_floats, int row, int rows, int height,
                        int times)
{
    const int begin = min_of(max_of(row, 0), height), end = min_of(begin + rows, height);
    const long lines = (end - begin) * row_floats / TUTTI_BLOCK;
    return (ahead){image + begin * row_floats, image + end * row_floats, (int)lines / times + 1};
}

/* Few taps and channels make few tiles, each a walk over a whole strip: then each tile fetches the
 * next strip of one block of dy, one line per pixel. Strips follow each other in memory. */
typedef struct follower {
    int blocks; /* that are still to be fetched */
    long ahead; /* floats from this tile's dy to the next block's next strip */
} follower;

static long follow(follower *f, long block)
{
    if (!f->blocks) return 0;
    f->blocks--;
    f->ahead += block;
    return f->ahead - block;
}

/* What the loops over taps and channels have in common: one channel block of x by the feature
 * blocks of one register tile. */
typedef struct patch {
    const tutti_conv_gradient_piece *add, *fresh;
    tutti_conv_gradient_fn *const *tile; /* by width - 1 */
    int max_width;
    const float *x, *dy;
    float *dw;
    ahead *next_x, *next_dy;
    follower *next_strip;
} patch;

/* A rectangle of outputs that touch 'taps' taps from (r, s) on; taps > 1 only where they are one
 * run of channels. */
static void run_taps(const tutti_conv *conv, const patch *p, const tutti_conv_gradient_piece *piece,
                     strip at, int r, int s, int taps)
{
    const tutti_conv_gradient *g = &conv->gradient;
    const tutti_conv_shape *shape = &conv->shape;
    const int rows = at.row_end - at.row_begin, cols = at.col_end - at.col_begin;
    if (rows <= 0 || cols <= 0 || !taps) return;
    const int h = at.row_begin * shape->stride_h - shape->pad_top + r * shape->dilation_h;
    const int w = at.col_begin * shape->stride_w - g->pad_left + s * shape->dilation_w;
    const float *x = p->x + h * g->x_row + (long)w * g->width;
    const float *dy = p->dy + at.row_begin * g->dy_row + at.col_begin * TUTTI_BLOCK;
    float *dw = p->dw + ((long)r * shape->s + s) * g->width * TUTTI_BLOCK;
    int left = taps * g->width;
    for (int parts = tutti_ceil_div(left, p->max_width); parts; parts--) {
        const int width = tutti_ceil_div(left, parts);
        fetch(p->next_x);
        fetch(p->next_dy);
        p->tile[width - 1](piece, rows, cols, x, dy, dw, follow(p->next_strip, g->dy_block));
        x += width;
        dw += width * TUTTI_BLOCK;
        left -= width;
    }
}

/* Blocked inputs: one tap at a time, each with the outputs it touches. */
static void run_each_tap(const tutti_conv *conv, const patch *p, strip at, int r)
{
    const tutti_conv_gradient *g = &conv->gradient;
    for (int s = 0; s < conv->shape.s; s++) {
        strip touched = at;
        touched.col_begin = max_of(at.col_begin, g->col_begin[s]);
        touched.col_end = min_of(at.col_end, g->col_end[s]);
        const bool first =
            touched.row_begin == g->row_begin[r] && touched.col_begin == g->col_begin[s];
        run_taps(conv, p, first ? p->fresh : p->add, touched, r, s, 1);
    }
}

/* Compact inputs: the taps of a kernel row are one run of channels. Where the edges of the image
 * cut taps off, rows are taken one by one and in runs of columns with the same taps. */
static void run_tap_row(const tutti_conv *conv, const patch *p, strip at, int r)
{
    const tutti_conv_gradient *g = &conv->gradient;
    const int step = g->column_count == 1 ? max_of(at.row_end - at.row_begin, 1) : 1;
    for (int row = at.row_begin; row < at.row_end; row += step)
        for (int i = 0; i < g->column_count; i++) {
            const tutti_conv_columns *cols = &g->columns[i];
            const strip touched = {row, row + step, max_of(at.col_begin, cols->begin),
                                   min_of(at.col_end, cols->begin + cols->count)};
            run_taps(conv, p, p->add, touched, r, cols->first_tap, cols->taps);
        }
}

/* All taps for one strip. */
static void run_strip(const tutti_conv *conv, const patch *p, strip at)
{
    const tutti_conv_gradient *g = &conv->gradient;
    for (int r = 0; r < conv->shape.r; r++) {
        strip touched = at;
        touched.row_begin = max_of(at.row_begin, g->row_begin[r]);
        touched.row_end = min_of(at.row_end, g->row_end[r]);
        if (g->merged) run_tap_row(conv, p, touched, r);
        else run_each_tap(conv, p, touched, r);
    }
}

/* The end of the input rows that output rows up to 'end' read. */
static int rows_read(const tutti_conv_shape *shape, int end)
{
    return (end - 1) * shape->stride_h - shape->pad_top + (shape->r - 1) * shape->dilation_h + 1;
}

static long strip_floats(strip at)
{
    return (long)(at.row_end - at.row_begin) * (at.col_end - at.col_begin) * TUTTI_BLOCK;
}

/* The rows of dy and x after a strip: of this sample, or the first ones of the next. */
typedef struct next_strip {
    int row, x_row, x_rows;
    long x, dy; /* to their sample, in floats */
} next_strip;

static next_strip next_of(const tutti_conv *conv, strip at)
{
    const tutti_conv_gradient *g = &conv->gradient;
    const int x_rows = (at.row_end - at.row_begin) * conv->shape.stride_h;
    if (at.row_end == conv->out_h)
        return (next_strip){.x_rows = x_rows, .x = g->x_sample, .dy = g->dy_sample};
    return (next_strip){at.row_end, rows_read(&conv->shape, at.row_end), x_rows, 0, 0};
}

/* A strip of the sample whose part begins at x and dy; 'first' is the first of its grain. */
static void sum_strip(const tutti_conv *conv, const part *pt, place p, const float *x,
                      const float *dy, strip at, bool first)
{
    const tutti_conv_gradient *g = &conv->gradient;
    const tutti_conv_gradient_tiles *kernels = conv->kernels->gradient;
    const tutti_conv_gradient_piece add = {
        .x_row = g->x_row * conv->shape.stride_h,
        .x_pixel = (long)g->width * conv->shape.stride_w,
        .dy_row = g->dy_row,
        .dy_output = g->dy_block,
        .dw_output = p.feature,
    };
    tutti_conv_gradient_piece fresh = add;
    fresh.fresh = true;
    if (p.db)
        kernels->bias(&add, pt->nf, at.row_end - at.row_begin, at.col_end - at.col_begin,
                      dy + at.row_begin * g->dy_row + at.col_begin * TUTTI_BLOCK, p.db);
    if (conv->lanes) {
        if (pt->nf && pt->nc) tutti_conv_lanes_sum(conv, x, dy, p.dw, &at);
        return;
    }
    const tutti_conv_shape *shape = &conv->shape;
    const next_strip next = next_of(conv, at);
    const int tiles = tutti_ceil_div(pt->nf, g->tile_blocks);
    for (int c = 0; c < pt->nc; c++)
        for (int i = 0; i < tiles; i++) {
            const int f = tutti_share_begin(pt->nf, tiles, i);
            const int blocks = tutti_share_begin(pt->nf, tiles, i + 1) - f;
            const int times =
                shape->r * shape->s * tutti_ceil_div(g->width, kernels->max_width[blocks]);
            ahead next_x = {0}, next_dy = {0};
            follower follows = {0};
            if (i == 0)
                next_x = rows_ahead(x + next.x + c * g->x_block, g->x_row, next.x_row, next.x_rows,
                                    shape->h, times);
            if (g->merged && g->column_count == 1) follows = (follower){blocks, strip_floats(at)};
            else if (c < blocks)
                next_dy = rows_ahead(dy + next.dy + (f + c) * g->dy_block, g->dy_row, next.row,
                                     at.row_end - at.row_begin, conv->out_h, times);
            const patch own = {
                .add = &add,
                .fresh = first ? &fresh : &add,
                .tile = kernels->tile[blocks - 1],
                .max_width = kernels->max_width[blocks],
                .x = x + c * g->x_block,
                .dy = dy + f * g->dy_block,
                .dw = p.dw + f * p.feature + c * g->w_tile,
                .next_x = &next_x,
                .next_dy = &next_dy,
                .next_strip = &follows,
            };
            run_strip(conv, &own, at);
        }
}

/* Zero, except for what the grain's first strips start afresh. */
static void clear(const tutti_conv_gradient *g, const part *pt, place p, bool is_empty)
{
    if (is_empty || !g->starts_afresh)
        for (int f = 0; f < pt->nf; f++)
            memset(p.dw + f * p.feature, 0, (size_t)(pt->nc * g->w_tile) * sizeof(float));
    if (p.db) memset(p.db, 0, (size_t)pt->nf * TUTTI_BLOCK * sizeof(float));
}

/* Packs what the output rows up to 'row_end' read of image x and is not packed yet: rows from
 * 'done' on. Returns how far it got. */
static int pack_rows(const job *j, const float *x, int done, int row_end)
{
    const int end = min_of(rows_read(&j->conv->shape, row_end), j->conv->shape.h);
    tutti_conv_pack(j->conv, j->room + done * j->conv->packed_row, x, done, end);
    return max_of(done, end);
}

/* The bias over whole images, in the same order as over their strips. */
static void sum_bias(const job *j, const part *pt, place p, int begin, int end)
{
    const tutti_conv_gradient *g = &j->conv->gradient;
    const tutti_conv_gradient_piece piece = {.dy_row = g->dy_row, .dy_output = g->dy_block};
    for (int n = begin; p.db && n < end; n++)
        j->conv->kernels->gradient->bias(&piece, pt->nf, j->conv->out_h, j->conv->out_w,
                                         j->dy + n * g->dy_sample + pt->features * g->dy_block,
                                         p.db);
}

static void sum_tiles(const job *j, const part *pt, place p, int begin, int end)
{
    sum_bias(j, pt, p, begin, end);
    tutti_winograd_sum_grain(
        &(tutti_winograd_grain){j->conv, pt, begin, end, j->x, j->dy, p.dw, p.feature, j->room});
}

static void sum_rounded(const job *j, const part *pt, place p, int begin, int end)
{
    sum_bias(j, pt, p, begin, end);
    tutti_conv_bf16_sum_grain(
        &(tutti_conv_bf16_grain){j->conv, pt, begin, end, j->x, j->dy, p.dw, p.feature, j->room});
}

static void sum_strips(const job *j, const part *pt, place p, int begin, int end)
{
    const tutti_conv_gradient *g = &j->conv->gradient;
    const bool packed = j->conv->packed;
    const tutti_conv_gradient_blocks *blocks = &g->blocks;
    const int height = j->conv->out_h, width = j->conv->out_w;
    for (int n = begin; n < end; n++) {
        const float *x = j->x + n * g->x_sample + (pt->first_channel + pt->channels) * g->x_block;
        const float *dy = j->dy + n * g->dy_sample + pt->features * g->dy_block;
        for (int row = 0, done = 0; row < height; row += blocks->rows) {
            const int row_end = min_of(row + blocks->rows, height);
            if (packed) done = pack_rows(j, x, done, row_end);
            for (int col = 0; col < width; col += blocks->cols) {
                const strip at = {row, row_end, col, min_of(col + blocks->cols, width)};
                sum_strip(j->conv, pt, p, packed ? j->room : x, dy, at,
                          n == begin && g->starts_afresh);
            }
        }
    }
}

static void sum_grain(const job *j, const part *pt, place p, int grain)
{
    const int begin = j->grains->begin[grain], end = j->grains->begin[grain + 1];
    clear(&j->conv->gradient, pt, p, begin == end);
    if (begin == end) return;
    if (j->conv->bf16) sum_rounded(j, pt, p, begin, end);
    else if (j->conv->algorithm == TUTTI_CONV_WINOGRAD_2X2) sum_tiles(j, pt, p, begin, end);
    else sum_strips(j, pt, p, begin, end);
}

/* ---- joining grains ---- */

/* below += top, for a part. */
static void join(const tutti_conv *conv, const part *pt, place below, place top)
{
    const tutti_conv_gradient_tiles *kernels = conv->kernels->gradient;
    for (int f = 0; f < pt->nf; f++)
        kernels->join(below.dw + f * below.feature, top.dw + f * top.feature,
                      pt->nc * conv->gradient.w_tile);
    if (below.db) kernels->join(below.db, top.db, (long)pt->nf * TUTTI_BLOCK);
}

/* Floats of the largest part: its dw, then its db. */
static long stack_level(const tutti_conv_gradient *g)
{
    const int nf = tutti_ceil_div(g->feature_tiles, g->blocks.features) * g->tile_blocks;
    const int nc = tutti_ceil_div(g->channels, g->blocks.channels);
    return nf * (nc * g->w_tile + TUTTI_BLOCK);
}

/* Place 'depth' of the stack: dw itself at the bottom, above it this thread's scratch. */
static place place_of(const job *j, const part *pt, float *stack, int depth)
{
    const tutti_conv_gradient *g = &j->conv->gradient;
    const bool bias = j->db && pt->channels == 0 && pt->nc > 0;
    if (depth == 0) {
        const long at = ((long)pt->features * g->channels + pt->channels) * g->w_tile;
        return (place){j->dw + at, bias ? j->db + (long)pt->features * TUTTI_BLOCK : NULL,
                       g->channels * g->w_tile};
    }
    float *level = stack + (depth - 1) * stack_level(g);
    return (place){level, bias ? level + pt->nf * pt->nc * g->w_tile : NULL, pt->nc * g->w_tile};
}

static void sum_part(const job *j, int index, float *stack)
{
    const tutti_conv_gradient *g = &j->conv->gradient;
    const part pt = tutti_conv_gradient_part_of(g, index);
    int depth = 0;
    if (!j->grains->count) clear(g, &pt, place_of(j, &pt, stack, 0), true);
    for (int i = 0; i < j->grains->count; i++) {
        sum_grain(j, &pt, place_of(j, &pt, stack, depth++), i);
        int joins = tutti_tree_joins(i);
        if (i == j->grains->count - 1) joins = depth - 1;
        for (; joins; joins--, depth--)
            join(j->conv, &pt, place_of(j, &pt, stack, depth - 2),
                 place_of(j, &pt, stack, depth - 1));
    }
}

/* Floats of the sums in scratch; the threads' rooms come after them. */
static size_t sums_count(const tutti_conv *conv);

static size_t room_of(const tutti_conv *conv)
{
    if (conv->bf16) return tutti_conv_bf16_room(conv);
    if (conv->algorithm == TUTTI_CONV_WINOGRAD_2X2) return tutti_winograd_gradient_room(conv);
    return conv->packed ? tutti_conv_packed_floats(conv, conv->shape.h) : 0;
}

/* The job as one thread of the team sees it. */
static job own_job(const job *j, int thread)
{
    job own = *j;
    own.room = j->scratch + sums_count(j->conv) + (size_t)thread * room_of(j->conv);
    return own;
}

static void sum_parts_share(void *arg, int thread, int threads)
{
    const job own = own_job(arg, thread), *j = &own;
    const tutti_conv_gradient *g = &j->conv->gradient;
    const int levels = tutti_tree_height(max_of(j->conv->n, 1));
    const int parts = tutti_conv_gradient_part_count(g),
              end = tutti_share_begin(parts, threads, thread + 1);
    float *stack = j->scratch + thread * levels * stack_level(g);
    for (int i = tutti_share_begin(parts, threads, thread); i < end; i++) sum_part(j, i, stack);
}

/* ---- fewer parts than threads: grains side by side ---- */

static bool splits_grains(const tutti_conv *conv, int threads)
{
    return tutti_conv_gradient_part_count(&conv->gradient) < threads;
}

/* Floats of one grain's gradient: dw, then db. */
static size_t gradient_count(const tutti_conv *conv)
{
    return tutti_conv_weight_count(conv) + tutti_conv_bias_count(conv);
}

static void sum_grains_share(void *arg, int thread, int threads)
{
    const job *j = arg;
    const int parts = tutti_conv_gradient_part_count(&j->conv->gradient),
              total = parts * j->grains->count;
    const int end = tutti_share_begin(total, threads, thread + 1);
    for (int i = tutti_share_begin(total, threads, thread); i < end; i++) {
        job own = own_job(j, thread);
        own.dw = j->scratch + gradient_count(j->conv) * (size_t)(i / parts);
        own.db = own.dw + tutti_conv_weight_count(j->conv);
        const part pt = tutti_conv_gradient_part_of(&j->conv->gradient, i % parts);
        sum_grain(&own, &pt, place_of(&own, &pt, NULL, 0), i / parts);
    }
}

/* Neighbours pairwise, level by level; a thread does so for its share of the elements. */
static void join_grains_share(void *arg, int thread, int threads)
{
    const job *j = arg;
    const size_t count = gradient_count(j->conv), weights = tutti_conv_weight_count(j->conv);
    const size_t begin = count * (size_t)thread / (size_t)threads;
    const size_t end = count * ((size_t)thread + 1) / (size_t)threads;
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

static size_t sums_count(const tutti_conv *conv)
{
    const int levels = tutti_tree_height(max_of(conv->n, 1));
    const size_t stacks =
        (size_t)conv->threads * (size_t)levels * (size_t)stack_level(&conv->gradient);
    const size_t grains =
        splits_grains(conv, conv->threads) ? (size_t)conv->n * gradient_count(conv) : 0;
    return tutti_round_up(stacks > grains ? stacks : grains, TUTTI_BLOCK);
}

size_t tutti_conv_gradient_scratch(const tutti_conv *conv)
{
    if (conv->algorithm == TUTTI_CONV_WINOGRAD_4X4) return tutti_winograd4_gradient_scratch(conv);
    return (sums_count(conv) + (size_t)conv->threads * room_of(conv)) * sizeof(float);
}

void tutti_conv_backward_weights(const tutti_conv *conv, const tutti_task *task, const float *x,
                                 const float *dy, float *dw, float *db)
{
    tutti_team *const team = task->team;
    const tutti_grains *grains = task->grains;
    job j = {conv, grains, x, dy, dw, db, task->scratch, NULL};
    TUTTI_ASSERT(tutti_team_size(team) <= conv->threads && grains->count <= conv->n);
    if (conv->regrouped) {
        tutti_conv_regrouped_weights(conv, task, x, dy, dw, db);
    } else if (conv->algorithm == TUTTI_CONV_WINOGRAD_4X4) {
        tutti_winograd4_gradient(conv, task, x, dy, dw, db);
    } else if (conv->plain) {
        tutti_conv_plain_weights(conv, task, x, dy, dw, db);
    } else if (splits_grains(conv, tutti_team_size(team)) && grains->count > 1) {
        tutti_team_run(team, sum_grains_share, &j);
        tutti_team_run(team, join_grains_share, &j);
    } else {
        tutti_team_run(team, sum_parts_share, &j);
    }
}
