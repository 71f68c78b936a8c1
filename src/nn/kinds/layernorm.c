/* Layer normalisation: the channels of each pixel are brought to mean 0 and variance 1, then scaled
 * and shifted (Ba, Kiros and Hinton, "Layer normalization", 2016; over the channels of images as in
 * Liu et al., "A ConvNet for the 2020s", 2022). */
#include "base/memory.h"
#include "kernel/norm.h"
#include "kernel/pixel_norm.h"
#include "nn/kinds/norm.h"

typedef struct options {
    double eps;
} options;

static const options defaults = {1e-5};

static const tutti_key keys[] = {
    {"eps", TUTTI_KEY_REAL, offsetof(options, eps), 1e-30, 1, false, NULL}, {.name = NULL}};

enum { WEIGHT, BIAS };

static tutti_status complete(tutti_net *net, tutti_layer *layer)
{
    layer->out = layer->in;
    return tutti_layer_add_norm(net, layer, false);
}

static size_t saved(const tutti_layer *layer, int samples)
{
    const tutti_extent extent = {samples, layer->out.c, layer->out.h * layer->out.w};
    return (size_t)samples * TUTTI_PIXEL_ROWS * tutti_pixel_row(extent) * sizeof(float);
}

typedef struct own {
    size_t leaf_bytes;
} own;

static tutti_status create(void **out, const tutti_layer *layer, const tutti_setup *setup)
{
    own *o = NULL;
    (void)setup;
    TUTTI_TRY(tutti_alloc(&o, 1, sizeof *o));
    o->leaf_bytes = tutti_norm_pair(layer->out.c) * sizeof(double);
    *out = o;
    return TUTTI_OK;
}

static void destroy(void *o)
{
    tutti_free(o);
}

static size_t scratch(const void *o, int samples)
{
    return (size_t)samples * ((const own *)o)->leaf_bytes;
}

static tutti_pixel_norm norm_of(const tutti_call *c)
{
    return (tutti_pixel_norm){((const options *)c->options)->eps, c->param[WEIGHT], c->param[BIAS]};
}

static void forward(const tutti_call *c)
{
    const tutti_pixel_norm norm = norm_of(c);
    tutti_pixel_norm_forward(c->exec, c->out, &norm, c->in->x, c->training ? c->saved : NULL, c->y);
}

static void backward_parameters(const tutti_call *c)
{
    tutti_pixel_norm_gradients(c->exec, c->out, c->grains, c->saved, c->in->x, c->dy, c->scratch,
                               c->gradient[WEIGHT], c->gradient[BIAS]);
}

static void backward_data(const tutti_call *c)
{
    const tutti_pixel_norm norm = norm_of(c);
    tutti_pixel_norm_backward(c->exec, c->out, &norm, c->saved, c->in->x, c->dy,
                              c->in->gate != NULL, c->in->dx);
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
    .destroy = destroy,
    .scratch = scratch,
    .saved = saved,
    .forward = forward,
    .backward_parameters = backward_parameters,
    .backward_data = backward_data,
};
