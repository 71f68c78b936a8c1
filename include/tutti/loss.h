/* A loss of the caller's own, in place of the one that ends the net: regression, several targets,
 * whatever is a function of a sample's outputs. */
#ifndef TUTTI_LOSS_H
#define TUTTI_LOSS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Samples that were computed together. Sample i has outputs at values + i * stride, its loss goes
 * to losses[i], and the derivatives of that loss by its outputs to gradients + i * stride. */
typedef struct tutti_loss_call {
    int first;           /* place of the first one in the minibatch of all ranks, in training; in */
                         /* evaluations, in what this call of tutti_session_forward was handed */
    int count, outputs;  /* samples, and outputs of each */
    size_t stride;       /* floats from one sample to the next */
    const float *values; /* what the net's last layer is given */
    const int32_t *labels; /* NULL: there are none */
    float *losses;         /* NULL: not wanted */
    float *gradients;      /* NULL: this is no training */
} tutti_loss_call;

/* Called in the thread that makes the step, once for each of its passes. What it finds for a sample
 * must depend on nothing but that sample: then the bits do not depend on the number of ranks. The
 * step trains on the mean over the minibatch. A failure is a loss that is not a finite number,
 * which ends the training. */
typedef struct tutti_own_loss {
    void (*find)(void *user, const tutti_loss_call *call);
    void *user;
} tutti_own_loss;

#ifdef __cplusplus
}
#endif
#endif
