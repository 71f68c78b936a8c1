/* Kinds that only say which channel goes where. */
#ifndef TUTTI_NN_KINDS_CHANNELS_H
#define TUTTI_NN_KINDS_CHANNELS_H

#include "nn/kinds/kind.h"

/* create of such a kind: which channel of the input becomes channel k of the output, by 'source',
 * and from that where each goes back to. */
tutti_status tutti_channels_create(void **own, const tutti_layer *layer,
                                   int (*source)(const tutti_layer *layer, int k)) TUTTI_MUST_CHECK;
void tutti_channels_destroy(void *own);
void tutti_channels_forward(const tutti_call *call);
void tutti_channels_backward(const tutti_call *call);

#endif
