/* Pooling on blocked tensors [n][c/16][h][w][16]. Threads split (sample, channel block) planes. */
#ifndef TUTTI_KERNEL_POOL_H
#define TUTTI_KERNEL_POOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernel/exec.h"

/* Every pad is smaller than the kernel in its direction, and r*s <= TUTTI_POOL_MAX_TAPS: the
 * caller has checked. Global pooling is r = h, s = w, no padding. */
typedef struct tutti_pool_shape {
    int c, h, w;            /* input: channels, height, width */
    int r, s;               /* kernel height and width */
    int stride_h, stride_w; /* >= 1 */
    int pad_top, pad_bottom, pad_left, pad_right;
    bool ceil_mode;     /* round the output's size up (Caffe's rule, torch's option) */
    bool count_padding; /* average: divide by the padding's elements too (Caffe, torch) */
} tutti_pool_shape;

enum { TUTTI_POOL_MAX_TAPS = 65536 };

/* Rows and columns of the output; <= 0 when the kernel does not fit. With ceil_mode the last
 * window still starts inside the image or its leading padding, as in Caffe and torch. */
int tutti_pool_out_h(const tutti_pool_shape *shape);
int tutti_pool_out_w(const tutti_pool_shape *shape);

/* Max pooling. The first maximum in window order (rows, then columns) wins; a NaN wins over
 * numbers, a later one over an earlier one, as in torch. Padding never wins. 'tap' keeps for each
 * output element which element of the window won, r_index * s + s_index, in 16 bits: an array of
 * tutti_max_pool_tap_bytes bytes in y's layout, or NULL when there will be no backward pass. */
size_t tutti_max_pool_tap_bytes(const tutti_pool_shape *shape, int n);
void tutti_max_pool_forward(tutti_exec exec, const tutti_pool_shape *shape, int n, const float *x,
                            float *y, uint16_t *tap);

/* dx = dy at the winners, added in the order of the outputs where windows overlap, else zero.
 * y_mask is y, the pass's own output, where the layer below ends in a ReLU, else NULL: where y <=
 * 0 nothing passes. As y is one of the x, that is the mask of the ReLU for less reading. */
void tutti_max_pool_backward(tutti_exec exec, const tutti_pool_shape *shape, int n, const float *dy,
                             const uint16_t *tap, const float *y_mask, float *dx);

/* Average pooling: a chain of additions in window order, divided by the number of elements.
 * Backward adds dy / number in the order of the outputs; zero where mask <= 0 (mask is x where the
 * layer below ends in a ReLU, else NULL). */
void tutti_average_pool_forward(tutti_exec exec, const tutti_pool_shape *shape, int n,
                                const float *x, float *y);
void tutti_average_pool_backward(tutti_exec exec, const tutti_pool_shape *shape, int n,
                                 const float *dy, const float *mask, float *dx);

/* Average pooling to a given size, which may be larger: output i of out_h takes the rows from
 * i * h / out_h, rounded down, to (i + 1) * h / out_h, rounded up, and likewise columns, as torch
 * does. Sums as above. */
typedef struct tutti_adaptive_shape {
    int c, h, w, out_h, out_w;
} tutti_adaptive_shape;

void tutti_adaptive_pool_forward(tutti_exec exec, const tutti_adaptive_shape *shape, int n,
                                 const float *x, float *y);
void tutti_adaptive_pool_backward(tutti_exec exec, const tutti_adaptive_shape *shape, int n,
                                  const float *dy, const float *mask, float *dx);

#endif
