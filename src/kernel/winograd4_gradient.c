/* Backward-weights of 3x3 kernels at stride 1 by Winograd's algorithm: the gradient of winograd4.c.
 *
 * With v = B^T x B as there, and d = A dy A^T, which makes 36 points of 4x4 pixels,
 *
 *     dw = G^T [ sum over tiles of v * d ] G                    * is element by element
 *
 * so 36 multiply-adds instead of 144 here as well; short tiles as there. A grain's sum is one chain
 * over its tiles, sample by sample, row by row, for each point that they have; then come the
 * additions of G^T and G. Only then is it joined with other grains in the order of base/tree.h, so
 * that ranks exchange weights, not points.
 *
 * All threads go through the tiles together, in waves: first v and d of a wave's tiles, all
 * channels, then the sums, where each thread has parts of dw by itself:
 *
 *   for each wave of tiles, of as many samples as they are, or a part of one
 *     v, d   [36][c/16][tiles][16], [36][k/16][tiles][16], in the last-level cache
 *     for each part of dw, whose sums stay in the second-level cache
 *       for each grain of the wave: for 36 points: sums += v d, in registers 8 channels by 32
 *         features; if the grain ends here: dw += G^T sums G
 *
 * Sums [k/16][c/16][36][16][16] of a grain that goes on in the next wave wait in memory. A finished
 * one is added to those before it as it is made: grain i is the leaf i of a binary counter, so as
 * many gradients wait for others as i has ones, the first of them in dw itself. */
#include "kernel/fc_parts.h"
#include "kernel/winograd4.h"

#include <string.h>

#include "base/tree.h"

enum {
    SIDE = TUTTI_WINOGRAD4_SIDE,
    POINTS = TUTTI_WINOGRAD4_POINTS,
    CLASSES = TUTTI_WINOGRAD4_CLASSES,
    TILE_WEIGHTS = TUTTI_BLOCK * TUTTI_BLOCK,
    TAPS = 9,
};

typedef struct job {
    const tutti_conv *conv;
    const tutti_winograd4_kernels *kernels;
    const tutti_grains *grains;
    const float *x, *dy;
    float *dw, *db;
    tutti_winograd4_image in, out;
    int each, most;      /* tiles of an image; of a wave */
    long v_step, d_step; /* floats from one point to the next */
    float *v, *d, *sums, *zeros;
    float *stack, *bias_stack;            /* gradients that wait for others, but for the first */
    tutti_winograd4_block wave, wave_out; /* the same tiles of x and of dy */
    tutti_winograd4_spot *spots;
    int grain; /* the first that ends in this wave, or later */
} job;

/* ---- memory ---- */

static job job_of(const tutti_conv *conv)
{
    job j = {.conv = conv,
             .kernels = conv->kernels->winograd4,
             .in = tutti_winograd4_input(conv, false),
             .out = tutti_winograd4_output(conv, false)};
    j.each = tutti_winograd4_tiles(&j.out);
    j.most = conv->gradient.blocks.tiles;
    j.v_step = tutti_winograd4_step((long)j.most * j.in.blocks * TUTTI_BLOCK);
    j.d_step = tutti_winograd4_step((long)j.most * j.out.blocks * TUTTI_BLOCK);
    return j;
}

static void take_memory(job *j, tutti_arena *arena)
{
    const tutti_conv *conv = j->conv;
    const long levels = tutti_tree_height(conv->n > 1 ? conv->n : 1);
    j->v = tutti_winograd4_floats(arena, POINTS * j->v_step);
    j->d = tutti_winograd4_floats(arena, POINTS * j->d_step);
    j->sums =
        tutti_winograd4_floats(arena, (long)POINTS * j->in.blocks * j->out.blocks * TILE_WEIGHTS);
    j->zeros = tutti_winograd4_floats(arena, (long)j->in.w * TUTTI_BLOCK);
    j->stack = tutti_winograd4_floats(arena, levels * (long)tutti_conv_weight_count(conv));
    j->bias_stack = tutti_winograd4_floats(arena, levels * (long)tutti_conv_bias_count(conv));
    j->wave = tutti_winograd4_block_take(arena, j->most);
    j->wave_out = tutti_winograd4_block_take(arena, j->most);
    j->spots = tutti_arena_take(arena, (size_t)j->most * sizeof *j->spots);
}

size_t tutti_winograd4_gradient_scratch(const tutti_conv *conv)
{
    job j = job_of(conv);
    tutti_arena arena = {0};
    take_memory(&j, &arena);
    return arena.used;
}

/* ---- grains ---- */

