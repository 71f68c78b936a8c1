/* Convolution: every row of the kernel table, every number of threads and every size of cache
 * blocks gives exactly the bits of the definition, which is itself within a derived bound of the
 * sum in double. Arrays end at an unmapped page and outputs start as NaN, so that reading or
 * writing too much and writing too little are noticed.
 *
 *   test_conv [--slow] [--seed N] [--shape N]     more shapes; other numbers; one shape only */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/memory.h"
#include "base/random.h"
#include "base/tree.h"
#include "kernel/conv_plan.h"
#include "kernel/ref_conv.h"

static struct {
    bool slow;
    uint64_t seed;
    int shape; /* -1: all */
} options = {false, 1, -1};

/* ---- memory that ends at an unmapped page ---- */

typedef struct fenced {
    char *map;
    size_t bytes;
    float *data;
    size_t count;
} fenced;

static fenced fenced_new(size_t count)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    fenced f = {.bytes = tutti_round_up(count * sizeof(float) + 1, page) + page, .count = count};
    f.map = mmap(NULL, f.bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(f.map != MAP_FAILED);
    assert_int_equal(mprotect(f.map + f.bytes - page, page, PROT_NONE), 0);
    f.data = (float *)(void *)(f.map + f.bytes - page) - count;
    for (float *p = (float *)(void *)f.map; p < f.data + count; p++) *p = NAN;
    return f;
}

static void fenced_free(fenced *f)
{
    for (float *p = (float *)(void *)f->map; p < f->data; p++) assert_true(isnan(*p));
    munmap(f->map, f->bytes);
}

/* ---- a problem: a shape and its data ---- */

typedef struct problem {
    int index;
    tutti_conv_shape shape;
    int n, out_h, out_w, grain_count;
    int grain_begin[9];
    bool relu, bias, mask;
    fenced x, w, b, dy, m;
} problem;

/* What the passes compute. */
typedef struct results {
    fenced y, dx, dw, db;
} results;

static size_t padded(int channels)
{
    return tutti_round_up((size_t)channels, TUTTI_BLOCK);
}

static size_t x_count(const problem *p)
{
    const size_t c = p->shape.compact ? (size_t)p->shape.c : padded(p->shape.c);
    return (size_t)p->n * c * (size_t)p->shape.h * (size_t)p->shape.w;
}

static size_t y_count(const problem *p)
{
    return (size_t)p->n * padded(p->shape.k) * (size_t)p->out_h * (size_t)p->out_w;
}

static size_t w_count(const problem *p)
{
    const size_t c = (size_t)(p->shape.c / p->shape.groups);
    return padded(p->shape.k) * (p->shape.compact ? c : padded((int)c)) * (size_t)p->shape.r *
           (size_t)p->shape.s;
}

static float number(const problem *p, uint32_t which, uint64_t at)
{
    const tutti_random_key key = {options.seed, TUTTI_RANDOM_SYNTHETIC, which, (uint32_t)p->index,
                                  0};
    return (float)(tutti_random_uniform(&key, at) * 2.0 - 1.0);
}

/* Channels that exist get numbers, those that only fill up a block get zeros. */
static void fill_images(const problem *p, fenced *out, bool is_x, uint32_t which)
{
    const int channels = is_x ? p->shape.c : p->shape.k;
    const int h = is_x ? p->shape.h : p->out_h, w = is_x ? p->shape.w : p->out_w;
    memset(out->data, 0, out->count * sizeof(float));
    uint64_t at = 0;
    for (int n = 0; n < p->n; n++)
        for (int c = 0; c < channels; c++)
            for (int i = 0; i < h * w; i++) {
                const size_t to = is_x ? tutti_ref_x_at(&p->shape, n, c, i / w, i % w)
                                       : tutti_ref_y_at(&p->shape, n, c, i / w, i % w);
                out->data[to] = number(p, which, at++);
            }
}

static void fill_weights(const problem *p)
{
    memset(p->w.data, 0, p->w.count * sizeof(float));
    memset(p->b.data, 0, p->b.count * sizeof(float));
    uint64_t at = 0;
    for (int k = 0; k < p->shape.k; k++) {
        p->b.data[k] = number(p, 2, (uint64_t)k);
        for (int c = 0; c < p->shape.c / p->shape.groups; c++)
            for (int i = 0; i < p->shape.r * p->shape.s; i++)
                p->w.data[tutti_ref_w_at(&p->shape, k, c, i / p->shape.s, i % p->shape.s)] =
                    number(p, 1, at++);
    }
}

