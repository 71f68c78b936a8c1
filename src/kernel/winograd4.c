/* Winograd's F(4x4, 3x3) for 3x3 kernels at stride 1: forward and backward-data, and what
 * winograd4_gradient.c needs of it, too.
 *
 * Four by four pixels of the output need six by six of the input. Transformed,
 *
 *     y = A^T [ sum over c of (G w G^T) * (B^T x B) ] A        * is element by element
 *
 * 36 multiply-adds per channel make sixteen pixels, not 144: 4 times fewer, where F(2x2) makes do
 * with 2.25. The price is accuracy, and most of it is the choice of the points: 0, +-1, +-2 and
 * infinity, the usual ones, have 4 to 5 times the error of the direct sum, 0, +-5/8, +-3/2 and
 * infinity have twice, and are exact in binary as well (doc/NUMERICS.md).
 *
 * Where a side of the output ends with one or two pixels the last tiles are short: F(2) of the
 * first four points. G of F(2) differs from that of F(4) by factors p^2 - b^2, which are exact and
 * go to B; so short tiles use the same u, at 4 of the 6 points of that side: 14 = 4+4+4+2 takes 484
 * products and not 576.
 *
 * What is computed, in which order, is fixed by the shape alone: u, v and y by the operations of
 * winograd4_tmpl.c in their order, each point's sum is one chain of multiply-adds over the
 * channels. So bits are the same on every instruction set, for every number of threads and samples.
 *
 *   u   [36][panel][c][blocks of the panel][16] is made from the weights once per pass, for all
 *       threads, and passes by the caches if it is larger than they
 *   for blocks of tiles: v [36][group][c/16][tiles of the group][16], all channels
 *     for panels of outputs, as many as have their m in the second-level cache:
 *       for 36 points: m [36][k/16][tiles][16] = u v, a group is what a register tile holds; then y
 *
 * While products are made the next panel of u is fetched, where it comes from far.
 *
 * Backward-data is forward with dy for x, the kernel turned around and its channels exchanged. */
#include "kernel/fc_parts.h"
#include "kernel/winograd4.h"

#include <stdint.h>
#include <stdio.h>

#include "base/tree.h"

enum {
    TILES = 28, /* of a block, at most; twice as many where u is read from memory each time */
    PIXELS = 4, /* a tile's rows and columns */
    SIDE = TUTTI_WINOGRAD4_SIDE,
    POINTS = TUTTI_WINOGRAD4_POINTS,
    CLASSES = TUTTI_WINOGRAD4_CLASSES,
    TILE_WEIGHTS = TUTTI_BLOCK * TUTTI_BLOCK,
    TAPS = 9,
};

/* ---- images and tiles ---- */

static bool ends_short(int pixels)
{
    return pixels % PIXELS == 1 || pixels % PIXELS == 2;
}

tutti_winograd4_image tutti_winograd4_output(const tutti_conv *conv, bool turned)
{
    const tutti_conv_shape *s = &conv->shape;
    tutti_winograd4_image image = {.blocks = tutti_ceil_div(turned ? s->c : s->k, TUTTI_BLOCK),
                                   .h = turned ? s->h : conv->out_h,
                                   .w = turned ? s->w : conv->out_w};
    image.tiles_h = tutti_ceil_div(image.h, PIXELS);
    image.tiles_w = tutti_ceil_div(image.w, PIXELS);
    image.short_h = ends_short(image.h);
    image.short_w = ends_short(image.w);
    return image;
}

tutti_winograd4_image tutti_winograd4_input(const tutti_conv *conv, bool turned)
{
    const tutti_conv_shape *s = &conv->shape;
    const tutti_winograd4_image cut = tutti_winograd4_output(conv, turned);
    tutti_winograd4_image image = tutti_winograd4_output(conv, !turned);
    image.pad_top = turned ? 2 - s->pad_top : s->pad_top;
    image.pad_left = turned ? 2 - s->pad_left : s->pad_left;
    image.tiles_h = cut.tiles_h;
    image.tiles_w = cut.tiles_w;
    image.short_h = cut.short_h;
    image.short_w = cut.short_w;
    return image;
}

int tutti_winograd4_tiles(const tutti_winograd4_image *image)
{
    return image->tiles_h * image->tiles_w;
}

