/* Products of bf16 as they are defined. Never optimise it. */
#include "kernel/ref_bf16.h"

#include <float.h>
#include <math.h>
#include <string.h>

tutti_bf16 tutti_ref_bf16_round(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    if (isnan(x)) return (tutti_bf16)(bits >> 16 | 0x40);
    if (fabsf(x) < FLT_MIN) return (tutti_bf16)(bits >> 16 & 0x8000);
    return (tutti_bf16)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

float tutti_ref_bf16_widen(tutti_bf16 x)
{
    const uint32_t bits = (uint32_t)x << 16;
    float wide;
    memcpy(&wide, &bits, sizeof wide);
    return wide;
}

static float flushed(float x)
{
    return fabsf(x) < FLT_MIN ? copysignf(0.0f, x) : x;
}

float tutti_ref_bf16_add(float a, float b)
{
    return flushed(flushed(a) + flushed(b)); /* a sum that is not normal is exact */
}

/* a * b + c. Near 2^-126 fmaf rounds to multiples of 2^-149, unbounded exponents would give it one
 * bit more: what fmaf rounds up to 2^-126 may be less, which the same sum, scaled, shows. */
static float multiply_add(float a, float b, float c)
{
    a = flushed(a);
    b = flushed(b);
    c = flushed(c);
    const float sum = fmaf(a, b, c);
    if (fabsf(sum) == FLT_MIN &&
        fabsf(fmaf(a * 0x1p32f, b * 0x1p32f, c * 0x1p64f)) < FLT_MIN * 0x1p64f)
        return copysignf(0.0f, sum);
    return flushed(sum);
}

float tutti_ref_bf16_block(int terms, const tutti_bf16 *a, ptrdiff_t a_step, const tutti_bf16 *b,
                           ptrdiff_t b_step, float sum)
{
    float chain[2] = {0.0f, 0.0f};
    for (int k = 0; k < 4 * tutti_bf16_slots(terms); k++) {
        const float x = k < terms ? tutti_ref_bf16_widen(a[k * a_step]) : 0.0f;
        const float y = k < terms ? tutti_ref_bf16_widen(b[k * b_step]) : 0.0f;
        chain[k % 2] = multiply_add(x, y, chain[k % 2]);
    }
    return tutti_ref_bf16_add(sum, tutti_ref_bf16_add(chain[0], chain[1]));
}

float tutti_ref_bf16_block_of(int terms, const float *a, ptrdiff_t a_step, const float *b,
                              ptrdiff_t b_step, float sum)
{
    tutti_bf16 x[TUTTI_BF16_TERMS], y[TUTTI_BF16_TERMS];
    for (int k = 0; k < terms; k++) {
        x[k] = tutti_ref_bf16_round(a[k * a_step]);
        y[k] = tutti_ref_bf16_round(b[k * b_step]);
    }
    return tutti_ref_bf16_block(terms, x, 1, y, 1, sum);
}

int tutti_ref_bf16_place(int k)
{
    return k % 2 * TUTTI_BF16_ODD + k / 4 * 2 + (k % 4 < 2 ? 1 : 0);
}
