/* Winograd's F(2x2, 3x3) by definition, one element at a time; see winograd.c.
 *
 * The error's bound. In floats every value of u passes 4 roundings at most, of v 2, a point's sum
 * one per channel, y 4 more. So y is at most channels + 10 roundings away from the result without
 * any, and dw, whose points are sums over tiles, at most tiles + 10; each is of a value no larger
 * than what comes out when every number is replaced by its absolute value and every difference by
 * a sum: that is 'magnitude', and 'terms' counts the roundings. */
#include "kernel/ref_conv.h"

#include <math.h>

enum { SIDE = 4, TAPS = 3, ROUNDINGS = 10 };

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

/* ---- in floats, as the kernels round ---- */

static void into(float to[SIDE], float a, float b, float c, float d)
{
    to[0] = a - c, to[1] = b + c, to[2] = c - b, to[3] = b - d;
}

static void widen(float to[SIDE], float a, float b, float c)
{
    to[0] = a, to[1] = 0.5f * ((a + c) + b), to[2] = 0.5f * ((a + c) - b), to[3] = c;
}

static float out_of(int which, float a, float b, float c, float d)
{
    return which == 0 ? (a + b) + c : (b - c) - d;
}

static void add_channel(const view *v, int c, int top, int left, float m[SIDE][SIDE])
{
    float x[SIDE][SIDE], w[TAPS][SIDE];
    for (int j = 0; j < SIDE; j++)
        into(x[j], pixel_of(v, c, top, left + j), pixel_of(v, c, top + 1, left + j),
             pixel_of(v, c, top + 2, left + j), pixel_of(v, c, top + 3, left + j));
    for (int s = 0; s < TAPS; s++)
        widen(w[s], tap_of(v, c, 0, s), tap_of(v, c, 1, s), tap_of(v, c, 2, s));
    for (int i = 0; i < SIDE; i++) {
        float points[SIDE], factors[SIDE];
        into(points, x[0][i], x[1][i], x[2][i], x[3][i]);
        widen(factors, w[0][i], w[1][i], w[2][i]);
        for (int j = 0; j < SIDE; j++) m[i][j] = fmaf(points[j], factors[j], m[i][j]);
    }
}

static float rounded(const view *v, int channels, int top, int left, int row, int col)
{
    float m[SIDE][SIDE] = {{0}}, columns[SIDE];
    for (int c = 0; c < channels; c++) add_channel(v, c, top, left, m);
    for (int j = 0; j < SIDE; j++) columns[j] = out_of(row, m[0][j], m[1][j], m[2][j], m[3][j]);
    return out_of(col, columns[0], columns[1], columns[2], columns[3]);
}

/* ---- what bounds the error ---- */

static void into_magnitude(double to[SIDE], double a, double b, double c, double d)
{
    to[0] = a + c, to[1] = to[2] = b + c, to[3] = b + d;
}

static void widen_magnitude(double to[SIDE], double a, double b, double c)
{
    to[0] = a, to[1] = to[2] = 0.5 * (a + b + c), to[3] = c;
}

static void out_of_back_magnitude(double to[SIDE], double a, double b)
{
    to[0] = a, to[1] = to[2] = a + b, to[3] = b;
}

static double widen_back_magnitude(int which, double a, double b, double c, double d)
{
    return 0.5 * (b + c) + (which == 0 ? a : which == 2 ? d : 0);
}

/* Of the 3x3 points that pixel (row, col) of a tile is made of. */
static double channel_magnitude(const view *v, int c, int top, int left, int row, int col)
{
    double x[SIDE][SIDE], w[TAPS][SIDE], sum = 0;
    for (int j = 0; j < SIDE; j++) {
        double a[SIDE];
        for (int i = 0; i < SIDE; i++) a[i] = fabs((double)pixel_of(v, c, top + i, left + j));
        into_magnitude(x[j], a[0], a[1], a[2], a[3]);
    }
    for (int s = 0; s < TAPS; s++) {
        double a[TAPS];
        for (int r = 0; r < TAPS; r++) a[r] = fabs((double)tap_of(v, c, r, s));
        widen_magnitude(w[s], a[0], a[1], a[2]);
    }
    for (int i = row; i < row + TAPS; i++) {
        double points[SIDE], factors[SIDE];
        into_magnitude(points, x[0][i], x[1][i], x[2][i], x[3][i]);
        widen_magnitude(factors, w[0][i], w[1][i], w[2][i]);
        for (int j = col; j < col + TAPS; j++) sum += points[j] * factors[j];
    }
    return sum;
}

static double magnitude(const view *v, int channels, int top, int left, int row, int col)
{
    double sum = 0;
    for (int c = 0; c < channels; c++) sum += channel_magnitude(v, c, top, left, row, col);
    return sum;
}

static tutti_ref_sum sum_of(const view *v, int channels, int pad_top, int pad_left, int h, int w,
                            double exact)
{
    const int top = h / 2 * 2 - pad_top, left = w / 2 * 2 - pad_left;
    return (tutti_ref_sum){.chain = rounded(v, channels, top, left, h % 2, w % 2),
                           .exact = exact,
                           .magnitude = magnitude(v, channels, top, left, h % 2, w % 2),
                           .terms = channels + ROUNDINGS};
}

