/* What makes images larger: transposed convolution, upsample. */
#include "reference_kinds.h"

#include <math.h>
#include <stdlib.h>

static size_t pixels_of(const value *x)
{
    return (size_t)(x->h * x->w);
}

/* The largest value of a channel: errors may be as large as neighbours make them (Winograd). */
static double largest(const value *x, const double *v, int c)
{
    double most = 0;
    for (size_t i = 0; i < pixels_of(x); i++)
        most = fmax(most, fabs(v[(size_t)c * pixels_of(x) + i]));
    return most;
}

/* ---- transposed convolution: y[k][h s + r] += x[c][h] * weight[c][k][r] ---- */

void shape_deconv(op *o, const value *const *in, value *out)
{
    const int size[2] = {in[0]->h, in[0]->w};
    int *const result[2] = {&out->h, &out->w};
    for (int i = 0; i < 2; i++) {
        if (!o->stride[i]) o->stride[i] = 1;
        if (o->pad_end[i] < 0) o->pad_end[i] = o->pad[i];
        *result[i] = (size[i] - 1) * o->stride[i] - o->pad[i] - o->pad_end[i] +
                     o->dilation[i] * (o->kernel[i] - 1) + o->output_pad[i] + 1;
    }
    out->c = o->features;
}

/* Where a product is: value i of x, value o of y, weight p. */
typedef void product_fn(const work *w, size_t i, size_t o, size_t p, double *d, double *error);

/* All products of input channel c with the weights to one output channel, p being the first. */
static void pair_products(const work *w, int c, int k, size_t p, product_fn *does, double *d,
                          double *error)
{
    const op *o = w->o;
    const value *x = w->in[0], *y = w->out;
    for (int i = 0; i < x->h * x->w; i++)
        for (int tap = 0; tap < o->kernel[0] * o->kernel[1]; tap++) {
            const int h = i / x->w * o->stride[0] - o->pad[0] + tap / o->kernel[1] * o->dilation[0];
            const int v = i % x->w * o->stride[1] - o->pad[1] + tap % o->kernel[1] * o->dilation[1];
            if (h >= 0 && v >= 0 && h < y->h && v < y->w)
                does(w, (size_t)c * pixels_of(x) + (size_t)i,
                     (size_t)k * pixels_of(y) + (size_t)(h * y->w + v), p + (size_t)tap, d, error);
        }
}

static void all_products(const work *w, product_fn *does, double *d, double *error)
{
    const op *o = w->o;
    const int channels = w->in[0]->c / o->groups, features = w->out->c / o->groups;
    const size_t taps = (size_t)(o->kernel[0] * o->kernel[1]);
    for (int c = 0; c < w->in[0]->c; c++)
        for (int k = 0; k < features; k++)
            pair_products(w, c, c / channels * features + k, (size_t)(c * features + k) * taps,
                          does, d, error);
}

/* Sums of |weight| between input channel c and output channel k of its group. */
static double kernel_size(const work *w, int c, int k)
{
    const int taps = w->o->kernel[0] * w->o->kernel[1], features = w->out->c / w->o->groups;
    double sum = 0;
    for (int i = 0; i < taps; i++) sum += fabs(w->weight->v[(c * features + k) * taps + i]);
    return sum;
}

static void give(const work *w, size_t i, size_t o, size_t p, double *d, double *error)
{
    (void)d, (void)error;
    w->out->v[o] += w->in[0]->v[i] * w->weight->v[p];
    w->out->v_error[o] += square(w->weight->v[p]) * w->in[0]->v_error[i];
}

void deconv_forward(const work *w)
{
    value *y = w->out;
    const int channels = w->in[0]->c / w->o->groups, features = y->c / w->o->groups;
    const int taps = w->o->kernel[0] * w->o->kernel[1];
    for (int k = 0; k < y->c; k++) {
        const double bias = w->bias ? w->bias->v[k] : 0;
        const int first = k / features * channels;
        double size = fabs(bias);
        for (int c = first; c < first + channels; c++)
            size += largest(w->in[0], w->in[0]->v, c) * kernel_size(w, c, k % features);
        for (size_t i = 0; i < pixels_of(y); i++) {
            y->v[(size_t)k * pixels_of(y) + i] = bias;
            y->v_error[(size_t)k * pixels_of(y) + i] = of_sum(channels * taps + 1, size);
        }
    }
    all_products(w, give, NULL, NULL);
}

