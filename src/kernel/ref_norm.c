#include "kernel/ref_norm.h"

#include <math.h>

size_t tutti_ref_norm_sets(const tutti_ref_norm *norm)
{
    return (size_t)norm->n * (size_t)norm->groups * (size_t)(norm->each_pixel ? norm->pixels : 1);
}

size_t tutti_ref_norm_place(const tutti_ref_norm *norm, size_t set, size_t i)
{
    const size_t pixels = (size_t)norm->pixels, members = (size_t)(norm->c / norm->groups);
    if (!norm->each_pixel) return set * members * pixels + i;
    return (set / pixels * members + i) * pixels + set % pixels;
}

size_t tutti_ref_norm_weight(const tutti_ref_norm *norm, size_t place)
{
    const size_t in_sample = place % ((size_t)norm->c * (size_t)norm->pixels);
    return norm->each_value ? in_sample : in_sample / (size_t)norm->pixels;
}

tutti_ref_norm_set tutti_ref_norm_measure(const tutti_ref_norm *norm, size_t set, const double *x)
{
    tutti_ref_norm_set s = {0};
    s.count = (size_t)(norm->c / norm->groups) * (size_t)(norm->each_pixel ? 1 : norm->pixels);
    for (size_t i = 0; i < s.count; i++) s.mean += x[tutti_ref_norm_place(norm, set, i)];
    s.mean /= (double)s.count;
    for (size_t i = 0; i < s.count; i++) {
        const double d = x[tutti_ref_norm_place(norm, set, i)] - s.mean;
        s.variance += d * d / (double)s.count;
        s.reach = fmax(s.reach, fabs(d));
    }
    s.inverse = 1 / sqrt(s.variance + norm->eps);
    return s;
}

void tutti_ref_norm_forward(const tutti_ref_norm *norm, const double *x, double *y)
{
    for (size_t set = 0; set < tutti_ref_norm_sets(norm); set++) {
        const tutti_ref_norm_set s = tutti_ref_norm_measure(norm, set, x);
        for (size_t i = 0; i < s.count; i++) {
            const size_t at = tutti_ref_norm_place(norm, set, i);
            const size_t w = tutti_ref_norm_weight(norm, at);
            y[at] = (x[at] - s.mean) * s.inverse * norm->weight[w] + norm->bias[w];
        }
    }
}

void tutti_ref_norm_backward(const tutti_ref_norm *norm, const double *x, const double *dy,
                             double *dx, double *dw, double *db)
{
    for (size_t set = 0; set < tutti_ref_norm_sets(norm); set++) {
        const tutti_ref_norm_set s = tutti_ref_norm_measure(norm, set, x);
        double sum = 0, product = 0;
        for (size_t i = 0; i < s.count; i++) {
            const size_t at = tutti_ref_norm_place(norm, set, i);
            const size_t w = tutti_ref_norm_weight(norm, at);
            const double away = (x[at] - s.mean) * s.inverse;
            sum += dy[at] * norm->weight[w] / (double)s.count;
            product += dy[at] * norm->weight[w] * away / (double)s.count;
            dw[w] += dy[at] * away;
            db[w] += dy[at];
        }
        for (size_t i = 0; i < s.count; i++) {
            const size_t at = tutti_ref_norm_place(norm, set, i);
            const double g = dy[at] * norm->weight[tutti_ref_norm_weight(norm, at)];
            dx[at] = s.inverse * (g - sum - (x[at] - s.mean) * s.inverse * product);
        }
    }
}
