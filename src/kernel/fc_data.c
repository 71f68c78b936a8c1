/* Backward-data of fully connected layers; see fc.c. */
#include <string.h>

#include "kernel/fc_parts.h"

enum {
    LEAVES_ALONE = 4,  /* of a run where one panel has all samples */
    LEAST_INPUTS = 48, /* of a run: whole tiles of every shape */
    MOST_INPUTS = 192,
};

/* Floats from one block of 16 samples of the transposed dy to the next. The blocks' runs of leaves
 * lie one behind the other in the sets of a cache, where a power of two of outputs would put them
 * all into the same few sets. */
static size_t dy_block_floats(int outputs)
{
    return (size_t)(outputs + LEAVES_ALONE / 2 * TUTTI_FC_LEAF + 1) * TUTTI_BLOCK;
}

static int leaves_of(int outputs)
{
    return tutti_ceil_div(outputs, TUTTI_FC_LEAF);
}

/* A run is some leaves of the tree by some inputs. */
typedef struct data_run_shape {
    int leaves, inputs;
} data_run_shape;

/* The second-level cache holds a panel's dy of the run (an eighth), so many (a power of two) that
 * few of the tree's joins leave the registers' neighbourhood; the weights, which all panels use (a
 * quarter at most); the same of the job that follows; and the stacks over runs (a quarter). */
static data_run_shape data_run_of(const tutti_fc *fc, int n)
{
    const int blocks = tutti_fc_blocks(tutti_fc_least(n < 1 ? 1 : n, TUTTI_FC_SAMPLES));
    const int panels = tutti_ceil_div(blocks, fc->kernels->data_blocks);
    const size_t sample_block = TUTTI_BLOCK * sizeof(float);
    const size_t leaf = TUTTI_FC_LEAF * sample_block * (size_t)tutti_ceil_div(blocks, panels);
    int leaves = panels > 1 ? fc->kernels->data_leaves : LEAVES_ALONE;
    while (leaves > 1 && leaves * leaf > fc->caches.l2 / 8) leaves /= 2;
    const int levels = tutti_tree_height(tutti_ceil_div(tutti_fc_leaves(fc), leaves)) + 1;
    const size_t stacks = fc->caches.l2 / 4 / (blocks * sample_block * (size_t)levels);
    const size_t weights = fc->caches.l2 / 4 / ((size_t)leaves * TUTTI_FC_LEAF * sizeof(float));
    const size_t fit = (stacks < weights ? stacks : weights) / LEAST_INPUTS * LEAST_INPUTS;
    return (data_run_shape){leaves, fit < LEAST_INPUTS  ? LEAST_INPUTS
                                    : fit > MOST_INPUTS ? MOST_INPUTS
                                                        : (int)fit};
}

/* Floats of one thread's unfinished dx, and of its stacks. */
static size_t data_dx_floats(const tutti_fc *fc, int n)
{
    return (size_t)data_run_of(fc, n).inputs * tutti_fc_filled(tutti_fc_least(n, TUTTI_FC_SAMPLES));
}

static size_t data_stack_floats(const tutti_fc *fc, int n)
{
    const int runs = tutti_ceil_div(tutti_fc_leaves(fc), data_run_of(fc, n).leaves);
    return data_dx_floats(fc, n) * (size_t)(tutti_tree_height(runs) + 1);
}

size_t tutti_fc_data_scratch(const tutti_fc *fc, int n)
{
    tutti_arena arena = {0};
    tutti_fc_take(&arena, (size_t)tutti_fc_blocks(n) * dy_block_floats(fc->out));
    tutti_fc_take(&arena, (size_t)TUTTI_FC_NEAR_STACK * fc->threads);
    tutti_fc_take(&arena, data_stack_floats(fc, n) * fc->threads);
    tutti_fc_take(&arena, data_dx_floats(fc, n) * fc->threads);
    return arena.used;
}

typedef struct data_pass {
    const tutti_fc *fc;
    int n, outputs;
    const float *dy;
    size_t dy_row;
    const float *w, *mask;
    float *dx;
    float *dy_transposed, *near, *far, *tile; /* but for dy one after the other, per thread */
    size_t far_floats, tile_floats;
    data_run_shape run;
} data_pass;

static void data_pack_member(void *arg, int member, int size)
{
    const data_pass *pass = arg;
    const tutti_fc_part part =
        tutti_fc_part_of(tutti_fc_blocks(pass->outputs), tutti_fc_blocks(pass->n), member, size);
    const int sample = part.b * TUTTI_BLOCK, column = part.a * TUTTI_BLOCK;
    const size_t block = dy_block_floats(pass->outputs);
    pass->fc->kernels->pack_transposed(
        tutti_fc_least(part.b_end * TUTTI_BLOCK, pass->n) - sample,
        (part.a_end - part.a) * TUTTI_BLOCK, pass->dy + (size_t)sample * pass->dy_row + column,
        pass->dy_row, pass->dy_transposed + part.b * block + (size_t)column * TUTTI_BLOCK, block);
}

static int run_blocks(const data_pass *pass)
{
    return pass->run.leaves * TUTTI_FC_LEAF / TUTTI_BLOCK;
}

/* Weights of run 'run' from 'input' on, and dy of a block of samples. */
static const float *weights_of(const data_pass *pass, int run, int input)
{
    return pass->w + ((size_t)run * run_blocks(pass) * pass->fc->in + input) * TUTTI_BLOCK;
}

static const float *dy_of(const data_pass *pass, int run, int block)
{
    return pass->dy_transposed + block * dy_block_floats(pass->outputs) +
           (size_t)run * run_blocks(pass) * TUTTI_BLOCK * TUTTI_BLOCK;
}

