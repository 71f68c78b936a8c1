/* Normalisation over samples and pixels, channel by channel (batch normalisation).
 *
 * Samples are normalised together in statistics groups: consecutive samples of the minibatch, which
 * several ranks may share. What a group needs, its mean and variance forward, two sums backward, is
 * a pair of doubles for each channel, made in one order:
 *
 *   pixels    of one sample in chunks of TUTTI_NORM_CHUNK: within a chunk chains of floats, side by
 *             side and joined pairwise, from chunk to chunk in double
 *   samples   the tree of base/tree.h over the samples of the group, in double
 *
 * A mean and the squares around it are joined by the update of Chan, Golub and LeVeque ("Updating
 * formulae and a pairwise algorithm for computing sample variances", 1979); a chunk is passed
 * twice, while it is in the first-level cache, the second time around its mean, so that a mean far
 * from zero costs no digits.
 *
 * Pairs lie as rows of 'c' doubles, c being the channels rounded up to 16: the first of each pair,
 * then the second, of one sample (a leaf), of a subtree or of a group after the other. */
#ifndef TUTTI_KERNEL_NORM_H
#define TUTTI_KERNEL_NORM_H

#include <stdbool.h>

#include "base/tree.h"
#include "kernel/conv.h"
#include "kernel/exec.h"

enum { TUTTI_NORM_CHUNK = 128 }; /* pixels */

/* Doubles of a pair of rows. */
static inline size_t tutti_norm_pair(int channels)
{
    return 2 * TUTTI_BLOCK * tutti_channel_blocks(channels);
}

/* To which group the samples of an extent belong: sample s to number (first + s) / size. */
typedef struct tutti_norm_groups {
    int first, size;
} tutti_norm_groups;

/* What the backward pass needs of a group: mean, sum of squared distances from it, and 1 divided by
 * the deviation, rows of c doubles. */
enum { TUTTI_NORM_MEAN, TUTTI_NORM_SQUARES, TUTTI_NORM_INVERSE, TUTTI_NORM_STATE };

/* ---- pairs ---- */

/* Of every sample the mean over its pixels and the sum of the squared distances from it. */
void tutti_norm_moments(tutti_exec exec, tutti_extent extent, const float *x, double *leaves);

/* Of every sample the sums of dy and of dy * (x - mean), the mean being its group's. */
void tutti_norm_sums(tutti_exec exec, tutti_extent extent, tutti_norm_groups groups,
                     const double *states, const float *x, const float *dy, double *leaves);

/* A tree over the samples of a group, each of 'pixels' pixels. */
typedef struct tutti_norm_tree {
    int leaves, pixels, channels;
    bool moments; /* else sums, which are added */
} tutti_norm_tree;

/* A subtree of it whose pair is known. */
typedef struct tutti_norm_part {
    tutti_subtree subtree;
    const double *pair;
} tutti_norm_part;

/* Joins parts, given in tree order, that make up one subtree. */
void tutti_norm_join(tutti_exec exec, const tutti_norm_tree *tree, const tutti_norm_part *parts,
                     int count, double *pair);

/* ---- coefficients: rows of c floats, of one group ---- */

/* A mean as two floats. */
void tutti_norm_split_mean(double mean, float *high, float *low);

typedef struct tutti_norm {
    int channels;
    double eps;
    const float *weight, *bias; /* [c]; NULL: 1 and 0 */
} tutti_norm;

static inline double tutti_norm_weight(const float *weight, size_t channel)
{
    return weight ? (double)weight[channel] : 1;
}

/* The mean as two floats, then forward a factor and an addend; backward a factor of dy, one of
 * x - mean, and an addend. */
enum {
    TUTTI_NORM_HIGH,
    TUTTI_NORM_LOW,
    TUTTI_NORM_FACTOR,
    TUTTI_NORM_ADDEND,
    TUTTI_NORM_FACTOR_X,
    TUTTI_NORM_ROWS
};

/* From the moments of a group of 'values' values a channel, in its state; completes that. */
void tutti_norm_coefficients(const tutti_norm *norm, double values, double *state, float *rows);
/* From a mean and a variance that are given. */
void tutti_norm_given(const tutti_norm *norm, const float *mean, const float *variance,
                      float *rows);
/* For the backward pass, from the sums over the group. */
void tutti_norm_back_coefficients(const tutti_norm *norm, double values, const double *state,
                                  const double *sums, float *rows);

/* ---- passes; 'rows' are those of group after group ---- */

/* y = (x - mean) * factor + addend, + plus unless that is NULL, then max(., 0) if relu. */
void tutti_norm_forward(tutti_exec exec, tutti_extent extent, tutti_norm_groups groups,
                        const float *rows, const float *x, const float *plus, bool relu, float *y);
/* dx = factor * dy + factor_x * (x - mean) + addend, zero where x <= 0 if 'gated'; may be dy. */
void tutti_norm_backward(tutti_exec exec, tutti_extent extent, tutti_norm_groups groups,
                         const float *rows, const float *x, const float *dy, bool gated, float *dx);

/* ---- gradients ---- */

/* Of weight and bias, from the leaves of tutti_norm_sums: a chain in double over the samples of a
 * grain, rounded; over grains, 2^n of them, the tree, in float. Without states (NULL) the leaves
 * are those of x that is already divided by its deviation. */
void tutti_norm_gradients(tutti_exec exec, int channels, tutti_norm_groups groups,
                          const double *states, const tutti_grains *grains, const double *leaves,
                          float *dw, float *db);

/* What running averages follow: the mean over all groups of the minibatch of their means and of
 * their variances without bias (squares / (values - 1)). Groups weigh the same; each belongs to the
 * grain that has its first sample, and is added in the order of gradients. 'first_group' is the
 * number of the first of 'states' in the minibatch of 'batch' samples. */
void tutti_norm_averages(tutti_exec exec, tutti_extent extent, tutti_norm_groups groups,
                         const double *states, int first_group, int batch,
                         const tutti_grains *grains, float *mean, float *variance);

#endif
