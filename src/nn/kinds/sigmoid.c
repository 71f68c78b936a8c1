/* 1 / (1 + exp(-x)); its derivative is y (1 - y). */
#include "kernel/ops.h"
#include "nn/kinds/kind.h"

static void forward(const tutti_call *c)
{
    tutti_sigmoid(c->exec, c->out, c->in->x, c->y);
}

static void backward_data(const tutti_call *c)
{
    tutti_sigmoid_backward(c->exec, c->count, c->dy, c->y, c->in->gate, c->in->dx);
}

const tutti_kind tutti_kind_sigmoid = {
    .word = "sigmoid",
    .what = "1 / (1 + exp(-x))",
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
