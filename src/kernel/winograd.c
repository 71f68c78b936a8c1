/* Winograd's F(2x2, 3x3) for 3x3 kernels at stride 1: forward and backward-data, and what
 * winograd_gradient.c needs of it, too.
 *
 * Two by two pixels of the output need four by four of the input. Transformed,
 *
 *     y = A^T [ sum over c of (G w G^T) * (B^T x B) ] A        * is element by element
 *
 * 16 multiply-adds per channel make four pixels, not 36: 2.25 times fewer. The 16 points are 16
 * products of matrices, tiles by channels by features, and these are what forward of a fully
 * connected layer does (fc_kernels.h).
 *
 * What is computed, in which order, is fixed by the shape alone: u, v and y by additions in the
 * order of winograd_tmpl.c; each point's sum is one chain of multiply-adds over the channels. So
 * bits are the same on every instruction set, for every number of threads and samples. The error
 * is a few times that of the direct sum (ref_winograd.c bounds it); larger tiles are not used
 * because their errors are larger.
 *
 *   u   is made from the weights once per pass, for all threads
 *   for blocks of tiles: v of all channels
 *     for groups of output features: for 16 points: m += v u, the group's m in the second-level
 *       cache; then y
 *
 * Backward-data is forward with dy for x, the kernel turned around and its channels exchanged. */
#include "kernel/conv_plan.h"

#include <stdio.h>

#include "base/memory.h"
#include "base/tree.h"
#include "kernel/fc_parts.h"

enum {
    TILES = 128, /* of a block, at most */
    SHARE = 8,   /* tiles that threads share out at a time */
    CHAIN = 512, /* channels at a time, in the second-level cache with the tiles' v */
    POINTS = TUTTI_WINOGRAD_POINTS,
    TILE_WEIGHTS = TUTTI_BLOCK * TUTTI_BLOCK,
    TAPS = 9,
};

/* ---- images ---- */

tutti_winograd_image tutti_winograd_input(const tutti_conv *conv, bool turned)
{
    const tutti_conv_shape *s = &conv->shape;
    tutti_winograd_image image = tutti_winograd_output(conv, !turned);
    const tutti_winograd_image cut = tutti_winograd_output(conv, turned);
    image.pad_top = turned ? 2 - s->pad_top : s->pad_top;
    image.pad_left = turned ? 2 - s->pad_left : s->pad_left;
    image.tiles_h = cut.tiles_h;
    image.tiles_w = cut.tiles_w;
    return image;
}

tutti_winograd_image tutti_winograd_output(const tutti_conv *conv, bool turned)
{
    const tutti_conv_shape *s = &conv->shape;
    tutti_winograd_image image = {.blocks = tutti_ceil_div(turned ? s->c : s->k, TUTTI_BLOCK),
                                  .h = turned ? s->h : conv->out_h,
                                  .w = turned ? s->w : conv->out_w};
    image.tiles_h = tutti_ceil_div(image.h, 2);
    image.tiles_w = tutti_ceil_div(image.w, 2);
    return image;
}

int tutti_winograd_tiles(const tutti_winograd_image *image)
{
    return image->tiles_h * image->tiles_w;
}

long tutti_winograd_plane(const tutti_winograd_image *image)
{
    return (long)image->h * image->w * TUTTI_BLOCK;
}

static int clamp(int value, int low, int high)
{
    return value < low ? low : value > high ? high : value;
}

tutti_winograd_tile tutti_winograd_cut(const tutti_winograd_image *image, int tile, long *first)
{
    const int sample = tile / tutti_winograd_tiles(image), at = tile % tutti_winograd_tiles(image);
    const int row = at / image->tiles_w * 2 - image->pad_top;
    const int col = at % image->tiles_w * 2 - image->pad_left;
    *first = (long)sample * image->blocks * tutti_winograd_plane(image) +
             ((long)row * image->w + col) * TUTTI_BLOCK;
    return (tutti_winograd_tile){
        .row = (long)image->w * TUTTI_BLOCK,
        .top = clamp(-row, 0, TUTTI_WINOGRAD_SIDE),
        .bottom = clamp(image->h - row, 0, TUTTI_WINOGRAD_SIDE),
        .left = clamp(-col, 0, TUTTI_WINOGRAD_SIDE),
        .right = clamp(image->w - col, 0, TUTTI_WINOGRAD_SIDE),
    };
}

