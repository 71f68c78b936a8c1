/* The vector vocabulary, second part, in plain C; see avx512_int.h. */
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

typedef bool vm;
typedef int32_t vi; /* wraps: sums go through uint32_t */

static inline vf vf_min(vf a, vf b)
{
    return a < b ? a : b;
}
static inline vm vf_gt(vf a, vf b)
{
    return a > b;
}
static inline vm vf_nle(vf a, vf b)
{
    return !(a <= b);
}
static inline vm vf_is_nan(vf a)
{
    return a != a;
}
static inline vm vm_or(vm a, vm b)
{
    return a || b;
}
static inline vf vf_select(vm m, vf a, vf b)
{
    return m ? a : b;
}
static inline vf vf_keep(vm m, vf a)
{
    return m ? a : 0.0f;
}

static inline vf vf_add_where(vm m, vf sum, vf a)
{
    return m ? sum + a : sum;
}
static inline bool vm_all(vm m)
{
    return m;
}
static inline vm vf_numbers(vm m, vf a, vf b)
{
    return m && a == a && b == b;
}

static inline vi vi_set1(int x)
{
    return x;
}
static inline vi vi_lanes(void)
{
    return 0;
}
static inline vi vi_add(vi a, vi b)
{
    return (vi)((uint32_t)a + (uint32_t)b);
}
static inline vi vi_sub(vi a, vi b)
{
    return (vi)((uint32_t)a - (uint32_t)b);
}
static inline vi vi_and(vi a, vi b)
{
    return a & b;
}
static inline vi vi_xor(vi a, vi b)
{
    return a ^ b;
}
static inline vi vi_xor3(vi a, vi b, vi c)
{
    return a ^ b ^ c;
}
static inline vi vi_shl23(vi a)
{
    return (vi)((uint32_t)a << 23);
}
static inline vi vi_shl19(vi a)
{
    return (vi)((uint32_t)a << 19);
}
static inline vi vi_shl16(vi a)
{
    return (vi)((uint32_t)a << 16);
}
static inline vi vi_sar23(vi a)
{
    return a >> 23;
}
static inline vi vi_sar2(vi a)
{
    return a >> 2;
}
static inline vi vi_select(vm m, vi a, vi b)
{
    return m ? a : b;
}
static inline vm vi_eq(vi a, vi b)
{
    return a == b;
}
static inline vm vi_ge_u(vi a, vi b)
{
    return (uint32_t)a >= (uint32_t)b;
}
static inline vi vi_lookup(const int table[16], vi i)
{
    return table[i & 15];
}
static inline vf vf_lookup(const float table[16], vi i)
{
    return table[i & 15];
}
/* numbers on their way through unsigned 64-bit products */
typedef struct vw {
    uint32_t number;
} vw;
static inline vw vw_of(vi a)
{
    return (vw){(uint32_t)a};
}
static inline vi vi_of_wide(vw a)
{
    return (vi)a.number;
}
static inline vw vw_xor(vw a, vi b)
{
    return (vw){a.number ^ (uint32_t)b};
}
static inline vw vw_xor3(vw a, vw b, vi c)
{
    return (vw){a.number ^ b.number ^ (uint32_t)c};
}
/* the two halves of the product */
static inline void vw_mul_u(vw a, vi b, vw *high, vw *low)
{
    const uint64_t product = (uint64_t)a.number * (uint32_t)b;
    *high = (vw){(uint32_t)(product >> 32)};
    *low = (vw){(uint32_t)product};
}
static inline vi vi_load_u16(const unsigned short *p)
{
    return *p;
}
static inline void vi_store_u16(unsigned short *p, vi a)
{
    *p = (unsigned short)a;
}
static inline void vi_stream_u16(unsigned short *p, vi a)
{
    *p = (unsigned short)a;
}

static inline vi vi_of_bits(vf a)
{
    vi bits;
    memcpy(&bits, &a, sizeof bits);
    return bits;
}
static inline vf vf_of_bits(vi a)
{
    vf x;
    memcpy(&x, &a, sizeof x);
    return x;
}
static inline vf vf_of_int(vi a)
{
    return (float)a;
}

static inline double squares_of_1(const float *x)
{
    double lane[8];
    for (int l = 0; l < 8; l++) lane[l] = (double)x[l] * x[l] + (double)x[l + 8] * x[l + 8];
    for (int half = 4; half; half /= 2)
        for (int l = 0; l < half; l++) lane[l] += lane[l + half];
    return lane[0];
}
static inline double squares_of_8(const float *x)
{
    double leaf[8];
    for (int i = 0; i < 8; i++) leaf[i] = squares_of_1(x + 16 * i);
    return ((leaf[0] + leaf[1]) + (leaf[2] + leaf[3])) +
           ((leaf[4] + leaf[5]) + (leaf[6] + leaf[7]));
}
