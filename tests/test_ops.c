/* Dropout, local response normalisation and softmax: every row and one or two threads against the
 * definition in double and against each other; gradients by finite differences. */
#include "rows.h"

#include <float.h>

#include "kernel/ops.h"
#include "kernel/ref_ops.h"
#include "kernel/work.h"

static const double half = FLT_EPSILON / 2; /* the error of one rounding, relative */
static const int shapes[][3] = {
    /* n, c, pixels; the last two are large enough for two threads */
    {1, 1, 1},  {2, 16, 3},  {3, 17, 5},   {1, 33, 9},
    {2, 96, 7}, {5, 100, 1}, {3, 40, 130}, {2, 64, 177},
};
enum { SHAPES = sizeof shapes / sizeof *shapes };

/* ---- dropout ---- */

static void check_dropout(tutti_team *const teams[2], const tutti_dropout *d, const int shape[3])
{
    const int n = shape[0], c = shape[1], pixels = shape[2];
    fenced x = random_activation(n, c, pixels, 1, -1.0, 1.0), y = fenced_create(x.count);
    fenced mask = random_activation(n, c, pixels, 2, -1.0, 1.0);
    fenced first = fenced_create(x.count);
    const double numbers = floor((double)d->rate * 65536.0 + 0.5); /* of 65536 that drop */
    const float factor = (float)(65536.0 / (65536.0 - numbers));
    const size_t sample = x.count / (size_t)n;
    for (int masked = 0; masked < 2; masked++)
        for (run r = {0}; next_run(&r, teams);) {
            fenced *out = r.first ? &first : &y;
            if (masked)
                tutti_dropout_backward(r.exec, d, (tutti_extent){n, c, pixels}, x.data, mask.data,
                                       out->data);
            else tutti_dropout_forward(r.exec, d, (tutti_extent){n, c, pixels}, x.data, out->data);
            if (!r.first) {
                same_bits(&r, "dropout", &first, &y);
                continue;
            }
            for (size_t i = 0; i < x.count; i++) {
                const size_t e = (size_t)d->first_block * (size_t)pixels * 16 + i % sample;
                bool stays = tutti_ref_dropout_keeps(d, (int)(i / sample), e);
                if (masked && mask.data[i] <= 0.0f) stays = false;
                assert_true(first.data[i] == (stays ? factor * x.data[i] : 0.0f));
            }
        }
    fenced_destroy(&x), fenced_destroy(&y), fenced_destroy(&mask), fenced_destroy(&first);
}

static void dropout_draws_the_same_numbers(void **state)
{
    const tutti_random_key key = {0x123456789abcdefu, TUTTI_RANDOM_DROPOUT, 7, 1000, 77};
    const tutti_dropout kinds[] = {{0.5f, key, 0}, {0.0f, key, 0}, {0.3f, key, 3}, {0.9f, key, 1}};
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
        for (int i = 0; i < SHAPES; i++) check_dropout(*state, &kinds[k], shapes[i]);
}

/* Channels 32.. of a layer on a rank of their own are dropped as on the rank that has all. */
static void dropout_does_not_depend_on_the_split(void **state)
{
    tutti_team *const *teams = *state;
    enum { C = 80, PIXELS = 5, FIRST = 2, FLOATS = C * PIXELS };
    const tutti_random_key key = {9, TUTTI_RANDOM_DROPOUT, 1, 2, 3};
    const tutti_dropout all = {0.5f, key, 0}, part = {0.5f, key, FIRST};
    fenced x = random_activation(1, C, PIXELS, 3, 1.0, 2.0), y = fenced_create(FLOATS);
    fenced z = fenced_create(FLOATS - FIRST * 16 * PIXELS);
    for (run r = {0}; next_run(&r, teams);) {
        tutti_dropout_forward(r.exec, &all, (tutti_extent){1, C, PIXELS}, x.data, y.data);
        tutti_dropout_forward(r.exec, &part, (tutti_extent){1, C - FIRST * 16, PIXELS},
                              x.data + FIRST * 16 * PIXELS, z.data);
        assert_memory_equal(z.data, y.data + FIRST * 16 * PIXELS, z.count * sizeof(float));
    }
    fenced_destroy(&x), fenced_destroy(&y), fenced_destroy(&z);
}

