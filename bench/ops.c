/* Passes that only stream through memory, against the rate of a plain copy.
 *
 *   bench/ops [--threads N] [--mib N] [--seconds S] [--only NAME] [--json]
 *
 * Each pass runs alternately with a copy of arrays of the same size, whose stores bypass the
 * caches, because the speed of a machine that others use, too, can double from one second to the
 * next. The rates are the best of all rounds; the percentages are medians over the rounds. Bytes
 * are those the pass must move: every input read once, every output written once.
 *
 * "of copy" compares bytes per second with the copies just before and after the pass. Where memory
 * has lanes for each direction a copy uses both, and a pass that does little but write, or read,
 * cannot reach all of that: "of plain" compares with loops, just before the pass, that read and
 * write as much as it does and do nothing else. They do not fetch ahead; a pass that does can be
 * faster. */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "cli.h"
#include "kernel/channels.h"
#include "kernel/elementwise.h"
#include "kernel/layout.h"
#include "kernel/norm.h"
#include "kernel/ops.h"
#include "kernel/planes.h"
#include "kernel/pool.h"

typedef struct ops_options {
    int threads, mib;
    double seconds;
    const char *only;
    bool json;
} ops_options;

#define AT(field) offsetof(ops_options, field)
// clang-format off
static const cli_option options[] = {
    {"threads|t", CLI_INT,  AT(threads), 0, 1024, "0", .help = "threads; 0: one per core"},
    {"mib",       CLI_INT,  AT(mib),     1, 4096, "64", .help = "MiB of the largest array"},
    {"seconds",   CLI_REAL, AT(seconds), 0.01, 60, "1", .help = "per pass, with its copy"},
    {"only",      CLI_TEXT, AT(only),    .help = "passes whose name has this in it"},
    {"json",      CLI_FLAG, AT(json),    .help = "print JSON"},
    {.name = NULL},
};
// clang-format on

/* Activations are n x 64 channels x 64 x 64 pixels; n follows from --mib. */
enum { CHANNELS = 64, SIDE = 64, PIXELS = SIDE * SIDE, CLASSES = 1000 };

typedef struct bench {
    tutti_exec exec;
    int n;
    size_t count; /* floats of an array */
    float *a, *b, *c, *d;
    uint16_t *tap;
    int32_t *labels;
    volatile double sink;
} bench;

/* ---- the passes, on arrays of b->count floats ---- */

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
    tutti_norm_forward(b->exec, extent(b), all_of(b), n.rows, b->a, true, b->c);
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

/* A 2x2 pool makes a quarter of an array of it; taps take two bytes per float. */
static const double quarter = 0.25, taps = 0.125;

typedef struct pass {
    const char *name;
    void (*run)(bench *b);
    size_t kernel;        /* instead: an elementwise one of the row */
    double reads, writes; /* in arrays */
    bool streams;         /* does so little that memory should limit it */
} pass;

#define FLAT(name) NULL, offsetof(tutti_ops_kernels, name)
static const pass passes[] = {
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
    {"NCHW to blocked", run_to_blocked, 0, 1, 1, true},
    {"blocked to NCHW", run_to_nchw, 0, 1, 1, true},
};
enum { PASSES = sizeof passes / sizeof *passes };

/* ---- timing ---- */

typedef enum kind { PLAIN_COPY, PLAIN_READ, PLAIN_WRITE } kind_of_move;

typedef struct plain_job {
    const bench *b;
    kind_of_move kind;
    size_t count; /* floats */
} plain_job;

static void plain_share(void *arg, int thread, int threads)
{
    const plain_job *job = arg;
    const bench *b = job->b;
    const tutti_range mine = tutti_range_of(job->count / 64, threads, thread);
    const size_t at = mine.begin * 64, count = tutti_range_length(mine) * 64;
    float sink[1];
    if (!count) return;
    if (job->kind == PLAIN_COPY) b->exec.row->stream_copy(b->c + at, b->a + at, count);
    else if (job->kind == PLAIN_READ) b->exec.row->stream_read(b->b + at, count, sink);
    else b->exec.row->stream_write(b->c + at, count, 1.0f);
}

/* Moves 'arrays' arrays, or a part of one. */
static void move(bench *b, kind_of_move kind, double arrays)
{
    for (; arrays > 0.0; arrays -= 1.0) {
        plain_job job = {b, kind, arrays < 1.0 ? (size_t)(arrays * (double)b->count) : b->count};
        tutti_team_run(b->exec.team, plain_share, &job);
    }
}

static double time_of_plain(bench *b, double reads, double writes)
{
    const double start = tutti_now(), both = reads < writes ? reads : writes;
    move(b, PLAIN_COPY, both);
    move(b, PLAIN_READ, reads - both);
    move(b, PLAIN_WRITE, writes - both);
    return tutti_now() - start;
}

static double time_of_copy(bench *b)
{
    return time_of_plain(b, 1.0, 1.0);
}

static void run_pass(bench *b, const pass *p)
{
    const tutti_elementwise job = {.a = b->a, .b = b->b, .y = b->c};
    tutti_elementwise_fn *kernel;
    memcpy(&kernel, (const char *)b->exec.row->ops + p->kernel, sizeof kernel);
    if (p->run) p->run(b);
    else tutti_elementwise_run(b->exec.team, kernel, &job, b->count);
}

