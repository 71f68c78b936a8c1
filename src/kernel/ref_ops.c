/* Definitions, in double. Never optimise them. */
#include "kernel/ref_ops.h"

#include <math.h>
#include <string.h>

#include "base/memory.h"

size_t tutti_ref_at(int channels, int pixels, int n, int c, int pixel)
{
    const size_t blocks = (size_t)tutti_ceil_div(channels, TUTTI_BLOCK);
    const size_t block = (size_t)n * blocks + (size_t)(c / TUTTI_BLOCK);
    return (block * (size_t)pixels + (size_t)pixel) * TUTTI_BLOCK + (size_t)(c % TUTTI_BLOCK);
}

static size_t count_of(int n, int channels, int pixels)
{
    return (size_t)n * tutti_round_up((size_t)channels, TUTTI_BLOCK) * (size_t)pixels;
}

double tutti_ref_sigmoid(double x)
{
    return 1.0 / (1.0 + exp(-x));
}

double tutti_ref_sigmoid_slope(double y)
{
    return y * (1.0 - y);
}

double tutti_ref_tanh_slope(double y)
{
    return 1.0 - y * y;
}

bool tutti_ref_dropout_keeps(const tutti_dropout *dropout, int sample, size_t e)
{
    tutti_random_key key = dropout->key;
    key.sample += (uint32_t)sample;
    const uint32_t word = tutti_random_u32(&key, e / 128 * 64 + e % 16 * 4 + e / 16 % 4);
    const uint32_t number = e / 64 % 2 ? word & 0xFFFF : word >> 16;
    return number >= (uint32_t)((double)dropout->rate * 65536.0 + 0.5);
}

/* ---- local response normalisation ---- */

static double lrn_scale(const tutti_lrn *lrn, int n, int c, int pixels, const double *x,
                        int channel, int pixel)
{
    double sum = 0.0;
    for (int j = channel - lrn->size / 2; j <= channel + (lrn->size - 1) / 2; j++) {
        const double value = j >= 0 && j < c ? x[tutti_ref_at(c, pixels, n, j, pixel)] : 0.0;
        sum += value * value;
    }
    return (double)lrn->k + (double)lrn->alpha / lrn->size * sum;
}

void tutti_ref_lrn_forward(const tutti_lrn *lrn, int n, int c, int pixels, const double *x,
                           double *y)
{
    memset(y, 0, count_of(n, c, pixels) * sizeof *y);
    for (int i = 0; i < n; i++)
        for (int channel = 0; channel < c; channel++)
            for (int p = 0; p < pixels; p++) {
                const size_t at = tutti_ref_at(c, pixels, i, channel, p);
                const double scale = lrn_scale(lrn, i, c, pixels, x, channel, p);
                y[at] = x[at] * pow(scale, -(double)lrn->beta);
            }
}

/* y_j = x_j scale_j^-beta, so dy_j/dx_i is scale_j^-beta where i = j, and minus 2 alpha beta/size
 * x_i x_j scale_j^-(beta+1) where i is in the window of j. */
void tutti_ref_lrn_backward(const tutti_lrn *lrn, int n, int c, int pixels, const double *x,
                            const double *dy, double *dx)
{
    memset(dx, 0, count_of(n, c, pixels) * sizeof *dx);
    const double beta = (double)lrn->beta, factor = 2.0 * (double)lrn->alpha * beta / lrn->size;
    for (int s = 0; s < n; s++)
        for (int j = 0; j < c; j++)
            for (int p = 0; p < pixels; p++) {
                const size_t at_j = tutti_ref_at(c, pixels, s, j, p);
                const double scale = lrn_scale(lrn, s, c, pixels, x, j, p);
                dx[at_j] += dy[at_j] * pow(scale, -beta);
                for (int i = j - lrn->size / 2; i <= j + (lrn->size - 1) / 2; i++) {
                    if (i < 0 || i >= c) continue;
                    const size_t at_i = tutti_ref_at(c, pixels, s, i, p);
                    dx[at_i] -= factor * x[at_i] * x[at_j] * dy[at_j] * pow(scale, -beta - 1.0);
                }
            }
}

