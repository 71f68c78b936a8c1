/* Normalisation in statistics groups: every row and one or two threads against the definition in
 * double and against each other, groups of any size, however their samples are shared out; the
 * definition by finite differences. */
#include "rows.h"

#include <float.h>

#include "kernel/norm.h"
#include "kernel/ops.h"
#include "kernel/work.h"

static const double half = FLT_EPSILON / 2; /* the error of one rounding, relative */
static const double eps = 1e-5;
static const int shapes[][3] = {
    /* n, c, pixels; chunks of 128 pixels; the last two are large enough for two threads */
    {2, 1, 1},   {3, 16, 3},   {5, 17, 5},   {2, 33, 127},
    {3, 5, 128}, {4, 16, 129}, {6, 40, 260}, {33, 70, 9},
};
enum { SHAPES = sizeof shapes / sizeof *shapes };

/* ---- a whole layer ---- */

typedef struct layer {
    int n, c, pixels, size; /* size: samples of a group */
    fenced x, dy, weight, bias;
} layer;

static size_t row_of(const layer *l)
{
    return (size_t)(l->c + 15) / 16 * 16;
}

static size_t groups_of(const layer *l)
{
    return (size_t)((l->n + l->size - 1) / l->size);
}

static tutti_extent extent_of(const layer *l)
{
    return (tutti_extent){l->n, l->c, l->pixels};
}

static layer make_layer(const int shape[3], int size, double mean, double deviation)
{
    const double reach = deviation * sqrt(3); /* of a uniform distribution */
    layer l = {.n = shape[0], .c = shape[1], .pixels = shape[2], .size = size};
    l.x = random_activation(l.n, l.c, l.pixels, 1, mean - reach, mean + reach);
    l.dy = random_activation(l.n, l.c, l.pixels, 2, -1, 1);
    l.weight = random_activation(1, l.c, 1, 3, 0.5, 1.5);
    l.bias = random_activation(1, l.c, 1, 4, -1, 1);
    return l;
}

static void free_layer(layer *l)
{
    fenced_destroy(&l->x), fenced_destroy(&l->dy);
    fenced_destroy(&l->weight), fenced_destroy(&l->bias);
}

typedef struct results {
    fenced y, dx, dw, db;
    double *states, *sums; /* of each group */
} results;

static results make_results(const layer *l)
{
    const size_t row = row_of(l);
    return (results){.y = fenced_create(l->x.count),
                     .dx = fenced_create(l->x.count),
                     .dw = fenced_create(row),
                     .db = fenced_create(row),
                     .states = malloc(groups_of(l) * TUTTI_NORM_STATE * row * sizeof(double)),
                     .sums = malloc(groups_of(l) * 2 * row * sizeof(double))};
}

static void free_results(results *r)
{
    fenced_destroy(&r->y), fenced_destroy(&r->dx), fenced_destroy(&r->dw), fenced_destroy(&r->db);
    free(r->states), free(r->sums);
}

/* Joins the leaves of a group as workers do whose samples end at 'cut': roots first. */
static void join_group(tutti_exec exec, const layer *l, int first, bool moments, int cut,
                       const double *leaves, double *pair)
{
    const size_t each = tutti_norm_pair(l->c);
    const int samples = l->n - first < l->size ? l->n - first : l->size;
    const int ends[] = {cut < samples ? cut : samples, samples};
    const tutti_norm_tree tree = {samples, l->pixels, l->c, moments};
    tutti_norm_part parts[64], all[2 * TUTTI_TREE_MAX_ROOTS];
    double *roots = malloc(2 * TUTTI_TREE_MAX_ROOTS * each * sizeof *roots);
    int count = 0;
    for (int w = 0, at = 0; w < 2; at = ends[w++]) {
        tutti_subtree found[TUTTI_TREE_MAX_ROOTS];
        const int n = tutti_tree_roots(found, samples, at, ends[w]);
        for (int r = 0, leaf = at; r < n; r++, count++) {
            const int end = r + 1 < n ? found[r + 1].index << found[r + 1].level : ends[w];
            int m = 0;
            for (; leaf < end; leaf++, m++)
                parts[m] = (tutti_norm_part){{0, leaf}, leaves + (size_t)(first + leaf) * each};
            all[count] = (tutti_norm_part){found[r], roots + (size_t)count * each};
            tutti_norm_join(exec, &tree, parts, m, roots + (size_t)count * each);
        }
    }
    tutti_norm_join(exec, &tree, all, count, pair);
    free(roots);
}

