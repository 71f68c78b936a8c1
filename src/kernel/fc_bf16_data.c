/* Backward-data of fully connected layers that round to bf16; see fc_bf16.c. */
#include "kernel/fc_parts.h"

enum {
    LEAF_BLOCKS = TUTTI_FC_LEAF / TUTTI_BF16_TERMS,
    TOGETHER = 4, /* leaves whose tree is one call, where there is such a kernel */
    UNIT_BLOCKS = TOGETHER * LEAF_BLOCKS,
    INPUTS = 64,                  /* of a piece, at most */
    SAMPLES = 256,                /* of a piece */
    LEVEL_GAP = 33 * TUTTI_BLOCK, /* floats, so that levels do not meet in the same sets */
};

/* Samples that a product has as columns. */
static int group_samples(const tutti_fc *fc)
{
    return fc->bf16->panels * TUTTI_BLOCK;
}

/* What a thread holds: a leaf's weights, its sums, and the stack of those that wait. */
typedef struct data_room {
    size_t weights, leaf, level, stack; /* elements of bf16; floats */
} data_room;

static data_room room_of(const tutti_fc *fc, int n)
{
    const size_t columns = tutti_round_up((size_t)tutti_fc_least(n, SAMPLES), group_samples(fc));
    const size_t level = INPUTS * columns + LEVEL_GAP;
    return (data_room){.weights = (size_t)INPUTS * TUTTI_FC_LEAF * TOGETHER,
                       .leaf = (size_t)INPUTS * group_samples(fc),
                       .level = level,
                       .stack = level * (tutti_tree_height(tutti_fc_leaves(fc)) + 1)};
}

typedef struct data_pass {
    const tutti_fc *fc;
    const tutti_fc_data_call *call;
    int n;
    int leaves; /* of a unit: 1 or TOGETHER */
    int units;  /* of so many leaves */
    data_room room;
    tutti_bf16 *panels; /* of dy: [blocks of outputs][blocks of samples] */
    tutti_bf16 *weights;
    float *leaf, *stack; /* these three for each thread */
} data_pass;

static void plan_data(data_pass *pass, int outputs, tutti_arena *arena)
{
    const tutti_fc *fc = pass->fc;
    const size_t panels = (size_t)tutti_fc_bf16_blocks(outputs) * tutti_fc_blocks(pass->n);
    pass->room = room_of(fc, pass->n);
    pass->panels = tutti_arena_take(arena, panels * TUTTI_BF16_PANEL * sizeof(tutti_bf16));
    pass->weights = tutti_arena_take(arena, pass->room.weights * fc->threads * sizeof(tutti_bf16));
    pass->leaf = tutti_fc_take(arena, pass->room.leaf * fc->threads);
    pass->stack = tutti_fc_take(arena, pass->room.stack * fc->threads);
}

size_t tutti_fc_bf16_data_scratch(const tutti_fc *fc, int n)
{
    tutti_arena arena = {0};
    plan_data(&(data_pass){.fc = fc, .n = n}, fc->out, &arena);
    return arena.used;
}

static void pack_share(void *arg, int thread, int threads)
{
    const data_pass *pass = arg;
    const tutti_fc_data_call *call = pass->call;
    const int blocks = tutti_fc_blocks(pass->n);
    const tutti_fc_part part =
        tutti_fc_part_of(tutti_fc_bf16_blocks(call->outputs), blocks, thread, threads);
    for (int k = part.a; k < part.a_end; k++)
        for (int b = part.b; b < part.b_end; b++)
            pass->fc->bf16->turned_panel(
                tutti_fc_least(TUTTI_BLOCK, pass->n - b * TUTTI_BLOCK),
                tutti_fc_bf16_terms(call->outputs, k),
                call->dy + (size_t)b * TUTTI_BLOCK * call->dy_row + k * TUTTI_BF16_TERMS,
                call->dy_row, TUTTI_BLOCK,
                pass->panels + ((size_t)k * blocks + b) * TUTTI_BF16_PANEL);
}

