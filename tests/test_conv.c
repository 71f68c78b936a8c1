/* Convolution: every row of the kernel table, every number of threads and every size of cache
 * blocks gives exactly the bits of the definition, which is itself within a derived bound of the
 * sum in double. Arrays end at an unmapped page and outputs start as NaN, so that reading or
 * writing too much and writing too little are noticed.
 *
 *   test_conv [--slow] [--seed N] [--shape N]     more shapes; other numbers; one shape only */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/memory.h"
#include "base/random.h"
#include "base/tree.h"
#include "conv_problem.h"
#include "kernel/conv_bf16.h"

static struct {
    bool slow;
    uint64_t seed;
    int shape; /* -1: all */
} options = {false, 1, -1};

/* ---- by kernels ---- */

/* Cache blocks to force; 0 leaves the planned ones. */
typedef struct variant {
    const char *name;
    int threads, block; /* the size of every block */
} variant;

static void force_pass(tutti_conv_pass *pass, int size)
{
    pass->blocks =
        (tutti_conv_blocks){.inputs = size, .tiles = size, .rows = size, .chunk = 1 + size / 2};
}

static void force_rounded(tutti_conv_bf16_pass *p, int size)
{
    p->chunk = size;
    p->parts = 1 + size / 2;
    if (p->rows > size) p->rows = size;
}

static void force_blocks(tutti_conv *conv, int size)
{
    if (!size) return;
    force_pass(&conv->forward, size);
    force_pass(&conv->backward, size);
    conv->caches.l2 = (size_t)size << 19; /* for Winograd's groups of features */
    conv->gradient.blocks =
        (tutti_conv_gradient_blocks){size, size, size, size == 1 ? 3 : size, 7 * size};
    if (size > 1) conv->gradient.blocks.cols = conv->out_w;
    if (!conv->bf16) return;
    force_rounded(&conv->bf16->forward, size);
    force_rounded(&conv->bf16->backward, size);
    conv->bf16->pixels = size;
}

static results computed(const problem *p, const tutti_kernels *row, tutti_team *team,
                        const variant *v)
{
    static const tutti_caches small = {1 << 12, 1 << 14, 1 << 12}; /* many blocks, streams */
    tutti_conv *conv = NULL;
    results r = results_new(p);
    assert_int_equal(tutti_conv_create(&conv, &p->shape, row, &small, p->n, v->threads), TUTTI_OK);
    force_blocks(conv, v->block);
    assert_int_equal(tutti_conv_weight_count(conv), p->w.count);
    assert_int_equal(tutti_conv_bias_count(conv), p->b.count);
    fenced scratch = fenced_create(tutti_round_up(tutti_conv_scratch(conv) / sizeof(float), 16));
    const tutti_grains grains = {p->grain_count, p->grain_begin};
    const tutti_task task = {.team = team, .scratch = scratch.data, .n = p->n, .grains = &grains};
    tutti_conv_forward(conv, &task, p->x.data, p->w.data, p->bias ? p->b.data : NULL, p->relu,
                       r.y.data);
    if (!p->shape.compact)
        tutti_conv_backward_data(conv, &task, p->dy.data, p->w.data, p->mask ? p->m.data : NULL,
                                 r.dx.data);
    tutti_conv_backward_weights(conv, &task, p->x.data, p->dy.data, r.dw.data, r.db.data);
    fenced_destroy(&scratch);
    tutti_conv_destroy(&conv);
    return r;
}

static void expect_equal(const problem *p, const char *what, const char *how, const fenced *got,
                         const fenced *want)
{
    for (size_t i = 0; i < got->count; i++)
        if (!(got->data[i] == want->data[i])) {
            print_shape(p);
            fail_msg("%s of %s: float %zu is %.9g, want %.9g", what, how, i, got->data[i],
                     want->data[i]);
        }
}

static tutti_team *teams[4];

static void check_variant(const problem *p, const tutti_kernels *row, const variant *v,
                          const results *want)
{
    char how[64];
    snprintf(how, sizeof how, "%s, %s", row->name, v->name);
    results got = computed(p, row, teams[v->threads], v);
    expect_equal(p, "y", how, &got.y, &want->y);
    if (!p->shape.compact) expect_equal(p, "dx", how, &got.dx, &want->dx);
    expect_equal(p, "dw", how, &got.dw, &want->dw);
    expect_equal(p, "db", how, &got.db, &want->db);
    results_free(&got);
}

