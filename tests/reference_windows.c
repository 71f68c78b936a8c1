/* Convolution, fully connected layers, pooling. */
#include "reference_kinds.h"

#include <math.h>
#include <stdlib.h>

static size_t at(const value *x, int c, int h, int w)
{
    return ((size_t)c * (size_t)x->h + (size_t)h) * (size_t)x->w + (size_t)w;
}

static bool inside(const value *x, int h, int w)
{
    return h >= 0 && w >= 0 && h < x->h && w < x->w;
}

/* ---- windows ---- */

static void shape_window(op *o, const value *const *in, value *out)
{
    const int size[2] = {in[0]->h, in[0]->w};
    int *const result[2] = {&out->h, &out->w};
    for (int i = 0; i < 2; i++) {
        if (o->global) o->kernel[i] = size[i];
        const int reach = (o->kernel[i] - 1) * o->dilation[i] + 1;
        if (o->pad_end[i] < 0) o->pad_end[i] = o->pad[i];
        const double steps = (double)(size[i] + o->pad[i] + o->pad_end[i] - reach) / o->stride[i];
        *result[i] = (int)(o->ceil ? ceil(steps) : floor(steps)) + 1;
        /* none begins in the padding at the end */
        if (o->ceil && (*result[i] - 1) * o->stride[i] >= size[i] + o->pad[i]) --*result[i];
    }
    out->c = o->features ? o->features : in[0]->c;
}

void shape_pool(op *o, const value *const *in, value *out)
{
    if (o->size[0]) {
        *out = (value){.c = in[0]->c, .h = o->size[0], .w = o->size[1]};
        o->kernel[0] = in[0]->h, o->kernel[1] = in[0]->w; /* at most */
        return;
    }
    for (int i = 0; i < 2; i++)
        if (!o->stride[i]) o->stride[i] = o->global ? 1 : o->kernel[i];
    shape_window(o, in, out);
}

void shape_conv(op *o, const value *const *in, value *out)
{
    for (int i = 0; i < 2; i++)
        if (!o->stride[i]) o->stride[i] = 1;
    shape_window(o, in, out);
}

/* Where tap r, q of the window at h, w looks. */
static bool tap(const op *o, const value *x, int h, int w, int r, int q, int *ih, int *iw)
{
    *ih = h * o->stride[0] - o->pad[0] + r * o->dilation[0];
    *iw = w * o->stride[1] - o->pad[1] + q * o->dilation[1];
    return inside(x, *ih, *iw);
}

/* ---- convolution ---- */

/* The largest value of a channel. Winograd's tiles mix values, so an error may be as large as the
 * neighbours' values make it, not only those under the window. */
static double largest(const value *x, const double *v, int c)
{
    double most = 0;
    for (size_t i = at(x, c, 0, 0); i < at(x, c + 1, 0, 0); i++) most = fmax(most, fabs(v[i]));
    return most;
}

/* The sums of |weight| over a kernel. */
static double kernel_size(const op *o, const double *weight)
{
    double sum = 0;
    for (int i = 0; i < o->kernel[0] * o->kernel[1]; i++) sum += fabs(weight[i]);
    return sum;
}

static const double *kernel_of(const work *w, int k, int c, const double *of)
{
    const int channels = w->in[0]->c / w->o->groups;
    return of + (size_t)(k * channels + c) * (size_t)(w->o->kernel[0] * w->o->kernel[1]);
}

/* The sum and its variance so far, of one output element and one input channel. */
static void conv_taps(const work *w, int h, int x, int channel, const double *kernel, double *sum,
                      double *error)
{
    const op *o = w->o;
    const value *in = w->in[0];
    int ih, iw;
    for (int r = 0; r < o->kernel[0]; r++)
        for (int q = 0; q < o->kernel[1]; q++) {
            if (!tap(o, in, h, x, r, q, &ih, &iw)) continue;
            const double weight = kernel[r * o->kernel[1] + q];
            *sum += weight * in->v[at(in, channel, ih, iw)];
            *error += square(weight) * in->v_error[at(in, channel, ih, iw)];
        }
}

void conv_forward(const work *w)
{
    const op *o = w->o;
    const value *in = w->in[0];
    value *y = w->out;
    const int channels = in->c / o->groups, features = y->c / o->groups;
    for (int k = 0; k < y->c; k++) {
        const int first = k / features * channels;
        const double bias = w->bias ? w->bias->v[k] : 0;
        double size = fabs(bias);
        for (int c = 0; c < channels; c++)
            size +=
                largest(in, in->v, first + c) * kernel_size(o, kernel_of(w, k, c, w->weight->v));
        const double own = of_sum(channels * o->kernel[0] * o->kernel[1], size);
        for (int h = 0; h < y->h; h++)
            for (int x = 0; x < y->w; x++) {
                double sum = bias, error = own;
                for (int c = 0; c < channels; c++)
                    conv_taps(w, h, x, first + c, kernel_of(w, k, c, w->weight->v), &sum, &error);
                y->v[at(y, k, h, x)] = sum;
                y->v_error[at(y, k, h, x)] = error;
            }
    }
}

