/* Losses of values: what outputs x [n][c/16][pixels][16] are off from targets t, laid out alike.
 *
 *   squared      e^2                                     dx = 2 scale e
 *   absolute     |e|                                     dx = scale sign(e), 0 where e is 0
 *   huber        e^2 / 2 where |e| <= delta,             dx = scale e, at most delta scale
 *                else delta (|e| - delta / 2)
 *   crossed      max(x, 0) - x t + log(1 + e^-|x|)       dx = scale (sigmoid(x) - t)
 *
 * of e = x - t. A sample's loss is the mean over its values, of all channels and pixels. Its sum is
 * in double: the sixteen lanes of a vector each add up at most TUTTI_VALUE_CHUNK pixels of a block
 * of channels, are joined by halves, and the chunks one after another. */
#ifndef TUTTI_KERNEL_VALUE_LOSS_H
#define TUTTI_KERNEL_VALUE_LOSS_H

#include "kernel/exec.h"

enum { TUTTI_VALUE_CHUNK = 256 };

typedef enum tutti_value_loss {
    TUTTI_LOSS_SQUARED,
    TUTTI_LOSS_ABSOLUTE,
    TUTTI_LOSS_HUBER,
    TUTTI_LOSS_CROSSED
} tutti_value_loss;

/* Bytes of scratch that tutti_value_losses needs for so many samples. */
size_t tutti_value_loss_scratch(tutti_extent extent);

/* losses[n]; delta of huber. */
void tutti_value_losses(tutti_exec exec, tutti_value_loss loss, tutti_extent extent, float delta,
                        const float *x, const float *t, void *scratch, float *losses);

/* x is what went in, of 'crossed' its sigmoid; dx may be x. */
void tutti_value_backward(tutti_exec exec, tutti_value_loss loss, tutti_extent extent, float delta,
                          float scale, const float *x, const float *t, float *dx);

#endif