/* Some inputs and blocks of 16 samples, which a thread does at a time. */
typedef struct data_piece {
    const data_pass *pass;
    int input, inputs, block, blocks;
    tutti_bf16 *weights;
    float *leaf, *stack;
} data_piece;

/* The sums of 'group' that wait at 'depth'. */
static float *waiting(const data_piece *piece, int group, int depth)
{
    return piece->stack + depth * piece->pass->room.level +
           (size_t)group * piece->inputs * group_samples(piece->pass->fc);
}

/* Packs a unit's weights and says where their blocks are. Returns how many. */
static int pack_unit(const data_piece *piece, int unit, tutti_bf16_block block[UNIT_BLOCKS])
{
    const data_pass *pass = piece->pass;
    const int most = pass->leaves * LEAF_BLOCKS, first = unit * most, in = pass->fc->in;
    const int all = tutti_fc_bf16_blocks(pass->call->outputs);
    const int count = tutti_fc_least(most, all - first);
    for (int k = 0; k < count; k++) {
        const int terms = tutti_fc_bf16_terms(pass->call->outputs, first + k);
        const int even = k * INPUTS * TUTTI_BF16_TERMS;
        block[k] = (tutti_bf16_block){even, even + TUTTI_BF16_ODD, tutti_bf16_slots(terms)};
        pass->fc->bf16->rows(piece->inputs, terms,
                             pass->call->w + (size_t)(first + k) * TUTTI_BF16_TERMS * in +
                                 (size_t)piece->input * TUTTI_BLOCK,
                             TUTTI_BLOCK, (size_t)in * TUTTI_BLOCK, piece->weights + even,
                             TUTTI_BF16_TERMS);
    }
    return count;
}

/* to[inputs][columns] = a unit of one leaf. */
static void sum_leaf(const data_piece *piece, const tutti_bf16_block *block, int count,
                     const tutti_bf16 *b, int panels, float *to)
{
    const data_pass *pass = piece->pass;
    pass->fc->bf16->product(&(tutti_bf16_product){
        .rows = piece->inputs,
        .panels = panels,
        .count = count,
        .block = block,
        .a = piece->weights,
        .a_row = TUTTI_BF16_TERMS,
        .b = b,
        .b_panel = TUTTI_BF16_PANEL,
        .b_block = (size_t)tutti_fc_blocks(pass->n) * TUTTI_BF16_PANEL,
        .to = to,
        .to_row = (size_t)panels * TUTTI_BLOCK,
        .to_panel = TUTTI_BLOCK,
    });
}

/* The same of a unit of several leaves, by their tree. */
static void sum_tree(const data_piece *piece, const tutti_bf16_block *block, int count,
                     const tutti_bf16 *b, int panels, float *to)
{
    const data_pass *pass = piece->pass;
    tutti_bf16_place place[UNIT_BLOCKS];
    int begin[TOGETHER + 1] = {0}, leaves = 0;
    for (int k = 0; k < count; k++) {
        place[k] = (tutti_bf16_place){.a = (size_t)block[k].even,
                                      .b = (size_t)k * tutti_fc_blocks(pass->n) * TUTTI_BF16_PANEL,
                                      .odd = TUTTI_BF16_ODD,
                                      .row = TUTTI_BF16_TERMS,
                                      .slots = block[k].slots};
        leaves = k / LEAF_BLOCKS + 1;
        begin[leaves] = k + 1;
    }
    pass->fc->bf16->tree(&(tutti_bf16_tree){
        .rows = piece->inputs,
        .panels = panels,
        .leaves = leaves,
        .begin = begin,
        .place = place,
        .a = piece->weights,
        .b = b,
        .b_panel = TUTTI_BF16_PANEL,
        .to = to,
        .to_row = (size_t)panels * TUTTI_BLOCK,
        .to_panel = TUTTI_BLOCK,
    });
}