static void check(int index, const tutti_conv_shape *shape, int n, int grains)
{
    static const variant variants[] = {
        {"1 thread", 1, 0},    {"2 threads", 2, 0},   {"3 threads", 3, 0},
        {"blocks of 1", 1, 1}, {"blocks of 2", 2, 2}, {"blocks of 5", 1, 5},
    };
    if (options.shape >= 0 && options.shape != index) return;
    problem p = problem_new(options.seed, index, shape, n, grains);
    results want = defined(&p);
    for (const tutti_kernels *const *row = tutti_kernel_table; *row; row++)
        for (size_t v = 0; v < sizeof variants / sizeof *variants; v++)
            if (tutti_kernels_run_here(*row) && (variants[v].threads < 3 || index % 5 == 0) &&
                !(*row == tutti_kernel_table[0] && index >= 5000 && v % 2))
                check_variant(&p, *row, &variants[v], &want);
    results_free(&want);
    problem_free(&p);
}

/* ---- shapes ---- */

#define EVEN(c, h, w, k, r, stride, pad)                                        \
    {                                                                           \
        c, h, w, k, r, r, stride, stride, 1, 1, pad, pad, pad, pad, 1, 0, 0, 0, \
    }

static void awkward_shapes_give_the_defined_bits(void **state)
{
    (void)state;
    static const tutti_conv_shape shapes[] = {
        EVEN(16, 14, 14, 32, 3, 1, 1), /* the common case: one tile across, clipped on both sides */
        EVEN(32, 5, 29, 48, 3, 1, 1),  /* three tiles across, odd number of feature blocks */
        EVEN(1, 1, 1, 1, 1, 1, 0),
        EVEN(17, 4, 15, 33, 1, 1, 0),
        EVEN(16, 13, 27, 16, 5, 1, 2),
        EVEN(16, 9, 16, 16, 7, 2, 3),
        EVEN(16, 23, 31, 32, 11, 4, 2),
        EVEN(16, 7, 9, 16, 3, 2, 1),
        EVEN(16, 8, 8, 16, 1, 2, 0), /* stride beyond the kernel: pixels of x nobody reads */
        EVEN(16, 10, 9, 16, 2, 3, 0),
        EVEN(16, 2, 2, 16, 5, 1, 2), /* kernel beyond the image */
        EVEN(16, 1, 3, 16, 7, 1, 3),
        EVEN(16, 3, 2, 16, 3, 1, 4), /* outputs that see padding only */
        EVEN(16, 3, 2, 16, 3, 4, 4),
        {16, 6, 7, 16, 3, 2, 1, 2, 1, 1, 0, 2, 1, 0, 1, 0, 0, 0}, /* asymmetric */
        {16, 6, 18, 16, 2, 4, 2, 1, 1, 1, 3, 0, 0, 3, 1, 0, 0, 0},
        {16, 9, 11, 16, 3, 3, 1, 1, 2, 3, 2, 2, 3, 3, 1, 0, 0, 0}, /* dilation */
        {16, 11, 12, 16, 3, 3, 2, 3, 2, 2, 1, 2, 2, 1, 1, 0, 0, 0},
        {16, 12, 13, 16, 3, 2, 4, 2, 2, 4, 1, 2, 2, 1, 1, 0, 0, 0},
        {64, 5, 6, 32, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1, 2, 0, 0, 0}, /* groups */
        {6, 5, 6, 9, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1, 3, 0, 0, 0},
        {8, 5, 6, 8, 3, 3, 2, 1, 1, 1, 1, 1, 1, 1, 8, 0, 0, 0},
        {32, 4, 5, 6, 1, 3, 1, 1, 1, 1, 0, 0, 1, 1, 2, 0, 0, 0},
        {48, 7, 9, 72, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1, 2, 0, 0, 0}, /* groups that share blocks */
        {40, 6, 5, 40, 3, 3, 2, 2, 1, 1, 1, 1, 1, 1, 5, 0, 0, 0},
        {12, 5, 6, 24, 3, 2, 1, 2, 1, 1, 1, 0, 1, 2, 12, 0, 0, 0},  /* two features a channel */
        {18, 9, 31, 18, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1, 18, 0, 0, 0}, /* depthwise */
        {32, 14, 14, 32, 3, 3, 2, 2, 1, 1, 1, 1, 1, 1, 32, 0, 0, 0},
        {16, 13, 29, 16, 5, 5, 1, 1, 1, 1, 2, 2, 2, 2, 16, 0, 0, 0},
        {48, 12, 11, 48, 5, 5, 2, 2, 1, 1, 2, 2, 2, 2, 48, 0, 0, 0},
        {16, 15, 16, 16, 7, 7, 1, 1, 1, 1, 3, 3, 3, 3, 16, 0, 0, 0},
        {16, 11, 10, 16, 2, 9, 3, 1, 2, 1, 0, 1, 4, 4, 16, 0, 0, 0},
        {20, 2, 3, 20, 5, 5, 1, 1, 1, 1, 2, 2, 2, 2, 20, 0, 0, 0}, /* kernel beyond the image */
        {16, 3, 2, 16, 3, 3, 4, 4, 1, 1, 4, 4, 4, 4, 16, 0, 0, 0},
        {22, 8, 17, 22, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1, 11, 0, 0, 0}, /* narrow groups */
        {64, 7, 15, 64, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1, 16, 0, 0, 0},
        {20, 9, 8, 20, 3, 5, 2, 1, 1, 2, 1, 0, 3, 2, 5, 0, 0, 0},
        {24, 10, 16, 24, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1, 3, 0, 0, 0},
        {48, 9, 9, 48, 3, 3, 2, 2, 1, 1, 1, 1, 1, 1, 6, 0, 0, 0},
        {32, 5, 6, 32, 1, 4, 1, 3, 1, 2, 0, 0, 1, 1, 4, 0, 0, 0},
        {3, 9, 17, 40, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0}, /* compact */
        {3, 27, 35, 33, 11, 11, 4, 4, 1, 1, 0, 0, 0, 0, 1, 1, 0, 0},
        {1, 12, 12, 20, 5, 5, 1, 1, 1, 1, 2, 2, 2, 2, 1, 1, 0, 0},
        {3, 15, 16, 64, 7, 7, 2, 2, 1, 1, 3, 3, 3, 3, 1, 1, 0, 0},
        {4, 9, 10, 16, 3, 3, 1, 1, 2, 2, 2, 1, 2, 1, 1, 1, 0, 0},
        {3, 2, 2, 16, 5, 5, 1, 2, 1, 1, 2, 3, 2, 2, 1, 1, 0, 0},
        {2, 4, 4, 4, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1, 2, 1, 0, 0},
    };
    for (int i = 0; i < (int)(sizeof shapes / sizeof *shapes); i++)
        check(i, &shapes[i], 1 + i % 4, i % 4 > 1 ? 1 + i % 3 : 1);
    check(1000, &shapes[0], 8, 8);
    for (int i = 23; i < 42; i += 8) check(1000 + i, &shapes[i], 7, 7);
}

