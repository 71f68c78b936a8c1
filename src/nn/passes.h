/* Passes: a worker takes its share of the minibatch in one piece, or, where the activations of all
 * its samples would not fit into memory, piece by piece (micro-batches). Only the last pass may
 * start exchanges: before that no gradient is complete.
 *
 * A pass has whole grains, so that gradients are sums of the same leaves, and whole statistics
 * groups, so that batch normalisation sees the same samples: the bits do not change. Every worker
 * has as many passes as the one that needs most; where it has fewer pieces, its first passes are
 * empty, so that the last one is never. Groups that have samples of several workers let nobody
 * divide its share. */
#ifndef TUTTI_NN_PASSES_H
#define TUTTI_NN_PASSES_H

#include "nn/statistics.h"

typedef struct tutti_passes {
    int count;
    int *cuts; /* [workers][count + 1] pass p of worker w has the grains from cuts[w][p] on */
} tutti_passes;

/* 'most' samples of a worker in a pass, 0: all it has. TUTTI_ARGUMENT names the smallest number
 * that works. The sharing's worker does not matter. 'grouped': statistics groups count, which they
 * do in training. */
tutti_status tutti_passes_init(tutti_passes *out, const tutti_net *net,
                               const tutti_sharing *sharing, bool grouped,
                               int most) TUTTI_MUST_CHECK;
void tutti_passes_deinit(tutti_passes *passes); /* all zero is fine; leaves it so */

/* The smallest number of samples that works. */
int tutti_passes_least(const tutti_net *net, const tutti_sharing *sharing);

const int *tutti_passes_of(const tutti_passes *passes, int worker); /* its cuts */

/* Samples of the largest of its passes. */
int tutti_passes_largest(const tutti_passes *passes, const tutti_sharing *sharing, int worker);

#endif
