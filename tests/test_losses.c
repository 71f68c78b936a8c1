/* Losses of values and of pixels against their definitions in double, on every row, one and two
 * threads, for channels that fill blocks and that do not; the same bits everywhere. */
#include "rows.h"

#include <float.h>

#include "base/memory.h"
#include "base/target.h"
#include "kernel/pixel_softmax.h"
#include "kernel/value_loss.h"

static const double half = FLT_EPSILON / 2; /* the error of one rounding, relative */

static const tutti_extent extents[] = {{1, 1, 1},  {3, 2, 1},   {2, 16, 1},   {2, 17, 35},
                                       {1, 3, 63}, {2, 33, 10}, {3, 1, 1000}, {2, 48, 257}};
enum { EXTENTS = sizeof extents / sizeof *extents };

/* ---- values ---- */

/* The loss of one value; *slope is its derivative, *error how far off it may be. */
static double value_of(tutti_value_loss loss, double x, double t, double delta, double *slope,
                       double *error)
{
    const double e = x - t, m = fmin(fabs(e), delta);
    *error = 4 * half * (e * e + fabs(e));
    switch (loss) {
    case TUTTI_LOSS_SQUARED: return *slope = 2 * e, e * e;
    case TUTTI_LOSS_ABSOLUTE: return *slope = (e > 0) - (e < 0), fabs(e);
    case TUTTI_LOSS_HUBER: return *slope = copysign(m, e), m * (fabs(e) - m / 2);
    default: break;
    }
    *slope = 1 / (1 + exp(-x)) - t;
    *error = 4 * half * (fabs(x) + fabs(x * t) + 1);
    return fmax(x, 0) - x * t + log1p(exp(-fabs(x)));
}

typedef struct values {
    tutti_extent extent;
    tutti_value_loss loss;
    fenced x, t, y, dx, losses;
} values;

static values make_values(tutti_extent extent, tutti_value_loss loss)
{
    values v = {.extent = extent, .loss = loss};
    const bool crossed = loss == TUTTI_LOSS_CROSSED;
    v.x = random_activation(extent.n, extent.c, extent.pixels, 1, -30, 30);
    v.t = random_activation(extent.n, extent.c, extent.pixels, 2, crossed ? 0 : -30,
                            crossed ? 1 : 30);
    v.y = fenced_create(v.x.count), v.dx = fenced_create(v.x.count);
    v.losses = fenced_create((size_t)extent.n);
    for (size_t i = 0; i < v.x.count; i += 3) v.x.data[i] *= 0.01f;
    for (size_t i = 0; i < v.x.count; i += 7) v.x.data[i] = v.t.data[i];
    for (size_t i = 0; i < v.x.count; i++) /* what the backward pass gets */
        v.y.data[i] = !is_channel(extent.c, extent.pixels, i) ? 0
                      : crossed ? (float)(1 / (1 + exp(-(double)v.x.data[i])))
                                : v.x.data[i];
    return v;
}

static void destroy_values(values *v)
{
    fenced_destroy(&v->x), fenced_destroy(&v->t), fenced_destroy(&v->y);
    fenced_destroy(&v->dx), fenced_destroy(&v->losses);
}

static void compare_values(const values *v, float delta, float scale)
{
    const size_t each = tutti_extent_sample(v->extent);
    const double count = (double)v->extent.c * v->extent.pixels;
    for (size_t i = 0; i < (size_t)v->extent.n; i++) {
        double sum = 0, bound = 0;
        for (size_t k = i * each; k < (i + 1) * each; k++) {
            double slope = 0, error = 0;
            const bool is = is_channel(v->extent.c, v->extent.pixels, k);
            const double x = (double)v->x.data[k], t = (double)v->t.data[k];
            if (is) sum += value_of(v->loss, x, t, (double)delta, &slope, &error);
            bound += error;
            const double want = (double)scale * slope;
            assert_true(fabs((double)v->dx.data[k] - want) <=
                        8 * half * (double)scale * (fabs(slope) + (is ? 1 : 0)));
        }
        assert_true(fabs((double)v->losses.data[i] - sum / count) <=
                    bound / count + half * fabs(sum / count));
    }
}

