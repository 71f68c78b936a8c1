#include "reference_net.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"

typedef struct value {
    tutti_shape s;
    double *v;
} value;

static double *at(const value *x, int c, int h, int w)
{
    return &x->v[((size_t)c * (size_t)x->s.h + (size_t)h) * (size_t)x->s.w + (size_t)w];
}

static bool inside(const value *x, int h, int w)
{
    return h >= 0 && w >= 0 && h < x->s.h && w < x->s.w;
}

static void conv(const tutti_layer *l, const value *x, const double *weight, const double *bias,
                 value *y)
{
    const tutti_conv_shape *s = &l->window;
    const int channels = s->c / s->groups, features = s->k / s->groups;
    for (int k = 0; k < s->k; k++)
        for (int h = 0; h < y->s.h; h++)
            for (int w = 0; w < y->s.w; w++) {
                double sum = bias ? bias[k] : 0;
                for (int c = 0; c < channels; c++)
                    for (int r = 0; r < s->r; r++)
                        for (int q = 0; q < s->s; q++) {
                            const int ih = h * s->stride_h - s->pad_top + r * s->dilation_h;
                            const int iw = w * s->stride_w - s->pad_left + q * s->dilation_w;
                            if (inside(x, ih, iw))
                                sum += *at(x, k / features * channels + c, ih, iw) *
                                       weight[((k * channels + c) * s->r + r) * s->s + q];
                        }
                *at(y, k, h, w) = sum;
            }
}

static void fc(const value *x, const double *weight, const double *bias, value *y)
{
    const size_t in = tutti_shape_count(x->s);
    for (int o = 0; o < y->s.c; o++) {
        double sum = bias ? bias[o] : 0;
        for (size_t i = 0; i < in; i++) sum += x->v[i] * weight[(size_t)o * in + i];
        y->v[o] = sum;
    }
}

static void pool(const tutti_layer *l, const value *x, value *y)
{
    const tutti_conv_shape *s = &l->window;
    const bool max = l->kind == TUTTI_KIND_MAXPOOL;
    for (int c = 0; c < y->s.c; c++)
        for (int h = 0; h < y->s.h; h++)
            for (int w = 0; w < y->s.w; w++) {
                double out = max ? -INFINITY : 0;
                for (int r = 0; r < s->r; r++)
                    for (int q = 0; q < s->s; q++) {
                        const int ih = h * s->stride_h - s->pad_top + r;
                        const int iw = w * s->stride_w - s->pad_left + q;
                        if (!inside(x, ih, iw)) continue;
                        const double v = *at(x, c, ih, iw);
                        out = max ? fmax(out, v) : out + v / (s->r * s->s);
                    }
                *at(y, c, h, w) = out;
            }
}

/* The rate as its numbers of 16 bits have it. */
static double share(const tutti_layer *l)
{
    return floor((double)l->rate * 65536 + 0.5) / 65536;
}

/* Is element e (in blocked order) dropped? */
static bool dropped(const tutti_layer *l, const tutti_random_key *key, size_t e)
{
    const uint32_t word = tutti_random_u32(key, 64 * (e / 128) + 4 * (e % 16) + e / 16 % 4);
    return (e / 64 % 2 ? word & 0xFFFF : word >> 16) < 65536 * share(l);
}

static void dropout(const tutti_net *net, const tutti_layer *l, const reference_mode *mode,
                    int place, const value *x, value *y)
{
    const tutti_random_key key = {.seed = mode->seed,
                                  .purpose = TUTTI_RANDOM_DROPOUT,
                                  .layer = (uint32_t)(l - net->layers),
                                  .when = mode->step,
                                  .sample = (uint32_t)place};
    const int pixels = x->s.h * x->s.w;
    for (int c = 0; c < x->s.c; c++)
        for (int p = 0; p < pixels; p++) {
            const size_t e = (size_t)((c / 16 * pixels + p) * 16 + c % 16),
                         i = (size_t)(c * pixels + p);
            const bool zero = mode->training && dropped(l, &key, e);
            y->v[i] = zero ? 0 : mode->training ? x->v[i] / (1 - share(l)) : x->v[i];
        }
}

