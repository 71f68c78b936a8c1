/* Normalisation within a sample: every row and one or two threads against the definition in double
 * and against each other, whatever the mean; the definition by finite differences. */
#include "rows.h"

#include <float.h>

#include "kernel/group_norm.h"
#include "kernel/norm.h"
#include "kernel/pixel_norm.h"
#include "kernel/ref_norm.h"
#include "kernel/value_norm.h"

static const double half = FLT_EPSILON / 2; /* the error of one rounding, relative */
static const double eps = 1e-5;
static const int shapes[][3] = {
    /* n, c, pixels; tiles of 32 pixels, chunks of 128; the last ones are enough for two threads */
    {2, 1, 3},  {3, 16, 1},   {2, 17, 5},   {1, 32, 31},   {2, 48, 32},
    {3, 6, 33}, {1, 130, 65}, {5, 100, 49}, {2, 200, 129}, {4, 1000, 1},
};
enum { SHAPES = sizeof shapes / sizeof *shapes };

/* ---- a layer ---- */

typedef struct layer {
    tutti_ref_norm norm; /* what it is */
    fenced x, dy, weight, bias;
} layer;

typedef struct results {
    fenced y, dx, dw, db;
} results;

static tutti_extent extent_of(const layer *l)
{
    return (tutti_extent){l->norm.n, l->norm.c, l->norm.pixels};
}

static layer make_layer(tutti_ref_norm norm, double mean)
{
    const double reach = sqrt(3); /* of a uniform distribution of deviation 1 */
    const int each = norm.each_value ? norm.pixels : 1;
    layer l = {.norm = norm};
    l.norm.eps = eps;
    l.x = random_activation(norm.n, norm.c, norm.pixels, 1, mean - reach, mean + reach);
    l.dy = random_activation(norm.n, norm.c, norm.pixels, 2, -1, 1);
    l.weight = random_activation(1, norm.c, each, 3, 0.5, 1.5);
    l.bias = random_activation(1, norm.c, each, 4, -1, 1);
    return l;
}

static void free_layer(layer *l)
{
    fenced_destroy(&l->x), fenced_destroy(&l->dy);
    fenced_destroy(&l->weight), fenced_destroy(&l->bias);
}

static results make_results(const layer *l)
{
    return (results){fenced_create(l->x.count), fenced_create(l->x.count),
                     fenced_create(l->weight.count), fenced_create(l->weight.count)};
}

static void free_results(results *r)
{
    fenced_destroy(&r->y), fenced_destroy(&r->dx), fenced_destroy(&r->dw), fenced_destroy(&r->db);
}

/* ---- running it, forward and backward ---- */

typedef void layer_fn(tutti_exec exec, const layer *l, const tutti_grains *grains, bool gated,
                      results *out);

static void run_pixels(tutti_exec exec, const layer *l, const tutti_grains *grains, bool gated,
                       results *out)
{
    const tutti_extent extent = extent_of(l);
    const tutti_pixel_norm norm = {l->norm.eps, l->weight.data, l->bias.data};
    const size_t n = (size_t)extent.n, row = tutti_pixel_row(extent);
    fenced rows = fenced_create(n * TUTTI_PIXEL_ROWS * row), other = fenced_create(l->x.count);
    double *leaves = malloc(n * tutti_norm_pair(extent.c) * sizeof *leaves);
    tutti_pixel_norm_forward(exec, extent, &norm, l->x.data, rows.data, out->y.data);
    tutti_pixel_norm_forward(exec, extent, &norm, l->x.data, NULL, other.data);
    assert_memory_equal(other.data, out->y.data, other.count * sizeof(float));
    tutti_pixel_norm_gradients(exec, extent, grains, rows.data, l->x.data, l->dy.data, leaves,
                               out->dw.data, out->db.data);
    tutti_pixel_norm_backward(exec, extent, &norm, rows.data, l->x.data, l->dy.data, gated,
                              out->dx.data);
    fenced_destroy(&rows), fenced_destroy(&other), free(leaves);
}

