/* Normalisation within a sample: layernorm over the channels of a pixel or, whole, over all values;
 * groupnorm over the channels of a group. */
#include "reference_kinds.h"

#include <math.h>

/* A chain of 32 floats, joined with three others (kernel/norm.h), or one through the blocks of
 * channels (kernel/pixel_norm.h); a few operations with them. */
enum { CHAIN = 40 };

/* What is normalised together. */
typedef struct set {
    const work *w;
    size_t first, step, count;        /* places of its values */
    double mean, inverse;             /* 1 / deviation */
    double mean_error, inverse_error; /* variances; the second relative */
} set;

static size_t pixels_of(const work *w)
{
    return (size_t)(w->out->h * w->out->w);
}

static bool takes_groups(const work *w)
{
    return w->o->kind->takes == FEATURES;
}

static size_t set_count(const work *w)
{
    if (takes_groups(w)) return (size_t)w->o->features;
    return w->o->whole ? 1 : pixels_of(w);
}

/* Set number i, with its places only. */
static set places_of(const work *w, size_t i)
{
    const size_t all = value_count(w->out), pixels = pixels_of(w), size = all / set_count(w);
    if (takes_groups(w) || w->o->whole)
        return (set){.w = w, .first = i * size, .step = 1, .count = size};
    return (set){.w = w, .first = i, .step = pixels, .count = size};
}

static set measured(const work *w, size_t number)
{
    set s = places_of(w, number);
    const value *x = w->in[0];
    const double n = (double)s.count;
    double squares = 0, size = 0, from_x = 0;
    for (size_t i = 0; i < s.count; i++) s.mean += x->v[s.first + i * s.step] / n;
    for (size_t i = 0; i < s.count; i++) {
        const size_t k = s.first + i * s.step;
        const double d = x->v[k] - s.mean;
        squares += d * d / n;
        size += fabs(d) / n;
        s.mean_error += x->v_error[k] / (n * n);
        from_x += d * d * x->v_error[k] / (n * n);
    }
    s.inverse = 1 / sqrt(squares + w->o->eps);
    s.mean_error += of_sum(CHAIN, size);
    s.inverse_error = square(square(s.inverse)) * from_x +
                      of_sum(CHAIN, squares * square(s.inverse)) + square(4 * U);
    return s;
}

static size_t weight_of(const work *w, size_t k)
{
    return w->o->whole ? k : k / pixels_of(w);
}

/* The normalised value, and its variance. */
static double normal(const set *s, size_t k, double *error)
{
    const double d = s->w->in[0]->v[k] - s->mean, n = d * s->inverse;
    *error = square(s->inverse) * (s->w->in[0]->v_error[k] + s->mean_error + of_sum(3, d)) +
             square(n) * s->inverse_error;
    return n;
}

void sample_norm_forward(const work *w)
{
    for (size_t number = 0; number < set_count(w); number++) {
        const set s = measured(w, number);
        for (size_t i = 0; i < s.count; i++) {
            const size_t k = s.first + i * s.step, c = weight_of(w, k);
            double error;
            const double n = normal(&s, k, &error), weight = w->weight->v[c];
            w->out->v[k] = n * weight + w->bias->v[c];
            w->out->v_error[k] =
                square(weight) * error + of_sum(2, n * weight) + square(U * w->out->v[k]);
        }
    }
}

/* Means of g = weight * dy and of g * normal, the size of their terms, and variances. */
typedef struct means {
    double g, product, g_size, product_size, g_error, product_error;
} means;

static means means_of(const set *s)
{
    const work *w = s->w;
    const double n = (double)s->count;
    means m = {0};
    for (size_t i = 0; i < s->count; i++) {
        const size_t k = s->first + i * s->step;
        const double weight = w->weight->v[weight_of(w, k)], g = weight * w->out->d[k];
        const double g_error = square(weight) * w->out->d_error[k] + square(U * g);
        double error;
        const double x = normal(s, k, &error);
        m.g += g / n;
        m.product += g * x / n;
        m.g_size += fabs(g) / n;
        m.product_size += fabs(g * x) / n;
        m.g_error += g_error / (n * n);
        m.product_error += (square(x) * g_error + square(g) * error) / (n * n);
    }
    m.g_error += of_sum(CHAIN, m.g_size);
    m.product_error += of_sum(CHAIN, m.product_size) + square(s->inverse * m.g) * s->mean_error +
                       square(m.product) * s->inverse_error;
    return m;
}

static void add_to(tensor *t, size_t i, double d, double error)
{
    t->d[i] += d;
    t->size[i] += fabs(d);
    t->error[i] += error;
}

static void set_backward(const set *s)
{
    const work *w = s->w;
    const means m = means_of(s);
    for (size_t i = 0; i < s->count; i++) {
        const size_t k = s->first + i * s->step, c = weight_of(w, k);
        const double weight = w->weight->v[c], dy = w->out->d[k], g = weight * dy;
        double error;
        const double x = normal(s, k, &error), d = s->inverse * (g - m.g - x * m.product);
        const double size = s->inverse * (fabs(g) + fabs(m.g) + fabs(x * m.product));
        add_d(w->in[0], k, d,
              square(s->inverse) * (square(weight) * w->out->d_error[k] + m.g_error +
                                    square(m.product) * error + square(x) * m.product_error) +
                  square(d) * s->inverse_error + of_sum(6, size));
        add_to(w->weight, c, dy * x, square(x) * w->out->d_error[k] + square(dy) * error);
        add_to(w->bias, c, dy, w->out->d_error[k]);
    }
}

void sample_norm_backward(const work *w)
{
    w->weight->terms = w->bias->terms = CHAIN + (double)w->sample->batch;
    for (size_t number = 0; number < set_count(w); number++) {
        const set s = measured(w, number);
        set_backward(&s);
    }
}
