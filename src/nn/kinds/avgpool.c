/* The mean of a window; padding counts unless it is excluded. */
#include "nn/kinds/pool.h"

static const tutti_key keys[] = {
    TUTTI_POOL_KEYS,
    {"exclude-pad", TUTTI_KEY_BOOL, offsetof(tutti_pool_options, exclude_pad), 0, 0, false, NULL},
    {.name = NULL}};

static void forward(const tutti_call *c)
{
    const tutti_pool_shape shape = tutti_pool_layer_shape(c->layer);
    tutti_average_pool_forward(c->exec, &shape, c->out.n, c->in->x, c->y);
}

static void backward_data(const tutti_call *c)
{
    const tutti_pool_shape shape = tutti_pool_layer_shape(c->layer);
    tutti_average_pool_backward(c->exec, &shape, c->out.n, c->dy, c->in->gate, c->in->dx);
}

const tutti_kind tutti_kind_avgpool = {
    .word = "avgpool",
    .what = "mean of a window",
    .keys = keys,
    .options_size = sizeof(tutti_pool_options),
    .defaults = &tutti_pool_defaults,
    .complete = tutti_pool_complete,
    .work = tutti_pool_work,
    .takes_gate = true,
    .forward = forward,
    .backward_data = backward_data,
};
