/* Fully connected layers: every instruction set, number of threads, cache size and split over ranks
 * gives the bits of the definition, which is within its bound of the exact sums. Compiled for each
 * PRECISION. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <float.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/memory.h"
#include "base/tree.h"
#include "fc_problem.h"
#include "kernel/fc.h"
#include "kernel/ref_bf16.h"
#include "kernel/ref_fc.h"

/* Three threads on fewer cores are slow, so only some tests use them. */
enum { THREADS = 2, MAX_THREADS = 3 };

/* Around the widths of blocks, panels, leaves and pieces of the chain. */
static const shape shapes[] = {{1, 1},   {15, 17},   {16, 16},   {17, 63},  {33, 64}, {47, 65},
                               {64, 15}, {100, 130}, {257, 100}, {530, 31}, {48, 330}};
static const int samples[] = {0, 1, 2, 5, 8, 9, 15, 16, 17, 31, 33, 49, 70};

static const tutti_caches usual = {32 << 10, 1 << 20, 32 << 20};

/* ---- the same by a row of the table ---- */

static bool same_bits(float a, float b)
{
    uint32_t u, v;
    memcpy(&u, &a, sizeof u);
    memcpy(&v, &b, sizeof v);
    return u == v || (isnan(a) && isnan(b));
}

static void assert_same(const char *what, const problem *p, const char *row, int threads,
                        const fenced *got, const fenced *want)
{
    for (size_t i = 0; i < want->count; i++)
        if (!same_bits(got->data[i], want->data[i]))
            fail_msg("%s %s threads=%d n=%d in=%d out=%d grains=%d at %zu: got %.9g, want %.9g",
                     what, row, threads, p->n, p->in, p->features, p->grains.count, i,
                     (double)got->data[i], (double)want->data[i]);
}

typedef struct machine {
    const tutti_kernels *row;
    const tutti_caches *caches;
    tutti_team *team;
} machine;

static void check(const problem *p, const machine *m)
{
    tutti_fc *fc = NULL;
    const int threads = tutti_team_size(m->team);
    assert_int_equal(
        tutti_fc_create(&fc, p->in, p->features, PRECISION, m->row, m->caches, threads), TUTTI_OK);
    assert_int_equal(tutti_fc_weight_count(fc), p->w.count);
    fenced scratch = fenced_create(tutti_fc_scratch(fc, p->n) / sizeof(float));
    fenced y = fenced_create(p->y.count), dx = fenced_create(p->dx.count);
    fenced dw = fenced_create(p->dw.count), db = fenced_create(p->db.count);
    const tutti_task task = {.team = m->team,
                             .scratch = scratch.data,
                             .n = p->n,
                             .grains = &p->grains,
                             .outputs = p->features};

    tutti_fc_forward(fc, &task, p->x.data, p->w.data, p->bias.data, true, y.data);
    assert_same("forward", p, m->row->name, threads, &y, &p->y);
    tutti_fc_backward_data(fc, &task, p->dy.data, p->w.data, p->mask.data, dx.data);
    assert_same("backward-data", p, m->row->name, threads, &dx, &p->dx);
    tutti_fc_backward_weights(fc, &task, p->x.data, p->dy.data, dw.data, db.data);
    assert_same("backward-weights", p, m->row->name, threads, &dw, &p->dw);
    assert_same("backward-bias", p, m->row->name, threads, &db, &p->db);

    fenced *const all[] = {&scratch, &y, &dx, &dw, &db};
    for (int i = 0; i < COUNT(all); i++) fenced_destroy(all[i]);
    tutti_fc_destroy(&fc);
}

/* ---- tests ---- */

typedef struct world {
    tutti_team *team[MAX_THREADS + 1];
} world;

static int open_world(void **state)
{
    static world w;
    for (int t = MAX_THREADS; t >= 1; t--) /* a smaller team's pinning would bind a larger one */
        if (tutti_team_create(&w.team[t], t)) return -1;
    *state = &w;
    return 0;
}

static int close_world(void **state)
{
    world *w = *state;
    for (int t = 1; t <= MAX_THREADS; t++) tutti_team_destroy(&w->team[t]);
    return 0;
}

