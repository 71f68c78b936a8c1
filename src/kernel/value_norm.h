/* Normalisation over all values of a sample, each of which has its own weight and bias (layer
 * normalisation over channels, height and width).
 *
 * Statistics are those of group_norm.h with one group and neither weight nor bias, whose states and
 * coefficients these passes take; backward the sums are those of dy times the weight. Weights and
 * biases lie as a sample does: [c/16][pixels][16]. */
#ifndef TUTTI_KERNEL_VALUE_NORM_H
#define TUTTI_KERNEL_VALUE_NORM_H

#include "kernel/group_norm.h"

typedef struct tutti_value_norm {
    const float *weight, *bias;
} tutti_value_norm;

/* y = (x - mean) * inverse * weight + bias */
void tutti_value_norm_forward(tutti_exec exec, tutti_extent extent, const tutti_value_norm *norm,
                              const float *rows, const float *x, float *y);

/* tutti_norm_sums of dy * weight. */
void tutti_value_norm_sums(tutti_exec exec, tutti_extent extent, const tutti_value_norm *norm,
                           const double *states, const float *x, const float *dy, double *leaves);

/* dx is zero where x <= 0 if 'gated'; it may be dy. */
void tutti_value_norm_backward(tutti_exec exec, tutti_extent extent, const tutti_value_norm *norm,
                               const float *rows, const float *x, const float *dy, bool gated,
                               float *dx);

/* Gradients of weight and bias: a chain over the samples of a grain; over grains, 2^n of them, the
 * tree. */
void tutti_value_norm_gradients(tutti_exec exec, tutti_extent extent, const tutti_grains *grains,
                                const double *states, const float *x, const float *dy, float *dw,
                                float *db);

#endif
