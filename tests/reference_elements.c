/* Dropout, local response normalisation, joins. */
#include "reference_kinds.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"

/* Errors of src/kernel/isa/math.h in half units, rounded up. */
enum { EXP_ERROR = 4, POWER_ERROR = 12 };

void shape_same(op *o, const value *const *in, value *out)
{
    (void)o;
    *out = (value){.c = in[0]->c, .h = in[0]->h, .w = in[0]->w};
}

/* ---- dropout ---- */

/* The rate as its numbers of 16 bits have it. */
static double share(const op *o)
{
    return floor((double)(float)o->rate * 65536 + 0.5) / 65536;
}

/* What element i is multiplied by: numbers are drawn in the blocked order. */
static double dropout_factor(const work *w, size_t i)
{
    if (!w->mode->training) return 1;
    const tutti_random_key key = {.seed = w->mode->seed,
                                  .purpose = TUTTI_RANDOM_DROPOUT,
                                  .layer = (uint32_t)w->o->layer,
                                  .when = w->mode->step,
                                  .sample = (uint32_t)w->sample->place};
    const size_t pixels = (size_t)(w->out->h * w->out->w), c = i / pixels, p = i % pixels;
    const size_t e = (c / 16 * pixels + p) * 16 + c % 16;
    const uint32_t word = tutti_random_u32(&key, 64 * (e / 128) + 4 * (e % 16) + e / 16 % 4);
    const bool dropped = (e / 64 % 2 ? word & 0xFFFF : word >> 16) < 65536 * share(w->o);
    return dropped ? 0 : 1 / (1 - share(w->o));
}

void dropout_forward(const work *w)
{
    const value *x = w->in[0];
    for (size_t i = 0; i < value_count(x); i++) {
        const double factor = dropout_factor(w, i), y = factor * x->v[i];
        w->out->v[i] = y;
        w->out->v_error[i] = square(factor) * x->v_error[i] + of_sum(2, y);
    }
}

void dropout_backward(const work *w)
{
    for (size_t i = 0; i < value_count(w->out); i++) {
        const double factor = dropout_factor(w, i), d = factor * w->out->d[i];
        add_d(w->in[0], i, d, square(factor) * w->out->d_error[i] + of_sum(2, d));
    }
}

/* ---- stochastic depth ---- */

static double depth_factor(const work *w)
{
    const tutti_random_key key = {.seed = w->mode->seed,
                                  .purpose = TUTTI_RANDOM_DROPOUT,
                                  .layer = (uint32_t)w->o->layer,
                                  .when = w->mode->step,
                                  .sample = (uint32_t)w->sample->place};
    if (!w->mode->training) return 1;
    return tutti_random_u32(&key, 0) < w->o->rate * 0x1p32 ? 0 : 1 / (1 - w->o->rate);
}

void depth_forward(const work *w)
{
    const double factor = depth_factor(w);
    for (size_t i = 0; i < value_count(w->out); i++) {
        w->out->v[i] = factor * w->in[0]->v[i];
        w->out->v_error[i] = square(factor) * w->in[0]->v_error[i] + of_sum(2, w->out->v[i]);
    }
}

void depth_backward(const work *w)
{
    const double factor = depth_factor(w);
    for (size_t i = 0; i < value_count(w->out); i++) {
        const double d = factor * w->out->d[i];
        add_d(w->in[0], i, d, square(factor) * w->out->d_error[i] + of_sum(2, d));
    }
}

/* ---- local response normalisation ---- */

/* Of channel c at one pixel: scale, scale^-beta, and for the way back t = dy y / scale. */
typedef struct lrn_parts {
    double scale, scale_error, power, power_error, t, t_error;
} lrn_parts;

/* The channels c is normalised by are first .. end-1. */
static void lrn_reach(const work *w, int c, int *first, int *end)
{
    const int size = w->o->features;
    *first = c - size / 2 > 0 ? c - size / 2 : 0;
    *end = c + (size - 1) / 2 + 1 < w->in[0]->c ? c + (size - 1) / 2 + 1 : w->in[0]->c;
}

