/* Exponential, logarithm and tanh of vectors, from operations that every row rounds alike: the
 * same bits on every instruction set. Include after isa.h.
 *
 * The polynomials interpolate at Chebyshev nodes (near minimax), their coefficients rounded to
 * float; the errors below were measured over every fifth float of the range; test_math
 * takes fewer. */
#ifndef TUTTI_KERNEL_ISA_MATH_H
#define TUTTI_KERNEL_ISA_MATH_H

#include <stdint.h>

#define EXP_SMALLEST -0x1.5d589ep6f /* -87.33654: e^x is still normal */
#define LN2_HIGH     0x1.62e4p-1f   /* 16 bits of ln 2: its product with an exponent is exact */
#define LN2_LOW      0x1.7f7d1cp-20f

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
    const vf smallest = vf_set1(EXP_SMALLEST);
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

/* The functions below are chains of some twenty operations. So that a processor finds enough to do
 * in what it sees of the program at a time, they take 'count' vectors (a constant) side by side:
 * operation after operation, not vector after vector. */
enum { TOGETHER = NREG >= 32 ? 4 : 2 };
#define TOGETHER_EACH(i) UNROLL(4) for (int i = 0; i < count; i++)

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

/* e^x - 1 = 2^n p + (2^n - 1), p = e^r - 1 as above, for -87.33654 <= x <= 0. Here the 1.5 * 2^23
 * that rounds has the exponent's bias added, so that a shift makes 2^n of the sum. */
INLINE void split_exp(int count, const vf *x, vf *power, vf *p)
{
    const vf magic = vf_set1(0x1.8p23f + 127.0f);
    vf n[TOGETHER], r[TOGETHER];
    TOGETHER_EACH(i) power[i] = vf_fma(x[i], vf_set1(0x1.715476p0f), magic);
    TOGETHER_EACH(i) n[i] = vf_sub(power[i], magic);
    TOGETHER_EACH(i) power[i] = vf_of_bits(vi_shl23(vi_of_bits(power[i])));
    TOGETHER_EACH(i) r[i] = vf_fma(n[i], vf_set1(-LN2_HIGH), x[i]);
    TOGETHER_EACH(i) r[i] = vf_fma(n[i], vf_set1(-LN2_LOW), r[i]);
    TOGETHER_EACH(i) p[i] = vf_fma(r[i], vf_set1(0x1.6d10fcp-10f), vf_set1(0x1.120b62p-7f));
    TOGETHER_EACH(i) p[i] = vf_fma(p[i], r[i], vf_set1(0x1.55551ap-5f));
    TOGETHER_EACH(i) p[i] = vf_fma(p[i], r[i], vf_set1(0x1.5554dep-3f));
    TOGETHER_EACH(i) p[i] = vf_fma(p[i], r[i], vf_set1(0.5f));
    TOGETHER_EACH(i) p[i] = vf_fma(vf_mul(r[i], r[i]), p[i], r[i]);
}

/* The same as vf_exp, for x <= 0 and several. */
INLINE void vf_exp_negative(int count, vf *x)
{
    const vf smallest = vf_set1(EXP_SMALLEST);
    vf t[TOGETHER], power[TOGETHER], p[TOGETHER];
    TOGETHER_EACH(i) t[i] = vf_max(smallest, x[i]);
    split_exp(count, t, power, p);
    TOGETHER_EACH(i) t[i] = vf_fma(power[i], p[i], power[i]);
    TOGETHER_EACH(i) x[i] = vf_select(vf_gt(smallest, x[i]), vf_zero(), t[i]);
}

/* y = a/d for 1 <= d <= 2: 1/d by a parabola (error 1/99) and a step of Newton's, then the quotient
 * and what it leaves over. A division takes sixteen cycles for a vector of 16, this is seven
 * multiplications and additions. */
INLINE void quotient(int count, const vf *a, const vf *d, vf *y)
{
    vf e[TOGETHER], minus[TOGETHER], inverse[TOGETHER];
    TOGETHER_EACH(i) y[i] = vf_fma(d[i], vf_set1(32.0f / 99.0f), vf_set1(-144.0f / 99.0f));
    TOGETHER_EACH(i) minus[i] = vf_sub(vf_zero(), d[i]);
    TOGETHER_EACH(i) y[i] = vf_fma(d[i], y[i], vf_set1(210.0f / 99.0f));
    TOGETHER_EACH(i) e[i] = vf_fma(minus[i], y[i], vf_set1(1.0f));
    TOGETHER_EACH(i) inverse[i] = vf_fma(e[i], y[i], y[i]);
    TOGETHER_EACH(i) y[i] = vf_mul(a[i], inverse[i]);
    TOGETHER_EACH(i) e[i] = vf_fma(minus[i], y[i], a[i]);
    TOGETHER_EACH(i) y[i] = vf_fma(e[i], inverse[i], y[i]);
}

/* -|x|, but not below 'least'; NaN stays */
INLINE vf negative(vf x, float least)
{
    return vf_max(vf_set1(least), vf_of_bits(vi_or(vi_of_bits(x), vi_set1(INT32_MIN))));
}

/* x = 1 / (1 + e^-x) from t = e^-|x|, which never overflows: 1 / (1 + t), or t / (1 + t) where x <
 * 0. Error < 2.5 ulp; zero where it would be subnormal. */
INLINE void vf_sigmoid(int count, vf *x)
{
    const vf one = vf_set1(1.0f);
    vf t[TOGETHER], y[TOGETHER], power[TOGETHER], p[TOGETHER];
    TOGETHER_EACH(i) t[i] = negative(x[i], EXP_SMALLEST);
    split_exp(count, t, power, p);
    TOGETHER_EACH(i) t[i] = vf_fma(power[i], p[i], power[i]);
    TOGETHER_EACH(i) p[i] = vf_add(one, t[i]);
    TOGETHER_EACH(i) t[i] = vf_select(vf_gt(vf_zero(), x[i]), t[i], one);
    quotient(count, t, p, y);
    TOGETHER_EACH(i) x[i] = vf_select(vf_gt(vf_set1(EXP_SMALLEST), x[i]), vf_zero(), y[i]);
}

/* With m = e^(-2|x|) - 1, which keeps its digits near zero, x = -m / (2 + m) and the sign of x. It
 * is one from |x| = 9.02 on. Error < 2.8 ulp. */
INLINE void vf_tanh(int count, vf *x)
{
    vf m[TOGETHER], y[TOGETHER], power[TOGETHER], p[TOGETHER];
    TOGETHER_EACH(i) m[i] = negative(vf_add(x[i], x[i]), -20.0f);
    split_exp(count, m, power, p);
    TOGETHER_EACH(i) m[i] = vf_fma(power[i], p[i], vf_sub(power[i], vf_set1(1.0f)));
    TOGETHER_EACH(i) p[i] = vf_add(m[i], vf_set1(2.0f));
    quotient(count, m, p, y);
    TOGETHER_EACH(i) x[i] = vf_copysign(y[i], x[i]);
}

#endif