/* Where gradient number 'depth' of those that wait is. */
static float *place_of(const job *j, int depth)
{
    return depth ? j->stack + (depth - 1) * (long)tutti_conv_weight_count(j->conv) : j->dw;
}

static float *bias_place(const job *j, int depth)
{
    return depth ? j->bias_stack + (depth - 1) * (long)tutti_conv_bias_count(j->conv) : j->db;
}

/* How many wait when the grain's gradient comes, and how many of them it is joined with. */
static int waiting(int grain)
{
    return __builtin_popcount((unsigned)grain);
}

static int joins_of(const job *j, int grain)
{
    return grain + 1 == j->grains->count ? waiting(grain) : tutti_tree_joins(grain);
}

/* The part of a grain that lies in the wave: tiles begin .. end-1 of the wave. */
typedef struct piece {
    int grain, begin, end;
    bool first, last; /* the grain begins here, ends here */
} piece;

static piece piece_of(const job *j, int grain)
{
    const int begin = j->grains->begin[grain] * j->each - j->wave.first;
    const int end = j->grains->begin[grain + 1] * j->each - j->wave.first;
    return (piece){.grain = grain,
                   .begin = begin > 0 ? begin : 0,
                   .end = tutti_fc_least(end, j->wave.count),
                   .first = begin >= 0,
                   .last = end <= j->wave.count};
}

/* ---- the wave's tiles ---- */

static void transform_dy(const job *j, const tutti_fc_part *part)
{
    const long plane = tutti_winograd4_plane(&j->out);
    for (int k = part->b; k < part->b_end; k++)
        for (int t = part->a; t < part->a_end; t++) {
            const tutti_winograd4_spot *spot = &j->spots[t];
            float *d[CLASSES];
            for (int q = 0; q < CLASSES; q++) {
                const tutti_winograd4_place *place = &j->wave_out.place[q][t];
                d[q] = j->d + place->first + k * place->block;
            }
            j->kernels->output_back(&spot->tile, j->dy + spot->first + k * plane, d, j->d_step);
        }
}

/* A block of features of the bias, over the samples that end in this wave: one chain for each grain
 * over rows and columns, as everywhere. */
static void sum_bias(const job *j, int k)
{
    const tutti_conv_gradient_tiles *kernels = j->conv->kernels->gradient;
    const long plane = tutti_winograd4_plane(&j->out), at = (long)k * TUTTI_BLOCK;
    const tutti_conv_gradient_piece rows = {.dy_row = (long)j->out.w * TUTTI_BLOCK};
    const int first = j->wave.first / j->each, end = (j->wave.first + j->wave.count) / j->each;
    for (int g = j->grain; g < j->grains->count; g++) {
        const int *begin = &j->grains->begin[g], depth = waiting(g);
        float *const sum = bias_place(j, depth) + at;
        if (begin[0] >= first) memset(sum, 0, TUTTI_BLOCK * sizeof *sum);
        for (int n = begin[0] > first ? begin[0] : first; n < begin[1] && n < end; n++)
            kernels->bias(&rows, 1, j->out.h, j->out.w,
                          j->dy + n * tutti_winograd4_sample(&j->out) + k * plane, sum);
        if (begin[1] > end) break;
        for (int i = 1; i <= joins_of(j, g); i++)
            kernels->join(bias_place(j, depth - i) + at, bias_place(j, depth - i + 1) + at,
                          TUTTI_BLOCK);
    }
}

static void transform_share(void *arg, int thread, int threads)
{
    const job *j = arg;
    const tutti_fc_part x = tutti_fc_part_of(j->wave.count, j->in.blocks, thread, threads);
    const tutti_fc_part dy = tutti_fc_part_of(j->wave.count, j->out.blocks, thread, threads);
    const int end = tutti_share_begin(j->out.blocks, threads, thread + 1);
    tutti_winograd4_spread(j->kernels, &j->in, &j->wave, &x, j->x, j->zeros, j->v, j->v_step);
    transform_dy(j, &dy);
    for (int k = tutti_share_begin(j->out.blocks, threads, thread); j->db && k < end; k++)
        sum_bias(j, k);
}

/* ---- sums ---- */

static float *sums_of(const job *j, int feature, int channel)
{
    return j->sums + ((long)feature * j->in.blocks + channel) * POINTS * TILE_WEIGHTS;
}

/* The chains of one point go on, or begin. While a block is used for the first time, that of the
 * next point is fetched. */
