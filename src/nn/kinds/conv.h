/* The convolution's kind, for those who measure or check convolutions as such. */
#ifndef TUTTI_NN_KINDS_CONV_H
#define TUTTI_NN_KINDS_CONV_H

#include "nn/kinds/kind.h"

/* The shape a layer of kind conv hands to the kernels. */
tutti_conv_shape tutti_conv_layer_shape(const tutti_layer *layer);

/* For kinds that run on a convolution's kernels: 'own' is a tutti_conv of this shape. */
tutti_status tutti_conv_own(void **own, const tutti_conv_shape *shape,
                            const tutti_setup *setup) TUTTI_MUST_CHECK;
void tutti_conv_disown(void *own);
size_t tutti_conv_own_scratch(const void *own, int samples);
tutti_task tutti_conv_task(const tutti_call *call);

#endif