/* What output channel k gives back to input channel c, and both to the kernel between them. */
static void conv_pair_backward(const work *w, int k, int c, int channel, double *d, double *error)
{
    const op *o = w->o;
    const value *in = w->in[0], *y = w->out;
    const size_t first = (size_t)(kernel_of(w, k, c, w->weight->v) - w->weight->v);
    tensor *t = w->weight;
    int ih, iw;
    for (int h = 0; h < y->h; h++)
        for (int x = 0; x < y->w; x++) {
            const double dy = y->d[at(y, k, h, x)], dy_error = y->d_error[at(y, k, h, x)];
            for (int r = 0; r < o->kernel[0]; r++)
                for (int q = 0; q < o->kernel[1]; q++) {
                    if (!tap(o, in, h, x, r, q, &ih, &iw)) continue;
                    const size_t i = at(in, channel, ih, iw);
                    const size_t p = first + (size_t)(r * o->kernel[1] + q);
                    t->d[p] += dy * in->v[i];
                    t->error[p] += square(dy) * in->v_error[i] + square(in->v[i]) * dy_error;
                    d[i] += dy * t->v[p];
                    error[i] += dy_error * square(t->v[p]);
                }
        }
    const double most = largest(y, y->d, k) * largest(in, in->v, channel) * y->h * y->w;
    for (int p = 0; p < o->kernel[0] * o->kernel[1]; p++) t->size[first + (size_t)p] += most;
}

static void conv_bias_backward(const work *w)
{
    const value *y = w->out;
    for (int k = 0; w->bias && k < y->c; k++)
        for (size_t i = at(y, k, 0, 0); i < at(y, k + 1, 0, 0); i++) {
            w->bias->d[k] += y->d[i];
            w->bias->size[k] += fabs(y->d[i]);
            w->bias->error[k] += y->d_error[i];
        }
    if (w->bias) w->bias->terms += y->h * y->w;
    w->weight->terms += y->h * y->w;
}

void conv_backward(const work *w)
{
    const op *o = w->o;
    value *in = w->in[0];
    const value *y = w->out;
    const int channels = in->c / o->groups, features = y->c / o->groups;
    double *d = calloc(2 * value_count(in), sizeof *d), *error = d + value_count(in);
    for (int channel = 0; channel < in->c; channel++) {
        const int group = channel / channels, c = channel % channels;
        double size = 0;
        for (int k = group * features; k < (group + 1) * features; k++) {
            conv_pair_backward(w, k, c, channel, d, error);
            size += largest(y, y->d, k) * kernel_size(o, kernel_of(w, k, c, w->weight->v));
        }
        const double own = of_sum(features * o->kernel[0] * o->kernel[1], size);
        for (size_t i = at(in, channel, 0, 0); i < at(in, channel + 1, 0, 0); i++)
            add_d(in, i, d[i], error[i] + own);
    }
    conv_bias_backward(w);
    free(d);
}

/* ---- fully connected ---- */

void shape_fc(op *o, const value *const *in, value *out)
{
    (void)in;
    *out = (value){.c = o->features, .h = 1, .w = 1};
}

void fc_forward(const work *w)
{
    const value *x = w->in[0];
    value *y = w->out;
    const size_t in = value_count(x);
    for (int o = 0; o < y->c; o++) {
        const double *weight = w->weight->v + (size_t)o * in;
        double sum = w->bias ? w->bias->v[o] : 0, size = fabs(sum), error = 0;
        for (size_t i = 0; i < in; i++) {
            sum += x->v[i] * weight[i];
            size += fabs(x->v[i] * weight[i]);
            error += x->v_error[i] * square(weight[i]);
        }
        y->v[o] = sum;
        y->v_error[o] = error + of_sum((double)in, size);
    }
}

static void fc_parameters_backward(const work *w)
{
    const value *x = w->in[0], *y = w->out;
    const size_t in = value_count(x);
    for (int o = 0; o < y->c; o++) {
        const double dy = y->d[o], dy_error = y->d_error[o];
        tensor *t = w->weight;
        for (size_t i = 0, p = (size_t)o * in; i < in; i++, p++) {
            t->d[p] += dy * x->v[i];
            t->size[p] += fabs(dy * x->v[i]);
            t->error[p] += square(dy) * x->v_error[i] + square(x->v[i]) * dy_error;
        }
        if (!w->bias) continue;
        w->bias->d[o] += dy;
        w->bias->size[o] += fabs(dy);
        w->bias->error[o] += dy_error;
    }
    w->weight->terms += 1;
    if (w->bias) w->bias->terms += 1;
}

void fc_backward(const work *w)
{
    value *x = w->in[0];
    const value *y = w->out;
    const size_t in = value_count(x);
    fc_parameters_backward(w);
    for (size_t i = 0; i < in; i++) {
        double sum = 0, size = 0, error = 0;
        for (int o = 0; o < y->c; o++) {
            const double weight = w->weight->v[(size_t)o * in + i];
            sum += y->d[o] * weight;
            size += fabs(y->d[o] * weight);
            error += y->d_error[o] * square(weight);
        }
        add_d(x, i, sum, error + of_sum(y->c, size));
    }
}