static void sum_point(const job *j, const tutti_conv_gradient_part *part, const piece *p, int point)
{
    const tutti_winograd4_kernels *kernels = j->kernels;
    const int q = tutti_winograd4_class(point / SIDE, point % SIDE);
    const int *at = j->wave.at[q];
    const int begin = at[p->begin], count = at[p->end] - begin, all = at[j->wave.count];
    const bool goes_on = point + 1 < POINTS;
    for (int f = 0, nf; f < part->nf; f += nf) {
        nf = tutti_fc_least(kernels->gathered, part->nf - f);
        for (int c = 0; c < part->nc; c++) {
            const int feature = part->features + f, channel = part->channels + c;
            float *const sums = sums_of(j, feature, channel) + point * TILE_WEIGHTS;
            kernels->gather[nf - 1](&(tutti_winograd4_gather){
                .tiles = count,
                .first = p->first,
                .d = j->d + point * j->d_step + ((long)feature * all + begin) * TUTTI_BLOCK,
                .v = j->v + point * j->v_step + ((long)channel * all + begin) * TUTTI_BLOCK,
                .sums = sums,
                .d_block = (long)all * TUTTI_BLOCK,
                .sums_block = (long)j->in.blocks * POINTS * TILE_WEIGHTS,
                .d_ahead = goes_on && c == 0 ? j->d_step : 0,
                .v_ahead = goes_on && f == 0 ? j->v_step : 0,
                .next = goes_on && !p->first ? sums + TILE_WEIGHTS : NULL,
            });
        }
    }
}

/* The grain is complete. */
static void finish(const job *j, const tutti_conv_gradient_part *part, int grain)
{
    const int depth = waiting(grain), joins = joins_of(j, grain);
    for (int f = part->features; f < part->features + part->nf; f++)
        for (int c = part->channels; c < part->channels + part->nc; c++) {
            const long at = ((long)f * j->in.blocks + c) * TAPS * TILE_WEIGHTS;
            const float *below[TUTTI_TREE_LEVELS];
            for (int i = 0; i < joins; i++) below[i] = place_of(j, depth - 1 - i) + at;
            j->kernels->weights_back(sums_of(j, f, c), joins, below,
                                     place_of(j, depth - joins) + at);
        }
}

static void sums_share(void *arg, int thread, int threads)
{
    const job *j = arg;
    const tutti_conv_gradient *g = &j->conv->gradient;
    const int parts = tutti_conv_gradient_part_count(g);
    const int end = tutti_share_begin(parts, threads, thread + 1);
    for (int i = tutti_share_begin(parts, threads, thread); i < end; i++) {
        const tutti_conv_gradient_part part = tutti_conv_gradient_part_of(g, i);
        piece p = {.last = true};
        for (int grain = j->grain; p.last && grain < j->grains->count; grain++) {
            p = piece_of(j, grain);
            if (p.begin >= p.end && !p.last) break;
            for (int point = 0; point < POINTS; point++) sum_point(j, &part, &p, point);
            if (p.last) finish(j, &part, grain);
        }
    }
}

/* ---- waves ---- */

static void run_wave(job *j, tutti_team *team, int first, int count)
{
    tutti_winograd4_cut(&j->wave, &j->in, first, count, j->most);
    tutti_winograd4_cut(&j->wave_out, &j->out, first, count, j->most);
    tutti_winograd4_find(j->spots, &j->out, first, count);
    tutti_team_run(team, transform_share, j);
    tutti_team_run(team, sums_share, j);
    while (j->grain < j->grains->count && piece_of(j, j->grain).last) j->grain++;
}

static void clear(const job *j)
{
    memset(j->dw, 0, tutti_conv_weight_count(j->conv) * sizeof(float));
    if (j->db) memset(j->db, 0, tutti_conv_bias_count(j->conv) * sizeof(float));
}

void tutti_winograd4_gradient(const tutti_conv *conv, const tutti_task *task, const float *x,
                              const float *dy, float *dw, float *db)
{
    const tutti_grains *grains = task->grains;
    job j = job_of(conv);
    tutti_arena arena = {task->scratch, SIZE_MAX, 0};
    take_memory(&j, &arena);
    j.grains = grains;
    j.x = x, j.dy = dy, j.dw = dw, j.db = db;
    memset(j.zeros, 0, (size_t)j.in.w * TUTTI_BLOCK * sizeof(float));
    if (!grains->count) {
        clear(&j);
        return;
    }
    const int begin = grains->begin[0] * j.each;
    const int tiles = grains->begin[grains->count] * j.each - begin;
    const int waves = tiles ? tutti_ceil_div(tiles, j.most) : 1;
    for (int i = 0; i < waves; i++) { /* of equal size rather than a small last one */
        const int first = tutti_share_begin(tiles, waves, i);
        run_wave(&j, task->team, begin + first, tutti_share_begin(tiles, waves, i + 1) - first);
    }
}
