/* The vector vocabulary, AVX-512. All rows speak the same words: a vf holds VLEN floats, and
 * every multiply-add is fused, so all rows round alike. What each holds in its registers is in
 * avx512_tiles.h and its like. Only static inline functions here: an out-of-line one compiled with
 * this row's flags could be the copy the linker keeps. */
#include <immintrin.h>

#define ISA   avx512
#define NEEDS TUTTI_CPU_AVX512
#define VLEN  16

typedef __m512 vf;

/* Holds a vector variable in a register. gcc likes to make a load that several multiply-adds use
 * part of each of them, and loads are dear. */
#define HOLD(x) __asm__("" : "+v"(x))

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
static inline vf vf_sqrt(vf x)
{
    return _mm512_sqrt_ps(x);
}
static inline vf vf_fma(vf a, vf b, vf c)
{
    return _mm512_fmadd_ps(a, b, c);
} /* a*b + c */
static inline vf vf_fms(vf a, vf b, vf c)
{
    return _mm512_fmsub_ps(a, b, c);
} /* a*b - c */

/* a > b ? a : b, so b when they are unordered: vf_max(vf_zero(), x) is a ReLU that keeps NaN. */
static inline vf vf_max(vf a, vf b)
{
    return _mm512_max_ps(a, b);
}
/* x, but +0 where m <= 0: the gradient through a ReLU whose input or output is m. */
static inline vf vf_gate(vf x, vf m)
{
    return _mm512_maskz_mov_ps(_mm512_cmp_ps_mask(m, _mm512_setzero_ps(), _CMP_NLE_UQ), x);
}
/* A store past the caches, for what nobody reads soon; p is aligned to the vector. */
static inline void vf_stream(float *p, vf x)
{
    _mm512_stream_ps(p, x);
}
/* Of groups of n lanes, n = 1, 2, 4 or 8, each with its lane j everywhere; vs_of(lane, n, j) is for
 * a vector whose first lane is 'lane' of a block of 16. */
typedef __m512i vs;
static inline vs vs_of(int lane, int n, int j)
{
    (void)lane;
    const __m512i lanes = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    return _mm512_add_epi32(_mm512_and_si512(lanes, _mm512_set1_epi32(-n)), _mm512_set1_epi32(j));
}
static inline vf vf_spread(const float *p, vs from)
{
    return _mm512_permutexvar_ps(from, _mm512_loadu_ps(p));
}
/* Rows into columns: lane j of v[i] becomes lane i of v[j]. */
static inline __attribute__((always_inline)) void vf_transpose(vf v[VLEN])
{
    __m512 t[16];
#pragma GCC unroll 8
    for (int i = 0; i < 16; i += 2) { /* pairs of rows: 2x2 floats */
        t[i] = _mm512_unpacklo_ps(v[i], v[i + 1]);
        t[i + 1] = _mm512_unpackhi_ps(v[i], v[i + 1]);
    }
#pragma GCC unroll 4
    for (int i = 0; i < 16; i += 4) { /* 4x4 floats within each quarter */
        const __m512d a = _mm512_castps_pd(t[i]), b = _mm512_castps_pd(t[i + 1]);
        const __m512d c = _mm512_castps_pd(t[i + 2]), d = _mm512_castps_pd(t[i + 3]);
        v[i] = _mm512_castpd_ps(_mm512_unpacklo_pd(a, c));
        v[i + 1] = _mm512_castpd_ps(_mm512_unpackhi_pd(a, c));
        v[i + 2] = _mm512_castpd_ps(_mm512_unpacklo_pd(b, d));
        v[i + 3] = _mm512_castpd_ps(_mm512_unpackhi_pd(b, d));
    }
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) { /* 4x4 quarters */
        const __m512 ac = _mm512_shuffle_f32x4(v[i], v[i + 4], 0x88);
        const __m512 bd = _mm512_shuffle_f32x4(v[i], v[i + 4], 0xdd);
        const __m512 eg = _mm512_shuffle_f32x4(v[i + 8], v[i + 12], 0x88);
        const __m512 fh = _mm512_shuffle_f32x4(v[i + 8], v[i + 12], 0xdd);
        t[i] = _mm512_shuffle_f32x4(ac, eg, 0x88);
        t[i + 4] = _mm512_shuffle_f32x4(bd, fh, 0x88);
        t[i + 8] = _mm512_shuffle_f32x4(ac, eg, 0xdd);
        t[i + 12] = _mm512_shuffle_f32x4(bd, fh, 0xdd);
    }
#pragma GCC unroll 16
    for (int i = 0; i < 16; i++) v[i] = t[i];
}

#include "kernel/isa/avx512_int.h"
#include "kernel/isa/avx512_tiles.h"
#include "kernel/isa/avx512_bf16.h"