static double values_of(const layer *l, int first)
{
    const int samples = l->n - first < l->size ? l->n - first : l->size;
    return (double)samples * l->pixels;
}

/* 'cut': where in a group another worker's samples begin. */
static void run_layer(tutti_exec exec, const layer *l, bool relu, bool gated, int cut, results *out)
{
    const size_t row = row_of(l), each = 2 * row;
    const tutti_norm norm = {l->c, eps, l->weight.data, l->bias.data};
    const tutti_norm_groups groups = {0, l->size};
    double *leaves = malloc((size_t)l->n * each * sizeof *leaves);
    float *rows = malloc(groups_of(l) * TUTTI_NORM_ROWS * row * sizeof *rows);
    tutti_norm_moments(exec, extent_of(l), l->x.data, leaves);
    for (int first = 0, g = 0; first < l->n; first += l->size, g++) {
        double *state = out->states + (size_t)g * TUTTI_NORM_STATE * row;
        join_group(exec, l, first, true, cut, leaves, state);
        tutti_norm_coefficients(&norm, values_of(l, first), state,
                                rows + (size_t)g * TUTTI_NORM_ROWS * row);
    }
    tutti_norm_forward(exec, extent_of(l), groups, rows, l->x.data, NULL, relu, out->y.data);
    tutti_norm_sums(exec, extent_of(l), groups, out->states, l->x.data, l->dy.data, leaves);
    for (int first = 0, g = 0; first < l->n; first += l->size, g++) {
        double *sums = out->sums + (size_t)g * each;
        join_group(exec, l, first, false, cut, leaves, sums);
        tutti_norm_back_coefficients(&norm, values_of(l, first),
                                     out->states + (size_t)g * TUTTI_NORM_STATE * row, sums,
                                     rows + (size_t)g * TUTTI_NORM_ROWS * row);
    }
    tutti_norm_backward(exec, extent_of(l), groups, rows, l->x.data, l->dy.data, gated,
                        out->dx.data);
    const int begin[] = {0, l->n / 2, l->n};
    tutti_norm_gradients(exec, l->c, groups, out->states, &(tutti_grains){2, begin}, leaves,
                         out->dw.data, out->db.data);
    free(leaves), free(rows);
}

/* ---- the definition ---- */

/* One channel of one group; where its value i is in the layer. */
typedef struct channel {
    const layer *l;
    int first, c;
    size_t values;
    double mean, variance, reach; /* reach: the largest distance from the mean */
    double sum, product;          /* of dy, of dy * (x - mean) */
    double sum_size, product_size;
} channel;

static size_t place(const channel *ch, size_t i)
{
    const size_t pixels = (size_t)ch->l->pixels, sample = (size_t)ch->first + i / pixels;
    return (sample * row_of(ch->l) + (size_t)ch->c / 16 * 16) * pixels + i % pixels * 16 +
           (size_t)ch->c % 16;
}

static channel define(const layer *l, int first, int c)
{
    channel ch = {.l = l, .first = first, .c = c, .values = (size_t)values_of(l, first)};
    for (size_t i = 0; i < ch.values; i++) ch.mean += (double)l->x.data[place(&ch, i)];
    ch.mean /= (double)ch.values;
    for (size_t i = 0; i < ch.values; i++) {
        const double d = (double)l->x.data[place(&ch, i)] - ch.mean;
        const double dy = (double)l->dy.data[place(&ch, i)];
        ch.variance += d * d / (double)ch.values;
        ch.reach = fmax(ch.reach, fabs(d));
        ch.sum += dy;
        ch.product += dy * d;
        ch.sum_size += fabs(dy);
        ch.product_size += fabs(dy * d);
    }
    return ch;
}

/* How far off each may be. A chunk adds 32 floats in a chain and joins 4: 36 roundings at most with
 * those of its distances, which are up to twice the reach from the chunk's own middle. */
