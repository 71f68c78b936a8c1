/* Fully connected layers that round to bf16: products as bf16_kernels.h defines them, of fp32
 * activations and weights that are rounded and packed on the way. Blocks of terms:
 *
 *   forward   32 inputs, from the first on; the last block has 16 or 32
 *   data      32 outputs within a leaf of 64; leaves are joined by the tree, as in fp32
 *   weights   32 samples within a grain, the last block what is left; grains are joined likewise
 *
 * Joins are fp32's, which keep numbers that are not normal, since ranks and threads that hold
 * other subtrees do them elsewhere. The gradient by the bias has no products and is fp32's.
 *
 *   forward   rows are samples, columns outputs. x is packed once, by all threads. For chunks of
 *             inputs: for panels of outputs: the chunk's weights are packed into the first-level
 *             cache and meet all samples. Sums wait beside each other between chunks.
 *   data      rows are inputs, columns samples, so that weights need no transposition: dy does,
 *             once. For pieces of inputs: for leaves: the leaf's weights are packed, meet all
 *             samples, and the leaf is joined with what waits while it is in cache.
 *   weights   rows are inputs, columns outputs, as dw lies. dy is packed once, by all threads. For
 *             runs of inputs: their x is transposed; for panels of outputs: grain after grain,
 *             then dw is written, once. */
#include <string.h>

#include "kernel/fc_parts.h"

enum {
    CHUNK = 8,      /* blocks of inputs: their weights for a panel fill a third of the cache */
    SAMPLES = 1024, /* whose chunk of x stays in the second-level cache */
};

static size_t panel_elements(const tutti_fc *fc)
{
    return (size_t)fc->bf16->panels * CHUNK * TUTTI_BF16_PANEL;
}

static size_t x_elements(const tutti_fc *fc, int n)
{
    return (size_t)tutti_fc_bf16_blocks(fc->in) * n * TUTTI_BF16_TERMS;
}

/* Panels of the row's widest products, which outputs are divided into. */
static int groups_of(const tutti_fc *fc, int outputs)
{
    return tutti_ceil_div(tutti_fc_blocks(outputs), fc->bf16->panels);
}

static size_t sum_floats(const tutti_fc *fc, int n)
{
    return fc->in <= CHUNK * TUTTI_BF16_TERMS
               ? 0
               : (size_t)groups_of(fc, fc->out) * fc->bf16->panels * n * TUTTI_BLOCK;
}

typedef struct forward_pass {
    const tutti_fc *fc;
    int n, outputs;
    const float *x, *w, *bias;
    bool relu;
    float *y;
    tutti_bf16 *rows;   /* of x: [blocks][n][32] */
    float *sums;        /* of a group: [n][its columns] */
    tutti_bf16 *panels; /* of weights, for each thread */
} forward_pass;

static void plan_forward(forward_pass *pass, tutti_arena *arena)
{
    const tutti_fc *fc = pass->fc;
    pass->rows = tutti_arena_take(arena, x_elements(fc, pass->n) * sizeof(tutti_bf16));
    pass->sums = tutti_fc_take(arena, sum_floats(fc, pass->n));
    pass->panels = tutti_arena_take(arena, panel_elements(fc) * fc->threads * sizeof(tutti_bf16));
}

size_t tutti_fc_bf16_scratch(const tutti_fc *fc, int n)
{
    tutti_arena arena = {0};
    plan_forward(&(forward_pass){.fc = fc, .n = n}, &arena);
    const size_t data = tutti_fc_bf16_data_scratch(fc, n);
    const size_t weights = tutti_fc_bf16_weights_scratch(fc, n);
    const size_t backward = data > weights ? data : weights;
    return arena.used > backward ? arena.used : backward;
}

static void pack_share(void *arg, int thread, int threads)
{
    const forward_pass *pass = arg;
    const int in = pass->fc->in;
    const tutti_fc_part part = tutti_fc_part_of(tutti_fc_bf16_blocks(in), pass->n, thread, threads);
    for (int k = part.a; k < part.a_end; k++)
        pass->fc->bf16->rows(
            part.b_end - part.b, tutti_fc_bf16_terms(in, k),
            pass->x + (size_t)part.b * in + k * TUTTI_BF16_TERMS, (size_t)in, TUTTI_BLOCK,
            pass->rows + ((size_t)k * pass->n + part.b) * TUTTI_BF16_TERMS, TUTTI_BF16_TERMS);
}

/* Some samples and some blocks of inputs. */
typedef struct chunk {
    int sample, samples;
    int block, blocks;
} chunk;

/* Where weights are from block 'k' of inputs on, for the panel 'o' of outputs. */
static const float *weights_at(const forward_pass *pass, int o, int k)
{
    return pass->w + ((size_t)o * pass->fc->in + (size_t)k * TUTTI_BF16_TERMS) * TUTTI_BLOCK;
}