static void check_values(tutti_team *const teams[2], values *v, float delta)
{
    const float scale = 1.0f / 7;
    void *scratch = malloc(tutti_value_loss_scratch(v->extent));
    fenced losses = fenced_create(v->losses.count), dx = fenced_create(v->dx.count);
    for (run r = {0}; next_run(&r, teams);) {
        tutti_value_losses(r.exec, v->loss, v->extent, delta, v->x.data, v->t.data, scratch,
                           v->losses.data);
        tutti_value_backward(r.exec, v->loss, v->extent, delta, scale, v->y.data, v->t.data,
                             v->dx.data);
        if (r.first) {
            compare_values(v, delta, scale);
            memcpy(losses.data, v->losses.data, losses.count * sizeof(float));
            memcpy(dx.data, v->dx.data, dx.count * sizeof(float));
        }
        assert_memory_equal(losses.data, v->losses.data, losses.count * sizeof(float));
        assert_memory_equal(dx.data, v->dx.data, dx.count * sizeof(float));
    }
    fenced_destroy(&losses), fenced_destroy(&dx);
    free(scratch);
}

static void values_have_the_losses_of_the_definition(void **state)
{
    tutti_team *const *teams = *state;
    for (int i = 0; i < EXTENTS; i++)
        for (int loss = TUTTI_LOSS_SQUARED; loss <= TUTTI_LOSS_CROSSED; loss++) {
            values v = make_values(extents[i], (tutti_value_loss)loss);
            check_values(teams, &v, i % 2 ? 1 : 0.25f);
            destroy_values(&v);
        }
}

/* ---- pixels ---- */

enum { MOST_CLASSES = 48, MOST_PIXELS = 3000 };

typedef struct pixels {
    tutti_extent extent;
    fenced x, p, dx;
    int32_t labels[MOST_PIXELS];
    float weights[MOST_CLASSES];
    tutti_targets targets;
    float losses[3];
    int32_t counted[3], wrong[3];
} pixels;

static size_t place(tutti_extent extent, size_t pixel, int c)
{
    const size_t each = (size_t)extent.pixels, sample = pixel / each;
    return sample * tutti_extent_sample(extent) + ((size_t)c / 16 * each + pixel % each) * 16 +
           (size_t)c % 16;
}

static void make_pixels(pixels *q, tutti_extent extent, bool weighted, double smoothing)
{
    const tutti_random_key key = {.seed = 5, .purpose = TUTTI_RANDOM_SYNTHETIC};
    *q = (pixels){.extent = extent,
                  .x = random_activation(extent.n, extent.c, extent.pixels, 4, -9, 9)};
    q->p = fenced_create(q->x.count), q->dx = fenced_create(q->x.count);
    for (int i = 0; i < extent.n * extent.pixels; i++)
        q->labels[i] = i % 4 == 1
                           ? TUTTI_IGNORED
                           : (int32_t)tutti_random_below(&key, (uint64_t)i, (uint32_t)extent.c);
    for (int c = 0; c < extent.c; c++)
        q->weights[c] = (float)(0.1 + 3 * tutti_random_uniform(&key, (uint64_t)(5000 + c)));
    q->targets = (tutti_targets){
        .labels = q->labels, .weights = weighted ? q->weights : NULL, .smoothing = smoothing};
}