static double mean_error(const channel *ch)
{
    return 36 * half * 2 * ch->reach;
}

static double inverse_error(const channel *ch) /* relative */
{
    return 36 * half * 4 * ch->reach * ch->reach / (2 * (ch->variance + eps));
}

static double distance_error(const channel *ch, double d)
{
    return mean_error(ch) + 3 * half * fabs(d);
}

static double sum_error(const channel *ch)
{
    return 36 * half * ch->sum_size;
}

static double product_error(const channel *ch)
{
    return 36 * half * ch->product_size + ch->sum_size * distance_error(ch, ch->reach);
}

static void check_value(const channel *ch, const char *what, double got, double want, double bound)
{
    if (fabs(got - want) <= bound) return;
    fail_msg("%s of channel %d, samples from %d on: %.9g, not %.9g by at most %.3g", what, ch->c,
             ch->first, got, want, bound);
}

static double check_forward(const channel *ch, const results *r)
{
    const double w = (double)ch->l->weight.data[ch->c], b = (double)ch->l->bias.data[ch->c];
    const double inverse = 1 / sqrt(ch->variance + eps);
    double worst = 0;
    for (size_t i = 0; i < ch->values; i++) {
        const double d = (double)ch->l->x.data[place(ch, i)] - ch->mean, scaled = w * d * inverse;
        const double bound = fabs(w) * inverse * distance_error(ch, d) +
                             fabs(scaled) * (inverse_error(ch) + 2 * half) +
                             half * fabs(scaled + b);
        const double got = (double)r->y.data[place(ch, i)];
        check_value(ch, "y", got, scaled + b, bound);
        worst = fmax(worst, fabs(got - scaled - b));
    }
    return worst;
}

static void check_backward(const channel *ch, const results *r)
{
    const double n = (double)ch->values, inverse = 1 / sqrt(ch->variance + eps);
    const double factor = (double)ch->l->weight.data[ch->c] * inverse;
    const double slope = factor * inverse * inverse / n; /* of d * product */
    for (size_t i = 0; i < ch->values; i++) {
        const double d = (double)ch->l->x.data[place(ch, i)] - ch->mean;
        const double dy = (double)ch->l->dy.data[place(ch, i)];
        const double want = factor * (dy - ch->sum / n) - slope * d * ch->product;
        const double size =
            fabs(factor) * (fabs(dy) + fabs(ch->sum) / n) + fabs(slope * d * ch->product);
        const double bound =
            (3 * inverse_error(ch) + 5 * half) * size + fabs(factor) * sum_error(ch) / n +
            fabs(slope * d) * product_error(ch) + fabs(slope * ch->product) * distance_error(ch, d);
        check_value(ch, "dx", (double)r->dx.data[place(ch, i)], want, bound);
    }
}

static void check_gradients(const layer *l, int c, const results *r)
{
    double dw = 0, db = 0, dw_error = 0, db_error = 0;
    channel ch = {0};
    for (int first = 0; first < l->n; first += l->size) {
        ch = define(l, first, c);
        const double inverse = 1 / sqrt(ch.variance + eps);
        dw += inverse * ch.product;
        db += ch.sum;
        dw_error +=
            inverse * (product_error(&ch) + ch.product_size * (inverse_error(&ch) + 3 * half));
        db_error += sum_error(&ch) + 3 * half * ch.sum_size;
    }
    check_value(&ch, "gradient of the weight", (double)r->dw.data[c], dw, dw_error);
    check_value(&ch, "gradient of the bias", (double)r->db.data[c], db, db_error);
}

static double check_definition(const layer *l, const results *r)
{
    double worst = 0;
    for (int c = 0; c < l->c; c++) {
        for (int first = 0; first < l->n; first += l->size) {
            const channel ch = define(l, first, c);
            worst = fmax(worst, check_forward(&ch, r));
            check_backward(&ch, r);
        }
        check_gradients(l, c, r);
    }
    for (size_t i = 0; i < l->x.count; i++)
        if (!is_channel(l->c, l->pixels, i)) assert_true(r->y.data[i] == 0 && r->dx.data[i] == 0);
    return worst;
}

/* ---- tests ---- */