long tutti_winograd4_plane(const tutti_winograd4_image *image)
{
    return (long)image->h * image->w * TUTTI_BLOCK;
}

long tutti_winograd4_sample(const tutti_winograd4_image *image)
{
    return image->blocks * tutti_winograd4_plane(image);
}

/* Points of one side of an image by its pixels: 6 of a tile, 4 of a short one. */
static double side_effort(int pixels)
{
    const int points = tutti_ceil_div(pixels, PIXELS) * SIDE;
    return (points - (ends_short(pixels) ? 2 : 0)) / (3.0 * pixels);
}

double tutti_winograd4_effort(const tutti_conv_shape *shape)
{
    return side_effort(tutti_conv_out_h(shape)) * side_effort(tutti_conv_out_w(shape));
}

/* A tile's sample, and its place there. */
typedef struct position {
    int sample, row, col;
} position;

static position position_of(const tutti_winograd4_image *image, int tile)
{
    const int each = tutti_winograd4_tiles(image), at = tile % each;
    return (position){tile / each, at / image->tiles_w, at % image->tiles_w};
}

static bool is_short_row(const tutti_winograd4_image *image, int row)
{
    return image->short_h && row == image->tiles_h - 1;
}

static bool is_short_col(const tutti_winograd4_image *image, int col)
{
    return image->short_w && col == image->tiles_w - 1;
}

void tutti_winograd4_find(tutti_winograd4_spot spots[], const tutti_winograd4_image *image,
                          int first, int count)
{
    for (int i = 0; i < count; i++) {
        const position at = position_of(image, first + i);
        const int row = at.row * PIXELS, col = at.col * PIXELS;
        spots[i].first =
            at.sample * tutti_winograd4_sample(image) + ((long)row * image->w + col) * TUTTI_BLOCK;
        spots[i].tile = (tutti_winograd4_tile){
            .row = (long)image->w * TUTTI_BLOCK,
            .rows = tutti_fc_least(PIXELS, image->h - row),
            .cols = tutti_fc_least(PIXELS, image->w - col),
            .short_h = is_short_row(image, at.row),
            .short_w = is_short_col(image, at.col),
        };
    }
}

/* ---- blocks of tiles ---- */

tutti_winograd4_block tutti_winograd4_block_take(tutti_arena *arena, int most)
{
    tutti_winograd4_block b = {0};
    for (int q = 0; q < CLASSES; q++) {
        b.at[q] = tutti_arena_take(arena, ((size_t)most + 1) * sizeof *b.at[q]);
        b.place[q] = tutti_arena_take(arena, (size_t)most * sizeof *b.place[q]);
    }
    return b;
}

/* Numbers the tiles of every class. */
static void number(tutti_winograd4_block *b, const tutti_winograd4_image *image)
{
    position at = position_of(image, b->first);
    int in[CLASSES] = {0};
    for (int t = 0; t < b->count; t++) {
        const bool short_h = is_short_row(image, at.row), short_w = is_short_col(image, at.col);
        for (int q = 0; q < CLASSES; q++) {
            b->at[q][t] = in[q];
            in[q] += !((q & 1 && short_w) || (q & 2 && short_h));
        }
        if (++at.col < image->tiles_w) continue;
        at.col = 0;
        at.row = (at.row + 1) % image->tiles_h;
    }
    for (int q = 0; q < CLASSES; q++) b->at[q][b->count] = in[q];
}

static int groups_of(const tutti_winograd4_block *b, int class, int group)
{
    return tutti_ceil_div(b->at[class][b->count], group);
}

void tutti_winograd4_cut(tutti_winograd4_block *b, const tutti_winograd4_image *image, int first,
                         int count, int group)
{
    b->first = first;
    b->count = count;
    number(b, image);
    for (int q = 0; q < CLASSES; q++) {
        const int groups = groups_of(b, q, group), tiles = b->at[q][count];
        for (int g = 0, t = 0; g < groups; g++) {
            const int begin = tutti_share_begin(tiles, groups, g);
            const int end = tutti_share_begin(tiles, groups, g + 1);
            for (; t < count && b->at[q][t] < end; t++)
                b->place[q][t] = (tutti_winograd4_place){
                    .first = ((long)begin * image->blocks + b->at[q][t] - begin) * TUTTI_BLOCK,
                    .block = (long)(end - begin) * TUTTI_BLOCK,
                };
        }
    }
}

