/* The mean of a window; padding counts unless it is excluded. */
#include "base/memory.h"
#include "nn/kinds/pool.h"

static const tutti_key keys[] = {
    TUTTI_POOL_KEYS,
    {"exclude-pad", TUTTI_KEY_BOOL, offsetof(tutti_pool_options, exclude_pad), 0, 0, false, NULL},
    {"size", TUTTI_KEY_PAIR, offsetof(tutti_pool_options, size), 1, 4096, false, NULL},
    {.name = NULL}};

/* Windows of one size, if that divides the image; else they differ, and this is the largest. */
static void fit_window(tutti_pool_options *o, const tutti_layer *layer)
{
    const int in[2] = {layer->in.h, layer->in.w};
    for (int i = 0; i < 2; i++)
        o->window.kernel[i] = o->window.stride[i] = tutti_ceil_div(in[i], o->size[i]);
}

static tutti_status complete(tutti_net *net, tutti_layer *layer)
{
    tutti_pool_options *o = layer->options;
    if (!o->size[0]) return tutti_pool_complete(net, layer);
    if (o->global || o->exclude_pad || tutti_pool_has_window(&o->window))
        return tutti_fail(TUTTI_PARSE,
                          "%s: size= is that of the output: leave out kernel=, stride=, pad= and "
                          "global",
                          layer->name);
    fit_window(o, layer);
    layer->out = (tutti_shape){layer->in.c, o->size[0], o->size[1]};
    return TUTTI_OK;
}

static tutti_adaptive_shape adaptive_of(const tutti_layer *layer)
{
    return (tutti_adaptive_shape){layer->in.c, layer->in.h, layer->in.w, layer->out.h,
                                  layer->out.w};
}

/* Are there windows of different sizes? */
static bool is_adaptive(const tutti_layer *layer)
{
    const tutti_pool_options *o = layer->options;
    return o->size[0] && (layer->in.h % o->size[0] || layer->in.w % o->size[1]);
}

static void forward(const tutti_call *c)
{
    const tutti_adaptive_shape adaptive = adaptive_of(c->layer);
    const tutti_pool_shape shape = tutti_pool_layer_shape(c->layer);
    if (is_adaptive(c->layer))
        tutti_adaptive_pool_forward(c->exec, &adaptive, c->out.n, c->in->x, c->y);
    else tutti_average_pool_forward(c->exec, &shape, c->out.n, c->in->x, c->y);
}

static void backward_data(const tutti_call *c)
{
    const tutti_adaptive_shape adaptive = adaptive_of(c->layer);
    const tutti_pool_shape shape = tutti_pool_layer_shape(c->layer);
    const tutti_input *in = c->in;
    if (is_adaptive(c->layer))
        tutti_adaptive_pool_backward(c->exec, &adaptive, c->out.n, c->dy, in->gate, in->dx);
    else tutti_average_pool_backward(c->exec, &shape, c->out.n, c->dy, in->gate, in->dx);
}

const tutti_kind tutti_kind_avgpool = {
    .word = "avgpool",
    .what = "mean of a window",
    .keys = keys,
    .options_size = sizeof(tutti_pool_options),
    .defaults = &tutti_pool_defaults,
    .complete = complete,
    .work = tutti_pool_work,
    .takes_gate = true,
    .forward = forward,
    .backward_data = backward_data,
};