static void check_layer(tutti_team *const teams[2], const layer *l)
{
    results first = make_results(l), other = make_results(l);
    for (run r = {0}; next_run(&r, teams);) {
        results *out = r.first ? &first : &other;
        run_layer(r.exec, l, false, false, r.first ? l->size : r.number + 1, out);
        if (r.first) check_definition(l, out);
        else {
            same_bits(&r, "y", &first.y, &other.y), same_bits(&r, "dx", &first.dx, &other.dx);
            same_bits(&r, "dw", &first.dw, &other.dw), same_bits(&r, "db", &first.db, &other.db);
        }
    }
    free_results(&first), free_results(&other);
}

static void any_group_is_the_definition(void **state)
{
    for (int i = 0; i < SHAPES; i++)
        for (int size = 1; size <= shapes[i][0]; size++) {
            if (size * shapes[i][2] == 1) continue;
            layer l = make_layer(shapes[i], size, 0.5, 1);
            check_layer(*state, &l);
            free_layer(&l);
        }
}

/* However a group is cut into two workers' samples. */
static void bits_do_not_depend_on_who_has_which_samples(void **state)
{
    tutti_team *const *teams = *state;
    enum { N = 23 };
    layer l = make_layer((int[]){N, 19, 7}, N, 0.5, 1);
    const tutti_exec exec = {tutti_kernel_table[0], teams[0]};
    results want = make_results(&l), got = make_results(&l);
    run_layer(exec, &l, false, false, N, &want);
    for (int cut = 1; cut < N; cut++) {
        run_layer(exec, &l, false, false, cut, &got);
        assert_memory_equal(got.y.data, want.y.data, want.y.count * sizeof(float));
        assert_memory_equal(got.dx.data, want.dx.data, want.dx.count * sizeof(float));
    }
    free_results(&want), free_results(&got), free_layer(&l);
}

/* The bound knows nothing of the mean: it must not cost a digit. */
static void a_large_mean_costs_no_digits(void **state)
{
    tutti_team *const *teams = *state;
    const double means[] = {0, 1, 1000};
    for (int i = 0; i < 3; i++) {
        layer l = make_layer((int[]){4, 16, 56 * 56}, 4, means[i], 1);
        results r = make_results(&l);
        run_layer((tutti_exec){tutti_kernel_table[0], teams[1]}, &l, false, false, 4, &r);
        printf("mean %g, deviation 1: y is off by at most %.3g\n", means[i],
               check_definition(&l, &r));
        free_results(&r), free_layer(&l);
    }
}

static void relu_and_gate_are_applied(void **state)
{
    tutti_team *const *teams = *state;
    layer l = make_layer(shapes[2], 2, 0, 1);
    for (run r = {0}; next_run(&r, teams);) {
        results plain = make_results(&l), gated = make_results(&l);
        run_layer(r.exec, &l, false, false, 2, &plain);
        run_layer(r.exec, &l, true, true, 2, &gated);
        for (size_t i = 0; i < l.x.count; i++) {
            assert_true(gated.y.data[i] == fmaxf(plain.y.data[i], 0));
            assert_true(gated.dx.data[i] == (l.x.data[i] > 0 ? plain.dx.data[i] : 0));
        }
        free_results(&plain), free_results(&gated);
    }
    free_layer(&l);
}

static void given_statistics_are_used(void **state)
{
    tutti_team *const *teams = *state;
    layer l = make_layer(shapes[2], 5, 0, 1);
    fenced mean = random_activation(1, l.c, 1, 7, -1, 1);
    fenced variance = random_activation(1, l.c, 1, 8, 0.5, 2);
    fenced y = fenced_create(l.x.count);
    float rows[TUTTI_NORM_ROWS * 32];
    const tutti_norm norm = {l.c, eps, l.weight.data, l.bias.data};
    tutti_norm_given(&norm, mean.data, variance.data, rows);
    tutti_norm_forward((tutti_exec){tutti_kernel_table[0], teams[0]}, extent_of(&l),
                       (tutti_norm_groups){0, l.n}, rows, l.x.data, NULL, false, y.data);
    for (size_t i = 0; i < l.x.count; i++) {
        if (!is_channel(l.c, l.pixels, i)) continue;
        const size_t c = i / 16 / (size_t)l.pixels % 2 * 16 + i % 16;
        const double d = (double)l.x.data[i] - (double)mean.data[c];
        const double scaled = (double)l.weight.data[c] * d / sqrt((double)variance.data[c] + eps);
        const double want = scaled + (double)l.bias.data[c];
        assert_true(fabs((double)y.data[i] - want) <= half * (4 * fabs(scaled) + fabs(want)));
    }
    fenced_destroy(&mean), fenced_destroy(&variance), fenced_destroy(&y), free_layer(&l);
}

