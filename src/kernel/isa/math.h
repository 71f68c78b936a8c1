/* Exponential, logarithm, tanh and the normal distribution of vectors, from operations that every
 * row rounds alike: the same bits on every instruction set. Include after isa.h.
 *
 * The polynomials interpolate at Chebyshev nodes (near minimax), their coefficients rounded to
 * float; the errors below were measured over every seventh float of the range; test_math
 * takes fewer. */
#ifndef TUTTI_KERNEL_ISA_MATH_H
#define TUTTI_KERNEL_ISA_MATH_H

#include <stdint.h>

#define EXP_SMALLEST -0x1.5d589ep6f /* -87.33654: e^x is still normal */
#define LN2          0x1.62e430p-1f
#define LN2_HIGH     0x1.62e4p-1f /* 16 bits of ln 2: its product with an exponent is exact */
#define LN2_LOW      0x1.7f7d1cp-20f

/* The functions below are chains of some twenty operations. So that a processor finds enough to do
 * in what it sees of the program at a time, they take 'count' vectors (a constant, TOGETHER at
 * most) side by side: operation after operation, not vector after vector. */
#define TOGETHER_EACH(i) UNROLL(4) for (int i = 0; i < count; i++)

/* 2^(j/16) as bits, less j << 19; and half of what its rounding left over, of the whole. */
// clang-format off
static const int32_t sixteenth_power[16] = {
    0x3f800000, 0x3f7daac3, 0x3f7b95c2, 0x3f79c3d3, 0x3f7837f0, 0x3f76f532, 0x3f75fed7, 0x3f75583f,
    0x3f7504f3, 0x3f7508a4, 0x3f75672a, 0x3f76248c, 0x3f7744fd, 0x3f78ccdf, 0x3f7ac0c7, 0x3f7d257d,
};
static const float sixteenth_rest[16] = {
                -0.0f,   0x1.8d96d4p-26f,  -0x1.9c0c22p-28f,   0x1.964904p-26f,
      0x1.125002p-26f,   0x1.370be4p-26f,  -0x1.0a3550p-26f,  -0x1.00d8acp-28f,
      0x1.26055cp-27f,  -0x1.05cb44p-26f,   0x1.67a1cap-29f,   0x1.a3b5e4p-29f,
     -0x1.f9c304p-28f,  -0x1.6961b4p-29f,  -0x1.a5217cp-29f,   0x1.61428ep-29f,
};
// clang-format on

/* 2^(n/16) of the n whose last bits these are */
INLINE vf sixteenths(vi n)
{
    return vf_of_bits(vi_add(vi_lookup(sixteenth_power, n), vi_shl19(n)));
}

/* e^x = power (1 + p) for -87.33654 <= x <= 89. With n = 16 x/ln2 rounded to even by adding 1.5 *
 * 2^23, power is 2^(n/16), from a table of 16 with n/16 added to the exponent, and p = e^r - 1 of
 * r = x - n ln2/16 (|r| <= 0.0217) a polynomial. */
INLINE void split_exp(int count, const vf *x, vf *power, vf *p)
{
    const vf magic = vf_set1(0x1.8p23f);
    vf n[TOGETHER], r[TOGETHER];
    TOGETHER_EACH(i) power[i] = vf_fma(x[i], vf_set1(0x1.715476p4f), magic);
    TOGETHER_EACH(i) n[i] = vf_sub(power[i], magic);
    TOGETHER_EACH(i) r[i] = vf_fma(n[i], vf_set1(-LN2_HIGH / 16), x[i]);
    TOGETHER_EACH(i) r[i] = vf_fma(n[i], vf_set1(-LN2_LOW / 16), r[i]);
    TOGETHER_EACH(i) p[i] = vf_fma(r[i], vf_set1(0x1.55565cp-3f), vf_set1(0x1.000148p-1f));
    TOGETHER_EACH(i) p[i] = vf_fma(vf_mul(r[i], r[i]), p[i], r[i]);
    TOGETHER_EACH(i) power[i] = sixteenths(vi_of_bits(power[i]));
}

/* e^x; zero where that would be subnormal: such numbers cost a hundred cycles each and help nobody.
 * For positive x, twice the half, which is always finite. Error < 1.1 ulp. NaN stays. */
INLINE vf vf_exp(vf x)
{
    const vf smallest = vf_set1(EXP_SMALLEST);
    const vm positive = vf_gt(x, vf_zero());
    vf t = vf_min(vf_set1(89.0f), vf_max(smallest, x)), power, p; /* in this order NaN passes */
    split_exp(1, &t, &power, &p);
    const vi half = vi_sub(vi_of_bits(power), vi_select(positive, vi_set1(1 << 23), vi_set1(0)));
    t = vf_fma(vf_of_bits(half), p, vf_of_bits(half));
    t = vf_mul(t, vf_select(positive, vf_set1(2.0f), vf_set1(1.0f)));
    return vf_select(vf_gt(smallest, x), vf_zero(), t);
}

