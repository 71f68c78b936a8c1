/* Pooling of one plane [h][w][16].
 *
 * Forward walks the outputs and gathers each window. Backward walks the inputs and gathers, for
 * each, from the outputs whose windows hold it, in the order of the outputs: each element of dx is
 * written once, and nothing is read but what is small. */
#include "kernel/isa/isa.h"
#include "kernel/ops_kernels.h"

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
                          float *y, uint16_t *tap, bool stream)
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
        vf_put(y + l, best, stream);
        if (tap) vi_store_u16(tap + l, which);
    }
}

tutti_max_pool_fn NAME(op_max_pool);
void NAME(op_max_pool)(const tutti_pool_shape *p, const float *x, float *y, uint16_t *tap,
                       bool stream)
{
    const int out_h = tutti_pool_out_h(p), out_w = tutti_pool_out_w(p);
    for (int oh = 0; oh < out_h; oh++) {
        const extent rows = rows_of(p, oh);
        for (int ow = 0; ow < out_w; ow++) {
            const size_t at = ((size_t)oh * out_w + ow) * B;
            max_of_window(p, rows, columns_of(p, ow), x, y + at, tap ? tap + at : NULL, stream);
        }
    }
    if (stream) vf_stream_end();
}

/* By what an average is divided: the elements on the image, or those of the padding too (but not
 * what ceil_mode adds beyond it). */
INLINE float divisor_of(const tutti_pool_shape *p, extent rows, extent columns)
{
    if (!p->count_padding) return (float)((rows.end - rows.begin) * (columns.end - columns.begin));
    const int below = p->h + p->pad_bottom - rows.start;
    const int beside = p->w + p->pad_right - columns.start;
    return (float)((below < p->r ? below : p->r) * (beside < p->s ? beside : p->s));
}

tutti_average_pool_fn NAME(op_average_pool);
void NAME(op_average_pool)(const tutti_pool_shape *p, const float *x, float *y, bool stream)
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
                vf_put(y + ((size_t)oh * out_w + ow) * B + l, vf_div(sum, divisor), stream);
            }
        }
    }
    if (stream) vf_stream_end();
}

/* ---- backward ---- */

/* The outputs begin .. end-1 whose windows hold one place of the image, in one direction. */
typedef struct outputs {
    int begin, end;
} outputs;

/* From those of the place before to those of 'place'. */
INLINE void move_to(outputs *o, int place, int stride, int pad, int kernel, int count)
{
    while (o->begin < count && o->begin * stride - pad + kernel <= place) o->begin++;
    if (o->end < o->begin) o->end = o->begin;
    while (o->end < count && o->end * stride - pad <= place) o->end++;
}

/* Where dx comes from: the arrays of the outputs, and the input (row, column) asks. */
typedef struct source {
    const tutti_pool_shape *p;
    int out_w, row, column;
    outputs rows, columns;
    const float *dy, *mask;
    const uint16_t *tap;
} source;

INLINE vf from_won(const source *s, int l)
{
    const tutti_pool_shape *p = s->p;
    vf sum = vf_zero();
    for (int oh = s->rows.begin; oh < s->rows.end; oh++)
        for (int ow = s->columns.begin; ow < s->columns.end; ow++) {
            const size_t at = ((size_t)oh * s->out_w + ow) * B + l;
            const int r = s->row - (oh * p->stride_h - p->pad_top);
            const int c = s->column - (ow * p->stride_w - p->pad_left);
            vf d = vf_keep(vi_eq(vi_load_u16(s->tap + at), vi_set1(r * p->s + c)),
                           vf_load(s->dy + at));
            if (s->mask) d = vf_gate(d, vf_load(s->mask + at));
            sum = vf_add(sum, d);
        }
    return sum;
}

INLINE vf from_averages(const source *s, int l)
{
    const tutti_pool_shape *p = s->p;
    vf sum = vf_zero();
    for (int oh = s->rows.begin; oh < s->rows.end; oh++)
        for (int ow = s->columns.begin; ow < s->columns.end; ow++) {
            const vf d = vf_load(s->dy + ((size_t)oh * s->out_w + ow) * B + l);
            const float divisor = divisor_of(p, rows_of(p, oh), columns_of(p, ow));
            sum = vf_add(sum, vf_div(d, vf_set1(divisor)));
        }
    const size_t at = ((size_t)s->row * p->w + s->column) * B + l;
    return s->mask ? vf_gate(sum, vf_load(s->mask + at)) : sum;
}

/* Every element of dx by one of the two. */
INLINE void gather(source s, vf (*from)(const source *s, int l), float *dx, bool stream)
{
    const tutti_pool_shape *p = s.p;
    const int out_h = tutti_pool_out_h(p);
    s.out_w = tutti_pool_out_w(p);
    for (s.row = 0; s.row < p->h; s.row++) {
        move_to(&s.rows, s.row, p->stride_h, p->pad_top, p->r, out_h);
        s.columns = (outputs){0, 0};
        for (s.column = 0; s.column < p->w; s.column++) {
            move_to(&s.columns, s.column, p->stride_w, p->pad_left, p->s, s.out_w);
            for (int l = 0; l < B; l += VLEN)
                vf_put(dx + ((size_t)s.row * p->w + s.column) * B + l, from(&s, l), stream);
        }
    }
    if (stream) vf_stream_end();
}

tutti_max_unpool_fn NAME(op_max_unpool);
void NAME(op_max_unpool)(const tutti_pool_shape *p, const float *dy, const uint16_t *tap,
                         const float *y_mask, float *dx, bool stream)
{
    gather((source){.p = p, .dy = dy, .mask = y_mask, .tap = tap}, from_won, dx, stream);
}

tutti_average_unpool_fn NAME(op_average_unpool);
void NAME(op_average_unpool)(const tutti_pool_shape *p, const float *dy, const float *mask,
                             float *dx, bool stream)
{
    gather((source){.p = p, .dy = dy, .mask = mask}, from_averages, dx, stream);
}