static lrn_parts lrn_at(const work *w, int c, size_t p)
{
    const op *o = w->o;
    const value *x = w->in[0], *y = w->out;
    const size_t pixels = (size_t)(x->h * x->w), i = (size_t)c * pixels + p;
    const double factor = o->alpha / o->features;
    lrn_parts l = {.scale = o->k};
    int first, end;
    lrn_reach(w, c, &first, &end);
    for (size_t j = (size_t)first * pixels + p; j < (size_t)end * pixels; j += pixels) {
        l.scale += factor * square(x->v[j]);
        l.scale_error += square(2 * factor * x->v[j]) * x->v_error[j];
    }
    l.scale_error += of_sum(o->features + 3, l.scale);
    l.power = pow(l.scale, -o->beta);
    l.power_error = square(o->beta * l.power / l.scale) * l.scale_error +
                    square((POWER_ERROR + EXP_ERROR * o->beta * fabs(log(l.scale))) * U * l.power);
    l.t = y->d[i] * y->v[i] / l.scale;
    l.t_error = square(y->v[i] / l.scale) * y->d_error[i] +
                square(y->d[i] / l.scale) * y->v_error[i] + square(l.t / l.scale) * l.scale_error +
                of_sum(4, l.t);
    return l;
}

void lrn_forward(const work *w)
{
    const value *x = w->in[0];
    const size_t pixels = (size_t)(x->h * x->w);
    for (size_t i = 0; i < value_count(x); i++) {
        const lrn_parts l = lrn_at(w, (int)(i / pixels), i % pixels);
        w->out->v[i] = x->v[i] * l.power;
        w->out->v_error[i] = square(l.power) * x->v_error[i] + square(x->v[i]) * l.power_error +
                             of_sum(1, w->out->v[i]);
    }
}

void lrn_backward(const work *w)
{
    const op *o = w->o;
    value *x = w->in[0];
    const value *y = w->out;
    const size_t pixels = (size_t)(x->h * x->w);
    const double factor = 2 * o->alpha / o->features * o->beta;
    for (size_t i = 0; i < value_count(x); i++) {
        const lrn_parts own = lrn_at(w, (int)(i / pixels), i % pixels);
        double sum = 0, size = 0, error = 0;
        for (int c = 0; c < x->c; c++) {
            int first, end;
            lrn_reach(w, c, &first, &end);
            if ((int)(i / pixels) < first || (int)(i / pixels) >= end) continue;
            const lrn_parts l = lrn_at(w, c, i % pixels);
            sum += l.t;
            size += fabs(l.t);
            error += l.t_error;
        }
        add_d(
            x, i, y->d[i] * own.power - factor * x->v[i] * sum,
            square(own.power) * y->d_error[i] + square(y->d[i]) * own.power_error +
                square(factor) * (square(sum) * x->v_error[i] + square(x->v[i]) * error) +
                of_sum(o->features + 2, fabs(y->d[i] * own.power) + fabs(factor * x->v[i]) * size));
    }
}

/* ---- joins ---- */

void shape_concat(op *o, const value *const *in, value *out)
{
    *out = (value){.c = 0, .h = in[0]->h, .w = in[0]->w};
    for (int k = 0; k < o->input_count; k++) out->c += in[k]->c;
}

/* Where input k begins in the output: a sum has them all in one place. */
static size_t join_begin(const work *w, int k)
{
    size_t begin = 0;
    if (w->o->kind->shape == shape_same) return 0;
    for (int i = 0; i < k; i++) begin += value_count(w->in[i]);
    return begin;
}

void join_forward(const work *w)
{
    value *y = w->out;
    memset(y->v, 0, value_count(y) * sizeof *y->v);
    memset(y->v_error, 0, value_count(y) * sizeof *y->v);
    for (int k = 0; k < w->o->input_count; k++)
        for (size_t i = 0, j = join_begin(w, k); i < value_count(w->in[k]); i++, j++) {
            y->v[j] += w->in[k]->v[i];
            y->v_error[j] += w->in[k]->v_error[i] + (k ? of_sum(1, y->v[j]) : 0);
        }
}

void join_backward(const work *w)
{
    for (int k = 0; k < w->o->input_count; k++)
        for (size_t i = 0, j = join_begin(w, k); i < value_count(w->in[k]); i++, j++)
            add_d(w->in[k], i, w->out->d[j], w->out->d_error[j]);
}