/* ---- the shape of a pass ---- */

typedef struct pass {
    const tutti_winograd_job *job;
    const tutti_winograd_kernels *kernels;
    tutti_winograd_image in, out;
    int inputs, outputs; /* blocks of channels */
    int tiles;           /* of all samples */
    int group;           /* blocks of outputs whose m is held at a time */
    float *u, *own;      /* own: of all threads */
    long u_step;
    size_t v_row, m_row, own_floats;
} pass;

/* As many as leave three eighths of the second-level cache to the rest, in whole panels. */
static int group_of(const tutti_conv *conv, int outputs)
{
    const int panel = conv->products->forward_blocks;
    const size_t block = (size_t)POINTS * TILES * TUTTI_BLOCK * sizeof(float);
    const int panels = (int)(conv->caches.l2 * 5 / 8 / block) / panel;
    const int most = (panels ? panels : 1) * panel;
    return most < outputs ? most : outputs;
}

static pass pass_of(const tutti_conv *conv, bool turned)
{
    pass p = {.kernels = conv->kernels->winograd,
              .in = tutti_winograd_input(conv, turned),
              .out = tutti_winograd_output(conv, turned)};
    p.inputs = p.in.blocks;
    p.outputs = p.out.blocks;
    p.group = group_of(conv, p.outputs);
    p.u_step = (long)p.inputs * p.outputs * TILE_WEIGHTS;
    p.v_row = (size_t)(p.inputs + 1) * TUTTI_BLOCK; /* an odd number of lines, mostly */
    p.m_row = (size_t)(p.group + 1) * TUTTI_BLOCK;
    p.own_floats = (size_t)POINTS * TILES * (p.v_row + p.m_row);
    return p;
}

static size_t pass_floats(const tutti_conv *conv, bool turned)
{
    const pass p = pass_of(conv, turned);
    return (size_t)POINTS * (size_t)p.u_step + p.own_floats * (size_t)conv->threads;
}

size_t tutti_winograd_scratch(const tutti_conv *conv)
{
    const size_t forward = pass_floats(conv, false), backward = pass_floats(conv, true);
    return (forward > backward ? forward : backward) * sizeof(float);
}

int tutti_winograd_explain(const tutti_conv *conv, char *text, size_t bytes)
{
    const pass p = pass_of(conv, false);
    return snprintf(text, bytes,
                    "Winograd 2x2 of 3x3; forward, data: %d tiles by %d features at a time, %.4f "
                    "B/FLOP of weights; ",
                    TILES, p.group * TUTTI_BLOCK, sizeof(float) / (2.0 * TILES));
}

/* ---- weights ---- */

/* Of a block of inputs and one of outputs, as forward has them. */
static const float *block_weights(const pass *p, int output, int input, float *turned)
{
    const tutti_winograd_job *job = p->job;
    if (!job->turned) return job->w + (long)(output * p->inputs + input) * TAPS * TILE_WEIGHTS;
    const float *w = job->w + (long)(input * p->outputs + output) * TAPS * TILE_WEIGHTS;
    for (int t = 0; t < TAPS; t++)
        job->conv->kernels->tiles->transpose(turned + (TAPS - 1 - t) * TILE_WEIGHTS,
                                             w + t * TILE_WEIGHTS);
    return turned;
}

static void weights_share(void *arg, int thread, int threads)
{
    const pass *p = arg;
    const int count = p->inputs * p->outputs, end = tutti_share_begin(count, threads, thread + 1);
    float turned[TAPS * TILE_WEIGHTS];
    for (int at = tutti_share_begin(count, threads, thread); at < end; at++)
        p->kernels->weights(block_weights(p, at / p->inputs, at % p->inputs, turned),
                            p->u + (long)at * TILE_WEIGHTS, p->u_step);
}

/* ---- tiles ---- */

/* A run of tiles of all samples, with the memory for it. */
typedef struct block {
    int first, count;
    float *v, *m;
} block;