static void rounded_sums_give_the_defined_bits(void **state)
{
    (void)state;
    static const tutti_conv_shape shapes[] = {
        EVEN(32, 6, 7, 64, 1, 1, 0),  /* pixels side by side */
        EVEN(48, 5, 15, 48, 1, 1, 0), /* half a block of terms, half a pair of panels */
        EVEN(16, 7, 7, 16, 1, 1, 0),
        EVEN(80, 3, 70, 32, 1, 1, 0), /* more pixels than go into one product */
        EVEN(64, 8, 9, 32, 1, 2, 0),  /* pixels that nobody reads */
        EVEN(32, 5, 6, 16, 1, 2, 1),
        EVEN(32, 9, 14, 48, 3, 2, 1),
        EVEN(16, 13, 27, 32, 5, 1, 2), /* rows and columns that see less of the image */
        EVEN(32, 9, 10, 16, 3, 1, 0),
        EVEN(16, 23, 31, 32, 11, 4, 2),
        EVEN(16, 10, 9, 16, 2, 3, 0),
        EVEN(16, 2, 2, 16, 5, 1, 2), /* kernel beyond the image */
        EVEN(16, 3, 2, 16, 3, 1, 4), /* outputs that see padding only */
        EVEN(16, 3, 2, 16, 3, 4, 4),
        {16, 6, 7, 16, 3, 2, 1, 2, 1, 1, 0, 2, 1, 0, 1, 0, 0, 0}, /* asymmetric */
        {16, 6, 18, 16, 2, 4, 2, 1, 1, 1, 3, 0, 0, 3, 1, 0, 0, 0},
        {16, 9, 11, 16, 3, 3, 1, 1, 2, 3, 2, 2, 3, 3, 1, 0, 0, 0}, /* dilation */
        {16, 11, 12, 32, 3, 3, 2, 3, 2, 2, 1, 2, 2, 1, 1, 0, 0, 0},
        {16, 12, 13, 16, 3, 2, 4, 2, 2, 4, 1, 2, 2, 1, 1, 0, 0, 0},
        {64, 5, 6, 96, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1, 2, 0, 0, 0}, /* groups */
        {96, 7, 6, 48, 3, 1, 2, 2, 1, 1, 1, 1, 0, 0, 3, 0, 0, 0},
        {64, 4, 5, 64, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 4, 0, 0, 0},
    };
    for (int i = 0; i < (int)(sizeof shapes / sizeof *shapes); i++) {
        tutti_conv_shape shape = shapes[i];
        shape.algorithm = TUTTI_CONV_DIRECT;
        shape.precision = TUTTI_IN_BF16;
        assert_true(tutti_conv_rounds(&shape));
        check(5000 + i, &shape, 1 + i % 4, i % 4 > 1 ? 1 + i % 3 : 1);
        if (i % 7 == 0) check(5100 + i, &shape, 7, 3);
    }
}

