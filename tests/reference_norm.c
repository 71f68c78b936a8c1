/* Batch normalisation: the only kind whose samples depend on each other, in statistics groups. */
#include "reference_kinds.h"

#include <math.h>

/* A chain of 32 floats, joined with three others (kernel/norm.h), a few operations with them. */
enum { CHAIN = 36 };

/* One channel of one group. */
typedef struct channel {
    const work *w; /* [count] its samples */
    int count, c;
    double n, mean, spread;           /* spread: variance + eps */
    double mean_error, inverse_error; /* variances; the second relative */
} channel;

static size_t pixels_of(const channel *ch)
{
    return (size_t)(ch->w->out->h * ch->w->out->w);
}

/* Value i of the channel: its sample's work, its place there. */
static const work *at(const channel *ch, size_t i, size_t *place)
{
    *place = (size_t)ch->c * pixels_of(ch) + i % pixels_of(ch);
    return &ch->w[i / pixels_of(ch)];
}

static double distance(const channel *ch, size_t i)
{
    size_t k;
    const work *w = at(ch, i, &k);
    return w->in[0]->v[k] - ch->mean;
}

static double x_error(const channel *ch, size_t i)
{
    size_t k;
    const work *w = at(ch, i, &k);
    return w->in[0]->v_error[k];
}

static channel measured(const work *w, int count, int c)
{
    channel ch = {.w = w, .count = count, .c = c};
    double squares = 0, from_x = 0, size = 0, sum = 0;
    ch.n = (double)count * (double)pixels_of(&ch);
    for (size_t i = 0; i < (size_t)ch.n; i++) sum += distance(&ch, i);
    ch.mean = sum / ch.n;
    for (size_t i = 0; i < (size_t)ch.n; i++) {
        const double d = distance(&ch, i), error = x_error(&ch, i);
        squares += d * d;
        size += fabs(d) / ch.n;
        ch.mean_error += error / (ch.n * ch.n);
        from_x += d * d * error / (ch.n * ch.n);
    }
    ch.spread = squares / ch.n + w->o->eps;
    ch.mean_error += of_sum(CHAIN, size);
    ch.inverse_error = from_x / square(ch.spread) + of_sum(CHAIN, squares / ch.n / ch.spread);
    return ch;
}

static channel given(const work *w, int c)
{
    channel ch = {.w = w, .count = 1, .c = c, .mean = w->more[0]->v[c]};
    ch.n = (double)pixels_of(&ch);
    ch.spread = w->more[1]->v[c] + w->o->eps;
    return ch;
}

/* ---- forward ---- */

static void channel_forward(const channel *ch)
{
    const double scale = ch->w->weight->v[ch->c] / sqrt(ch->spread), shift = ch->w->bias->v[ch->c];
    for (size_t i = 0; i < (size_t)ch->n; i++) {
        size_t k;
        const work *w = at(ch, i, &k);
        const double d = distance(ch, i), y = scale * d + shift;
        w->out->v[k] = y;
        w->out->v_error[k] = square(scale) * (x_error(ch, i) + ch->mean_error + of_sum(3, d)) +
                             square(scale * d) * (ch->inverse_error + square(2 * U)) +
                             square(U * y);
    }
}

static int group_of(const work *w, int first, int count)
{
    const int size = w->o->group ? w->o->group : count;
    return count - first < size ? count - first : size;
}

void norm_forward(const work *w, int count)
{
    const bool training = w->mode->training && !w->o->frozen;
    for (int first = 0, n; first < count; first += n) {
        n = training ? group_of(w, first, count) : 1;
        for (int c = 0; c < w->out->c; c++) {
            const channel ch = training ? measured(w + first, n, c) : given(w + first, c);
            channel_forward(&ch);
        }
    }
}

/* ---- backward ---- */

typedef struct sums {
    double dy, product;             /* of dy, of dy times the normalised x */
    double dy_size, product_size;   /* of the terms */
    double dy_error, product_error; /* variances */
} sums;