static void give_back(const work *w, size_t i, size_t o, size_t p, double *d, double *error)
{
    const value *x = w->in[0], *y = w->out;
    tensor *t = w->weight;
    d[i] += y->d[o] * t->v[p];
    error[i] += square(t->v[p]) * y->d_error[o];
    t->d[p] += y->d[o] * x->v[i];
    t->error[p] += square(y->d[o]) * x->v_error[i] + square(x->v[i]) * y->d_error[o];
}

static void bias_backward(const work *w)
{
    const value *y = w->out;
    for (size_t i = 0; w->bias && i < value_count(y); i++) {
        const size_t k = i / pixels_of(y);
        w->bias->d[k] += y->d[i];
        w->bias->size[k] += fabs(y->d[i]);
        w->bias->error[k] += y->d_error[i];
    }
    if (w->bias) w->bias->terms += (double)pixels_of(y);
}

/* What rounding adds to the gradients by input channel c and by its weights. */
static double channel_sizes(const work *w, int c)
{
    const value *x = w->in[0], *y = w->out;
    const int channels = x->c / w->o->groups, features = y->c / w->o->groups;
    const int taps = w->o->kernel[0] * w->o->kernel[1];
    double size = 0;
    for (int k = 0; k < features; k++) {
        const double most = largest(y, y->d, c / channels * features + k);
        size += most * kernel_size(w, c, k);
        for (int p = 0; p < taps; p++)
            w->weight->size[(c * features + k) * taps + p] +=
                most * largest(x, x->v, c) * (double)pixels_of(x);
    }
    return of_sum(features * taps, size);
}

void deconv_backward(const work *w)
{
    value *x = w->in[0];
    double *d = calloc(2 * value_count(x), sizeof *d), *error = d + value_count(x);
    all_products(w, give_back, d, error);
    for (int c = 0; c < x->c; c++) {
        const double own = channel_sizes(w, c);
        for (size_t i = (size_t)c * pixels_of(x); i < (size_t)(c + 1) * pixels_of(x); i++)
            add_d(x, i, d[i], error[i] + own);
    }
    w->weight->terms += (double)pixels_of(x);
    bias_backward(w);
    free(d);
}

/* ---- upsample: how much of input i there is in output o, in one direction ---- */

void shape_upsample(op *o, const value *const *in, value *out)
{
    *out = (value){.c = in[0]->c, .h = o->size[0], .w = o->size[1]};
    if (o->scale[0]) out->h = in[0]->h * o->scale[0], out->w = in[0]->w * o->scale[1];
}

static double amount(const op *of, int i, int o, int in, int out)
{
    if (!of->bilinear) return i == o * in / out;
    double at =
        of->align_corners ? (out > 1 ? o * (in - 1.0) / (out - 1) : 0) : (o + 0.5) * in / out - 0.5;
    at = fmin(fmax(at, 0), in - 1);
    return fmax(0, 1 - fabs(at - i));
}

static double share_of(const work *w, int i, int o)
{
    const value *x = w->in[0], *y = w->out;
    return amount(w->o, i / x->w, o / y->w, x->h, y->h) *
           amount(w->o, i % x->w, o % y->w, x->w, y->w);
}

/* Shares are rounded twice, the sum a few times. */
static double share_error(double share, double x)
{
    return of_sum(8, share * x);
}

void upsample_forward(const work *w)
{
    const value *x = w->in[0];
    value *y = w->out;
    for (size_t k = 0; k < value_count(y); k++) y->v[k] = y->v_error[k] = 0;
    for (int o = 0; o < y->h * y->w; o++)
        for (int i = 0; i < x->h * x->w; i++) {
            const double share = share_of(w, i, o);
            for (int c = 0; share > 0 && c < y->c; c++) {
                const size_t from = (size_t)c * pixels_of(x) + (size_t)i;
                const size_t to = (size_t)c * pixels_of(y) + (size_t)o;
                y->v[to] += share * x->v[from];
                y->v_error[to] += square(share) * x->v_error[from] + share_error(share, x->v[from]);
            }
        }
}

void upsample_backward(const work *w)
{
    value *x = w->in[0];
    const value *y = w->out;
    for (int i = 0; i < x->h * x->w; i++)
        for (int c = 0; c < y->c; c++) {
            double d = 0, error = 0, size = 0, terms = 0;
            for (int o = 0; o < y->h * y->w; o++) {
                const double share = share_of(w, i, o);
                const size_t from = (size_t)c * pixels_of(y) + (size_t)o;
                d += share * y->d[from];
                size += fabs(share * y->d[from]);
                error += square(share) * y->d_error[from] + share_error(share, y->d[from]);
                terms += share > 0;
            }
            add_d(x, (size_t)c * pixels_of(x) + (size_t)i, d, error + of_sum(terms, size));
        }
}
