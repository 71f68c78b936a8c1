/* Pooling of one plane [h][w][16].
 *
 * Forward walks the outputs and gathers each window. Backward walks the outputs in the same order
 * and adds into the plane of dx, whose rows are zeroed just before the first window reaches them
 * and, for average pooling, masked just after the last has left, so that a row passes through the
 * cache once. */
#include "kernel/isa/isa.h"
#include "kernel/ops_kernels.h"

#include <string.h>

enum { B = TUTTI_BLOCK };

/* The part of an output's window that lies on the image, in one direction. */
typedef struct extent {
    int start;      /* of the window; negative in the padding */
    int begin, end; /* of the part */
} extent;

INLINE extent extent_of(int out, int stride, int pad, int kernel, int size)
{
    const int start = out * stride - pad, end = start + kernel;
    return (extent){start, start > 0 ? start : 0, end < size ? end : size};
}

INLINE extent rows_of(const tutti_pool_shape *p, int oh)
{
    return extent_of(oh, p->stride_h, p->pad_top, p->r, p->h);
}

INLINE extent columns_of(const tutti_pool_shape *p, int ow)
{
    return extent_of(ow, p->stride_w, p->pad_left, p->s, p->w);
}

/* Which element of the window (row, column) is. */
INLINE int tap_of(const tutti_pool_shape *p, extent rows, extent columns, int row, int column)
{
    return (row - rows.start) * p->s + column - columns.start;
}

INLINE void max_of_window(const tutti_pool_shape *p, extent rows, extent columns, const float *x,
                          float *y, uint16_t *tap)
{
    for (int l = 0; l < B; l += VLEN) {
        vf best = vf_set1(-__builtin_inff());
        vi which = vi_set1(tap_of(p, rows, columns, rows.begin, columns.begin));
        for (int row = rows.begin; row < rows.end; row++)
            for (int column = columns.begin; column < columns.end; column++) {
                const vf a = vf_load(x + ((size_t)row * p->w + column) * B + l);
                const vm wins = vm_or(vf_gt(a, best), vf_is_nan(a));
                best = vf_select(wins, a, best);
                which = vi_select(wins, vi_set1(tap_of(p, rows, columns, row, column)), which);
            }
        vf_store(y + l, best);
        if (tap) vi_store_u16(tap + l, which);
    }
}

tutti_max_pool_fn NAME(op_max_pool);
void NAME(op_max_pool)(const tutti_pool_shape *p, const float *x, float *y, uint16_t *tap)
{
    const int out_h = tutti_pool_out_h(p), out_w = tutti_pool_out_w(p);
    for (int oh = 0; oh < out_h; oh++) {
        const extent rows = rows_of(p, oh);
        for (int ow = 0; ow < out_w; ow++) {
            const size_t at = ((size_t)oh * out_w + ow) * B;
            max_of_window(p, rows, columns_of(p, ow), x, y + at, tap ? tap + at : NULL);
        }
    }
}

/* Zeroes rows *done .. end-1 of dx. */
INLINE void zero_rows(const tutti_pool_shape *p, float *dx, int *done, int end)
{
    if (end <= *done) return;
    memset(dx + (size_t)*done * p->w * B, 0, (size_t)(end - *done) * p->w * B * sizeof *dx);
    *done = end;
}

INLINE void to_winner(const tutti_pool_shape *p, extent rows, extent columns, const float *dy,
                      const uint16_t *tap, const float *y_mask, float *dx)
{
    for (int l = 0; l < B; l += VLEN) {
        vf d = vf_load(dy + l);
        if (y_mask) d = vf_gate(d, vf_load(y_mask + l));
        const vi winner = vi_load_u16(tap + l);
        for (int row = rows.begin; row < rows.end; row++)
            for (int column = columns.begin; column < columns.end; column++) {
                float *to = dx + ((size_t)row * p->w + column) * B + l;
                const vi which = vi_set1(tap_of(p, rows, columns, row, column));
                vf_store(to, vf_add(vf_load(to), vf_keep(vi_eq(winner, which), d)));
            }
    }
}

