#include "ops_passes.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "kernel/channels.h"
#include "kernel/elementwise.h"
#include "kernel/layout.h"
#include "kernel/norm.h"
#include "kernel/ops.h"
#include "kernel/pixel_norm.h"
#include "kernel/planes.h"
#include "kernel/pool.h"
#include "kernel/upsample.h"

/* ---- on arrays of b->count floats ---- */

static const tutti_pool_shape pool2 = {
    .c = CHANNELS, .h = SIDE, .w = SIDE, .r = 2, .s = 2, .stride_h = 2, .stride_w = 2};
static const tutti_pool_shape pool3 = {.c = CHANNELS,
                                       .h = SIDE,
                                       .w = SIDE,
                                       .r = 3,
                                       .s = 3,
                                       .stride_h = 2,
                                       .stride_w = 2,
                                       .ceil_mode = true};
static const tutti_pool_shape global = {
    .c = CHANNELS, .h = SIDE, .w = SIDE, .r = SIDE, .s = SIDE, .stride_h = 1, .stride_w = 1};
static const tutti_lrn lrn5 = {5, 1e-4f, 0.75f, 2.0f};
static const tutti_sgd momentum = {1e-9f, 0.9f, 1e-9f, 1.0f, false};
static const tutti_sgd nesterov = {1e-9f, 0.9f, 1e-9f, 1.0f, true};
static const tutti_adam adam = {.gradient_scale = 1,
                                .shrink = 1,
                                .one_minus_beta1 = 0.1f,
                                .one_minus_beta2 = 1, /* v is not a square at first: forget it */
                                .step_size = 1e-9f,
                                .root_factor = 1,
                                .eps = 1e-8f};
static const tutti_dropout half = {0.5f, {.seed = 1, .purpose = TUTTI_RANDOM_DROPOUT}, 0};

static tutti_extent extent(const bench *b)
{
    return (tutti_extent){b->n, CHANNELS, PIXELS};
}

#define PASS(name) static void name(bench *b)
PASS(run_add)
{
    tutti_add(b->exec, b->count, b->a, b->b, false, b->c);
}
PASS(run_add_relu)
{
    tutti_add(b->exec, b->count, b->a, b->b, true, b->c);
}
PASS(run_add_to)
{
    tutti_add(b->exec, b->count, b->a, b->b, false, b->a);
}
PASS(run_scale)
{
    tutti_scale(b->exec, b->count, 0.999f, b->a, b->b);
}
PASS(run_axpy)
{
    tutti_axpy(b->exec, b->count, 1e-6f, b->a, b->b);
}
PASS(run_squares)
{
    b->sink = tutti_square_sum(b->exec, b->count, b->a);
}
PASS(run_relu)
{
    tutti_relu(b->exec, b->count, b->a, b->b);
}
PASS(run_relu_back)
{
    tutti_relu_backward(b->exec, b->count, b->a, b->b, b->c);
}
PASS(run_mul_spread)
{
    const tutti_factors factors = {b->b, CHANNELS, TUTTI_BLOCK};
    tutti_scale_planes(b->exec, extent(b), factors, b->a, NULL, b->c);
}
PASS(run_mul_spread_back)
{
    tutti_dot_planes(b->exec, extent(b), b->a, b->b, b->c);
}
PASS(run_hardsigmoid)
{
    tutti_elementwise_channels(b->exec.team, b->exec.row->ops->hardsigmoid, extent(b), b->a, b->c);
}
PASS(run_sigmoid)
{
    tutti_sigmoid(b->exec, extent(b), b->a, b->c);
}
PASS(run_sigmoid_back)
{
    tutti_sigmoid_backward(b->exec, b->count, b->a, b->b, NULL, b->c);
}
PASS(run_tanh)
{
    tutti_tanh(b->exec, b->count, b->a, b->c);
}
PASS(run_tanh_back)
{
    tutti_tanh_backward(b->exec, b->count, b->a, b->b, NULL, b->c);
}
PASS(run_dropout)
{
    tutti_dropout_forward(b->exec, &half, extent(b), b->a, b->c);
}
PASS(run_lrn)
{
    tutti_lrn_forward(b->exec, &lrn5, extent(b), b->a, b->c);
}
PASS(run_lrn_back)
{
    tutti_lrn_backward(b->exec, &lrn5, extent(b), b->a, b->b, NULL, b->c);
}

/* Of one statistics group: means of 0, factors of 1. */
typedef struct norm_numbers {
    double state[TUTTI_NORM_STATE * CHANNELS];
    float rows[TUTTI_NORM_ROWS * CHANNELS];
} norm_numbers;

static norm_numbers plain_norm(void)
{
    norm_numbers n = {{0}, {0}};
    for (int c = 0; c < CHANNELS; c++) n.rows[TUTTI_NORM_FACTOR * CHANNELS + c] = 1;
    return n;
}

static tutti_norm_groups all_of(const bench *b)
{
    return (tutti_norm_groups){0, b->n};
}

