/* Fully connected layers: the loops around the kernels.
 *
 * Every thread has a rectangle of the output to itself (threads split outputs, never a sum) and
 * walks it in an order that touches each weight as few times as possible, for the weights are
 * what is large: at small batches the passes run at the speed at which memory delivers them.
 *
 *   forward   for pieces of the chain over inputs: for panels of outputs: all samples.
 *             The piece of x stays in the second-level cache, y holds the unfinished chains.
 *   data      dy is transposed once, so that samples lie in lanes and the weights are the scalars.
 *             For runs of inputs: for runs of leaves: all samples. The stacks of the run's
 *             trees stay in the second-level cache, the weights stream through in long runs.
 *   weights   x and dy are packed once into blocks of 16 columns.
 *             For runs of inputs: for panels of outputs: the tile's tree over all grains in
 *             registers and first-level cache, then dw is written, once. */
#include "kernel/fc.h"

#include <stdint.h>
#include <string.h>

#include "base/memory.h"
#include "base/tree.h"
#include "kernel/fc_kernels.h"

enum {
    CHAIN_PIECE = 256,    /* inputs of a piece of forward's chain */
    SAMPLES = 256,        /* samples that forward and data hold in cache at a time */
    LEAF_RUN = 4,         /* leaves of data's tree a tile does at a time, at most */
    DATA_INPUTS = 192,    /* inputs of a run of backward-data, at most */
    WEIGHT_INPUTS = 1024, /* of a run of backward-weights, at most, ... */
    FAR_INPUTS = 192,     /* ... and when partial sums wait for other samples */
};

struct tutti_fc {
    int in, out; /* rounded up to 16 */
    int features;
    int threads;
    const tutti_fc_kernels *kernels;
    tutti_caches caches;
};

static int filled(int count)
{
    return (count + TUTTI_BLOCK - 1) / TUTTI_BLOCK * TUTTI_BLOCK;
}

static int blocks_of(int count)
{
    return (count + TUTTI_BLOCK - 1) / TUTTI_BLOCK;
}

static int leaves_of(int outputs)
{
    return (outputs + TUTTI_FC_LEAF - 1) / TUTTI_FC_LEAF;
}

static int least(int a, int b)
{
    return a < b ? a : b;
}

/* Do so many floats leave the caches of all threads before they are used again? */
static bool beyond_caches(const tutti_fc *fc, size_t count)
{
    return count * sizeof(float) > fc->caches.l3 * (size_t)fc->threads;
}

tutti_status tutti_fc_create(tutti_fc **out, int in, int out_features, const tutti_kernels *row,
                             const tutti_caches *caches, int n, int threads)
{
    (void)n;
    tutti_fc *fc = NULL;
    TUTTI_TRY(tutti_alloc(&fc, 1, sizeof *fc));
    *fc = (tutti_fc){.in = filled(in),
                     .out = filled(out_features),
                     .features = out_features,
                     .threads = threads,
                     .kernels = row->fc,
                     .caches = *caches};
    *out = fc;
    return TUTTI_OK;
}

void tutti_fc_destroy(tutti_fc **fc)
{
    tutti_free(*fc);
    *fc = NULL;
}

size_t tutti_fc_weight_count(const tutti_fc *fc)
{
    return (size_t)fc->in * fc->out;
}

int tutti_fc_leaves(const tutti_fc *fc)
{
    return leaves_of(fc->features);
}

/* ---- scratch: the same function measures and takes ---- */

static float *take(tutti_arena *arena, size_t floats)
{
    return tutti_arena_take(arena, floats * sizeof(float));
}

/* Inputs of a run of backward-data: its stacks fill at most half the second-level cache. */
static int data_inputs(const tutti_fc *fc, int n)
{
    const size_t held = (size_t)filled(n < 1 ? 1 : least(n, SAMPLES)) * sizeof(float);
    const size_t levels = (size_t)tutti_tree_height(tutti_fc_leaves(fc)) + 1;
    const size_t fit = fc->caches.l2 / 2 / (held * levels) / 48 * 48;
    return fit < 48 ? 48 : fit > DATA_INPUTS ? DATA_INPUTS : (int)fit;
}

/* Floats of one thread's stacks and of its unfinished dx. */
static size_t data_stack_floats(const tutti_fc *fc, int n)
{
    return (size_t)data_inputs(fc, n) * filled(least(n, SAMPLES)) *
           (tutti_tree_height(tutti_fc_leaves(fc)) + 1);
}

