/* Winograd's F(4x4, 3x3) by definition, one element at a time; see winograd4.c.
 *
 * Every operation is written once and done twice: as the kernels round it, in floats, and with the
 * magnitudes that bound its error, in double: absolute values, whose differences are sums.
 *
 * The error's bound. In floats every value of u passes 4 roundings at most for each of its two
 * sides (one of them is that of a factor of G), of v 2, of d 2; a point's sum one per channel or
 * tile; y 3 for each side, dw 5 (a sum, three products, a factor). So y is at most channels + 18
 * roundings away from the result without any, and dw tiles + 18; each is of a value no larger than
 * 'magnitude', and 'terms' counts the roundings. */
#include "kernel/ref_conv.h"

#include <math.h>

enum { SIDE = 6, PIXELS = 4, TAPS = 3, ROUNDINGS = 18 };

/* ---- a number twice ---- */

typedef struct number {
    float value;
    double size;
} number;

static number number_of(float value)
{
    return (number){value, fabs((double)value)};
}

static number add(number a, number b)
{
    return (number){a.value + b.value, a.size + b.size};
}

static number sub(number a, number b)
{
    return (number){a.value - b.value, a.size + b.size};
}

static number times(number a, double factor)
{
    return (number){a.value * (float)factor, a.size * fabs(factor)};
}

/* a * factor + b */
static number madd(number a, double factor, number b)
{
    return (number){fmaf(a.value, (float)factor, b.value), a.size * fabs(factor) + b.size};
}

static number madd2(number a, number b, number c)
{
    return (number){fmaf(a.value, b.value, c.value), a.size * b.size + c.size};
}

/* ---- transforms of one side ---- */

static const double a = 0.625, b = 1.5, aa = 0.390625, bb = 2.25, aaa = 0.244140625, bbb = 3.375;

/* What G divides the points by. */
static const double of_zero = 0.87890625, of_a = 2 * 0.390625 * (0.390625 - 2.25),
                    of_b = 2 * 2.25 * (2.25 - 0.390625);

typedef void side(bool is_short, number *to, const number *from);

static void opposite(number *to, number even, number odd, double p)
{
    to[0] = madd(odd, p, even);
    to[1] = madd(odd, -p, even);
}

static void into(bool is_short, number *to, const number *x)
{
    if (is_short) {
        to[0] = madd(x[2], -bb, times(x[0], aa * bb));
        to[1] = madd(x[1], -aa, x[3]);
        opposite(to + 2, times(x[2], aa - bb), times(x[1], aa - bb), a);
    } else {
        to[0] = madd(x[0], aa * bb, madd(x[2], -(aa + bb), x[4]));
        to[1] = madd(x[1], aa * bb, madd(x[3], -(aa + bb), x[5]));
        opposite(to + 2, madd(x[2], -bb, x[4]), madd(x[1], -bb, x[3]), a);
        opposite(to + 4, madd(x[2], -aa, x[4]), madd(x[1], -aa, x[3]), b);
    }
}

static void out_of(bool is_short, number *to, const number *m)
{
    const number sum_a = add(m[2], m[3]), difference_a = sub(m[2], m[3]);
    if (is_short) {
        to[0] = add(m[0], sum_a);
        to[1] = madd(difference_a, a, m[1]);
        return;
    }
    const number sum_b = add(m[4], m[5]), difference_b = sub(m[4], m[5]);
    to[0] = add(add(m[0], sum_a), sum_b);
    to[1] = madd(difference_b, b, times(difference_a, a));
    to[2] = madd(sum_b, bb, times(sum_a, aa));
    to[3] = madd(difference_b, bbb, madd(difference_a, aaa, m[1]));
}

static void out_of_back(bool is_short, number *to, const number *d)
{
    to[0] = d[0];
    to[1] = d[is_short ? 1 : 3];
    if (is_short) {
        opposite(to + 2, d[0], d[1], a);
    } else {
        opposite(to + 2, madd(d[2], aa, d[0]), madd(d[3], aa, d[1]), a);
        opposite(to + 4, madd(d[2], bb, d[0]), madd(d[3], bb, d[1]), b);
    }
}

