/* Convolution of numbers rounded to bf16, by definition (conv_bf16.c states the order of the sums,
 * bf16_kernels.h what a block of terms is). */
#include <math.h>

#include "kernel/ref_bf16.h"
#include "kernel/ref_conv.h"

enum { TERMS = TUTTI_BF16_TERMS };

/* A sum, and the terms of a block that is not full. */
typedef struct blocks {
    tutti_ref_sum sum;
    int terms;
    tutti_bf16 a[TERMS], b[TERMS];
} blocks;

/* On the way of a product are the roundings of its chain, and three more of its block. */
static void end_block(blocks *s)
{
    if (!s->terms) return;
    s->sum.chain = tutti_ref_bf16_block(s->terms, s->a, 1, s->b, 1, s->sum.chain);
    s->sum.terms += 3;
    s->terms = 0;
}

static void add(blocks *s, float a, float b)
{
    const tutti_bf16 x = tutti_ref_bf16_round(a), y = tutti_ref_bf16_round(b);
    const double product = (double)tutti_ref_bf16_widen(x) * (double)tutti_ref_bf16_widen(y);
    s->a[s->terms] = x;
    s->b[s->terms++] = y;
    s->sum.exact += product;
    s->sum.magnitude += fabs(product);
    s->sum.terms++;
    if (s->terms == TERMS) end_block(s);
}

tutti_ref_sum tutti_ref_conv_bf16_y(const tutti_conv_shape *shape, const float *x,
                                    const float *weights, int n, int k, int h, int w)
{
    const int channels = shape->c / shape->groups;
    const int first = k / (shape->k / shape->groups) * channels;
    blocks sum = {.terms = 0};
    for (int r = 0; r < shape->r; r++) {
        const int ih = tutti_ref_row(shape, h, r);
        if (ih < 0 || ih >= shape->h) continue;
        for (int s = 0; s < shape->s; s++) {
            const int iw = tutti_ref_column(shape, w, s);
            const bool inside = iw >= 0 && iw < shape->w;
            for (int c = 0; c < channels; c++)
                add(&sum, inside ? x[tutti_ref_x_at(shape, n, first + c, ih, iw)] : 0.0f,
                    weights[tutti_ref_w_at(shape, k, c, r, s)]);
            end_block(&sum);
        }
    }
    return sum.sum;
}

/* Whether an input meets a tap in some row (or column) of an output without end; which one? */
static bool meets(int *out, int in, int pad, int tap, int dilation, int stride)
{
    const int scaled = in + pad - tap * dilation;
    *out = (int)floor((double)scaled / stride);
    return *out * stride == scaled;
}

tutti_ref_sum tutti_ref_conv_bf16_dx(const tutti_conv_shape *shape, const float *dy,
                                     const float *weights, int n, int c, int h, int w)
{
    const int features = shape->k / shape->groups, channels = shape->c / shape->groups;
    const int first = c / channels * features;
    blocks sum = {.terms = 0};
    for (int r = shape->r - 1; r >= 0; r--) {
        int oh, ow;
        if (!meets(&oh, h, shape->pad_top, r, shape->dilation_h, shape->stride_h)) continue;
        if (oh < 0 || oh >= tutti_conv_out_h(shape)) continue;
        for (int s = shape->s - 1; s >= 0; s--) {
            if (!meets(&ow, w, shape->pad_left, s, shape->dilation_w, shape->stride_w)) continue;
            const bool inside = ow >= 0 && ow < tutti_conv_out_w(shape);
            for (int k = first; k < first + features; k++)
                add(&sum, inside ? dy[tutti_ref_y_at(shape, n, k, oh, ow)] : 0.0f,
                    weights[tutti_ref_w_at(shape, k, c % channels, r, s)]);
            end_block(&sum);
        }
    }
    return sum.sum;
}

tutti_ref_sum tutti_ref_conv_bf16_dw(const tutti_conv_shape *shape, const float *x, const float *dy,
                                     int begin, int end, int k, int c, int r, int s)
{
    const int first = k / (shape->k / shape->groups) * (shape->c / shape->groups);
    blocks sum = {.terms = 0};
    for (int n = begin; n < end; n++)
        for (int h = 0; h < tutti_conv_out_h(shape); h++)
            for (int w = 0; w < tutti_conv_out_w(shape); w++) {
                const int ih = tutti_ref_row(shape, h, r), iw = tutti_ref_column(shape, w, s);
                const bool inside = ih >= 0 && ih < shape->h && iw >= 0 && iw < shape->w;
                add(&sum, inside ? x[tutti_ref_x_at(shape, n, first + c, ih, iw)] : 0.0f,
                    dy[tutti_ref_y_at(shape, n, k, h, w)]);
            }
    end_block(&sum);
    return sum.sum;
}
