/* Zeroes a share of the values in training and scales the rest. Nothing is kept: the backward pass
 * draws the same numbers again. */
#include "kernel/ops.h"
#include "nn/kinds/kind.h"

typedef struct options {
    double rate;
} options;

static const options defaults = {0};

static tutti_dropout dropout_of(const tutti_call *c)
{
    return (tutti_dropout){.rate = (float)((const options *)c->options)->rate,
                           .key = {.seed = c->seed,
                                   .purpose = TUTTI_RANDOM_DROPOUT,
                                   .layer = (uint32_t)c->number,
                                   .when = c->step,
                                   .sample = (uint32_t)c->first_sample},
                           .first_block = c->first_channel / TUTTI_BLOCK};
}

static void still(tutti_layer *layer)
{
    ((options *)layer->options)->rate = 0;
}

static void forward(const tutti_call *c)
{
    const tutti_dropout dropout = dropout_of(c);
    if (c->training) tutti_dropout_forward(c->exec, &dropout, c->out, c->in->x, c->y);
    else if (c->y != c->in->x) tutti_scale(c->exec, c->count, 1, c->in->x, c->y);
}

static void backward_data(const tutti_call *c)
{
    const tutti_dropout dropout = dropout_of(c);
    tutti_dropout_backward(c->exec, &dropout, c->out, c->dy, c->in->gate, c->in->dx);
}

const tutti_kind tutti_kind_dropout = {
    .word = "dropout",
    .what = "zeroes a share of the values",
    .argument = {"rate", TUTTI_KEY_REAL, offsetof(options, rate), 0, 0.999, true, NULL},
    .wants = "a rate from 0 to 1",
    .options_size = sizeof(options),
    .defaults = &defaults,
    .complete = tutti_complete_same,
    .still = still,
    .in_place = true,
    .keeps_sign = true,
    .follows = true,
    .takes_gate = true,
    .forward = forward,
    .backward_data = backward_data,
};
