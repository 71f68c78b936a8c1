#include "base/random.h"

#include <math.h>

#include "base/series.h"

static void round_of_philox(uint32_t c[4], const uint32_t k[2])
{
    const uint64_t p0 = (uint64_t)0xD2511F53u * c[0];
    const uint64_t p1 = (uint64_t)0xCD9E8D57u * c[2];
    const uint32_t c1 = c[1], c3 = c[3];
    c[0] = (uint32_t)(p1 >> 32) ^ c1 ^ k[0];
    c[1] = (uint32_t)p1;
    c[2] = (uint32_t)(p0 >> 32) ^ c3 ^ k[1];
    c[3] = (uint32_t)p0;
}

void tutti_philox(uint32_t out[4], const uint32_t counter[4], const uint32_t key[2])
{
    uint32_t k[2] = {key[0], key[1]};
    for (int i = 0; i < 4; i++) out[i] = counter[i];
    for (int round = 0; round < 10; round++) {
        round_of_philox(out, k);
        k[0] += 0x9E3779B9u;
        k[1] += 0xBB67AE85u;
    }
}

void tutti_random_block(uint32_t out[4], const tutti_random_key *key, uint32_t block)
{
    const uint32_t counter[4] = {block, (uint32_t)key->purpose << 24 | (key->layer & 0xFFFFFFu),
                                 key->when, key->sample};
    const uint32_t seed[2] = {(uint32_t)key->seed, (uint32_t)(key->seed >> 32)};
    tutti_philox(out, counter, seed);
}

uint32_t tutti_random_u32(const tutti_random_key *key, uint64_t index)
{
    uint32_t four[4];
    tutti_random_block(four, key, (uint32_t)(index / 4));
    return four[index % 4];
}

double tutti_random_uniform(const tutti_random_key *key, uint64_t index)
{
    return tutti_random_u32(key, index) * 0x1p-32;
}

uint32_t tutti_random_below(const tutti_random_key *key, uint64_t index, uint32_t bound)
{
    return (uint32_t)((uint64_t)tutti_random_u32(key, index) * bound >> 32);
}

/* Box-Muller, from two raw numbers. */
static double normal_from(uint32_t a, uint32_t b)
{
    const double u = 1.0 - a * 0x1p-32; /* (0, 1]: its log is finite */
    const double angle = b * 0x1p-31;   /* in units of pi, below 2 */
    return sqrt(-2.0 * tutti_series_log(u)) * tutti_series_cos_pi(angle <= 1 ? angle : 2 - angle);
}

void tutti_random_normals(double out[2], const tutti_random_key *key, uint64_t pair)
{
    uint32_t raw[4];
    tutti_random_block(raw, key, (uint32_t)pair);
    out[0] = normal_from(raw[0], raw[1]);
    out[1] = normal_from(raw[2], raw[3]);
}

double tutti_random_normal(const tutti_random_key *key, uint64_t index)
{
    double pair[2];
    tutti_random_normals(pair, key, index / 2);
    return pair[index % 2];
}