static void run_groups(tutti_exec exec, const layer *l, const tutti_grains *grains, bool gated,
                       results *out)
{
    const tutti_extent extent = extent_of(l);
    const tutti_group_norm norm = {l->norm.groups, l->norm.eps, l->weight.data, l->bias.data};
    const tutti_norm_groups samples = tutti_group_norm_samples();
    const size_t n = (size_t)extent.n, pair = tutti_norm_pair(extent.c), row = pair / 2;
    double *leaves = malloc(n * pair * sizeof *leaves);
    double *states = malloc(n * TUTTI_NORM_STATE * row * sizeof *states);
    float *rows = malloc(n * TUTTI_NORM_ROWS * row * sizeof *rows);
    tutti_norm_moments(exec, extent, l->x.data, leaves);
    tutti_group_norm_coefficients(exec, extent, &norm, leaves, states, rows);
    tutti_norm_forward(exec, extent, samples, rows, l->x.data, NULL, false, out->y.data);
    tutti_norm_sums(exec, extent, samples, states, l->x.data, l->dy.data, leaves);
    tutti_norm_gradients(exec, extent.c, samples, states, grains, leaves, out->dw.data,
                         out->db.data);
    tutti_group_norm_back_coefficients(exec, extent, &norm, states, leaves, rows);
    tutti_norm_backward(exec, extent, samples, rows, l->x.data, l->dy.data, gated, out->dx.data);
    free(leaves), free(states), free(rows);
}

static void run_values(tutti_exec exec, const layer *l, const tutti_grains *grains, bool gated,
                       results *out)
{
    const tutti_extent extent = extent_of(l);
    const tutti_group_norm group = {.groups = 1, .eps = l->norm.eps};
    const tutti_value_norm norm = {l->weight.data, l->bias.data};
    const size_t n = (size_t)extent.n, pair = tutti_norm_pair(extent.c), row = pair / 2;
    double *leaves = malloc(n * pair * sizeof *leaves);
    double *states = malloc(n * TUTTI_NORM_STATE * row * sizeof *states);
    float *rows = malloc(n * TUTTI_NORM_ROWS * row * sizeof *rows);
    tutti_norm_moments(exec, extent, l->x.data, leaves);
    tutti_group_norm_coefficients(exec, extent, &group, leaves, states, rows);
    tutti_value_norm_forward(exec, extent, &norm, rows, l->x.data, out->y.data);
    tutti_value_norm_sums(exec, extent, &norm, states, l->x.data, l->dy.data, leaves);
    tutti_value_norm_gradients(exec, extent, grains, states, l->x.data, l->dy.data, out->dw.data,
                               out->db.data);
    tutti_group_norm_back_coefficients(exec, extent, &group, states, leaves, rows);
    tutti_value_norm_backward(exec, extent, &norm, rows, l->x.data, l->dy.data, gated,
                              out->dx.data);
    free(leaves), free(states), free(rows);
}

/* ---- the definition ---- */

/* [n][c/16][pixels][16] to [n][c][pixels] in double. */
static double *plain_of(const fenced *a, int n, int c, int pixels)
{
    const tutti_extent extent = {n, c, pixels};
    double *to = malloc(((size_t)n * (size_t)c * (size_t)pixels + 1) * sizeof *to);
    for (size_t i = 0; i < a->count; i++) {
        const size_t block = i / tutti_extent_plane(extent), blocks = tutti_channel_blocks(c);
        const size_t channel = block % blocks * 16 + i % 16, sample = block / blocks;
        if (channel < (size_t)c)
            to[(sample * (size_t)c + channel) * (size_t)pixels + i / 16 % (size_t)pixels] =
                (double)a->data[i];
        else assert_true(a->data[i] == 0);
    }
    return to;
}

typedef struct numbers {
    double *x, *dy, *weight, *bias, *y, *dx, *dw, *db;
} numbers;

static double *zeros(size_t count)
{
    return calloc(count + 1, sizeof(double));
}

