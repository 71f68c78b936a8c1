/* Backward-data of fully connected layers; see fc.c. */
#include <string.h>

#include "kernel/fc_parts.h"

enum {
    LEAST_INPUTS = 48, /* of a piece: whole tiles of every shape */
    MOST_INPUTS = 192,
    MOST_INPUTS_OF_FEW = 2048,    /* longer streams of weights */
    LEVEL_GAP = 33 * TUTTI_BLOCK, /* floats, so that levels do not meet in the same sets */
};

/* Floats from one block of 16 samples of the transposed dy to the next: not a power of two of
 * outputs, which would put the blocks' leaves into the same few sets of the caches. */
static size_t dy_block_floats(int outputs)
{
    return (size_t)(outputs + TUTTI_FC_LEAF + 1) * TUTTI_BLOCK;
}

static int leaves_of(int outputs)
{
    return tutti_ceil_div(outputs, TUTTI_FC_LEAF);
}

/* How many sums wait at most, and one more that arrives. */
static int levels_of(int leaves)
{
    return tutti_tree_height(leaves) + 1;
}

static bool is_few(const tutti_fc *fc, int n)
{
    return n <= fc->kernels->few->samples;
}

/* The inputs that a thread does at a time; the floats of one level of its stack, and of all. */
typedef struct data_piece_shape {
    int inputs;
    size_t level, stack;
} data_piece_shape;

/* As many inputs as let the stack fit into half of the second-level cache. */
static data_piece_shape piece_of(const tutti_fc *fc, int n)
{
    const int most = is_few(fc, n) ? MOST_INPUTS_OF_FEW : MOST_INPUTS;
    const int columns = is_few(fc, n) ? n : tutti_fc_filled(tutti_fc_least(n, TUTTI_FC_SAMPLES));
    const int levels = levels_of(tutti_fc_leaves(fc));
    const size_t input = (size_t)(columns < 1 ? 1 : columns) * levels * sizeof(float);
    const size_t fit = fc->caches.l2 / 2 / input / LEAST_INPUTS * LEAST_INPUTS;
    const int inputs = fit < LEAST_INPUTS ? LEAST_INPUTS : fit > (size_t)most ? most : (int)fit;
    const size_t level = (size_t)inputs * columns + LEVEL_GAP;
    return (data_piece_shape){inputs, level, level * levels};
}

/* The larger pieces of fewer samples may need the larger stack. */
static size_t most_stack_floats(const tutti_fc *fc, int n)
{
    size_t most = 0;
    for (int fewer = 0; fewer <= n && fewer <= TUTTI_FC_SAMPLES; fewer++) {
        const size_t stack = piece_of(fc, fewer).stack;
        if (stack > most) most = stack;
    }
    return most;
}

size_t tutti_fc_data_scratch(const tutti_fc *fc, int n)
{
    tutti_arena arena = {0};
    tutti_fc_take(&arena, (size_t)tutti_fc_blocks(n) * dy_block_floats(fc->out));
    tutti_fc_take(&arena, most_stack_floats(fc, n) * fc->threads);
    return arena.used;
}

typedef struct data_pass {
    const tutti_fc *fc;
    int n, outputs;
    const float *dy;
    size_t dy_row;
    const float *w, *mask;
    float *dx;
    float *dy_transposed, *stacks; /* a stack per thread */
    data_piece_shape piece;
} data_pass;

static void data_pack_share(void *arg, int thread, int threads)
{
    const data_pass *pass = arg;
    const tutti_fc_part part =
        tutti_fc_part_of(tutti_fc_blocks(pass->outputs), tutti_fc_blocks(pass->n), thread, threads);
    const int sample = part.b * TUTTI_BLOCK, column = part.a * TUTTI_BLOCK;
    const size_t block = dy_block_floats(pass->outputs);
    pass->fc->kernels->pack_transposed(
        tutti_fc_least(part.b_end * TUTTI_BLOCK, pass->n) - sample,
        (part.a_end - part.a) * TUTTI_BLOCK, pass->dy + (size_t)sample * pass->dy_row + column,
        pass->dy_row, pass->dy_transposed + part.b * block + (size_t)column * TUTTI_BLOCK, block);
}

/* Some inputs of all sample blocks of 'part' (b), which a thread does at a time. */
typedef struct data_piece {
    const data_pass *pass;
    const tutti_fc_part *part;
    int input, input_end, thread;
    int leaves, panels;
} data_piece;

/* A panel of a piece: some blocks of samples. */
typedef struct data_panel {
    int block, blocks;
    float *stack;
} data_panel;

