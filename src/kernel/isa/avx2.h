/* The vector vocabulary, AVX2 with FMA; see avx512.h. */
#include <immintrin.h>

#define ISA   avx2
#define NEEDS TUTTI_CPU_AVX2
#define VLEN  8

typedef __m256 vf;

#define HOLD(x) __asm__("" : "+v"(x))

static inline vf vf_zero(void)
{
    return _mm256_setzero_ps();
}
static inline vf vf_set1(float x)
{
    return _mm256_set1_ps(x);
}
static inline vf vf_load(const float *p)
{
    return _mm256_loadu_ps(p);
}
static inline void vf_store(float *p, vf x)
{
    _mm256_storeu_ps(p, x);
}
static inline vf vf_add(vf a, vf b)
{
    return _mm256_add_ps(a, b);
}
static inline vf vf_sub(vf a, vf b)
{
    return _mm256_sub_ps(a, b);
}
static inline vf vf_mul(vf a, vf b)
{
    return _mm256_mul_ps(a, b);
}
static inline vf vf_div(vf a, vf b)
{
    return _mm256_div_ps(a, b);
}
static inline vf vf_sqrt(vf x)
{
    return _mm256_sqrt_ps(x);
}
static inline vf vf_fma(vf a, vf b, vf c)
{
    return _mm256_fmadd_ps(a, b, c);
}
static inline vf vf_fms(vf a, vf b, vf c)
{
    return _mm256_fmsub_ps(a, b, c);
}
static inline vf vf_max(vf a, vf b)
{
    return _mm256_max_ps(a, b);
}
static inline vf vf_gate(vf x, vf m)
{
    return _mm256_and_ps(_mm256_cmp_ps(m, _mm256_setzero_ps(), _CMP_NLE_UQ), x);
}
static inline void vf_stream(float *p, vf x)
{
    _mm256_stream_ps(p, x);
}
typedef __m256i vs;
static inline vs vs_of(int lane, int n, int j)
{
    (void)lane;
    const __m256i lanes = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    return _mm256_add_epi32(_mm256_and_si256(lanes, _mm256_set1_epi32(-n)), _mm256_set1_epi32(j));
}
static inline vf vf_spread(const float *p, vs from)
{
    return _mm256_permutevar8x32_ps(_mm256_loadu_ps(p), from);
}
static inline __attribute__((always_inline)) void vf_transpose(vf v[VLEN])
{
    __m256 t[8];
#pragma GCC unroll 4
    for (int i = 0; i < 8; i += 2) { /* pairs of rows: 2x2 floats */
        t[i] = _mm256_unpacklo_ps(v[i], v[i + 1]);
        t[i + 1] = _mm256_unpackhi_ps(v[i], v[i + 1]);
    }
#pragma GCC unroll 2
    for (int i = 0; i < 8; i += 4) { /* 4x4 floats within each half */
        v[i] = _mm256_shuffle_ps(t[i], t[i + 2], 0x44);
        v[i + 1] = _mm256_shuffle_ps(t[i], t[i + 2], 0xee);
        v[i + 2] = _mm256_shuffle_ps(t[i + 1], t[i + 3], 0x44);
        v[i + 3] = _mm256_shuffle_ps(t[i + 1], t[i + 3], 0xee);
    }
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) { /* 2x2 halves */
        const __m256 a = v[i], b = v[i + 4];
        v[i] = _mm256_permute2f128_ps(a, b, 0x20);
        v[i + 4] = _mm256_permute2f128_ps(a, b, 0x31);
    }
}

#include "kernel/isa/avx2_int.h"
#include "kernel/isa/avx2_tiles.h"
#include "kernel/isa/avx2_bf16.h"
