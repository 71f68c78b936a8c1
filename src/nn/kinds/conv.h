/* The convolution's kind, for those who measure or check convolutions as such. */
#ifndef TUTTI_NN_KINDS_CONV_H
#define TUTTI_NN_KINDS_CONV_H

#include "nn/kinds/kind.h"

/* The shape a layer of kind conv hands to the kernels. */
tutti_conv_shape tutti_conv_layer_shape(const tutti_layer *layer);

#endif
