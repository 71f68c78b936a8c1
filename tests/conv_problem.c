#include "conv_problem.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <float.h>
#include <string.h>
#include <cmocka.h>

#include "base/memory.h"
#include "base/random.h"
#include "base/tree.h"
#include "kernel/conv_plan.h"
#include "kernel/ref_bf16.h"

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
    const bool compact = tutti_conv_has_compact_weights(&p->shape);
    return padded(p->shape.k) * (compact ? c : padded((int)c)) * (size_t)p->shape.r *
           (size_t)p->shape.s;
}

static float number(const problem *p, uint32_t which, uint64_t at)
{
    const tutti_random_key key = {p->seed, TUTTI_RANDOM_SYNTHETIC, which, (uint32_t)p->index, 0};
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

problem problem_new(uint64_t seed, int index, const tutti_conv_shape *shape, int n, int grains)
{
    problem p = {.seed = seed, .index = index, .shape = *shape, .n = n, .grain_count = grains};
    p.out_h = tutti_conv_out_h(shape);
    p.out_w = tutti_conv_out_w(shape);
    p.bias = index % 3 != 0;
    p.relu = index % 2 != 0;
    p.mask = index % 3 != 1;
    for (int i = 0; i <= grains; i++) p.grain_begin[i] = tutti_share_begin(n, grains, i);
    p.x = fenced_create(x_count(&p));
    p.m = fenced_create(x_count(&p));
    p.dy = fenced_create(y_count(&p));
    p.w = fenced_create(w_count(&p));
    p.b = fenced_create(padded(shape->k));
    fill_images(&p, &p.x, true, 0);
    fill_images(&p, &p.m, true, 3);
    fill_images(&p, &p.dy, false, 4);
    fill_weights(&p);
    return p;
}

void problem_free(problem *p)
{
    fenced_destroy(&p->x);
    fenced_destroy(&p->m);
    fenced_destroy(&p->dy);
    fenced_destroy(&p->w);
    fenced_destroy(&p->b);
}

results results_new(const problem *p)
{
    return (results){
        .y = fenced_create(y_count(p)),
        .dx = fenced_create(x_count(p)),
        .dw = fenced_create(w_count(p)),
        .db = fenced_create(padded(p->shape.k)),
    };
}

void results_free(results *r)
{
    fenced_destroy(&r->y);
    fenced_destroy(&r->dx);
    fenced_destroy(&r->dw);
    fenced_destroy(&r->db);
}

void print_shape(const problem *p)
{
    const tutti_conv_shape *s = &p->shape;
    print_error(
        "shape %d (--seed %llu --shape %d): n=%d c=%d %dx%d k=%d %dx%d stride %d,%d dilation "
        "%d,%d pad %d,%d,%d,%d groups %d%s %s grains %d\n",
        p->index, (unsigned long long)p->seed, p->index, p->n, s->c, s->h, s->w, s->k, s->r, s->s,
        s->stride_h, s->stride_w, s->dilation_h, s->dilation_w, s->pad_top, s->pad_bottom,
        s->pad_left, s->pad_right, s->groups, s->compact ? " compact" : "",
        tutti_conv_rounds(s) ? "bf16" : tutti_conv_algorithm_words[tutti_conv_takes(s)],
        p->grain_count);
}

/* ---- by definition ---- */

/* One element by each algorithm. */
static const struct definition {
    tutti_ref_sum (*y)(const tutti_conv_shape *shape, const float *x, const float *weights, int n,
                       int k, int h, int w);
    tutti_ref_sum (*dx)(const tutti_conv_shape *shape, const float *dy, const float *weights, int n,
                        int c, int h, int w);
    tutti_ref_sum (*dw)(const tutti_conv_shape *shape, const float *x, const float *dy, int begin,
                        int end, int k, int c, int r, int s);
} definitions[] = {
    [TUTTI_CONV_DIRECT] = {tutti_ref_conv_y, tutti_ref_conv_dx, tutti_ref_conv_dw},
    [TUTTI_CONV_WINOGRAD_2X2] = {tutti_ref_winograd_y, tutti_ref_winograd_dx,
                                 tutti_ref_winograd_dw},
    [TUTTI_CONV_WINOGRAD_4X4] = {tutti_ref_winograd4_y, tutti_ref_winograd4_dx,
                                 tutti_ref_winograd4_dw},
};

static const struct definition rounded = {tutti_ref_conv_bf16_y, tutti_ref_conv_bf16_dx,
                                          tutti_ref_conv_bf16_dw};

static const struct definition *definition_of(const problem *p)
{
    return tutti_conv_rounds(&p->shape) ? &rounded : &definitions[tutti_conv_takes(&p->shape)];
}

static void expect_bound(const problem *p, const char *what, tutti_ref_sum sum)
{
    const double bound = (double)(sum.terms + 1) * (FLT_EPSILON / 2) * sum.magnitude;
    if (fabs(sum.chain - sum.exact) <= bound) return;
    print_shape(p);
    fail_msg("%s: the chain gives %.9g, double %.17g", what, sum.chain, sum.exact);
}

static void define_y(const problem *p, fenced *y)
{
    const struct definition *is = definition_of(p);
    memset(y->data, 0, y->count * sizeof(float));
    for (int n = 0; n < p->n; n++)
        for (int k = 0; k < p->shape.k; k++)
            for (int i = 0; i < p->out_h * p->out_w; i++) {
                const int h = i / p->out_w, w = i % p->out_w;
                const tutti_ref_sum sum = is->y(&p->shape, p->x.data, p->w.data, n, k, h, w);
                expect_bound(p, "y", sum);
                float v = sum.chain;
                if (p->bias)
                    v = tutti_conv_rounds(&p->shape) ? tutti_ref_bf16_add(v, p->b.data[k])
                                                     : v + p->b.data[k];
                if (p->relu && v < 0.0f) v = 0.0f;
                y->data[tutti_ref_y_at(&p->shape, n, k, h, w)] = v;
            }
}

static void define_dx(const problem *p, fenced *dx)
{
    const struct definition *is = definition_of(p);
    memset(dx->data, 0, dx->count * sizeof(float));
    for (int n = 0; n < p->n && !p->shape.compact; n++)
        for (int c = 0; c < p->shape.c; c++)
            for (int i = 0; i < p->shape.h * p->shape.w; i++) {
                const int h = i / p->shape.w, w = i % p->shape.w;
                const size_t at = tutti_ref_x_at(&p->shape, n, c, h, w);
                const tutti_ref_sum sum = is->dx(&p->shape, p->dy.data, p->w.data, n, c, h, w);
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
    const struct definition *is = definition_of(p);
    for (int k = 0; k < p->shape.k; k++) {
        for (int c = 0; c < p->shape.c / p->shape.groups; c++)
            for (int i = 0; i < p->shape.r * p->shape.s; i++) {
                const int r = i / p->shape.s, s = i % p->shape.s;
                for (int g = 0; g < p->grain_count; g++) {
                    const tutti_ref_sum sum =
                        is->dw(&p->shape, p->x.data, p->dy.data, p->grain_begin[g],
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

results defined(const problem *p)
{
    results r = results_new(p);
    define_y(p, &r.y);
    define_dx(p, &r.dx);
    define_dw(p, &r.dw, &r.db);
    return r;
}
