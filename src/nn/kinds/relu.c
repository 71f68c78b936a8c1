/* max(x, 0). It has no backward pass: whoever reads its output zeroes the gradient where the output
 * is not positive. */
#include "kernel/ops.h"
#include "nn/kinds/kind.h"

static void forward(const tutti_call *c)
{
    tutti_relu(c->exec, c->count, c->in->x, c->y);
}

static void backward_data(const tutti_call *c)
{
    if (c->in->dx != c->dy) tutti_scale(c->exec, c->count, 1, c->dy, c->in->dx);
}

const tutti_kind tutti_kind_relu = {
    .word = "relu",
    .what = "max(x, 0)",
    .is_activation = true,
    .complete = tutti_complete_same,
    .init = TUTTI_INIT_HE,
    .in_place = true,
    .keeps_sign = true,
    .follows = true,
    .is_gate = true,
    .takes_gate = true, /* readers of y have masked dy: y > 0 only where x > 0 */
    .forward = forward,
    .backward_data = backward_data,
};
