/* What losses share: their weight, their target, and how several of a net make one. */
#ifndef TUTTI_NN_KINDS_LOSSES_H
#define TUTTI_NN_KINDS_LOSSES_H

#include "kernel/value_loss.h"
#include "nn/kinds/kind.h"

typedef struct tutti_loss_options {
    double weight;
    int target; /* from 1 */
} tutti_loss_options;

// clang-format off
/* The keys of options that begin with a tutti_loss_options called 'loss'. */
#define TUTTI_LOSS_KEYS(options)                                                                  \
    {"weight", TUTTI_KEY_REAL, offsetof(options, loss.weight), 1e-6, 1e6, false, NULL},           \
    {"target", TUTTI_KEY_INT, offsetof(options, loss.target), 1, TUTTI_MOST_TARGETS, false, NULL}
#define TUTTI_LOSS_DEFAULTS {.weight = 1, .target = 1}
// clang-format on

/* Of a loss with no other options. */
typedef struct tutti_plain_loss {
    tutti_loss_options loss;
} tutti_plain_loss;
extern const tutti_key tutti_loss_keys[];
extern const tutti_plain_loss tutti_loss_defaults;

/* Sets out and target. */
tutti_status tutti_loss_complete(tutti_net *net, tutti_layer *layer) TUTTI_MUST_CHECK;

size_t tutti_loss_saved(const tutti_layer *layer, int samples); /* of the record */

/* Where a loss writes those of its samples, NULL without targets; then they get its weight and are
 * added to what losses of its target before it found. */
float *tutti_loss_place(const tutti_call *call);
void tutti_loss_finish(const tutti_call *call, const float *losses);

double tutti_loss_weight(const tutti_call *call);

/* What the sum of the minibatch's losses is divided by. */
double tutti_loss_divisor(const tutti_call *call);

/* The labels of the samples of this call, and in training what else the net's answer has. */
tutti_targets tutti_loss_targets(const tutti_call *call);

/* ---- losses of values; 'own' is their extent ---- */

tutti_status tutti_value_loss_create(void **own, const tutti_layer *layer,
                                     const tutti_setup *setup) TUTTI_MUST_CHECK;
void tutti_value_loss_destroy(void *own);
size_t tutti_value_loss_own_scratch(const void *own, int samples);

/* 'factor' times the loss; delta of huber. */
void tutti_value_loss_forward(const tutti_call *call, tutti_value_loss loss, double factor,
                              double delta);
void tutti_value_loss_backward(const tutti_call *call, tutti_value_loss loss, double factor,
                               double delta);

/* A record of such a loss but for what is its own. */
// clang-format off
#define TUTTI_VALUE_LOSS                                                                          \
    .complete = tutti_loss_complete, .is_loss = true, .again = TUTTI_AGAIN_Y,                     \
    .create = tutti_value_loss_create, .destroy = tutti_value_loss_destroy,                       \
    .scratch = tutti_value_loss_own_scratch, .saved = tutti_loss_saved
// clang-format on

#endif
