/* The vector vocabulary in plain C; see avx512.h. fmaf is exact on every machine, by instruction
 * or by libm. */
#include <math.h>

#define ISA   scalar
#define NEEDS 0
#define VLEN  1

typedef float vf;

#define HOLD(x) ((void)(x))

static inline vf vf_zero(void)
{
    return 0.0f;
}
static inline vf vf_set1(float x)
{
    return x;
}
static inline vf vf_load(const float *p)
{
    return *p;
}
static inline void vf_store(float *p, vf x)
{
    *p = x;
}
static inline vf vf_add(vf a, vf b)
{
    return a + b;
}
static inline vf vf_sub(vf a, vf b)
{
    return a - b;
}
static inline vf vf_mul(vf a, vf b)
{
    return a * b;
}
static inline vf vf_div(vf a, vf b)
{
    return a / b;
}
static inline vf vf_sqrt(vf x)
{
    return sqrtf(x);
}
static inline vf vf_fma(vf a, vf b, vf c)
{
    return fmaf(a, b, c);
}
/* gcc makes one instruction of a multiply-add and the negation of its result, which then is +0
 * where it was -0: it must not see that c may be one. */
static inline vf vf_fms(vf a, vf b, vf c)
{
    __asm__("" : "+r"(c));
    return fmaf(a, b, -c);
}
static inline vf vf_max(vf a, vf b)
{
    return a > b ? a : b;
}
static inline vf vf_gate(vf x, vf m)
{
    return m <= 0.0f ? 0.0f : x;
}
static inline void vf_stream(float *p, vf x)
{
    *p = x;
}
typedef int vs;
static inline vs vs_of(int lane, int n, int j)
{
    return j - lane % n;
}
static inline vf vf_spread(const float *p, vs from)
{
    return p[from];
}
static inline void vf_transpose(vf v[VLEN])
{
    (void)v;
}

#include "kernel/isa/scalar_int.h"
#include "kernel/isa/scalar_tiles.h"
#include "kernel/isa/scalar_bf16.h"
