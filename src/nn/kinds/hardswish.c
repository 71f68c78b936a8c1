/* x min(max(x + 3, 0), 6) / 6: silu made of straight lines. */
#include "kernel/elementwise.h"
#include "nn/kinds/kind.h"

static void forward(const tutti_call *c)
{
    const tutti_elementwise job = {.a = c->in->x, .y = c->y};
    tutti_elementwise_run(c->exec.team, c->exec.row->ops->hardswish, &job, c->count);
}

static void backward_data(const tutti_call *c)
{
    const tutti_elementwise job = {.a = c->dy, .b = c->in->x, .mask = c->in->gate, .y = c->in->dx};
    tutti_elementwise_run(c->exec.team, c->exec.row->ops->hardswish_backward, &job, c->count);
}

const tutti_kind tutti_kind_hardswish = {
    .word = "hardswish",
    .what = "x min(max(x + 3, 0), 6) / 6",
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
