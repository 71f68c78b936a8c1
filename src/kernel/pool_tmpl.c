/* Pooling of one plane [h][w][16].
 *
 * Forward walks the outputs and gathers each window; backward walks the inputs, so that each
 * element of dx is written once and nothing is read but what is small. */
#include "kernel/isa/isa.h"

#include <limits.h>

#include "base/memory.h"
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

/* The outputs begin .. end-1 of a row whose windows lie on the image from side to side. */
typedef struct inner {
    int begin, end;
} inner;

INLINE inner inner_of(const tutti_pool_shape *p, int out_w)
{
    const int begin = tutti_ceil_div(p->pad_left, p->stride_w), room = p->w + p->pad_left - p->s;
    const int end = room < 0 ? 0 : room / p->stride_w + 1, last = end < out_w ? end : out_w;
    return (inner){begin < last ? begin : last, last};
}

/* Which elements won, beside their values. */
INLINE void put_taps(uint16_t *tap, vi which, bool stream)
{
    if (stream) vi_stream_u16(tap, which);
    else vi_store_u16(tap, which);
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
        if (tap) put_taps(tap + l, which, stream);
    }
}

/* How windows of r x s elements lie in memory; r and s are known to the compiler, or 0. */
typedef struct window {
    int r, s;
    size_t row;   /* floats from one row to the next */
    size_t ahead; /* floats from a window to the one that is fetched meanwhile */
} window;

/* What is fetched lies whole rows of outputs ahead, so that every row is: a fixed distance in a row
 * would fetch rows that the same windows hold, and others never. */
INLINE window window_of(const tutti_pool_shape *p, int r, int s)
{
    const size_t row = (size_t)p->w * B, outputs = (size_t)p->stride_h * row;
    return (window){r, s, row, (TAKE_AHEAD + outputs - 1) / outputs * outputs};
}

/* Element 'tap' of a whole window that starts at 'from'; the last two rows and columns are new ones
 * where windows lie two apart. */
INLINE vf element(const float *from, window w, int tap)
{
    const float *at = from + tap / w.s * w.row + tap % w.s * B;
    if (tap / w.s >= w.r - 2 && tap % w.s >= w.s - 2) __builtin_prefetch(at + w.ahead, 0, 2);
    return vf_load(at);
}

/* The largest of a window's elements and its number, the first of equal ones, as if there were no
 * NaN; 'number' has each element's own. */
typedef struct largest {
    vf value;
    vi number;
} largest;

INLINE largest largest_of(const vf *a, const vi *number, int count)
{
    largest best = {a[0], number[0]};
    UNROLL(9)
    for (int t = 1; t < count; t++) {
        best.number = vi_select(vf_gt(a[t], best.value), number[t], best.number);
        best.value = vf_max(a[t], best.value);
    }
    return best;
}

INLINE vm all_numbers(void)
{
    return vf_gt(vf_set1(1.0f), vf_zero());
}

/* One row of outputs, of the input rows 'rows'. */
typedef struct max_row {
    const tutti_pool_shape *shape;
    extent rows;
    const float *x; /* the plane */
    float *y;
    uint16_t *tap; /* may be NULL */
    bool stream;
} max_row;

/* A window of size x size elements that starts on the image and may end beyond it: there the last
 * row or column stands in again, which cannot win a second time. False when it has a NaN. */
INLINE bool max_of_cut(const max_row *row, extent columns, int size, float *y, uint16_t *tap)
{
    const size_t width = (size_t)row->shape->w * B;
    const float *const first = row->x + row->rows.begin * width + (size_t)columns.begin * B;
    const int last_row = row->rows.end - row->rows.begin - 1;
    const int last_column = columns.end - columns.begin - 1;
    for (int l = 0; l < B; l += VLEN) {
        vf a[9];
        vi number[9];
        vm numbers = all_numbers();
        UNROLL(9)
        for (int t = 0; t < size * size; t++) {
            const int r = t / size < last_row ? t / size : last_row;
            const int c = t % size < last_column ? t % size : last_column;
            a[t] = vf_load(first + r * width + (size_t)c * B + l);
            number[t] = vi_set1(t);
            numbers = vf_numbers(numbers, a[t], a[t]);
        }
        if (!vm_all(numbers)) return false;
        const largest best = largest_of(a, number, size * size);
        vf_put(y + l, best.value, row->stream);
        if (tap) put_taps(tap + l, best.number, row->stream);
    }
    return true;
}