static data_panel panel_of(const data_piece *piece, int panel)
{
    const int blocks = piece->part->b_end - piece->part->b;
    const int first = tutti_share_begin(blocks, piece->panels, panel);
    return (data_panel){
        .block = piece->part->b + first,
        .blocks = tutti_share_begin(blocks, piece->panels, panel + 1) - first,
        .stack = piece->pass->stacks + piece->thread * piece->pass->piece.stack +
                 (size_t)first * TUTTI_BLOCK * (piece->input_end - piece->input),
    };
}

/* Blocks of 16 outputs. */
static int leaf_blocks(const data_pass *pass, int leaf)
{
    return tutti_fc_blocks(tutti_fc_least(TUTTI_FC_LEAF, pass->outputs - leaf * TUTTI_FC_LEAF));
}

static const float *weights_of(const data_pass *pass, int leaf, int input)
{
    return pass->w + (size_t)leaf * TUTTI_FC_LEAF * pass->fc->in + (size_t)input * TUTTI_BLOCK;
}

static const float *dy_of(const data_pass *pass, int leaf, int block)
{
    return pass->dy_transposed + block * dy_block_floats(pass->outputs) +
           (size_t)leaf * TUTTI_FC_LEAF * TUTTI_BLOCK;
}

/* Weights of the leaf after 'leaf', or of the piece after this one. */
static const float *weights_after(const data_piece *piece, int leaf)
{
    if (leaf + 1 < piece->leaves) return weights_of(piece->pass, leaf + 1, piece->input);
    if (piece->input_end < piece->part->a_end * TUTTI_BLOCK)
        return weights_of(piece->pass, 0, piece->input_end);
    return weights_of(piece->pass, leaf, piece->input);
}

static void data_leaf(const data_piece *piece, int leaf, int p)
{
    const data_pass *pass = piece->pass;
    const data_panel panel = panel_of(piece, p);
    const tutti_fc_place place = tutti_fc_place_of(leaf, piece->leaves);
    const bool last_panel = p + 1 == piece->panels;
    const float *w = weights_of(pass, leaf, piece->input);
    pass->fc->kernels->data(&(tutti_fc_data_job){
        .inputs = piece->input_end - piece->input,
        .blocks = panel.blocks,
        .output_blocks = leaf_blocks(pass, leaf),
        .w = w,
        .w_block = (size_t)pass->fc->in * TUTTI_BLOCK,
        .dy = dy_of(pass, leaf, panel.block),
        .dy_block = dy_block_floats(pass->outputs),
        .joins = place.joins,
        .to = panel.stack + (place.depth - place.joins) * pass->piece.level,
        .level = pass->piece.level,
        .next_w = last_panel ? weights_after(piece, leaf) : w,
        .next_dy = last_panel ? dy_of(pass, (leaf + 1) % piece->leaves, piece->part->b)
                              : dy_of(pass, leaf, panel.block + panel.blocks),
    });
}

/* Puts the result of a panel in place. */
static void data_unpack(const data_piece *piece, int p)
{
    const data_pass *pass = piece->pass;
    const data_panel panel = panel_of(piece, p);
    const int sample = panel.block * TUTTI_BLOCK, samples = panel.blocks * TUTTI_BLOCK;
    const size_t at = (size_t)sample * pass->fc->in + piece->input;
    pass->fc->kernels->unpack_transposed(
        tutti_fc_least(samples, pass->n - sample), piece->input_end - piece->input, panel.stack,
        (size_t)samples, pass->mask ? pass->mask + at : NULL, pass->dx + at, pass->fc->in);
}

static void data_inputs(const data_piece *piece)
{
    for (int leaf = 0; leaf < piece->leaves; leaf++)
        for (int p = 0; p < piece->panels; p++) data_leaf(piece, leaf, p);
    for (int p = 0; p < piece->panels; p++) data_unpack(piece, p);
}

static void data_share(void *arg, int thread, int threads)
{
    const data_pass *pass = arg;
    const tutti_fc_part mine =
        tutti_fc_part_of(tutti_fc_blocks(pass->fc->in), tutti_fc_blocks(pass->n), thread, threads);
    const int end = mine.a_end * TUTTI_BLOCK, step = TUTTI_FC_SAMPLES / TUTTI_BLOCK;
    for (int b = mine.b; b < mine.b_end; b += step) {
        const tutti_fc_part part = {mine.a, mine.a_end, b, tutti_fc_least(b + step, mine.b_end)};
        for (int i = mine.a * TUTTI_BLOCK; i < end; i += pass->piece.inputs)
            data_inputs(&(data_piece){
                .pass = pass,
                .part = &part,
                .input = i,
                .input_end = tutti_fc_least(i + pass->piece.inputs, end),
                .thread = thread,
                .leaves = leaves_of(pass->outputs),
                .panels = tutti_ceil_div(part.b_end - part.b, pass->fc->kernels->data_blocks),
            });
    }
}

