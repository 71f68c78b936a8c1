/* Fully connected layers: the loops around the kernels.
 *
 * Every thread has a rectangle of the output to itself (threads split outputs, never a sum) and
 * walks it in an order that touches each weight as few times as possible, because the weights are
 * large: at small batches the passes run at the speed at which memory delivers them.
 *
 *   forward   for pieces of the chain over inputs: for panels of outputs: all samples.
 *             The piece of x is copied to one place (rows of x that are a power of two apart would
 *             meet in a few cache sets) and fills the second-level cache; where a layer has more
 *             inputs than a piece, y holds the unfinished chains.
 *   data      dy is transposed once, so that samples are in lanes and the weights are the scalars.
 *             For pieces of inputs: for leaves of the tree: all samples. A leaf's dy stays in
 *             the first-level cache, the stacks of sums that wait in the second, the weights
 *             stream through; what comes next is fetched meanwhile, a little every step. With
 *             few samples, inputs are in lanes instead and dy stays as it is.
 *   weights   x and dy are packed once into blocks of 16 columns.
 *             For runs of inputs: for panels of outputs: the tile's tree over all grains in
 *             registers and first-level cache, then dw is written, once. */
#include "kernel/fc.h"

#include <stdio.h>
#include <string.h>

#include "kernel/fc_parts.h"

enum {
    CHAIN_PIECE = 2048, /* inputs of a piece of forward's chain: y comes and goes once for each */
    FORWARD_SAMPLES = 128, /* whose piece stays in cache */
};