static sums sums_of(const channel *ch)
{
    const double inverse = 1 / sqrt(ch->spread);
    sums s = {0};
    for (size_t i = 0; i < (size_t)ch->n; i++) {
        size_t k;
        const work *w = at(ch, i, &k);
        const double dy = w->out->d[k], x = distance(ch, i) * inverse;
        s.dy += dy;
        s.product += dy * x;
        s.dy_size += fabs(dy);
        s.product_size += fabs(dy * x);
        s.dy_error += w->out->d_error[k];
        s.product_error += square(x) * w->out->d_error[k] +
                           square(dy * inverse) * (x_error(ch, i) + of_sum(3, distance(ch, i)));
    }
    s.dy_error += of_sum(CHAIN, s.dy_size);
    s.product_error += of_sum(CHAIN, s.product_size) + square(inverse * s.dy) * ch->mean_error +
                       square(s.product) * ch->inverse_error;
    return s;
}

static void channel_backward(const channel *ch, const sums *s)
{
    const double inverse = 1 / sqrt(ch->spread), n = ch->n;
    const double scale = ch->w->weight->v[ch->c] * inverse;
    for (size_t i = 0; i < (size_t)n; i++) {
        size_t k;
        const work *w = at(ch, i, &k);
        const double x = distance(ch, i) * inverse, dy = w->out->d[k];
        const double d = scale * (dy - s->dy / n - x * s->product / n);
        const double size = fabs(scale) * (fabs(dy) + fabs(s->dy / n) + fabs(x * s->product / n));
        const double of_x = square(inverse) * (x_error(ch, i) + ch->mean_error) +
                            square(x) * (ch->inverse_error + square(4 * U));
        add_d(w->in[0], k, d,
              square(scale) * (w->out->d_error[k] + s->dy_error / (n * n) +
                               of_x * square(s->product / n) + square(x / n) * s->product_error) +
                  square(d) * ch->inverse_error + of_sum(5, size));
    }
}

/* Running averages follow the mean over groups; the last counts minibatches. */
static void follow(const channel *ch, double groups)
{
    tensor *mean = ch->w->more[0], *variance = ch->w->more[1];
    const double squares = (ch->spread - ch->w->o->eps) * ch->n, unbiased = squares / (ch->n - 1);
    mean->d[ch->c] += ch->mean / groups;
    mean->size[ch->c] += fabs(ch->mean) / groups;
    mean->error[ch->c] += ch->mean_error / square(groups);
    variance->d[ch->c] += unbiased / groups;
    variance->size[ch->c] += unbiased / groups;
    variance->error[ch->c] += 4 * square(ch->spread / groups) * ch->inverse_error;
    mean->terms = variance->terms = groups + 3;
    ch->w->more[2]->d[0] = 1;
}

static void add_to(tensor *t, int c, double d, double size, double error, double terms)
{
    t->d[c] += d;
    t->size[c] += size;
    t->error[c] += error;
    t->terms = terms;
}

/* Mean and variance are given: all that is left is a factor. */
static void frozen_backward(const work *w, int c)
{
    const channel ch = given(w, c);
    const double scale = w->weight->v[c] / sqrt(ch.spread);
    for (size_t i = 0; i < (size_t)ch.n; i++) {
        size_t k;
        at(&ch, i, &k);
        const double d = scale * w->out->d[k];
        add_d(w->in[0], k, d, square(scale) * w->out->d_error[k] + of_sum(3, d));
    }
}

void norm_backward(const work *w, int count)
{
    if (w->o->frozen) {
        for (int s = 0; s < count; s++)
            for (int c = 0; c < w->out->c; c++) frozen_backward(w + s, c);
        return;
    }
    const int size = w->o->group && w->o->group < count ? w->o->group : count;
    const double groups = ceil((double)count / size);
    for (int first = 0; first < count; first += size)
        for (int c = 0; c < w->out->c; c++) {
            const channel ch = measured(w + first, group_of(w, first, count), c);
            const sums s = sums_of(&ch);
            channel_backward(&ch, &s);
            add_to(w->weight, c, s.product, s.product_size, s.product_error, count + 3);
            add_to(w->bias, c, s.dy, s.dy_size, s.dy_error, count + 3);
            follow(&ch, groups);
        }
}