static void check_rows(world *w, problem *p)
{
    p->grains.begin = p->begin;
    define(p);
    for (const tutti_kernels *const *row = tutti_kernel_table; *row; row++)
        for (int threads = 1; threads <= THREADS && tutti_kernels_run_here(*row); threads++)
            check(p, &(machine){*row, &usual, w->team[threads]});
}

static void every_row_and_team_has_the_bits_of_the_definition(void **state)
{
    for (int s = 0; s < COUNT(shapes); s++)
        for (int i = 0; i < COUNT(samples); i++) {
            const int n = samples[i];
            problem p = problem_create(shapes[s], n, n < 4 ? 1 : n < 16 ? 2 : n < 48 ? 7 : 12);
            check_rows(*state, &p);
            problem_destroy(&p);
        }
}

static void every_batch_size_has_the_bits_of_the_definition(void **state)
{
    for (int n = 1; n <= 70; n++) {
        problem p = problem_create((shape){20, 70}, n, n < 32 ? (n + 3) / 4 : 1);
        check_rows(*state, &p);
        problem_destroy(&p);
    }
}

static void large_batches_and_trees_have_the_bits_of_the_definition(void **state)
{
    const struct {
        shape s;
        int n, grains;
    } cases[] = {{{40, 20}, 300, 32},  {{230, 1100}, 150, 8}, {{16, 1100}, 40, 8},
                 {{1100, 16}, 20, 20}, {{2100, 20}, 140, 9},  {{16, 16}, 530, 5}};
    for (int i = 0; i < COUNT(cases); i++) {
        problem p = problem_create(cases[i].s, cases[i].n, cases[i].grains);
        check_rows(*state, &p);
        problem_destroy(&p);
    }
}

static void caches_do_not_change_the_bits(void **state)
{
    world *w = *state;
    const tutti_caches sizes[] = {
        {0, 0, 0}, {16 << 10, 64 << 10, 1 << 10}, {64 << 10, 4 << 20, 1 << 30}};
    for (int i = 0; i < COUNT(sizes); i++) {
        problem p = problem_create((shape){300, 260}, 50, 13);
        p.grains.begin = p.begin;
        define(&p);
        for (const tutti_kernels *const *row = tutti_kernel_table; *row; row++)
            if (tutti_kernels_run_here(*row)) check(&p, &(machine){*row, &sizes[i], w->team[3]});
        problem_destroy(&p);
    }
}

/* Nothing is skipped because it is zero: 0 * Inf is NaN on every row. */
static void infinities_and_nans_go_where_the_definition_says(void **state)
{
    problem p = problem_create((shape){40, 100}, 20, 4);
    p.w.data[5] = INFINITY;
    p.w.data[777] = NAN;
    p.dy.data[33] = -INFINITY;
    p.x.data[41] = INFINITY;
    p.mask.data[3] = NAN;
    check_rows(*state, &p);
    problem_destroy(&p);
}

static void no_grains_no_bias_no_mask(void **state)
{
    problem p = problem_create((shape){20, 20}, 3, 1);
    fenced no_bias = fenced_create(p.y.count), no_mask = fenced_create(p.dx.count);
    defined->forward(p.n, p.in, p.out, p.x.data, p.w.data, NULL, false, p.y.data);
    defined->backward_data(p.n, p.in, p.out, p.dy.data, p.w.data, NULL, p.dx.data);
    for (int k = 0; tutti_kernel_table[k]; k++) {
        const tutti_kernels *const row = tutti_kernel_table[k];
        if (!tutti_kernels_run_here(row)) continue;
        tutti_fc *fc = NULL;
        assert_int_equal(tutti_fc_create(&fc, 20, 20, PRECISION, row, &usual, 1), TUTTI_OK);
        fenced scratch = fenced_create(tutti_fc_scratch(fc, p.n) / sizeof(float));
        const tutti_grains none = {0, NULL};
        const tutti_task task = {.scratch = scratch.data, .n = p.n, .grains = &none, .outputs = 20};
        tutti_fc_forward(fc, &task, p.x.data, p.w.data, NULL, false, no_bias.data);
        assert_same("forward", &p, row->name, 1, &no_bias, &p.y);
        tutti_fc_backward_data(fc, &task, p.dy.data, p.w.data, NULL, no_mask.data);
        assert_same("backward-data", &p, row->name, 1, &no_mask, &p.dx);
        tutti_fc_backward_weights(fc, &task, p.x.data, p.dy.data, p.dw.data, NULL);
        for (size_t i = 0; i < p.dw.count; i++) assert_true(same_bits(p.dw.data[i], 0.0f));
        fenced_destroy(&scratch);
        tutti_fc_destroy(&fc);
    }
    fenced_destroy(&no_bias);
    fenced_destroy(&no_mask);
    problem_destroy(&p);
    (void)state;
}

