/* A number of Beta(a, a) is x / (x + y) of two of Gamma(a). Those are drawn as Marsaglia and Tsang
 * do ("A simple method for generating gamma variables", 2000), and kept as logarithms: for small a
 * both may be too small for a double. */
#include "data/mix.h"

#include <math.h>

#include "base/random.h"
#include "base/series.h"

enum { PARTNER, FIRST, SECOND, BOOST }; /* what a key's 'layer' stands for */

/* (0, 1] */
static double above_zero(const tutti_random_key *key, uint64_t index)
{
    return 1 - tutti_random_uniform(key, index);
}

/* The logarithm of a number of Gamma(shape), shape >= 1. A try takes the blocks 2 try, a normal,
 * and 2 try + 1. */
static double log_gamma_above_one(double shape, const tutti_random_key *key)
{
    const double d = shape - 1.0 / 3, c = 1 / sqrt(9 * d);
    for (uint64_t try = 0;; try++) {
        const double x = tutti_random_normal(key, 4 * try), root = 1 + c * x;
        if (!(root > 0)) continue;
        const double v = root * root * root, log_v = tutti_series_log(v);
        const double u = above_zero(key, 4 * (2 * try + 1));
        if (tutti_series_log(u) < 0.5 * x * x + d * (1 - v + log_v))
            return tutti_series_log(d) + log_v;
    }
}

static double log_gamma(double shape, tutti_random_key key)
{
    if (shape >= 1) return log_gamma_above_one(shape, &key);
    const double above = log_gamma_above_one(shape + 1, &key);
    key.layer += BOOST;
    return above + tutti_series_log(above_zero(&key, 0)) / shape;
}

/* 1 / (1 + y / x) */
static float share_of(double log_x, double log_y)
{
    const double far = log_y - log_x;
    return far > 700 ? 0 : far < -700 ? 1 : (float)(1 / (1 + tutti_series_exp(far)));
}

tutti_partner tutti_mix_partner(double alpha, uint64_t seed, uint32_t epoch, uint32_t id,
                                uint32_t count)
{
    tutti_random_key key = {
        .seed = seed, .purpose = TUTTI_RANDOM_MIX, .layer = PARTNER, .when = epoch, .sample = id};
    const uint32_t other = tutti_random_below(&key, 0, count);
    key.layer = FIRST;
    const double x = log_gamma(alpha, key);
    key.layer = SECOND;
    return (tutti_partner){other, share_of(x, log_gamma(alpha, key))};
}

void tutti_mix_values(float *values, const float *others, float share, size_t count)
{
    for (size_t i = 0; i < count; i++) values[i] = share * values[i] + (1 - share) * others[i];
}
