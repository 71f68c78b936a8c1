/* Elementwise passes and sums: every row and one or two threads against the definition in
 * double and against each other, for lengths around a vector and around a thread's share. */
#include "rows.h"

#include <float.h>

#include "kernel/elementwise.h"
#include "kernel/ops.h"
#include "kernel/ref_ops.h"

static const size_t lengths[] = {0, 1, 2, 15, 16, 17, 31, 33, 35, 1000, 16383, 16384, 40003};
enum { LENGTHS = sizeof lengths / sizeof *lengths };

static const double half = FLT_EPSILON / 2; /* the error of one rounding, relative */

/* One pass on inputs a, b in [-2, 2] and a mask in [-1, 1]; what it must yield and how far off it
 * may be, element by element. */
typedef struct pass {
    const char *name;
    void (*apply)(const run *r, size_t n, const fenced *a, const fenced *b, const fenced *mask,
                  float *y);
    double (*want)(double a, double b, double y_before);
    double (*bound)(double a, double b, double y_before);
    bool masked, in_place; /* y starts as a copy of b */
} pass;

#define APPLY(name)                                                                    \
    static void apply_##name(const run *r, size_t n, const fenced *a, const fenced *b, \
                             const fenced *mask, float *y)
#define VALUE(name) static double name(double a, double b, double y)
#define UNUSED      (void)a, (void)b, (void)y

