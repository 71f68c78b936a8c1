/* The vector vocabulary, third part, AVX2: products of bf16; see avx512_bf16.h. */
#include <string.h>

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
static inline vf vf_add_flushed(vf a, vf b)
{
    return _mm256_add_ps(a, b);
}

static inline vi vi_shr16(vi a)
{
    return _mm256_srli_epi32(a, 16);
}
static inline void vi_store_pairs(unsigned short *p, vi a)
{
    _mm256_storeu_si256((__m256i *)(void *)p, a);
}
static inline vi vi_load_pairs(const unsigned short *p)
{
    return _mm256_loadu_si256((const __m256i *)(const void *)p);
}

#define BF16_TREES 0

typedef struct vh {
    vf high, low;
} vh;

static inline vh vh_of(vi pairs)
{
    return (vh){vf_of_bits(_mm256_and_si256(pairs, _mm256_set1_epi32(-65536))),
                vf_of_bits(_mm256_slli_epi32(pairs, 16))};
}
static inline vh vh_load(const unsigned short *p)
{
    return vh_of(vi_load_pairs(p));
}
static inline vh vh_set1(const unsigned short *p)
{
    int pair;
    memcpy(&pair, p, sizeof pair);
    return vh_of(_mm256_set1_epi32(pair));
}
static inline vf vh_dot(vf sum, vh a, vh b)
{
    return _mm256_fmadd_ps(a.low, b.low, _mm256_fmadd_ps(a.high, b.high, sum));
}

#include "kernel/isa/round.h"

/* [even slot 0, 1, odd slot 0, 1] of eight terms */
static inline __m128i eight(const float *p)
{
    const vi terms = vi_round(vf_load(p));
    const vi pairs = vi_xor(terms, vi_shr16(_mm256_shuffle_epi32(terms, 0x4e)));
    const vi order = _mm256_setr_epi32(0, 4, 1, 5, 0, 4, 1, 5);
    return _mm256_castsi256_si128(_mm256_permutevar8x32_epi32(pairs, order));
}
static inline void vi_store_row(unsigned short *to, const float *low, const float *high)
{
    const __m128i part[4] = {eight(low), eight(low + 8), eight(high), eight(high + 8)};
    __m128i *const row = (__m128i *)(void *)to;
    _mm_storeu_si128(row, _mm_unpacklo_epi64(part[0], part[1]));
    _mm_storeu_si128(row + 1, _mm_unpacklo_epi64(part[2], part[3]));
    _mm_storeu_si128(row + 2, _mm_unpackhi_epi64(part[0], part[1]));
    _mm_storeu_si128(row + 3, _mm_unpackhi_epi64(part[2], part[3]));
}
