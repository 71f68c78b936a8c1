/* Layer normalisation (Ba, Kiros and Hinton, "Layer normalization", 2016): the channels of each
 * pixel are brought to mean 0 and variance 1, then scaled and shifted (as in Liu et al., "A ConvNet
 * for the 2020s", 2022); or, whole, all values of a sample are, and each is scaled and shifted by
 * itself. */
#include "kernel/norm.h"
#include "kernel/pixel_norm.h"
#include "kernel/value_norm.h"
#include "nn/kinds/norm.h"

typedef struct options {
    bool whole;
    double eps;
} options;

static const options defaults = {.eps = 1e-5};

static const tutti_key keys[] = {
    {"whole", TUTTI_KEY_BOOL, offsetof(options, whole), 0, 0, false, NULL},
    {"eps", TUTTI_KEY_REAL, offsetof(options, eps), 1e-30, 1, false, NULL},
    {.name = NULL}};

enum { WEIGHT, BIAS };

static bool is_whole(const tutti_layer *layer)
{
    return ((const options *)layer->options)->whole;
}

static tutti_status complete(tutti_net *net, tutti_layer *layer)
{
    layer->out = layer->in;
    return tutti_layer_add_norm(net, layer, is_whole(layer));
}

static size_t saved(const tutti_layer *layer, int samples)
{
    const tutti_extent extent = {samples, layer->out.c, layer->out.h * layer->out.w};
    return is_whole(layer)
               ? tutti_group_norm_saved(layer, samples)
               : (size_t)samples * TUTTI_PIXEL_ROWS * tutti_pixel_row(extent) * sizeof(float);
}

static tutti_status create(void **out, const tutti_layer *layer, const tutti_setup *setup)
{
    (void)setup;
    return tutti_norm_own_create(out, is_whole(layer)
                                          ? tutti_group_norm_scratch(layer)
                                          : tutti_norm_pair(layer->out.c) * sizeof(double));
}

/* ---- whole ---- */

static tutti_group_norm group_of(const tutti_call *c)
{
    return (tutti_group_norm){.groups = 1, .eps = ((const options *)c->options)->eps};
}

static tutti_value_norm values_of(const tutti_call *c)
{
    return (tutti_value_norm){c->param[WEIGHT], c->param[BIAS]};
}

static void whole_forward(const tutti_call *c)
{
    const tutti_group_norm group = group_of(c);
    const tutti_value_norm norm = values_of(c);
    const tutti_group_norm_places at = tutti_group_norm_at(c);
    tutti_norm_moments(c->exec, c->out, c->in->x, at.leaves);
    tutti_group_norm_coefficients(c->exec, c->out, &group, at.leaves, at.states, at.rows);
    tutti_value_norm_forward(c->exec, c->out, &norm, at.rows, c->in->x, c->y);
}

static void whole_parameters(const tutti_call *c)
{
    tutti_value_norm_gradients(c->exec, c->out, c->grains, tutti_group_norm_at(c).states, c->in->x,
                               c->dy, c->gradient[WEIGHT], c->gradient[BIAS]);
}

static void whole_data(const tutti_call *c)
{
    const tutti_group_norm group = group_of(c);
    const tutti_value_norm norm = values_of(c);
    const tutti_group_norm_places at = tutti_group_norm_at(c);
    tutti_value_norm_sums(c->exec, c->out, &norm, at.states, c->in->x, c->dy, at.leaves);
    tutti_group_norm_back_coefficients(c->exec, c->out, &group, at.states, at.leaves, at.rows);
    tutti_value_norm_backward(c->exec, c->out, &norm, at.rows, c->in->x, c->dy, c->in->gate != NULL,
                              c->in->dx);
}

/* ---- the channels of each pixel ---- */

static tutti_pixel_norm pixel_of(const tutti_call *c)
{
    return (tutti_pixel_norm){((const options *)c->options)->eps, c->param[WEIGHT], c->param[BIAS]};
}

static void pixel_forward(const tutti_call *c)
{
    const tutti_pixel_norm norm = pixel_of(c);
    tutti_pixel_norm_forward(c->exec, c->out, &norm, c->in->x, c->training ? c->saved : NULL, c->y);
}

static void pixel_parameters(const tutti_call *c)
{
    tutti_pixel_norm_gradients(c->exec, c->out, c->grains, c->saved, c->in->x, c->dy, c->scratch,
                               c->gradient[WEIGHT], c->gradient[BIAS]);
}

static void pixel_data(const tutti_call *c)
{
    const tutti_pixel_norm norm = pixel_of(c);
    tutti_pixel_norm_backward(c->exec, c->out, &norm, c->saved, c->in->x, c->dy,
                              c->in->gate != NULL, c->in->dx);
}

/* ---- either ---- */

static void forward(const tutti_call *c)
{
    (is_whole(c->layer) ? whole_forward : pixel_forward)(c);
}

static void backward_parameters(const tutti_call *c)
{
    (is_whole(c->layer) ? whole_parameters : pixel_parameters)(c);
}

static void backward_data(const tutti_call *c)
{
    (is_whole(c->layer) ? whole_data : pixel_data)(c);
}

const tutti_kind tutti_kind_layernorm = {
    .word = "layernorm",
    .what = "layer normalisation",
    .keys = keys,
    .options_size = sizeof(options),
    .defaults = &defaults,
    .takes_activation = true,
    .complete = complete,
    .takes_gate = true,
    .again = TUTTI_AGAIN_X_PARAMETERS | TUTTI_AGAIN_X_DATA,
    .create = create,
    .destroy = tutti_norm_own_destroy,
    .scratch = tutti_norm_own_scratch,
    .saved = saved,
    .forward = forward,
    .backward_parameters = backward_parameters,
    .backward_data = backward_data,
};