/* ---- channels ---- */

void shape_slice(op *o, const value *const *in, value *out)
{
    if (!o->end) o->end = in[0]->c;
    *out = (value){.c = o->end - o->first, .h = in[0]->h, .w = in[0]->w};
}

/* Which element of the input is element i of the output. A shuffle is [groups][c / groups] turned
 * to [c / groups][groups]. */
static size_t channels_at(const work *w, size_t i)
{
    const size_t pixels = (size_t)(w->out->h * w->out->w), c = i / pixels;
    const size_t groups = (size_t)w->o->features;
    if (w->o->kind->shape == shape_slice) return i + (size_t)w->o->first * pixels;
    return (c % groups * ((size_t)w->out->c / groups) + c / groups) * pixels + i % pixels;
}

void channels_forward(const work *w)
{
    for (size_t i = 0; i < value_count(w->out); i++) {
        w->out->v[i] = w->in[0]->v[channels_at(w, i)];
        w->out->v_error[i] = w->in[0]->v_error[channels_at(w, i)];
    }
}

void channels_backward(const work *w)
{
    for (size_t i = 0; i < value_count(w->out); i++)
        add_d(w->in[0], channels_at(w, i), w->out->d[i], w->out->d_error[i]);
}

/* ---- products ---- */

void shape_mul(op *o, const value *const *in, value *out)
{
    const value *larger = value_count(in[0]) < value_count(in[1]) ? in[1] : in[0];
    (void)o;
    *out = (value){.c = larger->c, .h = larger->h, .w = larger->w};
}

/* Which element of input k goes into element i of the output: one pixel may be spread. */
static size_t mul_at(const work *w, int k, size_t i)
{
    return i / (value_count(w->out) / value_count(w->in[k]));
}

void mul_forward(const work *w)
{
    const value *a = w->in[0], *b = w->in[1];
    for (size_t i = 0; i < value_count(w->out); i++) {
        const size_t j = mul_at(w, 0, i), k = mul_at(w, 1, i);
        w->out->v[i] = a->v[j] * b->v[k];
        w->out->v_error[i] = square(b->v[k]) * a->v_error[j] + square(a->v[j]) * b->v_error[k] +
                             of_sum(1, w->out->v[i]);
    }
}

/* Rounding adds up over the pixels that share a factor. */
void mul_backward(const work *w)
{
    for (int k = 0; k < 2; k++) {
        value *x = w->in[k];
        const value *other = w->in[!k];
        const double terms = (double)(value_count(w->out) / value_count(x));
        for (size_t i = 0; i < value_count(w->out); i++) {
            const size_t j = mul_at(w, !k, i);
            const double d = w->out->d[i] * other->v[j];
            add_d(x, mul_at(w, k, i), d,
                  square(other->v[j]) * w->out->d_error[i] +
                      square(w->out->d[i]) * other->v_error[j] + of_sum(terms, d));
        }
    }
}

/* ---- layer scale ---- */

static double scale_at(const work *w, size_t i)
{
    return w->weight->v[i / (size_t)(w->out->h * w->out->w)];
}

void layerscale_forward(const work *w)
{
    for (size_t i = 0; i < value_count(w->out); i++) {
        w->out->v[i] = scale_at(w, i) * w->in[0]->v[i];
        w->out->v_error[i] =
            square(scale_at(w, i)) * w->in[0]->v_error[i] + of_sum(1, w->out->v[i]);
    }
}

void layerscale_backward(const work *w)
{
    const size_t pixels = (size_t)(w->out->h * w->out->w);
    value *x = w->in[0];
    tensor *t = w->weight;
    t->terms += (double)pixels;
    for (size_t i = 0; i < value_count(w->out); i++) {
        const double d = w->out->d[i], factor = scale_at(w, i);
        add_d(x, i, factor * d, square(factor) * w->out->d_error[i] + of_sum(1, factor * d));
        t->d[i / pixels] += d * x->v[i];
        t->size[i / pixels] += fabs(d * x->v[i]);
        t->error[i / pixels] += square(x->v[i]) * w->out->d_error[i] + square(d) * x->v_error[i];
    }
}