PASS(run_norm_moments)
{
    tutti_norm_moments(b->exec, extent(b), b->a, (double *)b->c);
}
PASS(run_norm)
{
    const norm_numbers n = plain_norm();
    tutti_norm_forward(b->exec, extent(b), all_of(b), n.rows, b->a, NULL, true, b->c);
}
PASS(run_norm_sums)
{
    const norm_numbers n = plain_norm();
    tutti_norm_sums(b->exec, extent(b), all_of(b), n.state, b->a, b->b, (double *)b->c);
}
PASS(run_norm_back)
{
    const norm_numbers n = plain_norm();
    tutti_norm_backward(b->exec, extent(b), all_of(b), n.rows, b->a, b->b, false, b->c);
}
/* Weights and biases are any numbers; so are the statistics. */
PASS(run_pixel_norm)
{
    const tutti_pixel_norm norm = {1e-5, b->b, b->b};
    tutti_pixel_norm_forward(b->exec, extent(b), &norm, b->a, b->d, b->c);
}
PASS(run_pixel_norm_back)
{
    const tutti_pixel_norm norm = {1e-5, b->b, b->b};
    tutti_pixel_norm_backward(b->exec, extent(b), &norm, b->d, b->a, b->b, false, b->c);
}
PASS(run_pixel_norm_sums)
{
    const int begin[] = {0, b->n};
    tutti_pixel_norm_gradients(b->exec, extent(b), &(tutti_grains){1, begin}, b->d, b->a, b->b,
                               (double *)b->c, b->c, b->c);
}
PASS(run_max2)
{
    tutti_max_pool_forward(b->exec, &pool2, b->n, b->a, b->c, b->tap);
}
PASS(run_max2_back)
{
    tutti_max_pool_backward(b->exec, &pool2, b->n, b->a, b->tap, b->b, b->c);
}
PASS(run_max3)
{
    tutti_max_pool_forward(b->exec, &pool3, b->n, b->a, b->c, b->tap);
}
PASS(run_max3_back)
{
    tutti_max_pool_backward(b->exec, &pool3, b->n, b->a, b->tap, b->b, b->c);
}
PASS(run_mean2)
{
    tutti_average_pool_forward(b->exec, &pool2, b->n, b->a, b->c);
}
PASS(run_mean2_back)
{
    tutti_average_pool_backward(b->exec, &pool2, b->n, b->a, NULL, b->c);
}
PASS(run_mean)
{
    tutti_average_pool_forward(b->exec, &global, b->n, b->a, b->c);
}
PASS(run_mean_back)
{
    tutti_average_pool_backward(b->exec, &global, b->n, b->a, b->b, b->c);
}
static tutti_extent table(const bench *b)
{
    return (tutti_extent){(int)(b->count / tutti_round_up(CLASSES, TUTTI_BLOCK)), CLASSES, 1};
}
PASS(run_softmax)
{
    tutti_softmax(b->exec, table(b), b->a, b->labels, b->c, b->d);
}
PASS(run_softmax_back)
{
    tutti_softmax_backward(b->exec, table(b), b->a, b->labels, 0.1f, b->c);
}
static void step(bench *b, const tutti_sgd *sgd)
{
    const tutti_update update = {.count = b->count, .a = b->a, .w = b->d, .state = {b->b}};
    tutti_sgd_step(b->exec, sgd, &update);
}
PASS(run_momentum)
{
    step(b, &momentum);
}
PASS(run_nesterov)
{
    step(b, &nesterov);
}
PASS(run_adam)
{
    const tutti_update update = {.count = b->count, .a = b->a, .w = b->d, .state = {b->b, b->c}};
    tutti_adam_step(b->exec, &adam, &update);
}
PASS(run_concat)
{
    const int parts[2] = {CHANNELS / 4, CHANNELS - CHANNELS / 4};
    const float *const x[2] = {b->a, b->b};
    tutti_concat(b->exec, &(tutti_concat_shape){b->n, PIXELS, 2, parts}, x, b->c);
}
PASS(run_shuffle)
{
    int map[CHANNELS];
    for (int k = 0; k < CHANNELS; k++) map[k] = k % 2 * (CHANNELS / 2) + k / 2;
    tutti_map_channels(b->exec, extent(b), CHANNELS, map, b->a, NULL, b->c);
}
PASS(run_to_blocked)
{
    tutti_nchw_to_blocked(b->exec, extent(b), b->a, b->c);
}
PASS(run_to_nchw)
{
    tutti_blocked_to_nchw(b->exec, extent(b), b->a, b->c);
}

/* A quarter of an array becomes one, and back. */
static void resize(bench *b, bool bilinear, bool back)
{
    const tutti_upsample_shape shape = {CHANNELS, SIDE / 2, SIDE / 2, SIDE, SIDE, bilinear, false};
    tutti_upsample *upsample = NULL;
    if (tutti_upsample_create(&upsample, &shape)) abort();
    if (back) tutti_upsample_backward(b->exec, upsample, b->n, b->a, NULL, b->c);
    else tutti_upsample_forward(b->exec, upsample, b->n, b->a, b->c);
    tutti_upsample_destroy(&upsample);
}
PASS(run_nearest)
{
    resize(b, false, false);
}
PASS(run_bilinear)
{
    resize(b, true, false);
}
PASS(run_bilinear_back)
{
    resize(b, true, true);
}

