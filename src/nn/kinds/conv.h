/* The convolution's kind, for those who measure or check convolutions as such. */
#ifndef TUTTI_NN_KINDS_CONV_H
#define TUTTI_NN_KINDS_CONV_H

#include "nn/kinds/kind.h"
#include "nn/kinds/window.h"

/* The shape a layer of kind conv hands to the kernels. */
tutti_conv_shape tutti_conv_layer_shape(const tutti_layer *layer);

/* What both kinds of convolutions say of their algorithm: an option, whether the shape may take it,
 * the rate's key, and the layer's effort. */
#define TUTTI_ALGORITHM_KEY(options, field)                                   \
    {                                                                         \
        "algorithm", TUTTI_KEY_CHOICE, offsetof(options, field), 0, 0, false, \
            tutti_conv_algorithm_words                                        \
    }

tutti_status tutti_conv_settle(tutti_layer *layer, const tutti_conv_shape *shape) TUTTI_MUST_CHECK;
void tutti_conv_work(const tutti_window *window, const tutti_conv_shape *shape, char text[32]);
/* What the option becomes when a run asks for an algorithm. */
int tutti_conv_asked(const tutti_conv_shape *shape, int algorithm);
/* Would it round what it multiplies if it were asked to? */
bool tutti_conv_may_round(tutti_conv_shape shape);

/* For kinds that run on a convolution's kernels: 'own' is a tutti_conv of this shape. */
tutti_status tutti_conv_own(void **own, const tutti_conv_shape *shape,
                            const tutti_setup *setup) TUTTI_MUST_CHECK;
void tutti_conv_disown(void *own);
size_t tutti_conv_own_scratch(const void *own, int samples);
tutti_task tutti_conv_task(const tutti_call *call);

#endif