static void dropout_keeps_its_share(void **state)
{
    (void)state;
    enum { N = 1 << 16 };
    const tutti_dropout d = {0.3f, {.seed = 5, .purpose = TUTTI_RANDOM_DROPOUT}, 0};
    int kept = 0;
    for (size_t e = 0; e < N; e++) kept += tutti_ref_dropout_keeps(&d, 0, e);
    /* the standard deviation is sqrt(N * 0.3 * 0.7) = 117 */
    assert_in_range(kept, (int)(0.7 * N) - 5 * 117, (int)(0.7 * N) + 5 * 117);
}

/* ---- local response normalisation ---- */

static const tutti_lrn lrns[] = {
    {5, 1e-4f, 0.75f, 2.0f}, {5, 1.0f, 0.75f, 1.0f}, {3, 0.5f, 0.5f, 1.0f},
    {4, 2.0f, 1.25f, 0.5f},  {1, 1.0f, 0.75f, 1.0f}, {33, 3.0f, 0.75f, 1.0f},
};
enum { LRNS = sizeof lrns / sizeof *lrns };

/* Relative error of scale^-power. Of the scale: its size+3 roundings, all terms positive. The power
 * -3/4: 2.3 ulp. Any other: of the scale's logarithm 0.9 ulp and the error of the scale; the
 * product rounds; the exponential: 1.1 ulp. */
static double power_error(const tutti_lrn *lrn, double scale, double power)
{
    const double logarithm = fabs(log(scale)), of_scale = (lrn->size + 3) * half;
    if (lrn->beta == 0.75f) return power * of_scale + 4.6 * half;
    return power * (of_scale + 1.8 * half * logarithm) + half * power * logarithm + 2.2 * half;
}

/* The largest scale there can be for x in [-1, 1]; its logarithm bounds every other where k >= 1,
 * and k itself where it is less. */
static double worst_error(const tutti_lrn *lrn, double power)
{
    const double high = power_error(lrn, (double)lrn->k + (double)lrn->alpha, power);
    return fmax(high, power_error(lrn, (double)lrn->k, power));
}

static void check_lrn_forward(tutti_team *const teams[2], const tutti_lrn *lrn, const int shape[3])
{
    const int n = shape[0], c = shape[1], pixels = shape[2];
    fenced x = random_activation(n, c, pixels, 1, -1.0, 1.0), y = fenced_create(x.count);
    fenced first = fenced_create(x.count);
    double *xd = as_double(&x), *want = as_double(&x), *bound = as_double(&x);
    tutti_ref_lrn_forward(lrn, n, c, pixels, xd, want);
    const double relative = worst_error(lrn, (double)lrn->beta) + half;
    for (size_t i = 0; i < x.count; i++) bound[i] = 1.001 * relative * fabs(want[i]);
    for (run r = {0}; next_run(&r, teams);) {
        tutti_lrn_forward(r.exec, lrn, (tutti_extent){n, c, pixels}, x.data,
                          r.first ? first.data : y.data);
        if (r.first) within("lrn", x.count, first.data, want, bound);
        else same_bits(&r, "lrn", &first, &y);
    }
    free(xd), free(want), free(bound);
    fenced_destroy(&x), fenced_destroy(&y), fenced_destroy(&first);
}

static void lrn_is_the_definition(void **state)
{
    for (int l = 0; l < LRNS; l++)
        for (int i = 0; i < SHAPES; i++) check_lrn_forward(*state, &lrns[l], shapes[i]);
}

/* The sum of the magnitudes of the terms of dx: with -alpha in the formula all are positive where
 * x and dy are, so the definition itself adds them. */
static double *lrn_magnitudes(const tutti_lrn *lrn, int n, int c, int pixels, const double *x,
                              const double *dy, size_t count)
{
    double *magnitude = calloc(count + 1, sizeof *magnitude),
           *plain = calloc(count + 1, sizeof *plain);
    double *ax = calloc(count + 1, sizeof *ax), *ady = calloc(count + 1, sizeof *ady);
    for (size_t i = 0; i < count; i++) ax[i] = fabs(x[i]), ady[i] = fabs(dy[i]);
    tutti_ref_lrn_backward(lrn, n, c, pixels, ax, ady, magnitude); /* direct - indirect */
    tutti_ref_lrn_forward(lrn, n, c, pixels, ax, plain);           /* |x| scale^-beta */
    for (size_t i = 0; i < count; i++) {
        const double direct = ax[i] > 0.0 ? ady[i] * plain[i] / ax[i] : 0.0;
        magnitude[i] = direct + (direct - magnitude[i]);
    }
    free(plain), free(ax), free(ady);
    return magnitude;
}