/* Tiles t .. t+count-1 of the block, all of one row. */
static tutti_winograd4_strip strip_of(const tutti_winograd4_image *image,
                                      const tutti_winograd4_block *b, int t, int count,
                                      const float *x, const float *zeros)
{
    const position at = position_of(image, b->first + t);
    tutti_winograd4_strip s = {
        .count = count,
        .width = image->w,
        .col = at.col * PIXELS - image->pad_left,
        .short_h = is_short_row(image, at.row),
        .short_w = is_short_col(image, at.col + count - 1),
    };
    x += at.sample * tutti_winograd4_sample(image);
    for (int i = 0; i < SIDE; i++) {
        const int row = at.row * PIXELS - image->pad_top + i;
        const bool inside = row >= 0 && row < image->h;
        s.row[i] = inside ? x + (long)row * image->w * TUTTI_BLOCK : zeros;
        s.row_block[i] = inside ? tutti_winograd4_plane(image) : 0;
    }
    for (int q = 0; q < CLASSES; q++) s.place[q] = b->place[q] + t;
    return s;
}

void tutti_winograd4_spread(const tutti_winograd4_kernels *kernels,
                            const tutti_winograd4_image *image, const tutti_winograd4_block *block,
                            const tutti_fc_part *part, const float *x, const float *zeros, float *v,
                            long v_step)
{
    for (int t = part->a, count; t < part->a_end; t += count) {
        const int left = image->tiles_w - (block->first + t) % image->tiles_w;
        count = tutti_fc_least(left, part->a_end - t);
        const tutti_winograd4_strip strip = strip_of(image, block, t, count, x, zeros);
        for (int c = part->b; c < part->b_end; c++) kernels->input(&strip, c, v, v_step);
    }
}

/* ---- the shape of a pass ---- */

typedef struct pass {
    const tutti_winograd_job *job;
    const tutti_winograd4_kernels *kernels;
    tutti_winograd4_image in, out;
    int panels, group; /* of outputs; those whose m is held at a time */
    int tiles, most;   /* of all samples; of a block */
    bool far, stream;  /* u comes from memory; y goes there */
    long u_step, v_step, m_step;
    float *u, *zeros;
    char *own; /* of all threads */
    size_t own_bytes;
} pass;

/* What a thread works in. */
typedef struct room {
    tutti_winograd4_block block;
    tutti_winograd4_spot *spots;
    float *v, *m;
} room;

static room room_of(const pass *p, tutti_arena *arena)
{
    room r = {.block = tutti_winograd4_block_take(arena, p->most)};
    r.spots = tutti_arena_take(arena, (size_t)p->most * sizeof *r.spots);
    r.v = tutti_winograd4_floats(arena, POINTS * p->v_step);
    r.m = tutti_winograd4_floats(arena, POINTS * p->m_step);
    return r;
}

static pass pass_of(const tutti_conv *conv, bool turned)
{
    pass p = {.kernels = conv->kernels->winograd4,
              .in = tutti_winograd4_input(conv, turned),
              .out = tutti_winograd4_output(conv, turned)};
    const int panel = p.kernels->blocks;
    const tutti_caches *caches = &conv->caches;
    p.panels = tutti_ceil_div(p.out.blocks, panel);
    p.u_step = tutti_winograd4_step((long)p.in.blocks * p.out.blocks * TILE_WEIGHTS);
    const size_t u_bytes = POINTS * (size_t)p.u_step * sizeof(float);
    p.most = u_bytes > caches->l3 * (size_t)conv->threads ? 2 * TILES : TILES;
    p.far = u_bytes > 2 * caches->l2;
    const size_t m_bytes = POINTS * (size_t)(p.most * panel * TUTTI_BLOCK) * sizeof(float);
    p.group = tutti_fc_least((int)(caches->l2 / 2 / m_bytes) + 1, p.panels);
    p.v_step = tutti_winograd4_step((long)p.most * p.in.blocks * TUTTI_BLOCK);
    p.m_step = tutti_winograd4_step((long)p.most * p.group * panel * TUTTI_BLOCK);
    tutti_arena arena = {0};
    room_of(&p, &arena);
    p.own_bytes = arena.used;
    return p;
}