/* Winograd's. The sides of y are, and those of x: tiles of 4, and short ones, and 3 of 4. */
static void tiles_give_the_defined_bits(void **state)
{
    (void)state;
    static const tutti_conv_shape shapes[] = {
        EVEN(32, 6, 6, 32, 3, 1, 0), /* the smallest that takes it by itself */
        EVEN(16, 1, 1, 16, 3, 1, 1),
        EVEN(16, 5, 7, 16, 3, 1, 1),
        EVEN(40, 5, 6, 40, 3, 1, 2),
        EVEN(33, 2, 5, 18, 3, 1, 3),   /* the outermost see padding only */
        EVEN(16, 13, 21, 48, 3, 1, 1), /* several blocks of tiles and groups of features */
        EVEN(16, 14, 2, 48, 3, 1, 1),
        EVEN(17, 3, 30, 16, 3, 1, 1),
        EVEN(528, 4, 4, 16, 3, 1, 1), /* sums in two pieces */
        {33, 7, 6, 40, 3, 3, 1, 1, 1, 1, 0, 2, 2, 0, 1, 0, 0, 0},
    };
    for (int i = 0; i < (int)(sizeof shapes / sizeof *shapes); i++) {
        tutti_conv_shape shape = shapes[i];
        shape.algorithm = TUTTI_CONV_WINOGRAD_4X4;
        check(4000 + i, &shape, 1 + i % 2, 1 + i % 2);
        shape.algorithm = TUTTI_CONV_WINOGRAD_2X2;
        if (i % 2 == 0) check(4050 + i, &shape, 1 + i % 4, 1 + i % 2);
    }
    tutti_conv_shape shape = shapes[2];
    shape.algorithm = TUTTI_CONV_WINOGRAD_4X4;
    check(4100, &shape, 8, 8);
    check(4101, &shape, 7, 7);
}

static int draw(int index, int *at, int low, int high)
{
    const tutti_random_key key = {options.seed, TUTTI_RANDOM_AUGMENT, 0, (uint32_t)index, 0};
    return low + (int)tutti_random_below(&key, (uint64_t)(*at)++, (uint32_t)(high - low + 1));
}

static tutti_conv_shape random_shape(int index, int *at)
{
    tutti_conv_shape s = {.groups = 1};
    s.precision = draw(index, at, 0, 1) ? TUTTI_IN_BF16 : TUTTI_IN_FP32;
    s.compact = draw(index, at, 0, 3) == 0;
    s.c = s.compact ? draw(index, at, 1, 5) : draw(index, at, 1, 40);
    s.k = draw(index, at, 1, 50);
    if (!s.compact && s.precision == TUTTI_IN_BF16 && draw(index, at, 0, 3)) {
        s.c = 16 * draw(index, at, 1, 5);
        s.k = 16 * draw(index, at, 1, 5);
    }
    if (!s.compact && draw(index, at, 0, 5) == 0) {
        s.groups = draw(index, at, 2, 3);
        s.c = s.groups * (draw(index, at, 0, 1) ? 16 : draw(index, at, 1, 20));
        s.k = s.groups * (draw(index, at, 0, 1) ? 16 : draw(index, at, 1, 20));
    }
    if (!s.compact && draw(index, at, 0, 3) == 0) {
        const int channels = 1 << draw(index, at, 0, 3);
        s.groups = draw(index, at, 2, 36 / channels);
        s.c = s.k = s.groups * channels;
    }
    s.h = draw(index, at, 1, 12);
    s.w = draw(index, at, 1, 33);
    s.r = draw(index, at, 1, 5);
    s.s = draw(index, at, 1, 6);
    s.stride_h = draw(index, at, 1, 3);
    s.stride_w = draw(index, at, 1, 4);
    s.dilation_h = draw(index, at, 0, 3) ? 1 : draw(index, at, 1, 3);
    s.dilation_w = draw(index, at, 0, 3) ? 1 : draw(index, at, 1, 3);
    s.pad_top = draw(index, at, 0, 3);
    s.pad_bottom = draw(index, at, 0, 3);
    s.pad_left = draw(index, at, 0, 4);
    s.pad_right = draw(index, at, 0, 4);
    return s;
}