static problem problem_new(int index, const tutti_conv_shape *shape, int n, int grains)
{
    problem p = {.index = index, .shape = *shape, .n = n, .grain_count = grains};
    p.out_h = tutti_conv_out_h(shape);
    p.out_w = tutti_conv_out_w(shape);
    p.bias = index % 3 != 0;
    p.relu = index % 2 != 0;
    p.mask = index % 3 != 1;
    for (int i = 0; i <= grains; i++) p.grain_begin[i] = tutti_share_begin(n, grains, i);
    p.x = fenced_new(x_count(&p));
    p.m = fenced_new(x_count(&p));
    p.dy = fenced_new(y_count(&p));
    p.w = fenced_new(w_count(&p));
    p.b = fenced_new(padded(shape->k));
    fill_images(&p, &p.x, true, 0);
    fill_images(&p, &p.m, true, 3);
    fill_images(&p, &p.dy, false, 4);
    fill_weights(&p);
    return p;
}

static void problem_free(problem *p)
{
    fenced_free(&p->x);
    fenced_free(&p->m);
    fenced_free(&p->dy);
    fenced_free(&p->w);
    fenced_free(&p->b);
}

static results results_new(const problem *p)
{
    return (results){
        .y = fenced_new(y_count(p)),
        .dx = fenced_new(x_count(p)),
        .dw = fenced_new(w_count(p)),
        .db = fenced_new(padded(p->shape.k)),
    };
}

static void results_free(results *r)
{
    fenced_free(&r->y);
    fenced_free(&r->dx);
    fenced_free(&r->dw);
    fenced_free(&r->db);
}