/* One pixel: its loss; checks its gradient. */
static double compare_pixel(const pixels *q, size_t i, double scale, bool *wrong)
{
    double sum = 0, top = -1e9, loss = 0, all = 0;
    const tutti_targets *t = &q->targets;
    const int classes = q->extent.c, label = q->labels[i];
    double goal[MOST_CLASSES];
    for (int c = 0; c < classes; c++) {
        const double w = t->weights ? (double)t->weights[c] : 1;
        goal[c] = w * (t->smoothing / classes + (c == label ? 1 - t->smoothing : 0));
        all += goal[c];
        top = fmax(top, (double)q->x.data[place(q->extent, i, c)]);
    }
    *wrong = (double)q->x.data[place(q->extent, i, label)] < top;
    for (int c = 0; c < classes; c++) sum += exp((double)q->x.data[place(q->extent, i, c)] - top);
    for (int c = 0; c < classes; c++) {
        const double x = (double)q->x.data[place(q->extent, i, c)];
        loss += goal[c] * (log(sum) + top - x);
        const double want = scale * (exp(x - top) / sum * all - goal[c]);
        assert_true(fabs((double)q->dx.data[place(q->extent, i, c)] - want) <= 4e-6 * scale * all);
    }
    return loss;
}

static void compare_pixels(const pixels *q, double scale)
{
    const size_t each = (size_t)q->extent.pixels;
    for (size_t s = 0; s < (size_t)q->extent.n; s++) {
        double loss = 0;
        int counted = 0, wrong = 0;
        for (size_t i = s * each; i < (s + 1) * each; i++) {
            bool is_wrong = false;
            if (q->labels[i] == TUTTI_IGNORED) continue;
            loss += compare_pixel(q, i, scale, &is_wrong);
            counted++;
            wrong += is_wrong;
        }
        assert_true(fabs((double)q->losses[s] - loss) <= 4e-6 * (counted + fabs(loss)));
        assert_int_equal(q->counted[s], counted);
        assert_int_equal(q->wrong[s], wrong);
    }
}

/* Nothing flows to what is ignored, or only fills up. */
static void compare_nothing(const pixels *q)
{
    const int width = tutti_ceil_div(q->extent.c, 16) * 16;
    for (size_t i = 0; i < (size_t)(q->extent.n * q->extent.pixels); i++)
        for (int c = q->labels[i] == TUTTI_IGNORED ? 0 : q->extent.c; c < width; c++)
            assert_true(q->dx.data[place(q->extent, i, c)] == 0);
}

static void check_pixels(tutti_team *const teams[2], pixels *q)
{
    const double scale = 1.0 / 7;
    void *scratch = malloc(tutti_pixel_softmax_scratch(q->extent));
    fenced dx = fenced_create(q->dx.count);
    float losses[3];
    const tutti_pixels_found found = {q->losses, q->counted, q->wrong};
    for (run r = {0}; next_run(&r, teams);) {
        tutti_pixel_softmax(r.exec, q->extent, q->x.data, &q->targets, scratch, q->p.data, &found);
        tutti_pixel_softmax_backward(r.exec, q->extent, q->p.data, &q->targets, scale, q->dx.data);
        if (r.first) {
            compare_pixels(q, scale);
            compare_nothing(q);
            memcpy(dx.data, q->dx.data, dx.count * sizeof(float));
            memcpy(losses, q->losses, sizeof losses);
        }
        assert_memory_equal(dx.data, q->dx.data, dx.count * sizeof(float));
        assert_memory_equal(losses, q->losses, sizeof losses);
        tutti_pixel_softmax_backward(r.exec, q->extent, q->p.data, &q->targets, scale, q->p.data);
        assert_memory_equal(dx.data, q->p.data, dx.count * sizeof(float));
    }
    fenced_destroy(&dx);
    free(scratch);
}

static void pixels_have_the_losses_of_the_definition(void **state)
{
    static pixels q;
    tutti_team *const *teams = *state;
    for (int i = 0; i < EXTENTS; i++)
        for (int how = 0; how < 4; how++) {
            make_pixels(&q, extents[i], how & 1, how & 2 ? 0.1 : 0);
            check_pixels(teams, &q);
            fenced_destroy(&q.x), fenced_destroy(&q.p), fenced_destroy(&q.dx);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_have_the_losses_of_the_definition),
        cmocka_unit_test(pixels_have_the_losses_of_the_definition),
    };
    return cmocka_run_group_tests(tests, create_teams, destroy_teams);
}
