/* Optimizers: every row and one or two threads against the definition in double and against each
 * other, for lengths around a vector and around a thread's share. */
#include "rows.h"

#include <float.h>

#include "kernel/ops.h"
#include "kernel/ref_ops.h"

static const size_t lengths[] = {0, 1, 2, 15, 16, 17, 31, 33, 35, 1000, 16383, 16384, 40003};
enum { LENGTHS = sizeof lengths / sizeof *lengths, STEPS = 3 };

static const double half = FLT_EPSILON / 2; /* the error of one rounding, relative */

/* ---- SGD ---- */

static void check_sgd(tutti_team *const teams[2], const tutti_sgd *sgd, size_t n)
{
    fenced w = random_array(n, 1, -1.0, 1.0), v = fenced_create(n);
    fenced w1 = fenced_create(n), v1 = fenced_create(n), start = random_array(n, 1, -1.0, 1.0);
    fenced g[STEPS];
    for (int s = 0; s < STEPS; s++) g[s] = random_array(n, 5 + (uint64_t)s, -1.0, 1.0);
    double *wd = as_double(&start), *vd = calloc(n + 1, sizeof *vd);
    double *bound = malloc((n + 1) * sizeof *bound);
    for (int s = 0; s < STEPS; s++) {
        double *gd = as_double(&g[s]);
        tutti_ref_sgd_step(sgd, n, gd, vd, wd);
        free(gd);
    }
    /* |w| <= 1 + STEPS*lr*8, |v| <= 4, each of STEPS steps rounds d, v, move and w once */
    for (size_t i = 0; i < n; i++) bound[i] = STEPS * half * (2.0 + 40.0 * (double)sgd->lr);
    for (run r = {0}; next_run(&r, teams);) {
        fenced *weights = r.first ? &w1 : &w, *velocity = r.first ? &v1 : &v;
        memcpy(weights->data, start.data, n * sizeof(float));
        fenced_fill(velocity, 0.0f);
        for (int s = 0; s < STEPS; s++)
            tutti_sgd_step(
                r.exec, sgd,
                &(tutti_update){.count = n,
                                .a = g[s].data,
                                .w = weights->data,
                                .state = {sgd->momentum == 0.0f ? NULL : velocity->data}});
        if (r.first) within("sgd", n, w1.data, wd, bound);
        if (!r.first) same_bits(&r, "sgd weights", &w1, &w);
        if (!r.first) same_bits(&r, "sgd momentum", &v1, &v);
    }
    free(wd), free(vd), free(bound);
    for (int s = 0; s < STEPS; s++) fenced_destroy(&g[s]);
    fenced_destroy(&w), fenced_destroy(&v), fenced_destroy(&w1), fenced_destroy(&v1);
    fenced_destroy(&start);
}

/* A gradient in two parts is their sum. */
static void check_sgd_of_two_parts(tutti_team *const teams[2], const tutti_sgd *sgd, size_t n)
{
    fenced a = random_array(n, 5, -1.0, 1.0), b = random_array(n, 6, -1.0, 1.0);
    fenced sum = fenced_create(n), start = random_array(n, 1, -1.0, 1.0);
    fenced w[2] = {fenced_create(n), fenced_create(n)}, v[2] = {fenced_create(n), fenced_create(n)};
    for (run r = {0}; next_run(&r, teams);) {
        tutti_add(r.exec, n, a.data, b.data, false, sum.data);
        for (int k = 0; k < 2; k++) {
            memcpy(w[k].data, start.data, n * sizeof(float));
            memcpy(v[k].data, b.data, n * sizeof(float));
            tutti_sgd_step(r.exec, sgd,
                           &(tutti_update){.count = n,
                                           .a = k ? a.data : sum.data,
                                           .b = k ? b.data : NULL,
                                           .w = w[k].data,
                                           .state = {sgd->momentum == 0.0f ? NULL : v[k].data}});
        }
        same_bits(&r, "sgd weights, two parts", &w[0], &w[1]);
        same_bits(&r, "sgd momentum, two parts", &v[0], &v[1]);
    }
    for (int k = 0; k < 2; k++) fenced_destroy(&w[k]), fenced_destroy(&v[k]);
    fenced_destroy(&a), fenced_destroy(&b), fenced_destroy(&sum), fenced_destroy(&start);
}

static void sgd_is_pytorchs(void **state)
{
    const tutti_sgd kinds[] = {
        {0.1f, 0.0f, 0.0f, 1.0f, false},  {0.1f, 0.0f, 0.01f, 1.0f, false},
        {0.1f, 0.9f, 0.0f, 1.0f, false},  {0.1f, 0.9f, 5e-4f, 0.5f, false},
        {0.01f, 0.9f, 5e-4f, 1.0f, true},
    };
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
        for (int i = 0; i < LENGTHS; i++) {
            check_sgd(*state, &kinds[k], lengths[i]);
            check_sgd_of_two_parts(*state, &kinds[k], lengths[i]);
        }
}

/* ---- Adam and AdamW ---- */

/* A number as the rows have it: x in exact arithmetic, at most e away from it. */
typedef struct approx {
    double x, e;
} approx;