static size_t data_dx_floats(const tutti_fc *fc, int n)
{
    return (size_t)data_inputs(fc, n) * filled(least(n, SAMPLES));
}

enum { NEAR_STACK = TUTTI_TREE_LEVELS * TUTTI_FC_NEAR };

static size_t far_floats(const tutti_fc *fc, int n);

size_t tutti_fc_scratch(const tutti_fc *fc, int n)
{
    tutti_arena data = {0}, weights = {0};
    take(&data, (size_t)filled(n) * fc->out);
    for (int t = 0; t < fc->threads; t++) {
        take(&data, NEAR_STACK);
        take(&data, data_stack_floats(fc, n));
        take(&data, data_dx_floats(fc, n));
    }
    take(&weights, (size_t)n * fc->in);
    take(&weights, (size_t)n * fc->out);
    for (int t = 0; t < fc->threads; t++) {
        take(&weights, NEAR_STACK);
        take(&weights, far_floats(fc, n));
    }
    return data.used > weights.used ? data.used : weights.used;
}

/* ---- a rectangle of the output for each thread ---- */

typedef struct rectangle {
    int a, a_end, b, b_end;
} rectangle;

/* The part of member 'member' of 'size' of an output of a x b pieces: the grid of parts whose
 * largest part is smallest, rather cut along a. */
static rectangle part_of(int a, int b, int member, int size)
{
    int parts_a = 1;
    long best = -1;
    for (int p = size; p >= 1; p--) {
        const long largest = (long)tutti_ceil_div(a, p) * tutti_ceil_div(b, size / p);
        if (best < 0 || largest < best) {
            best = largest;
            parts_a = p;
        }
    }
    const int parts_b = size / parts_a, i = member % parts_a, j = member / parts_a;
    if (j >= parts_b) return (rectangle){0, 0, 0, 0};
    return (rectangle){tutti_share_begin(a, parts_a, i), tutti_share_begin(a, parts_a, i + 1),
                       tutti_share_begin(b, parts_b, j), tutti_share_begin(b, parts_b, j + 1)};
}

/* Panels of about equal width, none wider than 'limit' blocks. */
static int panels_of(int blocks, int limit)
{
    return tutti_ceil_div(blocks, limit);
}

/* ---- forward ---- */

typedef struct forward_pass {
    const tutti_fc *fc;
    int n, outputs;
    const float *x, *w, *bias;
    bool relu;
    float *y;
} forward_pass;

/* The weights that are needed after those of the panel that ends at 'block_end'. */
static const float *next_weights(const forward_pass *pass, const rectangle *part, int block_end,
                                 int input, int input_end)
{
    const bool last = block_end == part->a_end;
    if (last && input_end == pass->fc->in) return NULL;
    return pass->w +
           ((size_t)(last ? part->a : block_end) * pass->fc->in + (last ? input_end : input)) *
               TUTTI_BLOCK;
}

/* One piece of the chain: samples 'sample' .. 'sample_end'-1 of the output blocks of 'part'. */
static void forward_piece(const forward_pass *pass, const rectangle *part, int sample,
                          int sample_end, int input)
{
    const tutti_fc *fc = pass->fc;
    const int blocks = part->a_end - part->a;
    const int panels = panels_of(blocks, fc->kernels->forward_blocks);
    const int end = least(input + CHAIN_PIECE, fc->in);
    for (int p = 0; p < panels; p++) {
        const int block = part->a + tutti_share_begin(blocks, panels, p);
        const int block_end = part->a + tutti_share_begin(blocks, panels, p + 1);
        const size_t w_block = (size_t)fc->in * TUTTI_BLOCK;
        fc->kernels->forward(&(tutti_fc_forward_job){
            .samples = sample_end - sample,
            .blocks = block_end - block,
            .inputs = end - input,
            .x = pass->x + (size_t)sample * fc->in + input,
            .x_row = (size_t)fc->in,
            .w = pass->w + block * w_block + (size_t)input * TUTTI_BLOCK,
            .w_block = w_block,
            .y = pass->y + (size_t)sample * pass->outputs + block * TUTTI_BLOCK,
            .y_row = (size_t)pass->outputs,
            .first = input == 0,
            .last = end == fc->in,
            .bias = pass->bias ? pass->bias + block * TUTTI_BLOCK : NULL,
            .relu = pass->relu,
            .next = next_weights(pass, part, block_end, input, end),
        });
    }
}