/* ---- few samples ---- */

static void few_leaf(const data_pass *pass, float *stack, int leaf, int leaves, int input,
                     int inputs)
{
    const tutti_fc_place place = tutti_fc_place_of(leaf, leaves);
    const bool last = leaf + 1 == leaves;
    pass->fc->kernels->few->data(&(tutti_fc_few_job){
        .samples = pass->n,
        .inputs = inputs,
        .output_blocks = leaf_blocks(pass, leaf),
        .w = weights_of(pass, leaf, input),
        .w_block = (size_t)pass->fc->in * TUTTI_BLOCK,
        .dy = pass->dy + (size_t)leaf * TUTTI_FC_LEAF,
        .dy_row = pass->dy_row,
        .joins = place.joins,
        .top = stack + (place.depth ? place.depth - 1 : 0) * pass->piece.level,
        .level = pass->piece.level,
        .to = last ? pass->dx + input : stack + (place.depth - place.joins) * pass->piece.level,
        .to_row = last ? (size_t)pass->fc->in : (size_t)inputs,
        .mask = last && pass->mask ? pass->mask + input : NULL,
    });
}

static void few_share(void *arg, int thread, int threads)
{
    const data_pass *pass = arg;
    const int blocks = tutti_fc_blocks(pass->fc->in), leaves = leaves_of(pass->outputs);
    const int begin = tutti_share_begin(blocks, threads, thread) * TUTTI_BLOCK;
    const int end = tutti_share_begin(blocks, threads, thread + 1) * TUTTI_BLOCK;
    float *stack = pass->stacks + thread * pass->piece.stack;
    for (int i = begin; i < end; i += pass->piece.inputs)
        for (int leaf = 0; leaf < leaves; leaf++)
            few_leaf(pass, stack, leaf, leaves, i, tutti_fc_least(pass->piece.inputs, end - i));
}

/* ---- the pass ---- */

static void backward_data(const tutti_fc *fc, const tutti_task *task,
                          const tutti_fc_data_call *call)
{
    TUTTI_ASSERT(tutti_team_size(task->team) <= fc->threads);
    if (fc->bf16) {
        tutti_fc_bf16_backward_data(fc, task, call);
        return;
    }
    tutti_arena arena = {.base = task->scratch, .bytes = tutti_fc_scratch(fc, task->n)};
    const data_piece_shape piece = piece_of(fc, task->n);
    data_pass pass = {.fc = fc,
                      .n = task->n,
                      .outputs = call->outputs,
                      .dy = call->dy,
                      .dy_row = call->dy_row,
                      .w = call->w,
                      .mask = call->mask,
                      .dx = call->dx,
                      .stacks = tutti_fc_take(&arena, piece.stack * fc->threads),
                      .piece = piece};
    if (is_few(fc, pass.n)) {
        tutti_team_run(task->team, few_share, &pass);
        return;
    }
    pass.dy_transposed =
        tutti_fc_take(&arena, (size_t)tutti_fc_blocks(pass.n) * dy_block_floats(pass.outputs));
    tutti_team_run(task->team, data_pack_share, &pass);
    tutti_team_run(task->team, data_share, &pass);
}

void tutti_fc_backward_data(const tutti_fc *fc, const tutti_task *task, const float *dy,
                            const float *w, const float *mask, float *dx)
{
    if (task->outputs == 0) {
        memset(dx, 0, (size_t)task->n * fc->in * sizeof *dx);
        return;
    }
    const int outputs = tutti_fc_filled(task->outputs);
    backward_data(fc, task, &(tutti_fc_data_call){outputs, dy, (size_t)outputs, w, mask, dx});
}

int tutti_fc_backward_data_roots(const tutti_fc *fc, const tutti_task *task, int first, int end,
                                 const float *dy, const float *w, float *const partial[])
{
    tutti_subtree roots[TUTTI_TREE_MAX_ROOTS];
    const int count = tutti_tree_roots(roots, tutti_fc_leaves(fc), first, end);
    const int begin = first * TUTTI_FC_LEAF,
              held = tutti_fc_least(end * TUTTI_FC_LEAF, fc->out) - begin;
    for (int r = 0; r < count; r++) {
        const int from = (roots[r].index << roots[r].level) * TUTTI_FC_LEAF;
        const int to = tutti_fc_least(from + (TUTTI_FC_LEAF << roots[r].level), fc->out);
        backward_data(fc, task,
                      &(tutti_fc_data_call){.outputs = to - from,
                                            .dy = dy + (from - begin),
                                            .dy_row = (size_t)held,
                                            .w = w + (size_t)(from - begin) * fc->in,
                                            .dx = partial[r]});
    }
    return count;
}