static void take_memory(pass *p, int threads, tutti_arena *arena)
{
    p->u = tutti_winograd4_floats(arena, POINTS * p->u_step);
    p->zeros = tutti_winograd4_floats(arena, (long)p->in.w * TUTTI_BLOCK);
    p->own = tutti_arena_take(arena, p->own_bytes * (size_t)threads);
}

static size_t pass_bytes(const tutti_conv *conv, bool turned)
{
    pass p = pass_of(conv, turned);
    tutti_arena arena = {0};
    take_memory(&p, conv->threads, &arena);
    return arena.used;
}

size_t tutti_winograd4_scratch(const tutti_conv *conv)
{
    const size_t forward = pass_bytes(conv, false), backward = pass_bytes(conv, true);
    return forward > backward ? forward : backward;
}

int tutti_winograd4_explain(const tutti_conv *conv, char *text, size_t bytes)
{
    const pass p = pass_of(conv, false);
    return snprintf(text, bytes,
                    "Winograd 4x4 of 3x3; forward, data: %d tiles by %d features at a time, %.4f "
                    "B/FLOP of weights; ",
                    p.most, p.group * p.kernels->blocks * TUTTI_BLOCK,
                    sizeof(float) / (2.0 * p.most));
}

/* ---- weights ---- */

/* Of a block of inputs and one of outputs, as forward has them. */
static const float *block_weights(const pass *p, int output, int input, float *turned)
{
    const tutti_winograd_job *job = p->job;
    if (!job->turned) return job->w + (long)(output * p->in.blocks + input) * TAPS * TILE_WEIGHTS;
    const float *w = job->w + (long)(input * p->out.blocks + output) * TAPS * TILE_WEIGHTS;
    for (int t = 0; t < TAPS; t++)
        job->conv->kernels->tiles->transpose(turned + (TAPS - 1 - t) * TILE_WEIGHTS,
                                             w + t * TILE_WEIGHTS);
    return turned;
}

/* The first block of outputs of a panel. */
static int panel_begin(const pass *p, int panel)
{
    return tutti_share_begin(p->out.blocks, p->panels, panel);
}

static const float *panel_of(const pass *p, int point, int panel)
{
    return p->u + point * p->u_step + (long)panel_begin(p, panel) * p->in.blocks * TILE_WEIGHTS;
}

static void weights_share(void *arg, int thread, int threads)
{
    const pass *p = arg;
    const int inputs = p->in.blocks, count = inputs * p->panels;
    const int end = tutti_share_begin(count, threads, thread + 1);
    float turned[TAPS * TILE_WEIGHTS];
    for (int at = tutti_share_begin(count, threads, thread); at < end; at++) {
        const int panel = at / inputs, input = at % inputs, first = panel_begin(p, panel);
        const int blocks = panel_begin(p, panel + 1) - first;
        float *const u = p->u + ((long)first * inputs + input * blocks) * TILE_WEIGHTS;
        for (int i = 0; i < blocks; i++)
            p->kernels->weights(block_weights(p, first + i, input, turned), u + i * TUTTI_BLOCK,
                                p->u_step, (long)blocks * TUTTI_BLOCK, p->far);
    }
    if (thread == 0)
        for (long i = 0; i < (long)p->in.w * TUTTI_BLOCK; i++) p->zeros[i] = 0;
}

/* ---- tiles ---- */

/* m of one point for one panel. 'next' is the panel that follows. */
static void multiply(const pass *p, const room *r, int point, int panel, int begin,
                     const float *next)
{
    const int q = tutti_winograd4_class(point / SIDE, point % SIDE);
    const int tiles = r->block.at[q][r->block.count];
    const int groups = groups_of(&r->block, q, p->kernels->tiles);
    const int first = panel_begin(p, panel), blocks = panel_begin(p, panel + 1) - first;
    const int lines = groups && next ? TUTTI_BLOCK * blocks / groups : 0;
    const long channels = (long)p->in.blocks * TUTTI_BLOCK;
    for (int g = 0; g < groups; g++) {
        const int from = tutti_share_begin(tiles, groups, g);
        const int count = tutti_share_begin(tiles, groups, g + 1) - from;
        p->kernels->product[blocks - 1][count - 1](&(tutti_winograd4_product){
            .channels = (int)channels,
            .u = panel_of(p, point, panel),
            .v = r->v + point * p->v_step + from * channels,
            .m = r->m + point * p->m_step +
                 ((long)(first - panel_begin(p, begin)) * tiles + from) * TUTTI_BLOCK,
            .m_block = (long)tiles * TUTTI_BLOCK,
            .next = lines ? next + (long)g * lines * channels : NULL,
            .lines = lines,
        });
    }
}