/* One rounding more, to normal or denormal floats. */
static approx rounded(double x, double e)
{
    return (approx){x, e + half * (fabs(x) + e) + 0x1p-150};
}

static approx constant(double x)
{
    return (approx){x, fabs(x - (double)(float)x)};
}

static double product_error(approx a, approx b)
{
    return fabs(a.x) * b.e + fabs(b.x) * a.e + a.e * b.e;
}

static approx times(approx a, approx b)
{
    return rounded(a.x * b.x, product_error(a, b));
}

static approx minus(approx a, approx b)
{
    return rounded(a.x - b.x, a.e + b.e);
}

static approx fused(approx a, approx b, approx c)
{
    return rounded(a.x * b.x + c.x, product_error(a, b) + c.e);
}

static approx over(approx a, approx b)
{
    return rounded(a.x / b.x, (a.e + fabs(a.x / b.x) * b.e) / (fabs(b.x) - b.e));
}

/* The slope is largest at the lower end. */
static approx root(approx a)
{
    const double low = a.x > a.e ? a.x - a.e : 0.0;
    return rounded(sqrt(a.x), sqrt(low + 2 * a.e) - sqrt(low));
}

/* PyTorch's settings and what the kernel gets for step 'step'. */
static tutti_adam numbers_of(const tutti_ref_adam *a, int step)
{
    return (tutti_adam){
        .gradient_scale = 1,
        .weight_decay = a->decoupled ? 0 : (float)a->weight_decay,
        .shrink = a->decoupled ? (float)(1 - a->lr * a->weight_decay) : 1,
        .one_minus_beta1 = (float)(1 - a->beta1),
        .beta2 = (float)a->beta2,
        .one_minus_beta2 = (float)(1 - a->beta2),
        .step_size = (float)(a->lr / (1 - pow(a->beta1, step))),
        .root_factor = (float)(1 / sqrt(1 - pow(a->beta2, step))),
        .eps = (float)a->eps,
    };
}

/* The same step with its rounding errors: one parameter's. */
typedef struct parameter {
    approx w, m, v;
} parameter;

static void approximate(const tutti_ref_adam *a, int step, float g, parameter *p)
{
    const approx gradient = {(double)g, 0};
    const approx decay = constant(a->decoupled ? 0 : a->weight_decay);
    const approx d = fused(decay, p->w, gradient);
    const approx shrink = constant(a->decoupled ? 1 - a->lr * a->weight_decay : 1);
    p->m = fused(constant(1 - a->beta1), minus(d, p->m), p->m);
    p->v = fused(constant(1 - a->beta2), times(d, d), times(constant(a->beta2), p->v));
    const approx size =
        fused(constant(1 / sqrt(1 - pow(a->beta2, step))), root(p->v), constant(a->eps));
    p->w =
        fused(constant(-a->lr / (1 - pow(a->beta1, step))), over(p->m, size), times(shrink, p->w));
}

typedef struct adam_state {
    fenced w, m, v;
} adam_state;

static adam_state adam_create(size_t n)
{
    return (adam_state){fenced_create(n), fenced_create(n), fenced_create(n)};
}

static void adam_destroy(adam_state *s)
{
    fenced_destroy(&s->w), fenced_destroy(&s->m), fenced_destroy(&s->v);
}

static void adam_reset(adam_state *s, const fenced *start)
{
    memcpy(s->w.data, start->data, start->count * sizeof(float));
    fenced_fill(&s->m, 0.0f), fenced_fill(&s->v, 0.0f);
}

static tutti_update update_of(const adam_state *s, const float *a, const float *b)
{
    return (tutti_update){
        .count = s->w.count, .a = a, .b = b, .w = s->w.data, .state = {s->m.data, s->v.data}};
}

/* The first row's results after STEPS steps are the definition's, up to rounding. */
static void check_definition(const tutti_ref_adam *a, const fenced *start, const fenced g[STEPS],
                             const adam_state *got)
{
    const size_t n = start->count;
    double *w = as_double(start), *m = calloc(n + 1, sizeof *m), *v = calloc(n + 1, sizeof *v);
    for (int s = 0; s < STEPS; s++) {
        double *gradient = as_double(&g[s]);
        tutti_ref_adam_step(a, s + 1, n, gradient, m, v, w);
        free(gradient);
    }
    for (size_t i = 0; i < n; i++) {
        parameter p = {.w = {(double)start->data[i], 0}};
        for (int s = 0; s < STEPS; s++) approximate(a, s + 1, g[s].data[i], &p);
        within("adam weight", 1, got->w.data + i, w + i, &p.w.e);
        within("adam mean", 1, got->m.data + i, m + i, &p.m.e);
        within("adam square", 1, got->v.data + i, v + i, &p.v.e);
    }
    free(w), free(m), free(v);
}

