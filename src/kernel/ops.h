/* Everything in a CNN except matrix products, pooling (pool.h) and changes of layout (layout.h):
 * activations, dropout, local response normalisation, softmax, optimizers, vectors.
 *
 * Activations are [n][c/16][pixels][16] (see conv.h); those of a fully connected layer have one
 * pixel. Channels that fill up the last block are zero, and every function here keeps them so. A
 * pass works in place where its comment says so; otherwise outputs overlap nothing.
 *
 * The contract of bits. Every element is a fixed sequence of correctly rounded operations
 * (+ - * / sqrt fma; exponential and logarithm are our own, made of these), so all instruction sets
 * and numbers of threads agree. The order of each sum is stated at its function.
 *
 * 'mask' of a backward pass is the pass's own forward input x where the layer below ends in a
 * ReLU, else NULL: the gradient is zero where mask <= 0. */
#ifndef TUTTI_KERNEL_OPS_H
#define TUTTI_KERNEL_OPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/random.h"
#include "base/share.h"
#include "base/tree.h"
#include "kernel/exec.h"

/* ---- vectors of any length; y may be an input ---- */

/* y = a + b, then max(., 0) if relu. */
void tutti_add(tutti_exec exec, size_t count, const float *a, const float *b, bool relu, float *y);
/* y = factor * x */
void tutti_scale(tutti_exec exec, size_t count, float factor, const float *x, float *y);
/* y += factor * x, fused */
void tutti_axpy(tutti_exec exec, size_t count, float factor, const float *x, float *y);

/* ---- sums in the one order ---- */

/* Adds values given per subtree of a tree of 'leaves' leaves, in index order of the subtrees:
 * the loss per grain, the roots of tutti_square_roots from several ranks. */
typedef struct tutti_sum {
    tutti_tree_stack stack;
    double value[TUTTI_TREE_MAX_ROOTS];
} tutti_sum;

void tutti_sum_init(tutti_sum *sum, int leaves);
void tutti_sum_add(tutti_sum *sum, tutti_subtree root, double value);
double tutti_sum_value(const tutti_sum *sum); /* when all leaves are there; 0 if there are none */

/* Chain in double over loss[0] .. loss[samples-1]: the leaf of one grain. */
double tutti_grain_loss(int samples, const float *loss);

/* Sum of squares. The array of 'count' floats is cut into leaves of 16 (zeros fill up the last);
 * a leaf is added in double by halves: 8 lanes x[l]^2 + x[l+8]^2, then 4, 2, 1; leaves by the tree
 * of base/tree.h. However the array is cut at multiples of 16, joining the parts' roots by
 * tutti_sum gives the same bits. count < 2^35. */
double tutti_square_sum(tutti_exec exec, size_t count, const float *x);

/* A part of such an array (its begin a multiple of 16, its end too or == count); x points at the
 * part's first element. Stores the roots of the part and their sums, returns their number. */
int tutti_square_roots(tutti_exec exec, size_t count, tutti_range part, const float *x,
                       tutti_subtree roots[TUTTI_TREE_MAX_ROOTS],
                       double sums[TUTTI_TREE_MAX_ROOTS]);
/* Leaves of that tree, for tutti_sum_init. */
static inline int tutti_square_leaves(size_t count)
{
    return (int)((count + 15) / 16);
}

/* ---- activations; y may be x, dx may be dy ---- */

/* y = max(x, 0); NaN stays. */
void tutti_relu(tutti_exec exec, size_t count, const float *x, float *y);
/* dx = dy, zero where y <= 0; y may be the input or the output of the ReLU. */
void tutti_relu_backward(tutti_exec exec, size_t count, const float *dy, const float *y, float *dx);

void tutti_sigmoid(tutti_exec exec, tutti_extent extent, const float *x, float *y);
void tutti_tanh(tutti_exec exec, size_t count, const float *x, float *y);
/* From the outputs y: dx = dy * y * (1 - y), dx = dy * (1 - y * y). */
void tutti_sigmoid_backward(tutti_exec exec, size_t count, const float *dy, const float *y,
                            const float *mask, float *dx);
void tutti_tanh_backward(tutti_exec exec, size_t count, const float *dy, const float *y,
                         const float *mask, float *dx);

/* ---- dropout (inverted: what stays is multiplied by 1/(1-rate)); y may be x, dx dy ---- */

/* Nothing is stored: backward draws the same numbers again. A number has 16 bits, and the rate is
 * taken as the nearest multiple of 2^-16, also in the factor, so that the mean stays what it was.
 * Element e of a sample, counted in the blocked layout over all channels of the layer, is dropped
 * when its number is below rate * 2^16: the upper half of word 64*(e/128) + 4*(e%16) + e/16%4 of
 * the sample's sequence when e/64 is even, else the lower half. So sixteen Philox blocks fill eight
 * vectors without a transposition. */
typedef struct tutti_dropout {
    float rate;           /* 0 <= rate < 1 */
    tutti_random_key key; /* key.sample: place of the first sample in the global minibatch */
    int first_block;      /* x holds channels from 16*first_block of the layer on; usually 0 */
} tutti_dropout;

/* How many of the 65536 numbers drop an element. */
static inline uint32_t tutti_dropout_numbers(float rate)
{
    const uint32_t nearest = (uint32_t)((double)rate * 65536.0 + 0.5);
    return nearest < 65535 ? nearest : 65535;
}

static inline float tutti_dropout_factor(float rate)
{
    return 65536.0f / (float)(65536 - tutti_dropout_numbers(rate));
}

void tutti_dropout_forward(tutti_exec exec, const tutti_dropout *dropout, tutti_extent extent,
                           const float *x, float *y);
