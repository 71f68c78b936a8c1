/* min(max(x + 3, 0), 6) / 6; its derivative is 1/6 where 0 < y < 1. */
#include "kernel/elementwise.h"
#include "nn/kinds/kind.h"

static void forward(const tutti_call *c)
{
    tutti_elementwise_channels(c->exec.team, c->exec.row->ops->hardsigmoid, c->out, c->in->x, c->y);
}

static void backward_data(const tutti_call *c)
{
    const tutti_elementwise job = {.a = c->dy, .b = c->y, .mask = c->in->gate, .y = c->in->dx};
    tutti_elementwise_run(c->exec.team, c->exec.row->ops->hardsigmoid_backward, &job, c->count);
}

const tutti_kind tutti_kind_hardsigmoid = {
    .word = "hardsigmoid",
    .what = "min(max(x + 3, 0), 6) / 6",
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
