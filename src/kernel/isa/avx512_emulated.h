/* The AVX-512 row on a processor that has only AVX2, for tests alone: SIMDe turns each intrinsic
 * into two of half the width, and avx512.h is included as it is, so its lanes, masks and tiles are
 * those of the real row and so are its bits. Built by -Demulate_avx512=true. */
#include <immintrin.h>
#define SIMDE_ENABLE_NATIVE_ALIASES
#include <simde/x86/avx512.h>

/* ---- what SIMDe 0.7.4 lacks ---- */

typedef int emulated_i32 __attribute__((vector_size(64)));
typedef unsigned short emulated_u16 __attribute__((vector_size(32)));
typedef float emulated_f32 __attribute__((vector_size(32)));

static inline __m512i emulated_srai(__m512i a, int count)
{
    return (__m512i)((emulated_i32)a >> count);
}
static inline __m512i emulated_widen_u16(__m256i a)
{
    return (__m512i) __builtin_convertvector((emulated_u16)a, emulated_i32);
}
static inline __m256i emulated_narrow_u16(__m512i a)
{
    return (__m256i) __builtin_convertvector((emulated_i32)a, emulated_u16);
}
static inline __m512 emulated_float_of_int(__m512i a)
{
    return (__m512) __builtin_convertvector((emulated_i32)a, __m512);
}
static inline __m512d emulated_double_of_float(__m256 a)
{
    return (__m512d) __builtin_convertvector((emulated_f32)a, __m512d);
}
/* lane i of a quarter takes lane (order >> 2i) % 4 of a's, where mask; else keep's */
static inline __m512i emulated_shuffle(__m512i keep, __mmask16 mask, __m512i a, int order)
{
    emulated_i32 from = (emulated_i32)a, to = (emulated_i32)keep;
    for (int i = 0; i < 16; i++)
        if (mask >> i & 1) to[i] = from[(i & ~3) + (order >> 2 * (i & 3) & 3)];
    return (__m512i)to;
}
static inline __m128d emulated_pair(__m512d a, int which)
{
    return _mm_setr_pd(a[2 * which], a[2 * which + 1]);
}

#define _mm512_srai_epi32                     emulated_srai
#define _mm512_cvtepu16_epi32                 emulated_widen_u16
#define _mm512_cvtepi32_epi16                 emulated_narrow_u16
#define _mm512_cvtepi32_ps                    emulated_float_of_int
#define _mm512_cvtps_pd                       emulated_double_of_float
#define _mm512_mask_shuffle_epi32             emulated_shuffle
#define _mm512_extractf64x2_pd                emulated_pair
#define _mm512_kor(a, b)                      ((__mmask16)((a) | (b)))
#define _mm512_mask_cmp_ps_mask(m, a, b, how) ((__mmask16)((m)&_mm512_cmp_ps_mask(a, b, how)))
#define _mm512_shuffle_f32x4                  simde_mm512_shuffle_f32x4
#define _mm512_shuffle_f64x2                  simde_mm512_shuffle_f64x2
#define _mm512_stream_ps                      _mm512_storeu_ps

#include "kernel/isa/avx512.h"

#undef NEEDS
#define NEEDS TUTTI_CPU_AVX2
#undef HOLD
#define HOLD(x) ((void)(x)) /* no register holds it */