static void forward_member(void *arg, int member, int size)
{
    const forward_pass *pass = arg;
    const rectangle part = part_of(blocks_of(pass->outputs), pass->n, member, size);
    for (int sample = part.b; sample < part.b_end; sample += SAMPLES)
        for (int input = 0; input < pass->fc->in; input += CHAIN_PIECE)
            forward_piece(pass, &part, sample, least(sample + SAMPLES, part.b_end), input);
}

void tutti_fc_forward(const tutti_fc *fc, tutti_team *team, void *scratch, int n, int outputs,
                      const float *x, const float *w, const float *bias, bool relu, float *y)
{
    (void)scratch;
    forward_pass pass = {fc, n, filled(outputs), x, w, bias, relu, y};
    tutti_team_run(team, forward_member, &pass);
}

/* ---- backward-data ---- */

typedef struct data_pass {
    const tutti_fc *fc;
    int n, outputs;
    const float *dy;
    size_t dy_row;
    const float *w, *mask;
    float *dx;
    float *dy_transposed, *near, *far, *tile; /* but for dy one after the other, per thread */
    size_t far_floats, tile_floats;
    int inputs; /* of a run */
    bool fetch; /* the weights come from memory, faster than they are used */
} data_pass;

static void data_pack_member(void *arg, int member, int size)
{
    const data_pass *pass = arg;
    const rectangle part = part_of(blocks_of(pass->outputs), blocks_of(pass->n), member, size);
    const int sample = part.b * TUTTI_BLOCK, column = part.a * TUTTI_BLOCK;
    const size_t block = (size_t)pass->outputs * TUTTI_BLOCK;
    pass->fc->kernels->pack_transposed(
        least(part.b_end * TUTTI_BLOCK, pass->n) - sample, (part.a_end - part.a) * TUTTI_BLOCK,
        pass->dy + (size_t)sample * pass->dy_row + column, pass->dy_row,
        pass->dy_transposed + part.b * block + (size_t)column * TUTTI_BLOCK, block);
}

/* Leaves of a run: as many (a power of two) as leave the run's dy in the first-level cache. */
static int leaves_of_run(const tutti_fc *fc, int blocks)
{
    const size_t leaf = (size_t)TUTTI_FC_LEAF * blocks * TUTTI_BLOCK * sizeof(float);
    int leaves = LEAF_RUN;
    while (leaves > 1 && leaves * leaf > fc->caches.l1 * 2 / 3) leaves /= 2;
    return leaves;
}

/* All sample blocks of 'part' (b) for inputs 'input' .. 'input_end'-1: run after run of leaves. */
static void data_run(const data_pass *pass, const rectangle *part, int input, int input_end,
                     int member)
{
    const tutti_fc *fc = pass->fc;
    const int blocks = part->b_end - part->b, leaves = leaves_of(pass->outputs);
    const int panels = panels_of(blocks, fc->kernels->data_blocks), inputs = input_end - input;
    const int per_run = leaves_of_run(fc, tutti_ceil_div(blocks, panels));
    const int runs = tutti_ceil_div(leaves, per_run), levels = tutti_tree_height(runs) + 1;
    const int run_blocks = per_run * TUTTI_FC_LEAF / TUTTI_BLOCK, all = blocks_of(pass->outputs);
    const size_t w_block = (size_t)fc->in * TUTTI_BLOCK;
    const size_t dy_block = (size_t)pass->outputs * TUTTI_BLOCK;
    float *far = pass->far + member * pass->far_floats;
    float *tile = pass->tile + member * pass->tile_floats;
    for (int run = 0; run < runs; run++)
        for (int p = 0; p < panels; p++) {
            const int first = tutti_share_begin(blocks, panels, p), o = run * run_blocks;
            fc->kernels->data(&(tutti_fc_data_job){
                .inputs = inputs,
                .blocks = tutti_share_begin(blocks, panels, p + 1) - first,
                .run = run,
                .runs = runs,
                .output_blocks = least(run_blocks, all - o),
                .w = pass->w + o * w_block + (size_t)input * TUTTI_BLOCK,
                .w_block = w_block,
                .dy = pass->dy_transposed + (part->b + first) * dy_block +
                      (size_t)o * TUTTI_BLOCK * TUTTI_BLOCK,
                .dy_block = dy_block,
                .near = pass->near + (size_t)member * NEAR_STACK,
                .far = far + (size_t)first * TUTTI_BLOCK * inputs * levels,
                .levels = levels,
                .dx = tile + (size_t)first * TUTTI_BLOCK,
                .dx_row = (size_t)blocks * TUTTI_BLOCK,
                .fetch = pass->fetch && p == 0 ? least(run_blocks, all - o - run_blocks) : 0,
            });
        }
    const int sample = part->b * TUTTI_BLOCK;
    const size_t at = (size_t)sample * fc->in + input;
    fc->kernels->unpack_transposed(least(part->b_end * TUTTI_BLOCK, pass->n) - sample, inputs, tile,
                                   (size_t)blocks * TUTTI_BLOCK,
                                   pass->mask ? pass->mask + at : NULL, pass->dx + at, fc->in);
}