tutti_status tutti_fc_create(tutti_fc **out, int in, int out_features, tutti_precision precision,
                             const tutti_kernels *row, const tutti_caches *caches, int threads)
{
    tutti_fc *fc = NULL;
    TUTTI_TRY(tutti_alloc(&fc, 1, sizeof *fc));
    *fc = (tutti_fc){.in = tutti_fc_filled(in),
                     .out = tutti_fc_filled(out_features),
                     .features = out_features,
                     .precision = precision,
                     .threads = threads,
                     .kernels = row->fc,
                     .bf16 = precision == TUTTI_IN_BF16 ? row->bf16 : NULL,
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
    return tutti_ceil_div(fc->features, TUTTI_FC_LEAF);
}

/* Floats from one sample's piece of x to the next one's: an odd number of lines. */
static size_t packed_row(const tutti_fc *fc)
{
    return (size_t)(tutti_fc_blocks(tutti_fc_least(fc->in, CHAIN_PIECE)) | 1) * TUTTI_BLOCK;
}

/* Floats of the piece of x that a thread holds. */
static size_t packed_floats(const tutti_fc *fc, int n)
{
    return (size_t)tutti_fc_least(n, FORWARD_SAMPLES) * packed_row(fc);
}

size_t tutti_fc_scratch(const tutti_fc *fc, int n)
{
    if (fc->bf16) return tutti_fc_bf16_scratch(fc, n);
    const size_t forward = packed_floats(fc, n) * sizeof(float) * (size_t)fc->threads;
    const size_t data = tutti_fc_data_scratch(fc, n), weights = tutti_fc_weights_scratch(fc, n);
    const size_t backward = data > weights ? data : weights;
    return forward > backward ? forward : backward;
}

/* Forward touches weights once for every FORWARD_SAMPLES samples. */
void tutti_fc_explain(const tutti_fc *fc, int n, char *text, size_t bytes)
{
    const double floats = (double)fc->in * fc->out * tutti_ceil_div(n, FORWARD_SAMPLES) +
                          (double)n * (fc->in + fc->out);
    snprintf(text, bytes,
             "panels of %d (forward), %d (data), %d (weights) blocks of 16, chain in pieces of %d "
             "inputs, %.4f bytes/FLOP",
             fc->kernels->forward_blocks, fc->kernels->data_blocks, fc->kernels->weights_blocks,
             CHAIN_PIECE, floats * sizeof(float) / (2.0 * n * fc->in * fc->out));
}

tutti_fc_part tutti_fc_part_of(int a, int b, int thread, int threads)
{
    int parts_a = 1;
    long best = -1;
    for (int p = threads; p >= 1; p--) {
        const long largest = (long)tutti_ceil_div(a, p) * tutti_ceil_div(b, threads / p);
        if (best < 0 || largest < best) {
            best = largest;
            parts_a = p;
        }
    }
    const int parts_b = threads / parts_a, i = thread % parts_a, j = thread / parts_a;
    if (j >= parts_b) return (tutti_fc_part){0, 0, 0, 0};
    return (tutti_fc_part){tutti_share_begin(a, parts_a, i), tutti_share_begin(a, parts_a, i + 1),
                           tutti_share_begin(b, parts_b, j), tutti_share_begin(b, parts_b, j + 1)};
}

/* ---- forward ---- */

typedef struct forward_pass {
    const tutti_fc *fc;
    int n, outputs;
    const float *x, *w, *bias;
    bool relu;
    float *y, *packed;
} forward_pass;

/* The weights that are needed after those of the panel that ends at 'block_end'. */
static const float *next_weights(const forward_pass *pass, const tutti_fc_part *part, int block_end,
                                 int input, int input_end)
{
    const bool last = block_end == part->a_end;
    if (last && input_end == pass->fc->in) return NULL;
    return pass->w +
           ((size_t)(last ? part->a : block_end) * pass->fc->in + (last ? input_end : input)) *
               TUTTI_BLOCK;
}

/* One piece of the chain: samples 'sample' .. 'sample_end'-1 of the output blocks of 'part'. */
static void forward_piece(const forward_pass *pass, const tutti_fc_part *part, int sample,
                          int sample_end, int input, float *x)
{
    const tutti_fc *fc = pass->fc;
    const int blocks = part->a_end - part->a;
    const int panels = tutti_ceil_div(blocks, fc->kernels->forward_blocks);
    const int end = tutti_fc_least(input + CHAIN_PIECE, fc->in);
    for (int i = sample; i < sample_end; i++)
        memcpy(x + (size_t)(i - sample) * packed_row(fc), pass->x + (size_t)i * fc->in + input,
               (size_t)(end - input) * sizeof *x);
    for (int p = 0; p < panels; p++) {
        const int block = part->a + tutti_share_begin(blocks, panels, p);
        const int block_end = part->a + tutti_share_begin(blocks, panels, p + 1);
        const size_t w_block = (size_t)fc->in * TUTTI_BLOCK;
        fc->kernels->forward(&(tutti_fc_forward_job){
            .samples = sample_end - sample,
            .blocks = block_end - block,
            .inputs = end - input,
            .x = x,
            .x_row = packed_row(fc),
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

static void forward_share(void *arg, int thread, int threads)
{
    const forward_pass *pass = arg;
    const tutti_fc_part part =
        tutti_fc_part_of(tutti_fc_blocks(pass->outputs), pass->n, thread, threads);
    float *x = pass->packed + (size_t)thread * packed_floats(pass->fc, pass->n);
    for (int sample = part.b; sample < part.b_end; sample += FORWARD_SAMPLES)
        for (int input = 0; input < pass->fc->in; input += CHAIN_PIECE)
            forward_piece(pass, &part, sample, tutti_fc_least(sample + FORWARD_SAMPLES, part.b_end),
                          input, x);
}

void tutti_fc_forward(const tutti_fc *fc, const tutti_task *task, const float *x, const float *w,
                      const float *bias, bool relu, float *y)
{
    if (fc->bf16) {
        tutti_fc_bf16_forward(fc, task, x, w, bias, relu, y);
        return;
    }
    forward_pass pass = {.fc = fc,
                         .n = task->n,
                         .outputs = tutti_fc_filled(task->outputs),
                         .x = x,
                         .w = w,
                         .bias = bias,
                         .relu = relu,
                         .y = y,
                         .packed = task->scratch};
    tutti_team_run(task->team, forward_share, &pass);
}
