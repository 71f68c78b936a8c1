/* Rounding to bf16 in integers, for rows without an instruction that does it. */

#include <stdint.h>

/* The bits of x rounded to bf16, widened again. */
static inline vi vi_round(vf x)
{
    const vi bits = vi_of_bits(x), sign = vi_set1(INT32_MIN), smallest = vi_set1(0x00800000);
    const vi upper = vi_set1(-65536), magnitude = vi_and(bits, vi_set1(INT32_MAX));
    const vi odd = vi_and(vi_shr16(bits), vi_set1(1));
    const vi nearest = vi_and(vi_add(bits, vi_add(vi_set1(0x7fff), odd)), upper);
    const vi quiet = vi_add(vi_and(bits, vi_set1(-65536 - 0x400000)), vi_set1(0x400000));
    const vi number = vi_select(vi_ge_u(magnitude, smallest), nearest, vi_and(bits, sign));
    return vi_select(vf_is_nan(x), quiet, number);
}

/* Rounded: 'high' in the high halves. */
static inline vi vi_pair(vf high, vf low)
{
    return vi_xor(vi_round(high), vi_shr16(vi_round(low)));
}