APPLY(add)
{
    (void)mask;
    tutti_add(r->exec, n, a->data, b->data, false, y);
}
VALUE(want_add)
{
    UNUSED;
    return a + b;
}
VALUE(bound_add)
{
    UNUSED;
    return half * fabs(a + b);
}
APPLY(add_relu)
{
    (void)mask;
    tutti_add(r->exec, n, a->data, b->data, true, y);
}
VALUE(want_add_relu)
{
    UNUSED;
    return fmax(a + b, 0.0);
}
APPLY(scale)
{
    (void)b, (void)mask;
    tutti_scale(r->exec, n, 0.7f, a->data, y);
}
VALUE(want_scale)
{
    UNUSED;
    return (double)0.7f * a;
}
VALUE(bound_scale)
{
    UNUSED;
    return half * fabs(0.7 * a) * 1.01;
}
APPLY(axpy)
{
    (void)b, (void)mask;
    tutti_axpy(r->exec, n, 0.7f, a->data, y);
}
VALUE(want_axpy)
{
    UNUSED;
    return (double)0.7f * a + y;
}
VALUE(bound_axpy)
{
    return half * fabs(want_axpy(a, b, y));
}
APPLY(relu)
{
    (void)b, (void)mask;
    tutti_relu(r->exec, n, a->data, y);
}
VALUE(want_relu)
{
    UNUSED;
    return fmax(a, 0.0);
}
VALUE(exact)
{
    UNUSED;
    return 0.0;
}
APPLY(relu_backward)
{
    (void)mask;
    tutti_relu_backward(r->exec, n, a->data, b->data, y);
}
VALUE(want_relu_backward)
{
    UNUSED;
    return b <= 0.0 ? 0.0 : a;
}
static void run_leaky(const run *r, size_t n, tutti_elementwise_fn *kernel, tutti_elementwise job)
{
    job.factor = 0.3f;
    tutti_elementwise_run(r->exec.team, kernel, &job, n);
}
APPLY(leaky)
{
    (void)b, (void)mask;
    run_leaky(r, n, r->exec.row->ops->leaky, (tutti_elementwise){.a = a->data, .y = y});
}
VALUE(want_leaky)
{
    UNUSED;
    return a > 0 ? a : (double)0.3f * a;
}
VALUE(bound_leaky)
{
    UNUSED;
    return half * fabs(0.31 * a);
}
APPLY(leaky_backward)
{
    const tutti_elementwise job = {.a = a->data, .b = b->data, .mask = mask->data, .y = y};
    run_leaky(r, n, r->exec.row->ops->leaky_backward, job);
}
VALUE(want_leaky_backward)
{
    UNUSED;
    return b > 0 ? a : (double)0.3f * a;
}
static void run_flat(const run *r, size_t n, tutti_elementwise_fn *kernel, tutti_elementwise job)
{
    tutti_elementwise_run(r->exec.team, kernel, &job, n);
}
APPLY(relu6)
{
    fenced wide = fenced_create(n); /* inputs beyond both ends */
    (void)b, (void)mask;
    for (size_t i = 0; i < n; i++) wide.data[i] = 4 * a->data[i];
    run_flat(r, n, r->exec.row->ops->relu6, (tutti_elementwise){.a = wide.data, .y = y});
    fenced_destroy(&wide);
}
VALUE(want_relu6)
{
    UNUSED;
    return fmin(fmax(4 * a, 0), 6);
}
APPLY(relu6_backward)
{
    fenced wide = fenced_create(n);
    for (size_t i = 0; i < n; i++) wide.data[i] = fminf(fmaxf(4 * b->data[i], 0), 6);
    const tutti_elementwise job = {.a = a->data, .b = wide.data, .mask = mask->data, .y = y};
    run_flat(r, n, r->exec.row->ops->relu6_backward, job);
    fenced_destroy(&wide);
}
VALUE(want_relu6_backward)
{
    UNUSED;
    return 4 * b > 0 && 4 * b < 6 ? a : 0;
}
APPLY(silu_backward)
{
    const tutti_elementwise job = {.a = a->data, .b = b->data, .mask = mask->data, .y = y};
    run_flat(r, n, r->exec.row->ops->silu_backward, job);
}
VALUE(want_silu_backward)
{
    const double s = 1 / (1 + exp(-b));
    UNUSED;
    return a * (s + b * s * (1 - s));
}
VALUE(bound_curve) /* sigmoid and the like to 4 units, a sum of products, one more product */
{
    UNUSED;
    return half * fabs(a) * (8 + 4) * (1 + fabs(b));
}
APPLY(gelu_backward)
{
    const tutti_elementwise job = {.a = a->data, .b = b->data, .mask = mask->data, .y = y};
    run_flat(r, n, r->exec.row->ops->gelu_backward, job);
}
VALUE(want_gelu_backward)
{
    UNUSED;
    return a * (erfc(-b / sqrt(2)) / 2 + b * exp(-b * b / 2) / sqrt(2 * acos(-1)));
}
APPLY(hardswish)
{
    fenced wide = fenced_create(n);
    (void)b, (void)mask;
    for (size_t i = 0; i < n; i++) wide.data[i] = 2 * a->data[i];
    run_flat(r, n, r->exec.row->ops->hardswish, (tutti_elementwise){.a = wide.data, .y = y});
    fenced_destroy(&wide);
}
VALUE(want_hardswish)
{
    UNUSED;
    return 2 * a * fmin(fmax(2 * a + 3, 0), 6) / 6;
}
VALUE(bound_hardswish) /* x + 3, 1/6 and two products round */
{
    return 4.1 * half * fabs(want_hardswish(a, b, y));
}
APPLY(hardswish_backward)
{
    fenced wide = fenced_create(n);
    for (size_t i = 0; i < n; i++) wide.data[i] = 2 * b->data[i];
    const tutti_elementwise job = {.a = a->data, .b = wide.data, .mask = mask->data, .y = y};
    run_flat(r, n, r->exec.row->ops->hardswish_backward, job);
    fenced_destroy(&wide);
}
VALUE(want_hardswish_backward)
{
    UNUSED;
    return 2 * b <= -3 ? 0 : 2 * b >= 3 ? a : a * (2 * b / 3 + 0.5);
}
APPLY(hardsigmoid_backward)
{
    fenced wide = fenced_create(n);
    for (size_t i = 0; i < n; i++) wide.data[i] = fminf(fmaxf(b->data[i], 0), 1);
    const tutti_elementwise job = {.a = a->data, .b = wide.data, .mask = mask->data, .y = y};
    run_flat(r, n, r->exec.row->ops->hardsigmoid_backward, job);
    fenced_destroy(&wide);
}
VALUE(want_hardsigmoid_backward)
{
    UNUSED;
    return b > 0 && b < 1 ? a / 6 : 0;
}
VALUE(bound_sixth)
{
    UNUSED;
    return 2.1 * half * fabs(a / 6);
}
APPLY(tanh)
{
    (void)b, (void)mask;
    tutti_tanh(r->exec, n, a->data, y);
}
VALUE(want_tanh)
{
    UNUSED;
    return tanh(a);
}
VALUE(bound_tanh)
{
    UNUSED;
    return 3.6 * FLT_EPSILON * fabs(tanh(a));
}
APPLY(sigmoid_backward)
{
    tutti_sigmoid_backward(r->exec, n, a->data, b->data, mask->data, y);
}
VALUE(want_sigmoid_backward)
{
    UNUSED;
    return a * tutti_ref_sigmoid_slope(b);
}
VALUE(bound_slope) /* 1 - y or 1 - y^2 rounds; two products */
{
    UNUSED;
    return half * fabs(a) * (3.0 * (1.0 + fabs(b)) * (1.0 + fabs(b)) + 1.0);
}
APPLY(tanh_backward)
{
    tutti_tanh_backward(r->exec, n, a->data, b->data, mask->data, y);
}
VALUE(want_tanh_backward)
{
    UNUSED;
    return a * tutti_ref_tanh_slope(b);
}