static void check_adam(tutti_team *const teams[2], const tutti_ref_adam *a, size_t n)
{
    fenced start = random_array(n, 1, -1.0, 1.0), g[STEPS];
    for (int s = 0; s < STEPS; s++) g[s] = random_array(n, 5 + (uint64_t)s, -1.0, 1.0);
    adam_state first = adam_create(n), other = adam_create(n);
    for (run r = {0}; next_run(&r, teams);) {
        adam_state *state = r.first ? &first : &other;
        adam_reset(state, &start);
        for (int s = 0; s < STEPS; s++) {
            const tutti_adam adam = numbers_of(a, s + 1);
            const tutti_update update = update_of(state, g[s].data, NULL);
            tutti_adam_step(r.exec, &adam, &update);
        }
        if (r.first) {
            check_definition(a, &start, g, &first);
            continue;
        }
        same_bits(&r, "adam weights", &first.w, &other.w);
        same_bits(&r, "adam means", &first.m, &other.m);
        same_bits(&r, "adam squares", &first.v, &other.v);
    }
    for (int s = 0; s < STEPS; s++) fenced_destroy(&g[s]);
    fenced_destroy(&start), adam_destroy(&first), adam_destroy(&other);
}

static const tutti_ref_adam adams[] = {
    {.lr = 1e-3, .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8},
    {.lr = 0.1, .beta1 = 0.8, .beta2 = 0.99, .eps = 1e-3, .weight_decay = 0.01},
    {.lr = 0.01, .beta1 = 0.9, .beta2 = 0.95, .eps = 1e-8, .weight_decay = 0.1, .decoupled = true},
    {.lr = 0.01, .beta1 = 0.0, .beta2 = 0.0, .eps = 1.0},
    {.lr = 0.01, .beta1 = 0.5, .beta2 = 0.5, .eps = 1e-6},
};
enum { ADAMS = sizeof adams / sizeof *adams };

static void adam_is_pytorchs(void **state)
{
    for (int k = 0; k < ADAMS; k++)
        for (int i = 0; i < LENGTHS; i++) check_adam(*state, &adams[k], lengths[i]);
}

/* ops.h, word by word. */
static void one_float(const tutti_adam *o, float g, float *w, float *m, float *v)
{
    const float d = fmaf(o->weight_decay, *w, o->gradient_scale * g);
    *m = fmaf(o->one_minus_beta1, d - *m, *m);
    *v = fmaf(o->one_minus_beta2, d * d, o->beta2 * *v);
    const float move = *m / fmaf(o->root_factor, sqrtf(*v), o->eps);
    *w = fmaf(-o->step_size, move, o->shrink * *w);
}

/* A clipped gradient in two parts, to the bit, from any state. */
static void adam_is_a_fixed_sequence(void **state)
{
    enum { N = 1013 };
    fenced a = random_array(N, 1, -1.0, 1.0), b = random_array(N, 2, -1.0, 1.0);
    fenced w = random_array(N, 3, -1.0, 1.0), m = random_array(N, 4, -1.0, 1.0);
    fenced v = random_array(N, 5, 0.0, 1.0);
    adam_state got = adam_create(N);
    for (int k = 0; k < ADAMS; k++)
        for (run r = {0}; next_run(&r, *state);) {
            tutti_adam adam = numbers_of(&adams[k], 7);
            adam.gradient_scale = 0.9f;
            adam_reset(&got, &w);
            memcpy(got.m.data, m.data, N * sizeof(float));
            memcpy(got.v.data, v.data, N * sizeof(float));
            const tutti_update update = update_of(&got, a.data, b.data);
            tutti_adam_step(r.exec, &adam, &update);
            for (int i = 0; i < N; i++) {
                float w1 = w.data[i], m1 = m.data[i], v1 = v.data[i];
                one_float(&adam, a.data[i] + b.data[i], &w1, &m1, &v1);
                assert_true(got.w.data[i] == w1 && got.m.data[i] == m1 && got.v.data[i] == v1);
            }
        }
    fenced_destroy(&a), fenced_destroy(&b), fenced_destroy(&w), fenced_destroy(&m);
    fenced_destroy(&v), adam_destroy(&got);
}

/* What fills up a block of channels. */
static void adam_leaves_zeros(void **state)
{
    enum { N = 32 };
    fenced zeros = fenced_create(N);
    fenced_fill(&zeros, 0.0f);
    adam_state s = adam_create(N);
    for (int k = 0; k < ADAMS; k++)
        for (run r = {0}; next_run(&r, *state);) {
            const tutti_adam adam = numbers_of(&adams[k], 1);
            adam_reset(&s, &zeros);
            const tutti_update update = update_of(&s, zeros.data, k % 2 ? zeros.data : NULL);
            tutti_adam_step(r.exec, &adam, &update);
            assert_memory_equal(s.w.data, zeros.data, N * sizeof(float));
            assert_memory_equal(s.m.data, zeros.data, N * sizeof(float));
            assert_memory_equal(s.v.data, zeros.data, N * sizeof(float));
        }
    fenced_destroy(&zeros), adam_destroy(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sgd_is_pytorchs),
        cmocka_unit_test(adam_is_pytorchs),
        cmocka_unit_test(adam_is_a_fixed_sequence),
        cmocka_unit_test(adam_leaves_zeros),
    };
    return cmocka_run_group_tests(tests, create_teams, destroy_teams);
}