/* ---- softmax ---- */

void tutti_ref_softmax(int n, int classes, const double *x, const int32_t *labels, double *p,
                       double *loss)
{
    const size_t width = tutti_round_up((size_t)classes, TUTTI_BLOCK);
    memset(p, 0, (size_t)n * width * sizeof *p);
    for (int i = 0; i < n; i++) {
        const double *score = x + (size_t)i * width;
        double top = score[0], sum = 0.0;
        for (int j = 0; j < classes; j++) top = fmax(top, score[j]);
        for (int j = 0; j < classes; j++) sum += exp(score[j] - top);
        for (int j = 0; j < classes; j++)
            p[(size_t)i * width + (size_t)j] = exp(score[j] - top) / sum;
        if (labels) loss[i] = log(sum) - (score[labels[i]] - top);
    }
}

void tutti_ref_softmax_backward(int n, int classes, const double *p, const int32_t *labels,
                                double scale, double *dx)
{
    const size_t width = tutti_round_up((size_t)classes, TUTTI_BLOCK);
    memset(dx, 0, (size_t)n * width * sizeof *dx);
    for (int i = 0; i < n; i++)
        for (int j = 0; j < classes; j++) {
            const size_t at = (size_t)i * width + (size_t)j;
            dx[at] = scale * (p[at] - (labels[i] == j ? 1.0 : 0.0));
        }
}

/* ---- SGD ---- */

void tutti_ref_sgd_step(const tutti_sgd *sgd, size_t count, const double *dw, double *v, double *w)
{
    const double mu = (double)sgd->momentum;
    for (size_t i = 0; i < count; i++) {
        const double d = (double)sgd->gradient_scale * dw[i] + (double)sgd->weight_decay * w[i];
        if (mu != 0.0) v[i] = mu * v[i] + d;
        const double move = mu == 0.0 ? d : sgd->nesterov ? d + mu * v[i] : v[i];
        w[i] -= (double)sgd->lr * move;
    }
}

/* ---- Adam ---- */

void tutti_ref_adam_step(const tutti_ref_adam *a, int step, size_t count, const double *dw,
                         double *m, double *v, double *w)
{
    const double bias1 = 1 - pow(a->beta1, step), bias2 = 1 - pow(a->beta2, step);
    for (size_t i = 0; i < count; i++) {
        const double g = a->decoupled ? dw[i] : dw[i] + a->weight_decay * w[i];
        if (a->decoupled) w[i] -= a->lr * a->weight_decay * w[i];
        m[i] = a->beta1 * m[i] + (1 - a->beta1) * g;
        v[i] = a->beta2 * v[i] + (1 - a->beta2) * g * g;
        w[i] -= a->lr * (m[i] / bias1) / (sqrt(v[i] / bias2) + a->eps);
    }
}

/* ---- pooling ---- */

/* One output of one channel: its place, its window's start, and access to the window. */
typedef struct window {
    const tutti_pool_shape *p;
    int n, c, row, column; /* row and column of the window's first element, may be padding */
    size_t out;
} window;

typedef void window_fn(const window *w, void *arg);

static void each_window(const tutti_pool_shape *p, int n, window_fn *visit, void *arg)
{
    const int out_h = tutti_pool_out_h(p), out_w = tutti_pool_out_w(p);
    for (int i = 0; i < n; i++)
        for (int c = 0; c < p->c; c++)
            for (int oh = 0; oh < out_h; oh++)
                for (int ow = 0; ow < out_w; ow++) {
                    const window w = {p,
                                      i,
                                      c,
                                      oh * p->stride_h - p->pad_top,
                                      ow * p->stride_w - p->pad_left,
                                      tutti_ref_at(p->c, out_h * out_w, i, c, oh * out_w + ow)};
                    visit(&w, arg);
                }
}

/* Where element (r, s) of the window is in x; false when it is padding. */
static bool element(const window *w, int r, int s, size_t *at)
{
    const int row = w->row + r, column = w->column + s;
    if (row < 0 || row >= w->p->h || column < 0 || column >= w->p->w) return false;
    *at = tutti_ref_at(w->p->c, w->p->h * w->p->w, w->n, w->c, row * w->p->w + column);
    return true;
}