static void lrn(const tutti_layer *l, const value *x, value *y)
{
    const int pixels = x->s.h * x->s.w, size = l->lrn.size;
    for (int c = 0; c < x->s.c; c++)
        for (int p = 0; p < pixels; p++) {
            double sum = 0;
            for (int o = c - size / 2; o <= c + (size - 1) / 2; o++)
                if (o >= 0 && o < x->s.c) sum += x->v[o * pixels + p] * x->v[o * pixels + p];
            const double scale = (double)l->lrn.k + (double)l->lrn.alpha / size * sum;
            y->v[c * pixels + p] = x->v[c * pixels + p] * pow(scale, -(double)l->lrn.beta);
        }
}

static double activated(tutti_activation activation, double v)
{
    switch (activation) {
    case TUTTI_ACT_RELU: return fmax(v, 0);
    case TUTTI_ACT_SIGMOID: return 1 / (1 + exp(-v));
    case TUTTI_ACT_TANH: return tanh(v);
    default: return v;
    }
}

static void activate(tutti_activation activation, const value *x, value *y)
{
    for (size_t i = 0; i < tutti_shape_count(y->s); i++) y->v[i] = activated(activation, x->v[i]);
}

static double loss_of(const value *x, int label)
{
    double max = -INFINITY, sum = 0;
    for (int c = 0; c < x->s.c; c++) max = fmax(max, x->v[c]);
    for (int c = 0; c < x->s.c; c++) sum += exp(x->v[c] - max);
    return log(sum) - (x->v[label] - max);
}

static void join(const tutti_layer *l, const value *const *in, value *y)
{
    size_t filled = 0;
    memset(y->v, 0, tutti_shape_count(y->s) * sizeof *y->v);
    for (int k = 0; k < l->input_count; k++) {
        const size_t count = tutti_shape_count(in[k]->s);
        for (size_t i = 0; i < count; i++) y->v[filled + i] += in[k]->v[i];
        if (l->kind == TUTTI_KIND_CONCAT) filled += count;
    }
}

double reference_loss(const tutti_net *net, double *const *params, const reference_mode *mode,
                      const double *sample, int place, int label)
{
    const int count = net->layer_count;
    value *values = calloc((size_t)count + 1, sizeof *values);
    const value *in[TUTTI_MAX_INPUTS];
    double loss = 0;
    values[0].s = net->input; /* layer i is values[i + 1] */
    values[0].v = calloc(tutti_shape_count(net->input), sizeof(double));
    memcpy(values[0].v, sample, tutti_shape_count(net->input) * sizeof(double));
    for (int i = 0; i < count; i++) {
        const tutti_layer *l = &net->layers[i];
        value *y = &values[i + 1];
        const double *weight = l->weight < 0 ? NULL : params[l->weight];
        const double *bias = l->bias < 0 ? NULL : params[l->bias];
        y->s = l->out;
        y->v = calloc(tutti_shape_count(l->out), sizeof(double));
        for (int k = 0; k < l->input_count; k++) in[k] = &values[l->from[k] + 1];
        switch (l->kind) {
        case TUTTI_KIND_CONV: conv(l, in[0], weight, bias, y); break;
        case TUTTI_KIND_FC: fc(in[0], weight, bias, y); break;
        case TUTTI_KIND_MAXPOOL:
        case TUTTI_KIND_AVGPOOL: pool(l, in[0], y); break;
        case TUTTI_KIND_RELU: activate(TUTTI_ACT_RELU, in[0], y); break;
        case TUTTI_KIND_SIGMOID: activate(TUTTI_ACT_SIGMOID, in[0], y); break;
        case TUTTI_KIND_TANH: activate(TUTTI_ACT_TANH, in[0], y); break;
        case TUTTI_KIND_DROPOUT: dropout(net, l, mode, place, in[0], y); break;
        case TUTTI_KIND_LRN: lrn(l, in[0], y); break;
        case TUTTI_KIND_ADD:
        case TUTTI_KIND_CONCAT: join(l, in, y); break;
        default: loss = loss_of(in[0], label);
        }
        activate(l->activation, y, y);
    }
    for (int i = 0; i <= count; i++) free(values[i].v);
    free(values);
    return loss;
}
