/* Creating a convolution plans its passes.
 *
 * The order of the sums, fixed by the shape alone:
 *   y   over blocks of 16 input channels, kernel rows, kernel columns, channels of the block;
 *       compact inputs are one block
 *   dx  over blocks of 16 output channels, kernel rows and columns from the last to the first,
 *       channels of the block
 *   dw  over the samples of a grain, rows and columns of dy; then the tree over the grains
 * Terms in the padding are left out, except for the columns left and right of a compact image,
 * which are zeros (conv_pack.c).
 * By Winograd's algorithms, which 3x3 kernels at stride 1 may take, sums are others: winograd.c,
 * winograd_gradient.c, winograd4.c, winograd4_gradient.c; so they are of operands rounded to bf16:
 * conv_bf16.c. */
#include "kernel/conv_plan.h"

#include <math.h>
#include <stdio.h>

#include "base/memory.h"
#include "base/tree.h"
#include "kernel/conv_bf16.h"

enum {
    LEAST_CHANNELS = 32, /* fewer do not pay for Winograd's transforms */
    LEAST_SIZE = 4,      /* rows and columns of the output */
};

const char *const tutti_conv_algorithm_words[] = {"auto", "direct", "winograd-2x2", "winograd-4x4",
                                                  NULL};

static int out_size(int in, int kernel, int stride, int dilation, int pad)
{
    const int room = in + pad - (kernel - 1) * dilation - 1;
    return room < 0 ? 0 : room / stride + 1;
}

int tutti_conv_out_h(const tutti_conv_shape *shape)
{
    return out_size(shape->h, shape->r, shape->stride_h, shape->dilation_h,
                    shape->pad_top + shape->pad_bottom);
}

int tutti_conv_out_w(const tutti_conv_shape *shape)
{
    return out_size(shape->w, shape->s, shape->stride_w, shape->dilation_w,
                    shape->pad_left + shape->pad_right);
}

bool tutti_conv_may(const tutti_conv_shape *s, tutti_conv_algorithm algorithm)
{
    if (algorithm <= TUTTI_CONV_DIRECT) return true;
    return s->r == 3 && s->s == 3 && s->stride_h == 1 && s->stride_w == 1 && s->dilation_h == 1 &&
           s->dilation_w == 1 && s->groups == 1 && !s->compact;
}

tutti_conv_algorithm tutti_conv_takes(const tutti_conv_shape *s)
{
    if (s->algorithm != TUTTI_CONV_AUTO) return s->algorithm;
    const bool pays = s->c >= LEAST_CHANNELS && s->k >= LEAST_CHANNELS &&
                      tutti_conv_out_h(s) >= LEAST_SIZE && tutti_conv_out_w(s) >= LEAST_SIZE;
    return pays && tutti_conv_may(s, TUTTI_CONV_USUAL) ? TUTTI_CONV_USUAL : TUTTI_CONV_DIRECT;
}

bool tutti_conv_rounds(const tutti_conv_shape *s)
{
    return s->precision == TUTTI_IN_BF16 && !s->compact && s->c / s->groups % TUTTI_BLOCK == 0 &&
           s->k / s->groups % TUTTI_BLOCK == 0 && tutti_conv_takes(s) == TUTTI_CONV_DIRECT;
}

double tutti_conv_effort(const tutti_conv_shape *shape)
{
    switch (tutti_conv_takes(shape)) {
    case TUTTI_CONV_WINOGRAD_2X2: return 16.0 / 36; /* of two by two pixels */
    case TUTTI_CONV_WINOGRAD_4X4: return tutti_winograd4_effort(shape);
    default: return 1;
    }
}

static bool is_plain(const tutti_conv_shape *shape)
{
    return shape->groups > 1 && shape->compact;
}

int tutti_conv_narrow(const tutti_conv_shape *shape)
{
    const int channels = shape->c / shape->groups;
    if (shape->compact || shape->groups == 1 || shape->k != shape->c) return 0;
    return channels < TUTTI_BLOCK && TUTTI_BLOCK % channels == 0 ? channels : 0;
}

