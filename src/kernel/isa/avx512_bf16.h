/* The vector vocabulary, third part, AVX-512: products of bf16, as bf16_kernels.h says. A vh holds
 * VLEN slots of two terms. Where there is no instruction that multiplies them, each half becomes an
 * fp32, whose multiply-adds obey MXCSR, as all additions do: vf_flush_begin must be in effect. */
#include <string.h>

/* Numbers that are not normal count as zero from here on until vf_flush_end gets what this
 * returned. What is loaded after the one and stored before the other is computed so. */
static inline unsigned vf_flush_begin(void)
{
    const unsigned before = _mm_getcsr();
    _mm_setcsr(before | 0x8040);
    __asm__ volatile("" ::: "memory");
    return before;
}
static inline void vf_flush_end(unsigned before)
{
    __asm__ volatile("" ::: "memory");
    _mm_setcsr(before);
}
/* a + b, both results of this arithmetic */
static inline vf vf_add_flushed(vf a, vf b)
{
    return _mm512_add_ps(a, b);
}

static inline vi vi_shr16(vi a)
{
    return _mm512_srli_epi32(a, 16);
}
static inline void vi_store_pairs(unsigned short *p, vi a)
{
    _mm512_storeu_si512(p, a);
}
static inline vi vi_load_pairs(const unsigned short *p)
{
    return _mm512_loadu_si512(p);
}

#if defined(__AVX512BF16__)

typedef __m512i vh;

static inline vh vh_load(const unsigned short *p)
{
    return _mm512_loadu_si512(p);
}
static inline vh vh_set1(const unsigned short *p)
{
    int pair;
    memcpy(&pair, p, sizeof pair);
    return _mm512_set1_epi32(pair);
}
/* The products ignore MXCSR, so sums may be flushed by hand where others among them must not. */
#define BF16_TREES 1

static inline vm vf_is_normal(vf x)
{
    return _mm512_test_epi32_mask(vi_of_bits(x), _mm512_set1_epi32(0x7f800000));
}
/* sum + the product of the high halves, then of the low ones */
static inline vf vh_dot(vf sum, vh a, vh b)
{
    return _mm512_dpbf16_ps(sum, (__m512bh)a, (__m512bh)b);
}
/* Rounded: 'high' in the high halves. */
static inline vi vi_pair(vf high, vf low)
{
    const __m512i weave =
        _mm512_set_epi16(31, 15, 30, 14, 29, 13, 28, 12, 27, 11, 26, 10, 25, 9, 24, 8, 23, 7, 22, 6,
                         21, 5, 20, 4, 19, 3, 18, 2, 17, 1, 16, 0);
    return _mm512_permutexvar_epi16(weave, (__m512i)_mm512_cvtne2ps_pbh(high, low));
}
/* The row of 16 terms and 16 more. */
static inline void vi_store_row(unsigned short *to, const float *low, const float *high)
{
    const __m512i place =
        _mm512_set_epi16(29, 31, 25, 27, 21, 23, 17, 19, 13, 15, 9, 11, 5, 7, 1, 3, 28, 30, 24, 26,
                         20, 22, 16, 18, 12, 14, 8, 10, 4, 6, 0, 2);
    const __m512bh both = _mm512_cvtne2ps_pbh(_mm512_loadu_ps(high), _mm512_loadu_ps(low));
    _mm512_storeu_si512(to, _mm512_permutexvar_epi16(place, (__m512i)both));
}

#else

#define BF16_TREES 0

typedef struct vh {
    vf high, low;
} vh;

static inline vh vh_of(vi pairs)
{
    return (vh){vf_of_bits(_mm512_and_si512(pairs, _mm512_set1_epi32(-65536))),
                vf_of_bits(_mm512_slli_epi32(pairs, 16))};
}
static inline vh vh_load(const unsigned short *p)
{
    return vh_of(_mm512_loadu_si512(p));
}
static inline vh vh_set1(const unsigned short *p)
{
    int pair;
    memcpy(&pair, p, sizeof pair);
    return vh_of(_mm512_set1_epi32(pair));
}
static inline vf vh_dot(vf sum, vh a, vh b)
{
    return _mm512_fmadd_ps(a.low, b.low, _mm512_fmadd_ps(a.high, b.high, sum));
}

#include "kernel/isa/round.h"

/* of terms 0, 1, 2, 3 those of slot 0, then 1 */
static inline vi fours(const float *p)
{
    const vi terms = vi_round(vf_load(p));
    return vi_xor(terms, vi_shr16(_mm512_shuffle_epi32(terms, _MM_PERM_BADC)));
}
static inline void vi_store_row(unsigned short *to, const float *low, const float *high)
{
    const __m512i order =
        _mm512_setr_epi32(0, 4, 8, 12, 16, 20, 24, 28, 1, 5, 9, 13, 17, 21, 25, 29);
    _mm512_storeu_si512(to, _mm512_permutex2var_epi32(fours(low), order, fours(high)));
}

#endif