/* ---- pooling ---- */

/* Is element 'i' of 'size' in part 'part' of 'parts': does any of it lie there? */
static bool has_part(int i, int size, int part, int parts)
{
    return i * parts < (part + 1) * size && (i + 1) * parts > part * size;
}

/* Likewise for a given size of the output, whose windows differ. */
static int places_of_size(const work *w, int c, int h, int x, size_t *place)
{
    const value *in = w->in[0];
    int n = 0;
    for (int i = 0; i < in->h; i++)
        for (int k = 0; k < in->w; k++)
            if (has_part(i, in->h, h, w->out->h) && has_part(k, in->w, x, w->out->w))
                place[n++] = at(in, c, i, k);
    return n;
}

/* The places under the window at h, w; returns how many. The first of equals is the largest. */
static int places(const work *w, int c, int h, int x, size_t *place)
{
    int n = 0, ih, iw;
    if (w->o->size[0]) return places_of_size(w, c, h, x, place);
    for (int r = 0; r < w->o->kernel[0]; r++)
        for (int q = 0; q < w->o->kernel[1]; q++)
            if (tap(w->o, w->in[0], h, x, r, q, &ih, &iw)) place[n++] = at(w->in[0], c, ih, iw);
    return n;
}

static size_t winner(const value *in, const size_t *place, int n)
{
    size_t best = place[0];
    for (int i = 1; i < n; i++)
        if (in->v[place[i]] > in->v[best]) best = place[i];
    return best;
}

/* Could i be the largest, by the errors of both? */
static bool rivals(const value *in, size_t best, size_t i)
{
    const double error = sqrt(in->v_error[best]) + sqrt(in->v_error[i]);
    return i != best && error > 0 && in->v[best] - in->v[i] <= REFERENCE_DEVIATIONS * error;
}

static void max_forward(const work *w, const size_t *place, int n, size_t y)
{
    const value *in = w->in[0];
    const size_t best = winner(in, place, n);
    w->out->v[y] = in->v[best];
    w->out->v_error[y] = in->v_error[best];
    for (int i = 0; i < n; i++)
        if (rivals(in, best, place[i]))
            w->out->v_error[y] = fmax(w->out->v_error[y], in->v_error[place[i]]);
}

static void max_backward(const work *w, const size_t *place, int n, size_t y)
{
    value *in = w->in[0];
    const size_t best = winner(in, place, n);
    const double dy = w->out->d[y];
    bool doubtful = false;
    for (int i = 0; i < n; i++)
        if (rivals(in, best, place[i])) {
            add_d(in, place[i], 0, square(dy));
            doubtful = true;
        }
    add_d(in, best, dy, w->out->d_error[y] + (doubtful ? square(dy) : 0));
}

/* How many places count: those on the image, or with the padding, but none beyond it. */
static double divisor(const work *w, int n, size_t y)
{
    const op *o = w->o;
    const int out[2] = {(int)(y / (size_t)w->out->w) % w->out->h, (int)(y % (size_t)w->out->w)};
    const int size[2] = {w->in[0]->h, w->in[0]->w};
    int count = 1;
    for (int i = 0; i < 2; i++) {
        const int begin = out[i] * o->stride[i] - o->pad[i], end = size[i] + o->pad_end[i];
        count *= (begin + o->kernel[i] < end ? begin + o->kernel[i] : end) - begin;
    }
    return o->exclude_pad || o->size[0] ? n : count;
}

static void mean_forward(const work *w, const size_t *place, int n, size_t y)
{
    const value *in = w->in[0];
    const double all = divisor(w, n, y);
    double size = 0;
    w->out->v[y] = w->out->v_error[y] = 0;
    for (int i = 0; i < n; i++) {
        w->out->v[y] += in->v[place[i]] / all;
        w->out->v_error[y] += in->v_error[place[i]] / square(all);
        size += fabs(in->v[place[i]]) / all;
    }
    w->out->v_error[y] += of_sum(n + 1, size);
}

static void mean_backward(const work *w, const size_t *place, int n, size_t y)
{
    const double all = divisor(w, n, y), d = w->out->d[y] / all;
    for (int i = 0; i < n; i++)
        add_d(w->in[0], place[i], d, w->out->d_error[y] / square(all) + of_sum(2, d));
}

static void each_window(const work *w, void (*does)(const work *, const size_t *, int, size_t))
{
    const value *y = w->out;
    size_t *place = calloc((size_t)(w->o->kernel[0] * w->o->kernel[1]), sizeof *place);
    for (int c = 0; c < y->c; c++)
        for (int h = 0; h < y->h; h++)
            for (int x = 0; x < y->w; x++)
                does(w, place, places(w, c, h, x, place), at(y, c, h, x));
    free(place);
}

void maxpool_forward(const work *w)
{
    each_window(w, max_forward);
}

void maxpool_backward(const work *w)
{
    each_window(w, max_backward);
}

void avgpool_forward(const work *w)
{
    each_window(w, mean_forward);
}

void avgpool_backward(const work *w)
{
    each_window(w, mean_backward);
}
