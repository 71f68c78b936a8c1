/* The vector vocabulary, third part, in plain C: products of bf16; see avx512_bf16.h. Nothing is
 * asked of the processor: whatever its modes are, what is not normal becomes zero here. */
#include <float.h>

static inline unsigned vf_flush_begin(void)
{
    return 0;
}
static inline void vf_flush_end(unsigned before)
{
    (void)before;
}
static inline float if_normal(float x)
{
    return fabsf(x) < FLT_MIN ? copysignf(0.0f, x) : x;
}
static inline vf vf_add_flushed(vf a, vf b)
{
    return if_normal(if_normal(a) + if_normal(b));
}

static inline vi vi_shr16(vi a)
{
    return (vi)((uint32_t)a >> 16);
}
static inline void vi_store_pairs(unsigned short *p, vi a)
{
    memcpy(p, &a, sizeof a);
}
static inline vi vi_load_pairs(const unsigned short *p)
{
    vi a;
    memcpy(&a, p, sizeof a);
    return a;
}

#define BF16_TREES 0

typedef struct vh {
    vf high, low;
} vh;

static inline vh vh_load(const unsigned short *p)
{
    const vi pair = vi_load_pairs(p);
    return (vh){if_normal(vf_of_bits(vi_and(pair, -65536))), if_normal(vf_of_bits(vi_shl16(pair)))};
}
static inline vh vh_set1(const unsigned short *p)
{
    return vh_load(p);
}
/* What rounds to less than 2^-126 with 24 bits is less than 2^-126 - 2^-151. The product is exact
 * in double; where the sum is not, its last bits are too small to lift it over that. */
static inline float fma_flushed(float a, float b, float c)
{
    const double sum = (double)a * b + c;
    if (sum != 0.0 && fabs(sum) < 0x1p-126 - 0x1p-151) return sum < 0.0 ? -0.0f : 0.0f;
    return fmaf(a, b, c);
}
static inline vf vh_dot(vf sum, vh a, vh b)
{
    return fma_flushed(a.low, b.low, fma_flushed(a.high, b.high, sum));
}

#include "kernel/isa/round.h"

static inline void vi_store_row(unsigned short *to, const float *low, const float *high)
{
    for (int k = 0; k < 32; k++) {
        const vi rounded = vi_round(k < 16 ? low[k] : high[k - 16]);
        to[k % 2 * 16 + k / 4 * 2 + (k % 4 < 2 ? 1 : 0)] =
            (unsigned short)((uint32_t)rounded >> 16);
    }
}
