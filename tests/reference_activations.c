/* Activations. */
#include "reference_kinds.h"

#include <math.h>

/* Errors of src/kernel/isa/math.h in half units, rounded up. */
enum { ACTIVATION_ERROR = 8, CURVE_ERROR = 16 };

/* May the value be on the other side of a corner? */
static bool is_near(const value *x, size_t i, double corner)
{
    const double error = REFERENCE_DEVIATIONS * sqrt(x->v_error[i]);
    return error > 0 && fabs(x->v[i] - corner) <= error;
}

static bool doubtful(const value *x, size_t i)
{
    return is_near(x, i, 0);
}

void relu_forward(const work *w)
{
    const value *x = w->in[0];
    for (size_t i = 0; i < value_count(x); i++) {
        const bool some = x->v[i] > 0 || doubtful(x, i);
        w->out->v[i] = fmax(x->v[i], 0);
        w->out->v_error[i] = some ? x->v_error[i] : 0;
    }
}

void relu_backward(const work *w)
{
    value *x = w->in[0];
    for (size_t i = 0; i < value_count(x); i++) {
        const double d = w->out->d[i], lost = doubtful(x, i) ? square(d) : 0;
        if (x->v[i] > 0) add_d(x, i, d, w->out->d_error[i] + lost);
        else add_d(x, i, 0, lost);
    }
}

static double slope_of(const work *w)
{
    return w->o->slope > 0 ? w->o->slope : (double)0.01f;
}

void leaky_forward(const work *w)
{
    const value *x = w->in[0];
    for (size_t i = 0; i < value_count(x); i++) {
        const double slope = x->v[i] > 0 ? 1 : slope_of(w);
        w->out->v[i] = slope * x->v[i];
        w->out->v_error[i] =
            square(doubtful(x, i) ? 1 : slope) * x->v_error[i] + square(U * w->out->v[i]);
    }
}

void leaky_backward(const work *w)
{
    value *x = w->in[0];
    for (size_t i = 0; i < value_count(x); i++) {
        const double d = w->out->d[i], slope = x->v[i] > 0 ? 1 : slope_of(w);
        add_d(x, i, slope * d, w->out->d_error[i] + (doubtful(x, i) ? square(d) : 0));
    }
}

/* A line between two corners: offset + slope * x, clipped to 0 .. most. */
typedef struct ramp {
    double begin, end, slope, most;
} ramp;

static const ramp relu6 = {0, 6, 1, 6}, hardsigmoid = {-3, 3, 1.0 / 6, 1};

static bool at_corner(const value *x, size_t i, const ramp *r)
{
    return is_near(x, i, r->begin) || is_near(x, i, r->end);
}

static bool on_ramp(const value *x, size_t i, const ramp *r)
{
    return x->v[i] > r->begin && x->v[i] < r->end;
}

static void ramp_forward(const work *w, const ramp *r)
{
    const value *x = w->in[0];
    for (size_t i = 0; i < value_count(x); i++) {
        const double t = r->slope * (x->v[i] - r->begin);
        const bool some = on_ramp(x, i, r) || at_corner(x, i, r);
        w->out->v[i] = fmin(fmax(t, 0), r->most);
        w->out->v_error[i] =
            some ? square(r->slope) * x->v_error[i] + of_sum(2, r->slope == 1 ? 0 : r->most) : 0;
    }
}

static void ramp_backward(const work *w, const ramp *r)
{
    value *x = w->in[0];
    for (size_t i = 0; i < value_count(x); i++) {
        const double d = r->slope * w->out->d[i], lost = at_corner(x, i, r) ? square(d) : 0;
        const double error = square(r->slope) * w->out->d_error[i] + of_sum(2, d);
        if (on_ramp(x, i, r)) add_d(x, i, d, error + lost);
        else add_d(x, i, 0, lost);
    }
}

void relu6_forward(const work *w)
{
    ramp_forward(w, &relu6);
}

void relu6_backward(const work *w)
{
    ramp_backward(w, &relu6);
}

void hardsigmoid_forward(const work *w)
{
    ramp_forward(w, &hardsigmoid);
}

void hardsigmoid_backward(const work *w)
{
    ramp_backward(w, &hardsigmoid);
}