static void data_member(void *arg, int member, int size)
{
    const data_pass *pass = arg;
    const rectangle mine = part_of(blocks_of(pass->fc->in), blocks_of(pass->n), member, size);
    const int end = mine.a_end * TUTTI_BLOCK, step = SAMPLES / TUTTI_BLOCK;
    for (int b = mine.b; b < mine.b_end; b += step) {
        const rectangle part = {mine.a, mine.a_end, b, least(b + step, mine.b_end)};
        for (int i = mine.a * TUTTI_BLOCK; i < end; i += pass->inputs)
            data_run(pass, &part, i, least(i + pass->inputs, end), member);
    }
}

static void backward_data(data_pass *pass, tutti_team *team, void *scratch)
{
    const tutti_fc *fc = pass->fc;
    TUTTI_ASSERT(tutti_team_size(team) <= fc->threads);
    tutti_arena arena = {.base = scratch, .bytes = tutti_fc_scratch(fc, pass->n)};
    pass->inputs = data_inputs(fc, pass->n);
    pass->fetch = pass->n <= TUTTI_BLOCK && beyond_caches(fc, (size_t)pass->outputs * fc->in);
    pass->far_floats = data_stack_floats(fc, pass->n);
    pass->tile_floats = data_dx_floats(fc, pass->n);
    pass->dy_transposed = take(&arena, (size_t)filled(pass->n) * pass->outputs);
    pass->near = take(&arena, (size_t)NEAR_STACK * fc->threads);
    pass->far = take(&arena, pass->far_floats * fc->threads);
    pass->tile = take(&arena, pass->tile_floats * fc->threads);
    tutti_team_run(team, data_pack_member, pass);
    tutti_team_run(team, data_member, pass);
}

void tutti_fc_backward_data(const tutti_fc *fc, tutti_team *team, void *scratch, int n, int outputs,
                            const float *dy, const float *w, const float *mask, float *dx)
{
    if (outputs == 0) {
        memset(dx, 0, (size_t)n * fc->in * sizeof *dx);
        return;
    }
    data_pass pass = {.fc = fc,
                      .n = n,
                      .outputs = filled(outputs),
                      .dy = dy,
                      .dy_row = (size_t)filled(outputs),
                      .w = w,
                      .mask = mask,
                      .dx = dx};
    backward_data(&pass, team, scratch);
}

int tutti_fc_backward_data_roots(const tutti_fc *fc, tutti_team *team, void *scratch, int n,
                                 int first, int end, const float *dy, const float *w,
                                 float *const partial[])
{
    tutti_subtree roots[TUTTI_TREE_MAX_ROOTS];
    const int count = tutti_tree_roots(roots, tutti_fc_leaves(fc), first, end);
    const int begin = first * TUTTI_FC_LEAF, held = least(end * TUTTI_FC_LEAF, fc->out) - begin;
    for (int r = 0; r < count; r++) {
        const int from = (roots[r].index << roots[r].level) * TUTTI_FC_LEAF;
        const int to = least(from + (TUTTI_FC_LEAF << roots[r].level), fc->out);
        data_pass pass = {.fc = fc,
                          .n = n,
                          .outputs = to - from,
                          .dy = dy + (from - begin),
                          .dy_row = (size_t)held,
                          .w = w + (size_t)(from - begin) * fc->in,
                          .dx = partial[r]};
        backward_data(&pass, team, scratch);
    }
    return count;
}