/* Of panels begin .. end-1. */
static void multiply_all(const pass *p, const room *r, int begin, int end)
{
    for (int point = 0; point < POINTS; point++)
        for (int panel = begin; panel < end; panel++) {
            const bool last = panel + 1 == end;
            const int follows = last ? (point + 1) % POINTS : point;
            const float *next = panel_of(p, follows, last ? begin : panel + 1);
            multiply(p, r, point, panel, begin, p->far ? next : NULL);
        }
}

static void transform_output(const pass *p, const room *r, int begin, int end)
{
    const tutti_winograd_job *job = p->job;
    const long plane = tutti_winograd4_plane(&p->out);
    const int first = panel_begin(p, begin), stop = panel_begin(p, end);
    for (int k = first; k < stop; k++)
        for (int t = 0; t < r->block.count; t++) {
            const float *m[CLASSES];
            const long y = r->spots[t].first + k * plane;
            for (int q = 0; q < CLASSES; q++) {
                const int *at = r->block.at[q];
                m[q] = r->m + ((long)(k - first) * at[r->block.count] + at[t]) * TUTTI_BLOCK;
            }
            p->kernels->output(&r->spots[t].tile, m, p->m_step,
                               job->bias ? job->bias + k * TUTTI_BLOCK : NULL,
                               job->mask ? job->mask + y : NULL, job->y + y);
        }
}

/* Tiles first .. first+count-1 are made ready: where they are, and their v. */
static void begin_block(const pass *p, room *r, int first, int count)
{
    tutti_winograd4_cut(&r->block, &p->in, first, count, p->kernels->tiles);
    tutti_winograd4_find(r->spots, &p->out, first, count);
    for (int t = 0; t < count; t++) {
        r->spots[t].tile.stream = p->stream;
        r->spots[t].tile.relu = p->job->relu;
    }
    tutti_winograd4_spread(p->kernels, &p->in, &r->block,
                           &(tutti_fc_part){0, count, 0, p->in.blocks}, p->job->x, p->zeros, r->v,
                           p->v_step);
}

static void run_share(void *arg, int thread, int threads)
{
    const pass *p = arg;
    const tutti_fc_part part = tutti_fc_part_of(p->tiles, p->panels, thread, threads);
    tutti_arena arena = {p->own + (size_t)thread * p->own_bytes, p->own_bytes, 0};
    room r = room_of(p, &arena);
    const int tiles = part.a_end - part.a, blocks = tutti_ceil_div(tiles, p->most);
    for (int i = 0; i < blocks; i++) { /* of equal size rather than a small last one */
        const int first = tutti_share_begin(tiles, blocks, i);
        begin_block(p, &r, part.a + first, tutti_share_begin(tiles, blocks, i + 1) - first);
        for (int panel = part.b; panel < part.b_end; panel += p->group) {
            const int end = tutti_fc_least(panel + p->group, part.b_end);
            multiply_all(p, &r, panel, end);
            transform_output(p, &r, panel, end);
        }
    }
}

/* An output that no cache would keep until it is read does not pass through them. */
static bool streams(const pass *p, const tutti_conv *conv)
{
    const size_t bytes =
        (size_t)p->job->n * (size_t)tutti_winograd4_sample(&p->out) * sizeof(float);
    return bytes > conv->caches.l3 * (size_t)conv->threads &&
           (uintptr_t)p->job->y % TUTTI_CACHE_LINE == 0;
}

void tutti_winograd4_run(const tutti_winograd_job *job, tutti_team *team, void *scratch)
{
    TUTTI_ASSERT(tutti_team_size(team) <= job->conv->threads);
    pass p = pass_of(job->conv, job->turned);
    tutti_arena arena = {scratch, SIZE_MAX, 0};
    p.job = job;
    p.tiles = job->n * tutti_winograd4_tiles(&p.in);
    p.stream = streams(&p, job->conv);
    take_memory(&p, job->conv->threads, &arena);
    tutti_team_run(team, weights_share, &p);
    tutti_team_run(team, run_share, &p);
}
