#include "kernel/ref_conv.h"

#include <math.h>

#include "base/memory.h"

enum { B = TUTTI_BLOCK };

static size_t blocked_at(int channels, int height, int width, int n, int c, int h, int w)
{
    const size_t blocks = (size_t)tutti_ceil_div(channels, B);
    const size_t plane = (size_t)(c / B) + blocks * (size_t)n;
    return ((plane * (size_t)height + (size_t)h) * (size_t)width + (size_t)w) * B + (size_t)(c % B);
}

size_t tutti_ref_x_at(const tutti_conv_shape *shape, int n, int c, int h, int w)
{
    if (!shape->compact) return blocked_at(shape->c, shape->h, shape->w, n, c, h, w);
    const size_t pixel = ((size_t)n * (size_t)shape->h + (size_t)h) * (size_t)shape->w + (size_t)w;
    return pixel * (size_t)shape->c + (size_t)c;
}

size_t tutti_ref_y_at(const tutti_conv_shape *shape, int n, int k, int h, int w)
{
    return blocked_at(shape->k, tutti_conv_out_h(shape), tutti_conv_out_w(shape), n, k, h, w);
}

size_t tutti_ref_w_at(const tutti_conv_shape *shape, int k, int c, int r, int s)
{
    const size_t channels = (size_t)(shape->c / shape->groups);
    const size_t tap = (size_t)r * (size_t)shape->s + (size_t)s;
    const size_t taps = (size_t)shape->r * (size_t)shape->s;
    if (tutti_conv_has_compact_weights(shape))
        return (((size_t)(k / B) * taps + tap) * channels + (size_t)c) * B + (size_t)(k % B);
    const size_t blocks = (channels + B - 1) / B;
    const size_t tile = ((size_t)(k / B) * blocks + (size_t)(c / B)) * taps + tap;
    return (tile * B + (size_t)(c % B)) * B + (size_t)(k % B);
}

static void add(tutti_ref_sum *sum, float a, float b)
{
    sum->chain = fmaf(a, b, sum->chain);
    sum->exact += (double)a * b;
    sum->magnitude += fabs((double)a * b);
    sum->terms++;
}

int tutti_ref_row(const tutti_conv_shape *shape, int h, int r)
{
    return h * shape->stride_h - shape->pad_top + r * shape->dilation_h;
}

int tutti_ref_column(const tutti_conv_shape *shape, int w, int s)
{
    return w * shape->stride_w - shape->pad_left + s * shape->dilation_w;
}

static bool inside(const tutti_conv_shape *shape, int h, int w)
{
    return h >= 0 && h < shape->h && w >= 0 && w < shape->w;
}

/* Sum over blocks of channels, rows and columns of the kernel, channels of the block. */
tutti_ref_sum tutti_ref_conv_y(const tutti_conv_shape *shape, const float *x, const float *weights,
                               int n, int k, int h, int w)
{
    const int channels = shape->c / shape->groups;
    const int first = k / (shape->k / shape->groups) * channels;
    tutti_ref_sum sum = {0};
    for (int block = 0; block < channels; block += B)
        for (int r = 0; r < shape->r; r++)
            for (int s = 0; s < shape->s; s++)
                for (int c = block; c < channels && c < block + B; c++) {
                    const int ih = tutti_ref_row(shape, h, r), iw = tutti_ref_column(shape, w, s);
                    if (inside(shape, ih, iw))
                        add(&sum, x[tutti_ref_x_at(shape, n, first + c, ih, iw)],
                            weights[tutti_ref_w_at(shape, k, c, r, s)]);
                }
    return sum;
}

/* The outputs that read x's row (or column) 'in' through tap 'tap': one or none. */
static bool read_by(int *out, int in, int pad, int tap, int dilation, int stride, int outputs)
{
    const int scaled = in + pad - tap * dilation;
    *out = scaled / stride;
    return scaled >= 0 && scaled % stride == 0 && *out < outputs;
}

/* Sum over blocks of features, rows and columns of the kernel from the last to the first (so that
 * dy is read forwards), features of the block. */
tutti_ref_sum tutti_ref_conv_dx(const tutti_conv_shape *shape, const float *dy,
                                const float *weights, int n, int c, int h, int w)
{
    const int features = shape->k / shape->groups, channels = shape->c / shape->groups;
    const int first = c / channels * features;
    const int out_h = tutti_conv_out_h(shape), out_w = tutti_conv_out_w(shape);
    tutti_ref_sum sum = {0};
    int oh, ow;
    for (int block = 0; block < features; block += B)
        for (int r = shape->r - 1; r >= 0; r--)
            for (int s = shape->s - 1; s >= 0; s--)
                for (int k = block; k < features && k < block + B; k++)
                    if (read_by(&oh, h, shape->pad_top, r, shape->dilation_h, shape->stride_h,
                                out_h) &&
                        read_by(&ow, w, shape->pad_left, s, shape->dilation_w, shape->stride_w,
                                out_w))
                        add(&sum, dy[tutti_ref_y_at(shape, n, first + k, oh, ow)],
                            weights[tutti_ref_w_at(shape, first + k, c % channels, r, s)]);
    return sum;
}

tutti_ref_sum tutti_ref_conv_dw(const tutti_conv_shape *shape, const float *x, const float *dy,
                                int begin, int end, int k, int c, int r, int s)
{
    const int first = k / (shape->k / shape->groups) * (shape->c / shape->groups);
    tutti_ref_sum sum = {0};
    for (int n = begin; n < end; n++)
        for (int h = 0; h < tutti_conv_out_h(shape); h++)
            for (int w = 0; w < tutti_conv_out_w(shape); w++) {
                const int ih = tutti_ref_row(shape, h, r), iw = tutti_ref_column(shape, w, s);
                if (inside(shape, ih, iw))
                    add(&sum, x[tutti_ref_x_at(shape, n, first + c, ih, iw)],
                        dy[tutti_ref_y_at(shape, n, k, h, w)]);
            }
    return sum;
}

tutti_ref_sum tutti_ref_conv_db(const tutti_conv_shape *shape, const float *dy, int begin, int end,
                                int k)
{
    tutti_ref_sum sum = {0};
    for (int n = begin; n < end; n++)
        for (int h = 0; h < tutti_conv_out_h(shape); h++)
            for (int w = 0; w < tutti_conv_out_w(shape); w++)
                add(&sum, dy[tutti_ref_y_at(shape, n, k, h, w)], 1.0f);
    return sum;
}