static void transform_input(const pass *p, const block *b)
{
    const long x_block = tutti_winograd_plane(&p->in), v_step = (long)TILES * (long)p->v_row;
    for (int i = 0; i < b->count; i++) {
        long first;
        const tutti_winograd_tile tile = tutti_winograd_cut(&p->in, b->first + i, &first);
        const float *x = p->job->x + first;
        float *v = b->v + (size_t)i * p->v_row;
        for (int c = 0; c < p->inputs; c++)
            p->kernels->input(&tile, x + c * x_block, v + c * TUTTI_BLOCK, v_step);
    }
}

static void transform_output(const pass *p, const block *b, int output, int end)
{
    const tutti_winograd_job *job = p->job;
    const long y_block = tutti_winograd_plane(&p->out), m_step = (long)TILES * (long)p->m_row;
    for (int i = 0; i < b->count; i++) {
        long first;
        const tutti_winograd_tile tile = tutti_winograd_cut(&p->out, b->first + i, &first);
        const float *m = b->m + (size_t)i * p->m_row;
        for (int k = output; k < end; k++) {
            const long y = first + k * y_block;
            p->kernels->output(&tile, m + (k - output) * TUTTI_BLOCK, m_step,
                               job->bias ? job->bias + k * TUTTI_BLOCK : NULL, job->relu,
                               job->mask ? job->mask + y : NULL, job->y + y);
        }
    }
}

/* m of one point for outputs 'output' .. 'end'-1: a product of matrices. */
static void multiply(const pass *p, const block *b, int point, int output, int end)
{
    const tutti_fc_kernels *products = p->job->conv->products;
    const int channels = p->inputs * TUTTI_BLOCK, blocks = end - output;
    const int panels = tutti_ceil_div(blocks, products->forward_blocks);
    const size_t w_block = (size_t)p->inputs * TILE_WEIGHTS;
    const float *const u = p->u + point * p->u_step + (long)output * (long)w_block;
    for (int c = 0; c < channels; c += CHAIN)
        for (int i = 0; i < panels; i++) {
            const int first = tutti_share_begin(blocks, panels, i);
            const int behind = tutti_share_begin(blocks, panels, i + 1);
            const float *const w = u + first * w_block + (size_t)c * TUTTI_BLOCK;
            products->forward(&(tutti_fc_forward_job){
                .samples = b->count,
                .blocks = behind - first,
                .inputs = tutti_fc_least(CHAIN, channels - c),
                .x = b->v + (size_t)point * TILES * p->v_row + c,
                .x_row = p->v_row,
                .w = w,
                .w_block = w_block,
                .y = b->m + (size_t)point * TILES * p->m_row + (size_t)first * TUTTI_BLOCK,
                .y_row = p->m_row,
                .first = c == 0,
                .last = true,
                .next = i + 1 < panels ? w + (behind - first) * w_block : NULL,
            });
        }
}

static void run_share(void *arg, int thread, int threads)
{
    const pass *p = arg;
    const tutti_fc_part part =
        tutti_fc_part_of(tutti_ceil_div(p->tiles, SHARE), p->outputs, thread, threads);
    const int stop = tutti_fc_least(part.a_end * SHARE, p->tiles);
    float *const own = p->own + (size_t)thread * p->own_floats;
    const int begin = part.a * SHARE, tiles = stop - begin, blocks = tutti_ceil_div(tiles, TILES);
    for (int i = 0; i < blocks; i++) { /* of equal size rather than a small last one */
        const int first = tutti_share_begin(tiles, blocks, i);
        const block b = {begin + first, tutti_share_begin(tiles, blocks, i + 1) - first, own,
                         own + (size_t)POINTS * TILES * p->v_row};
        transform_input(p, &b);
        for (int output = part.b; output < part.b_end; output += p->group) {
            const int end = tutti_fc_least(output + p->group, part.b_end);
            for (int point = 0; point < POINTS; point++) multiply(p, &b, point, output, end);
            transform_output(p, &b, output, end);
        }
    }
}

void tutti_winograd_run(const tutti_winograd_job *job, tutti_team *team, void *scratch)
{
    TUTTI_ASSERT(tutti_team_size(team) <= job->conv->threads);
    pass p = pass_of(job->conv, job->turned);
    p.job = job;
    p.tiles = job->n * tutti_winograd_tiles(&p.in);
    p.u = scratch;
    p.own = p.u + (size_t)POINTS * (size_t)p.u_step;
    tutti_team_run(team, weights_share, &p);
    tutti_team_run(team, run_share, &p);
}
