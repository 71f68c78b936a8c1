/* Backward-weights of fully connected layers that round to bf16; see fc_bf16.c. */
#include <stdint.h>
#include <string.h>

#include "kernel/fc_parts.h"

enum {
    INPUTS = 64,              /* of a run, at most */
    SPILL = TUTTI_BF16_TERMS, /* elements that the last of packed rows may pass */
    TREE_SLOTS = 128,         /* of a tree: 16 KiB for two panels */
    TREE_BLOCKS = 64,
    LINE = TUTTI_BF16_LINE,
    ROW = 2, /* elements of a slot: of a panel, of a row */
};

/* Slots of both chains of all blocks of n samples, at most: a block of its own for each. */
static size_t most_slots(int n)
{
    return 2 * (size_t)n;
}

typedef struct weights_pass {
    const tutti_fc *fc;
    const tutti_grains *grains;
    int n, outputs;
    const float *x, *dy; /* from the first grain's first sample on */
    float *dw, *db;
    int *slots;         /* of all blocks of the grains before grain g, and at the end of all */
    tutti_bf16 *panels; /* of dy: [blocks of outputs][blocks of samples], without gaps */
    float *dy_packed;   /* for the bias */
    tutti_bf16 *rows;   /* of a run of x: [blocks of samples][inputs], without gaps */
    float *stack;       /* these two for each thread */
    bool stream;
    int together; /* grains whose tree is one call of the kernel, a power of two; 0: not even one */
    int units;    /* of so many grains, or of one */
} weights_pass;

static size_t row_elements(int n)
{
    return INPUTS * most_slots(n) * ROW + SPILL;
}

/* Floats of a level: the sums of a run. One more level than can wait holds the leaf. */
static size_t level_floats(const tutti_fc *fc)
{
    return (size_t)INPUTS * fc->bf16->panels * TUTTI_BLOCK;
}

static size_t stack_floats(const tutti_fc *fc, int n)
{
    return level_floats(fc) * (size_t)(tutti_tree_height(n) + 2);
}

static void plan_weights(weights_pass *pass, tutti_arena *arena)
{
    const tutti_fc *fc = pass->fc;
    const size_t bf16 = sizeof(tutti_bf16), slots = most_slots(pass->n);
    pass->slots = tutti_arena_take(arena, ((size_t)pass->n + 2) * sizeof(int));
    pass->panels = tutti_arena_take(arena, tutti_fc_blocks(fc->out) * slots * LINE * bf16);
    pass->dy_packed = tutti_fc_take(arena, (size_t)pass->n * fc->out);
    pass->rows = tutti_arena_take(arena, row_elements(pass->n) * fc->threads * bf16);
    pass->stack = tutti_fc_take(arena, stack_floats(fc, pass->n) * fc->threads +
                                           TUTTI_FC_NEAR_STACK * (size_t)fc->threads);
}

size_t tutti_fc_bf16_weights_scratch(const tutti_fc *fc, int n)
{
    tutti_arena arena = {0};
    plan_weights(&(weights_pass){.fc = fc, .n = n}, &arena);
    return arena.used;
}

/* ---- blocks of samples ---- */

static int samples_of(const weights_pass *pass, int grain)
{
    return pass->grains->begin[grain + 1] - pass->grains->begin[grain];
}

static int first_sample(const weights_pass *pass, int grain)
{
    return pass->grains->begin[grain] - pass->grains->begin[0];
}

static void count_slots(weights_pass *pass)
{
    int slots = 0;
    for (int g = 0; g < pass->grains->count; g++) {
        pass->slots[g] = slots;
        const int samples = samples_of(pass, g);
        for (int k = 0; k < tutti_fc_bf16_blocks(samples); k++)
            slots += 2 * tutti_bf16_slots(tutti_fc_bf16_terms(samples, k));
    }
    pass->slots[pass->grains->count] = slots;
}

/* Slots before block k of a grain. */
static size_t slots_before(const weights_pass *pass, int grain, int k)
{
    return (size_t)pass->slots[grain] + (size_t)k * 2 * TUTTI_BF16_SLOTS;
}

