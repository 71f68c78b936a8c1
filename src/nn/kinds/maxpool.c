/* The largest value of a window. Which one won is kept in 16 bits for each output, so the input,
 * usually the largest tensor around, is soon free; and a ReLU below can be masked by the output, as
 * y is one of the x. */
#include "nn/kinds/pool.h"

static const tutti_key keys[] = {TUTTI_POOL_KEYS, {.name = NULL}};

static size_t saved(const tutti_layer *layer, int samples)
{
    const tutti_pool_shape shape = tutti_pool_layer_shape(layer);
    return tutti_max_pool_tap_bytes(&shape, samples);
}

static void forward(const tutti_call *c)
{
    const tutti_pool_shape shape = tutti_pool_layer_shape(c->layer);
    tutti_max_pool_forward(c->exec, &shape, c->out.n, c->in->x, c->y,
                           c->training ? c->saved : NULL);
}

static void backward_data(const tutti_call *c)
{
    const tutti_pool_shape shape = tutti_pool_layer_shape(c->layer);
    tutti_max_pool_backward(c->exec, &shape, c->out.n, c->dy, c->saved, c->in->gate, c->in->dx);
}

const tutti_kind tutti_kind_maxpool = {
    .word = "maxpool",
    .what = "largest value of a window",
    .keys = keys,
    .options_size = sizeof(tutti_pool_options),
    .defaults = &tutti_pool_defaults,
    .complete = tutti_pool_complete,
    .work = tutti_pool_work,
    .takes_gate = true,
    .gates_by_y = true,
    .saved = saved,
    .forward = forward,
    .backward_data = backward_data,
};
