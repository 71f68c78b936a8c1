/* Fully connected layers, forward and backward: our own matrix products.
 *
 * Activations are [n][i] and [n][o], i and o rounded up to 16 with zeros (a flattened convolution
 * output [c/16][h][w][16] is such an i). Weights are [o/16][i][16]: a convolution's layout with a
 * 1x1 kernel, so that any run of whole blocks of output features is contiguous in memory.
 *
 * The contract of bits. Forward: one chain of fused multiply-adds over the inputs in index order.
 * Backward-data: chains over blocks of 64 output features, joined by the tree of base/tree.h, so
 * that ranks which hold whole blocks can add up what they own. Backward-weights: one chain per
 * grain over its samples, joined by the tree of grains. Chains start at +0, a grain's with its
 * first product. */
#ifndef TUTTI_KERNEL_FC_H
#define TUTTI_KERNEL_FC_H

#include "kernel/conv.h"
#include "kernel/precision.h"

enum { TUTTI_FC_LEAF = 64 }; /* output features of a leaf of backward-data's tree */

typedef struct tutti_fc tutti_fc;

/* Plans the loops on up to 'threads' threads with the kernels of 'row'. */
tutti_status tutti_fc_create(tutti_fc **out, int in, int out_features, tutti_precision precision,
                             const tutti_kernels *row, const tutti_caches *caches,
                             int threads) TUTTI_MUST_CHECK;
void tutti_fc_destroy(tutti_fc **fc);

size_t tutti_fc_weight_count(const tutti_fc *fc); /* floats of w and dw, filled up */

/* Bytes of scratch the passes need for up to n samples and up to out_features outputs in a call
 * on a team of up to the planned threads; aligned to a cache line, contents do not matter. */
size_t tutti_fc_scratch(const tutti_fc *fc, int n);

/* The passes work on the first task->outputs output features (rounded up to 16) from where w, bias,
 * y and dy point, so that a rank that holds only a run of features calls them on that run: rows of
 * y and dy are then that many floats apart.
 *
 * y = x w + bias (may be NULL), then max(., 0) if relu. */
void tutti_fc_forward(const tutti_fc *fc, const tutti_task *task, const float *x, const float *w,
                      const float *bias, bool relu, float *y);

/* dx = tree sum over the leaves (blocks of 64) of these outputs, zero where mask <= 0 (mask may be
 * NULL). */
void tutti_fc_backward_data(const tutti_fc *fc, const tutti_task *task, const float *dy,
                            const float *w, const float *mask, float *dx);

/* The contribution of a rank that holds only the output features of leaves first .. end-1 of the
 * layer's tree (task->outputs does not matter): one partial sum for each root of
 * tutti_tree_roots(leaves, first, end), in that order, partial[r] an array like dx; w and dy are
 * those of its features. Returns the number of roots: 1 when leaves and ranks are powers of two.
 * Whoever joins the ranks' roots by tutti_tree_join, then applies the mask, has the bits of
 * tutti_fc_backward_data on the whole. */
int tutti_fc_leaves(const tutti_fc *fc);
int tutti_fc_backward_data_roots(const tutti_fc *fc, const tutti_task *task, int first, int end,
                                 const float *dy, const float *w, float *const partial[]);

/* dw and db (may be NULL) = gradient by weights and bias, the tree sum over the grains, of which
 * there are no more than samples. All of dw is written. */
void tutti_fc_backward_weights(const tutti_fc *fc, const tutti_task *task, const float *x,
                               const float *dy, float *dw, float *db);

/* One line that explains the plan for n samples: panels, pieces, predicted bytes per FLOP. */
void tutti_fc_explain(const tutti_fc *fc, int n, char *text, size_t bytes);

#endif