static void pack_dy(const weights_pass *pass, int block)
{
    const size_t row = (size_t)pass->outputs;
    tutti_bf16 *to = pass->panels + (size_t)block * pass->slots[pass->grains->count] * LINE;
    for (int g = 0; g < pass->grains->count; g++)
        for (int k = 0; k < tutti_fc_bf16_blocks(samples_of(pass, g)); k++)
            pass->fc->bf16->panel(tutti_fc_bf16_terms(samples_of(pass, g), k),
                                  pass->dy + block * TUTTI_BLOCK +
                                      (size_t)(first_sample(pass, g) + k * TUTTI_BF16_TERMS) * row,
                                  row, row * TUTTI_BLOCK, to + slots_before(pass, g, k) * LINE);
}

static void pack_share(void *arg, int thread, int threads)
{
    const weights_pass *pass = arg;
    const int blocks = tutti_fc_blocks(pass->outputs);
    const int o = tutti_share_begin(blocks, threads, thread);
    const int end = tutti_share_begin(blocks, threads, thread + 1);
    const size_t packed = (size_t)pass->n * TUTTI_BLOCK;
    for (int block = o; block < end; block++) pack_dy(pass, block);
    if (pass->db)
        pass->fc->kernels->pack(pass->n, (end - o) * TUTTI_BLOCK, pass->dy + o * TUTTI_BLOCK,
                                (size_t)pass->outputs, pass->dy_packed + o * packed, packed);
}

/* Chooses 'together' so that the panels of its dy stay in the first-level cache. */
static void plan_units(weights_pass *pass)
{
    const int grains = pass->grains->count;
    int most = 0, least = 1;
    for (int g = 0; g < grains; g++) {
        const int blocks = tutti_fc_bf16_blocks(samples_of(pass, g));
        most = blocks > most ? blocks : most;
        least = tutti_fc_least(least, blocks);
    }
    pass->together = pass->fc->bf16->tree && least > 0 && most <= TREE_BLOCKS ? 1 : 0;
    const int slots = pass->slots[grains] / grains;
    while (pass->together && 2 * pass->together <= TUTTI_BF16_LEAVES &&
           2 * pass->together * most <= TREE_BLOCKS && 2 * pass->together * slots <= TREE_SLOTS)
        pass->together *= 2;
    pass->units = pass->together ? tutti_ceil_div(grains, pass->together) : grains;
}

/* A run of inputs on a thread. */
typedef struct weights_run {
    const weights_pass *pass;
    int input, inputs;
    tutti_bf16 *rows;
    float *stack;
} weights_run;

static void pack_x(const weights_run *run)
{
    const weights_pass *pass = run->pass;
    const size_t in = (size_t)pass->fc->in;
    for (int g = 0; g < pass->grains->count; g++)
        for (int k = 0; k < tutti_fc_bf16_blocks(samples_of(pass, g)); k++) {
            const int terms = tutti_fc_bf16_terms(samples_of(pass, g), k);
            const size_t row = (size_t)(2 * tutti_bf16_slots(terms) * ROW);
            const float *x =
                pass->x + run->input + (size_t)(first_sample(pass, g) + k * TUTTI_BF16_TERMS) * in;
            tutti_bf16 *to = run->rows + slots_before(pass, g, k) * ROW * (size_t)run->inputs;
            for (int i = 0; i < run->inputs; i += TUTTI_BLOCK)
                pass->fc->bf16->turned_rows(terms, x + i, in, in * TUTTI_BLOCK, to + i * row, row);
        }
}

/* ---- the sums ---- */