static void print_shape(const problem *p)
{
    const tutti_conv_shape *s = &p->shape;
    print_error(
        "shape %d (--seed %llu --shape %d): n=%d c=%d %dx%d k=%d %dx%d stride %d,%d dilation "
        "%d,%d pad %d,%d,%d,%d groups %d%s grains %d\n",
        p->index, (unsigned long long)options.seed, p->index, p->n, s->c, s->h, s->w, s->k, s->r,
        s->s, s->stride_h, s->stride_w, s->dilation_h, s->dilation_w, s->pad_top, s->pad_bottom,
        s->pad_left, s->pad_right, s->groups, s->compact ? " compact" : "", p->grain_count);
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

/* ---- by definition ---- */

static void expect_bound(const problem *p, const char *what, tutti_ref_sum sum)
{
    const double bound = (double)(sum.terms + 1) * (FLT_EPSILON / 2) * sum.magnitude;
    if (fabs(sum.chain - sum.exact) <= bound) return;
    print_shape(p);
    fail_msg("%s: the chain gives %.9g, double %.17g", what, sum.chain, sum.exact);
}

static void define_y(const problem *p, fenced *y)
{
    const bool is_winograd = tutti_winograd_applies(&p->shape);
    memset(y->data, 0, y->count * sizeof(float));
    for (int n = 0; n < p->n; n++)
        for (int k = 0; k < p->shape.k; k++)
            for (int i = 0; i < p->out_h * p->out_w; i++) {
                const int h = i / p->out_w, w = i % p->out_w;
                const tutti_ref_sum sum = (is_winograd ? tutti_ref_winograd_y : tutti_ref_conv_y)(
                    &p->shape, p->x.data, p->w.data, n, k, h, w);
                expect_bound(p, "y", sum);
                float v = sum.chain;
                if (p->bias) v += p->b.data[k];
                if (p->relu && v < 0.0f) v = 0.0f;
                y->data[tutti_ref_y_at(&p->shape, n, k, h, w)] = v;
            }
}

static void define_dx(const problem *p, fenced *dx)
{
    const bool is_winograd = tutti_winograd_applies(&p->shape);
    memset(dx->data, 0, dx->count * sizeof(float));
    for (int n = 0; n < p->n && !p->shape.compact; n++)
        for (int c = 0; c < p->shape.c; c++)
            for (int i = 0; i < p->shape.h * p->shape.w; i++) {
                const int h = i / p->shape.w, w = i % p->shape.w;
                const size_t at = tutti_ref_x_at(&p->shape, n, c, h, w);
                const tutti_ref_sum sum = (is_winograd ? tutti_ref_winograd_dx : tutti_ref_conv_dx)(
                    &p->shape, p->dy.data, p->w.data, n, c, h, w);
                expect_bound(p, "dx", sum);
                dx->data[at] = p->mask && p->m.data[at] <= 0.0f ? 0.0f : sum.chain;
            }
}

/* The tree over grains as base/tree.h states it. */
static float tree_sum(float *grain, int count)
{
    for (; count > 1; count = (count + 1) / 2)
        for (int i = 0; i < (count + 1) / 2; i++)
            grain[i] = 2 * i + 1 < count ? grain[2 * i] + grain[2 * i + 1] : grain[2 * i];
    return grain[0];
}

static void define_dw(const problem *p, fenced *dw, fenced *db)
{
    float grain[8];
    memset(dw->data, 0, dw->count * sizeof(float));
    memset(db->data, 0, db->count * sizeof(float));
    const bool is_winograd = tutti_winograd_applies(&p->shape);
    for (int k = 0; k < p->shape.k; k++) {
        for (int c = 0; c < p->shape.c / p->shape.groups; c++)
            for (int i = 0; i < p->shape.r * p->shape.s; i++) {
                const int r = i / p->shape.s, s = i % p->shape.s;
                for (int g = 0; g < p->grain_count; g++) {
                    const tutti_ref_sum sum =
                        (is_winograd ? tutti_ref_winograd_dw : tutti_ref_conv_dw)(
                            &p->shape, p->x.data, p->dy.data, p->grain_begin[g],
                            p->grain_begin[g + 1], k, c, r, s);
                    expect_bound(p, "dw", sum);
                    grain[g] = sum.chain;
                }
                dw->data[tutti_ref_w_at(&p->shape, k, c, r, s)] = tree_sum(grain, p->grain_count);
            }
        for (int g = 0; g < p->grain_count; g++)
            grain[g] = tutti_ref_conv_db(&p->shape, p->dy.data, p->grain_begin[g],
                                         p->grain_begin[g + 1], k)
                           .chain;
        db->data[k] = tree_sum(grain, p->grain_count);
    }
}

static results defined(const problem *p)
{
    results r = results_new(p);
    define_y(p, &r.y);
    define_dx(p, &r.dx);
    define_dw(p, &r.dw, &r.db);
    return r;
}

/* ---- by kernels ---- */

/* Cache blocks to force; 0 leaves the planned ones. */
typedef struct variant {
    const char *name;
    int threads, block; /* the size of every block */
} variant;

static void force_pass(tutti_conv_pass *pass, int size)
{
    pass->blocks = (tutti_conv_blocks){.inputs = size, .tiles = size, .rows = size};
}

static void force_blocks(tutti_conv *conv, int size)
{
    if (!size) return;
    force_pass(&conv->forward, size);
    force_pass(&conv->backward, size);
    conv->caches.l2 = (size_t)size << 19; /* for Winograd's groups of features */
    conv->gradient.blocks = (tutti_conv_gradient_blocks){size, size, size, size == 1 ? 3 : size};
    if (size > 1) conv->gradient.blocks.cols = conv->out_w;
}

static results computed(const problem *p, const tutti_kernels *row, tutti_team *team,
                        const variant *v)
{
    static const tutti_caches small = {1 << 12, 1 << 14, 1 << 12}; /* many blocks, streams */
    tutti_conv *conv = NULL;
    results r = results_new(p);
    assert_int_equal(tutti_conv_create(&conv, &p->shape, row, &small, p->n, v->threads), TUTTI_OK);
    force_blocks(conv, v->block);
    assert_int_equal(tutti_conv_weight_count(conv), w_count(p));
    assert_int_equal(tutti_conv_bias_count(conv), padded(p->shape.k));
    fenced scratch = fenced_new(tutti_round_up(tutti_conv_scratch(conv) / sizeof(float), 16));
    const tutti_grains grains = {p->grain_count, p->grain_begin};
    const tutti_task task = {.team = team, .scratch = scratch.data, .n = p->n, .grains = &grains};
    tutti_conv_forward(conv, &task, p->x.data, p->w.data, p->bias ? p->b.data : NULL, p->relu,
                       r.y.data);
    if (!p->shape.compact)
        tutti_conv_backward_data(conv, &task, p->dy.data, p->w.data, p->mask ? p->m.data : NULL,
                                 r.dx.data);
    tutti_conv_backward_weights(conv, &task, p->x.data, p->dy.data, r.dw.data, r.db.data);
    fenced_free(&scratch);
    tutti_conv_destroy(&conv);
    return r;
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
    problem p = problem_new(index, shape, n, grains);
    results want = defined(&p);
    for (const tutti_kernels *const *row = tutti_kernel_table; *row; row++)
        for (size_t v = 0; v < sizeof variants / sizeof *variants; v++)
            if (tutti_kernels_run_here(*row) && (variants[v].threads < 3 || index % 5 == 0))
                check_variant(&p, *row, &variants[v], &want);
    results_free(&want);
    problem_free(&p);
}

/* ---- shapes ---- */

#define EVEN(c, h, w, k, r, stride, pad)                                  \
    {                                                                     \
        c, h, w, k, r, r, stride, stride, 1, 1, pad, pad, pad, pad, 1, 0, \
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
        {16, 6, 7, 16, 3, 2, 1, 2, 1, 1, 0, 2, 1, 0, 1, 0}, /* asymmetric */
        {16, 6, 18, 16, 2, 4, 2, 1, 1, 1, 3, 0, 0, 3, 1, 0},
        {16, 9, 11, 16, 3, 3, 1, 1, 2, 3, 2, 2, 3, 3, 1, 0}, /* dilation */
        {16, 11, 12, 16, 3, 3, 2, 3, 2, 2, 1, 2, 2, 1, 1, 0},
        {16, 12, 13, 16, 3, 2, 4, 2, 2, 4, 1, 2, 2, 1, 1, 0},
        {64, 5, 6, 32, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1, 2, 0}, /* groups */
        {6, 5, 6, 9, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1, 3, 0},
        {8, 5, 6, 8, 3, 3, 2, 1, 1, 1, 1, 1, 1, 1, 8, 0},
        {32, 4, 5, 6, 1, 3, 1, 1, 1, 1, 0, 0, 1, 1, 2, 0},
        {3, 9, 17, 40, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}, /* compact */
        {3, 27, 35, 33, 11, 11, 4, 4, 1, 1, 0, 0, 0, 0, 1, 1},
        {1, 12, 12, 20, 5, 5, 1, 1, 1, 1, 2, 2, 2, 2, 1, 1},
        {3, 15, 16, 64, 7, 7, 2, 2, 1, 1, 3, 3, 3, 3, 1, 1},
        {4, 9, 10, 16, 3, 3, 1, 1, 2, 2, 2, 1, 2, 1, 1, 1},
        {3, 2, 2, 16, 5, 5, 1, 2, 1, 1, 2, 3, 2, 2, 1, 1},
        {2, 4, 4, 4, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1, 2, 1},
        EVEN(32, 6, 6, 32, 3, 1, 0), /* Winograd's: the smallest */
        EVEN(40, 7, 8, 72, 3, 1, 2),
        EVEN(33, 5, 5, 34, 3, 1, 3),   /* the outermost see padding only */
        EVEN(32, 15, 21, 64, 3, 1, 1), /* several blocks of tiles and groups of features */
        EVEN(528, 4, 4, 32, 3, 1, 1),  /* sums in two pieces */
        {33, 7, 6, 40, 3, 3, 1, 1, 1, 1, 0, 2, 2, 0, 1, 0},
    };
    for (int i = 0; i < (int)(sizeof shapes / sizeof *shapes); i++)
        check(i, &shapes[i], 1 + i % 4, i % 4 > 1 ? 1 + i % 3 : 1);
    check(1000, &shapes[0], 8, 8);
    check(1001, &shapes[23], 7, 7);
}