static void widen(bool is_short, number *to, const number *w)
{
    (void)is_short;
    to[0] = times(w[0], 1 / of_zero);
    to[1] = w[2];
    opposite(to + 2, madd(w[2], aa / of_a, times(w[0], 1 / of_a)), w[1], a / of_a);
    opposite(to + 4, madd(w[2], bb / of_b, times(w[0], 1 / of_b)), w[1], b / of_b);
}

static void widen_back(bool is_short, number *to, const number *m)
{
    (void)is_short;
    const number sum_a = add(m[2], m[3]), difference_a = sub(m[2], m[3]);
    const number sum_b = add(m[4], m[5]), difference_b = sub(m[4], m[5]);
    to[0] = madd(sum_b, 1 / of_b, madd(sum_a, 1 / of_a, times(m[0], 1 / of_zero)));
    to[1] = madd(difference_b, b / of_b, times(difference_a, a / of_a));
    to[2] = madd(sum_b, bb / of_b, madd(sum_a, aa / of_a, m[1]));
}

/* ---- both sides ---- */

typedef struct grid {
    number at[SIDE][SIDE];
} grid;

/* Which sides of a tile are short. */
typedef struct cut {
    bool rows, cols;
} cut;

/* Columns first. 'size' numbers of a side, of which 'to_size' are made. */
static grid both(side *transform, cut is_short, const grid *from, int size, int to_size)
{
    grid half = {0}, to = {0};
    for (int j = 0; j < size; j++) {
        number column[SIDE], points[SIDE] = {{0}};
        for (int i = 0; i < size; i++) column[i] = from->at[i][j];
        transform(is_short.rows, points, column);
        for (int i = 0; i < to_size; i++) half.at[i][j] = points[i];
    }
    for (int i = 0; i < to_size; i++) transform(is_short.cols, to.at[i], half.at[i]);
    return to;
}

/* What is convolved: x with the weights, or dy with the weights turned around. */
typedef struct view {
    const tutti_conv_shape *shape;
    const float *x, *weights;
    bool turned;
    int n, out; /* sample, feature of the result */
} view;

static float pixel_of(const view *v, int c, int h, int w)
{
    const int height = v->turned ? tutti_conv_out_h(v->shape) : v->shape->h;
    const int width = v->turned ? tutti_conv_out_w(v->shape) : v->shape->w;
    if (h < 0 || h >= height || w < 0 || w >= width) return 0.0f;
    return v->x[v->turned ? tutti_ref_y_at(v->shape, v->n, c, h, w)
                          : tutti_ref_x_at(v->shape, v->n, c, h, w)];
}

static float tap_of(const view *v, int c, int r, int s)
{
    return v->weights[v->turned ? tutti_ref_w_at(v->shape, c, v->out, TAPS - 1 - r, TAPS - 1 - s)
                                : tutti_ref_w_at(v->shape, v->out, c, r, s)];
}

static bool ends_short(int at, int pixels)
{
    const int left = pixels - at / PIXELS * PIXELS;
    return left == 1 || left == 2;
}

/* Of a tile whose first pixel of x is (top, left). */
static grid points_of(const view *v, int c, int top, int left, cut is_short)
{
    grid x;
    for (int i = 0; i < SIDE; i++)
        for (int j = 0; j < SIDE; j++) x.at[i][j] = number_of(pixel_of(v, c, top + i, left + j));
    return both(into, is_short, &x, SIDE, SIDE);
}

static grid factors_of(const view *v, int c)
{
    grid w = {0};
    for (int r = 0; r < TAPS; r++)
        for (int s = 0; s < TAPS; s++) w.at[r][s] = number_of(tap_of(v, c, r, s));
    return both(widen, (cut){false, false}, &w, TAPS, SIDE);
}