/* ---- a layer split over ranks by output features ---- */

/* The rows a rank sees of an [n][out] array: columns 'first' .. 'end'-1. */
static fenced columns_of(const fenced *from, int n, int out, int first, int end)
{
    fenced f = fenced_create((size_t)n * (end - first));
    for (int s = 0; s < n; s++)
        memcpy(f.data + (size_t)s * (end - first), from->data + (size_t)s * out + first,
               (size_t)(end - first) * sizeof(float));
    return f;
}

typedef struct joiner {
    tutti_tree_stack tree;
    fenced sum[TUTTI_TREE_MAX_ROOTS];
} joiner;

static void contribute(joiner *j, const problem *p, const tutti_fc *fc, int first, int end)
{
    tutti_subtree roots[TUTTI_TREE_MAX_ROOTS];
    const int count = tutti_tree_roots(roots, tutti_fc_leaves(fc), first, end);
    const int o = first * TUTTI_FC_LEAF;
    const int o_end = end * TUTTI_FC_LEAF < p->out ? end * TUTTI_FC_LEAF : p->out;
    fenced dy = columns_of(&p->dy, p->n, p->out, o, o_end), part[TUTTI_TREE_MAX_ROOTS];
    fenced scratch = fenced_create(tutti_fc_scratch(fc, p->n) / sizeof(float));
    float *to[TUTTI_TREE_MAX_ROOTS];
    for (int r = 0; r < count; r++) to[r] = (part[r] = fenced_create(p->dx.count)).data;
    const tutti_task task = {.scratch = scratch.data, .n = p->n};
    assert_int_equal(count, tutti_fc_backward_data_roots(fc, &task, first, end, dy.data,
                                                         p->w.data + (size_t)o * p->in, to));
    for (int r = 0; r < count; r++) {
        j->sum[tutti_tree_push(&j->tree, roots[r])] = part[r];
        while (tutti_tree_join(&j->tree)) {
            fenced *left = &j->sum[j->tree.depth - 1], *right = &j->sum[j->tree.depth];
            for (size_t i = 0; i < left->count; i++) left->data[i] += right->data[i];
            fenced_destroy(right);
        }
    }
    fenced_destroy(&dy);
    fenced_destroy(&scratch);
}

static void ranks_join_to_the_bits_of_the_whole(void **state)
{
    (void)state;
    const tutti_kernels *row = NULL;
    assert_int_equal(tutti_kernels_choose(&row), TUTTI_OK);
    problem p = problem_create((shape){50, 64 * 10 + 40}, 21, 1);
    defined->backward_data(p.n, p.in, p.out, p.dy.data, p.w.data, NULL, p.dx.data);
    tutti_fc *fc = NULL;
    assert_int_equal(tutti_fc_create(&fc, p.in, p.features, PRECISION, row, &usual, 1), TUTTI_OK);
    const int leaves = tutti_fc_leaves(fc);
    assert_int_equal(leaves, 11);
    for (int ranks = 1; ranks <= leaves; ranks++) {
        joiner j;
        tutti_tree_stack_init(&j.tree, leaves);
        for (int r = 0; r < ranks; r++)
            contribute(&j, &p, fc, tutti_share_begin(leaves, ranks, r),
                       tutti_share_begin(leaves, ranks, r + 1));
        assert_int_equal(j.tree.depth, 1);
        assert_same("ranks", &p, row->name, ranks, &j.sum[0], &p.dx);
        fenced_destroy(&j.sum[0]);
    }
    tutti_fc_destroy(&fc);
    problem_destroy(&p);
}

