/* What layers that normalise within a sample have in common: the parameters, and memory. */
#ifndef TUTTI_NN_KINDS_NORM_H
#define TUTTI_NN_KINDS_NORM_H

#include "kernel/group_norm.h"
#include "nn/kinds/kind.h"

/* Adds LAYER.weight and LAYER.bias, of each channel or, 'each_value', of each value of a sample. */
tutti_status tutti_layer_add_norm(tutti_net *net, const tutti_layer *layer,
                                  bool each_value) TUTTI_MUST_CHECK;

/* What create makes: how much each sample takes in scratch. */
typedef struct tutti_norm_own {
    size_t sample_bytes;
} tutti_norm_own;
tutti_status tutti_norm_own_create(void **out, size_t sample_bytes) TUTTI_MUST_CHECK;
void tutti_norm_own_destroy(void *own);
size_t tutti_norm_own_scratch(const void *own, int samples);

/* Of statistics of channels that are joined (kernel/group_norm.h): bytes that last from forward to
 * backward, the state of each sample and its pairs; those of a sample in scratch; and where
 * everything is: what will not go back has only scratch. */
size_t tutti_group_norm_saved(const tutti_layer *layer, int samples);
size_t tutti_group_norm_scratch(const tutti_layer *layer);
typedef struct tutti_group_norm_places {
    double *states, *leaves;
    float *rows;
} tutti_group_norm_places;
tutti_group_norm_places tutti_group_norm_at(const tutti_call *call);

#endif
