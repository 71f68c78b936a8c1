/* Convolution, forward and backward, on blocked tensors.
 *
 * Layout. Activations are [n][c/16][h][w][16] with the last block filled up with zero channels;
 * an input of fewer than 16 channels that comes from the data (an image) may instead be compact,
 * [n][h][w][c]. Weights are [k/16][c/16][r][s][16 c][16 k], for compact inputs
 * [k/16][r][s][c][16 k]; filled-up rows and columns are zero and stay zero. Narrow groups, of 1, 2,
 * 4 or 8 channels and as many features, have compact weights, too: c counts from the group's first
 * channel, which the feature knows. Groups whose channels and features are no multiples of 16
 * otherwise are copied to where they are (conv_regroup.c).
 *
 * The contract of bits. One output element is one chain of fused multiply-adds that starts at
 * +0 and whose order is fixed by the shape alone (stated at the head of conv.c), the same for
 * every instruction set, block size and number of threads. A weight gradient is one chain per grain
 * (samples, rows, columns in index order) and the tree of base/tree.h over the grains. With 3x3
 * kernels at stride 1 a chain becomes sixteen such chains and a few additions, just as fixed
 * (winograd.c, winograd_gradient.c). Padding is skipped, not multiplied; only the few columns
 * beside a compact image, and what Winograd's tiles reach beyond the edges, are multiplied, as
 * zeros. Bias is added once at the end. With operands rounded to bf16 a sum is one of blocks, and
 * more of the padding is multiplied (conv_bf16.c). */
#ifndef TUTTI_KERNEL_CONV_H
#define TUTTI_KERNEL_CONV_H

#include <stdbool.h>
#include <stddef.h>

#include "kernel/caches.h"
#include "kernel/exec.h"
#include "kernel/precision.h"

/* How a convolution is computed. Its bits are the algorithm's and the shape's, no machine's. */
typedef enum tutti_conv_algorithm {
    TUTTI_CONV_AUTO, /* Winograd's where it pays: by the shape alone */
    TUTTI_CONV_DIRECT,
    TUTTI_CONV_WINOGRAD_2X2,
    TUTTI_CONV_WINOGRAD_4X4,
    TUTTI_CONV_USUAL = TUTTI_CONV_WINOGRAD_4X4 /* what AUTO takes where Winograd's pays */
} tutti_conv_algorithm;

/* Their words, in this order, then NULL. */
extern const char *const tutti_conv_algorithm_words[];

typedef struct tutti_conv_shape {
    int c, h, w;                /* input: channels, height, width */
    int k, r, s;                /* output channels, kernel height, kernel width */
    int stride_h, stride_w;     /* >= 1 */
    int dilation_h, dilation_w; /* >= 1 */
    int pad_top, pad_bottom, pad_left, pad_right;
    int groups;
    bool compact;                   /* x is [n][h][w][c], c < 16; there is no backward-data then */
    tutti_conv_algorithm algorithm; /* asked for; one that may (tutti_conv_may) */
    tutti_precision precision;      /* asked for; see tutti_conv_rounds */
} tutti_conv_shape;

/* Whether an algorithm can compute the shape: Winograd's need 3x3 kernels at stride 1. */
bool tutti_conv_may(const tutti_conv_shape *shape, tutti_conv_algorithm algorithm);

/* The one that is taken, never AUTO. */
tutti_conv_algorithm tutti_conv_takes(const tutti_conv_shape *shape);

/* Whether operands are rounded to bf16: where that was asked for, by direct sums over whole blocks
 * of channels. Winograd's algorithms stay in fp32: F(4x4) makes fewer than a third of the products,
 * and rounding what its transforms make of numbers would cost more accuracy than rounding them. */
bool tutti_conv_rounds(const tutti_conv_shape *shape);

/* Rows and columns of the output; <= 0 when the kernel does not fit. */
int tutti_conv_out_h(const tutti_conv_shape *shape);
int tutti_conv_out_w(const tutti_conv_shape *shape);

/* The channels of a group if they are so few that groups share a block (1, 2, 4, 8); else 0. */
int tutti_conv_narrow(const tutti_conv_shape *shape);

/* Whether weights are [k/16][r][s][c][16 k]. */
bool tutti_conv_has_compact_weights(const tutti_conv_shape *shape);

/* The part of the direct sum's multiply-adds that is made: Winograd's method needs fewer. */
double tutti_conv_effort(const tutti_conv_shape *shape);

/* Consecutive grains of a minibatch: grain i is samples begin[i] .. begin[i+1]-1. */
typedef struct tutti_grains {
    int count;
    const int *begin;
} tutti_grains;

/* What every pass of a planned layer gets besides its tensors. */
typedef struct tutti_task {
    tutti_team *team; /* NULL: the caller alone; no more threads than planned */
    void *scratch;
    int n;                      /* samples; backward-weights takes them from its grains instead */
    const tutti_grains *grains; /* backward-weights: sample numbers count from the start of x, dy */
    int outputs;                /* fully connected: see fc.h */
} tutti_task;

typedef struct tutti_conv tutti_conv; /* a planned convolution; reading it is free of locks */

/* Plans the loops for at most 'n' samples at a time on 'threads' threads with the kernels of 'row'.
 * The caller has checked the shape. */
tutti_status tutti_conv_create(tutti_conv **out, const tutti_conv_shape *shape,
                               const tutti_kernels *row, const tutti_caches *caches, int n,
                               int threads) TUTTI_MUST_CHECK;
void tutti_conv_destroy(tutti_conv **conv);

/* Floats of the blocked weights (also of their gradient) and of the bias (k rounded up to 16). */
size_t tutti_conv_weight_count(const tutti_conv *conv);
size_t tutti_conv_bias_count(const tutti_conv *conv);

/* Bytes of scratch the three passes need; aligned to a cache line, contents do not matter. One
 * scratch serves all layers, one at a time. */
size_t tutti_conv_scratch(const tutti_conv *conv);

/* y = conv(x, w) + bias, then max(., 0) if relu. bias may be NULL. */
void tutti_conv_forward(const tutti_conv *conv, const tutti_task *task, const float *x,
                        const float *w, const float *bias, bool relu, float *y);

/* dx = gradient by x, zero where mask <= 0 (the ReLU of the layer below, whose output is x itself:
 * mask is of x's layout and may be NULL). */
void tutti_conv_backward_data(const tutti_conv *conv, const tutti_task *task, const float *dy,
                              const float *w, const float *mask, float *dx);

/* dw and db (may be NULL) = gradient by weights and bias, the tree sum over the grains. */
void tutti_conv_backward_weights(const tutti_conv *conv, const tutti_task *task, const float *x,
                                 const float *dy, float *dw, float *db);

/* One line that explains the plan: blocks, register block, predicted bytes per FLOP. */
void tutti_conv_explain(const tutti_conv *conv, char *text, size_t bytes);

#endif
