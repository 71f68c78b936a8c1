/* Softmax with cross-entropy: a loss. A net may have several, as GoogLeNet has: those of one
 * target see the same labels, and what is trained on is the sum of all, each times its weight. */
#include <stddef.h>

#include "kernel/ops.h"
#include "nn/kinds/kind.h"
#include "nn/kinds/losses.h"

static tutti_status complete(tutti_net *net, tutti_layer *layer)
{
    if (layer->in.h != 1 || layer->in.w != 1)
        return tutti_fail(TUTTI_SHAPE,
                          "%s: softmax wants one value per class, its input is %dx%dx%d; put an fc "
                          "or an avgpool global before it, or take pixelsoftmax, which tells the "
                          "class of each pixel",
                          layer->name, layer->in.c, layer->in.h, layer->in.w);
    return tutti_loss_complete(net, layer);
}

static void forward(const tutti_call *c)
{
    float *losses = tutti_loss_place(c);
    const tutti_targets targets = tutti_loss_targets(c);
    tutti_softmax(c->exec, c->out, c->in->x, c->labels, c->y, losses);
    if (c->labels) tutti_label_rank(c->exec.team, c->out, c->in->x, c->labels, c->beaten_by);
    if (losses && !tutti_targets_are_plain(&targets))
        tutti_targets_loss(c->exec, c->out, c->in->x, &targets, losses);
    tutti_loss_finish(c, losses);
}

static void backward_data(const tutti_call *c)
{
    const double weight = tutti_loss_weight(c);
    const tutti_targets targets = tutti_loss_targets(c);
    if (tutti_targets_are_plain(&targets))
        tutti_softmax_backward(c->exec, c->out, c->y, c->labels, (float)weight / (float)c->batch,
                               c->in->dx);
    else
        tutti_targets_backward(c->exec, c->out, c->y, &targets, weight / tutti_loss_divisor(c),
                               c->in->dx);
}

const tutti_kind tutti_kind_softmax = {
    .word = "softmax",
    .what = "softmax and cross-entropy loss",
    .keys = tutti_loss_keys,
    .options_size = sizeof(tutti_plain_loss),
    .defaults = &tutti_loss_defaults,
    .complete = complete,
    .is_loss = true,
    .aims = TUTTI_TARGET_CLASS,
    .again = TUTTI_AGAIN_Y,
    .saved = tutti_loss_saved,
    .forward = forward,
    .backward_data = backward_data,
};