/* Outputs begin .. end-1, with all that can happen. */
static void max_of_some(const max_row *row, int begin, int end)
{
    const tutti_pool_shape *const p = row->shape;
    for (int ow = begin; ow < end; ow++) {
        const extent columns = columns_of(p, ow);
        float *const y = row->y + ow * B;
        uint16_t *const tap = row->tap ? row->tap + ow * B : NULL;
        const bool starts = row->rows.start >= 0 && columns.start >= 0 && p->r == p->s;
        if (starts && p->r == 3 && max_of_cut(row, columns, 3, y, tap)) continue;
        if (starts && p->r == 2 && max_of_cut(row, columns, 2, y, tap)) continue;
        max_of_window(p, row->rows, columns, row->x, y, tap, row->stream);
    }
}

/* ---- whole windows of known size, taken to be without NaN until one turns up ---- */

/* Outputs of a row. */
typedef struct run {
    const float *from; /* the first one's window */
    size_t row, ahead; /* as in a window */
    size_t step;       /* floats from one window to the next */
    int count;
    float *y;
    uint16_t *tap;
} run;

/* Returns 'numbers' but for where the window's last columns, those that the window to its left does
 * not have ('fresh' of them), have a NaN. */
INLINE vm max_of_numbers(const float *from, window w, int fresh, const vi *number, float *y,
                         uint16_t *tap, bool taps, bool stream, vm numbers)
{
    vf a[9];
    UNROLL(9)
    for (int t = 0; t < w.r * w.s; t++) a[t] = element(from, w, t);
    const largest best = largest_of(a, number, w.r * w.s);
    UNROLL(3)
    for (int row = 0; row < w.r; row++) {
        const vf *const last = a + (row + 1) * w.s;
        numbers = vf_numbers(numbers, last[-1], last[-2]);
        if (fresh == 3) numbers = vf_numbers(numbers, last[-3], last[-3]);
    }
    vf_put(y, best.value, stream);
    if (taps) put_taps(tap, best.number, stream);
    return numbers;
}

/* False when there is a NaN in a window. */
INLINE bool max_of_run(const run *job, int size, int fresh, bool taps, bool stream)
{
    enum { PARTS = B / VLEN };
    const window w = {size, size, job->row, job->ahead};
    const size_t step = job->step;
    const float *from = job->from;
    float *y = job->y;
    uint16_t *tap = job->tap;
    vi number[9] = {vi_set1(0)};
    UNROLL(9)
    for (int t = 1; t < size * size; t++) {
        number[t] = vi_set1(t);
        HOLD(number[t]);
    }
    vm numbers[PARTS];
    UNROLL(4)
    for (int i = 0; i < PARTS; i++) {
        numbers[i] = all_numbers();
        for (int row = 0; fresh < size && row < size; row++) { /* the column fresh to no window */
            const vf a = vf_load(from + row * job->row + i * VLEN);
            numbers[i] = vf_numbers(numbers[i], a, a);
        }
    }
    for (int left = job->count; left > 0; left--) {
        UNROLL(4)
        for (int i = 0; i < PARTS; i++)
            numbers[i] = max_of_numbers(from + i * VLEN, w, fresh, number, y + i * VLEN,
                                        taps ? tap + i * VLEN : NULL, taps, stream, numbers[i]);
        from += step;
        y += B;
        if (taps) tap += B;
    }
    bool all = true;
    for (int i = 0; i < PARTS; i++) all = all && vm_all(numbers[i]);
    return all;
}

/* A function each, not one with all of them: together they are short of registers. */
typedef bool run_fn(const run *job);
#define RUN(size, fresh, way, taps, stream)                                            \
    static __attribute__((noinline)) bool run_##size##_##fresh##_##way(const run *job) \
    {                                                                                  \
        return max_of_run(job, size, fresh, taps, stream);                             \
    }
// clang-format off
#define RUNS(size, fresh)                     \
    RUN(size, fresh, plain, false, false)     \
    RUN(size, fresh, stream, false, true)     \
    RUN(size, fresh, taps, true, false)       \
    RUN(size, fresh, taps_stream, true, true)
