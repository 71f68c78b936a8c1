/* Softmax of one sample and its cross-entropy. Lane l of the 16 sums classes l, l+16, ...; the
 * lanes are joined by halves. Every row keeps its 16 lanes in PARTS registers. */
#include "kernel/isa/isa.h"
#include "kernel/isa/math.h"
#include "base/memory.h"
#include "kernel/ops_kernels.h"

enum { PARTS = TUTTI_BLOCK / VLEN };

/* Element at + l of a row stays where it is a class, and is 'filler' where it only fills up. */
INLINE vf classes_only(int classes, int at, vf x, vf filler)
{
    return vf_select(vi_ge_u(vi_add(vi_lanes(), vi_set1(at)), vi_set1(classes)), filler, x);
}

/* In several chains: it does not matter which one an element is in. */
INLINE float largest(int classes, const float *x)
{
    enum { CHAINS = TOGETHER, STEP = CHAINS * VLEN };
    const vf first = vf_set1(x[0]);
    float lane[VLEN];
    vf best[CHAINS];
    int at = 0;
    for (int i = 0; i < CHAINS; i++) best[i] = first;
    for (; at + STEP <= classes; at += STEP)
        for (int i = 0; i < CHAINS; i++) best[i] = vf_max(vf_load(x + at + i * VLEN), best[i]);
    for (; at < classes; at += VLEN)
        best[0] = vf_max(classes_only(classes, at, vf_load(x + at), first), best[0]);
    for (int i = CHAINS / 2; i; i /= 2)
        for (int k = 0; k < i; k++) best[k] = vf_max(best[k], best[k + i]);
    vf_store(lane, best[0]);
    for (int half = VLEN / 2; half; half /= 2)
        for (int l = 0; l < half; l++)
            lane[l] = lane[l + half] > lane[l] ? lane[l + half] : lane[l];
    return lane[0];
}

/* 'count' vectors from 'at' on: e = e^(x - top), added to the sums. Memory has nothing else to do
 * meanwhile: it brings the next sample. */
INLINE void exponentials(int count, int classes, int at, float top, const float *x, float *e,
                         vf sum[PARTS])
{
    const bool whole = at + count * VLEN <= classes;
    vf each[TOGETHER];
    TOGETHER_EACH(i) __builtin_prefetch(x + at + i * VLEN + classes, 0, 3);
    TOGETHER_EACH(i) each[i] = vf_sub(vf_load(x + at + i * VLEN), vf_set1(top));
    vf_exp_negative(count, each);
    TOGETHER_EACH(i)
    {
        const int here = at + i * VLEN, part = here / VLEN % PARTS;
        if (!whole) each[i] = classes_only(classes, here, each[i], vf_zero());
        vf_store(e + here, each[i]);
        sum[part] = vf_add(sum[part], each[i]);
    }
}

/* e = e^(x - top), zero where a row only fills up; returns the sum. */
INLINE float all_exponentials(int classes, float top, const float *x, float *e)
{
    float lane[TUTTI_BLOCK];
    vf sum[PARTS];
    const int filled = tutti_ceil_div(classes, TUTTI_BLOCK) * TUTTI_BLOCK;
    int at = 0;
    for (int i = 0; i < PARTS; i++) sum[i] = vf_zero();
    for (; at + TOGETHER * VLEN <= filled; at += TOGETHER * VLEN)
        exponentials(TOGETHER, classes, at, top, x, e, sum);
    for (; at + 2 * VLEN <= filled; at += 2 * VLEN) exponentials(2, classes, at, top, x, e, sum);
    for (; at < filled; at += VLEN) exponentials(1, classes, at, top, x, e, sum);
    for (int i = 0; i < PARTS; i++) vf_store(lane + i * VLEN, sum[i]);
    for (int half = TUTTI_BLOCK / 2; half; half /= 2)
        for (int l = 0; l < half; l++) lane[l] += lane[l + half];
    return lane[0];
}

tutti_softmax_fn NAME(op_softmax);
void NAME(op_softmax)(int classes, const float *x, const int32_t *label, float *row, float *p,
                      float *loss, bool stream)
{
    const float top = largest(classes, x), score = label ? x[*label] : 0.0f; /* p may be x */
    const float sum = all_exponentials(classes, top, x, row);
    const vf inverse = vf_set1(1.0f / sum);
    int at = 0;
    for (; at + VLEN <= classes; at += VLEN)
        vf_put(p + at, vf_mul(vf_load(row + at), inverse), stream);
    for (; at < tutti_ceil_div(classes, TUTTI_BLOCK) * TUTTI_BLOCK; at += VLEN)
        vf_put(p + at, classes_only(classes, at, vf_mul(vf_load(row + at), inverse), vf_zero()),
               stream);
    if (!label) return;
    float logarithm[VLEN];
    vf_store(logarithm, vf_log(vf_set1(sum)));
    *loss = logarithm[0] - (score - top);
}