static numbers define(layer *l)
{
    tutti_ref_norm *norm = &l->norm;
    const int each = norm->each_value ? norm->pixels : 1;
    const size_t weights = (size_t)norm->c * (size_t)each;
    const size_t count = (size_t)norm->n * (size_t)norm->c * (size_t)norm->pixels;
    numbers d = {plain_of(&l->x, norm->n, norm->c, norm->pixels),
                 plain_of(&l->dy, norm->n, norm->c, norm->pixels),
                 plain_of(&l->weight, 1, norm->c, each),
                 plain_of(&l->bias, 1, norm->c, each),
                 zeros(count),
                 zeros(count),
                 zeros(weights),
                 zeros(weights)};
    norm->weight = d.weight, norm->bias = d.bias;
    tutti_ref_norm_forward(norm, d.x, d.y);
    tutti_ref_norm_backward(norm, d.x, d.dy, d.dx, d.dw, d.db);
    return d;
}

static void free_numbers(numbers *d)
{
    double *const all[] = {d->x, d->dy, d->weight, d->bias, d->y, d->dx, d->dw, d->db};
    for (int i = 0; i < 8; i++) free(all[i]);
}

/* ---- bounds: a sum of k terms, in whatever order, is off by at most k roundings of the sum of
 * their absolute values; of chains that are joined, k is the length of the longest ---- */

static double roundings(const layer *l)
{
    const double blocks = ceil(l->norm.c / 16.0), chain = 32 + 4; /* of a chunk, norm.h */
    return 8 + (l->norm.each_pixel ? blocks + 4 : chain);
}

/* Distances are taken from a middle that is itself off by some roundings of x. */
static double reach_of(const layer *l, const tutti_ref_norm_set *s)
{
    return s->reach + roundings(l) * half * (fabs(s->mean) + s->reach);
}

static double inverse_error(const layer *l, const tutti_ref_norm_set *s) /* relative */
{
    const double reach = reach_of(l, s);
    return roundings(l) * half * 4 * reach * reach / (2 * (s->variance + eps)) + 8 * half;
}

/* Of a normalised value, d being its distance from the mean. */
static double away_error(const layer *l, const tutti_ref_norm_set *s, double d)
{
    return s->inverse * (roundings(l) * half * 2 * reach_of(l, s) + fabs(d) * inverse_error(l, s));
}

static void check(const char *what, size_t at, double got, double want, double bound)
{
    if (!(fabs(got - want) <= bound))
        fail_msg("%s of %zu: %.9g, not %.9g by at most %.3g", what, at, got, want, bound);
}

/* Errors that the gradients' sums have collected. */
typedef struct gradient_errors {
    double *dw, *db;
} gradient_errors;

static double check_set(const layer *l, const numbers *d, size_t set, const double *y,
                        const double *dx, gradient_errors errors)
{
    const tutti_ref_norm_set s = tutti_ref_norm_measure(&l->norm, set, d->x);
    const double k = roundings(l) * half, n = (double)s.count, worst_away = s.reach * s.inverse;
    double sum = 0, worst = 0;
    for (size_t i = 0; i < s.count; i++) {
        const size_t at = tutti_ref_norm_place(&l->norm, set, i);
        const double w = d->weight[tutti_ref_norm_weight(&l->norm, at)];
        sum += fabs(d->dy[at] * w) / n;
    }
    for (size_t i = 0; i < s.count; i++) {
        const size_t at = tutti_ref_norm_place(&l->norm, set, i);
        const size_t which = tutti_ref_norm_weight(&l->norm, at);
        const double w = fabs(d->weight[which]), away = fabs(d->x[at] - s.mean) * s.inverse;
        const double off = away_error(l, &s, d->x[at] - s.mean), g = fabs(d->dy[at] * w);
        const double most = away_error(l, &s, s.reach);
        check("y", at, y[at], d->y[at], w * (off + 2 * half * away) + half * fabs(d->y[at]));
        worst = fmax(worst, fabs(y[at] - d->y[at]));
        const double size = g + sum + away * sum * worst_away;
        const double product = k * sum * worst_away + sum * most; /* the mean of g * away is off */
        check("dx", at, dx[at], d->dx[at],
              s.inverse * (size * (3 * inverse_error(l, &s) + k) + away * product +
                           off * sum * worst_away));
        errors.dw[which] += fabs(d->dy[at]) * (off + 44 * half * away);
        errors.db[which] += fabs(d->dy[at]) * 44 * half;
    }
    return worst;
}