static void random_shapes_give_the_defined_bits(void **state)
{
    (void)state;
    const int count = options.slow ? 300 : 40;
    for (int i = 2000; i < 2000 + count; i++) {
        int at = 0;
        const tutti_conv_shape shape = random_shape(i, &at);
        const int n = draw(i, &at, 1, 4);
        if (tutti_conv_out_h(&shape) > 0 && tutti_conv_out_w(&shape) > 0)
            check(i, &shape, n, draw(i, &at, 1, n));
    }
}

/* ---- the definition's gradients ---- */

/* sum of dy * y, in double: its derivatives are what the backward passes compute. */
static double loss(const problem *p)
{
    double sum = 0;
    for (int n = 0; n < p->n; n++)
        for (int k = 0; k < p->shape.k; k++)
            for (int i = 0; i < p->out_h * p->out_w; i++) {
                const int h = i / p->out_w, w = i % p->out_w;
                sum += tutti_ref_conv_y(&p->shape, p->x.data, p->w.data, n, k, h, w).exact *
                       p->dy.data[tutti_ref_y_at(&p->shape, n, k, h, w)];
            }
    return sum;
}

/* The loss is linear in each variable, so a difference over any distance is the derivative. */
static double slope(const problem *p, float *variable)
{
    const float at = *variable;
    *variable = at + 1.0f;
    const double above = loss(p);
    const double step = (double)*variable;
    *variable = at - 1.0f;
    const double below = loss(p), distance = step - (double)*variable;
    *variable = at;
    return (above - below) / distance;
}

static void the_definition_is_the_derivative(void **state)
{
    (void)state;
    static const tutti_conv_shape shape = {4, 5, 6, 6, 3, 2, 2, 1, 1, 2, 1, 0, 1, 2, 2, 0, 0, 0};
    problem p = problem_new(options.seed, 3000, &shape, 2, 1);
    for (int n = 0; n < p.n; n++)
        for (int c = 0; c < shape.c; c++)
            for (int i = 0; i < shape.h * shape.w; i++) {
                const int h = i / shape.w, w = i % shape.w;
                const double want = slope(&p, &p.x.data[tutti_ref_x_at(&shape, n, c, h, w)]);
                const double got = tutti_ref_conv_dx(&shape, p.dy.data, p.w.data, n, c, h, w).exact;
                assert_true(fabs(got - want) < 1e-12 * (1 + fabs(want)));
            }
    for (int k = 0; k < shape.k; k++)
        for (int c = 0; c < shape.c / shape.groups; c++)
            for (int i = 0; i < shape.r * shape.s; i++) {
                const int r = i / shape.s, s = i % shape.s;
                const double want = slope(&p, &p.w.data[tutti_ref_w_at(&shape, k, c, r, s)]);
                const double got =
                    tutti_ref_conv_dw(&shape, p.x.data, p.dy.data, 0, p.n, k, c, r, s).exact;
                assert_true(fabs(got - want) < 1e-12 * (1 + fabs(want)));
            }
    problem_free(&p);
}

static int make_teams(void **state)
{
    (void)state;
    for (int threads = 1; threads <= 3; threads++)
        if (tutti_team_create(&teams[threads], threads) != TUTTI_OK) return -1;
    return 0;
}

static int drop_teams(void **state)
{
    (void)state;
    for (int threads = 1; threads <= 3; threads++) tutti_team_destroy(&teams[threads]);
    return 0;
}

int main(int argc, char **argv)
{
    for (int i = 1; i < argc; i++)
        if (!strcmp(argv[i], "--slow")) options.slow = true;
        else if (!strcmp(argv[i], "--seed") && i + 1 < argc)
            options.seed = strtoull(argv[++i], NULL, 10);
        else if (!strcmp(argv[i], "--shape") && i + 1 < argc) options.shape = atoi(argv[++i]);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_definition_is_the_derivative),
        cmocka_unit_test(awkward_shapes_give_the_defined_bits),
        cmocka_unit_test(rounded_sums_give_the_defined_bits),
        cmocka_unit_test(tiles_give_the_defined_bits),
        cmocka_unit_test(random_shapes_give_the_defined_bits),
    };
    return cmocka_run_group_tests(tests, make_teams, drop_teams);
}
