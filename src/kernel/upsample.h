/* Images of another size: the nearest pixel, or a mean of the four around (bilinear), as torch's
 * interpolate does. Threads split (sample, channel block) planes.
 *
 * Of an output the two rows are joined last: y = fma(share, below, (1 - share) * above), each of
 * these likewise of two columns. The gradient by an input pixel is a chain of fused multiply-adds
 * over the outputs that read it: over the columns of each row, then over rows. */
#ifndef TUTTI_KERNEL_UPSAMPLE_H
#define TUTTI_KERNEL_UPSAMPLE_H

#include <stdbool.h>

#include "base/status.h"
#include "kernel/exec.h"

typedef struct tutti_upsample_shape {
    int c, h, w, out_h, out_w;
    bool bilinear;      /* else the nearest pixel: that at (i * h) / out_h, rounded down */
    bool align_corners; /* bilinear: the first and last pixels fall on each other, not the edges */
} tutti_upsample_shape;

/* One direction. */
typedef struct tutti_upsample_way {
    int in, out;
    int *low, *high;           /* [out] which inputs */
    float *share, *rest;       /* [out] of 'high', of 'low': 1 - share */
    int *first, *end, *weight; /* [in] which outputs read it; where their weights begin */
    float *weights;
} tutti_upsample_way;

typedef struct tutti_upsample {
    tutti_upsample_shape shape;
    tutti_upsample_way rows, columns;
} tutti_upsample;

tutti_status tutti_upsample_create(tutti_upsample **out,
                                   const tutti_upsample_shape *shape) TUTTI_MUST_CHECK;
void tutti_upsample_destroy(tutti_upsample **upsample);

void tutti_upsample_forward(tutti_exec exec, const tutti_upsample *upsample, int n, const float *x,
                            float *y);
/* dx is zero where mask <= 0 (may be NULL). */
void tutti_upsample_backward(tutti_exec exec, const tutti_upsample *upsample, int n,
                             const float *dy, const float *mask, float *dx);

#endif
