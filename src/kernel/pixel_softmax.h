/* Softmax over the channels of each pixel and its cross-entropy: kernel/targets.h pixel by pixel,
 * where a label may be TUTTI_IGNORED; such a pixel has no loss and no gradient. Labels are
 * [n][pixels]; pixels are not mixed. */
#ifndef TUTTI_KERNEL_PIXEL_SOFTMAX_H
#define TUTTI_KERNEL_PIXEL_SOFTMAX_H

#include "kernel/targets.h"

enum { TUTTI_MOST_PIXEL_CLASSES = 4096 };

/* Bytes of scratch for so many samples. */
size_t tutti_pixel_softmax_scratch(tutti_extent extent);

/* What was found in a sample: the sum of its pixels' losses, in double in their order; pixels that
 * count, and of these those where another class scored above the label. */
typedef struct tutti_pixels_found {
    float *losses;
    int32_t *counted, *wrong;
} tutti_pixels_found;

/* p = softmax of x. Without targets (NULL) nothing is found. */
void tutti_pixel_softmax(tutti_exec exec, tutti_extent extent, const float *x,
                         const tutti_targets *targets, void *scratch, float *p,
                         const tutti_pixels_found *found);

/* dx may be p. */
void tutti_pixel_softmax_backward(tutti_exec exec, tutti_extent extent, const float *p,
                                  const tutti_targets *targets, double scale, float *dx);

#endif
