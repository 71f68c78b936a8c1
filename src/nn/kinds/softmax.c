/* Softmax with cross-entropy: a loss. A net may have several, as GoogLeNet has: all of them see the
 * same labels, and what is trained on is the sum of them, each times its weight. The last one is
 * the net's answer. */
#include <stddef.h>

#include "kernel/ops.h"
#include "nn/kinds/kind.h"
#include "nn/kinds/losses.h"

static tutti_status complete(tutti_net *net, tutti_layer *layer)
{
    (void)net;
    layer->out = layer->in;
    if (layer->in.h != 1 || layer->in.w != 1)
        return tutti_fail(TUTTI_SHAPE,
                          "%s: softmax wants one value per class, its input is %dx%dx%d; put an fc "
                          "or an avgpool global before it",
                          layer->name, layer->in.c, layer->in.h, layer->in.w);
    return TUTTI_OK;
}

/* Of the samples of this call. */
static tutti_targets targets_of(const tutti_call *c)
{
    tutti_targets t = c->judging->targets;
    const int skipped = c->first_sample - c->judging->first_sample;
    t.labels = c->labels;
    if (t.others) t.others += skipped, t.shares += skipped;
    return t;
}

/* Evaluations see labels alone. */
static bool is_plain(const tutti_call *c)
{
    return !c->training || tutti_targets_are_plain(&c->judging->targets);
}

static void forward(const tutti_call *c)
{
    float *losses = tutti_loss_place(c);
    tutti_softmax(c->exec, c->out, c->in->x, c->labels, c->y, losses);
    if (c->labels) tutti_label_rank(c->exec.team, c->out, c->in->x, c->labels, c->beaten_by);
    if (losses && !is_plain(c)) {
        const tutti_targets targets = targets_of(c);
        tutti_targets_loss(c->exec, c->out, c->in->x, &targets, losses);
    }
    tutti_loss_finish(c, losses);
}

static void backward_data(const tutti_call *c)
{
    const double weight = tutti_loss_weight(c);
    if (is_plain(c)) {
        tutti_softmax_backward(c->exec, c->out, c->y, c->labels, (float)weight / (float)c->batch,
                               c->in->dx);
        return;
    }
    const tutti_targets targets = targets_of(c);
    tutti_targets_backward(c->exec, c->out, c->y, &targets, weight / c->judging->divisor,
                           c->in->dx);
}

const tutti_kind tutti_kind_softmax = {
    .word = "softmax",
    .what = "softmax and cross-entropy loss",
    .keys = tutti_loss_keys,
    .options_size = sizeof(tutti_loss_options),
    .defaults = &tutti_loss_defaults,
    .complete = complete,
    .is_loss = true,
    .again = TUTTI_AGAIN_Y,
    .saved = tutti_loss_saved,
    .forward = forward,
    .backward_data = backward_data,
};