/* ---- backward-weights ---- */

/* How the samples are cut so that a run of them stays in the first-level cache: into subtrees of
 * 'grains' grains (a power of two), or a grain of many samples into pieces. Grains of few samples
 * need no cutting: the kernel sweeps. */
typedef struct run_plan {
    int grains, runs;
    int piece; /* samples at a time */
    bool sweep;
} run_plan;

static bool all_few(const tutti_grains *grains, int few)
{
    for (int g = 0; g < grains->count; g++) {
        const int samples = grains->begin[g + 1] - grains->begin[g];
        if (samples < 1 || samples > few) return false;
    }
    return true;
}

static run_plan plan_runs(const tutti_fc *fc, const tutti_grains *grains, int n)
{
    const int columns = fc->kernels->weights_blocks * TUTTI_BLOCK;
    const int room = (int)(fc->caches.l1 / 2 / sizeof(float)) / columns;
    const int per_grain = tutti_ceil_div(n < 1 ? 1 : n, grains->count);
    if (all_few(grains, fc->kernels->few_samples))
        return (run_plan){.grains = grains->count, .runs = 1, .piece = n, .sweep = true};
    run_plan plan = {.grains = 1, .piece = n};
    while (plan.grains < grains->count && 2 * plan.grains * per_grain <= room) plan.grains *= 2;
    if (per_grain > room) plan.piece = room < 32 ? 32 : room;
    plan.runs = tutti_ceil_div(grains->count, plan.grains);
    return plan;
}

typedef struct weights_pass {
    const tutti_fc *fc;
    const tutti_grains *grains;
    run_plan plan;
    int n, outputs, inputs; /* inputs: of a run */
    const float *x, *dy;    /* from the first grain's first sample on */
    float *dw, *db;
    float *x_packed, *dy_packed, *near, *far;
    size_t far_floats;
    bool stream;
} weights_pass;

/* Floats of one thread's partial sums that wait for other runs; there are at most n runs. */
static size_t far_floats(const tutti_fc *fc, int n)
{
    return (size_t)FAR_INPUTS * fc->kernels->weights_blocks * TUTTI_BLOCK *
           (tutti_tree_height(n) + 1);
}

static void weights_pack_member(void *arg, int member, int size)
{
    const weights_pass *pass = arg;
    const size_t block = (size_t)pass->n * TUTTI_BLOCK;
    const int i = tutti_share_begin(blocks_of(pass->fc->in), size, member);
    const int i_end = tutti_share_begin(blocks_of(pass->fc->in), size, member + 1);
    const int o = tutti_share_begin(blocks_of(pass->outputs), size, member);
    const int o_end = tutti_share_begin(blocks_of(pass->outputs), size, member + 1);
    pass->fc->kernels->pack(pass->n, (i_end - i) * TUTTI_BLOCK, pass->x + i * TUTTI_BLOCK,
                            (size_t)pass->fc->in, pass->x_packed + i * block, block);
    pass->fc->kernels->pack(pass->n, (o_end - o) * TUTTI_BLOCK, pass->dy + o * TUTTI_BLOCK,
                            (size_t)pass->outputs, pass->dy_packed + o * block, block);
}

/* The run's samples of a job that is complete but for them: one grain in pieces, or several. */
static void weights_run(const weights_pass *pass, tutti_fc_weights_job *job)
{
    const run_plan *plan = &pass->plan;
    const int first = job->run * plan->grains, *grain = pass->grains->begin + first;
    const float *x = job->x, *dy = job->dy;
    job->grains = least(plan->grains, pass->grains->count - first);
    const int end = grain[job->grains] - pass->grains->begin[0];
    int sample = grain[0] - pass->grains->begin[0];
    do {
        const int piece_end = job->grains > 1 ? end : least(sample + plan->piece, end);
        const int piece[2] = {sample, piece_end};
        job->first = sample == grain[0] - pass->grains->begin[0];
        job->last = piece_end == end;
        job->begin = job->grains > 1 ? grain : piece;
        job->x = x + (size_t)sample * TUTTI_BLOCK;
        job->dy = dy + (size_t)sample * TUTTI_BLOCK;
        pass->fc->kernels->weights(job);
        sample = piece_end;
    } while (sample < end);
    job->x = x;
    job->dy = dy;
}