typedef struct pool_arrays {
    const double *from;
    double *to;
    uint16_t *tap;
    const uint16_t *won;
} pool_arrays;

static void max_of(const window *w, void *arg)
{
    const pool_arrays *a = arg;
    bool any = false;
    size_t at = 0;
    for (int r = 0; r < w->p->r; r++)
        for (int s = 0; s < w->p->s; s++) {
            if (!element(w, r, s, &at)) continue;
            const double x = a->from[at];
            if (any && !(x > a->to[w->out]) && !isnan(x)) continue;
            a->to[w->out] = x;
            a->tap[w->out] = (uint16_t)(r * w->p->s + s);
            any = true;
        }
}

static size_t out_count(const tutti_pool_shape *p, int n)
{
    return count_of(n, p->c, tutti_pool_out_h(p) * tutti_pool_out_w(p));
}

void tutti_ref_max_pool_forward(const tutti_pool_shape *shape, int n, const double *x, double *y,
                                uint16_t *tap)
{
    memset(y, 0, out_count(shape, n) * sizeof *y);
    memset(tap, 0, out_count(shape, n) * sizeof *tap);
    pool_arrays a = {.from = x, .to = y, .tap = tap};
    each_window(shape, n, max_of, &a);
}

static void give_to_winner(const window *w, void *arg)
{
    const pool_arrays *a = arg;
    size_t at = 0;
    const int tap = a->won[w->out];
    if (element(w, tap / w->p->s, tap % w->p->s, &at)) a->to[at] += a->from[w->out];
}

void tutti_ref_max_pool_backward(const tutti_pool_shape *shape, int n, const double *dy,
                                 const uint16_t *tap, double *dx)
{
    memset(dx, 0, count_of(n, shape->c, shape->h * shape->w) * sizeof *dx);
    pool_arrays a = {.from = dy, .to = dx, .won = tap};
    each_window(shape, n, give_to_winner, &a);
}

/* Elements of the window on the image, or on the image and its padding. */
static int elements(const window *w)
{
    const tutti_pool_shape *p = w->p;
    const int top = p->count_padding ? -p->pad_top : 0, left = p->count_padding ? -p->pad_left : 0;
    const int bottom = p->h + (p->count_padding ? p->pad_bottom : 0);
    const int right = p->w + (p->count_padding ? p->pad_right : 0);
    int count = 0;
    for (int row = w->row; row < w->row + p->r; row++)
        for (int column = w->column; column < w->column + p->s; column++)
            count += row >= top && row < bottom && column >= left && column < right;
    return count;
}

static void average_of(const window *w, void *arg)
{
    const pool_arrays *a = arg;
    size_t at = 0;
    double sum = 0.0;
    for (int r = 0; r < w->p->r; r++)
        for (int s = 0; s < w->p->s; s++)
            if (element(w, r, s, &at)) sum += a->from[at];
    a->to[w->out] = sum / elements(w);
}

void tutti_ref_average_pool_forward(const tutti_pool_shape *shape, int n, const double *x,
                                    double *y)
{
    memset(y, 0, out_count(shape, n) * sizeof *y);
    pool_arrays a = {.from = x, .to = y};
    each_window(shape, n, average_of, &a);
}

static void give_to_all(const window *w, void *arg)
{
    const pool_arrays *a = arg;
    size_t at = 0;
    const double each = a->from[w->out] / elements(w);
    for (int r = 0; r < w->p->r; r++)
        for (int s = 0; s < w->p->s; s++)
            if (element(w, r, s, &at)) a->to[at] += each;
}

void tutti_ref_average_pool_backward(const tutti_pool_shape *shape, int n, const double *dy,
                                     double *dx)
{
    memset(dx, 0, count_of(n, shape->c, shape->h * shape->w) * sizeof *dx);
    pool_arrays a = {.from = dy, .to = dx};
    each_window(shape, n, give_to_all, &a);
}
