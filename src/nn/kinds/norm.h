/* What layers that normalise within a sample have in common: the parameters. */
#ifndef TUTTI_NN_KINDS_NORM_H
#define TUTTI_NN_KINDS_NORM_H

#include "nn/kinds/kind.h"

/* Adds LAYER.weight and LAYER.bias, of each channel or, 'each_value', of each value of a sample. */
tutti_status tutti_layer_add_norm(tutti_net *net, const tutti_layer *layer,
                                  bool each_value) TUTTI_MUST_CHECK;

#endif