void tutti_dropout_backward(tutti_exec exec, const tutti_dropout *dropout, tutti_extent extent,
                            const float *dy, const float *mask, float *dx);

/* ---- local response normalisation across channels ---- */

/* y = x * scale^-beta, scale = k + alpha/size * (sum of x^2 over channels c - size/2 ..
 * c + (size-1)/2), as Caffe and torch define it. The squares are added in channel order. Backward
 * computes the scale again; nothing is stored. */
typedef struct tutti_lrn {
    int size;             /* 1 .. TUTTI_LRN_MAX_SIZE */
    float alpha, beta, k; /* k > 0 */
} tutti_lrn;

enum { TUTTI_LRN_MAX_SIZE = 33 };

void tutti_lrn_forward(tutti_exec exec, const tutti_lrn *lrn, tutti_extent extent, const float *x,
                       float *y);
void tutti_lrn_backward(tutti_exec exec, const tutti_lrn *lrn, tutti_extent extent, const float *x,
                        const float *dy, const float *mask, float *dx);

/* ---- softmax with cross-entropy; extent.c are the classes, of one pixel ---- */

/* p = exp(x - max) times 1/sum; the sum runs in 16 chains (class modulo 16) joined by halves.
 * Classes that fill up are ignored and get p = 0. With labels (else NULL) loss[i] = log(sum) -
 * (x[label] - max) of sample i. p may be x. Labels are in 0 .. classes-1: the reader of the data
 * checks. */
void tutti_softmax(tutti_exec exec, tutti_extent extent, const float *x, const int32_t *labels,
                   float *p, float *loss);
/* dx = scale * (p - onehot(label)); scale is 1/B of the global minibatch B. dx may be p. */
void tutti_softmax_backward(tutti_exec exec, tutti_extent extent, const float *p,
                            const int32_t *labels, float scale, float *dx);
/* rank[i] = classes that score above sample i's label; among equals the lower class is above, NaN
 * is above everything. Top-1 is rank < 1, top-5 rank < 5. x may be scores or probabilities. */
void tutti_label_rank(tutti_team *team, tutti_extent extent, const float *x, const int32_t *labels,
                      int32_t *rank);

/* ---- optimizers ---- */

/* What a step of any of them works on. */
enum { TUTTI_MAX_STATES = 2 };
typedef struct tutti_update {
    size_t count;                   /* parameters */
    const float *a, *b;             /* their gradient is a + b, or a where b is NULL */
    float *w;                       /* the parameters themselves */
    float *state[TUTTI_MAX_STATES]; /* what is kept for the next step; starts as zeros */
} tutti_update;

/* SGD, as PyTorch defines it; every multiply-add fused:
 *
 *   d = gradient_scale * (a + b) + weight_decay * w
 *   v = momentum * v + d
 *   w = w - lr * (nesterov ? d + momentum * v : v)
 *
 * v is state[0]; without momentum it is not touched and may be NULL. */
typedef struct tutti_sgd {
    float lr, momentum, weight_decay;
    float gradient_scale; /* 1, or less to clip the norm */
    bool nesterov;
} tutti_sgd;

void tutti_sgd_step(tutti_exec exec, const tutti_sgd *sgd, const tutti_update *update);

/* Adam and AdamW, as PyTorch defines them:
 *
 *   d = gradient_scale * (a + b) + weight_decay * w
 *   m = m + (1 - beta1) * (d - m)
 *   v = beta2 * v + (1 - beta2) * (d * d)
 *   w = shrink * w - step_size * (m / (root_factor * sqrt(v) + eps))
 *
 * m and v are state[0] and state[1]. Each line's last addition is fused with the product beside it:
 * d = fma(weight_decay, w, gradient_scale * (a + b)), m = fma(1 - beta1, d - m, m),
 * v = fma(1 - beta2, d * d, beta2 * v), w = fma(-step_size, m / fma(root_factor, sqrt(v), eps),
 * shrink * w). Where w, m, v and the gradient are zero they stay zero, since eps is not. */
typedef struct tutti_adam {
    float gradient_scale;  /* 1, or less to clip the norm */
    float weight_decay;    /* Adam's, of the gradient; AdamW: 0 */
    float shrink;          /* AdamW: 1 - lr * weight_decay; Adam: 1 */
    float one_minus_beta1; /* rounded from double, as 1 - 0.9f is not 0.1f */
    float beta2, one_minus_beta2;
    float step_size;   /* lr / (1 - beta1^t) of step t = 1, 2, ... */
    float root_factor; /* 1 / sqrt(1 - beta2^t) */
    float eps;         /* > 0 */
} tutti_adam;

void tutti_adam_step(tutti_exec exec, const tutti_adam *adam, const tutti_update *update);

/* An average over steps: w = fma(add, gradient, keep * w). It has no state. */
typedef struct tutti_average {
    float keep, add;
} tutti_average;

void tutti_average_step(tutti_exec exec, const tutti_average *average, const tutti_update *update);

/* ---- concatenation along channels ---- */

typedef struct tutti_concat_shape {
    int n, pixels;
    int parts;
    const int *c; /* channels of each part; y has all of them */
} tutti_concat_shape;

/* y = x[0] | x[1] | ...; memory speed where all c but the last are multiples of 16. */
void tutti_concat(tutti_exec exec, const tutti_concat_shape *shape, const float *const *x,
                  float *y);
/* dx[i] = its channels of dy, zero where mask[i] <= 0 (mask, or any mask[i], may be NULL). A part
 * whose dx[i] is NULL is skipped. */
void tutti_concat_backward(tutti_exec exec, const tutti_concat_shape *shape, const float *dy,
                           const float *const *mask, float *const *dx);

#endif
