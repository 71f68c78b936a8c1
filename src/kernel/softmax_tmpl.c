/* Softmax of one sample and its cross-entropy. Lane l of the 16 sums classes l, l+16, ...; the
 * lanes are joined by halves. Every row keeps its 16 lanes in PARTS registers. */
#include "kernel/isa/isa.h"
#include "kernel/isa/math.h"
#include "base/memory.h"
#include "kernel/ops_kernels.h"

enum { PARTS = TUTTI_BLOCK / VLEN };

INLINE float largest(int classes, const float *x)
{
    float lane[TUTTI_BLOCK];
    vf best[PARTS];
    const int whole = classes / TUTTI_BLOCK * TUTTI_BLOCK;
    for (int i = 0; i < PARTS; i++) best[i] = vf_set1(x[0]);
    for (int at = 0; at < whole; at += TUTTI_BLOCK)
        for (int i = 0; i < PARTS; i++) best[i] = vf_max(vf_load(x + at + i * VLEN), best[i]);
    for (int i = 0; i < PARTS; i++) vf_store(lane + i * VLEN, best[i]);
    float top = x[0];
    for (int i = 0; i < TUTTI_BLOCK; i++) top = lane[i] > top ? lane[i] : top;
    for (int i = whole; i < classes; i++) top = x[i] > top ? x[i] : top;
    return top;
}

/* Element at + l of a row stays where it is a class, and is zero where it only fills up. */
INLINE vf classes_only(int classes, int at, vf x)
{
    return vf_select(vi_ge_u(vi_add(vi_lanes(), vi_set1(at)), vi_set1(classes)), vf_zero(), x);
}

/* p = e^(x - top); returns the sum. */
INLINE float exponentials(int classes, float top, const float *x, float *p)
{
    float lane[TUTTI_BLOCK];
    vf sum[PARTS];
    for (int i = 0; i < PARTS; i++) sum[i] = vf_zero();
    for (int at = 0; at < classes; at += TUTTI_BLOCK)
        for (int i = 0; i < PARTS; i++) {
            const int here = at + i * VLEN;
            const vf e = vf_exp(vf_sub(vf_load(x + here), vf_set1(top)));
            vf_store(p + here, e);
            sum[i] = vf_add(sum[i], classes_only(classes, here, e));
        }
    for (int i = 0; i < PARTS; i++) vf_store(lane + i * VLEN, sum[i]);
    for (int half = TUTTI_BLOCK / 2; half; half /= 2)
        for (int l = 0; l < half; l++) lane[l] += lane[l + half];
    return lane[0];
}

tutti_softmax_fn NAME(op_softmax);
void NAME(op_softmax)(int classes, const float *x, const int32_t *label, float *p, float *loss)
{
    const float top = largest(classes, x), score = label ? x[*label] : 0.0f; /* p may be x */
    const float sum = exponentials(classes, top, x, p);
    for (int at = 0; at < tutti_ceil_div(classes, TUTTI_BLOCK) * TUTTI_BLOCK; at += VLEN)
        vf_store(p + at, classes_only(classes, at, vf_div(vf_load(p + at), vf_set1(sum))));
    if (!label) return;
    float logarithm[VLEN];
    vf_store(logarithm, vf_log(vf_set1(sum)));
    *loss = logarithm[0] - (score - top);
}