static void check_lrn_backward(tutti_team *const teams[2], const tutti_lrn *lrn, const int shape[3])
{
    const int n = shape[0], c = shape[1], pixels = shape[2];
    fenced x = random_activation(n, c, pixels, 1, -1.0, 1.0), dx = fenced_create(x.count);
    fenced dy = random_activation(n, c, pixels, 2, -1.0, 1.0), first = fenced_create(x.count);
    double *xd = as_double(&x), *dyd = as_double(&dy), *want = as_double(&x);
    tutti_ref_lrn_backward(lrn, n, c, pixels, xd, dyd, want);
    double *bound = lrn_magnitudes(lrn, n, c, pixels, xd, dyd, x.count);
    /* q: power, the scale's inverse (5 ulp) and error, two products; the sum of q; the last ones */
    const double relative = worst_error(lrn, (double)lrn->beta) + (2 * lrn->size + 18) * half;
    for (size_t i = 0; i < x.count; i++) bound[i] *= 1.001 * relative;
    for (int masked = 0; masked < 2; masked++) {
        for (size_t i = 0; masked && i < x.count; i++) want[i] = x.data[i] <= 0.0f ? 0.0 : want[i];
        for (run r = {0}; next_run(&r, teams);) {
            tutti_lrn_backward(r.exec, lrn, (tutti_extent){n, c, pixels}, x.data, dy.data,
                               masked ? x.data : NULL, r.first ? first.data : dx.data);
            if (r.first) within("lrn backward", x.count, first.data, want, bound);
            else same_bits(&r, "lrn backward", &first, &dx);
        }
    }
    free(xd), free(dyd), free(want), free(bound);
    fenced_destroy(&x), fenced_destroy(&dy), fenced_destroy(&dx), fenced_destroy(&first);
}

static void lrn_backward_is_the_definition(void **state)
{
    for (int l = 0; l < LRNS; l++)
        for (int i = 0; i < SHAPES; i++) check_lrn_backward(*state, &lrns[l], shapes[i]);
}

/* d(sum of g*y)/dx by central differences of the definition. */
static void lrn_gradient_agrees_with_finite_differences(void **state)
{
    (void)state;
    enum { N = 1, C = 20, PIXELS = 2 };
    const double h = 1e-5;
    fenced xf = random_activation(N, C, PIXELS, 1, -1.0, 1.0);
    fenced gf = random_activation(N, C, PIXELS, 2, -1.0, 1.0);
    double *x = as_double(&xf), *g = as_double(&gf), *y = as_double(&xf), *dx = as_double(&xf);
    for (int l = 0; l < LRNS; l++) {
        tutti_ref_lrn_backward(&lrns[l], N, C, PIXELS, x, g, dx);
        for (size_t i = 0; i < xf.count; i++) {
            double difference = 0.0;
            for (int side = -1; side <= 1 && is_channel(C, PIXELS, i); side += 2) {
                x[i] = (double)xf.data[i] + side * h;
                tutti_ref_lrn_forward(&lrns[l], N, C, PIXELS, x, y);
                for (size_t j = 0; j < xf.count; j++) difference += side * g[j] * y[j] / (2 * h);
            }
            x[i] = (double)xf.data[i];
            assert_true(fabs(difference - dx[i]) < 1e-7);
        }
    }
    free(x), free(g), free(y), free(dx);
    fenced_destroy(&xf), fenced_destroy(&gf);
}

/* ---- softmax ---- */

static const int tables[][2] = {{1, 1}, {3, 2}, {4, 10}, {2, 16}, {5, 17}, {3, 47}, {20, 1000}};
enum { TABLES = sizeof tables / sizeof *tables };