static double check_definition(layer *l, const results *r)
{
    const tutti_ref_norm *norm = &l->norm;
    const int each = norm->each_value ? norm->pixels : 1;
    const size_t weights = (size_t)norm->c * (size_t)each;
    numbers d = define(l);
    double *y = plain_of(&r->y, norm->n, norm->c, norm->pixels), worst = 0;
    double *dx = plain_of(&r->dx, norm->n, norm->c, norm->pixels);
    double *dw = plain_of(&r->dw, 1, norm->c, each), *db = plain_of(&r->db, 1, norm->c, each);
    const gradient_errors errors = {zeros(weights), zeros(weights)};
    for (size_t set = 0; set < tutti_ref_norm_sets(norm); set++)
        worst = fmax(worst, check_set(l, &d, set, y, dx, errors));
    for (size_t i = 0; i < weights; i++) {
        check("gradient of the weight", i, dw[i], d.dw[i], errors.dw[i]);
        check("gradient of the bias", i, db[i], d.db[i], errors.db[i]);
    }
    free(y), free(dx), free(dw), free(db), free(errors.dw), free(errors.db), free_numbers(&d);
    return worst;
}

/* ---- tests ---- */

static void check_layer(tutti_team *const teams[2], layer_fn *run_layer, layer *l)
{
    const int begin[] = {0, l->norm.n / 2, l->norm.n};
    const tutti_grains grains = {2, begin};
    results first = make_results(l), other = make_results(l);
    for (run r = {0}; next_run(&r, teams);) {
        run_layer(r.exec, l, &grains, false, r.first ? &first : &other);
        if (r.first) {
            check_definition(l, &first);
            continue;
        }
        same_bits(&r, "y", &first.y, &other.y), same_bits(&r, "dx", &first.dx, &other.dx);
        same_bits(&r, "dw", &first.dw, &other.dw), same_bits(&r, "db", &first.db, &other.db);
    }
    free_results(&first), free_results(&other);
}

/* What is normalised together, and who does it. */
static const struct {
    const char *name;
    layer_fn *run;
    int groups;
    bool each_pixel, each_value;
} manners[] = {
    {"channels of a pixel", run_pixels, 1, true, false},
    {"all channels", run_groups, 1, false, false},
    {"two groups", run_groups, 2, false, false},
    {"three groups", run_groups, 3, false, false},
    {"all values", run_values, 1, false, true},
};
enum { MANNERS = sizeof manners / sizeof *manners };

static layer make_manner(int i, int n, int c, int pixels, double mean)
{
    return make_layer((tutti_ref_norm){.n = n,
                                       .c = c,
                                       .pixels = pixels,
                                       .groups = manners[i].groups,
                                       .each_pixel = manners[i].each_pixel,
                                       .each_value = manners[i].each_value},
                      mean);
}

static void any_shape_is_the_definition(void **state)
{
    for (int i = 0; i < SHAPES * MANNERS; i++) {
        const int *shape = shapes[i / MANNERS], manner = i % MANNERS;
        if (shape[1] % manners[manner].groups) continue;
        layer l = make_manner(manner, shape[0], shape[1], shape[2], 0.5);
        check_layer(*state, manners[manner].run, &l);
        free_layer(&l);
    }
}

/* The bound hardly knows the mean: it must not cost digits. */
static void a_large_mean_costs_no_digits(void **state)
{
    tutti_team *const *teams = *state;
    const double means[] = {0, 1, 1000};
    for (int i = 0; i < 3 * MANNERS; i++) {
        layer l = make_manner(i / 3, 2, 96, 196, means[i % 3]);
        results r = make_results(&l);
        manners[i / 3].run((tutti_exec){tutti_kernel_table[0], teams[1]}, &l,
                           &(tutti_grains){1, (int[]){0, 2}}, false, &r);
        printf("%s, mean %g, deviation 1: y is off by at most %.3g\n", manners[i / 3].name,
               means[i % 3], check_definition(&l, &r));
        free_results(&r), free_layer(&l);
    }
}