/* Some inputs of all sample blocks of 'part' (b), which a thread does at a time. */
typedef struct data_piece {
    const data_pass *pass;
    const tutti_fc_part *part;
    int input, input_end, member;
    int runs, panels;
} data_piece;

/* Weights of the run after 'run', or of the piece after this one; NULL: there is none. */
static const float *weights_after(const data_piece *piece, int run)
{
    if (run + 1 < piece->runs) return weights_of(piece->pass, run + 1, piece->input);
    if (piece->input_end == piece->part->a_end * TUTTI_BLOCK) return NULL;
    return weights_of(piece->pass, 0, piece->input_end);
}

static void data_panel(const data_piece *piece, int run, int panel)
{
    const data_pass *pass = piece->pass;
    const tutti_fc_kernels *kernels = pass->fc->kernels;
    const int blocks = piece->part->b_end - piece->part->b;
    const int first = tutti_share_begin(blocks, piece->panels, panel);
    const int end = tutti_share_begin(blocks, piece->panels, panel + 1);
    const int inputs = piece->input_end - piece->input, levels = tutti_tree_height(piece->runs) + 1;
    const bool last = end == blocks;
    kernels->data(&(tutti_fc_data_job){
        .inputs = inputs,
        .blocks = end - first,
        .run = run,
        .runs = piece->runs,
        .output_blocks = tutti_fc_least(run_blocks(pass),
                                        tutti_fc_blocks(pass->outputs) - run * run_blocks(pass)),
        .w = weights_of(pass, run, piece->input),
        .w_block = (size_t)pass->fc->in * TUTTI_BLOCK,
        .dy = dy_of(pass, run, piece->part->b + first),
        .dy_block = dy_block_floats(pass->outputs),
        .near = pass->near + (size_t)piece->member * TUTTI_FC_NEAR_STACK,
        .far = pass->far + piece->member * pass->far_floats +
               (size_t)first * TUTTI_BLOCK * inputs * levels,
        .levels = levels,
        .dx = pass->tile + piece->member * pass->tile_floats + (size_t)first * TUTTI_BLOCK,
        .dx_row = (size_t)blocks * TUTTI_BLOCK,
        .next_w = last ? weights_after(piece, run) : NULL,
        .next_dy = dy_of(pass, (run + last) % piece->runs, piece->part->b + (last ? 0 : end)),
    });
}

/* Run after run of leaves, panel after panel of samples; then what came of it is put in place. */
static void data_inputs(const data_piece *piece)
{
    const data_pass *pass = piece->pass;
    for (int run = 0; run < piece->runs; run++)
        for (int p = 0; p < piece->panels; p++) data_panel(piece, run, p);
    const int sample = piece->part->b * TUTTI_BLOCK, end = piece->part->b_end * TUTTI_BLOCK;
    const size_t at = (size_t)sample * pass->fc->in + piece->input;
    pass->fc->kernels->unpack_transposed(
        tutti_fc_least(end, pass->n) - sample, piece->input_end - piece->input,
        pass->tile + piece->member * pass->tile_floats, (size_t)(end - sample),
        pass->mask ? pass->mask + at : NULL, pass->dx + at, pass->fc->in);
}

static void data_member(void *arg, int member, int size)
{
    const data_pass *pass = arg;
    const tutti_fc_part mine =
        tutti_fc_part_of(tutti_fc_blocks(pass->fc->in), tutti_fc_blocks(pass->n), member, size);
    const int end = mine.a_end * TUTTI_BLOCK, step = TUTTI_FC_SAMPLES / TUTTI_BLOCK;
    for (int b = mine.b; b < mine.b_end; b += step) {
        const tutti_fc_part part = {mine.a, mine.a_end, b, tutti_fc_least(b + step, mine.b_end)};
        for (int i = mine.a * TUTTI_BLOCK; i < end; i += pass->run.inputs)
            data_inputs(&(data_piece){
                .pass = pass,
                .part = &part,
                .input = i,
                .input_end = tutti_fc_least(i + pass->run.inputs, end),
                .member = member,
                .runs = tutti_ceil_div(leaves_of(pass->outputs), pass->run.leaves),
                .panels = tutti_ceil_div(part.b_end - part.b, pass->fc->kernels->data_blocks),
            });
    }
}

static void backward_data(data_pass *pass, tutti_team *team, void *scratch)
{
    const tutti_fc *fc = pass->fc;
    TUTTI_ASSERT(tutti_team_size(team) <= fc->threads);
    tutti_arena arena = {.base = scratch, .bytes = tutti_fc_scratch(fc, pass->n)};
    pass->run = data_run_of(fc, pass->n);
    pass->far_floats = data_stack_floats(fc, pass->n);
    pass->tile_floats = data_dx_floats(fc, pass->n);
    pass->dy_transposed =
        tutti_fc_take(&arena, (size_t)tutti_fc_blocks(pass->n) * dy_block_floats(pass->outputs));
    pass->near = tutti_fc_take(&arena, (size_t)TUTTI_FC_NEAR_STACK * fc->threads);
    pass->far = tutti_fc_take(&arena, pass->far_floats * fc->threads);
    pass->tile = tutti_fc_take(&arena, pass->tile_floats * fc->threads);
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
                      .outputs = tutti_fc_filled(outputs),
                      .dy = dy,
                      .dy_row = (size_t)tutti_fc_filled(outputs),
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
    const int begin = first * TUTTI_FC_LEAF,
              held = tutti_fc_least(end * TUTTI_FC_LEAF, fc->out) - begin;
    for (int r = 0; r < count; r++) {
        const int from = (roots[r].index << roots[r].level) * TUTTI_FC_LEAF;
        const int to = tutti_fc_least(from + (TUTTI_FC_LEAF << roots[r].level), fc->out);
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