/* to[panels][inputs][16] = one grain's sum, to_panel apart. */
static void sum_grain(const weights_run *run, int grain, int o, int panels, float *to,
                      size_t to_panel)
{
    const weights_pass *pass = run->pass;
    const int samples = samples_of(pass, grain), count = tutti_fc_bf16_blocks(samples);
    const size_t all = (size_t)pass->slots[pass->grains->count] * LINE;
    if (!count)
        for (int p = 0; p < panels; p++)
            memset(to + p * to_panel, 0, (size_t)run->inputs * TUTTI_BLOCK * sizeof *to);
    for (int k = 0; k < count; k++) {
        const int slots = tutti_bf16_slots(tutti_fc_bf16_terms(samples, k));
        const size_t before = slots_before(pass, grain, k);
        const tutti_bf16_block block = {0, slots * ROW, slots};
        pass->fc->bf16->product(&(tutti_bf16_product){
            .rows = run->inputs,
            .panels = panels,
            .count = 1,
            .block = &block,
            .a = run->rows + before * ROW * (size_t)run->inputs,
            .a_row = 2 * slots * ROW,
            .b = pass->panels + o * all + before * LINE,
            .b_panel = all,
            .from = k ? to : NULL,
            .from_row = TUTTI_BLOCK,
            .from_panel = to_panel,
            .to = to,
            .to_row = TUTTI_BLOCK,
            .to_panel = to_panel,
        });
    }
}

/* The same of the grains of a unit, by their tree. */
static void sum_tree(const weights_run *run, int unit, int o, int panels, float *to,
                     size_t to_panel, bool stream)
{
    const weights_pass *pass = run->pass;
    const int first = unit * pass->together;
    const size_t all = (size_t)pass->slots[pass->grains->count] * LINE;
    const int leaves = tutti_fc_least(pass->together, pass->grains->count - first);
    tutti_bf16_place place[TREE_BLOCKS];
    int begin[TUTTI_BF16_LEAVES + 1] = {0};
    for (int g = 0; g < leaves; g++) {
        const int samples = samples_of(pass, first + g), count = tutti_fc_bf16_blocks(samples);
        for (int k = 0; k < count; k++) {
            const int slots = tutti_bf16_slots(tutti_fc_bf16_terms(samples, k));
            const size_t before = slots_before(pass, first + g, k);
            place[begin[g] + k] = (tutti_bf16_place){.a = before * ROW * (size_t)run->inputs,
                                                     .b = before * LINE,
                                                     .odd = slots * ROW,
                                                     .row = 2 * slots * ROW,
                                                     .slots = slots};
        }
        begin[g + 1] = begin[g] + count;
    }
    pass->fc->bf16->tree(&(tutti_bf16_tree){
        .rows = run->inputs,
        .panels = panels,
        .leaves = leaves,
        .begin = begin,
        .place = place,
        .a = run->rows,
        .b = pass->panels + o * all,
        .b_panel = all,
        .to = to,
        .to_row = TUTTI_BLOCK,
        .to_panel = to_panel,
        .stream = stream,
    });
}

static void sum_unit(const weights_run *run, int unit, int o, int panels, float *to,
                     size_t to_panel, bool stream)
{
    if (run->pass->together) sum_tree(run, unit, o, panels, to, to_panel, stream);
    else sum_grain(run, unit, o, panels, to, to_panel);
}

/* What waits at 'depth', a panel of it. */
static float *waiting(const weights_run *run, int depth, int panel)
{
    return run->stack + (depth + 1) * level_floats(run->pass->fc) +
           (size_t)panel * run->inputs * TUTTI_BLOCK;
}

static float *gradient_at(const weights_run *run, int o)
{
    return run->pass->dw + ((size_t)o * run->pass->fc->in + run->input) * TUTTI_BLOCK;
}

/* Joins a panel of a unit's sum, which is at 'sum', with what waits; the last one's into dw. */
static void join_unit(const weights_run *run, int unit, int o, int panel, float *sum)
{
    const weights_pass *pass = run->pass;
    const size_t count = (size_t)run->inputs * TUTTI_BLOCK;
    const tutti_fc_place place = tutti_fc_place_of(unit, pass->units);
    for (int j = 1; j <= place.joins; j++) {
        const bool last = unit + 1 == pass->units && j == place.joins;
        float *left = waiting(run, place.depth - j, panel);
        float *to = last ? gradient_at(run, o + panel) : left;
        pass->fc->bf16->join(count, left, sum, to, last && pass->stream);
        sum = to;
    }
}