static void gates_are_applied(void **state)
{
    tutti_team *const *teams = *state;
    const tutti_grains grains = {1, (int[]){0, 3}};
    for (int i = 0; i < MANNERS; i++) {
        layer l = make_manner(i, 3, 24, 37, 0);
        for (run r = {0}; next_run(&r, teams);) {
            results plain = make_results(&l), gated = make_results(&l);
            manners[i].run(r.exec, &l, &grains, false, &plain);
            manners[i].run(r.exec, &l, &grains, true, &gated);
            for (size_t k = 0; k < l.x.count; k++)
                assert_true(gated.dx.data[k] == (l.x.data[k] > 0 ? plain.dx.data[k] : 0));
            free_results(&plain), free_results(&gated);
        }
        free_layer(&l);
    }
}

/* What fills up a block stays zero; the NaN of a pixel stays in its pixel, of a group in that. */
static void nan_stays_where_it_is(void **state)
{
    tutti_team *const *teams = *state;
    const tutti_grains grains = {1, (int[]){0, 2}};
    for (int i = 0; i < MANNERS; i++) {
        layer l = make_manner(i, 2, 24, 5, 0);
        results r = make_results(&l);
        l.x.data[3] = NAN;
        manners[i].run((tutti_exec){tutti_kernel_table[0], teams[0]}, &l, &grains, false, &r);
        assert_true(isnan(r.y.data[3]));
        for (size_t k = 0; k < l.x.count; k++) {
            if (!is_channel(24, 5, k)) assert_true(r.y.data[k] == 0 && r.dx.data[k] == 0);
            if (k >= l.x.count / 2) assert_false(isnan(r.y.data[k]));
        }
        free_results(&r), free_layer(&l);
    }
}

static double loss_of(const tutti_ref_norm *norm, const double *x, const double *dy, double *y)
{
    const size_t count = (size_t)norm->n * (size_t)norm->c * (size_t)norm->pixels;
    double loss = 0;
    tutti_ref_norm_forward(norm, x, y);
    for (size_t i = 0; i < count; i++) loss += y[i] * dy[i];
    return loss;
}

/* The difference of the loss when a number moves both ways, against its derivative. */
static void check_derivative(const tutti_ref_norm *norm, numbers *d, double *moved, double want)
{
    const double step = 1e-5, was = *moved;
    *moved = was + step;
    const double above = loss_of(norm, d->x, d->dy, d->y);
    *moved = was - step;
    const double got = (above - loss_of(norm, d->x, d->dy, d->y)) / (2 * step);
    *moved = was;
    /* third derivatives are some inverse^3, rounding some 2^-52 / step */
    assert_true(fabs(got - want) < 1e2 * step * step + 1e3 * DBL_EPSILON / step);
}

static void the_definition_has_the_right_gradient(void **state)
{
    const tutti_ref_norm norms[] = {
        {.n = 2, .c = 6, .pixels = 3, .groups = 1, .each_pixel = true},
        {.n = 2, .c = 6, .pixels = 3, .groups = 2},
        {.n = 2, .c = 5, .pixels = 3, .groups = 1, .each_value = true},
    };
    (void)state;
    for (int k = 0; k < 3; k++) {
        layer l = make_layer(norms[k], 1);
        numbers d = define(&l);
        const size_t count = (size_t)(l.norm.n * l.norm.c * l.norm.pixels);
        const size_t weights = (size_t)(l.norm.c * (l.norm.each_value ? l.norm.pixels : 1));
        for (size_t i = 0; i < count; i++) check_derivative(&l.norm, &d, &d.x[i], d.dx[i]);
        for (size_t i = 0; i < weights; i++) {
            check_derivative(&l.norm, &d, &d.weight[i], d.dw[i]);
            check_derivative(&l.norm, &d, &d.bias[i], d.db[i]);
        }
        free_numbers(&d), free_layer(&l);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_shape_is_the_definition),
        cmocka_unit_test(a_large_mean_costs_no_digits),
        cmocka_unit_test(gates_are_applied),
        cmocka_unit_test(nan_stays_where_it_is),
        cmocka_unit_test(the_definition_has_the_right_gradient),
    };
    return cmocka_run_group_tests(tests, create_teams, destroy_teams);
}