/* A 2x2 pool makes a quarter of an array of it; taps take two bytes per float. */
static const double quarter = 0.25, taps = 0.125;

#define FLAT(name) NULL, offsetof(tutti_ops_kernels, name)
const pass passes[] = {
    {"add", run_add, 0, 2, 1, true},
    {"add, ReLU", run_add_relu, 0, 2, 1, true},
    {"add in place", run_add_to, 0, 2, 1, true},
    {"scale", run_scale, 0, 1, 1, true},
    {"axpy", run_axpy, 0, 2, 1, true},
    {"mul", FLAT(mul), 2, 1, true},
    {"mul by one pixel", run_mul_spread, 0, 1, 1, true},
    {"mul by one pixel backward", run_mul_spread_back, 0, 2, 0, true},
    {"sum of squares", run_squares, 0, 1, 0, true},
    {"relu", run_relu, 0, 1, 1, true},
    {"relu backward", run_relu_back, 0, 2, 1, true},
    {"relu6", FLAT(relu6), 1, 1, true},
    {"relu6 backward", FLAT(relu6_backward), 2, 1, true},
    {"silu", FLAT(silu), 1, 1, true},
    {"silu backward", FLAT(silu_backward), 2, 1, true},
    {"gelu", FLAT(gelu), 1, 1, true},
    {"gelu backward", FLAT(gelu_backward), 2, 1, true},
    {"hardswish", FLAT(hardswish), 1, 1, true},
    {"hardswish backward", FLAT(hardswish_backward), 2, 1, true},
    {"hardsigmoid", run_hardsigmoid, 0, 1, 1, true},
    {"hardsigmoid backward", FLAT(hardsigmoid_backward), 2, 1, true},
    {"sigmoid", run_sigmoid, 0, 1, 1, true},
    {"sigmoid backward", run_sigmoid_back, 0, 2, 1, true},
    {"tanh", run_tanh, 0, 1, 1, true},
    {"tanh backward", run_tanh_back, 0, 2, 1, true},
    {"dropout", run_dropout, 0, 1, 1, true},
    {"max pool 2x2", run_max2, 0, 1, quarter + taps, true},
    {"max pool 2x2 backward", run_max2_back, 0, 2 * quarter + taps, 1, true},
    {"max pool 3x3/2", run_max3, 0, 1, quarter + taps, true},
    {"max pool 3x3/2 backward", run_max3_back, 0, 2 * quarter + taps, 1, true},
    {"average pool 2x2", run_mean2, 0, 1, quarter, true},
    {"average pool 2x2 backward", run_mean2_back, 0, quarter, 1, true},
    {"global average pool", run_mean, 0, 1, 0, true},
    {"global average pool backward", run_mean_back, 0, 1, 1, true},
    {"softmax, loss", run_softmax, 0, 1, 1, false},
    {"softmax backward", run_softmax_back, 0, 1, 1, true},
    {"SGD, momentum", run_momentum, 0, 3, 2, true},
    {"SGD, Nesterov", run_nesterov, 0, 3, 2, true},
    {"Adam", run_adam, 0, 4, 3, true},
    {"concat", run_concat, 0, 1, 1, true},
    {"shuffle", run_shuffle, 0, 1, 1, true},
    {"lrn 5", run_lrn, 0, 1, 1, false},
    {"lrn 5 backward", run_lrn_back, 0, 2, 1, false},
    {"batchnorm moments", run_norm_moments, 0, 1, 0, true},
    {"batchnorm", run_norm, 0, 1, 1, true},
    {"batchnorm sums", run_norm_sums, 0, 2, 0, true},
    {"batchnorm backward", run_norm_back, 0, 2, 1, true},
    {"layernorm", run_pixel_norm, 0, 1, 1, true},
    {"layernorm gradients", run_pixel_norm_sums, 0, 2, 0, true},
    {"layernorm backward", run_pixel_norm_back, 0, 2, 1, true},
    {"upsample 2x, nearest", run_nearest, 0, quarter, 1, true},
    {"upsample 2x, bilinear", run_bilinear, 0, quarter, 1, false},
    {"upsample 2x, bilinear backward", run_bilinear_back, 0, 1, quarter, false},
    {"NCHW to blocked", run_to_blocked, 0, 1, 1, true},
    {"blocked to NCHW", run_to_nchw, 0, 1, 1, true},
    {.name = NULL},
};

void run_pass(bench *b, const pass *p)
{
    const tutti_elementwise job = {.a = b->a, .b = b->b, .y = b->c};
    tutti_elementwise_fn *kernel;
    memcpy(&kernel, (const char *)b->exec.row->ops + p->kernel, sizeof kernel);
    if (p->run) p->run(b);
    else tutti_elementwise_run(b->exec.team, kernel, &job, b->count);
}
