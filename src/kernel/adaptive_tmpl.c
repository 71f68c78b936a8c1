/* Means over windows that divide a plane [h][w][16] as evenly as they can; and back. */
#include "kernel/isa/isa.h"

#include "kernel/ops_kernels.h"

enum { B = TUTTI_BLOCK };

typedef struct span {
    int begin, end;
} span;

/* What part number i of 'parts' has of 0 .. size-1. Neighbours share an element where it does not
 * divide. It is also which of 'size' parts element i of 'parts' elements belongs to. */
INLINE span span_of(int i, int size, int parts)
{
    return (span){i * size / parts, ((i + 1) * size + parts - 1) / parts};
}

INLINE vf mean_of(const tutti_adaptive_shape *p, span rows, span columns, const float *x)
{
    const int count = (rows.end - rows.begin) * (columns.end - columns.begin);
    vf sum = vf_zero();
    for (int row = rows.begin; row < rows.end; row++)
        for (int column = columns.begin; column < columns.end; column++)
            sum = vf_add(sum, vf_load(x + (size_t)(row * p->w + column) * B));
    return vf_div(sum, vf_set1((float)count));
}

tutti_adaptive_fn NAME(op_adaptive_pool);
void NAME(op_adaptive_pool)(const tutti_adaptive_shape *p, const float *x, const float *mask,
                            float *y)
{
    (void)mask;
    for (int oh = 0; oh < p->out_h; oh++)
        for (int ow = 0; ow < p->out_w; ow++, y += B)
            for (int l = 0; l < B; l += VLEN)
                vf_store(y + l, mean_of(p, span_of(oh, p->h, p->out_h), span_of(ow, p->w, p->out_w),
                                        x + l));
}

INLINE vf share_of(const tutti_adaptive_shape *p, int oh, int ow, const float *dy)
{
    const span rows = span_of(oh, p->h, p->out_h), columns = span_of(ow, p->w, p->out_w);
    const int count = (rows.end - rows.begin) * (columns.end - columns.begin);
    return vf_div(vf_load(dy + (size_t)(oh * p->out_w + ow) * B), vf_set1((float)count));
}

/* dx of one pixel: from the outputs 'rows' x 'columns'. */
INLINE vf shares_of(const tutti_adaptive_shape *p, span rows, span columns, const float *dy)
{
    vf sum = vf_zero();
    for (int oh = rows.begin; oh < rows.end; oh++)
        for (int ow = columns.begin; ow < columns.end; ow++)
            sum = vf_add(sum, share_of(p, oh, ow, dy));
    return sum;
}

tutti_adaptive_fn NAME(op_adaptive_unpool);
void NAME(op_adaptive_unpool)(const tutti_adaptive_shape *p, const float *dy, const float *mask,
                              float *dx)
{
    for (int h = 0; h < p->h; h++)
        for (int w = 0; w < p->w; w++, dx += B)
            for (int l = 0; l < B; l += VLEN) {
                const vf sum =
                    shares_of(p, span_of(h, p->out_h, p->h), span_of(w, p->out_w, p->w), dy + l);
                const size_t at = (size_t)(h * p->w + w) * B + (size_t)l;
                vf_store(dx + l, mask ? vf_gate(sum, vf_load(mask + at)) : sum);
            }
}
