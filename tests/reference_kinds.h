/* The kinds of layers of reference_net.h: what each computes, forward and backward, and how errors
 * go through it. */
#ifndef TUTTI_TESTS_REFERENCE_KINDS_H
#define TUTTI_TESTS_REFERENCE_KINDS_H

#include "reference_net.h"

enum { MOST_INPUTS = 16 };

/* What a layer puts out, [c][h][w]: values, gradients of the loss by them, and the variances of the
 * errors of both. */
typedef struct value {
    int c, h, w;
    double *v, *v_error, *d, *d_error;
} value;

/* A parameter tensor with its gradient: a sum of 'terms' terms, 'size' that of their absolute
 * values, 'error' the variance that came with the terms. */
typedef struct tensor {
    size_t count;
    double *v, *d, *size, *error;
    double terms;
} tensor;

/* One computation. A fused activation is one of its own. */
typedef struct op {
    const struct kind *kind;
    int layer;                          /* its number in the text */
    int input_count, from[MOST_INPUTS]; /* values; 0 is the sample */
    int features, groups;
    int first, end; /* channels */
    int kernel[2], stride[2], pad[2], dilation[2];
    int pad_end[2]; /* -1: as pad */
    int size[2];    /* of the output; 0: by the window */
    int scale[2], output_pad[2];
    bool bilinear, align_corners;
    bool global, no_bias, ceil, exclude_pad, whole;
    bool frozen; /* its gradients mean nothing */
    double rate, alpha, beta, k;
    double slope;     /* 0: the usual one */
    int weight, bias; /* parameters, -1 for none */
    int group;        /* samples normalised together; 0: all */
    double eps;
    double share; /* of a loss: its weight, and ... */
    int target;
    double delta;
    bool smooth;
    int more; /* the first of three more parameters: what is averaged */
} op;

/* What an op works on. */
typedef struct work {
    const op *o;
    value *in[MOST_INPUTS], *out;
    tensor *weight, *bias; /* NULL for none */
    tensor *more[3];
    const reference_mode *mode;
    const reference_sample *sample;
} work;

typedef void shape_fn(op *o, const value *const *in, value *out);
typedef void pass_fn(const work *w);
typedef void minibatch_fn(const work *w, int count); /* [count] all samples at once */

typedef enum argument { NO_ARGUMENT, FEATURES, RATE, NAMES } argument;

typedef struct kind {
    const char *word;
    argument takes;
    bool has_parameters;
    shape_fn *shape;
    pass_fn *forward;  /* fills v and v_error of out; NULL: samples depend on each other */
    pass_fn *backward; /* adds to d and d_error of the inputs, and to the parameters' */
} kind;

shape_fn shape_conv, shape_fc, shape_pool, shape_same, shape_mul, shape_concat, shape_slice;
pass_fn conv_forward, conv_backward, fc_forward, fc_backward;
shape_fn shape_deconv, shape_upsample;
pass_fn deconv_forward, deconv_backward, upsample_forward, upsample_backward;
pass_fn maxpool_forward, maxpool_backward, avgpool_forward, avgpool_backward;
pass_fn silu_forward, silu_backward, gelu_forward, gelu_backward;
pass_fn hardswish_forward, hardswish_backward, hardsigmoid_forward, hardsigmoid_backward;
pass_fn relu6_forward, relu6_backward, leaky_forward, leaky_backward;
pass_fn relu_forward, relu_backward, sigmoid_forward, sigmoid_backward, tanh_forward, tanh_backward;
pass_fn depth_forward, depth_backward; /* stochastic depth */
pass_fn dropout_forward, dropout_backward, lrn_forward, lrn_backward;
pass_fn mul_forward, mul_backward, layerscale_forward, layerscale_backward;
pass_fn sample_norm_forward, sample_norm_backward; /* layernorm, groupnorm */
pass_fn channels_forward, channels_backward;       /* slice, shuffle */
pass_fn join_forward, join_backward; /* add and concat: of one place, or one after another */

minibatch_fn norm_forward, norm_backward; /* batchnorm, the kind without passes of a sample */

/* A loss of value 'from'; targets are those of made_targets.h. */
typedef struct reference_loss {
    char word[16];
    int from, target;
    double weight, delta;
    bool smooth;
} reference_loss;

/* The loss of outputs x, and the variance of its error; backward: the gradient of weight*loss/batch
 * by them. */
double loss_of(const reference_loss *loss, const value *x, const reference_sample *sample,
               double *variance);
void loss_backward(const reference_loss *loss, value *x, const reference_sample *sample);

static inline size_t value_count(const value *x)
{
    return (size_t)x->c * (size_t)x->h * (size_t)x->w;
}

#define U 0x1p-24 /* half a unit in the last place of 1 */

static inline double square(double x)
{
    return x * x;
}

/* The variance of a sum of n terms whose absolute values add up to 'size'. */
static inline double of_sum(double n, double size)
{
    return n * square(U * size);
}

/* One more contribution to a gradient. */
static inline void add_d(value *x, size_t i, double d, double error)
{
    x->d[i] += d;
    x->d_error[i] += error + square(U * x->d[i]);
}

#endif
