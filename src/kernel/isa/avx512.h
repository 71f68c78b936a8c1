/* The vector vocabulary, AVX-512. All rows speak the same words: a vf holds VLEN floats, and
 * every multiply-add is fused, so all rows round alike. Only static inline functions here: an
 * out-of-line one compiled with this row's flags could be the copy the linker keeps. */
#include <immintrin.h>

#define ISA  avx512
#define VLEN 16
#define NREG 32

typedef __m512 vf;

static inline vf vf_zero(void)
{
    return _mm512_setzero_ps();
}
static inline vf vf_set1(float x)
{
    return _mm512_set1_ps(x);
}
static inline vf vf_load(const float *p)
{
    return _mm512_loadu_ps(p);
}
static inline void vf_store(float *p, vf x)
{
    _mm512_storeu_ps(p, x);
}
static inline vf vf_add(vf a, vf b)
{
    return _mm512_add_ps(a, b);
}
static inline vf vf_sub(vf a, vf b)
{
    return _mm512_sub_ps(a, b);
}
static inline vf vf_mul(vf a, vf b)
{
    return _mm512_mul_ps(a, b);
}
static inline vf vf_div(vf a, vf b)
{
    return _mm512_div_ps(a, b);
}
static inline vf vf_fma(vf a, vf b, vf c)
{
    return _mm512_fmadd_ps(a, b, c);
} /* a*b + c */
