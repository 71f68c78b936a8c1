/* Each channel times a trained factor: the end of a residual branch (Touvron et al., "Going deeper
 * with image transformers", 2021). */
#include "kernel/planes.h"
#include "nn/kinds/kind.h"

typedef struct options {
    double init;
} options;

static const options defaults = {1e-6};

static const tutti_key keys[] = {
    {"init", TUTTI_KEY_REAL, offsetof(options, init), -1e3, 1e3, false, NULL}, {.name = NULL}};

static tutti_status complete(tutti_net *net, tutti_layer *layer)
{
    const int c = layer->in.c;
    const float init = (float)((const options *)layer->options)->init;
    layer->out = layer->in;
    return tutti_layer_add_param(net, "layer_scale",
                                 &(tutti_param){.dim_count = 3,
                                                .dims = {c, 1, 1},
                                                .layout = {c, 1, 1, 1, true},
                                                .fill = {TUTTI_INIT_CONSTANT, init}});
}

static tutti_factors factors_of(const tutti_call *c)
{
    return (tutti_factors){c->param[0], 0, TUTTI_BLOCK};
}

static void forward(const tutti_call *c)
{
    tutti_scale_planes(c->exec, c->out, factors_of(c), c->in->x, NULL, c->y);
}

static void backward_parameters(const tutti_call *c)
{
    tutti_dot_grains(c->exec, c->out, c->grains, c->dy, c->in->x, c->gradient[0]);
}

static void backward_data(const tutti_call *c)
{
    tutti_scale_planes(c->exec, c->out, factors_of(c), c->dy, c->in->gate, c->in->dx);
}

const tutti_kind tutti_kind_layerscale = {
    .word = "layerscale",
    .what = "a trained factor for each channel",
    .keys = keys,
    .options_size = sizeof(options),
    .defaults = &defaults,
    .complete = complete,
    .takes_gate = true,
    .again = TUTTI_AGAIN_X_PARAMETERS,
    .forward = forward,
    .backward_parameters = backward_parameters,
    .backward_data = backward_data,
};
