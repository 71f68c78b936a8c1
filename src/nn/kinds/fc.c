/* Fully connected layer. An image is flattened in torch's order: channel, row, column; it is read
 * as it is stored, and the weights are laid out for that (kernel/layout.h). */
#include "kernel/fc.h"

#include <stdio.h>

#include "base/memory.h"
#include "nn/kinds/weights.h"

typedef struct options {
    int features;
    tutti_weights weights;
} options;

static const options defaults = {.weights = TUTTI_WEIGHTS_DEFAULTS};

static const tutti_key keys[] = {TUTTI_WEIGHTS_KEYS(options, weights), {.name = NULL}};

/* Images of fewer than 16 channels are read as they come where that fills whole vectors. */
static tutti_form form_of(const tutti_net *net, const tutti_layer *layer)
{
    return tutti_layer_reads_compact(net, layer) && tutti_shape_count(layer->in) % TUTTI_BLOCK == 0
               ? TUTTI_FORM_AS_READ
               : TUTTI_FORM_BLOCKED;
}

static tutti_status complete(tutti_net *net, tutti_layer *layer)
{
    options *o = layer->options;
    const size_t in = tutti_shape_count(layer->in);
    layer->form = form_of(net, layer);
    layer->out = (tutti_shape){o->features, 1, 1};
    layer->macs = (uint64_t)in * (uint64_t)o->features;
    const tutti_param weight = {.dim_count = 2,
                                .dims = {o->features, (int)in},
                                .layout = {o->features, layer->in.c, layer->in.h, layer->in.w,
                                           layer->form == TUTTI_FORM_AS_READ}};
    return tutti_layer_add_weights(net, layer, &o->weights, &weight);
}

static bool may_round(const tutti_layer *layer)
{
    (void)layer;
    return true;
}

static void work(const tutti_layer *layer, char text[32])
{
    snprintf(text, 32, "1x1/1%s", tutti_layer_rounds(layer) ? ",bf16" : "");
}

static tutti_status create(void **own, const tutti_layer *layer, const tutti_setup *setup)
{
    const size_t row = layer->form == TUTTI_FORM_AS_READ ? tutti_shape_count(layer->in)
                                                         : tutti_shape_floats(layer->in);
    tutti_fc *fc = NULL;
    TUTTI_TRY(tutti_fc_create(&fc, (int)row, layer->out.c, layer->precision, setup->row,
                              setup->caches, setup->threads));
    *own = fc;
    return TUTTI_OK;
}

static void destroy(void *own)
{
    tutti_fc *fc = own;
    tutti_fc_destroy(&fc);
}

static size_t scratch(const void *own, int samples)
{
    return tutti_fc_scratch(own, samples);
}

static tutti_task task_of(const tutti_call *c)
{
    return (tutti_task){.team = c->exec.team,
                        .scratch = c->scratch,
                        .n = c->out.n,
                        .grains = c->grains,
                        .outputs = c->out.c};
}

static void forward(const tutti_call *c)
{
    const tutti_task task = task_of(c);
    const float *bias = c->layer->param_count > 1 ? c->param[1] : NULL;
    tutti_fc_forward(c->own, &task, c->in->x, c->param[0], bias, c->relu, c->y);
}

static void backward_parameters(const tutti_call *c)
{
    const tutti_task task = task_of(c);
    float *db = c->layer->param_count > 1 ? c->gradient[1] : NULL;
    tutti_fc_backward_weights(c->own, &task, c->in->x, c->dy, c->gradient[0], db);
}

static void backward_data(const tutti_call *c)
{
    const tutti_task task = task_of(c);
    const int first = c->first_channel / TUTTI_FC_LEAF;
    const int end = tutti_ceil_div(c->first_channel + c->out.c, TUTTI_FC_LEAF);
    if (c->in->roots)
        tutti_fc_backward_data_roots(c->own, &task, first, end, c->dy, c->param[0], c->in->roots);
    else tutti_fc_backward_data(c->own, &task, c->dy, c->param[0], c->in->gate, c->in->dx);
}

const tutti_kind tutti_kind_fc = {
    .word = "fc",
    .what = "fully connected layer",
    .argument = {"features", TUTTI_KEY_INT, offsetof(options, features), 1, TUTTI_MAX_FEATURES,
                 true, NULL},
    .wants = "a number of features",
    .keys = keys,
    .options_size = sizeof(options),
    .defaults = &defaults,
    .takes_activation = true,
    .complete = complete,
    .work = work,
    .may_round = may_round,
    .rate = "fc",
    .splits = true,
    .fuses_gate = true,
    .takes_gate = true,
    .again = TUTTI_AGAIN_X_PARAMETERS,
    .create = create,
    .destroy = destroy,
    .scratch = scratch,
    .forward = forward,
    .backward_parameters = backward_parameters,
    .backward_data = backward_data,
};