static void sum_panels(const weights_run *run, int o, int panels)
{
    const weights_pass *pass = run->pass;
    const size_t panel = (size_t)run->inputs * TUTTI_BLOCK;
    if (pass->units == 1) {
        sum_unit(run, 0, o, panels, gradient_at(run, o), (size_t)pass->fc->in * TUTTI_BLOCK,
                 pass->stream);
        return;
    }
    for (int u = 0; u < pass->units; u++) {
        const tutti_fc_place place = tutti_fc_place_of(u, pass->units);
        float *to = waiting(run, place.joins ? -1 : place.depth, 0);
        sum_unit(run, u, o, panels, to, panel, false);
        for (int q = 0; q < panels; q++) join_unit(run, u, o, q, to + q * panel);
    }
}

static void bias_share(const weights_pass *pass, int thread, int threads)
{
    const int blocks = tutti_fc_blocks(pass->outputs);
    const int o = tutti_share_begin(blocks, threads, thread);
    const int end = tutti_share_begin(blocks, threads, thread + 1);
    const size_t packed = (size_t)pass->n * TUTTI_BLOCK;
    if (o == end) return;
    pass->fc->kernels->bias(
        &(tutti_fc_weights_job){
            .blocks = end - o,
            .grains = pass->grains->count,
            .begin = pass->grains->begin,
            .first = true,
            .dy = pass->dy_packed + o * packed,
            .dy_block = packed,
            .near = pass->stack + stack_floats(pass->fc, pass->n) * pass->fc->threads +
                    (size_t)thread * TUTTI_FC_NEAR_STACK,
        },
        pass->db + o * TUTTI_BLOCK);
}

static void weights_share(void *arg, int thread, int threads)
{
    const weights_pass *pass = arg;
    const tutti_fc *fc = pass->fc;
    const int widest = fc->bf16->panels, blocks = tutti_fc_blocks(pass->outputs);
    const tutti_fc_part part =
        tutti_fc_part_of(tutti_fc_blocks(fc->in), tutti_ceil_div(blocks, widest), thread, threads);
    const int end = part.a_end * TUTTI_BLOCK;
    for (int i = part.a * TUTTI_BLOCK; i < end; i += INPUTS) {
        const weights_run run = {pass, i, tutti_fc_least(INPUTS, end - i),
                                 pass->rows + thread * row_elements(pass->n),
                                 pass->stack + thread * stack_floats(fc, pass->n)};
        pack_x(&run);
        for (int o = part.b * widest; o < part.b_end * widest && o < blocks; o += widest)
            sum_panels(&run, o, tutti_fc_least(widest, blocks - o));
    }
    if (pass->db) bias_share(pass, thread, threads);
}

void tutti_fc_bf16_backward_weights(const tutti_fc *fc, const tutti_task *task, const float *x,
                                    const float *dy, float *dw, float *db)
{
    TUTTI_ASSERT(tutti_team_size(task->team) <= fc->threads);
    const tutti_grains *grains = task->grains;
    const int outputs = tutti_fc_filled(task->outputs), first = grains->begin[0];
    const size_t count = (size_t)outputs * fc->in;
    weights_pass pass = {
        .fc = fc,
        .grains = grains,
        .n = grains->begin[grains->count] - first,
        .outputs = outputs,
        .x = x + (size_t)first * fc->in,
        .dy = dy + (size_t)first * outputs,
        .dw = dw,
        .db = db,
        .stream = tutti_fc_beyond_caches(fc, count) && (uintptr_t)dw % TUTTI_CACHE_LINE == 0,
    };
    tutti_arena arena = {.base = task->scratch, .bytes = tutti_fc_scratch(fc, pass.n)};
    plan_weights(&pass, &arena);
    count_slots(&pass);
    plan_units(&pass);
    tutti_team_run(task->team, pack_share, &pass);
    tutti_team_run(task->team, weights_share, &pass);
}
