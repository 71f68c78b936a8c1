/* The mean of absolute errors: PyTorch's L1Loss. */
#include "nn/kinds/losses.h"

static void forward(const tutti_call *c)
{
    tutti_value_loss_forward(c, TUTTI_LOSS_ABSOLUTE, 1, 0);
}

static void backward_data(const tutti_call *c)
{
    tutti_value_loss_backward(c, TUTTI_LOSS_ABSOLUTE, 1, 0);
}

const tutti_kind tutti_kind_l1 = {
    .word = "l1",
    .what = "absolute error loss",
    .keys = tutti_loss_keys,
    .options_size = sizeof(tutti_plain_loss),
    .defaults = &tutti_loss_defaults,
    TUTTI_VALUE_LOSS,
    .aims = TUTTI_TARGET_VALUES,
    .forward = forward,
    .backward_data = backward_data,
};