static int32_t *random_labels(int n, int classes)
{
    int32_t *labels = malloc((size_t)n * sizeof *labels);
    const tutti_random_key key = {.seed = 3, .purpose = TUTTI_RANDOM_SYNTHETIC};
    for (int i = 0; i < n; i++)
        labels[i] = (int32_t)tutti_random_below(&key, (uint64_t)i, (uint32_t)classes);
    return labels;
}

/* Scores in [-span, span], NaN where a row only fills up. */
static fenced random_scores(int n, int classes, double span)
{
    fenced x = random_activation(n, classes, 1, 4, -span, span);
    for (size_t i = 0; i < x.count; i++)
        if (!is_channel(classes, 1, i)) x.data[i] = NAN;
    return x;
}

/* x - max rounds (<= 2 span), exp has 1.1 ulp, the sum of positive terms has classes/16 + 5
 * roundings, its inverse and the product one each. */
static double softmax_error(int classes, double span)
{
    const double term = 2.0 * span * half + 2.2 * half;
    return 2.0 * term + (classes / 16 + 7) * half;
}

static void check_softmax(tutti_team *const teams[2], int n, int classes, double span)
{
    fenced x = random_scores(n, classes, span), p = fenced_create(x.count);
    fenced first = fenced_create(x.count), loss = fenced_create((size_t)n);
    fenced first_loss = fenced_create((size_t)n);
    int32_t *labels = random_labels(n, classes);
    double *xd = as_double(&x), *want = as_double(&x), *bound = as_double(&x);
    double *want_loss = calloc((size_t)n, sizeof *want_loss),
           *bound_loss = calloc((size_t)n, sizeof *want_loss);
    tutti_ref_softmax(n, classes, xd, labels, want, want_loss);
    const double relative = softmax_error(classes, span);
    for (size_t i = 0; i < x.count; i++) bound[i] = 1.001 * relative * want[i] + FLT_MIN;
    for (int i = 0; i < n; i++) /* error of the sum; log, score - max and difference round */
        bound_loss[i] = relative + half * (2.0 * log(classes) + 4.0 * span + fabs(want_loss[i]));
    for (run r = {0}; next_run(&r, teams);) {
        tutti_softmax(r.exec, (tutti_extent){n, classes, 1}, x.data, labels,
                      r.first ? first.data : p.data, r.first ? first_loss.data : loss.data);
        if (r.first) {
            within("softmax", x.count, first.data, want, bound);
            within("loss", (size_t)n, first_loss.data, want_loss, bound_loss);
            continue;
        }
        same_bits(&r, "loss", &first_loss, &loss);
        same_bits(&r, "softmax", &first, &p);
        memcpy(p.data, x.data, x.count * sizeof(float)); /* in place, without labels */
        tutti_softmax(r.exec, (tutti_extent){n, classes, 1}, p.data, NULL, p.data, NULL);
        same_bits(&r, "softmax in place", &first, &p);
    }
    free(labels), free(xd), free(want), free(bound), free(want_loss), free(bound_loss);
    fenced_destroy(&x), fenced_destroy(&p), fenced_destroy(&first), fenced_destroy(&loss);
    fenced_destroy(&first_loss);
}

static void softmax_is_the_definition(void **state)
{
    const double spans[] = {1.0, 30.0, 1000.0};
    for (int t = 0; t < TABLES; t++)
        for (int s = 0; s < 3; s++) check_softmax(*state, tables[t][0], tables[t][1], spans[s]);
}

static void check_softmax_backward(tutti_team *const teams[2], int n, int classes)
{
    fenced p = random_activation(n, classes, 1, 5, 0.0, 1.0), dx = fenced_create(p.count);
    fenced first = fenced_create(p.count);
    int32_t *labels = random_labels(n, classes);
    double *pd = as_double(&p), *want = as_double(&p), *bound = as_double(&p);
    const float scale = 1.0f / 48.0f;
    tutti_ref_softmax_backward(n, classes, pd, labels, (double)scale, want);
    for (size_t i = 0; i < p.count; i++) bound[i] = 2.01 * half * fabs(want[i]);
    for (run r = {0}; next_run(&r, teams);) {
        tutti_softmax_backward(r.exec, (tutti_extent){n, classes, 1}, p.data, labels, scale,
                               r.first ? first.data : dx.data);
        if (r.first) {
            within("softmax backward", p.count, first.data, want, bound);
            continue;
        }
        same_bits(&r, "softmax backward", &first, &dx);
        memcpy(dx.data, p.data, p.count * sizeof(float));
        tutti_softmax_backward(r.exec, (tutti_extent){n, classes, 1}, dx.data, labels, scale,
                               dx.data);
        same_bits(&r, "softmax backward in place", &first, &dx);
    }
    free(labels), free(pd), free(want), free(bound);
    fenced_destroy(&p), fenced_destroy(&dx), fenced_destroy(&first);
}

