/* Backward-weights of convolutions that round: a grain of one part of dw.
 *
 * The sum runs over pixels of dy, which lie behind each other from sample to sample:
 *
 *   for each some hundred pixels
 *     pack dy's features of the part into panels
 *     for each 16 channels of the part, tap: pack what the tap meets in x, turned, zeros outside
 *       for each two panels of 16 features: one product
 *
 * so that both operands of a product are in the first-level cache or close to it, and dw, which is
 * read and written once for all these pixels, may lie further away. Products fetch what is packed
 * next: x of the next channels, and piece by piece dy of the next pixels. */
#include "kernel/conv_bf16.h"

#include <string.h>

#include "base/memory.h"
#include "base/share.h"

enum { B = TUTTI_BLOCK, TERMS = TUTTI_BF16_TERMS, PANEL = TUTTI_BF16_PANEL };

static int min_of(int a, int b)
{
    return a < b ? a : b;
}

/* A thread's room: panels of dy, rows of x, the terms of the blocks, where a tap finds them. */
typedef struct room {
    tutti_bf16 *dy, *x;
    tutti_bf16_block *block;
    int *at;
} room;

typedef struct chunk {
    const tutti_conv_bf16_grain *of;
    long pixel; /* of the first block, from the grain's first one */
    int pixels, blocks;
    room room;
} chunk;

/* Blocks of features that a part may have. */
static int most_features(const tutti_conv_gradient *g)
{
    return min_of(g->features,
                  tutti_ceil_div(g->feature_tiles, g->blocks.features) * g->tile_blocks);
}

static size_t floats_of(size_t bytes)
{
    return tutti_round_up(bytes, TUTTI_CACHE_LINE) / sizeof(float);
}

size_t tutti_conv_bf16_room(const tutti_conv *conv)
{
    const size_t blocks = (size_t)conv->bf16->pixels;
    const size_t features = (size_t)most_features(&conv->gradient);
    return floats_of(features * blocks * PANEL * sizeof(tutti_bf16)) +
           floats_of(B * blocks * TERMS * sizeof(tutti_bf16)) +
           floats_of(blocks * sizeof(tutti_bf16_block)) + floats_of(blocks * TERMS * sizeof(int));
}

static room room_of(const tutti_conv_bf16_grain *g)
{
    const size_t blocks = (size_t)g->conv->bf16->pixels;
    float *at = g->room;
    room r = {.dy = (tutti_bf16 *)at};
    at += floats_of((size_t)g->part->nf * blocks * PANEL * sizeof(tutti_bf16));
    r.x = (tutti_bf16 *)at;
    at += floats_of(B * blocks * TERMS * sizeof(tutti_bf16));
    r.block = (tutti_bf16_block *)at;
    at += floats_of(blocks * sizeof(tutti_bf16_block));
    r.at = (int *)at;
    return r;
}

void tutti_conv_bf16_plan_gradient(tutti_conv *conv)
{
    enum { USUAL = 8 };
    conv->bf16->pixels = USUAL;
}

/* ---- packing ---- */

static long plane(const tutti_conv *conv)
{
    return (long)conv->out_h * conv->out_w;
}

static int terms_of(const chunk *c, int block)
{
    return min_of(c->pixels - block * TERMS, TERMS);
}

/* Panels of 16 features from the part's 'feature'th on. */
static void pack_dy(const chunk *c, int feature)
{
    const tutti_conv_bf16_grain *of = c->of;
    const tutti_conv_gradient *g = &of->conv->gradient;
    const long pixels = plane(of->conv);
    const float *dy = of->dy + (of->part->features + feature) * g->dy_block;
    tutti_bf16 *to = c->room.dy + (size_t)feature * (size_t)c->blocks * PANEL;
    float lines[TERMS][B];
    for (int b = 0; b < c->blocks; b++, to += PANEL) {
        const int terms = terms_of(c, b);
        const long at = c->pixel + b * TERMS, sample = of->begin + at / pixels, first = at % pixels;
        const float *from = dy + sample * g->dy_sample + first * B;
        if (first + terms > pixels) {
            for (int k = 0; k < terms; k++)
                memcpy(lines[k],
                       dy + (of->begin + (at + k) / pixels) * g->dy_sample + (at + k) % pixels * B,
                       sizeof lines[k]);
            from = lines[0];
        }
        of->conv->bf16->kernels->panel(terms, from, B, B * B, to);
    }
}

/* Where tap (r, s) meets the pixels, in floats from the part's first channel block; -1: outside. */
static void find_pixels(const chunk *c, int r, int s)
{
    const tutti_conv *conv = c->of->conv;
    const tutti_conv_shape *shape = &conv->shape;
    const tutti_conv_gradient *g = &conv->gradient;
    long at = c->pixel % plane(conv), sample = c->pixel / plane(conv);
    int row = (int)(at / conv->out_w), col = (int)(at % conv->out_w);
    for (int k = 0; k < c->pixels; k++) {
        const int h = row * shape->stride_h - shape->pad_top + r * shape->dilation_h;
        const int w = col * shape->stride_w - shape->pad_left + s * shape->dilation_w;
        const bool inside = h >= 0 && h < shape->h && w >= 0 && w < shape->w;
        c->room.at[k] = inside ? (int)(sample * g->x_sample + h * g->x_row + w * B) : -1;
        if (++col < conv->out_w) continue;
        col = 0;
        if (++row < conv->out_h) continue;
        row = 0;
        sample++;
    }
}