tutti_max_unpool_fn NAME(op_max_unpool);
void NAME(op_max_unpool)(const tutti_pool_shape *p, const float *dy, const uint16_t *tap,
                         const float *y_mask, float *dx)
{
    const int out_h = tutti_pool_out_h(p), out_w = tutti_pool_out_w(p);
    int zeroed = 0;
    for (int oh = 0; oh < out_h; oh++) {
        const extent rows = rows_of(p, oh);
        zero_rows(p, dx, &zeroed, rows.end);
        for (int ow = 0; ow < out_w; ow++) {
            const size_t at = ((size_t)oh * out_w + ow) * B;
            to_winner(p, rows, columns_of(p, ow), dy + at, tap + at, y_mask ? y_mask + at : NULL,
                      dx);
        }
    }
    zero_rows(p, dx, &zeroed, p->h);
}

/* By what an average is divided: the elements on the image, or those of the padding too (but not
 * what ceil_mode adds beyond it). */
INLINE float divisor_of(const tutti_pool_shape *p, extent rows, extent columns)
{
    if (!p->count_padding) return (float)((rows.end - rows.begin) * (columns.end - columns.begin));
    const int below = p->h + p->pad_bottom - rows.start,
              beside = p->w + p->pad_right - columns.start;
    return (float)((below < p->r ? below : p->r) * (beside < p->s ? beside : p->s));
}

tutti_average_pool_fn NAME(op_average_pool);
void NAME(op_average_pool)(const tutti_pool_shape *p, const float *x, float *y)
{
    const int out_h = tutti_pool_out_h(p), out_w = tutti_pool_out_w(p);
    for (int oh = 0; oh < out_h; oh++) {
        const extent rows = rows_of(p, oh);
        for (int ow = 0; ow < out_w; ow++) {
            const extent columns = columns_of(p, ow);
            const vf divisor = vf_set1(divisor_of(p, rows, columns));
            for (int l = 0; l < B; l += VLEN) {
                vf sum = vf_zero();
                for (int row = rows.begin; row < rows.end; row++)
                    for (int column = columns.begin; column < columns.end; column++)
                        sum = vf_add(sum, vf_load(x + ((size_t)row * p->w + column) * B + l));
                vf_store(y + ((size_t)oh * out_w + ow) * B + l, vf_div(sum, divisor));
            }
        }
    }
}

INLINE void to_window(const tutti_pool_shape *p, extent rows, extent columns, const float *dy,
                      float *dx)
{
    const vf divisor = vf_set1(divisor_of(p, rows, columns));
    for (int l = 0; l < B; l += VLEN) {
        const vf d = vf_div(vf_load(dy + l), divisor);
        for (int row = rows.begin; row < rows.end; row++)
            for (int column = columns.begin; column < columns.end; column++) {
                float *to = dx + ((size_t)row * p->w + column) * B + l;
                vf_store(to, vf_add(vf_load(to), d));
            }
    }
}

/* Masks rows *done .. end-1 of dx. */
INLINE void mask_rows(const tutti_pool_shape *p, const float *mask, float *dx, int *done, int end)
{
    if (end <= *done) return;
    for (size_t i = (size_t)*done * p->w * B; i < (size_t)end * p->w * B; i += VLEN)
        vf_store(dx + i, vf_gate(vf_load(dx + i), vf_load(mask + i)));
    *done = end;
}

tutti_average_unpool_fn NAME(op_average_unpool);
void NAME(op_average_unpool)(const tutti_pool_shape *p, const float *dy, const float *mask,
                             float *dx)
{
    const int out_h = tutti_pool_out_h(p), out_w = tutti_pool_out_w(p);
    int zeroed = 0, masked = 0;
    for (int oh = 0; oh < out_h; oh++) {
        const extent rows = rows_of(p, oh);
        zero_rows(p, dx, &zeroed, rows.end);
        if (mask) mask_rows(p, mask, dx, &masked, rows.begin < p->h ? rows.begin : p->h);
        for (int ow = 0; ow < out_w; ow++)
            to_window(p, rows, columns_of(p, ow), dy + ((size_t)oh * out_w + ow) * B, dx);
    }
    zero_rows(p, dx, &zeroed, p->h);
    if (mask) mask_rows(p, mask, dx, &masked, p->h);
}
