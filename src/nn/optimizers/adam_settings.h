/* What Adam and AdamW have in common. */
#ifndef TUTTI_NN_OPTIMIZERS_ADAM_SETTINGS_H
#define TUTTI_NN_OPTIMIZERS_ADAM_SETTINGS_H

#include "nn/optimizers/optimizer.h"

typedef struct tutti_adam_settings {
    double beta1, beta2, eps;
} tutti_adam_settings;

extern const tutti_adam_settings tutti_adam_defaults;
extern const tutti_key tutti_adam_keys[];

int tutti_adam_states(const void *settings);
int tutti_adam_accesses(const void *settings);
void tutti_adam_prepare(tutti_how *how, const void *settings, int64_t step);

/* All numbers of the kernel but weight_decay and shrink, which are as without
 * decay. */
tutti_adam tutti_adam_of(const tutti_adam_settings *settings, const tutti_how *how);

#endif
