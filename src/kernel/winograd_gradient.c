/* Backward-weights of 3x3 kernels at stride 1 by Winograd's algorithm: the gradient of winograd.c.
 *
 * With v = B^T x B as there, and d = A dy A^T, which makes 16 points of 2x2 pixels,
 *
 *     dw = G^T [ sum over tiles of v * d ] G                    * is element by element
 *
 * so 16 multiply-adds instead of 36 here as well. The 16 points are products of matrices, channels
 * by tiles by features: backward-weights of a fully connected layer (fc_kernels.h), with tiles for
 * samples.
 *
 * A grain's sum is one chain over its tiles, sample by sample, row by row, for each point; then
 * come the additions of G^T and G. Only then is it joined with other grains (conv_gradient.c), so
 * that ranks exchange weights, not points. A part of dw goes through the tiles by itself:
 * v and d are made anew for each part, a sixth of the time, and all 16 points of a part stay in
 * the second-level cache. */
#include "kernel/conv_plan.h"

#include "base/memory.h"
#include "base/tree.h"
#include "kernel/fc_parts.h"

enum {
    TILES = 64, /* at a time */
    POINTS = TUTTI_WINOGRAD_POINTS,
    TILE_WEIGHTS = TUTTI_BLOCK * TUTTI_BLOCK,
    BLOCK_TILES = (TILES + 1) * TUTTI_BLOCK, /* floats of a block of channels, one point: an odd
                                              * number of lines, or all points were in one set */
};

/* What lies in the room, each [POINTS] of it. */
typedef struct points {
    float *v, *d;        /* [blocks][TILES][16] */
    float *sums, *m;     /* of unfinished chains, as the kernels have them; [nf][nc][16 c][16 k] */
    long v_step, d_step; /* floats from one point to the next */
    long m_step;
} points;

static points points_of(float *room, int nf, int nc)
{
    points p = {.v_step = (long)nc * BLOCK_TILES,
                .d_step = (long)nf * BLOCK_TILES,
                .m_step = (long)nf * nc * TILE_WEIGHTS};
    p.v = room;
    p.d = p.v + POINTS * p.v_step;
    p.sums = p.d + POINTS * p.d_step;
    p.m = p.sums + POINTS * p.m_step;
    return p;
}

size_t tutti_winograd_gradient_room(const tutti_conv *conv)
{
    const tutti_conv_gradient *g = &conv->gradient;
    const int nf = tutti_ceil_div(g->feature_tiles, g->blocks.features) * g->tile_blocks;
    const int nc = tutti_ceil_div(g->channels, g->blocks.channels);
    return (size_t)POINTS * (size_t)((nc + nf) * BLOCK_TILES + 2 * nf * nc * TILE_WEIGHTS);
}

/* v and d of tiles first .. first+count-1 of all samples: plane after plane, whose tiles follow
 * each other in memory. */
static void transform(const tutti_winograd_grain *g, const points *p, int first, int count)
{
    const tutti_winograd_kernels *kernels = g->conv->kernels->winograd;
    const tutti_winograd_image in = tutti_winograd_input(g->conv, false);
    const tutti_winograd_image out = tutti_winograd_output(g->conv, false);
    const float *const x = g->x + g->part->channels * tutti_winograd_plane(&in);
    const float *const dy = g->dy + g->part->features * tutti_winograd_plane(&out);
    tutti_winograd_tile from[TILES], to[TILES];
    long from_at[TILES], to_at[TILES];
    for (int i = 0; i < count; i++) {
        from[i] = tutti_winograd_cut(&in, first + i, &from_at[i]);
        to[i] = tutti_winograd_cut(&out, first + i, &to_at[i]);
    }
    for (int c = 0; c < g->part->nc; c++)
        for (int i = 0; i < count; i++)
            kernels->input(&from[i], x + c * tutti_winograd_plane(&in) + from_at[i],
                           p->v + c * BLOCK_TILES + i * TUTTI_BLOCK, p->v_step);
    for (int f = 0; f < g->part->nf; f++)
        for (int i = 0; i < count; i++)
            kernels->output_back(&to[i], dy + f * tutti_winograd_plane(&out) + to_at[i],
                                 p->d + f * BLOCK_TILES + i * TUTTI_BLOCK, p->d_step);
}

/* The chains of one point go on for 'count' tiles, or begin, or end. */
static void multiply(const tutti_winograd_grain *g, const points *p, int point, int count,
                     bool first, bool last)
{
    const tutti_fc_kernels *products = g->conv->products;
    const int nf = g->part->nf, nc = g->part->nc, one_grain[2] = {0, count};
    const int panels = tutti_ceil_div(nf, products->weights_blocks);
    for (int i = 0; i < panels; i++) {
        const int f = tutti_share_begin(nf, panels, i);
        const long at = point * p->m_step + (long)f * nc * TILE_WEIGHTS;
        products->weights(&(tutti_fc_weights_job){
            .inputs = nc * TUTTI_BLOCK,
            .blocks = tutti_share_begin(nf, panels, i + 1) - f,
            .runs = 1,
            .grains = 1,
            .begin = one_grain,
            .first = first,
            .last = last,
            .x = p->v + point * p->v_step,
            .x_block = BLOCK_TILES,
            .dy = p->d + point * p->d_step + (long)f * BLOCK_TILES,
            .dy_block = BLOCK_TILES,
            .far = p->sums + at,
            .levels = 1,
            .dw = p->m + at,
            .dw_block = (size_t)nc * TILE_WEIGHTS,
        });
    }
}

static void finish(const tutti_winograd_grain *g, const points *p)
{
    for (int f = 0; f < g->part->nf; f++)
        for (int c = 0; c < g->part->nc; c++)
            g->conv->kernels->winograd->weights_back(
                p->m + ((long)f * g->part->nc + c) * TILE_WEIGHTS, p->m_step,
                g->dw + f * g->feature + c * g->conv->gradient.w_tile);
}

void tutti_winograd_sum_grain(const tutti_winograd_grain *g)
{
    const points p = points_of(g->room, g->part->nf, g->part->nc);
    const tutti_winograd_image out = tutti_winograd_output(g->conv, false);
    const int each = tutti_winograd_tiles(&out), tiles = (g->end - g->begin) * each;
    const int pieces = tutti_ceil_div(tiles, TILES);
    for (int i = 0; i < pieces; i++) { /* of equal size rather than a small last one */
        const int first = tutti_share_begin(tiles, pieces, i);
        const int count = tutti_share_begin(tiles, pieces, i + 1) - first;
        transform(g, &p, g->begin * each + first, count);
        for (int point = 0; point < POINTS; point++)
            multiply(g, &p, point, count, i == 0, i + 1 == pieces);
    }
    finish(g, &p);
}
