/* errors: how far the sums of a 3x3 convolution are from the exact ones, by algorithm: the table
 * of doc/NUMERICS.md. The numbers are random, the arithmetic is not: kernels of every processor
 * print the same. */
#include <math.h>
#include <stdio.h>

#include "base/memory.h"
#include "base/random.h"
#include "bench.h"
#include "cli.h"
#include "kernel/ref_conv.h"

enum { FEATURES = 32, SIDE = 14, PASSES = BENCH_PASSES };

static const char *const pass_names[] = {"forward", "backward-data", "backward-weights"};
static const tutti_conv_algorithm algorithms[] = {TUTTI_CONV_DIRECT, TUTTI_CONV_WINOGRAD_2X2,
                                                  TUTTI_CONV_WINOGRAD_4X4};
enum { ALGORITHMS = sizeof algorithms / sizeof *algorithms };

typedef struct errors_options {
    int unused;
} errors_options;

static const cli_option options[] = {{.name = NULL}};

/* A convolution of 'c' channels to FEATURES, and the exact sums. */
typedef struct problem {
    tutti_conv_shape shape;
    int n;
    float *x, *w, *dy, *result;
    double *exact;
    size_t count[PASSES]; /* floats of what each pass computes */
} problem;

static void fill(float *to, size_t count, uint32_t which, double deviation, bool relu)
{
    const tutti_random_key key = {1, TUTTI_RANDOM_SYNTHETIC, which, 0, 0};
    for (size_t i = 0; i < count; i++) {
        const double value = tutti_random_normal(&key, i) * deviation;
        to[i] = relu && value < 0 ? 0.0f : (float)value;
    }
}

static void close_problem(problem *p)
{
    tutti_free(p->x);
    tutti_free(p->w);
    tutti_free(p->dy);
    tutti_free(p->result);
    tutti_free(p->exact);
}

/* Inputs as after a ReLU, weights as He's, gradients as they come. */
static tutti_status open_problem(problem *p, int c, int k, int side, int n)
{
    *p = (problem){.n = n};
    p->shape = (tutti_conv_shape){.c = c, .h = side, .w = side, .k = k, .r = 3, .s = 3};
    p->shape.stride_h = p->shape.stride_w = p->shape.dilation_h = p->shape.dilation_w = 1;
    p->shape.pad_top = p->shape.pad_bottom = p->shape.pad_left = p->shape.pad_right = 1;
    p->shape.groups = 1;
    const size_t pixels = (size_t)n * (size_t)side * (size_t)side;
    const size_t x = pixels * (size_t)c, y = pixels * (size_t)k, w = 9 * (size_t)c * (size_t)k;
    const size_t most = x > y ? x > w ? x : w : y > w ? y : w;
    p->count[BENCH_FORWARD] = y, p->count[BENCH_BACKWARD_DATA] = x;
    p->count[BENCH_BACKWARD_WEIGHTS] = w;
    TUTTI_TRY(tutti_alloc(&p->x, x, sizeof *p->x));
    TUTTI_TRY(tutti_alloc(&p->w, w, sizeof *p->w));
    TUTTI_TRY(tutti_alloc(&p->dy, y, sizeof *p->dy));
    TUTTI_TRY(tutti_alloc(&p->result, most, sizeof *p->result));
    TUTTI_TRY(tutti_alloc(&p->exact, most, sizeof *p->exact));
    fill(p->x, x, 0, 1, true);
    fill(p->w, w, 1, sqrt(2 / (9.0 * c)), false);
    fill(p->dy, y, 2, 1, false);
    return TUTTI_OK;
}

/* ---- exactly ---- */

static void exact_images(problem *p, bool forward)
{
    const tutti_conv_shape *s = &p->shape;
    const int channels = forward ? s->k : s->c;
    for (int n = 0; n < p->n; n++)
        for (int c = 0; c < channels; c++)
            for (int i = 0; i < s->h * s->w; i++) {
                const int h = i / s->w, w = i % s->w;
                const size_t at =
                    forward ? tutti_ref_y_at(s, n, c, h, w) : tutti_ref_x_at(s, n, c, h, w);
                p->exact[at] = forward ? tutti_ref_conv_y(s, p->x, p->w, n, c, h, w).exact
                                       : tutti_ref_conv_dx(s, p->dy, p->w, n, c, h, w).exact;
            }
}

static void exact_weights(problem *p)
{
    const tutti_conv_shape *s = &p->shape;
    for (int k = 0; k < s->k; k++)
        for (int c = 0; c < s->c; c++)
            for (int i = 0; i < 9; i++)
                p->exact[tutti_ref_w_at(s, k, c, i / 3, i % 3)] =
                    tutti_ref_conv_dw(s, p->x, p->dy, 0, p->n, k, c, i / 3, i % 3).exact;
}

/* ---- by kernels ---- */

