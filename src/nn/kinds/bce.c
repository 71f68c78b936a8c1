/* Each class by itself, of which a sample may have several: PyTorch's BCEWithLogitsLoss. */
#include "nn/kinds/losses.h"

static void forward(const tutti_call *c)
{
    tutti_value_loss_forward(c, TUTTI_LOSS_CROSSED, 1, 0);
}

static void backward_data(const tutti_call *c)
{
    tutti_value_loss_backward(c, TUTTI_LOSS_CROSSED, 1, 0);
}

const tutti_kind tutti_kind_bce = {
    .word = "bce",
    .what = "sigmoid and cross-entropy loss, class by class",
    .keys = tutti_loss_keys,
    .options_size = sizeof(tutti_plain_loss),
    .defaults = &tutti_loss_defaults,
    TUTTI_VALUE_LOSS,
    .aims = TUTTI_TARGET_SHARES,
    .forward = forward,
    .backward_data = backward_data,
};