/* y = f(x), with the derivative and f's own error. */
static void set_activated(const work *w, size_t i, double y, double slope)
{
    w->out->v[i] = y;
    w->out->v_error[i] = square(slope) * w->in[0]->v_error[i] + square(ACTIVATION_ERROR * U * y);
}

void sigmoid_forward(const work *w)
{
    for (size_t i = 0; i < value_count(w->out); i++) {
        const double y = 1 / (1 + exp(-w->in[0]->v[i]));
        set_activated(w, i, y, y * (1 - y));
    }
}

void tanh_forward(const work *w)
{
    for (size_t i = 0; i < value_count(w->out); i++) {
        const double y = tanh(w->in[0]->v[i]);
        set_activated(w, i, y, 1 - y * y);
    }
}

/* dx = dy slope(y); 'bend' is the slope's derivative by y, 'size' that of its terms. */
static void through_slope(const work *w, size_t i, double slope, double bend, double size)
{
    const double dy = w->out->d[i];
    add_d(w->in[0], i, dy * slope,
          square(slope) * w->out->d_error[i] + square(dy * bend) * w->out->v_error[i] +
              of_sum(3, dy * size));
}

void sigmoid_backward(const work *w)
{
    for (size_t i = 0; i < value_count(w->out); i++) {
        const double y = w->out->v[i];
        through_slope(w, i, y * (1 - y), 1 - 2 * y, y);
    }
}

void tanh_backward(const work *w)
{
    for (size_t i = 0; i < value_count(w->out); i++) {
        const double y = w->out->v[i];
        through_slope(w, i, 1 - y * y, -2 * y, 1);
    }
}

/* ---- activations whose derivative is known by x only ---- */

/* Below this functions of src/kernel/isa/math.h may be zero: their factors would be subnormal. */
#define CURVE_ZERO 0x1p-117

/* f(x), its first two derivatives, and how large the terms of the first are. */
typedef struct curve {
    double y, slope, bend, size;
} curve;

static void curve_forward(const work *w, curve (*of)(double))
{
    const value *x = w->in[0];
    for (size_t i = 0; i < value_count(x); i++) {
        const curve at = of(x->v[i]);
        w->out->v[i] = at.y;
        w->out->v_error[i] =
            square(at.slope) * x->v_error[i] + square(CURVE_ERROR * U * at.y) + square(CURVE_ZERO);
    }
}

static void curve_backward(const work *w, curve (*of)(double))
{
    value *x = w->in[0];
    for (size_t i = 0; i < value_count(x); i++) {
        const curve at = of(x->v[i]);
        const double d = w->out->d[i];
        add_d(x, i, d * at.slope,
              square(at.slope) * w->out->d_error[i] + square(d * at.bend) * x->v_error[i] +
                  square(CURVE_ERROR * U * d * at.size) + square(CURVE_ZERO * d));
    }
}

static curve silu(double x)
{
    const double s = 1 / (1 + exp(-x)), bend = s * (1 - s);
    return (curve){x * s, s + x * bend, bend * (2 + x * (1 - 2 * s)), s + fabs(x) * bend};
}

void silu_forward(const work *w)
{
    curve_forward(w, silu);
}

void silu_backward(const work *w)
{
    curve_backward(w, silu);
}

static curve gelu(double x)
{
    const double below = erfc(-x / sqrt(2)) / 2, density = exp(-x * x / 2) / sqrt(2 * acos(-1));
    return (curve){x * below, below + x * density, density * (2 - x * x),
                   below + fabs(x) * density};
}

void gelu_forward(const work *w)
{
    curve_forward(w, gelu);
}

void gelu_backward(const work *w)
{
    curve_backward(w, gelu);
}

static curve hardswish(double x)
{
    const double y = x * fmin(fmax(x + 3, 0), 6) / 6;
    if (x <= -3) return (curve){.y = y};
    if (x >= 3) return (curve){y, 1, 0, 1};
    return (curve){y, x / 3 + 0.5, 1.0 / 3, fabs(x) / 3 + 0.5};
}

void hardswish_forward(const work *w)
{
    curve_forward(w, hardswish);
}

/* Its derivative jumps by half at the corners. */
void hardswish_backward(const work *w)
{
    value *x = w->in[0];
    curve_backward(w, hardswish);
    for (size_t i = 0; i < value_count(x); i++)
        if (is_near(x, i, -3) || is_near(x, i, 3)) x->d_error[i] += square(w->out->d[i] / 2);
}