static const pass passes[] = {
    {"add", apply_add, want_add, bound_add, false, false},
    {"add, ReLU", apply_add_relu, want_add_relu, bound_add, false, false},
    {"scale", apply_scale, want_scale, bound_scale, false, false},
    {"axpy", apply_axpy, want_axpy, bound_axpy, false, true},
    {"relu", apply_relu, want_relu, exact, false, false},
    {"relu backward", apply_relu_backward, want_relu_backward, exact, false, false},
    {"leaky", apply_leaky, want_leaky, bound_leaky, false, false},
    {"leaky backward", apply_leaky_backward, want_leaky_backward, bound_leaky, true, false},
    {"relu6", apply_relu6, want_relu6, exact, false, false},
    {"relu6 backward", apply_relu6_backward, want_relu6_backward, exact, true, false},
    {"silu backward", apply_silu_backward, want_silu_backward, bound_curve, true, false},
    {"gelu backward", apply_gelu_backward, want_gelu_backward, bound_curve, true, false},
    {"hardswish", apply_hardswish, want_hardswish, bound_hardswish, false, false},
    {"hardswish backward", apply_hardswish_backward, want_hardswish_backward, bound_curve, true,
     false},
    {"hardsigmoid backward", apply_hardsigmoid_backward, want_hardsigmoid_backward, bound_sixth,
     true, false},
    {"tanh", apply_tanh, want_tanh, bound_tanh, false, false},
    {"sigmoid backward", apply_sigmoid_backward, want_sigmoid_backward, bound_slope, true, false},
    {"tanh backward", apply_tanh_backward, want_tanh_backward, bound_slope, true, false},
};
enum { PASSES = sizeof passes / sizeof *passes };

static void check_pass(tutti_team *const teams[2], const pass *p, size_t n)
{
    fenced a = random_array(n, 1, -2.0, 2.0), b = random_array(n, 2, -2.0, 2.0);
    fenced mask = random_array(n, 3, -1.0, 1.0), y = fenced_create(n), first = fenced_create(n);
    for (size_t i = 0; i < n; i += 13) mask.data[i] = NAN; /* lets the gradient pass */
    double *want = malloc((n + 1) * sizeof *want), *bound = malloc((n + 1) * sizeof *bound);
    for (size_t i = 0; i < n; i++) {
        const double x = (double)a.data[i], z = (double)b.data[i];
        want[i] = p->masked && mask.data[i] <= 0.0f ? 0.0 : p->want(x, z, z);
        bound[i] = p->bound(x, z, z);
    }
    for (run r = {0}; next_run(&r, teams);) {
        fenced *out = r.first ? &first : &y;
        if (p->in_place) memcpy(out->data, b.data, n * sizeof(float));
        p->apply(&r, n, &a, &b, &mask, out->data);
        if (r.first) within(p->name, n, first.data, want, bound);
        else same_bits(&r, p->name, &first, &y);
    }
    free(want), free(bound);
    fenced_destroy(&a), fenced_destroy(&b), fenced_destroy(&mask);
    fenced_destroy(&y), fenced_destroy(&first);
}