static tutti_status compute(problem *p, const tutti_kernels *row, bench_pass pass,
                            tutti_conv_algorithm algorithm)
{
    static const tutti_caches caches = {32 << 10, 1 << 20, 4 << 20};
    tutti_conv *conv = NULL;
    void *scratch = NULL;
    const tutti_grains grains = {1, (int[]){0, p->n}};
    p->shape.algorithm = algorithm;
    TUTTI_TRY(tutti_conv_create(&conv, &p->shape, row, &caches, p->n, 1));
    const tutti_status s = tutti_alloc(&scratch, tutti_conv_scratch(conv), 1);
    const tutti_task task = {.scratch = scratch, .n = p->n, .grains = &grains};
    if (s != TUTTI_OK) goto out;
    if (pass == BENCH_FORWARD) tutti_conv_forward(conv, &task, p->x, p->w, NULL, false, p->result);
    else if (pass == BENCH_BACKWARD_DATA)
        tutti_conv_backward_data(conv, &task, p->dy, p->w, NULL, p->result);
    else tutti_conv_backward_weights(conv, &task, p->x, p->dy, p->result, NULL);
out:
    tutti_free(scratch);
    tutti_conv_destroy(&conv);
    return s;
}

/* The root of the mean square of all errors, over that of the sums. */
static double error_of(const problem *p, size_t count)
{
    double error = 0, size = 0;
    for (size_t i = 0; i < count; i++) {
        const double e = p->result[i] - p->exact[i];
        error += e * e;
        size += p->exact[i] * p->exact[i];
    }
    return sqrt(error / size);
}

static tutti_status measure(double errors[ALGORITHMS], const tutti_kernels *row, bench_pass pass,
                            int c, int k, int side, int n)
{
    problem p;
    tutti_status s = open_problem(&p, c, k, side, n);
    if (s == TUTTI_OK && pass == BENCH_BACKWARD_WEIGHTS) exact_weights(&p);
    else if (s == TUTTI_OK) exact_images(&p, pass == BENCH_FORWARD);
    for (int i = 0; i < ALGORITHMS && s == TUTTI_OK; i++) {
        s = compute(&p, row, pass, algorithms[i]);
        errors[i] = error_of(&p, p.count[pass]);
    }
    close_problem(&p);
    return s;
}

/* ---- tables ---- */

typedef struct setting {
    bench_pass pass;
    int c, k, side, n;
    const char *text;
} setting;

static const setting settings[] = {
    {BENCH_FORWARD, 32, FEATURES, SIDE, 1, "32 channels"},
    {BENCH_FORWARD, 64, FEATURES, SIDE, 1, "64 channels"},
    {BENCH_FORWARD, 128, FEATURES, SIDE, 1, "128 channels"},
    {BENCH_FORWARD, 256, FEATURES, SIDE, 1, "256 channels"},
    {BENCH_FORWARD, 512, FEATURES, SIDE, 1, "512 channels"},
    {BENCH_BACKWARD_DATA, FEATURES, 128, SIDE, 1, "128 features"},
    {BENCH_BACKWARD_DATA, FEATURES, 512, SIDE, 1, "512 features"},
    {BENCH_BACKWARD_WEIGHTS, FEATURES, FEATURES, 14, 4, "4 samples of 14x14"},
    {BENCH_BACKWARD_WEIGHTS, FEATURES, FEATURES, 28, 4, "4 samples of 28x28"},
    {BENCH_BACKWARD_WEIGHTS, FEATURES, FEATURES, 56, 4, "4 samples of 56x56"},
};

static tutti_status print_setting(const setting *at, const tutti_kernels *row)
{
    double errors[ALGORITHMS] = {0};
    TUTTI_TRY(measure(errors, row, at->pass, at->c, at->k, at->side, at->n));
    printf("| %s, %s |", pass_names[at->pass], at->text);
    for (int i = 0; i < ALGORITHMS; i++) printf(" %.1e (%.2f) |", errors[i], errors[i] / errors[0]);
    printf("\n");
    return TUTTI_OK;
}

static int run(const cli_call *call)
{
    const tutti_kernels *row = NULL;
    tutti_status s = tutti_kernels_choose(&row);
    printf("| pass, sums over |");
    for (int i = 0; i < ALGORITHMS; i++) printf(" %s |", tutti_conv_algorithm_words[algorithms[i]]);
    printf("\n|---|---|---|---|\n");
    for (size_t i = 0; i < sizeof settings / sizeof *settings && s == TUTTI_OK; i++)
        s = print_setting(&settings[i], row);
    return s == TUTTI_OK ? 0 : cli_failed(call, s);
}

static const cli_verb verb = {"errors", "measure the errors of 3x3 convolutions by each algorithm",
                              options,  sizeof(errors_options),
                              run,      NULL,
                              NULL};

int main(int argc, char **argv)
{
    errors_options values;
    return cli_run_alone(&verb, &values, argc, argv);
}
