/* What losses share: their weight, and how several of a net make one. */
#ifndef TUTTI_NN_KINDS_LOSSES_H
#define TUTTI_NN_KINDS_LOSSES_H

#include "nn/kinds/kind.h"

typedef struct tutti_loss_options {
    double weight;
} tutti_loss_options;

extern const tutti_key tutti_loss_keys[];
extern const tutti_loss_options tutti_loss_defaults;

size_t tutti_loss_saved(const tutti_layer *layer, int samples); /* of the record */

/* Where a loss writes those of its samples, NULL without labels; then they get its weight and are
 * added to what losses before it found. */
float *tutti_loss_place(const tutti_call *call);
void tutti_loss_finish(const tutti_call *call, const float *losses);

double tutti_loss_weight(const tutti_call *call);

#endif
