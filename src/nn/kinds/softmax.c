/* Softmax with cross-entropy: the loss. */
#include "kernel/ops.h"
#include "nn/kinds/kind.h"

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

static void forward(const tutti_call *c)
{
    tutti_softmax(c->exec, c->out, c->in->x, c->labels, c->y, c->labels ? c->losses : NULL);
    if (c->labels) tutti_label_rank(c->exec.team, c->out, c->in->x, c->labels, c->beaten_by);
}

static void backward_data(const tutti_call *c)
{
    tutti_softmax_backward(c->exec, c->out, c->y, c->labels, 1.0f / (float)c->batch, c->in->dx);
}

const tutti_kind tutti_kind_softmax = {
    .word = "softmax",
    .what = "softmax and cross-entropy loss",
    .complete = complete,
    .is_loss = true,
    .again = TUTTI_AGAIN_Y,
    .forward = forward,
    .backward_data = backward_data,
};
