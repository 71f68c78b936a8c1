/* Exponential, logarithm and tanh of vectors, from operations that every row rounds alike: the
 * same bits on every instruction set. Include after isa.h.
 *
 * The polynomials interpolate at Chebyshev nodes (near minimax), their coefficients rounded to
 * float; the errors below were measured over every fifth float of the range; test_math
 * takes fewer. */
#ifndef TUTTI_KERNEL_ISA_MATH_H
#define TUTTI_KERNEL_ISA_MATH_H

#include <stdint.h>

#define LN2_HIGH 0x1.62e4p-1f /* 16 bits of ln 2: its product with an exponent is exact */
#define LN2_LOW  0x1.7f7d1cp-20f

/* 2^n as a float, -126 <= n <= 127 */
INLINE vf power_of_two(vi n)
{
    return vf_of_bits(vi_shl23(vi_add(n, vi_set1(127))));
}

/* e^x. With n = x/ln2 rounded to even by adding 1.5 * 2^23, and r = x - n ln2 (|r| <= 0.347), it is
 * 2^n (1 + r + r^2 p(r)); 2^n in two factors reaches infinity. Error < 1.1 ulp. Where the result
 * would be subnormal it is zero: such numbers cost a hundred cycles each and help nobody. NaN
 * stays. */
INLINE vf vf_exp(vf x)
{
    const vf magic = vf_set1(0x1.8p23f);
    const vf smallest = vf_set1(-0x1.5d589ep6f); /* -87.33654: e^x is still normal */
    const vm vanishes = vf_gt(smallest, x);
    x = vf_min(vf_set1(89.0f), vf_max(smallest, x)); /* in this order NaN passes */
    const vf shifted = vf_fma(x, vf_set1(0x1.715476p0f), magic);
    const vf n = vf_sub(shifted, magic);
    vf r = vf_fma(n, vf_set1(-LN2_HIGH), x);
    r = vf_fma(n, vf_set1(-LN2_LOW), r);
    vf p = vf_set1(0x1.6d10fcp-10f);
    p = vf_fma(p, r, vf_set1(0x1.120b62p-7f));
    p = vf_fma(p, r, vf_set1(0x1.55551ap-5f));
    p = vf_fma(p, r, vf_set1(0x1.5554dep-3f));
    p = vf_fma(p, r, vf_set1(0.5f));
    p = vf_fma(vf_mul(r, r), p, r);
    p = vf_add(p, vf_set1(1.0f));
    const vi whole = vi_sub(vi_of_bits(shifted), vi_of_bits(magic)), half = vi_sar1(whole);
    p = vf_mul(vf_mul(p, power_of_two(half)), power_of_two(vi_sub(whole, half)));
    return vf_select(vanishes, vf_zero(), p);
}

/* Natural logarithm of a normal x > 0 (or infinity): x = 2^e m with sqrt(1/2) <= m < sqrt(2), f =
 * m - 1; e ln2 + f - f^2/2 + f^3 p(f). Error < 0.9 ulp. NaN stays. */
INLINE vf vf_log(vf x)
{
    const vi root_half = vi_set1(0x3f3504f3);
    const vi e = vi_sar23(vi_sub(vi_of_bits(x), root_half));
    const vf f = vf_sub(vf_of_bits(vi_sub(vi_of_bits(x), vi_shl23(e))), vf_set1(1.0f));
    const vf n = vf_of_int(e), square = vf_mul(f, f);
    vf p = vf_set1(0x1.1d8ea6p-4f);
    p = vf_fma(p, f, vf_set1(-0x1.d635bcp-4f));
    p = vf_fma(p, f, vf_set1(0x1.dea282p-4f));
    p = vf_fma(p, f, vf_set1(-0x1.fcf4c6p-4f));
    p = vf_fma(p, f, vf_set1(0x1.23d21ap-3f));
    p = vf_fma(p, f, vf_set1(-0x1.555b4ap-3f));
    p = vf_fma(p, f, vf_set1(0x1.999d5ap-3f));
    p = vf_fma(p, f, vf_set1(-0x1.fffffcp-3f));
    p = vf_fma(p, f, vf_set1(0x1.555554p-2f));
    p = vf_fma(n, vf_set1(LN2_LOW), vf_mul(vf_mul(p, f), square));
    p = vf_fma(square, vf_set1(-0.5f), p);
    p = vf_fma(n, vf_set1(LN2_HIGH), vf_add(f, p));
    return vf_select(vf_gt(vf_set1(__builtin_inff()), x), p, x);
}

/* 1 / (1 + e^-x). Error < 2.6 ulp. */
INLINE vf vf_sigmoid(vf x)
{
    const vf one = vf_set1(1.0f);
    return vf_div(one, vf_add(one, vf_exp(vf_sub(vf_zero(), x))));
}

/* Near zero x + x^3 p(x^2), beyond 1 - 2 / (e^2x + 1), with |x| for x. Error < 1.5 ulp. */
INLINE vf vf_tanh(vf x)
{
    const vi sign = vi_and(vi_of_bits(x), vi_set1(INT32_MIN));
    const vf a = vf_of_bits(vi_xor(vi_of_bits(x), sign)), one = vf_set1(1.0f);
    const vf z = vf_mul(a, a);
    vf p = vf_set1(-0x1.8f86eep-8f);
    p = vf_fma(p, z, vf_set1(0x1.58035cp-6f));
    p = vf_fma(p, z, vf_set1(-0x1.b9256ap-5f));
    p = vf_fma(p, z, vf_set1(0x1.110e1cp-3f));
    p = vf_fma(p, z, vf_set1(-0x1.555552p-2f));
    const vf near = vf_fma(vf_mul(p, z), a, a);
    const vf e = vf_exp(vf_add(a, a));
    const vf far = vf_sub(one, vf_div(vf_set1(2.0f), vf_add(e, one)));
    const vf result = vf_select(vf_nle(a, vf_set1(0.625f)), far, near);
    return vf_of_bits(vi_xor(vi_of_bits(result), sign));
}

#endif
