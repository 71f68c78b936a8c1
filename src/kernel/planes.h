/* Activations [n][c/16][pixels][16] with one number for each channel of a sample, or of all of
 * them: squeeze-and-excitation, layer scale, stochastic depth. Threads share planes, one channel
 * block of one sample each. */
#ifndef TUTTI_KERNEL_PLANES_H
#define TUTTI_KERNEL_PLANES_H

#include <stdbool.h>

#include "kernel/conv.h"
#include "kernel/exec.h"

/* Where 16 factors are for block b of sample n: at + n * sample + b * block. */
typedef struct tutti_factors {
    const float *at;
    size_t sample, block;
} tutti_factors;

/* y = factor * x, zero where mask <= 0 (may be NULL); y may be x. */
void tutti_scale_planes(tutti_exec exec, tutti_extent extent, tutti_factors factors, const float *x,
                        const float *mask, float *y);

/* Sums over the pixels of each channel of a * b, [n][c/16][16]: pixel i belongs to chain i % 4 of
 * fused multiply-adds, and the chains are added as (0 + 1) + (2 + 3). */
void tutti_dot_planes(tutti_exec exec, tutti_extent extent, const float *a, const float *b,
                      float *sums);

/* y += addend[channel] (NULL: 0), then max(., 0) if relu; addends are [c/16][16]. */
void tutti_shift_planes(tutti_exec exec, tutti_extent extent, const float *addends, bool relu,
                        float *y);

/* The sums of tutti_dot_planes, or those of a alone if b is NULL, added over samples, [c/16][16]:
 * within a grain one after another, grains by the tree of base/tree.h. extent.n does not count. */
void tutti_dot_grains(tutti_exec exec, tutti_extent extent, const tutti_grains *grains,
                      const float *a, const float *b, float *sums);

#endif