static void passes_are_their_definitions(void **state)
{
    for (int p = 0; p < PASSES; p++)
        for (int i = 0; i < LENGTHS; i++) check_pass(*state, &passes[p], lengths[i]);
}

static void passes_work_in_place(void **state)
{
    tutti_team *const *teams = *state;
    enum { N = 37 };
    for (run r = {0}; next_run(&r, teams);)
        for (int p = 0; p < PASSES; p++) {
            fenced a = random_array(N, 1, -2.0, 2.0), b = random_array(N, 2, -2.0, 2.0);
            fenced mask = random_array(N, 3, -1.0, 1.0), want = random_array(N, 2, -2.0, 2.0);
            passes[p].apply(&r, N, &a, &b, &mask, want.data);
            float *y = passes[p].in_place ? b.data : a.data;
            passes[p].apply(&r, N, &a, &b, &mask, y);
            assert_memory_equal(y, want.data, N * sizeof(float));
            fenced_destroy(&a), fenced_destroy(&b), fenced_destroy(&mask), fenced_destroy(&want);
        }
}

static void relu_keeps_nan(void **state)
{
    tutti_team *const *teams = *state;
    const float x[4] = {NAN, -0.0f, -1.0f, INFINITY};
    for (run r = {0}; next_run(&r, teams);) {
        float y[4];
        tutti_relu(r.exec, 4, x, y);
        assert_true(isnan(y[0]) && y[1] == 0.0f && !signbit(y[1]) && y[2] == 0.0f);
        assert_true(y[3] == INFINITY);
        run_flat(&r, 4, r.exec.row->ops->relu6, (tutti_elementwise){.a = x, .y = y});
        assert_true(isnan(y[0]) && y[1] == 0.0f && y[2] == 0.0f && y[3] == 6.0f);
    }
}

typedef struct lifted { /* f(0) is not 0 */
    const char *name;
    size_t kernel; /* its place in the row */
    double (*want)(double x);
    double bound; /* of the error, relative */
} lifted;

static double hard_sigmoid(double x)
{
    return fmin(fmax(x + 3, 0), 6) / 6;
}

static const lifted lifts[] = {
    {"sigmoid", offsetof(tutti_ops_kernels, sigmoid), tutti_ref_sigmoid, 3.3 * FLT_EPSILON},
    {"hardsigmoid", offsetof(tutti_ops_kernels, hardsigmoid), hard_sigmoid, 2 * FLT_EPSILON},
};

static void check_lifted(tutti_team *const *teams, const lifted *f, const int shape[3])
{
    const int n = shape[0], c = shape[1], pixels = shape[2];
    fenced x = random_activation(n, c, pixels, 4, -10.0, 10.0);
    fenced y = fenced_create(x.count), first = fenced_create(x.count);
    double *want = as_double(&x), *bound = as_double(&x);
    for (size_t i = 0; i < x.count; i++) {
        want[i] = is_channel(c, pixels, i) ? f->want(want[i]) : 0.0;
        bound[i] = f->bound * want[i];
    }
    for (run r = {0}; next_run(&r, teams);) {
        tutti_elementwise_fn *kernel;
        memcpy(&kernel, (const char *)r.exec.row->ops + f->kernel, sizeof kernel);
        tutti_elementwise_channels(r.exec.team, kernel, (tutti_extent){n, c, pixels}, x.data,
                                   r.first ? first.data : y.data);
        if (r.first) within(f->name, x.count, first.data, want, bound);
        else same_bits(&r, f->name, &first, &y);
    }
    free(want), free(bound);
    fenced_destroy(&x), fenced_destroy(&y), fenced_destroy(&first);
}