/* The same of several x <= 0. */
INLINE void vf_exp_negative(int count, vf *x)
{
    const vf smallest = vf_set1(EXP_SMALLEST);
    vf t[TOGETHER], power[TOGETHER], p[TOGETHER];
    TOGETHER_EACH(i) t[i] = vf_max(smallest, x[i]);
    split_exp(count, t, power, p);
    TOGETHER_EACH(i) t[i] = vf_fma(power[i], p[i], power[i]);
    TOGETHER_EACH(i) x[i] = vf_select(vf_gt(smallest, x[i]), vf_zero(), t[i]);
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

/* x = x^(-3/4) of normal x > 0, and if it is wanted inverse = 1/x; zero of infinity, NaN stays.
 * Subtracting a quarter of the bits from a constant guesses y = x^(-1/4) to 1/32. What is left, e =
 * 1 - x y^4, is small: y (1-e)^(-1/4) is better, y^3 (1-e)^(-3/4) the result, both as series up to
 * e^2. Now e is so small that e^2 does not count: y (1-e)^(-1/4) again, times the result, is the
 * inverse. Errors < 2.3 and 5 ulp; a third of the operations of exp(-3/4 log(x)). */
INLINE void vf_pow_minus_3_4(int count, vf *x, vf *inverse)
{
    const vf one = vf_set1(1.0f), most = vf_set1(0x1.fffffep127f);
    vf minus[TOGETHER], y[TOGETHER], square[TOGETHER], e[TOGETHER], cube[TOGETHER];
    TOGETHER_EACH(i) minus[i] = vf_sub(vf_zero(), x[i]);
    TOGETHER_EACH(i) y[i] = vf_of_bits(vi_sub(vi_set1(0x4f586000), vi_sar2(vi_of_bits(x[i]))));
    TOGETHER_EACH(i) square[i] = vf_mul(y[i], y[i]);
    TOGETHER_EACH(i) e[i] = vf_fma(vf_mul(minus[i], square[i]), square[i], one);
    TOGETHER_EACH(i) cube[i] = vf_fma(e[i], vf_set1(5.0f / 32.0f), vf_set1(0.25f));
    TOGETHER_EACH(i) y[i] = vf_fma(vf_mul(y[i], e[i]), cube[i], y[i]);
    TOGETHER_EACH(i) square[i] = vf_mul(y[i], y[i]);
    TOGETHER_EACH(i) e[i] = vf_fma(vf_mul(minus[i], square[i]), square[i], one);
    TOGETHER_EACH(i) cube[i] = vf_mul(square[i], y[i]);
    TOGETHER_EACH(i) square[i] = vf_fma(e[i], vf_set1(21.0f / 32.0f), vf_set1(0.75f));
    TOGETHER_EACH(i) cube[i] = vf_fma(vf_mul(cube[i], e[i]), square[i], cube[i]);
    TOGETHER_EACH(i) cube[i] = vf_select(vf_gt(x[i], most), vf_zero(), cube[i]);
    if (inverse) {
        TOGETHER_EACH(i) y[i] = vf_fma(vf_mul(y[i], e[i]), vf_set1(0.25f), y[i]);
        TOGETHER_EACH(i)
        inverse[i] = vf_select(vf_gt(x[i], most), vf_zero(), vf_mul(y[i], cube[i]));
    }
    TOGETHER_EACH(i) x[i] = cube[i];
}

/* x = 1 / (1 + e^-x). Error < 3.3 ulp; zero where it would be subnormal. */
INLINE void vf_sigmoid(int count, vf *x)
{
    const vf one = vf_set1(1.0f), smallest = vf_set1(EXP_SMALLEST), most = vf_set1(-EXP_SMALLEST);
    vf t[TOGETHER], power[TOGETHER], p[TOGETHER];
    TOGETHER_EACH(i)
    t[i] = vf_min(most, vf_max(smallest, vf_of_bits(vi_xor(vi_of_bits(x[i]), vi_set1(INT32_MIN)))));
    split_exp(count, t, power, p);
    TOGETHER_EACH(i) t[i] = vf_fma(power[i], p[i], power[i]);
    TOGETHER_EACH(i) t[i] = vf_div(one, vf_add(one, t[i]));
    TOGETHER_EACH(i) x[i] = vf_select(vf_gt(smallest, x[i]), vf_zero(), t[i]);
}

/* With m = e^2x - 1, which keeps its digits near zero, x = m / (m + 2); it is one from |x| = 9.02
 * on. As in split_exp m = 2^(n/16) (1 + p) - 1, but from x itself, which gives p/2 and so takes
 * 2^(n/16 + 1); and p/2 includes what rounding left over of the power, because where that is near
 * one the difference is small. Error < 3.6 ulp; -x may give more than another sign. Zeros keep
 * theirs: what is subtracted from -0 is +0, what is added is -0. */
INLINE void vf_tanh(int count, vf *x)
{
    const vf magic = vf_set1(0x1.8p23f + 16.0f), one = vf_set1(1.0f), most = vf_set1(10.0f);
    vf m[TOGETHER], n[TOGETHER], r[TOGETHER], half[TOGETHER], twice[TOGETHER];
    TOGETHER_EACH(i) m[i] = vf_min(most, vf_max(vf_set1(-10.0f), x[i])); /* so NaN passes */
    TOGETHER_EACH(i) twice[i] = vf_fma(m[i], vf_set1(0x1.715476p5f), magic);
    TOGETHER_EACH(i) n[i] = vf_sub(twice[i], magic);
    TOGETHER_EACH(i) r[i] = vf_fma(n[i], vf_set1(-LN2 / 32), m[i]);
    TOGETHER_EACH(i) half[i] = vf_fma(r[i], vf_set1(0x1.555604p-2f), vf_set1(0x1.55565cp-1f));
    TOGETHER_EACH(i) half[i] = vf_fma(r[i], half[i], one);
    TOGETHER_EACH(i) half[i] = vf_fma(r[i], half[i], one);
    TOGETHER_EACH(i) m[i] = vf_lookup(sixteenth_rest, vi_of_bits(twice[i]));
    TOGETHER_EACH(i) half[i] = vf_fma(r[i], half[i], m[i]);
    TOGETHER_EACH(i) twice[i] = sixteenths(vi_of_bits(twice[i]));
    TOGETHER_EACH(i) m[i] = vf_fma(twice[i], vf_set1(-0.5f), one);
    TOGETHER_EACH(i) m[i] = vf_fms(twice[i], half[i], m[i]);
    TOGETHER_EACH(i) x[i] = vf_div(m[i], vf_add(m[i], vf_set1(2.0f)));
}

/* The normal distribution: below = the share below x, and density = its derivative. With t = |x|
 * the share beyond t is e^(-t^2/2) u p(u) of u = 1 / (1 + 0.26 t), p a polynomial (relative error
 * 1.8e-8); what rounding left over of t^2 is put back. Both are zero from t = 12.9 on, where they
 * would soon be subnormal. Error of x * below < 8 ulp. NaN stays. */
INLINE void vf_normal(int count, const vf *x, vf *below, vf *density)
{
    const vf one = vf_set1(1.0f), most = vf_set1(12.9f), minus_half = vf_set1(-0.5f);
    vf t[TOGETHER], u[TOGETHER], q[TOGETHER], square[TOGETHER], power[TOGETHER], p[TOGETHER];
    TOGETHER_EACH(i) t[i] = vf_of_bits(vi_and(vi_of_bits(x[i]), vi_set1(INT32_MAX)));
    TOGETHER_EACH(i) t[i] = vf_min(most, t[i]); /* in this order NaN passes */
    TOGETHER_EACH(i) u[i] = vf_div(one, vf_fma(t[i], vf_set1(0.26f), one));
    TOGETHER_EACH(i) square[i] = vf_mul(t[i], t[i]);
    TOGETHER_EACH(i) q[i] = vf_mul(square[i], minus_half);
    split_exp(count, q, power, p);
    TOGETHER_EACH(i) q[i] = vf_fma(u[i], vf_set1(0x1.fdea14p-6f), vf_set1(-0x1.3f2fep-3f));
    TOGETHER_EACH(i) q[i] = vf_fma(u[i], q[i], vf_set1(0x1.07fb4ep-2f));
    TOGETHER_EACH(i) q[i] = vf_fma(u[i], q[i], vf_set1(-0x1.441372p-3f));
    TOGETHER_EACH(i) q[i] = vf_fma(u[i], q[i], vf_set1(0x1.54157cp-3f));
    TOGETHER_EACH(i) q[i] = vf_fma(u[i], q[i], vf_set1(0x1.8fde04p-5f));
    TOGETHER_EACH(i) q[i] = vf_fma(u[i], q[i], vf_set1(0x1.a86316p-4f));
    TOGETHER_EACH(i) q[i] = vf_fma(u[i], q[i], vf_set1(0x1.a59d3ep-4f));
    TOGETHER_EACH(i) q[i] = vf_fma(u[i], q[i], vf_set1(0x1.a90496p-4f));
    TOGETHER_EACH(i) power[i] = vf_fma(power[i], p[i], power[i]);
    TOGETHER_EACH(i) power[i] = vf_keep(vf_nle(most, t[i]), power[i]);
    TOGETHER_EACH(i) density[i] = vf_mul(power[i], vf_set1(0x1.988454p-2f));
    TOGETHER_EACH(i) q[i] = vf_mul(power[i], vf_mul(q[i], u[i]));
    TOGETHER_EACH(i) t[i] = vf_mul(minus_half, vf_fms(t[i], t[i], square[i]));
    TOGETHER_EACH(i) q[i] = vf_fma(q[i], t[i], q[i]);
    TOGETHER_EACH(i) below[i] = vf_select(vf_gt(x[i], vf_zero()), vf_sub(one, q[i]), q[i]);
}

#endif
