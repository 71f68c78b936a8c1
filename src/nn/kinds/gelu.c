/* x times the share of a normal distribution below x: with erf, not its approximation by tanh. */
#include "kernel/elementwise.h"
#include "nn/kinds/kind.h"

static void forward(const tutti_call *c)
{
    const tutti_elementwise job = {.a = c->in->x, .y = c->y};
    tutti_elementwise_run(c->exec.team, c->exec.row->ops->gelu, &job, c->count);
}

static void backward_data(const tutti_call *c)
{
    const tutti_elementwise job = {.a = c->dy, .b = c->in->x, .mask = c->in->gate, .y = c->in->dx};
    tutti_elementwise_run(c->exec.team, c->exec.row->ops->gelu_backward, &job, c->count);
}

const tutti_kind tutti_kind_gelu = {
    .word = "gelu",
    .what = "x times the normal share below x",
    .is_activation = true,
    .complete = tutti_complete_same,
    .init = TUTTI_INIT_HE,
    .in_place = true, /* where nothing is trained; dx always */
    .follows = true,
    .takes_gate = true,
    .again = TUTTI_AGAIN_X_DATA,
    .forward = forward,
    .backward_data = backward_data,
};
