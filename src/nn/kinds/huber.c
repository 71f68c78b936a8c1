/* Squared errors up to delta, absolute ones beyond: PyTorch's HuberLoss, or SmoothL1Loss with
 * beta=delta, which is that divided by it. */
#include <stddef.h>

#include "nn/kinds/losses.h"

typedef struct options {
    tutti_loss_options loss;
    double delta;
    bool smooth;
} options;

static const options defaults = {TUTTI_LOSS_DEFAULTS, 1, false};

static const tutti_key keys[] = {
    TUTTI_LOSS_KEYS(options),
    {"delta", TUTTI_KEY_REAL, offsetof(options, delta), 1e-6, 1e6, false, NULL},
    {"smooth", TUTTI_KEY_BOOL, offsetof(options, smooth), 0, 0, false, NULL},
    {.name = NULL},
};

static double factor_of(const options *o)
{
    return o->smooth ? 1 / o->delta : 1;
}

static void forward(const tutti_call *c)
{
    const options *o = c->options;
    tutti_value_loss_forward(c, TUTTI_LOSS_HUBER, factor_of(o), o->delta);
}

static void backward_data(const tutti_call *c)
{
    const options *o = c->options;
    tutti_value_loss_backward(c, TUTTI_LOSS_HUBER, factor_of(o), o->delta);
}

const tutti_kind tutti_kind_huber = {
    .word = "huber",
    .what = "squared error loss, absolute beyond delta",
    .keys = keys,
    .options_size = sizeof(options),
    .defaults = &defaults,
    TUTTI_VALUE_LOSS,
    .aims = TUTTI_TARGET_VALUES,
    .forward = forward,
    .backward_data = backward_data,
};