/* One unit of one group of samples, joined with what waits for it. */
static void add_unit(const data_piece *piece, int unit, int group, const tutti_bf16_block *block,
                     int count)
{
    const data_pass *pass = piece->pass;
    const int widest = pass->fc->bf16->panels, panel = piece->block + group * widest;
    const int panels = tutti_fc_least(widest, piece->blocks - group * widest);
    const size_t row = (size_t)panels * TUTTI_BLOCK, all = (size_t)tutti_fc_blocks(pass->n);
    const tutti_fc_place place = tutti_fc_place_of(unit, pass->units);
    const tutti_bf16 *b =
        pass->panels + (unit * pass->leaves * LEAF_BLOCKS * all + panel) * TUTTI_BF16_PANEL;
    float *to = place.joins ? piece->leaf : waiting(piece, group, place.depth);
    if (pass->leaves > 1) sum_tree(piece, block, count, b, panels, to);
    else sum_leaf(piece, block, count, b, panels, to);
    for (int j = 1; j <= place.joins; j++) {
        float *left = waiting(piece, group, place.depth - j);
        pass->fc->bf16->join(piece->inputs * row, left, to, left, false);
        to = left;
    }
}

/* Puts the result of a group in place. */
static void unpack(const data_piece *piece, int group)
{
    const data_pass *pass = piece->pass;
    const tutti_fc *fc = pass->fc;
    const int first = piece->block + group * fc->bf16->panels;
    const int panels = tutti_fc_least(fc->bf16->panels, piece->block + piece->blocks - first);
    const size_t at = (size_t)first * TUTTI_BLOCK * fc->in + piece->input;
    fc->kernels->unpack_transposed(
        tutti_fc_least(panels * TUTTI_BLOCK, pass->n - first * TUTTI_BLOCK), piece->inputs,
        waiting(piece, group, 0), (size_t)panels * TUTTI_BLOCK,
        pass->call->mask ? pass->call->mask + at : NULL, pass->call->dx + at, (size_t)fc->in);
}

static void sum_piece(const data_piece *piece)
{
    const data_pass *pass = piece->pass;
    const int groups = tutti_ceil_div(piece->blocks, pass->fc->bf16->panels);
    for (int unit = 0; unit < pass->units; unit++) {
        tutti_bf16_block block[UNIT_BLOCKS];
        const int count = pack_unit(piece, unit, block);
        for (int g = 0; g < groups; g++) add_unit(piece, unit, g, block, count);
    }
    for (int g = 0; g < groups; g++) unpack(piece, g);
}

static void data_share(void *arg, int thread, int threads)
{
    const data_pass *pass = arg;
    const tutti_fc *fc = pass->fc;
    const tutti_fc_part part =
        tutti_fc_part_of(tutti_fc_blocks(fc->in), tutti_fc_blocks(pass->n), thread, threads);
    const int end = part.a_end * TUTTI_BLOCK, step = SAMPLES / TUTTI_BLOCK;
    for (int b = part.b; b < part.b_end; b += step)
        for (int i = part.a * TUTTI_BLOCK; i < end; i += INPUTS)
            sum_piece(&(data_piece){
                .pass = pass,
                .input = i,
                .inputs = tutti_fc_least(INPUTS, end - i),
                .block = b,
                .blocks = tutti_fc_least(step, part.b_end - b),
                .weights = pass->weights + thread * pass->room.weights,
                .leaf = pass->leaf + thread * pass->room.leaf,
                .stack = pass->stack + thread * pass->room.stack,
            });
}

void tutti_fc_bf16_backward_data(const tutti_fc *fc, const tutti_task *task,
                                 const tutti_fc_data_call *call)
{
    tutti_arena arena = {.base = task->scratch, .bytes = tutti_fc_scratch(fc, task->n)};
    data_pass pass = {
        .fc = fc, .call = call, .n = task->n, .leaves = fc->bf16->tree ? TOGETHER : 1};
    pass.units = tutti_ceil_div(call->outputs, TUTTI_FC_LEAF * pass.leaves);
    plan_data(&pass, call->outputs, &arena);
    tutti_team_run(task->team, pack_share, &pass);
    tutti_team_run(task->team, data_share, &pass);
}