/* Rows of 16 channels: what the tap meets. */
static void pack_x(const chunk *c, const float *x)
{
    const size_t row = (size_t)c->blocks * TERMS;
    const tutti_bf16_kernels *kernels = c->of->conv->bf16->kernels;
    for (int b = 0; b < c->blocks; b++)
        kernels->picked_rows(terms_of(c, b), x, c->room.at + b * TERMS, c->room.x + b * TERMS, row);
}

/* ---- products ---- */

/* 16 channels of one tap by all features. Products fetch dy and x in turn. */
static void run_tap(const chunk *c, float *dw, tutti_conv_bf16_ahead ahead[2])
{
    const tutti_conv_bf16_grain *of = c->of;
    const tutti_bf16_kernels *kernels = of->conv->bf16->kernels;
    const int nf = of->part->nf;
    for (int f = 0; f < nf; f += kernels->panels) {
        float *to = dw + f * of->feature;
        tutti_bf16_product product = {
            .rows = B,
            .panels = min_of(kernels->panels, nf - f),
            .count = c->blocks,
            .block = c->room.block,
            .a = c->room.x,
            .a_row = (ptrdiff_t)c->blocks * TERMS,
            .b = c->room.dy + (size_t)f * (size_t)c->blocks * PANEL,
            .b_panel = (size_t)c->blocks * PANEL,
            .b_block = PANEL,
            .from = c->pixel ? to : NULL,
            .from_row = B,
            .from_panel = (size_t)of->feature,
            .to = to,
            .to_row = B,
            .to_panel = (size_t)of->feature,
        };
        tutti_conv_bf16_fetch(
            &ahead[ahead[0].runs > 0 && (!ahead[1].runs || f / kernels->panels % 2) ? 0 : 1],
            &product);
        kernels->product(&product);
    }
}

/* The part's dy, or x, of as many pixels after these, in pieces for 'calls' products. */
static tutti_conv_bf16_ahead ahead_of(const chunk *c, const float *from, long block, int blocks,
                                      long sample, long row, int rows, int calls)
{
    const long pixels = plane(c->of->conv), at = c->pixel + c->pixels;
    const long first = at % pixels / c->of->conv->out_w * rows * row;
    tutti_conv_bf16_ahead ahead = {
        .at = from + (c->of->begin + at / pixels) * sample + first,
        .run = (size_t)(((c->pixels - 1) / c->of->conv->out_w + 1) * rows * row),
        .apart = (size_t)block,
        .runs = blocks,
    };
    ahead.piece =
        tutti_round_up(ahead.run * (size_t)blocks / (size_t)(calls > 0 ? calls : 1) + 1, B);
    return ahead;
}

static void sum_chunk(const chunk *c)
{
    const tutti_conv_bf16_grain *of = c->of;
    const tutti_conv *conv = of->conv;
    const tutti_conv_gradient *g = &conv->gradient;
    const int first = of->part->first_channel + of->part->channels;
    const float *x = of->x + of->begin * g->x_sample + first * g->x_block;
    const int pairs = tutti_ceil_div(of->part->nf, conv->bf16->kernels->panels);
    const int calls = conv->shape.r * conv->shape.s * of->part->nc * pairs / 2;
    tutti_conv_bf16_ahead ahead[] = {
        ahead_of(c, of->dy + of->part->features * g->dy_block, g->dy_block, of->part->nf,
                 g->dy_sample, g->dy_row, 1, calls),
        ahead_of(c, of->x + first * g->x_block, g->x_block, of->part->nc, g->x_sample, g->x_row,
                 conv->shape.stride_h, calls),
    };
    for (int b = 0; b < c->blocks; b++)
        c->room.block[b] = (tutti_bf16_block){b * TERMS, b * TERMS + TUTTI_BF16_ODD,
                                              tutti_bf16_slots(terms_of(c, b))};
    for (int f = 0; f < of->part->nf; f++) pack_dy(c, f);
    for (int r = 0; r < conv->shape.r; r++)
        for (int s = 0; s < conv->shape.s; s++) {
            float *dw = of->dw + ((long)r * conv->shape.s + s) * B * B;
            find_pixels(c, r, s);
            for (int i = 0; i < of->part->nc; i++) {
                pack_x(c, x + i * g->x_block);
                run_tap(c, dw + i * g->w_tile, ahead);
            }
        }
}

void tutti_conv_bf16_sum_grain(const tutti_conv_bf16_grain *g)
{
    const long pixels = (g->end - g->begin) * plane(g->conv);
    const int blocks = (int)((pixels + TERMS - 1) / TERMS);
    const int chunks = tutti_ceil_div(blocks, g->conv->bf16->pixels);
    for (int i = 0; i < chunks; i++) {
        const long begin = (long)tutti_share_begin(blocks, chunks, i) * TERMS;
        const long end = (long)tutti_share_begin(blocks, chunks, i + 1) * TERMS;
        const chunk c = {
            .of = g,
            .pixel = begin,
            .pixels = (int)((end < pixels ? end : pixels) - begin),
            .blocks = (int)((end - begin) / TERMS),
            .room = room_of(g),
        };
        sum_chunk(&c);
    }
}
