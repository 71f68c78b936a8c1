/* Convolution by definition, one element at a time: what every kernel is tested against, and the
 * path of shapes that have no other. Written to be read; never optimise it. */
#ifndef TUTTI_KERNEL_REF_CONV_H
#define TUTTI_KERNEL_REF_CONV_H

#include "kernel/conv.h"

/* The sum of products of one element: as the kernels round it (one chain of fused multiply-adds in
 * the order of the contract), and in double with what is needed to bound the chain's error, which
 * is at most (terms + 1) * FLT_EPSILON / 2 * magnitude. */
typedef struct tutti_ref_sum {
    float chain;
    double exact, magnitude; /* sum of products, sum of their absolute values */
    long terms;
} tutti_ref_sum;

/* Where an element is, in floats; k, c count from 0 over the whole layer, c of a weight within its
 * group. Also valid for the channels that fill up the last block. */
size_t tutti_ref_x_at(const tutti_conv_shape *shape, int n, int c, int h, int w);
size_t tutti_ref_y_at(const tutti_conv_shape *shape, int n, int k, int h, int w);
size_t tutti_ref_w_at(const tutti_conv_shape *shape, int k, int c, int r, int s);

/* The row of x that output row h reads through row r of the kernel (may be outside), and the same
 * of columns. */
int tutti_ref_row(const tutti_conv_shape *shape, int h, int r);
int tutti_ref_column(const tutti_conv_shape *shape, int w, int s);

/* y[n][k][h][w] without bias and ReLU; dx[n][c][h][w] without mask; dw[k][c][r][s] over samples
 * begin .. end-1; and db[k]. */
tutti_ref_sum tutti_ref_conv_y(const tutti_conv_shape *shape, const float *x, const float *weights,
                               int n, int k, int h, int w);
tutti_ref_sum tutti_ref_conv_dx(const tutti_conv_shape *shape, const float *dy,
                                const float *weights, int n, int c, int h, int w);
tutti_ref_sum tutti_ref_conv_dw(const tutti_conv_shape *shape, const float *x, const float *dy,
                                int begin, int end, int k, int c, int r, int s);
tutti_ref_sum tutti_ref_conv_db(const tutti_conv_shape *shape, const float *dy, int begin, int end,
                                int k);

/* As winograd.c and winograd4.c compute it: 'chain' is what they round to, 'magnitude' and 'terms'
 * bound the error in the same way. */
tutti_ref_sum tutti_ref_winograd_y(const tutti_conv_shape *shape, const float *x,
                                   const float *weights, int n, int k, int h, int w);
tutti_ref_sum tutti_ref_winograd_dw(const tutti_conv_shape *shape, const float *x, const float *dy,
                                    int begin, int end, int k, int c, int r, int s);
tutti_ref_sum tutti_ref_winograd_dx(const tutti_conv_shape *shape, const float *dy,
                                    const float *weights, int n, int c, int h, int w);
tutti_ref_sum tutti_ref_winograd4_y(const tutti_conv_shape *shape, const float *x,
                                    const float *weights, int n, int k, int h, int w);
tutti_ref_sum tutti_ref_winograd4_dw(const tutti_conv_shape *shape, const float *x, const float *dy,
                                     int begin, int end, int k, int c, int r, int s);
tutti_ref_sum tutti_ref_winograd4_dx(const tutti_conv_shape *shape, const float *dy,
                                     const float *weights, int n, int c, int h, int w);

/* Of numbers rounded to bf16 (conv_bf16.c): 'chain' is what their products and sums round to, the
 * rest is that of the rounded numbers. Bias is added by tutti_ref_bf16_add. */
tutti_ref_sum tutti_ref_conv_bf16_y(const tutti_conv_shape *shape, const float *x,
                                    const float *weights, int n, int k, int h, int w);
tutti_ref_sum tutti_ref_conv_bf16_dx(const tutti_conv_shape *shape, const float *dy,
                                     const float *weights, int n, int c, int h, int w);
tutti_ref_sum tutti_ref_conv_bf16_dw(const tutti_conv_shape *shape, const float *x, const float *dy,
                                     int begin, int end, int k, int c, int r, int s);

#endif
