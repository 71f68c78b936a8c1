/* What a loss compares outputs with where that is more than a label: PyTorch's cross_entropy with
 * label_smoothing and weight, and samples that were mixed of two (mixup).
 *
 *   t[c]  = (1 - smoothing) * (share w[label] at label + (1 - share) w[other] at other)
 *           + smoothing / classes * w[c]
 *   loss  = sum over c of t[c] * -log p[c]
 *   dx[c] = scale * (p[c] * sum of t - t[c])
 *
 * Sums over classes are in double, in 16 chains (class modulo 16) joined by halves. */
#ifndef TUTTI_KERNEL_TARGETS_H
#define TUTTI_KERNEL_TARGETS_H

#include <stdint.h>
#include "kernel/exec.h"

typedef struct tutti_targets {
    const int32_t *labels; /* one a sample, in 0 .. classes-1 */
    const int32_t *others; /* of what a sample was mixed with; NULL: no sample is mixed */
    const float *shares;   /* ... and the part that its own label has in it, 0 to 1 */
    const float *weights;  /* w, one a class; NULL: all 1 */
    double smoothing;      /* 0 to 1 */
} tutti_targets;

/* Is there nothing but labels? */
static inline bool tutti_targets_are_plain(const tutti_targets *t)
{
    return !t->others && !t->weights && t->smoothing == 0;
}

/* share w[label] + (1 - share) w[other] of sample i: what it counts in the mean. */
double tutti_target_weight(const tutti_targets *targets, int i);

/* After tutti_softmax, which must not have overwritten x: loss[i] was that of the label and becomes
 * that of the target. */
void tutti_targets_loss(tutti_exec exec, tutti_extent extent, const float *x,
                        const tutti_targets *targets, float *loss);

/* dx may be p. */
void tutti_targets_backward(tutti_exec exec, tutti_extent extent, const float *p,
                            const tutti_targets *targets, double scale, float *dx);

/* ---- row by row, for losses that have one a pixel ---- */

/* What each class gets of smoothing but for its weight, and all of them together. */
typedef struct tutti_smoothing {
    double each, all;
} tutti_smoothing;

tutti_smoothing tutti_targets_smoothing(const tutti_targets *targets, int classes);

/* Of row i: x, p and dx are its own, filled up to a multiple of 16. */
float tutti_targets_row_loss(const tutti_targets *targets, const tutti_smoothing *smoothing,
                             int classes, int i, const float *x, float loss);
void tutti_targets_row_backward(const tutti_targets *targets, const tutti_smoothing *smoothing,
                                int classes, int i, double scale, const float *p, float *dx);

#endif
