/* The vector vocabulary, second part, AVX2; see avx512_int.h. */

typedef __m256 vm; /* all bits of a lane set or none */
typedef __m256i vi;

static inline vf vf_min(vf a, vf b)
{
    return _mm256_min_ps(a, b);
}
static inline vm vf_gt(vf a, vf b)
{
    return _mm256_cmp_ps(a, b, _CMP_GT_OQ);
}
static inline vm vf_nle(vf a, vf b)
{
    return _mm256_cmp_ps(a, b, _CMP_NLE_UQ);
}
static inline vm vf_is_nan(vf a)
{
    return _mm256_cmp_ps(a, a, _CMP_UNORD_Q);
}
static inline vm vm_or(vm a, vm b)
{
    return _mm256_or_ps(a, b);
}
static inline vf vf_select(vm m, vf a, vf b)
{
    return _mm256_blendv_ps(b, a, m);
}
static inline vf vf_keep(vm m, vf a)
{
    return _mm256_and_ps(m, a);
}

static inline vf vf_add_where(vm m, vf sum, vf a)
{
    return _mm256_add_ps(sum, _mm256_and_ps(m, a));
}
static inline bool vm_all(vm m)
{
    return _mm256_movemask_ps(m) == 0xff;
}
static inline vm vf_numbers(vm m, vf a, vf b)
{
    return _mm256_and_ps(m, _mm256_cmp_ps(a, b, _CMP_ORD_Q));
}

static inline vi vi_set1(int x)
{
    return _mm256_set1_epi32(x);
}
static inline vi vi_lanes(void)
{
    return _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
}
static inline vi vi_add(vi a, vi b)
{
    return _mm256_add_epi32(a, b);
}
static inline vi vi_sub(vi a, vi b)
{
    return _mm256_sub_epi32(a, b);
}
static inline vi vi_and(vi a, vi b)
{
    return _mm256_and_si256(a, b);
}
static inline vi vi_xor(vi a, vi b)
{
    return _mm256_xor_si256(a, b);
}
static inline vi vi_xor3(vi a, vi b, vi c)
{
    return _mm256_xor_si256(_mm256_xor_si256(a, b), c);
}
static inline vi vi_shl23(vi a)
{
    return _mm256_slli_epi32(a, 23);
}
static inline vi vi_shl19(vi a)
{
    return _mm256_slli_epi32(a, 19);
}
static inline vi vi_shl16(vi a)
{
    return _mm256_slli_epi32(a, 16);
}
static inline vi vi_sar23(vi a)
{
    return _mm256_srai_epi32(a, 23);
}
static inline vi vi_sar2(vi a)
{
    return _mm256_srai_epi32(a, 2);
}
static inline vi vi_select(vm m, vi a, vi b)
{
    return _mm256_blendv_epi8(b, a, _mm256_castps_si256(m));
}
static inline vm vi_eq(vi a, vi b)
{
    return _mm256_castsi256_ps(_mm256_cmpeq_epi32(a, b));
}
static inline vm vi_ge_u(vi a, vi b)
{
    return _mm256_castsi256_ps(_mm256_cmpeq_epi32(_mm256_max_epu32(a, b), a));
}
static inline vf vf_lookup(const float table[16], vi i)
{
    const vf low = _mm256_permutevar8x32_ps(_mm256_loadu_ps(table), i);
    const vf high = _mm256_permutevar8x32_ps(_mm256_loadu_ps(table + 8), i);
    return _mm256_blendv_ps(low, high, _mm256_castsi256_ps(_mm256_slli_epi32(i, 28)));
}
static inline vi vi_lookup(const int table[16], vi i)
{
    return _mm256_castps_si256(vf_lookup((const float *)table, i));
}
/* Numbers on their way through unsigned 64-bit products: those of the even and of the odd lanes,
 * each in the low half of 64 bits. What is above it does not count, so low halves cost nothing. */
typedef struct vw {
    vi even, odd;
} vw;
static inline vw vw_of(vi a)
{
    return (vw){a, _mm256_srli_epi64(a, 32)};
}
static inline vi vi_of_wide(vw a)
{
    return _mm256_blend_epi32(a.even, _mm256_slli_epi64(a.odd, 32), 0xAA);
}
static inline vw vw_xor(vw a, vi b)
{
    return (vw){_mm256_xor_si256(a.even, b), _mm256_xor_si256(a.odd, b)};
}
static inline vw vw_xor3(vw a, vw b, vi c)
{
    return (vw){vi_xor3(a.even, b.even, c), vi_xor3(a.odd, b.odd, c)};
}
/* the two halves of the product with b, the same in all lanes */
static inline void vw_mul_u(vw a, vi b, vw *high, vw *low)
{
    *low = (vw){_mm256_mul_epu32(a.even, b), _mm256_mul_epu32(a.odd, b)};
    *high = (vw){_mm256_srli_epi64(low->even, 32), _mm256_srli_epi64(low->odd, 32)};
}
static inline vi vi_load_u16(const unsigned short *p)
{
    return _mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)p));
}
static inline __m128i u16_of(vi a)
{
    return _mm_packus_epi32(_mm256_castsi256_si128(a), _mm256_extracti128_si256(a, 1));
}
static inline void vi_store_u16(unsigned short *p, vi a)
{
    _mm_storeu_si128((__m128i *)p, u16_of(a));
}
static inline void vi_stream_u16(unsigned short *p, vi a)
{
    _mm_stream_si128((__m128i *)p, u16_of(a));
}

static inline vi vi_of_bits(vf a)
{
    return _mm256_castps_si256(a);
}
static inline vf vf_of_bits(vi a)
{
    return _mm256_castsi256_ps(a);
}
static inline vf vf_of_int(vi a)
{
    return _mm256_cvtepi32_ps(a);
}

static inline __m256d squares_by_4(const float *x)
{
    const __m256d a = _mm256_cvtps_pd(_mm_loadu_ps(x)), b = _mm256_cvtps_pd(_mm_loadu_ps(x + 4));
    const __m256d c = _mm256_cvtps_pd(_mm_loadu_ps(x + 8)),
                  d = _mm256_cvtps_pd(_mm_loadu_ps(x + 12));
    const __m256d low = _mm256_fmadd_pd(a, a, _mm256_mul_pd(c, c));
    const __m256d high = _mm256_fmadd_pd(b, b, _mm256_mul_pd(d, d));
    return _mm256_add_pd(low, high);
}
static inline __m256d halves_of_2(const float *x) /* 2 lanes of leaves 0, 1 */
{
    const __m256d a = squares_by_4(x), b = squares_by_4(x + 16);
    return _mm256_add_pd(_mm256_permute2f128_pd(a, b, 0x20), _mm256_permute2f128_pd(a, b, 0x31));
}
static inline double squares_of_4(const float *x)
{
    const __m256d a = halves_of_2(x), b = halves_of_2(x + 32);
    const __m256d all = _mm256_add_pd(_mm256_unpacklo_pd(a, b), _mm256_unpackhi_pd(a, b));
    const __m128d twos = /* all: leaves 0 2 1 3 */
        _mm_add_pd(_mm256_castpd256_pd128(all), _mm256_extractf128_pd(all, 1));
    return _mm_cvtsd_f64(twos) + _mm_cvtsd_f64(_mm_unpackhi_pd(twos, twos));
}
static inline double squares_of_8(const float *x)
{
    return squares_of_4(x) + squares_of_4(x + 64);
}
