/* The hyperbolic tangent; its derivative is 1 - y^2. */
#include "kernel/ops.h"
#include "nn/kinds/kind.h"

static void forward(const tutti_call *c)
{
    tutti_tanh(c->exec, c->count, c->in->x, c->y);
}

static void backward_data(const tutti_call *c)
{
    tutti_tanh_backward(c->exec, c->count, c->dy, c->y, c->in->gate, c->in->dx);
}

const tutti_kind tutti_kind_tanh = {
    .word = "tanh",
    .what = "hyperbolic tangent",
    .is_activation = true,
    .complete = tutti_complete_same,
    .init = TUTTI_INIT_XAVIER,
    .in_place = true,
    .follows = true,
    .takes_gate = true,
    .again = TUTTI_AGAIN_Y,
    .forward = forward,
    .backward_data = backward_data,
};