bool tutti_conv_has_compact_weights(const tutti_conv_shape *shape)
{
    return shape->compact || tutti_conv_narrow(shape) > 0;
}

/* The row's tiles for narrow groups; NULL when the shape has none. */
static const tutti_conv_lanes *lanes_of(const tutti_conv_kernels *kernels,
                                        const tutti_conv_shape *shape)
{
    const int channels = tutti_conv_narrow(shape);
    const tutti_conv_lanes *lanes = kernels->lanes;
    while (lanes->channels && lanes->channels != channels) lanes++;
    return lanes->channels ? lanes : NULL;
}

int tutti_conv_tap_channels(const tutti_conv *conv)
{
    if (conv->lanes) return conv->lanes->channels;
    return conv->shape.compact ? conv->shape.c : TUTTI_BLOCK;
}

static long blocks_of(int channels)
{
    return tutti_ceil_div(channels, TUTTI_BLOCK);
}

double tutti_conv_tile_cost(int blocks, int vectors, int width)
{
    const double fma = blocks * vectors * width, loads = (blocks * vectors + width) * 1.7;
    const double lines = blocks * 4, latency = 8, loop = 10 / fma;
    return fmax(fmax(fma, loads), fmax(lines, latency)) + loop;
}

static double cover_cost(int blocks, int vectors, int width, int tile_blocks, int tile_width)
{
    const int down = tutti_ceil_div(blocks, tile_blocks),
              across = tutti_ceil_div(width, tile_width);
    double cost = 0;
    for (int i = 0; i < down; i++)
        for (int j = 0; j < across; j++)
            cost += tutti_conv_tile_cost(
                tutti_share_begin(blocks, down, i + 1) - tutti_share_begin(blocks, down, i),
                vectors,
                tutti_share_begin(width, across, j + 1) - tutti_share_begin(width, across, j));
    return cost;
}

int tutti_conv_tile_blocks(const int max_width[], int blocks, int vectors, int width)
{
    int best = 1;
    double least = 0;
    for (int nb = 1; nb <= TUTTI_CONV_MAX_BLOCKS && nb <= blocks && max_width[nb]; nb++) {
        const double cost = cover_cost(blocks, vectors, width, nb, max_width[nb]);
        if (nb == 1 || cost < least) {
            best = nb;
            least = cost;
        }
    }
    return best;
}

/* Shorter blocks of rows where there would be too few items for the threads to share evenly. */
static void share_rows(const tutti_conv *conv, tutti_conv_pass *pass)
{
    const int tiles = tutti_ceil_div(pass->outputs, pass->tile_blocks);
    const int groups = pass->groups * tutti_ceil_div(tiles, pass->blocks.tiles);
    while (pass->blocks.rows > 1 &&
           groups * conv->n * tutti_ceil_div(pass->rows, pass->blocks.rows) < 16 * conv->threads)
        pass->blocks.rows = (pass->blocks.rows + 1) / 2;
}

/* Blocks of inputs whose weights for one tile stay in three quarters of the first level; all where
 * these would be too few to be worth storing partial sums after them. */
static int chunk_of(const tutti_conv *conv, const tutti_conv_pass *pass, int inputs)
{
    enum { LEAST = 4 };
    const size_t weights = (size_t)(pass->w_tile * pass->tile_blocks) * sizeof(float);
    const size_t chunk = conv->caches.l1 * 3 / 4 / weights;
    return chunk < LEAST || chunk > (size_t)inputs ? inputs : (int)chunk;
}

/* The cache blocks of forward and backward-data, by the search for the least bytes per operation in
 * half of the second level: the rest is for what streams through. Whole tiles and whole rows. */