static void softmax_backward_is_the_definition(void **state)
{
    for (int t = 0; t < TABLES; t++) check_softmax_backward(*state, tables[t][0], tables[t][1]);
}

static void softmax_gradient_agrees_with_finite_differences(void **state)
{
    (void)state;
    enum { CLASSES = 5 };
    const double h = 1e-6, start[16] = {0.3, -1.2, 2.0, 0.7, 0.1};
    const int32_t label = 3;
    double x[16], p[16], dx[16], loss;
    memcpy(x, start, sizeof x);
    tutti_ref_softmax(1, CLASSES, x, &label, p, &loss);
    tutti_ref_softmax_backward(1, CLASSES, p, &label, 1.0, dx);
    for (int i = 0; i < CLASSES; i++) {
        double difference = 0.0;
        for (int side = -1; side <= 1; side += 2) {
            x[i] = start[i] + side * h;
            tutti_ref_softmax(1, CLASSES, x, &label, p, &loss);
            difference += side * loss / (2 * h);
        }
        x[i] = start[i];
        assert_true(fabs(difference - dx[i]) < 1e-8);
    }
}

static void slopes_agree_with_finite_differences(void **state)
{
    (void)state;
    const double h = 1e-6;
    for (double x = -4.0; x < 4.0; x += 0.37) {
        const double s = (tutti_ref_sigmoid(x + h) - tutti_ref_sigmoid(x - h)) / (2 * h);
        const double t = (tanh(x + h) - tanh(x - h)) / (2 * h);
        assert_true(fabs(s - tutti_ref_sigmoid_slope(tutti_ref_sigmoid(x))) < 1e-9);
        assert_true(fabs(t - tutti_ref_tanh_slope(tanh(x))) < 1e-9);
    }
}

static void a_nan_makes_its_row_nan_and_no_other(void **state)
{
    tutti_team *const *teams = *state;
    for (run r = {0}; next_run(&r, teams);) {
        fenced x = random_activation(2, 20, 1, 6, -1.0, 1.0), p = fenced_create(x.count);
        const int32_t labels[2] = {4, 19};
        float loss[2];
        x.data[7] = NAN;
        tutti_softmax(r.exec, (tutti_extent){2, 20, 1}, x.data, labels, p.data, loss);
        assert_true(isnan(loss[0]) && isfinite(loss[1]));
        for (size_t i = 0; i < x.count; i++) {
            if (is_channel(20, 1, i)) assert_true(isnan(p.data[i]) == (i < 32));
            else assert_true(p.data[i] == 0.0f);
        }
        fenced_destroy(&x), fenced_destroy(&p);
    }
}

/* So large that results bypass the caches: the bits are those of one sample at a time, whose
 * results do not. */
static void large_softmax_has_the_bits_of_single_samples(void **state)
{
    enum { N = 4200, CLASSES = 1000, WIDTH = 1008 };
    assert_true(N * WIDTH >= TUTTI_STREAMED);
    fenced x = random_scores(N, CLASSES, 30.0), p = fenced_create(x.count);
    fenced dx = fenced_create(x.count), one = fenced_create(WIDTH), loss = fenced_create(N);
    int32_t *labels = random_labels(N, CLASSES);
    for (run r = {0}; next_run(&r, *state);) {
        tutti_softmax(r.exec, (tutti_extent){N, CLASSES, 1}, x.data, labels, p.data, loss.data);
        tutti_softmax_backward(r.exec, (tutti_extent){N, CLASSES, 1}, p.data, labels, 0.125f,
                               dx.data);
        for (size_t i = 0; i < N; i++) {
            float single;
            tutti_softmax((tutti_exec){r.exec.row, NULL}, (tutti_extent){1, CLASSES, 1},
                          x.data + i * WIDTH, labels + i, one.data, &single);
            assert_true(single == loss.data[i]);
            assert_memory_equal(one.data, p.data + i * WIDTH, WIDTH * sizeof(float));
            tutti_softmax_backward((tutti_exec){r.exec.row, NULL}, (tutti_extent){1, CLASSES, 1},
                                   one.data, labels + i, 0.125f, one.data);
            assert_memory_equal(one.data, dx.data + i * WIDTH, WIDTH * sizeof(float));
        }
    }
    free(labels);
    fenced_destroy(&x), fenced_destroy(&p), fenced_destroy(&dx), fenced_destroy(&one);
    fenced_destroy(&loss);
}