/* A sum in the same pass has the bits of one after it. */
static void a_sum_may_be_fused(void **state)
{
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        layer l = make_layer(shapes[i], 2, 0.5, 1);
        const size_t row = row_of(&l);
        const tutti_norm norm = {l.c, eps, l.weight.data, l.bias.data};
        float *rows = malloc(TUTTI_NORM_ROWS * row * sizeof *rows);
        fenced y = fenced_create(l.x.count), want = fenced_create(l.x.count);
        tutti_norm_given(&norm, l.bias.data, l.weight.data, rows);
        for (run r = {0}; next_run(&r, *state);)
            for (int relu = 0; relu < 2; relu++) {
                const tutti_norm_groups all = {0, l.n};
                tutti_norm_forward(r.exec, extent_of(&l), all, rows, l.x.data, NULL, false,
                                   want.data);
                tutti_add(r.exec, l.x.count, want.data, l.dy.data, relu, want.data);
                tutti_norm_forward(r.exec, extent_of(&l), all, rows, l.x.data, l.dy.data, relu,
                                   y.data);
                same_bits(&r, "y", &want, &y);
            }
        fenced_destroy(&y), fenced_destroy(&want), free_layer(&l), free(rows);
    }
}

/* The definition's gradient by differences of its own forward pass. */
static double loss_of(const channel *ch, size_t moved, double by)
{
    double mean = 0, variance = 0, loss = 0;
    const double n = (double)ch->values;
    for (size_t i = 0; i < ch->values; i++)
        mean += ((double)ch->l->x.data[place(ch, i)] + (i == moved ? by : 0)) / n;
    for (size_t i = 0; i < ch->values; i++) {
        const double x = (double)ch->l->x.data[place(ch, i)] + (i == moved ? by : 0);
        variance += (x - mean) * (x - mean) / n;
    }
    for (size_t i = 0; i < ch->values; i++) {
        const double x = (double)ch->l->x.data[place(ch, i)] + (i == moved ? by : 0);
        loss += (double)ch->l->dy.data[place(ch, i)] * (x - mean) / sqrt(variance + eps);
    }
    return loss;
}

static void the_definition_has_the_right_gradient(void **state)
{
    (void)state;
    layer l = make_layer((int[]){4, 3, 5}, 4, 1, 1);
    const double step = 1e-5;
    for (int c = 0; c < l.c; c++) {
        const channel ch = define(&l, 0, c);
        const double n = (double)ch.values, inverse = 1 / sqrt(ch.variance + eps);
        for (size_t i = 0; i < ch.values; i++) {
            const double d = (double)l.x.data[place(&ch, i)] - ch.mean;
            const double dy = (double)l.dy.data[place(&ch, i)];
            const double want =
                inverse * (dy - ch.sum / n - d * inverse * inverse * ch.product / n);
            const double got = (loss_of(&ch, i, step) - loss_of(&ch, i, -step)) / (2 * step);
            /* third derivatives are some inverse^3, rounding some 2^-52 / step */
            assert_true(fabs(got - want) < 1e2 * step * step + 1e2 * DBL_EPSILON / step);
        }
    }
    free_layer(&l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_group_is_the_definition),
        cmocka_unit_test(bits_do_not_depend_on_who_has_which_samples),
        cmocka_unit_test(a_large_mean_costs_no_digits),
        cmocka_unit_test(relu_and_gate_are_applied),
        cmocka_unit_test(given_statistics_are_used),
        cmocka_unit_test(a_sum_may_be_fused),
        cmocka_unit_test(the_definition_has_the_right_gradient),
    };
    return cmocka_run_group_tests(tests, create_teams, destroy_teams);
}