static void choose_blocks(const tutti_conv *conv, tutti_conv_pass *pass)
{
    const tutti_conv_sweep *sweep = &pass->sweeps[0];
    const int channels = (int)sweep->x_pixel;
    const tutti_loops all = {
        .n = 1,
        .c = pass->inputs * channels,
        .k = pass->outputs * TUTTI_BLOCK,
        .h = pass->rows,
        .w = sweep->cols,
        .r = sweep->taps_h > 0 ? sweep->taps_h : 1,
        .s = sweep->taps_w > 0 ? sweep->taps_w : 1,
        .stride_h = sweep->step_h,
        .stride_w = sweep->step_w,
    };
    const tutti_loops least = {
        .n = 1, .c = channels, .k = pass->tile_blocks * TUTTI_BLOCK, .h = 1, .w = all.w};
    pass->blocking = tutti_block_search(&all, &least, conv->caches.l2 / 2);
    const tutti_loops *b = &pass->blocking.block;
    pass->blocks = (tutti_conv_blocks){
        .inputs = b->c / channels,
        .chunk = chunk_of(conv, pass, b->c / channels),
        .tiles = tutti_ceil_div(b->k, least.k),
        .rows = b->h,
    };
    share_rows(conv, pass);
}

static tutti_status plan(tutti_conv *conv, const tutti_kernels *row)
{
    const tutti_conv_shape *shape = &conv->shape;
    const long x_blocks = blocks_of(shape->c), y_blocks = blocks_of(shape->k);
    if (conv->plain) return TUTTI_OK;
    TUTTI_TRY(tutti_conv_plan_forward(conv));
    conv->forward.x_sample = x_blocks * conv->forward.x_block;
    conv->forward.y_sample = y_blocks * conv->forward.y_block;
    choose_blocks(conv, &conv->forward);
    if (!shape->compact) {
        TUTTI_TRY(tutti_conv_plan_backward(conv));
        conv->backward.x_sample = y_blocks * conv->backward.x_block;
        conv->backward.y_sample = x_blocks * conv->backward.y_block;
        choose_blocks(conv, &conv->backward);
    }
    TUTTI_TRY(tutti_conv_plan_gradient(conv));
    return tutti_conv_rounds(shape) ? tutti_conv_bf16_create(conv, row) : TUTTI_OK;
}

tutti_status tutti_conv_create(tutti_conv **out, const tutti_conv_shape *shape,
                               const tutti_kernels *row, const tutti_caches *caches, int n,
                               int threads)
{
    tutti_conv *conv = NULL;
    TUTTI_TRY(tutti_alloc(&conv, 1, sizeof *conv));
    conv->shape = *shape;
    conv->kernels = row->conv;
    conv->caches = *caches;
    conv->n = n;
    conv->threads = threads;
    conv->out_h = tutti_conv_out_h(shape);
    conv->out_w = tutti_conv_out_w(shape);
    conv->plain = is_plain(shape);
    conv->lanes = lanes_of(conv->kernels, shape);
    conv->tiles = conv->lanes ? conv->lanes->tiles : conv->kernels->tiles;
    conv->algorithm = tutti_conv_takes(shape);
    conv->products = row->fc;
    conv->packed = shape->compact && (shape->pad_left || shape->pad_right);
    conv->packed_row = (long)(shape->pad_left + shape->w + shape->pad_right) * shape->c;
    const tutti_status s =
        tutti_conv_regroups(shape) ? tutti_conv_plan_regrouped(conv, row) : plan(conv, row);
    if (s != TUTTI_OK) tutti_conv_destroy(&conv);
    else *out = conv;
    return s;
}

void tutti_conv_destroy(tutti_conv **conv)
{
    if (!*conv) return;
    tutti_conv_destroy(&(*conv)->regrouped);
    tutti_conv_bf16_destroy(&(*conv)->bf16);
    tutti_conv_pass_deinit(&(*conv)->forward);
    tutti_conv_pass_deinit(&(*conv)->backward);
    tutti_conv_gradient_deinit(&(*conv)->gradient);
    tutti_free(*conv);
    *conv = NULL;
}

