/* Layouts: what others use (torch's NCHW and OIHW, images' NHWC) to and from ours, blocked by 16
 * channels. Floats are moved, never changed; what fills up a block is written as zero. */
#ifndef TUTTI_KERNEL_LAYOUT_H
#define TUTTI_KERNEL_LAYOUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernel/exec.h"

/* ---- activations ---- */

/* [n][c][pixels] <-> [n][c/16][pixels][16] */
void tutti_nchw_to_blocked(tutti_exec exec, tutti_extent extent, const float *nchw, float *blocked);
void tutti_blocked_to_nchw(tutti_exec exec, tutti_extent extent, const float *blocked, float *nchw);
/* [n][c][pixels] <-> [n][pixels][c], compact */
void tutti_nchw_to_nhwc(tutti_team *team, tutti_extent extent, const float *nchw, float *nhwc);
void tutti_nhwc_to_nchw(tutti_team *team, tutti_extent extent, const float *nhwc, float *nchw);

/* ---- weights ----
 *
 *   torch      convolution [k][c][r][s] (c: channels of one group)
 *   ours       [k/16][c/16][r][s][16 c][16 k]
 *   compact    [k/16][r][s][c][16 k], of a first layer that reads images
 *
 * A fully connected layer is the case r = h, s = w of the activation [c][h][w] it flattens (r = s
 * = 1 after another fully connected layer): torch's [o][i] counts i in [c][h][w] order, ours
 * [o/16][i][16] in [c/16][h][w][16] order, and both are the formulas above. A bias is the case c =
 * r = s = 1, compact.
 *
 * Both layouts have output channels outermost, so a strip of whole blocks of output channels is
 * contiguous in both: convert it as a shape of its own, k being the channels in the strip. */
typedef struct tutti_weight_shape {
    int k, c, r, s;
    bool compact;
} tutti_weight_shape;

size_t tutti_weight_blocked_count(const tutti_weight_shape *shape); /* floats of ours */
size_t tutti_weight_torch_count(const tutti_weight_shape *shape);

/* Where float 'at' of ours is in torch's; -1 for one that only fills up. */
int64_t tutti_weight_torch_index(const tutti_weight_shape *shape, size_t at);

void tutti_weights_from_torch(tutti_team *team, const tutti_weight_shape *shape, const float *torch,
                              float *blocked);
void tutti_weights_to_torch(tutti_team *team, const tutti_weight_shape *shape, const float *blocked,
                            float *torch);

/* The same for floats begin .. end-1 of ours only, any cut: 'strip' points at float 'begin',
 * 'torch' at the whole tensor, of which the other elements are neither read nor written. */
void tutti_strip_from_torch(const tutti_weight_shape *shape, size_t begin, size_t end,
                            const float *torch, float *strip);
void tutti_strip_to_torch(const tutti_weight_shape *shape, size_t begin, size_t end,
                          const float *strip, float *torch);

#endif
