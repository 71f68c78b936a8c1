/* Planes [pixels][16] with one number for each of the 16 channels: products and sums. */
#include "kernel/isa/isa.h"

#include "kernel/ops_kernels.h"

enum { B = TUTTI_BLOCK, PARTS = B / VLEN, CHAINS = 4 };

#define EACH_PART(k) UNROLL(16) for (int k = 0; k < PARTS; k++)

INLINE void scale_plane(const tutti_plane *p, bool masked, bool stream)
{
    vf factor[PARTS];
    EACH_PART(k) factor[k] = vf_load(p->factor + k * VLEN);
    for (size_t i = 0; i < p->pixels; i++) EACH_PART(k)
        {
            const size_t at = i * B + (size_t)(k * VLEN);
            const vf y = vf_mul(factor[k], vf_take(p->x + at));
            vf_put(p->y + at, masked ? vf_gate(y, vf_take(p->mask + at)) : y, stream);
        }
}

tutti_scale_plane_fn NAME(op_scale_plane);
void NAME(op_scale_plane)(const tutti_plane *p, bool stream)
{
    if (p->mask) scale_plane(p, true, stream);
    else if (stream) scale_plane(p, false, true);
    else scale_plane(p, false, false);
}

INLINE void shift_plane(size_t pixels, const float *addends, bool relu, float *y)
{
    vf addend[PARTS];
    EACH_PART(k) addend[k] = vf_load(addends + k * VLEN);
    for (size_t i = 0; i < pixels; i++) EACH_PART(k)
        {
            const size_t at = i * B + (size_t)(k * VLEN);
            const vf sum = vf_add(vf_take(y + at), addend[k]);
            vf_store(y + at, relu ? vf_gate(sum, sum) : sum);
        }
}

tutti_shift_plane_fn NAME(op_shift_plane);
void NAME(op_shift_plane)(size_t pixels, const float *addends, bool relu, float *y)
{
    if (relu) shift_plane(pixels, addends, true, y);
    else shift_plane(pixels, addends, false, y);
}

/* One pixel more in its chain; without b, a by itself. */
INLINE void add_pixel(vf sum[PARTS], const float *a, const float *b)
{
    EACH_PART(k)
    sum[k] = b ? vf_fma(vf_take(a + k * VLEN), vf_take(b + k * VLEN), sum[k])
               : vf_add(vf_take(a + k * VLEN), sum[k]);
}

#define BESIDE(b, at) ((b) ? (b) + (at) : NULL)

/* Pixel i belongs to chain i % 4, so that additions need not wait for each other. */
INLINE void dot_plane(size_t pixels, const float *a, const float *b, float *sums)
{
    vf sum[CHAINS][PARTS];
    size_t i = 0;
    UNROLL(4)
    for (int c = 0; c < CHAINS; c++) EACH_PART(k) sum[c][k] = vf_zero();
    for (; i + CHAINS <= pixels; i += CHAINS) {
        UNROLL(4)
        for (int c = 0; c < CHAINS; c++)
            add_pixel(sum[c], a + (i + (size_t)c) * B, BESIDE(b, (i + (size_t)c) * B));
    }
    UNROLL(3)
    for (int c = 0; c < CHAINS - 1; c++)
        if (i + (size_t)c < pixels)
            add_pixel(sum[c], a + (i + (size_t)c) * B, BESIDE(b, (i + (size_t)c) * B));
    EACH_PART(k)
    vf_store(sums + k * VLEN, vf_add(vf_add(sum[0][k], sum[1][k]), vf_add(sum[2][k], sum[3][k])));
}

tutti_dot_plane_fn NAME(op_dot_plane);
void NAME(op_dot_plane)(size_t pixels, const float *a, const float *b, float *sums)
{
    if (b) dot_plane(pixels, a, b, sums);
    else dot_plane(pixels, a, NULL, sums);
}