static int draw(int index, int *at, int low, int high)
{
    const tutti_random_key key = {options.seed, TUTTI_RANDOM_AUGMENT, 0, (uint32_t)index, 0};
    return low + (int)tutti_random_below(&key, (uint64_t)(*at)++, (uint32_t)(high - low + 1));
}

static tutti_conv_shape random_shape(int index, int *at)
{
    tutti_conv_shape s = {.groups = 1};
    s.compact = draw(index, at, 0, 3) == 0;
    s.c = s.compact ? draw(index, at, 1, 5) : draw(index, at, 1, 40);
    s.k = draw(index, at, 1, 50);
    if (!s.compact && draw(index, at, 0, 5) == 0) {
        s.groups = draw(index, at, 2, 3);
        s.c = s.groups * (draw(index, at, 0, 1) ? 16 : draw(index, at, 1, 8));
        s.k = s.groups * (draw(index, at, 0, 1) ? 16 : draw(index, at, 1, 8));
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
    static const tutti_conv_shape shape = {4, 5, 6, 6, 3, 2, 2, 1, 1, 2, 1, 0, 1, 2, 2, 0};
    problem p = problem_new(3000, &shape, 2, 1);
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
        cmocka_unit_test(random_shapes_give_the_defined_bits),
    };
    return cmocka_run_group_tests(tests, make_teams, drop_teams);
}
