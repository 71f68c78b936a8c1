#include <math.h>
#include <string.h>

#include "interchange/curve.h"

static const double closeness = 2e-6;

static bool is_close(double a, double b)
{
    return a == b || fabs(a - b) <= closeness * fmax(1, fabs(b));
}

/* ---- activations ---- */

static double sigmoid(double x)
{
    return 1 / (1 + exp(-x));
}

static double relu(double x)
{
    return x > 0 ? x : 0;
}

static double relu6(double x)
{
    return fmin(relu(x), 6);
}

static double silu(double x)
{
    return x < -700 ? 0 : x * sigmoid(x);
}

static double gelu(double x)
{
    return x < -100 ? 0 : x / 2 * (1 + erf(x / sqrt(2)));
}

static double hardsigmoid(double x)
{
    return relu6(x + 3) / 6;
}

static double hardswish(double x)
{
    return x < -3 ? 0 : x * hardsigmoid(x);
}

static const struct {
    const char *kind;
    double (*f)(double);
} activations[] = {
    {"relu", relu},       {"relu6", relu6},         {"silu", silu},
    {"gelu", gelu},       {"hardswish", hardswish}, {"hardsigmoid", hardsigmoid},
    {"sigmoid", sigmoid}, {"tanh", tanh},           {NULL, NULL},
};

static bool is_activation(const double *x, const double *y, tutti_known_curve *out)
{
    for (int k = 0; activations[k].kind; k++) {
        int i = 0;
        while (i < TUTTI_CURVE_POINTS && is_close(y[i], activations[k].f(x[i]))) i++;
        if (i < TUTTI_CURVE_POINTS) continue;
        *out = (tutti_known_curve){.kind = activations[k].kind};
        return true;
    }
    return false;
}

/* ---- pieces of lines ---- */

static int place_of(const double *x, double value)
{
    int best = 0;
    for (int i = 1; i < TUTTI_CURVE_POINTS; i++)
        if (fabs(x[i] - value) < fabs(x[best] - value)) best = i;
    return best;
}

static bool is_leaky(const double *x, const double *y, tutti_known_curve *out)
{
    const int at = place_of(x, -1);
    const double slope = x[at] < 0 ? y[at] / x[at] : 0;
    if (!(slope > 0 && slope < 1)) return false;
    for (int i = 0; i < TUTTI_CURVE_POINTS; i++)
        if (!is_close(y[i], x[i] > 0 ? x[i] : slope * x[i])) return false;
    *out = (tutti_known_curve){.kind = "leakyrelu", .slope = slope};
    return true;
}

/* From the point before; points that are too near to tell have none. */
static double rise(const double *x, const double *y, int i)
{
    return x[i] > x[i - 1] + 1e-3 ? (y[i] - y[i - 1]) / (x[i] - x[i - 1]) : 0;
}

/* The second of three neighbours inside a ramp: where the values change most, and evenly. Of two
 * neighbours one may lie beyond the ramp's end. */
static int steepest(const double *x, const double *y)
{
    int best = 0;
    double most = 0;
    for (int i = 1; i + 1 < TUTTI_CURVE_POINTS; i++) {
        const double here = fabs(rise(x, y, i));
        const bool evenly = fabs(rise(x, y, i + 1) - rise(x, y, i)) <= 1e-6 * here;
        if (here <= most * (1 + 1e-9) || !evenly || fabs(x[i]) > 64) continue;
        most = here;
        best = i;
    }
    return best;
}

static bool is_ramp(const double *x, const double *y, tutti_known_curve *out)
{
    const int last = TUTTI_CURVE_POINTS - 1, at = steepest(x, y);
    if (!at) return false;
    const double factor = (y[at] - y[at - 1]) / (x[at] - x[at - 1]);
    const double term = y[at] - factor * x[at];
    const bool rises = factor > 0;
    const double left = y[0], right = y[last];
    *out = (tutti_known_curve){.factor = factor, .term = term, .low = -INFINITY, .high = INFINITY};
    if (!is_close(left, factor * x[0] + term)) *(rises ? &out->low : &out->high) = left;
    if (!is_close(right, factor * x[last] + term)) *(rises ? &out->high : &out->low) = right;
    for (int i = 0; i < TUTTI_CURVE_POINTS; i++)
        if (!is_close(y[i], fmax(out->low, fmin(out->high, factor * x[i] + term)))) return false;
    return true;
}

bool tutti_curve_recognise(const double *x, const double *y, tutti_known_curve *out)
{
    for (int i = 0; i < TUTTI_CURVE_POINTS; i++)
        if (!isfinite(x[i]) || !isfinite(y[i])) return false;
    return is_activation(x, y, out) || is_leaky(x, y, out) || is_ramp(x, y, out);
}
