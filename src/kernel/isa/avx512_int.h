/* The vector vocabulary, second part, AVX-512: masks (vm), 32-bit integers (vi), bits, and a sum
 * in double. Comparisons and choices behave alike in all rows, also on NaN. */

typedef __mmask16 vm;
typedef __m512i vi;

/* ---- floats and masks ---- */

/* a < b ? a : b, so b when they are unordered */
static inline vf vf_min(vf a, vf b)
{
    return _mm512_min_ps(a, b);
}
static inline vm vf_gt(vf a, vf b)
{
    return _mm512_cmp_ps_mask(a, b, _CMP_GT_OQ);
}
/* not a <= b: true of NaN */
static inline vm vf_nle(vf a, vf b)
{
    return _mm512_cmp_ps_mask(a, b, _CMP_NLE_UQ);
}
static inline vm vf_is_nan(vf a)
{
    return _mm512_cmp_ps_mask(a, a, _CMP_UNORD_Q);
}
static inline vm vm_or(vm a, vm b)
{
    return _mm512_kor(a, b);
}
/* m ? a : b */
static inline vf vf_select(vm m, vf a, vf b)
{
    return _mm512_mask_blend_ps(m, b, a);
}
/* m ? a : 0 */
static inline vf vf_keep(vm m, vf a)
{
    return _mm512_maskz_mov_ps(m, a);
}

/* sum, with a added where m */
static inline vf vf_add_where(vm m, vf sum, vf a)
{
    return _mm512_mask_add_ps(sum, m, sum, a);
}
static inline bool vm_all(vm m)
{
    return m == 0xffff;
}
/* m, and neither is NaN */
static inline vm vf_numbers(vm m, vf a, vf b)
{
    return _mm512_mask_cmp_ps_mask(m, a, b, _CMP_ORD_Q);
}

/* ---- integers ---- */

static inline vi vi_set1(int x)
{
    return _mm512_set1_epi32(x);
}
/* 0, 1, .. VLEN-1 */
static inline vi vi_lanes(void)
{
    return _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
}
static inline vi vi_add(vi a, vi b)
{
    return _mm512_add_epi32(a, b);
}
static inline vi vi_sub(vi a, vi b)
{
    return _mm512_sub_epi32(a, b);
}
static inline vi vi_and(vi a, vi b)
{
    return _mm512_and_si512(a, b);
}
static inline vi vi_xor(vi a, vi b)
{
    return _mm512_xor_si512(a, b);
}
static inline vi vi_xor3(vi a, vi b, vi c)
{
    return _mm512_ternarylogic_epi32(a, b, c, 0x96);
}
static inline vi vi_shl23(vi a)
{
    return _mm512_slli_epi32(a, 23);
}
static inline vi vi_shl19(vi a)
{
    return _mm512_slli_epi32(a, 19);
}
static inline vi vi_shl16(vi a)
{
    return _mm512_slli_epi32(a, 16);
}
/* arithmetic shifts */
static inline vi vi_sar23(vi a)
{
    return _mm512_srai_epi32(a, 23);
}
static inline vi vi_sar2(vi a)
{
    return _mm512_srai_epi32(a, 2);
}
static inline vi vi_select(vm m, vi a, vi b)
{
    return _mm512_mask_blend_epi32(m, b, a);
}
static inline vm vi_eq(vi a, vi b)
{
    return _mm512_cmpeq_epi32_mask(a, b);
}
/* a >= b, unsigned */
static inline vm vi_ge_u(vi a, vi b)
{
    return _mm512_cmpge_epu32_mask(a, b);
}
/* table[i], by the last four bits of i */
static inline vi vi_lookup(const int table[16], vi i)
{
    return _mm512_permutexvar_epi32(i, _mm512_loadu_si512(table));
}
static inline vf vf_lookup(const float table[16], vi i)
{
    return _mm512_permutexvar_ps(i, _mm512_loadu_ps(table));
}
/* Numbers on their way through unsigned 64-bit products: those of the even and of the odd lanes,
 * each in the low half of 64 bits. What is above it does not count, so low halves cost nothing. */