static double time_of(bench *b, const pass *p)
{
    const double start = tutti_now();
    run_pass(b, p);
    return tutti_now() - start;
}

enum { MAX_ROUNDS = 10000 };

typedef struct result {
    double rate, copy;        /* GB/s */
    double of_copy, of_plain; /* medians of the rounds, in percent */
} result;

static int compare(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Numbers in [-1, 1] for every pass anew: passes in place make them grow. */
static void fill_share(void *arg, int thread, int threads)
{
    const bench *b = arg;
    float *const arrays[] = {b->a, b->b, b->c, b->d};
    for (int k = thread; k < 4; k += threads)
        for (size_t i = 0; i < b->count; i++)
            arrays[k][i] = (float)((i * 2654435761u + (size_t)k) % 2001) * 1e-3f - 1.0f;
}

static double median(double *values, int count)
{
    qsort(values, (size_t)count, sizeof *values, compare);
    return values[count / 2];
}

static result measure(bench *b, const pass *p, double seconds)
{
    static double of_copy[MAX_ROUNDS], of_plain[MAX_ROUNDS];
    const double bytes = (double)b->count * sizeof(float) * 1e-9, arrays = p->reads + p->writes;
    tutti_team_run(b->exec.team, fill_share, b);
    double best = 1e9, copy = 1e9, before = time_of_copy(b);
    int rounds = 0;
    run_pass(b, p);
    for (const double end = tutti_now() + seconds; tutti_now() < end && rounds < MAX_ROUNDS;) {
        const double plain = time_of_plain(b, p->reads, p->writes);
        const double t = time_of(b, p), after = time_of_copy(b);
        of_copy[rounds] = 50.0 * arrays / t * (before + after) / 2.0;
        of_plain[rounds++] = 100.0 * plain / t;
        if (after < copy) copy = after;
        if (t < best) best = t;
        before = after;
    }
    return (result){arrays * bytes / best, 2.0 * bytes / copy, median(of_copy, rounds),
                    median(of_plain, rounds)};
}

/* ---- setting up ---- */

static tutti_status set_up(bench *b, const ops_options *o)
{
    const size_t sample = (size_t)CHANNELS * PIXELS;
    b->n = (int)(((size_t)o->mib << 20) / sizeof(float) / sample);
    if (b->n < 1) b->n = 1;
    b->count = (size_t)b->n * sample;
    TUTTI_TRY(tutti_kernels_choose(&b->exec.row));
    TUTTI_TRY(tutti_team_create(&b->exec.team, o->threads));
    TUTTI_TRY(tutti_alloc(&b->tap, b->count, sizeof *b->tap));
    TUTTI_TRY(tutti_alloc(&b->labels, b->count / CLASSES + 1, sizeof *b->labels));
    float **arrays[] = {&b->a, &b->b, &b->c, &b->d};
    for (int k = 0; k < 4; k++) TUTTI_TRY(tutti_alloc(arrays[k], b->count, sizeof(float)));
    return TUTTI_OK;
}

static void tear_down(bench *b)
{
    tutti_team_destroy(&b->exec.team);
    tutti_free(b->tap);
    tutti_free(b->labels);
    tutti_free(b->a);
    tutti_free(b->b);
    tutti_free(b->c);
    tutti_free(b->d);
}

static void report(json_t *rows, const pass *p, result r)
{
    if (rows)
        json_array_append_new(rows,
                              json_pack("{s:s, s:f, s:f, s:f, s:f, s:b}", "pass", p->name, "gbs",
                                        r.rate, "copy_gbs", r.copy, "percent", r.of_copy,
                                        "percent_of_plain", r.of_plain, "streams", p->streams));
    else
        printf("%-30s %7.1f %7.1f %8.0f%% %8.0f%%\n", p->name, r.rate, r.copy, r.of_copy,
               r.of_plain);
    fflush(stdout);
}

static tutti_status run_all(const ops_options *o, json_t *rows)
{
    bench b = {0};
    const tutti_status s = set_up(&b, o);
    if (s == TUTTI_OK && !rows)
        printf("%s, %d threads, arrays of %.0f MiB\n%-30s %7s %7s %9s %9s\n", b.exec.row->name,
               tutti_team_size(b.exec.team), (double)b.count * sizeof(float) / 1048576.0, "pass",
               "GB/s", "copy", "of copy", "of plain");
    for (int i = 0; s == TUTTI_OK && i < PASSES; i++)
        if (!o->only || strstr(passes[i].name, o->only))
            report(rows, &passes[i], measure(&b, &passes[i], o->seconds));
    tear_down(&b);
    return s;
}

static int run(const cli_call *call)
{
    const ops_options *o = call->values;
    json_t *rows = o->json ? json_array() : NULL;
    const tutti_status s = run_all(o, rows);
    if (rows) {
        json_t *all = json_pack("{s:o}", "rows", rows);
        if (s == TUTTI_OK) json_dumpf(all, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(6));
        if (s == TUTTI_OK) printf("\n");
        json_decref(all);
    }
    return s == TUTTI_OK ? 0 : cli_failed(call, s);
}

static const cli_verb verb = {
    "ops", "measure passes against a copy", options, sizeof(ops_options), run, NULL};

int main(int argc, char **argv)
{
    ops_options values;
    return cli_run_alone(&verb, &values, argc, argv);
}