/* A panel of outputs for inputs 'input' .. 'input_end'-1, run after run. */
static void weights_panel(const weights_pass *pass, int block, int block_end, int input,
                          int input_end, int member)
{
    const size_t packed = (size_t)pass->n * TUTTI_BLOCK;
    tutti_fc_weights_job job = {
        .inputs = input_end - input,
        .blocks = block_end - block,
        .runs = pass->plan.runs,
        .sweep = pass->plan.sweep,
        .x = pass->x_packed + (size_t)input * pass->n,
        .x_block = packed,
        .dy = pass->dy_packed + block * packed,
        .dy_block = packed,
        .near = pass->near + (size_t)member * NEAR_STACK,
        .far = pass->far + (size_t)member * pass->far_floats,
        .levels = tutti_tree_height(pass->plan.runs) + 1,
        .dw = pass->dw + ((size_t)block * pass->fc->in + input) * TUTTI_BLOCK,
        .dw_block = (size_t)pass->fc->in * TUTTI_BLOCK,
        .stream = pass->stream,
    };
    for (job.run = 0; job.run < job.runs; job.run++) weights_run(pass, &job);
}

static void weights_bias(const weights_pass *pass, const rectangle *part, int member)
{
    const size_t packed = (size_t)pass->n * TUTTI_BLOCK;
    const tutti_fc_weights_job job = {
        .blocks = part->a_end - part->a,
        .grains = pass->grains->count,
        .begin = pass->grains->begin,
        .first = true,
        .dy = pass->dy_packed + part->a * packed,
        .dy_block = packed,
        .near = pass->near + (size_t)member * NEAR_STACK,
    };
    pass->fc->kernels->bias(&job, pass->db + part->a * TUTTI_BLOCK);
}

static void weights_member(void *arg, int member, int size)
{
    const weights_pass *pass = arg;
    const tutti_fc *fc = pass->fc;
    const rectangle part = part_of(blocks_of(pass->outputs), blocks_of(fc->in), member, size);
    const int blocks = part.a_end - part.a, end = part.b_end * TUTTI_BLOCK;
    const int panels = panels_of(blocks, fc->kernels->weights_blocks);
    for (int i = part.b * TUTTI_BLOCK; i < end; i += pass->inputs)
        for (int p = 0; p < panels; p++)
            weights_panel(pass, part.a + tutti_share_begin(blocks, panels, p),
                          part.a + tutti_share_begin(blocks, panels, p + 1), i,
                          least(i + pass->inputs, end), member);
    if (pass->db && part.b == 0 && blocks > 0) weights_bias(pass, &part, member);
}

void tutti_fc_backward_weights(const tutti_fc *fc, tutti_team *team, void *scratch,
                               const tutti_grains *grains, int outputs, const float *x,
                               const float *dy, float *dw, float *db)
{
    TUTTI_ASSERT(tutti_team_size(team) <= fc->threads);
    const size_t count = (size_t)filled(outputs) * fc->in;
    if (grains->count == 0) {
        memset(dw, 0, count * sizeof *dw);
        if (db) memset(db, 0, (size_t)filled(outputs) * sizeof *db);
        return;
    }
    const int first = grains->begin[0], n = grains->begin[grains->count] - first;
    tutti_arena arena = {.base = scratch, .bytes = tutti_fc_scratch(fc, n)};
    weights_pass pass = {
        .fc = fc,
        .grains = grains,
        .plan = plan_runs(fc, grains, n),
        .n = n,
        .outputs = filled(outputs),
        .x = x + (size_t)first * fc->in,
        .dy = dy + (size_t)first * filled(outputs),
        .dw = dw,
        .db = db,
        .x_packed = take(&arena, (size_t)n * fc->in),
        .dy_packed = take(&arena, (size_t)n * fc->out),
        .near = take(&arena, (size_t)NEAR_STACK * fc->threads),
        .far = take(&arena, far_floats(fc, n) * fc->threads),
        .far_floats = far_floats(fc, n),
        .stream = beyond_caches(fc, count) && (uintptr_t)dw % TUTTI_CACHE_LINE == 0,
    };
    const bool alone = pass.plan.runs == 1 && pass.plan.piece >= n;
    pass.inputs = alone ? WEIGHT_INPUTS : FAR_INPUTS;
    tutti_team_run(team, weights_pack_member, &pass);
    tutti_team_run(team, weights_member, &pass);
}
