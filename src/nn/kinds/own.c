/* A loss of the caller's own. It is in no text: it takes the place of the softmax that ends a net.
 * Its outputs are what it is given; gradients wait in what it saves for the backward pass. */
#include <string.h>

#include "base/memory.h"
#include "kernel/ops.h"
#include "nn/kinds/kind.h"
#include "nn/kinds/losses.h"

typedef struct own_options {
    tutti_loss_options loss; /* the weight, as other losses have it first */
    tutti_own_loss own;
} own_options;

static size_t stride_of(const tutti_layer *layer)
{
    return tutti_round_up((size_t)layer->out.c, TUTTI_BLOCK);
}

static size_t saved(const tutti_layer *layer, int samples)
{
    return (size_t)samples * stride_of(layer) * sizeof(float);
}

static void forward(const tutti_call *c)
{
    const own_options *o = c->options;
    const size_t stride = stride_of(c->layer), count = (size_t)c->out.n * stride;
    if (c->y != c->in->x) memcpy(c->y, c->in->x, count * sizeof(float));
    if (c->labels) tutti_label_rank(c->exec.team, c->out, c->in->x, c->labels, c->beaten_by);
    if (!c->labels && !c->training) return;
    float *gradients = c->training ? c->saved : NULL;
    if (gradients) memset(gradients, 0, count * sizeof(float));
    const tutti_loss_call call = {.first = c->first_sample,
                                  .count = c->out.n,
                                  .outputs = c->layer->out.c,
                                  .stride = stride,
                                  .values = c->in->x,
                                  .labels = c->labels,
                                  .losses = c->losses,
                                  .gradients = gradients};
    o->own.find(o->own.user, &call);
    tutti_loss_finish(c, c->losses);
}

/* Of each sample by the outputs, to the mean over the minibatch. What was left behind the outputs
 * is filling, which has no gradient. */
static void backward_data(const tutti_call *c)
{
    const size_t stride = stride_of(c->layer), outputs = (size_t)c->layer->out.c;
    const float scale = (float)tutti_loss_weight(c) / (float)c->batch;
    const float *gradients = c->saved;
    for (size_t i = 0; i < (size_t)c->out.n; i++)
        for (size_t k = 0; k < stride; k++)
            c->in->dx[i * stride + k] = k < outputs ? gradients[i * stride + k] * scale : 0;
}

static const tutti_kind own_loss = {
    .word = "own",
    .what = "a loss of the program's own",
    .keys = tutti_loss_keys,
    .options_size = sizeof(own_options),
    .defaults = &(const own_options){.loss = TUTTI_LOSS_DEFAULTS},
    .is_loss = true,
    .saved = saved,
    .forward = forward,
    .backward_data = backward_data,
};

tutti_status tutti_net_take_loss(tutti_net *net, const tutti_own_loss *loss)
{
    tutti_layer *last = &net->layers[net->layer_count - 1];
    own_options *options = NULL;
    if (last->adds_loss)
        return tutti_fail(TUTTI_ARGUMENT,
                          "%s has several losses: a loss of one's own takes the "
                          "place of a single one",
                          net->name);
    TUTTI_TRY(tutti_alloc(&options, 1, sizeof *options));
    *options = (own_options){.loss = TUTTI_LOSS_DEFAULTS, .own = *loss};
    options->loss.weight = tutti_layer_number(last, "weight", 0);
    tutti_free(last->options);
    last->options = options;
    last->kind = &own_loss;
    return TUTTI_OK;
}
