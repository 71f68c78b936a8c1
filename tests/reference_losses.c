/* Losses: what each makes of a sample's outputs and its target, and the gradient by them. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "made_targets.h"
#include "reference_kinds.h"

enum { EXP_ERROR = 4 }; /* units in the last place of an exponential or a logarithm */

/* ---- softmax, of one pixel or of each ---- */

typedef struct row {
    const value *x;
    int pixel;
} row;

static size_t place(const row *r, int c)
{
    return (size_t)c * (size_t)(r->x->h * r->x->w) + (size_t)r->pixel;
}

/* Returns log(sum of exp(x - max)); p are the probabilities, *spread is max - min. */
static double softmax(const row *r, double *max, double *p, double *spread)
{
    double sum = 0, min = INFINITY;
    *max = -INFINITY;
    for (int c = 0; c < r->x->c; c++) {
        *max = fmax(*max, r->x->v[place(r, c)]);
        min = fmin(min, r->x->v[place(r, c)]);
    }
    *spread = *max - min;
    for (int c = 0; c < r->x->c; c++) sum += p[c] = exp(r->x->v[place(r, c)] - *max);
    for (int c = 0; c < r->x->c; c++) p[c] /= sum;
    return log(sum);
}

static double row_loss(const row *r, int label, double *variance)
{
    double max, spread, *p = calloc((size_t)r->x->c, sizeof *p);
    const double log_sum = softmax(r, &max, p, &spread);
    *variance += square((EXP_ERROR + r->x->c) * U * (1 + log_sum + spread + fabs(max)));
    for (int c = 0; c < r->x->c; c++)
        *variance += square(p[c] - (c == label)) * r->x->v_error[place(r, c)];
    free(p);
    return log_sum - (r->x->v[place(r, label)] - max);
}

static void row_backward(value *x, int pixel, int label, double scale)
{
    const row r = {x, pixel};
    double max, spread, all = 0, *p = calloc((size_t)x->c, sizeof *p);
    (void)softmax(&r, &max, p, &spread);
    for (int c = 0; c < x->c; c++) all += square(p[c]) * x->v_error[place(&r, c)];
    for (int c = 0; c < x->c; c++) {
        const double own = x->v_error[place(&r, c)], others = all - square(p[c]) * own;
        const double error = square(p[c]) * (square(1 - p[c]) * own + others +
                                             square((2 * EXP_ERROR + x->c + spread) * U));
        const double d = p[c] - (c == label);
        add_d(x, place(&r, c), scale * d, square(scale) * (error + of_sum(2, d)));
    }
    free(p);
}

static int label_of(const reference_loss *l, const value *x, const reference_sample *s, int pixel)
{
    return made_class(s->place, l->target, pixel, x->c, x->h * x->w);
}

static double softmax_loss(const reference_loss *l, const value *x, const reference_sample *s,
                           double *variance)
{
    double sum = 0;
    for (int p = 0; p < x->h * x->w; p++) {
        const int label = label_of(l, x, s, p);
        if (label >= 0) sum += row_loss(&(row){x, p}, label, variance);
    }
    *variance += square(U * sum);
    return sum;
}

/* Models alone divide by all pixels of the minibatch. */
static void softmax_backward(const reference_loss *l, value *x, const reference_sample *s)
{
    const double pixels = x->h * x->w;
    for (int p = 0; p < x->h * x->w; p++) {
        const int label = label_of(l, x, s, p);
        if (label >= 0) row_backward(x, p, label, l->weight / (s->batch * pixels));
    }
}

/* ---- values ---- */

static bool is(const reference_loss *l, const char *word)
{
    return !strcmp(l->word, word);
}

static double target_of(const reference_loss *l, const value *x, const reference_sample *s,
                        size_t i)
{
    const int pixels = x->h * x->w, c = (int)i / pixels, p = (int)i % pixels;
    return is(l, "bce") ? made_share(s->place, l->target, c, p)
                        : made_value(s->place, l->target, c, p);
}

static double factor_of(const reference_loss *l)
{
    return is(l, "huber") && l->smooth ? 1 / l->delta : 1;
}

/* Of output x and target t: the loss; *slope its derivative, *size that of what was added up. */
static double value_loss(const reference_loss *l, double x, double t, double *slope, double *size)
{
    const double e = x - t, m = fmin(fabs(e), l->delta);
    *size = fabs(x) + fabs(t) + 1;
    if (is(l, "mse")) return *slope = 2 * e, e * e;
    if (is(l, "l1")) return *slope = (e > 0) - (e < 0), fabs(e);
    if (is(l, "huber")) return *slope = copysign(m, e), m * (fabs(e) - m / 2);
    *slope = 1 / (1 + exp(-x)) - t;
    return fmax(x, 0) - x * t + log1p(exp(-fabs(x)));
}

static double values_loss(const reference_loss *l, const value *x, const reference_sample *s,
                          double *variance)
{
    const size_t count = value_count(x);
    double sum = 0, errors = 0;
    for (size_t i = 0; i < count; i++) {
        double slope, size;
        sum += value_loss(l, x->v[i], target_of(l, x, s, i), &slope, &size);
        errors +=
            square(slope) * x->v_error[i] + square(4 * EXP_ERROR * U * size * (1 + fabs(slope)));
    }
    const double factor = factor_of(l) / (double)count;
    *variance += square(factor) * errors + square(2 * U * factor * sum);
    return factor * sum;
}

/* How much the slope may change within the error of x. */
static double slope_error(const reference_loss *l, double x, double t, double x_error)
{
    const double within = REFERENCE_DEVIATIONS * sqrt(x_error) + U * (fabs(x) + fabs(t));
    if (is(l, "l1")) return fabs(x - t) <= within ? 4 : 0;
    const double steep = is(l, "mse") ? 2 : is(l, "huber") ? 1 : 0.25;
    return square(steep) * x_error;
}

static void values_backward(const reference_loss *l, value *x, const reference_sample *s)
{
    const double scale = factor_of(l) * l->weight / ((double)s->batch * (double)value_count(x));
    for (size_t i = 0; i < value_count(x); i++) {
        double slope, size;
        const double t = target_of(l, x, s, i);
        (void)value_loss(l, x->v[i], t, &slope, &size);
        const double error = slope_error(l, x->v[i], t, x->v_error[i]) +
                             square(4 * U * (fabs(slope) + (is(l, "bce") ? 1 : 0)));
        add_d(x, i, scale * slope, square(scale) * error);
    }
}

/* ---- any ---- */

static bool is_of_classes(const reference_loss *l)
{
    return is(l, "softmax") || is(l, "pixelsoftmax");
}

double loss_of(const reference_loss *l, const value *x, const reference_sample *s, double *variance)
{
    *variance = 0;
    return (is_of_classes(l) ? softmax_loss : values_loss)(l, x, s, variance);
}

void loss_backward(const reference_loss *l, value *x, const reference_sample *s)
{
    (is_of_classes(l) ? softmax_backward : values_backward)(l, x, s);
}
