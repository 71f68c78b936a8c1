/* Normalisation over the channels of each pixel (layer normalisation).
 *
 *   y = (x - mean) * inverse * weight + bias,  inverse = 1 / sqrt(variance + eps)
 *
 * Sums over channels have one order: channel c belongs to chain c % 16, which goes through the
 * blocks; chains are added by halves, 16 to 8, 4, 2, 1. The channels of a pixel are passed twice
 * while they are in the caches, the second time around their mean, whose rounding is made up for: a
 * mean far from zero costs no digits.
 *
 * For the backward pass each sample has rows of as many floats as it has pixels, rounded up to
 * whole tiles: the mean as two floats, and the inverse. */
#ifndef TUTTI_KERNEL_PIXEL_NORM_H
#define TUTTI_KERNEL_PIXEL_NORM_H

#include <stdbool.h>

#include "kernel/conv.h"
#include "kernel/exec.h"

enum { TUTTI_PIXEL_TILE = 16 }; /* pixels that are computed together */
enum { TUTTI_PIXEL_HIGH, TUTTI_PIXEL_LOW, TUTTI_PIXEL_INVERSE, TUTTI_PIXEL_ROWS };

/* Floats of one such row. */
static inline size_t tutti_pixel_row(tutti_extent extent)
{
    return ((size_t)extent.pixels + TUTTI_PIXEL_TILE - 1) / TUTTI_PIXEL_TILE * TUTTI_PIXEL_TILE;
}

typedef struct tutti_pixel_norm {
    double eps;
    const float *weight, *bias; /* [c rounded up to 16] */
} tutti_pixel_norm;

/* 'rows' may be NULL: nothing will go back. */
void tutti_pixel_norm_forward(tutti_exec exec, tutti_extent extent, const tutti_pixel_norm *norm,
                              const float *x, float *rows, float *y);

/* dx is zero where x <= 0 if 'gated'; it may be dy. */
void tutti_pixel_norm_backward(tutti_exec exec, tutti_extent extent, const tutti_pixel_norm *norm,
                               const float *rows, const float *x, const float *dy, bool gated,
                               float *dx);

/* Gradients of weight and bias over the samples of the grains. Of one sample the sums over pixels
 * are made in the order of norm.h, and added as tutti_norm_gradients does. 'leaves' is room for
 * tutti_norm_pair(c) doubles a sample. */
void tutti_pixel_norm_gradients(tutti_exec exec, tutti_extent extent, const tutti_grains *grains,
                                const float *rows, const float *x, const float *dy, double *leaves,
                                float *dw, float *db);

#endif
