/* Elementwise kernels. Vectors of 16 floats, whole ones only: the driver sees to the rest. */
#include "kernel/isa/isa.h"
#include "kernel/isa/math.h"

#include "kernel/ops_kernels.h"

/* Defines the kernel 'name' by the body that follows, compiled with either kind of store. */
#define FLAT(name)                                                                              \
    INLINE void name##_body(const tutti_elementwise *f, size_t begin, size_t end, bool stream); \
    tutti_elementwise_fn NAME(op_##name);                                                       \
    void NAME(op_##name)(const tutti_elementwise *f, size_t begin, size_t end)                  \
    {                                                                                           \
        if (f->stream) name##_body(f, begin, end, true);                                        \
        else name##_body(f, begin, end, false);                                                 \
    }                                                                                           \
    INLINE void name##_body(const tutti_elementwise *f, size_t begin, size_t end, bool stream)
#define EACH(i) UNROLL(4) for (size_t i = begin; i < end; i += VLEN)

/* a where mask > 0 or NaN, else zero; a itself without a mask */
INLINE vf masked(vf a, const float *mask, size_t i)
{
    return mask ? vf_gate(a, vf_take(mask + i)) : a;
}

INLINE void add(const tutti_elementwise *f, bool relu, size_t begin, size_t end, bool stream)
{
    EACH(i)
    {
        const vf sum = vf_add(vf_take(f->a + i), vf_take(f->b + i));
        vf_put(f->y + i, relu ? vf_gate(sum, sum) : sum, stream);
    }
}

FLAT(add)
{
    if (f->relu) add(f, true, begin, end, stream);
    else add(f, false, begin, end, stream);
}

FLAT(mul)
{
    EACH(i)
    {
        const vf product = vf_mul(vf_take(f->a + i), vf_take(f->b + i));
        vf_put(f->y + i, masked(product, f->mask, i), stream);
    }
}

FLAT(scale)
{
    const vf factor = vf_set1(f->factor);
    EACH(i) vf_put(f->y + i, vf_mul(factor, vf_take(f->a + i)), stream);
}

FLAT(axpy)
{
    (void)stream; /* y is read too */
    const vf factor = vf_set1(f->factor);
    EACH(i) vf_store(f->y + i, vf_fma(factor, vf_take(f->a + i), vf_take(f->y + i)));
}

FLAT(relu)
{
    EACH(i)
    {
        const vf a = vf_take(f->a + i);
        vf_put(f->y + i, vf_gate(a, a), stream);
    }
}

FLAT(difference)
{
    const vf factor = vf_set1(f->factor);
    EACH(i)
    vf_put(f->y + i, vf_mul(factor, vf_sub(vf_take(f->a + i), vf_take(f->b + i))), stream);
}

FLAT(difference_sign)
{
    const vf plus = vf_set1(f->factor), minus = vf_set1(-f->factor);
    EACH(i)
    {
        const vf a = vf_take(f->a + i), b = vf_take(f->b + i);
        const vf below = vf_select(vf_gt(b, a), minus, vf_zero());
        vf_put(f->y + i, vf_select(vf_gt(a, b), plus, below), stream);
    }
}

FLAT(difference_clipped)
{
    const vf factor = vf_set1(f->factor), most = vf_set1(f->limit), least = vf_set1(-f->limit);
    EACH(i)
    {
        const vf e = vf_sub(vf_take(f->a + i), vf_take(f->b + i));
        vf_put(f->y + i, vf_mul(factor, vf_min(most, vf_max(least, e))), stream);
    }
}

/* a where by > 0, else factor * a */
INLINE vf leaking(vf a, vf by, vf factor)
{
    return vf_select(vf_gt(by, vf_zero()), a, vf_mul(factor, a));
}

FLAT(leaky)
{
    const vf factor = vf_set1(f->factor);
    EACH(i)
    {
        const vf a = vf_take(f->a + i);
        vf_put(f->y + i, leaking(a, a, factor), stream);
    }
}

FLAT(leaky_backward)
{
    const vf factor = vf_set1(f->factor);
    EACH(i)
    {
        const vf dx = leaking(vf_take(f->a + i), vf_take(f->b + i), factor);
        vf_put(f->y + i, masked(dx, f->mask, i), stream);
    }
}

/* min(max(x, 0), most) */
INLINE vf clipped(vf x, vf most)
{
    return vf_min(most, vf_gate(x, x));
}

/* a where 0 < y < most, of what was clipped */
INLINE vf unclipped(vf a, vf y, vf most)
{
    return vf_gate(vf_gate(a, y), vf_sub(most, y));
}

FLAT(relu6)
{
    EACH(i) vf_put(f->y + i, clipped(vf_take(f->a + i), vf_set1(6.0f)), stream);
}

FLAT(relu6_backward)
{
    EACH(i)
    {
        const vf dx = unclipped(vf_take(f->a + i), vf_take(f->b + i), vf_set1(6.0f));
        vf_put(f->y + i, masked(dx, f->mask, i), stream);
    }
}

/* x / 6, clipped to 0 .. 1, of x + 3 */
INLINE vf hard_sigmoid(vf x)
{
    return vf_mul(clipped(vf_add(x, vf_set1(3.0f)), vf_set1(6.0f)), vf_set1(1.0f / 6.0f));
}

FLAT(hardswish)
{
    EACH(i)
    {
        const vf a = vf_take(f->a + i);
        vf_put(f->y + i, vf_mul(a, hard_sigmoid(a)), stream);
    }
}

/* 0 up to -3, x / 3 + 1/2, 1 from 3 on */
FLAT(hardswish_backward)
{
    const vf one = vf_set1(1.0f), three = vf_set1(3.0f);
    EACH(i)
    {
        const vf x = vf_take(f->b + i);
        vf slope = vf_fma(x, vf_set1(1.0f / 3.0f), vf_set1(0.5f));
        slope = vf_select(vf_gt(three, x), vf_gate(slope, vf_add(x, three)), one);
        vf_put(f->y + i, masked(vf_mul(vf_take(f->a + i), slope), f->mask, i), stream);
    }
}

FLAT(mask)
{
    EACH(i) vf_put(f->y + i, masked(vf_take(f->a + i), f->mask, i), stream);
}

/* e.g. lane 5 of 16 where the layer has 5 channels: it only fills up, and stays zero */
INLINE vf channels_only(const tutti_elementwise *f, size_t at, vf x)
{
    const vi lane = vi_add(vi_lanes(), vi_set1((int)(at % TUTTI_BLOCK)));
    return vf_select(vi_ge_u(lane, vi_set1(f->lanes)), vf_zero(), x);
}

FLAT(hardsigmoid)
{
    EACH(i) vf_put(f->y + i, channels_only(f, i, hard_sigmoid(vf_take(f->a + i))), stream);
}

FLAT(hardsigmoid_backward)
{
    EACH(i)
    {
        const vf dx = vf_mul(vf_take(f->a + i), vf_set1(1.0f / 6.0f));
        vf_put(f->y + i, masked(unclipped(dx, vf_take(f->b + i), vf_set1(1.0f)), f->mask, i),
               stream);
    }
}

INLINE void sigmoid_of(const tutti_elementwise *f, int count, size_t at, bool all, bool stream)
{
    vf x[TOGETHER];
    TOGETHER_EACH(i) x[i] = vf_take(f->a + at + i * VLEN);
    vf_sigmoid(count, x);
    TOGETHER_EACH(i)
    {
        const size_t here = at + i * VLEN;
        vf_put(f->y + here, all ? x[i] : channels_only(f, here, x[i]), stream);
    }
}

INLINE void sigmoid(const tutti_elementwise *f, size_t begin, size_t end, bool all, bool stream)
{
    for (; begin + TOGETHER * VLEN <= end; begin += TOGETHER * VLEN)
        sigmoid_of(f, TOGETHER, begin, all, stream);
    for (; begin < end; begin += VLEN) sigmoid_of(f, 1, begin, all, stream);
}

FLAT(sigmoid)
{
    if (f->lanes == TUTTI_BLOCK) sigmoid(f, begin, end, true, stream);
    else sigmoid(f, begin, end, false, stream);
}

FLAT(sigmoid_backward)
{
    const vf one = vf_set1(1.0f);
    EACH(i)
    {
        const vf y = vf_take(f->b + i);
        const vf dx = vf_mul(vf_take(f->a + i), vf_mul(y, vf_sub(one, y)));
        vf_put(f->y + i, masked(dx, f->mask, i), stream);
    }
}

/* Defines kernels of functions that take TOGETHER vectors at a time: 'one' does 'count' of them. */
#define BY_TOGETHER(one)                                                 \
    do {                                                                 \
        for (; begin + TOGETHER * VLEN <= end; begin += TOGETHER * VLEN) \
            one(f, TOGETHER, begin, stream);                             \
        for (; begin < end; begin += VLEN) one(f, 1, begin, stream);     \
    } while (0)

INLINE void silu_of(const tutti_elementwise *f, int count, size_t at, bool stream)
{
    vf x[TOGETHER], s[TOGETHER];
    TOGETHER_EACH(i) s[i] = x[i] = vf_take(f->a + at + i * VLEN);
    vf_sigmoid(count, s);
    TOGETHER_EACH(i) vf_put(f->y + at + i * VLEN, vf_mul(x[i], s[i]), stream);
}

FLAT(silu)
{
    BY_TOGETHER(silu_of);
}

/* (x s)' = s + x s (1 - s) */
INLINE void silu_backward_of(const tutti_elementwise *f, int count, size_t at, bool stream)
{
    const vf one = vf_set1(1.0f);
    vf x[TOGETHER], s[TOGETHER];
    TOGETHER_EACH(i) s[i] = x[i] = vf_take(f->b + at + i * VLEN);
    vf_sigmoid(count, s);
    TOGETHER_EACH(i) x[i] = vf_fma(vf_mul(x[i], s[i]), vf_sub(one, s[i]), s[i]);
    TOGETHER_EACH(i)
    {
        const size_t here = at + i * VLEN;
        vf_put(f->y + here, masked(vf_mul(vf_take(f->a + here), x[i]), f->mask, here), stream);
    }
}

FLAT(silu_backward)
{
    BY_TOGETHER(silu_backward_of);
}

INLINE void gelu_of(const tutti_elementwise *f, int count, size_t at, bool stream)
{
    vf x[TOGETHER], below[TOGETHER], density[TOGETHER];
    TOGETHER_EACH(i) x[i] = vf_take(f->a + at + i * VLEN);
    vf_normal(count, x, below, density);
    TOGETHER_EACH(i) vf_put(f->y + at + i * VLEN, vf_mul(x[i], below[i]), stream);
}

FLAT(gelu)
{
    BY_TOGETHER(gelu_of);
}

INLINE void gelu_backward_of(const tutti_elementwise *f, int count, size_t at, bool stream)
{
    vf x[TOGETHER], below[TOGETHER], density[TOGETHER];
    TOGETHER_EACH(i) x[i] = vf_take(f->b + at + i * VLEN);
    vf_normal(count, x, below, density);
    TOGETHER_EACH(i) x[i] = vf_fma(x[i], density[i], below[i]);
    TOGETHER_EACH(i)
    {
        const size_t here = at + i * VLEN;
        vf_put(f->y + here, masked(vf_mul(vf_take(f->a + here), x[i]), f->mask, here), stream);
    }
}

FLAT(gelu_backward)
{
    BY_TOGETHER(gelu_backward_of);
}

INLINE void tanh_of(const tutti_elementwise *f, int count, size_t at, bool stream)
{
    vf x[TOGETHER];
    TOGETHER_EACH(i) x[i] = vf_take(f->a + at + i * VLEN);
    vf_tanh(count, x);
    TOGETHER_EACH(i) vf_put(f->y + at + i * VLEN, x[i], stream);
}

FLAT(tanh)
{
    BY_TOGETHER(tanh_of);
}

FLAT(tanh_backward)
{
    const vf one = vf_set1(1.0f);
    EACH(i)
    {
        const vf y = vf_take(f->b + i);
        const vf dx = vf_mul(vf_take(f->a + i), vf_fma(vf_sub(vf_zero(), y), y, one));
        vf_put(f->y + i, masked(dx, f->mask, i), stream);
    }
}

FLAT(exp)
{
    EACH(i) vf_put(f->y + i, vf_exp(vf_take(f->a + i)), stream);
}

FLAT(log)
{
    EACH(i) vf_put(f->y + i, vf_log(vf_take(f->a + i)), stream);
}

FLAT(pow_minus_3_4)
{
    EACH(i)
    {
        vf x = vf_take(f->a + i);
        vf_pow_minus_3_4(1, &x, NULL);
        vf_put(f->y + i, x, stream);
    }
}

/* The gradient, a or 'halves' a + b, scaled, and what decay adds to it. */
INLINE vf decayed(const tutti_elementwise *f, bool halves, size_t i, vf scale, vf decay, vf w)
{
    const vf a = vf_take(f->a + i), dw = halves ? vf_add(a, vf_take(f->b + i)) : a;
    return vf_fma(decay, w, vf_mul(scale, dw));
}

INLINE void sgd(const tutti_elementwise *f, bool momentum, bool nesterov, bool halves, size_t begin,
                size_t end)
{
    const tutti_sgd *o = f->optimizer;
    const vf scale = vf_set1(o->gradient_scale), decay = vf_set1(o->weight_decay);
    const vf mu = vf_set1(o->momentum), step = vf_set1(-o->lr);
    EACH(i)
    {
        const vf w = vf_take(f->y + i);
        const vf d = decayed(f, halves, i, scale, decay, w);
        vf move = d;
        if (momentum) {
            move = vf_fma(mu, vf_take(f->state[0] + i), d);
            vf_store(f->state[0] + i, move);
            if (nesterov) move = vf_fma(mu, move, d);
        }
        vf_store(f->y + i, vf_fma(step, move, w));
    }
}

INLINE void sgd_of(const tutti_elementwise *f, bool halves, size_t begin, size_t end)
{
    const tutti_sgd *o = f->optimizer;
    if (o->momentum == 0.0f) sgd(f, false, false, halves, begin, end);
    else if (o->nesterov) sgd(f, true, true, halves, begin, end);
    else sgd(f, true, false, halves, begin, end);
}

FLAT(sgd)
{
    (void)stream;
    if (f->b) sgd_of(f, true, begin, end);
    else sgd_of(f, false, begin, end);
}

INLINE void adam(const tutti_elementwise *f, bool halves, size_t begin, size_t end)
{
    const tutti_adam *o = f->optimizer;
    const vf scale = vf_set1(o->gradient_scale), decay = vf_set1(o->weight_decay);
    const vf shrink = vf_set1(o->shrink), step = vf_set1(-o->step_size);
    const vf new_m = vf_set1(o->one_minus_beta1);
    const vf old_v = vf_set1(o->beta2), new_v = vf_set1(o->one_minus_beta2);
    const vf root_factor = vf_set1(o->root_factor), eps = vf_set1(o->eps);
    EACH(i)
    {
        const vf w = vf_take(f->y + i), m = vf_take(f->state[0] + i), v = vf_take(f->state[1] + i);
        const vf d = decayed(f, halves, i, scale, decay, w);
        const vf mean = vf_fma(new_m, vf_sub(d, m), m);
        const vf square = vf_fma(new_v, vf_mul(d, d), vf_mul(old_v, v));
        const vf move = vf_div(mean, vf_fma(root_factor, vf_sqrt(square), eps));
        vf_store(f->state[0] + i, mean);
        vf_store(f->state[1] + i, square);
        vf_store(f->y + i, vf_fma(step, move, vf_mul(shrink, w)));
    }
}

FLAT(adam)
{
    (void)stream;
    if (f->b) adam(f, true, begin, end);
    else adam(f, false, begin, end);
}

FLAT(average)
{
    (void)stream;
    const tutti_average *average = f->optimizer;
    const vf keep = vf_set1(average->keep), add = vf_set1(average->add);
    EACH(i)
    {
        const vf a = vf_take(f->a + i), g = f->b ? vf_add(a, vf_take(f->b + i)) : a;
        vf_store(f->y + i, vf_fma(add, g, vf_mul(keep, vf_take(f->y + i))));
    }
}

tutti_squares_fn NAME(op_squares);
void NAME(op_squares)(size_t groups, const float *x, double *sums)
{
    for (size_t i = 0; i < groups; i++, x += TUTTI_SQUARE_GROUP) {
        UNROLL(8)
        for (int at = 0; at < TUTTI_SQUARE_GROUP; at += TUTTI_BLOCK)
            __builtin_prefetch(x + at + TAKE_AHEAD, 0, 3);
        sums[i] = squares_of_8(x);
    }
}