static void pack_weights(const forward_pass *pass, const chunk *c, int o, int panels,
                         tutti_bf16 *to)
{
    for (int p = 0; p < panels; p++)
        for (int k = c->block; k < c->block + c->blocks; k++, to += TUTTI_BF16_PANEL)
            pass->fc->bf16->panel(tutti_fc_bf16_terms(pass->fc->in, k), weights_at(pass, o + p, k),
                                  TUTTI_BLOCK, TUTTI_BLOCK * TUTTI_BLOCK, to);
}

static void multiply_group(const forward_pass *pass, const chunk *c, int group,
                           const tutti_bf16_block *block, tutti_bf16 *packed)
{
    const tutti_fc *fc = pass->fc;
    const int widest = fc->bf16->panels, o = group * widest;
    const int panels = tutti_fc_least(widest, tutti_fc_blocks(pass->outputs) - o);
    const int total = tutti_fc_bf16_blocks(fc->in);
    const bool last = c->block + c->blocks == total;
    const bool more = (group + 1) * widest < tutti_fc_blocks(pass->outputs);
    float *sums = pass->sums + ((size_t)group * pass->n + c->sample) * widest * TUTTI_BLOCK;
    pack_weights(pass, c, o, panels, packed);
    tutti_bf16_product job = {
        .rows = c->samples,
        .panels = panels,
        .count = c->blocks,
        .block = block,
        .a = pass->rows + ((size_t)c->block * pass->n + c->sample) * TUTTI_BF16_TERMS,
        .a_row = TUTTI_BF16_TERMS,
        .b = packed,
        .b_panel = (size_t)c->blocks * TUTTI_BF16_PANEL,
        .b_block = TUTTI_BF16_PANEL,
        .from = c->block ? sums : NULL,
        .from_row = (size_t)widest * TUTTI_BLOCK,
        .from_panel = TUTTI_BLOCK,
        .to = sums,
        .to_row = (size_t)widest * TUTTI_BLOCK,
        .to_panel = TUTTI_BLOCK,
        .fetch = more ? (const char *)weights_at(pass, o + widest, c->block) : NULL,
        .fetch_bytes =
            (size_t)tutti_fc_least(fc->in - c->block * TUTTI_BF16_TERMS, CHUNK * TUTTI_BF16_TERMS) *
            TUTTI_BLOCK * sizeof(float),
    };
    if (more && widest > 1)
        job.fetch_too = (const char *)weights_at(pass, o + widest + 1, c->block);
    if (last) {
        job.to = pass->y + (size_t)c->sample * pass->outputs + o * TUTTI_BLOCK;
        job.to_row = (size_t)pass->outputs;
        job.bias = pass->bias ? pass->bias + o * TUTTI_BLOCK : NULL;
        job.relu = pass->relu;
    }
    fc->bf16->product(&job);
}

static void forward_share(void *arg, int thread, int threads)
{
    const forward_pass *pass = arg;
    const tutti_fc *fc = pass->fc;
    const tutti_fc_part part =
        tutti_fc_part_of(groups_of(fc, pass->outputs), pass->n, thread, threads);
    const int total = tutti_fc_bf16_blocks(fc->in);
    tutti_bf16 *packed = pass->panels + thread * panel_elements(fc);
    for (int sample = part.b; sample < part.b_end; sample += SAMPLES)
        for (int k = 0; k < total; k += CHUNK) {
            const chunk c = {sample, tutti_fc_least(SAMPLES, part.b_end - sample), k,
                             tutti_fc_least(CHUNK, total - k)};
            tutti_bf16_block block[CHUNK];
            for (int b = 0; b < c.blocks; b++) {
                const int even = b * pass->n * TUTTI_BF16_TERMS;
                block[b] = (tutti_bf16_block){even, even + TUTTI_BF16_ODD,
                                              tutti_bf16_slots(tutti_fc_bf16_terms(fc->in, k + b))};
            }
            for (int g = part.a; g < part.a_end; g++) multiply_group(pass, &c, g, block, packed);
        }
}

void tutti_fc_bf16_forward(const tutti_fc *fc, const tutti_task *task, const float *x,
                           const float *w, const float *bias, bool relu, float *y)
{
    TUTTI_ASSERT(tutti_team_size(task->team) <= fc->threads);
    tutti_arena arena = {.base = task->scratch, .bytes = tutti_fc_scratch(fc, task->n)};
    forward_pass pass = {.fc = fc,
                         .n = task->n,
                         .outputs = tutti_fc_filled(task->outputs),
                         .x = x,
                         .w = w,
                         .bias = bias,
                         .relu = relu,
                         .y = y};
    plan_forward(&pass, &arena);
    tutti_team_run(task->team, pack_share, &pass);
    tutti_team_run(task->team, forward_share, &pass);
}