static void sigmoids_leave_what_fills_up(void **state)
{
    const int shapes[][3] = {{1, 1, 1},  {2, 16, 3},  {3, 17, 5},
                             {2, 31, 1}, {7, 40, 70}, {1, 48, 400}};
    for (size_t f = 0; f < sizeof lifts / sizeof *lifts; f++)
        for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++)
            check_lifted(*state, &lifts[f], shapes[s]);
}

/* ---- sums ---- */

/* The definition: leaves by halves, then neighbours pairwise, level by level. */
static double tree_of_squares(const float *x, size_t count)
{
    const size_t leaves = (count + 15) / 16;
    double *sum = calloc(leaves + 1, sizeof *sum);
    for (size_t i = 0; i < leaves; i++) {
        double lane[16] = {0};
        for (size_t l = 0; l < 16 && 16 * i + l < count; l++)
            lane[l] = (double)x[16 * i + l] * (double)x[16 * i + l];
        for (int h = 8; h; h /= 2)
            for (int l = 0; l < h; l++) lane[l] += lane[l + h];
        sum[i] = lane[0];
    }
    for (size_t n = leaves; n > 1; n = (n + 1) / 2)
        for (size_t i = 0; i < (n + 1) / 2; i++)
            sum[i] = 2 * i + 1 < n ? sum[2 * i] + sum[2 * i + 1] : sum[2 * i];
    const double total = sum[0];
    free(sum);
    return total;
}

static double joined_from_parts(const run *r, const fenced *x, int parts)
{
    tutti_sum sum;
    tutti_sum_init(&sum, tutti_square_leaves(x->count));
    const int leaves = tutti_square_leaves(x->count);
    for (int p = 0; p < parts; p++) {
        tutti_subtree roots[TUTTI_TREE_MAX_ROOTS];
        double sums[TUTTI_TREE_MAX_ROOTS];
        const size_t begin = 16 * (size_t)tutti_share_begin(leaves, parts, p);
        size_t end = 16 * (size_t)tutti_share_begin(leaves, parts, p + 1);
        if (end > x->count) end = x->count;
        const int found = tutti_square_roots(r->exec, x->count, (tutti_range){begin, end},
                                             x->data + begin, roots, sums);
        for (int i = 0; i < found; i++) tutti_sum_add(&sum, roots[i], sums[i]);
    }
    return tutti_sum_value(&sum);
}

static void squares_have_one_order(void **state)
{
    tutti_team *const *teams = *state;
    const size_t counts[] = {0, 1, 16, 17, 100, 8191, 8192, 8193, 100000, 123457, 3000001};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        fenced x = random_array(counts[i], 6, -1.0, 1.0);
        const double want = tree_of_squares(x.data, x.count);
        for (run r = {0}; next_run(&r, teams);) {
            assert_true(tutti_square_sum(r.exec, x.count, x.data) == want);
            for (int parts = 1; parts <= 5 && counts[i] >= 100; parts++)
                assert_true(joined_from_parts(&r, &x, parts) == want);
        }
        fenced_destroy(&x);
    }
}

static void loss_of_a_grain_is_a_chain(void **state)
{
    (void)state;
    const float loss[] = {1e8f, 1.0f, -1e8f, 0x1p-30f};
    assert_true(tutti_grain_loss(4, loss) == 1.0 + 0x1p-30);
    assert_true(tutti_grain_loss(0, loss) == 0.0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(passes_are_their_definitions),
        cmocka_unit_test(passes_work_in_place),
        cmocka_unit_test(relu_keeps_nan),
        cmocka_unit_test(sigmoids_leave_what_fills_up),
        cmocka_unit_test(squares_have_one_order),
        cmocka_unit_test(loss_of_a_grain_is_a_chain),
    };
    return cmocka_run_group_tests(tests, create_teams, destroy_teams);
}