/* m goes on by one term, at the points that the tile has. */
static void add_terms(grid *m, const grid *x, const grid *y, cut is_short)
{
    for (int i = 0; i < (is_short.rows ? 4 : SIDE); i++)
        for (int j = 0; j < (is_short.cols ? 4 : SIDE); j++)
            m->at[i][j] = madd2(x->at[i][j], y->at[i][j], m->at[i][j]);
}

static tutti_ref_sum sum_of(const view *v, int channels, int height, int width, int pad_top,
                            int pad_left, int h, int w, double exact)
{
    const cut is_short = {ends_short(h, height), ends_short(w, width)};
    const int top = h / PIXELS * PIXELS - pad_top, left = w / PIXELS * PIXELS - pad_left;
    grid m = {0};
    for (int c = 0; c < channels; c++) {
        const grid x = points_of(v, c, top, left, is_short), u = factors_of(v, c);
        add_terms(&m, &x, &u, is_short);
    }
    const grid y = both(out_of, is_short, &m, SIDE, PIXELS);
    const number pixel = y.at[h % PIXELS][w % PIXELS];
    return (tutti_ref_sum){.chain = pixel.value,
                           .exact = exact,
                           .magnitude = pixel.size,
                           .terms = channels + ROUNDINGS};
}

/* ---- y, dx, dw ---- */

tutti_ref_sum tutti_ref_winograd4_y(const tutti_conv_shape *shape, const float *x,
                                    const float *weights, int n, int k, int h, int w)
{
    const view v = {shape, x, weights, false, n, k};
    return sum_of(&v, shape->c, tutti_conv_out_h(shape), tutti_conv_out_w(shape), shape->pad_top,
                  shape->pad_left, h, w, tutti_ref_conv_y(shape, x, weights, n, k, h, w).exact);
}

tutti_ref_sum tutti_ref_winograd4_dx(const tutti_conv_shape *shape, const float *dy,
                                     const float *weights, int n, int c, int h, int w)
{
    const view v = {shape, dy, weights, true, n, c};
    return sum_of(&v, shape->k, shape->h, shape->w, 2 - shape->pad_top, 2 - shape->pad_left, h, w,
                  tutti_ref_conv_dx(shape, dy, weights, n, c, h, w).exact);
}

/* Of a tile whose first pixel of dy is (h, w). */
static grid slopes_of(const tutti_conv_shape *shape, const float *dy, int n, int k, int h, int w,
                      cut is_short)
{
    grid d = {0};
    for (int i = 0; i < PIXELS && h + i < tutti_conv_out_h(shape); i++)
        for (int j = 0; j < PIXELS && w + j < tutti_conv_out_w(shape); j++)
            d.at[i][j] = number_of(dy[tutti_ref_y_at(shape, n, k, h + i, w + j)]);
    return both(out_of_back, is_short, &d, PIXELS, SIDE);
}

tutti_ref_sum tutti_ref_winograd4_dw(const tutti_conv_shape *shape, const float *x, const float *dy,
                                     int begin, int end, int k, int c, int r, int s)
{
    const int height = tutti_conv_out_h(shape), width = tutti_conv_out_w(shape);
    grid m = {0};
    int tiles = 0;
    for (int n = begin; n < end; n++)
        for (int h = 0; h < height; h += PIXELS)
            for (int w = 0; w < width; w += PIXELS, tiles++) {
                const view v = {shape, x, NULL, false, n, k};
                const cut is_short = {ends_short(h, height), ends_short(w, width)};
                const grid points =
                    points_of(&v, c, h - shape->pad_top, w - shape->pad_left, is_short);
                const grid slopes = slopes_of(shape, dy, n, k, h, w, is_short);
                add_terms(&m, &points, &slopes, is_short);
            }
    const grid dw = both(widen_back, (cut){false, false}, &m, SIDE, TAPS);
    return (tutti_ref_sum){.chain = dw.at[r][s].value,
                           .exact = tutti_ref_conv_dw(shape, x, dy, begin, end, k, c, r, s).exact,
                           .magnitude = dw.at[r][s].size,
                           .terms = tiles + ROUNDINGS};
}