static void large_lrn_has_the_bits_of_single_samples(void **state)
{
    enum { N = 16, C = 64, PIXELS = 4096, SAMPLE = C * PIXELS };
    assert_true(N * SAMPLE >= TUTTI_STREAMED);
    fenced x = random_activation(N, C, PIXELS, 1, -1.0, 1.0), y = fenced_create(x.count);
    fenced dx = fenced_create(x.count), one = fenced_create(SAMPLE);
    for (run r = {0}; next_run(&r, *state);) {
        tutti_lrn_forward(r.exec, &lrns[1], (tutti_extent){N, C, PIXELS}, x.data, y.data);
        tutti_lrn_backward(r.exec, &lrns[1], (tutti_extent){N, C, PIXELS}, x.data, y.data, NULL,
                           dx.data);
        for (size_t at = 0; at < x.count; at += SAMPLE) {
            tutti_lrn_forward((tutti_exec){r.exec.row, NULL}, &lrns[1],
                              (tutti_extent){1, C, PIXELS}, x.data + at, one.data);
            assert_memory_equal(one.data, y.data + at, SAMPLE * sizeof(float));
            tutti_lrn_backward((tutti_exec){r.exec.row, NULL}, &lrns[1],
                               (tutti_extent){1, C, PIXELS}, x.data + at, y.data + at, NULL,
                               one.data);
            assert_memory_equal(one.data, dx.data + at, SAMPLE * sizeof(float));
        }
    }
    fenced_destroy(&x), fenced_destroy(&y), fenced_destroy(&dx), fenced_destroy(&one);
}

static void ranks_count_who_is_above(void **state)
{
    tutti_team *const *teams = *state;
    float x[5][16] = {
        {3, 1, 2, 2, 0}, {3, 1, 2, 2, 0}, {1, 1, 1, 1, 1}, {NAN, 5, 0, 0, 0}, {0, NAN}};
    for (int i = 0; i < 5; i++)
        for (int j = 5; j < 16; j++) x[i][j] = 100.0f; /* only fills up */
    const int32_t labels[5] = {0, 3, 2, 1, 1}, want[5] = {0, 2, 2, 1, 5};
    for (run r = {0}; next_run(&r, teams);) {
        int32_t rank[5];
        tutti_label_rank(r.exec.team, (tutti_extent){5, 5, 1}, x[0], labels, rank);
        assert_memory_equal(rank, want, sizeof want);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(dropout_draws_the_same_numbers),
        cmocka_unit_test(dropout_does_not_depend_on_the_split),
        cmocka_unit_test(dropout_keeps_its_share),
        cmocka_unit_test(lrn_is_the_definition),
        cmocka_unit_test(lrn_backward_is_the_definition),
        cmocka_unit_test(lrn_gradient_agrees_with_finite_differences),
        cmocka_unit_test(softmax_is_the_definition),
        cmocka_unit_test(softmax_backward_is_the_definition),
        cmocka_unit_test(softmax_gradient_agrees_with_finite_differences),
        cmocka_unit_test(slopes_agree_with_finite_differences),
        cmocka_unit_test(a_nan_makes_its_row_nan_and_no_other),
        cmocka_unit_test(large_softmax_has_the_bits_of_single_samples),
        cmocka_unit_test(large_lrn_has_the_bits_of_single_samples),
        cmocka_unit_test(ranks_count_who_is_above),
    };
    return cmocka_run_group_tests(tests, create_teams, destroy_teams);
}
