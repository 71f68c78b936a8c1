/* min(max(x, 0), 6); its derivative is 1 where 0 < y < 6. */
#include "kernel/elementwise.h"
#include "nn/kinds/kind.h"

static void forward(const tutti_call *c)
{
    const tutti_elementwise job = {.a = c->in->x, .y = c->y};
    tutti_elementwise_run(c->exec.team, c->exec.row->ops->relu6, &job, c->count);
}

static void backward_data(const tutti_call *c)
{
    const tutti_elementwise job = {.a = c->dy, .b = c->y, .mask = c->in->gate, .y = c->in->dx};
    tutti_elementwise_run(c->exec.team, c->exec.row->ops->relu6_backward, &job, c->count);
}

const tutti_kind tutti_kind_relu6 = {
    .word = "relu6",
    .what = "min(max(x, 0), 6)",
    .is_activation = true,
    .complete = tutti_complete_same,
    .init = TUTTI_INIT_HE,
    .in_place = true,
    .keeps_sign = true,
    .follows = true,
    .takes_gate = true,
    .again = TUTTI_AGAIN_Y,
    .forward = forward,
    .backward_data = backward_data,
};