#define WAYS(size, fresh)                                             \
    {{run_##size##_##fresh##_plain, run_##size##_##fresh##_stream},   \
     {run_##size##_##fresh##_taps, run_##size##_##fresh##_taps_stream}}
// clang-format on
RUNS(2, 2)
RUNS(3, 2)
RUNS(3, 3)

typedef struct run_kind {
    int size, most_stride; /* of windows, and how far apart they lie at most */
    run_fn *run[2][2];     /* with taps?, streaming? */
} run_kind;

static const run_kind run_kinds[] = {
    {2, INT_MAX, WAYS(2, 2)}, {3, 2, WAYS(3, 2)}, {3, INT_MAX, WAYS(3, 3)}};
enum { RUN_KINDS = sizeof run_kinds / sizeof *run_kinds };

static const run_kind *run_kind_of(const tutti_pool_shape *p)
{
    for (int k = 0; k < RUN_KINDS; k++)
        if (p->r == run_kinds[k].size && p->s == p->r && p->stride_w <= run_kinds[k].most_stride)
            return &run_kinds[k];
    return NULL;
}

static void max_of_whole(const max_row *row, const run_kind *kind, window w, inner in)
{
    const int step = row->shape->stride_w * B;
    const run job = {.from = row->x + row->rows.begin * w.row + in.begin * step -
                             row->shape->pad_left * B,
                     .row = w.row,
                     .ahead = w.ahead,
                     .step = (size_t)step,
                     .count = in.end - in.begin,
                     .y = row->y + in.begin * B,
                     .tap = row->tap ? row->tap + in.begin * B : NULL};
    if (!kind->run[row->tap != NULL][row->stream](&job)) max_of_some(row, in.begin, in.end);
}

tutti_max_pool_fn NAME(op_max_pool);
void NAME(op_max_pool)(const tutti_pool_shape *p, const float *x, float *y, uint16_t *tap,
                       bool stream)
{
    const int out_h = tutti_pool_out_h(p), out_w = tutti_pool_out_w(p);
    const run_kind *const kind = run_kind_of(p);
    const window w = window_of(p, p->r, p->s);
    const inner whole = inner_of(p, out_w);
    for (int oh = 0; oh < out_h; oh++) {
        const size_t at = (size_t)oh * out_w * B;
        const max_row row = {p, rows_of(p, oh), x, y + at, tap ? tap + at : NULL, stream};
        const bool high = kind && row.rows.end - row.rows.begin == p->r;
        const inner fast = high ? whole : (inner){0, 0};
        max_of_some(&row, 0, fast.begin);
        if (fast.begin < fast.end) max_of_whole(&row, kind, w, fast);
        max_of_some(&row, fast.end, out_w);
    }
}

/* What an average is divided by: the elements on the image, or also those in the padding (but not
 * what ceil_mode adds beyond it). */
INLINE float divisor_of(const tutti_pool_shape *p, extent rows, extent columns)
{
    if (!p->count_padding) return (float)((rows.end - rows.begin) * (columns.end - columns.begin));
    const int below = p->h + p->pad_bottom - rows.start;
    const int beside = p->w + p->pad_right - columns.start;
    return (float)((below < p->r ? below : p->r) * (beside < p->s ? beside : p->s));
}

INLINE vf sum_of_window(const tutti_pool_shape *p, extent rows, extent columns, const float *x)
{
    vf sum = vf_zero();
    for (int row = rows.begin; row < rows.end; row++)
        for (int column = columns.begin; column < columns.end; column++)
            sum = vf_add(sum, vf_take(x + ((size_t)row * p->w + column) * B));
    return sum;
}

/* The same of a whole window of known size. */
INLINE vf sum_of_elements(const float *from, window w)
{
    vf sum = vf_zero();
    UNROLL(9)
    for (int t = 0; t < w.r * w.s; t++) sum = vf_add(sum, element(from, w, t));
    return sum;
}

/* Outputs begin .. end-1 of a row, with all that can happen. */
INLINE void average_of_some(const tutti_pool_shape *p, extent rows, const float *x, int begin,
                            int end, float *y, bool stream)
{
    for (int ow = begin; ow < end; ow++) {
        const extent columns = columns_of(p, ow);
        const vf divisor = vf_set1(divisor_of(p, rows, columns));
        for (int l = 0; l < B; l += VLEN)
            vf_put(y + ow * B + l, vf_div(sum_of_window(p, rows, columns, x + l), divisor), stream);
    }
}

/* Those of whole windows of known size, the first of which starts at 'from'. */
INLINE void average_of_whole(const float *from, size_t step, window w, int count, float *y,
                             bool stream)
{
    const vf divisor = vf_set1((float)(w.r * w.s));
    for (; count > 0; count--, from += step, y += B) {
        UNROLL(2)
        for (int l = 0; l < B; l += VLEN)
            vf_put(y + l, vf_div(sum_of_elements(from + l, w), divisor), stream);
    }
}

INLINE void average_pool(const tutti_pool_shape *p, window w, const float *x, float *y, bool stream)
{
    const int out_h = tutti_pool_out_h(p), out_w = tutti_pool_out_w(p);
    const size_t step = (size_t)p->stride_w * B;
    const inner whole = inner_of(p, out_w);
    for (int oh = 0; oh < out_h; oh++, y += (size_t)out_w * B) {
        const extent rows = rows_of(p, oh);
        const bool high = w.r && rows.end - rows.begin == w.r;
        const inner fast = high ? whole : (inner){0, 0};
        average_of_some(p, rows, x, 0, fast.begin, y, stream);
        if (fast.begin < fast.end) {
            const float *from = x + rows.begin * w.row + fast.begin * step - p->pad_left * B;
            average_of_whole(from, step, w, fast.end - fast.begin, y + fast.begin * B, stream);
        }
        average_of_some(p, rows, x, fast.end, out_w, y, stream);
    }
}

tutti_average_pool_fn NAME(op_average_pool);
void NAME(op_average_pool)(const tutti_pool_shape *p, const float *x, float *y, bool stream)
{
    if (p->r == 2 && p->s == 2) average_pool(p, window_of(p, 2, 2), x, y, stream);
    else if (p->r == 3 && p->s == 3) average_pool(p, window_of(p, 3, 3), x, y, stream);
    else average_pool(p, window_of(p, 0, 0), x, y, stream);
}

/* ---- backward ----
 *
 * Max pooling with windows of 2x2 or 3x3 elements two apart, the usual ones, goes by unmax_pairs():
 * from output to output, four elements of dx at a time. Otherwise: where windows lie apart (the
 * stride is at least the kernel, or there is one), an element of dx has one window or none:
 * spread() goes from window to window along each row of dx. Where they overlap, gather() goes from
 * element to element and adds over the windows that hold it. */

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
    return !s->max && s->mask ? vf_gate(sum, vf_take(s->mask + at)) : sum;
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

/* What an output has to give, by max pooling: to the element of its window that 'tap' names. */
typedef struct given {
    vf d;
    vi tap;
} given;

INLINE given given_by(const source *s, bool exists, size_t at)
{
    if (!exists) return (given){vf_zero(), vi_set1(0)};
    const vf d = vf_take(s->dy + at);
    return (given){s->mask ? vf_gate(d, vf_take(s->mask + at)) : d, vi_load_u16(s->tap + at)};
}

INLINE vf with(vf sum, given g, int tap)
{
    return vf_add_where(vi_eq(g.tap, vi_set1(tap)), sum, g.d);
}

/* Elements (0, 0), (0, 1), (1, 0), (1, 1) of the window of output (i, j), which may lie beyond the
 * last one. With 3x3 elements they are also the last ones of the windows before. */
INLINE void unmax_square(const source *s, int size, int i, int j, int l, vf sum[4])
{
    const bool here_i = i < s->out_h, here_j = j < s->out_w;
    const size_t row = (size_t)s->out_w * B, at = (size_t)i * row + (size_t)j * B + l;
    UNROLL(4)
    for (int k = 0; k < 4; k++) sum[k] = vf_zero();
    if (size == 3) {
        const given before = given_by(s, i && j, at - row - B);
        const given above = given_by(s, i && here_j, at - row);
        const given left = given_by(s, here_i && j, at - B);
        sum[0] = with(with(with(sum[0], before, 8), above, 6), left, 2);
        sum[1] = with(sum[1], above, 7);
        sum[2] = with(sum[2], left, 5);
    }
    const given own = given_by(s, here_i && here_j, at);
    UNROLL(4)
    for (int k = 0; k < 4; k++) sum[k] = with(sum[k], own, k / 2 * size + k % 2);
}

INLINE void unmax_pairs(const source *s, int size, float *dx, bool stream)
{
    const tutti_pool_shape *p = s->p;
    for (int i = 0; i <= s->out_h; i++) {
        const int row = i * 2 - p->pad_top;
        for (int j = 0; j <= s->out_w; j++) {
            const int column = j * 2 - p->pad_left;
            for (int l = 0; l < B; l += VLEN) {
                vf sum[4];
                unmax_square(s, size, i, j, l, sum);
                UNROLL(4)
                for (int k = 0; k < 4; k++) {
                    const int r = row + k / 2, c = column + k % 2;
                    if (r < 0 || r >= p->h || c < 0 || c >= p->w) continue;
                    vf_put(dx + ((size_t)r * p->w + c) * B + l, sum[k], stream);
                }
            }
        }
    }
}

/* Whether unmax_pairs reaches all of dx: no more than a pair of rows and columns lies beyond the
 * windows. */
INLINE bool in_pairs(const source *s, int size)
{
    const tutti_pool_shape *p = s->p;
    return s->max && p->r == size && p->s == size && p->stride_h == 2 && p->stride_w == 2 &&
           (s->out_h + 1) * 2 - p->pad_top >= p->h && (s->out_w + 1) * 2 - p->pad_left >= p->w;
}

/* Whether no two windows hold the same element: spread() serves. */
INLINE bool apart(const source *s)
{
    const tutti_pool_shape *p = s->p;
    return (p->stride_h >= p->r || s->out_h == 1) && (p->stride_w >= p->s || s->out_w == 1);
}

INLINE void backward(const source *s, float *dx, bool stream)
{
    if (in_pairs(s, 2)) unmax_pairs(s, 2, dx, stream);
    else if (in_pairs(s, 3)) unmax_pairs(s, 3, dx, stream);
    else if (apart(s)) spread(s, dx, stream);
    else gather(s, dx, stream);
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
