/* Pooling of one plane [h][w][16].
 *
 * Forward walks the outputs and gathers each window; backward walks the inputs, so that each
 * element of dx is written once and nothing is read but what is small. */
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

/* ---- backward ----
 *
 * Where windows lie apart (the stride is at least the kernel, or there is one), an element of dx
 * has one window or none: spread() goes from window to window along each row of dx. Where they
 * overlap, gather() goes from element to element and adds over the windows that hold it. */

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

/* What backward reads: of max pooling tap and, as mask, y; of average pooling, as mask, x. */
typedef struct source {
    const tutti_pool_shape *p;
    int out_h, out_w;
    const float *dy, *mask;
    const uint16_t *tap;
    bool max;
} source;

/* What an output at 'at' gives to element 'tap' of its window, by max pooling. */
INLINE vf won(const source *s, size_t at, int tap)
{
    const vf d = vf_keep(vi_eq(vi_load_u16(s->tap + at), vi_set1(tap)), vf_load(s->dy + at));
    return s->mask ? vf_gate(d, vf_load(s->mask + at)) : d;
}

/* What an output gives to each element of its window, by average pooling. */
INLINE vf part(const source *s, size_t at, int oh, int ow)
{
    const float divisor = divisor_of(s->p, rows_of(s->p, oh), columns_of(s->p, ow));
    return vf_div(vf_load(s->dy + at), vf_set1(divisor));
}

/* The mask of average pooling is of dx's own layout. */
INLINE vf finished(const source *s, vf sum, size_t at)
{
    return !s->max && s->mask ? vf_gate(sum, vf_load(s->mask + at)) : sum;
}

INLINE void zero_columns(float *row, int begin, int end, bool stream)
{
    for (int i = begin * B; i < end * B; i += VLEN) vf_put(row + i, vf_zero(), stream);
}

/* The part of a row of dx (row 'r' of its windows, 'first' its first element) that lies in the
 * window of output (oh, ow). */
INLINE void spread_window(const source *s, int oh, int ow, int r, size_t first, float *dx,
                          bool stream)
{
    const extent columns = columns_of(s->p, ow);
    for (int l = 0; l < B; l += VLEN) {
        const size_t from = ((size_t)oh * s->out_w + ow) * B + l;
        const vf each = s->max ? vf_zero() : part(s, from, oh, ow);
        for (int column = columns.begin; column < columns.end; column++) {
            const size_t at = first + (size_t)column * B + l;
            const int tap = r * s->p->s + column - columns.start;
            vf_put(dx + at, s->max ? won(s, from, tap) : finished(s, each, at), stream);
        }
    }
}

INLINE void spread(const source *s, float *dx, bool stream)
{
    const tutti_pool_shape *p = s->p;
    outputs rows = {0, 0};
    for (int row = 0; row < p->h; row++) {
        const size_t first = (size_t)row * p->w * B;
        int done = 0;
        move_to(&rows, row, p->stride_h, p->pad_top, p->r, s->out_h);
        for (int ow = 0; rows.begin < rows.end && ow < s->out_w; ow++) {
            const extent columns = columns_of(p, ow);
            zero_columns(dx + first, done, columns.begin, stream);
            spread_window(s, rows.begin, ow, row - rows_of(p, rows.begin).start, first, dx, stream);
            done = columns.end;
        }
        zero_columns(dx + first, done, p->w, stream);
    }
}

/* The sum over 'high' x 'wide' outputs from the one at 'at' on, of which (row, column) is element
 * 'tap' of the first's window; oh and ow are that output's place. */
INLINE vf sum_over(const source *s, int high, int wide, size_t at, int tap, int oh, int ow)
{
    vf sum = vf_zero();
    for (int i = 0; i < high; i++)
        for (int j = 0; j < wide; j++) {
            const size_t here = at + (size_t)(i * s->out_w + j) * B;
            const int element = tap - i * s->p->stride_h * s->p->s - j * s->p->stride_w;
            sum = vf_add(sum, s->max ? won(s, here, element) : part(s, here, oh + i, ow + j));
        }
    return sum;
}

/* The sum over the outputs whose windows hold (row, column). Windows that overlap by half at most,
 * the usual ones, get loops of known length. */
INLINE vf gathered(const source *s, outputs rows, outputs columns, int row, int column, int l)
{
    const int oh = rows.begin, ow = columns.begin;
    const int high = rows.end - rows.begin, wide = columns.end - columns.begin;
    const size_t at = ((size_t)oh * s->out_w + ow) * B + l;
    const int tap = (row - rows_of(s->p, oh).start) * s->p->s + column - columns_of(s->p, ow).start;
    if (high == 1 && wide == 1) return sum_over(s, 1, 1, at, tap, oh, ow);
    if (high == 1 && wide == 2) return sum_over(s, 1, 2, at, tap, oh, ow);
    if (high == 2 && wide == 1) return sum_over(s, 2, 1, at, tap, oh, ow);
    if (high == 2 && wide == 2) return sum_over(s, 2, 2, at, tap, oh, ow);
    return sum_over(s, high, wide, at, tap, oh, ow);
}

INLINE void gather(const source *s, float *dx, bool stream)
{
    const tutti_pool_shape *p = s->p;
    outputs rows = {0, 0};
    for (int row = 0; row < p->h; row++) {
        outputs columns = {0, 0};
        move_to(&rows, row, p->stride_h, p->pad_top, p->r, s->out_h);
        for (int column = 0; column < p->w; column++) {
            const size_t at = ((size_t)row * p->w + column) * B;
            move_to(&columns, column, p->stride_w, p->pad_left, p->s, s->out_w);
            for (int l = 0; l < B; l += VLEN) {
                const vf sum = gathered(s, rows, columns, row, column, l);
                vf_put(dx + at + l, finished(s, sum, at + l), stream);
            }
        }
    }
}

INLINE void backward(const source *s, float *dx, bool stream)
{
    if (s->p->stride_h >= s->p->r && s->p->stride_w >= s->p->s) spread(s, dx, stream);
    else gather(s, dx, stream);
    if (stream) vf_stream_end();
}

tutti_max_unpool_fn NAME(op_max_unpool);
void NAME(op_max_unpool)(const tutti_pool_shape *p, const float *dy, const uint16_t *tap,
                         const float *y_mask, float *dx, bool stream)
{
    const source s = {p, tutti_pool_out_h(p), tutti_pool_out_w(p), dy, y_mask, tap, true};
    backward(&s, dx, stream);
}

tutti_average_unpool_fn NAME(op_average_unpool);
void NAME(op_average_unpool)(const tutti_pool_shape *p, const float *dy, const float *mask,
                             float *dx, bool stream)
{
    const source s = {p, tutti_pool_out_h(p), tutti_pool_out_w(p), dy, mask, NULL, false};
    backward(&s, dx, stream);
}
