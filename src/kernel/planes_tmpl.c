/* Planes [pixels][16] with one number for each of the 16 channels: products and sums. */
#include "kernel/isa/isa.h"

#include "kernel/ops_kernels.h"

enum { B = TUTTI_BLOCK, CHAINS = 4 };

INLINE void scale_lanes(const tutti_plane *p, int l, bool masked, bool stream)
{
    const vf factor = vf_load(p->factor + l);
    UNROLL(4)
    for (size_t i = 0; i < p->pixels; i++) {
        const vf y = vf_mul(factor, vf_take(p->x + i * B + l));
        vf_put(p->y + i * B + l, masked ? vf_gate(y, vf_take(p->mask + i * B + l)) : y, stream);
    }
}

INLINE void scale_plane(const tutti_plane *p, bool masked, bool stream)
{
    for (int l = 0; l < B; l += VLEN) scale_lanes(p, l, masked, stream);
}

tutti_scale_plane_fn NAME(op_scale_plane);
void NAME(op_scale_plane)(const tutti_plane *p, bool stream)
{
    if (p->mask) scale_plane(p, true, stream);
    else if (stream) scale_plane(p, false, true);
    else scale_plane(p, false, false);
}

/* Pixel i belongs to chain i % 4, so that additions need not wait for each other. */
INLINE vf dot_lanes(size_t pixels, const float *a, const float *b)
{
    vf sum[CHAINS];
    size_t i = 0;
    UNROLL(4)
    for (int k = 0; k < CHAINS; k++) sum[k] = vf_zero();
    for (; i + CHAINS <= pixels; i += CHAINS) {
        UNROLL(4)
        for (int k = 0; k < CHAINS; k++) {
            const size_t at = (i + (size_t)k) * B;
            sum[k] = vf_fma(vf_take(a + at), vf_take(b + at), sum[k]);
        }
    }
    UNROLL(3)
    for (int k = 0; k < CHAINS - 1; k++)
        if (i + (size_t)k < pixels)
            sum[k] =
                vf_fma(vf_load(a + (i + (size_t)k) * B), vf_load(b + (i + (size_t)k) * B), sum[k]);
    return vf_add(vf_add(sum[0], sum[1]), vf_add(sum[2], sum[3]));
}

tutti_dot_plane_fn NAME(op_dot_plane);
void NAME(op_dot_plane)(size_t pixels, const float *a, const float *b, float *sums)
{
    for (int l = 0; l < B; l += VLEN) vf_store(sums + l, dot_lanes(pixels, a + l, b + l));
}