/* Forward and backward-weights of a rank's own features are those features of the whole. */
static void halves_of_the_outputs_are_the_whole(void **state)
{
    world *w = *state;
    const tutti_kernels *row = NULL;
    assert_int_equal(tutti_kernels_choose(&row), TUTTI_OK);
    problem p = problem_create((shape){70, 200}, 19, 4);
    p.grains.begin = p.begin;
    define(&p);
    tutti_fc *fc = NULL;
    assert_int_equal(tutti_fc_create(&fc, p.in, p.features, PRECISION, row, &usual, 2), TUTTI_OK);
    fenced scratch = fenced_create(tutti_fc_scratch(fc, p.n) / sizeof(float));
    const int cuts[] = {0, 128, 208};
    for (int h = 0; h < 2; h++) {
        const int o = cuts[h], o_end = cuts[h + 1];
        fenced want = columns_of(&p.y, p.n, p.out, o, o_end), y = fenced_create(want.count);
        fenced dy = columns_of(&p.dy, p.n, p.out, o, o_end);
        fenced dw = fenced_create((size_t)(o_end - o) * p.in);
        const tutti_task task = {.team = w->team[2],
                                 .scratch = scratch.data,
                                 .n = p.n,
                                 .grains = &p.grains,
                                 .outputs = o_end - o};
        tutti_fc_forward(fc, &task, p.x.data, p.w.data + (size_t)o * p.in, p.bias.data + o, true,
                         y.data);
        assert_same("half forward", &p, row->name, 2, &y, &want);
        tutti_fc_backward_weights(fc, &task, p.x.data, dy.data, dw.data, NULL);
        for (size_t i = 0; i < dw.count; i++)
            assert_true(same_bits(dw.data[i], p.dw.data[(size_t)o * p.in + i]));
        fenced *const all[] = {&want, &y, &dy, &dw};
        for (int i = 0; i < COUNT(all); i++) fenced_destroy(all[i]);
    }
    fenced_destroy(&scratch);
    tutti_fc_destroy(&fc);
    problem_destroy(&p);
}

/* Both precisions would pass all other tests of this file if neither rounded. */
static void precisions_differ(void **state)
{
    (void)state;
    problem p = problem_create((shape){40, 80}, 8, 2);
    p.grains.begin = p.begin;
    long differ[3] = {0};
    float *const of[] = {p.y.data, p.dx.data, p.dw.data};
    const size_t count[] = {p.y.count, p.dx.count, p.dw.count};
    for (int i = 0; i < 3; i++) {
        float *other = malloc(count[i] * sizeof *other);
        assert_non_null(other);
        defined = &definitions[TUTTI_IN_FP32];
        define(&p);
        memcpy(other, of[i], count[i] * sizeof *other);
        defined = &definitions[TUTTI_IN_BF16];
        define(&p);
        for (size_t k = 0; k < count[i]; k++) differ[i] += !same_bits(other[k], of[i][k]);
        free(other);
    }
    defined = &definitions[PRECISION];
    for (int i = 0; i < 3; i++) assert_true(differ[i] > (long)count[i] / 4);
    problem_destroy(&p);
}

/* ---- the definition against exact sums ---- */

/* Numbers that no precision has to round. */
static problem exact_problem_create(shape s, int n, int grains)
{
    problem p = problem_create(s, n, grains);
    fenced *const all[] = {&p.x, &p.w, &p.dy};
    for (int i = 0; i < COUNT(all); i++)
        for (size_t k = 0; k < all[i]->count; k++)
            all[i]->data[k] = tutti_ref_bf16_widen(tutti_ref_bf16_round(all[i]->data[k]));
    return p;
}

static void assert_near(double got, tutti_ref_exact want, int terms)
{
    const double bound = (terms + 1) * (FLT_EPSILON / 2) * want.magnitude;
    if (!(fabs(got - want.value) <= bound))
        fail_msg("got %.9g, want %.9g within %.3g", got, want.value, bound);
}