/* ---- the gradient of the weights ---- */

/* A tile's pixel of dy. */
static float slope_of(const tutti_conv_shape *shape, const float *dy, int n, int k, int h, int w)
{
    if (h >= tutti_conv_out_h(shape) || w >= tutti_conv_out_w(shape)) return 0.0f;
    return dy[tutti_ref_y_at(shape, n, k, h, w)];
}

static void out_of_back(float to[SIDE], float a, float b)
{
    to[0] = a, to[1] = a + b, to[2] = a - b, to[3] = 0.0f - b;
}

static float widen_back(int which, float a, float b, float c, float d)
{
    const float inner = 0.5f * (b + c);
    return which == 0 ? a + inner : which == 1 ? 0.5f * (b - c) : inner + d;
}

/* The chains m go on for the tile whose first output is (h, w), and so do their magnitudes. */
static void add_tile(const view *v, const float *dy, int c, int h, int w, float m[SIDE][SIDE],
                     double magnitude[SIDE][SIDE])
{
    const int top = h - v->shape->pad_top, left = w - v->shape->pad_left;
    float x[SIDE][SIDE], d[2][SIDE];
    double x_size[SIDE][SIDE], d_size[2][SIDE];
    for (int j = 0; j < SIDE; j++) {
        float p[SIDE];
        for (int i = 0; i < SIDE; i++) p[i] = pixel_of(v, c, top + i, left + j);
        into(x[j], p[0], p[1], p[2], p[3]);
        into_magnitude(x_size[j], fabsf(p[0]), fabsf(p[1]), fabsf(p[2]), fabsf(p[3]));
    }
    for (int j = 0; j < 2; j++) {
        const float a = slope_of(v->shape, dy, v->n, v->out, h, w + j);
        const float b = slope_of(v->shape, dy, v->n, v->out, h + 1, w + j);
        out_of_back(d[j], a, b);
        out_of_back_magnitude(d_size[j], fabsf(a), fabsf(b));
    }
    for (int i = 0; i < SIDE; i++) {
        float points[SIDE], slopes[SIDE];
        double sizes[SIDE], slope_sizes[SIDE];
        into(points, x[0][i], x[1][i], x[2][i], x[3][i]);
        into_magnitude(sizes, x_size[0][i], x_size[1][i], x_size[2][i], x_size[3][i]);
        out_of_back(slopes, d[0][i], d[1][i]);
        out_of_back_magnitude(slope_sizes, d_size[0][i], d_size[1][i]);
        for (int j = 0; j < SIDE; j++) {
            m[i][j] = fmaf(points[j], slopes[j], m[i][j]);
            magnitude[i][j] += sizes[j] * slope_sizes[j];
        }
    }
}

tutti_ref_sum tutti_ref_winograd_dw(const tutti_conv_shape *shape, const float *x, const float *dy,
                                    int begin, int end, int k, int c, int r, int s)
{
    float m[SIDE][SIDE] = {{0}}, columns[SIDE];
    double size[SIDE][SIDE] = {{0}}, sizes[SIDE];
    int tiles = 0;
    for (int n = begin; n < end; n++) {
        const view v = {shape, x, NULL, false, n, k};
        for (int h = 0; h < tutti_conv_out_h(shape); h += 2)
            for (int w = 0; w < tutti_conv_out_w(shape); w += 2, tiles++)
                add_tile(&v, dy, c, h, w, m, size);
    }
    for (int j = 0; j < SIDE; j++) {
        columns[j] = widen_back(r, m[0][j], m[1][j], m[2][j], m[3][j]);
        sizes[j] = widen_back_magnitude(r, size[0][j], size[1][j], size[2][j], size[3][j]);
    }
    return (tutti_ref_sum){.chain = widen_back(s, columns[0], columns[1], columns[2], columns[3]),
                           .exact = tutti_ref_conv_dw(shape, x, dy, begin, end, k, c, r, s).exact,
                           .magnitude =
                               widen_back_magnitude(s, sizes[0], sizes[1], sizes[2], sizes[3]),
                           .terms = tiles + ROUNDINGS};
}

/* ---- y and dx ---- */

tutti_ref_sum tutti_ref_winograd_y(const tutti_conv_shape *shape, const float *x,
                                   const float *weights, int n, int k, int h, int w)
{
    const view v = {shape, x, weights, false, n, k};
    return sum_of(&v, shape->c, shape->pad_top, shape->pad_left, h, w,
                  tutti_ref_conv_y(shape, x, weights, n, k, h, w).exact);
}

tutti_ref_sum tutti_ref_winograd_dx(const tutti_conv_shape *shape, const float *dy,
                                    const float *weights, int n, int c, int h, int w)
{
    const view v = {shape, dy, weights, true, n, c};
    return sum_of(&v, shape->k, 2 - shape->pad_top, 2 - shape->pad_left, h, w,
                  tutti_ref_conv_dx(shape, dy, weights, n, c, h, w).exact);
}
