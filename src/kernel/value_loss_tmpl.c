/* Sums of losses of values, over some pixels of a block of channels (kernel/value_loss.h). */
#include "kernel/isa/isa.h"
#include "kernel/isa/math.h"
#include "kernel/ops_kernels.h"

enum { B = TUTTI_BLOCK };

INLINE vf magnitude(vf x)
{
    return vf_of_bits(vi_and(vi_of_bits(x), vi_set1(INT32_MAX)));
}

typedef vf value_loss(vf x, vf t, vf delta);

INLINE vf squared(vf x, vf t, vf delta)
{
    const vf e = vf_sub(x, t);
    (void)delta;
    return vf_mul(e, e);
}

INLINE vf absolute(vf x, vf t, vf delta)
{
    (void)delta;
    return magnitude(vf_sub(x, t));
}

/* With m = min(|e|, delta) both pieces are m (|e| - m / 2). */
INLINE vf huber(vf x, vf t, vf delta)
{
    const vf e = magnitude(vf_sub(x, t)), m = vf_min(delta, e);
    return vf_mul(m, vf_fma(m, vf_set1(-0.5f), e));
}

/* log(1 + small) is off where 1 + small was rounded: what was lost is put back. */
INLINE vf crossed(vf x, vf t, vf delta)
{
    const vf one = vf_set1(1.0f);
    vf small = vf_sub(vf_zero(), magnitude(x));
    (void)delta;
    vf_exp_negative(1, &small);
    const vf u = vf_add(one, small), lost = vf_sub(small, vf_sub(u, one));
    const vf logarithm = vf_add(vf_log(u), vf_div(lost, u));
    return vf_add(vf_sub(vf_gate(x, x), vf_mul(x, t)), logarithm);
}

/* Lanes that only fill up are left out. */
INLINE double sum_of(value_loss *loss, int pixels, int lanes, float limit, const float *x,
                     const float *t)
{
    const vf delta = vf_set1(limit);
    double lane[B] = {0};
    for (int p = 0; p < pixels; p++, x += B, t += B) {
        float each[B];
        UNROLL(16)
        for (int i = 0; i < B; i += VLEN)
            vf_store(each + i, loss(vf_load(x + i), vf_load(t + i), delta));
        for (int l = 0; l < lanes; l++) lane[l] += (double)each[l];
    }
    for (int half = B / 2; half; half /= 2)
        for (int l = 0; l < half; l++) lane[l] += lane[l + half];
    return lane[0];
}

#define LOSS(name)                                                                    \
    tutti_value_loss_fn NAME(op_##name##_loss);                                       \
    double NAME(op_##name##_loss)(int pixels, int lanes, float delta, const float *x, \
                                  const float *t)                                     \
    {                                                                                 \
        if (lanes == B) return sum_of(name, pixels, B, delta, x, t);                  \
        return sum_of(name, pixels, lanes, delta, x, t);                              \
    }

LOSS(squared)
LOSS(absolute)
LOSS(huber)
LOSS(crossed)
