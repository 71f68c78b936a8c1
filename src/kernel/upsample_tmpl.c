/* Planes [h][w][16] of another size (kernel/upsample.h); channels are the lanes. */
#include "kernel/isa/isa.h"

#include "kernel/ops_kernels.h"

enum { B = TUTTI_BLOCK, PARTS = B / VLEN };

#define EACH_PART(k) UNROLL(16) for (int k = 0; k < PARTS; k++)

INLINE void nearest(const tutti_upsample *u, const float *x, float *y, bool stream)
{
    for (int h = 0; h < u->rows.out; h++) {
        const float *row = x + (size_t)u->rows.low[h] * (size_t)u->columns.in * B;
        for (int w = 0; w < u->columns.out; w++, y += B) {
            const float *from = row + (size_t)u->columns.low[w] * B;
            EACH_PART(k) vf_put(y + k * VLEN, vf_load(from + k * VLEN), stream);
        }
    }
}

tutti_upsample_fn NAME(op_upsample_nearest);
void NAME(op_upsample_nearest)(const tutti_upsample *u, const float *x, const float *mask, float *y,
                               bool stream)
{
    (void)mask;
    if (stream) nearest(u, x, y, true);
    else nearest(u, x, y, false);
}

INLINE vf between(vf low, vf high, vf rest, vf share)
{
    return vf_fma(share, high, vf_mul(rest, low));
}

INLINE void bilinear(const tutti_upsample *u, const float *x, float *y, bool stream)
{
    const size_t row = (size_t)u->columns.in * B;
    for (int h = 0; h < u->rows.out; h++) {
        const float *above = x + (size_t)u->rows.low[h] * row;
        const float *below = x + (size_t)u->rows.high[h] * row;
        const vf down = vf_set1(u->rows.share[h]), up = vf_set1(u->rows.rest[h]);
        for (int w = 0; w < u->columns.out; w++, y += B) {
            const size_t left = (size_t)u->columns.low[w] * B;
            const size_t right = (size_t)u->columns.high[w] * B;
            const vf share = vf_set1(u->columns.share[w]), rest = vf_set1(u->columns.rest[w]);
            EACH_PART(k)
            {
                const int l = k * VLEN;
                const vf a =
                    between(vf_load(above + left + l), vf_load(above + right + l), rest, share);
                const vf b =
                    between(vf_load(below + left + l), vf_load(below + right + l), rest, share);
                vf_put(y + l, between(a, b, up, down), stream);
            }
        }
    }
}

tutti_upsample_fn NAME(op_upsample_bilinear);
void NAME(op_upsample_bilinear)(const tutti_upsample *u, const float *x, const float *mask,
                                float *y, bool stream)
{
    (void)mask;
    if (stream) bilinear(u, x, y, true);
    else bilinear(u, x, y, false);
}

/* The outputs that read one pixel. */
INLINE void gather(const tutti_upsample *u, int h, int w, const float *dy, vf sum[PARTS])
{
    const tutti_upsample_way *rows = &u->rows, *columns = &u->columns;
    const float *by_row = rows->weights + rows->weight[h] - rows->first[h];
    const float *by_column = columns->weights + columns->weight[w] - columns->first[w];
    EACH_PART(k) sum[k] = vf_zero();
    for (int i = rows->first[h]; i < rows->end[h]; i++) {
        const float *line = dy + (size_t)i * (size_t)columns->out * B;
        vf part[PARTS];
        EACH_PART(k) part[k] = vf_zero();
        for (int j = columns->first[w]; j < columns->end[w]; j++) EACH_PART(k)
        part[k] = vf_fma(vf_set1(by_column[j]), vf_load(line + j * B + k * VLEN), part[k]);
        EACH_PART(k) sum[k] = vf_fma(vf_set1(by_row[i]), part[k], sum[k]);
    }
}

tutti_upsample_fn NAME(op_upsample_backward);
void NAME(op_upsample_backward)(const tutti_upsample *u, const float *dy, const float *mask,
                                float *dx, bool stream)
{
    size_t at = 0;
    (void)stream;
    for (int h = 0; h < u->rows.in; h++)
        for (int w = 0; w < u->columns.in; w++, at += B) {
            vf sum[PARTS];
            gather(u, h, w, dy, sum);
            EACH_PART(k)
            {
                const size_t i = at + (size_t)(k * VLEN);
                vf_store(dx + i, mask ? vf_gate(sum[k], vf_load(mask + i)) : sum[k]);
            }
        }
}