size_t tutti_conv_weight_count(const tutti_conv *conv)
{
    const tutti_conv_shape *shape = &conv->shape;
    const int c = shape->c / shape->groups;
    const size_t channels =
        tutti_conv_has_compact_weights(shape) ? (size_t)c : (size_t)blocks_of(c) * TUTTI_BLOCK;
    return (size_t)blocks_of(shape->k) * TUTTI_BLOCK * channels * (size_t)shape->r *
           (size_t)shape->s;
}

size_t tutti_conv_bias_count(const tutti_conv *conv)
{
    return (size_t)blocks_of(conv->shape.k) * TUTTI_BLOCK;
}

/* Of forward and backward-data. */
static size_t data_scratch(const tutti_conv *conv)
{
    if (conv->bf16) return tutti_conv_bf16_scratch(conv);
    if (conv->algorithm == TUTTI_CONV_WINOGRAD_2X2) return tutti_winograd_scratch(conv);
    if (conv->algorithm == TUTTI_CONV_WINOGRAD_4X4) return tutti_winograd4_scratch(conv);
    const size_t forward = tutti_conv_pass_scratch(conv, &conv->forward);
    const size_t backward = tutti_conv_pass_scratch(conv, &conv->backward);
    return forward > backward ? forward : backward;
}

size_t tutti_conv_scratch(const tutti_conv *conv)
{
    if (conv->plain) return 0;
    if (conv->regrouped) return tutti_conv_regrouped_scratch(conv);
    const size_t gradient = tutti_conv_gradient_scratch(conv);
    const size_t data = data_scratch(conv);
    return data > gradient ? data : gradient;
}

static int explain_pass(const char *name, const tutti_conv_pass *pass, char *text, size_t bytes)
{
    const tutti_loops *b = &pass->blocking.block;
    return snprintf(text, bytes, "%s: tile %dx%d, block c%d k%d h%d w%d, %zu KiB, %.4f B/FLOP; ",
                    name, pass->tile_blocks * TUTTI_BLOCK, pass->sweeps[0].segments[0].width, b->c,
                    b->k, pass->blocks.rows, b->w, pass->blocking.bytes / 1024,
                    pass->blocking.bytes_per_flop);
}

static size_t explain_data(const tutti_conv *conv, char *text, size_t bytes)
{
    if (conv->bf16) return (size_t)tutti_conv_bf16_explain(conv, text, bytes);
    if (conv->algorithm == TUTTI_CONV_WINOGRAD_2X2)
        return (size_t)tutti_winograd_explain(conv, text, bytes);
    if (conv->algorithm == TUTTI_CONV_WINOGRAD_4X4)
        return (size_t)tutti_winograd4_explain(conv, text, bytes);
    size_t used = (size_t)explain_pass("forward", &conv->forward, text, bytes);
    if (!conv->shape.compact && used < bytes)
        used += (size_t)explain_pass("data", &conv->backward, text + used, bytes - used);
    return used;
}

void tutti_conv_explain(const tutti_conv *conv, char *text, size_t bytes)
{
    if (conv->plain) {
        snprintf(text, bytes, "element by element");
        return;
    }
    if (conv->regrouped) {
        tutti_conv_explain(conv->regrouped, text, bytes);
        return;
    }
    size_t used = explain_data(conv, text, bytes);
    const tutti_conv_gradient *g = &conv->gradient;
    if (used >= bytes) return;
    used += (size_t)snprintf(text + used, bytes - used, "weights: %dx%d parts, %.4f B/FLOP",
                             g->blocks.channels, g->blocks.features, g->bytes_per_flop);
    if (conv->algorithm == TUTTI_CONV_DIRECT && used < bytes)
        snprintf(text + used, bytes - used, ", tile %d, strips of %dx%d",
                 g->tile_blocks * TUTTI_BLOCK, g->blocks.rows, g->blocks.cols);
}
