/* One problem of a fully connected layer: inputs, and what the definition makes of them. */
#ifndef TUTTI_TESTS_FC_PROBLEM_H
#define TUTTI_TESTS_FC_PROBLEM_H

#include <stdint.h>

#include "base/memory.h"
#include "base/tree.h"
#include "fenced.h"
#include "kernel/ref_fc.h"

#define COUNT(array) (int)(sizeof(array) / sizeof *(array))

typedef struct shape {
    int in, out;
} shape;

static int filled(int count)
{
    return (int)tutti_round_up((size_t)count, TUTTI_BLOCK);
}

typedef struct problem {
    int n, in, out; /* in, out: filled up */
    int features;
    int begin[TUTTI_TREE_MAX_ROOTS];
    tutti_grains grains;
    fenced x, w, bias, dy, mask;
    fenced y, dx, dw, db; /* as defined */
} problem;

static uint32_t next(uint32_t *state)
{
    *state = *state * 1664525u + 1013904223u;
    return *state >> 8;
}

/* Mostly numbers in [-1, 1), some zeros of either sign; zero where it only fills up. */
static fenced random_rows(uint32_t *state, int rows, int columns, int valid)
{
    fenced f = fenced_create((size_t)rows * columns);
    for (size_t i = 0; i < f.count; i++) {
        const float value = (float)next(state) / (float)(1 << 23) - 1.0f;
        const int special = next(state) % 16;
        f.data[i] = (int)(i % (size_t)columns) >= valid ? 0.0f
                    : special == 0                      ? 0.0f
                    : special == 1                      ? -0.0f
                                                        : value;
    }
    return f;
}

static fenced random_weights(uint32_t *state, int in, int in_valid, int out, int out_valid)
{
    fenced f = random_rows(state, in * out / TUTTI_BLOCK, TUTTI_BLOCK, TUTTI_BLOCK);
    for (size_t at = 0; at < f.count; at++) {
        const int i = (int)(at / TUTTI_BLOCK) % in;
        const int o = (int)(at / TUTTI_BLOCK) / in * TUTTI_BLOCK + (int)(at % TUTTI_BLOCK);
        if (i >= in_valid || o >= out_valid) f.data[at] = 0.0f;
    }
    return f;
}

typedef struct definition {
    void (*forward)(int n, int in, int out, const float *x, const float *w, const float *bias,
                    bool relu, float *y);
    void (*backward_data)(int n, int in, int out, const float *dy, const float *w,
                          const float *mask, float *dx);
    void (*backward_weights)(const tutti_grains *grains, int in, int out, const float *x,
                             const float *dy, float *dw, float *db);
} definition;

static const definition definitions[] = {
    [TUTTI_IN_FP32] = {tutti_ref_fc_forward, tutti_ref_fc_backward_data,
                       tutti_ref_fc_backward_weights},
    [TUTTI_IN_BF16] = {tutti_ref_fc_bf16_forward, tutti_ref_fc_bf16_backward_data,
                       tutti_ref_fc_bf16_backward_weights},
};
static const definition *defined = &definitions[PRECISION];

static void define(problem *p)
{
    defined->forward(p->n, p->in, p->out, p->x.data, p->w.data, p->bias.data, true, p->y.data);
    defined->backward_data(p->n, p->in, p->out, p->dy.data, p->w.data, p->mask.data, p->dx.data);
    defined->backward_weights(&p->grains, p->in, p->out, p->x.data, p->dy.data, p->dw.data,
                              p->db.data);
}

static problem problem_create(shape s, int n, int grains)
{
    uint32_t state = (uint32_t)(s.in * 131 + s.out * 17 + n);
    problem p = {.n = n, .in = filled(s.in), .out = filled(s.out), .features = s.out};
    for (int g = 0; g <= grains; g++) p.begin[g] = tutti_share_begin(n, grains, g);
    p.x = random_rows(&state, n, p.in, s.in);
    p.w = random_weights(&state, p.in, s.in, p.out, s.out);
    p.bias = random_rows(&state, 1, p.out, s.out);
    p.dy = random_rows(&state, n, p.out, s.out);
    p.mask = random_rows(&state, n, p.in, s.in);
    p.y = fenced_create(p.dy.count);
    p.dx = fenced_create(p.x.count);
    p.dw = fenced_create(p.w.count);
    p.db = fenced_create(p.bias.count);
    p.grains.count = grains;
    return p;
}

static void problem_destroy(problem *p)
{
    fenced *const all[] = {&p->x, &p->w, &p->bias, &p->dy, &p->mask, &p->y, &p->dx, &p->dw, &p->db};
    for (int i = 0; i < COUNT(all); i++) fenced_destroy(all[i]);
}

#endif
