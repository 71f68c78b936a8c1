/* Normalisation over the pixels and some channels of one sample (group normalisation).
 *
 * A sample is a statistics group of norm.h by itself, whose passes do the work: of each channel the
 * mean over the pixels and the squared distances from it, or the two sums backward; here those of
 * the channels that belong together are joined, in double, one channel after the other. */
#ifndef TUTTI_KERNEL_GROUP_NORM_H
#define TUTTI_KERNEL_GROUP_NORM_H

#include "kernel/norm.h"

typedef struct tutti_group_norm {
    int groups; /* of consecutive channels, as many each */
    double eps;
    const float *weight, *bias; /* [c rounded up to 16]; NULL: 1 and 0 */
} tutti_group_norm;

/* The norm.h groups whose passes fit: each sample is one. */
static inline tutti_norm_groups tutti_group_norm_samples(void)
{
    return (tutti_norm_groups){0, 1};
}

/* From the moments of each channel, 'leaves', the states of all samples and their coefficients. */
void tutti_group_norm_coefficients(tutti_exec exec, tutti_extent extent,
                                   const tutti_group_norm *norm, const double *leaves,
                                   double *states, float *rows);

/* For the backward pass, from the sums of each channel. */
void tutti_group_norm_back_coefficients(tutti_exec exec, tutti_extent extent,
                                        const tutti_group_norm *norm, const double *states,
                                        const double *leaves, float *rows);

#endif
