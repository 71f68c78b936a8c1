#include "base/series.h"

#include <math.h>

static const double pi = 3.14159265358979323846, ln2 = 0.69314718055994530942;

/* Taylor's series of the cosine (first term 1, k = 1) or the sine (first term y, k = 2). */
static double alternating_series(double y, double first, int k)
{
    double term = first, sum = first;
    for (; k < 24; k += 2) {
        term *= -y * y / (double)(k * (k + 1));
        sum += term;
    }
    return sum;
}

double tutti_series_cos_pi(double x)
{
    if (x > 0.5) return -tutti_series_cos_pi(1 - x);
    if (x < 0.25) return alternating_series(pi * x, 1, 1);
    const double y = pi * (0.5 - x);
    return alternating_series(y, y, 2);
}

/* x = m 2^e with m in [1/2, 1), log m = 2 atanh((m-1)/(m+1)). */
double tutti_series_log(double x)
{
    int e = 0;
    const double m = frexp(x, &e);
    const double z = (m - 1) / (m + 1);
    double power = z, sum = 0;
    for (int k = 1; k <= 35; k += 2, power *= z * z) sum += power / k;
    return 2 * sum + e * ln2;
}

double tutti_series_exp(double x)
{
    const double e = floor(x / ln2 + 0.5), r = x - e * ln2; /* |r| <= ln2/2 */
    double term = 1, sum = 1;
    for (int k = 1; k <= 18; k++) {
        term *= r / k;
        sum += term;
    }
    return ldexp(sum, (int)e);
}