typedef struct vw {
    vi even, odd;
} vw;
static inline vw vw_of(vi a)
{
    return (vw){a, _mm512_srli_epi64(a, 32)};
}
static inline vi vi_of_wide(vw a)
{
    return _mm512_mask_shuffle_epi32(a.even, 0xAAAA, a.odd, _MM_PERM_CCAA);
}
static inline vw vw_xor(vw a, vi b)
{
    return (vw){_mm512_xor_si512(a.even, b), _mm512_xor_si512(a.odd, b)};
}
static inline vw vw_xor3(vw a, vw b, vi c)
{
    return (vw){vi_xor3(a.even, b.even, c), vi_xor3(a.odd, b.odd, c)};
}
/* the two halves of the product with b, the same in all lanes */
static inline void vw_mul_u(vw a, vi b, vw *high, vw *low)
{
    *low = (vw){_mm512_mul_epu32(a.even, b), _mm512_mul_epu32(a.odd, b)};
    *high = (vw){_mm512_srli_epi64(low->even, 32), _mm512_srli_epi64(low->odd, 32)};
}
static inline vi vi_load_u16(const unsigned short *p)
{
    return _mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)p));
}
static inline void vi_store_u16(unsigned short *p, vi a)
{
    _mm256_storeu_si256((__m256i *)p, _mm512_cvtepi32_epi16(a));
}
/* Around the caches; p is aligned to 2 * VLEN bytes. */
static inline void vi_stream_u16(unsigned short *p, vi a)
{
    _mm256_stream_si256((__m256i *)p, _mm512_cvtepi32_epi16(a));
}

/* ---- between them ---- */

static inline vi vi_of_bits(vf a)
{
    return _mm512_castps_si512(a);
}
static inline vf vf_of_bits(vi a)
{
    return _mm512_castsi512_ps(a);
}
/* the number, rounded to nearest even */
static inline vf vf_of_int(vi a)
{
    return _mm512_cvtepi32_ps(a);
}

/* ---- double ---- */

/* The sum of the squares of eight leaves of 16 floats: each by halves, x[l]^2 + x[l+8]^2, then 4
 * lanes, 2, 1; then neighbours. A square of a float is exact in double, so fused or not makes no
 * difference. The leaves are halved together: two leaves' halves side by side, then four's
 * quarters, eight's. */

static inline __m512d squares_by_8(const float *x)
{
    const __m512d a = _mm512_cvtps_pd(_mm256_loadu_ps(x));
    const __m512d b = _mm512_cvtps_pd(_mm256_loadu_ps(x + 8));
    return _mm512_fmadd_pd(a, a, _mm512_mul_pd(b, b));
}
static inline __m512d halves_of_2(const float *x) /* [leaf 0: 4 lanes | leaf 1: 4 lanes] */
{
    const __m512d a = squares_by_8(x), b = squares_by_8(x + 16);
    return _mm512_add_pd(_mm512_shuffle_f64x2(a, b, 0x44), _mm512_shuffle_f64x2(a, b, 0xee));
}
static inline __m512d quarters_of_4(const float *x) /* 2 lanes of leaves 0, 1, 2, 3 */
{
    const __m512d a = halves_of_2(x), b = halves_of_2(x + 32);
    return _mm512_add_pd(_mm512_shuffle_f64x2(a, b, 0x88), _mm512_shuffle_f64x2(a, b, 0xdd));
}
static inline double squares_of_8(const float *x)
{
    const __m512d a = quarters_of_4(x), b = quarters_of_4(x + 64);
    const __m512d all = _mm512_add_pd(_mm512_unpacklo_pd(a, b), _mm512_unpackhi_pd(a, b));
    const __m512d twos = _mm512_add_pd(all, _mm512_shuffle_f64x2(all, all, 0xb1)); /* 0 4 1 5 .. */
    const __m128d fours = _mm_add_pd(_mm512_castpd512_pd128(twos), _mm512_extractf64x2_pd(twos, 2));
    return _mm_cvtsd_f64(fours) + _mm_cvtsd_f64(_mm_unpackhi_pd(fours, fours));
}