static void the_definition_is_within_its_bound(void **state)
{
    (void)state;
    problem p = exact_problem_create((shape){70, 150}, 23, 5);
    p.grains.begin = p.begin;
    defined->forward(p.n, p.in, p.out, p.x.data, p.w.data, p.bias.data, false, p.y.data);
    defined->backward_data(p.n, p.in, p.out, p.dy.data, p.w.data, NULL, p.dx.data);
    defined->backward_weights(&p.grains, p.in, p.out, p.x.data, p.dy.data, p.dw.data, p.db.data);
    for (int s = 0; s < p.n; s++) {
        for (int o = 0; o < p.out; o++)
            assert_near((double)p.y.data[s * p.out + o],
                        tutti_ref_fc_y(p.in, p.x.data, p.w.data, p.bias.data, s, o), p.in + 1);
        for (int i = 0; i < p.in; i++)
            assert_near((double)p.dx.data[s * p.in + i],
                        tutti_ref_fc_dx(p.in, p.out, p.dy.data, p.w.data, s, i), p.out);
    }
    for (int o = 0; o < p.out; o++)
        for (int i = 0; i < p.in; i++)
            assert_near((double)p.dw.data[(o / 16 * p.in + i) * 16 + o % 16],
                        tutti_ref_fc_dw(0, p.n, p.in, p.out, p.x.data, p.dy.data, o, i), p.n);
    problem_destroy(&p);
}

/* The loss is the sum of dy * y. */
static double loss(const problem *p)
{
    double sum = 0.0;
    for (int s = 0; s < p->n; s++)
        for (int o = 0; o < p->out; o++)
            sum += (double)p->dy.data[s * p->out + o] *
                   tutti_ref_fc_y(p->in, p->x.data, p->w.data, p->bias.data, s, o).value;
    return sum;
}

static void assert_slope(const problem *p, float *at, float gradient)
{
    const float middle = *at, h = 0.5f; /* the loss is linear in each number: any step is exact */
    *at = middle + h;
    const double above = loss(p), step = *at;
    *at = middle - h;
    const double slope = (above - loss(p)) / (step - (double)*at);
    *at = middle;
    if (!(fabs(slope - (double)gradient) <= 1e-5))
        fail_msg("slope %g, got %g", slope, (double)gradient);
}

static void gradients_are_slopes(void **state)
{
    (void)state;
    problem p = exact_problem_create((shape){10, 20}, 6, 2);
    p.grains.begin = p.begin;
    defined->backward_data(p.n, p.in, p.out, p.dy.data, p.w.data, NULL, p.dx.data);
    defined->backward_weights(&p.grains, p.in, p.out, p.x.data, p.dy.data, p.dw.data, p.db.data);
    for (size_t i = 0; i < p.x.count; i++) assert_slope(&p, &p.x.data[i], p.dx.data[i]);
    for (size_t i = 0; i < p.w.count; i++) assert_slope(&p, &p.w.data[i], p.dw.data[i]);
    for (size_t i = 0; i < p.bias.count; i++) assert_slope(&p, &p.bias.data[i], p.db.data[i]);
    problem_destroy(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_row_and_team_has_the_bits_of_the_definition),
        cmocka_unit_test(every_batch_size_has_the_bits_of_the_definition),
        cmocka_unit_test(large_batches_and_trees_have_the_bits_of_the_definition),
        cmocka_unit_test(caches_do_not_change_the_bits),
        cmocka_unit_test(infinities_and_nans_go_where_the_definition_says),
        cmocka_unit_test(no_grains_no_bias_no_mask),
        cmocka_unit_test(ranks_join_to_the_bits_of_the_whole),
        cmocka_unit_test(halves_of_the_outputs_are_the_whole),
        cmocka_unit_test(precisions_differ),
        cmocka_unit_test(the_definition_is_within_its_bound),
        cmocka_unit_test(gradients_are_slopes),
    };
    return cmocka_run_group_tests(tests, open_world, close_world);
}
