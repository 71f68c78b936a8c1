/* Transposed convolution (torch's ConvTranspose2d): the gradient, by its input, of a convolution
 * that would make this layer's input of its output. So that convolution's kernels do the work, and
 * its order of sums is this layer's: backward-data forward, forward backward, and its weights have
 * the same layout, [in][out/groups][height][width]. */
#include "kernel/planes.h"
#include "nn/kinds/conv.h"
#include "nn/kinds/weights.h"
#include "nn/kinds/window.h"

typedef struct options {
    int features, groups, algorithm;
    tutti_window window;
    int output_pad[2];
    tutti_weights weights;
} options;

static const options defaults = {
    .groups = 1,
    .window = {.stride = {1, 1}, .dilation = {1, 1}, .pad_end = {-1, -1}},
    .weights = TUTTI_WEIGHTS_DEFAULTS,
};

// clang-format off
static const tutti_key keys[] = {
    TUTTI_WINDOW_KEYS(options, window),
    {"output-pad", TUTTI_KEY_PAIR, offsetof(options, output_pad), 0, 4096, false, NULL},
    {"dilation", TUTTI_KEY_PAIR, offsetof(options, window.dilation), 1, 4096, false, NULL},
    {"groups", TUTTI_KEY_INT, offsetof(options, groups), 1, TUTTI_MAX_FEATURES, false, NULL},
    TUTTI_ALGORITHM_KEY(options, algorithm),
    TUTTI_WEIGHTS_KEYS(options, weights),
    {.name = NULL}};
// clang-format on

/* ---- description ---- */

/* The convolution that this is the gradient of. */
static tutti_conv_shape adjoint(const tutti_layer *layer)
{
    const options *o = layer->options;
    const tutti_window *w = &o->window;
    return (tutti_conv_shape){.c = layer->out.c,
                              .h = layer->out.h,
                              .w = layer->out.w,
                              .k = layer->in.c,
                              .r = w->kernel[0],
                              .s = w->kernel[1],
                              .stride_h = w->stride[0],
                              .stride_w = w->stride[1],
                              .dilation_h = w->dilation[0],
                              .dilation_w = w->dilation[1],
                              .pad_top = w->pad[0],
                              .pad_bottom = tutti_window_pad_end(w, 0),
                              .pad_left = w->pad[1],
                              .pad_right = tutti_window_pad_end(w, 1),
                              .groups = o->groups,
                              .algorithm = (tutti_conv_algorithm)o->algorithm,
                              .precision = layer->precision};
}

static tutti_status check(const options *o, const tutti_layer *layer)
{
    const tutti_window *w = &o->window;
    if (!w->kernel[0])
        return tutti_fail(TUTTI_PARSE, "%s needs a window: kernel=N or kernel=HxW", layer->name);
    if (layer->in.c % o->groups || o->features % o->groups)
        return tutti_fail(TUTTI_SHAPE,
                          "%s: groups=%d must divide its %d input channels and its %d features",
                          layer->name, o->groups, layer->in.c, o->features);
    if (o->output_pad[0] >= w->stride[0] || o->output_pad[1] >= w->stride[1])
        return tutti_fail(TUTTI_SHAPE,
                          "%s: output-pad=%dx%d must be smaller than the stride, %dx%d: with more, "
                          "other pixels would be reached",
                          layer->name, o->output_pad[0], o->output_pad[1], w->stride[0],
                          w->stride[1]);
    return TUTTI_OK;
}

static long long side(const options *o, int way, int in)
{
    const tutti_window *w = &o->window;
    return (long long)(in - 1) * w->stride[way] - w->pad[way] - tutti_window_pad_end(w, way) +
           (long long)(w->kernel[way] - 1) * w->dilation[way] + 1 + o->output_pad[way];
}

static tutti_status set_size(const options *o, tutti_layer *layer)
{
    const long long h = side(o, 0, layer->in.h), w = side(o, 1, layer->in.w);
    const long long most = 1 << 20;
    if (h < 1 || w < 1 || h > most || w > most)
        return tutti_fail(
            TUTTI_SHAPE,
            "%s: it would make images of %lldx%lld, which is no size: look at kernel, "
            "stride and pad",
            layer->name, h, w);
    layer->out = (tutti_shape){o->features, (int)h, (int)w};
    return TUTTI_OK;
}

static tutti_status complete(tutti_net *net, tutti_layer *layer)
{
    options *o = layer->options;
    const int r = o->window.kernel[0], s = o->window.kernel[1];
    TUTTI_TRY(check(o, layer));
    TUTTI_TRY(set_size(o, layer));
    tutti_window_settle(&o->window);
    const int features = o->features / o->groups;
    layer->macs = (uint64_t)layer->in.c * (uint64_t)features * (uint64_t)(r * s) *
                  (uint64_t)layer->in.h * (uint64_t)layer->in.w;
    const tutti_conv_shape shape = adjoint(layer);
    TUTTI_TRY(tutti_conv_settle(layer, &shape));
    const tutti_param weight = {
        .dim_count = 4,
        .dims = {layer->in.c, features, r, s},
        .layout = {layer->in.c, features, r, s, tutti_conv_has_compact_weights(&shape)}};
    return tutti_layer_add_weights(net, layer, &o->weights, &weight);
}

static void work(const tutti_layer *layer, char text[32])
{
    const options *o = layer->options;
    const tutti_conv_shape shape = adjoint(layer);
    tutti_conv_work(&o->window, &shape, text);
}

static bool may_round(const tutti_layer *layer)
{
    return tutti_conv_may_round(adjoint(layer));
}

static void convolve(tutti_layer *layer, int algorithm)
{
    options *o = layer->options;
    tutti_conv_shape shape = adjoint(layer);
    o->algorithm = tutti_conv_asked(&shape, algorithm);
    shape.algorithm = (tutti_conv_algorithm)o->algorithm;
    layer->effort = tutti_conv_effort(&shape);
}

/* ---- running ---- */

static tutti_status create(void **own, const tutti_layer *layer, const tutti_setup *setup)
{
    const tutti_conv_shape shape = adjoint(layer);
    return tutti_conv_own(own, &shape, setup);
}

static bool has_bias(const tutti_call *c)
{
    return c->layer->param_count > 1;
}

static void forward(const tutti_call *c)
{
    const tutti_task task = tutti_conv_task(c);
    tutti_conv_backward_data(c->own, &task, c->in->x, c->param[0], NULL, c->y);
    if (has_bias(c) || c->relu)
        tutti_shift_planes(c->exec, c->out, has_bias(c) ? c->param[1] : NULL, c->relu, c->y);
}

static void backward_parameters(const tutti_call *c)
{
    const tutti_task task = tutti_conv_task(c);
    tutti_conv_backward_weights(c->own, &task, c->dy, c->in->x, c->gradient[0], NULL);
    if (has_bias(c)) tutti_dot_grains(c->exec, c->out, c->grains, c->dy, NULL, c->gradient[1]);
}

static void backward_data(const tutti_call *c)
{
    const tutti_task task = tutti_conv_task(c);
    tutti_conv_forward(c->own, &task, c->dy, c->param[0], NULL, false, c->in->dx);
}

const tutti_kind tutti_kind_deconv = {
    .word = "deconv",
    .what = "transposed convolution",
    .argument = {"features", TUTTI_KEY_INT, offsetof(options, features), 1, TUTTI_MAX_FEATURES,
                 true, NULL},
    .wants = "a number of features",
    .keys = keys,
    .options_size = sizeof(options),
    .defaults = &defaults,
    .takes_activation = true,
    .complete = complete,
    .work = work,
    .convolve = convolve,
    .may_round = may_round,
    .rate = "conv",
    .fuses_gate = true,
    .again = TUTTI_AGAIN_X_PARAMETERS,
    .create = create,
    .destroy = tutti_conv_disown,
    .scratch = tutti_conv_own_scratch,
    .forward = forward,
    .backward_parameters = backward_parameters,
    .backward_data = backward_data,
};
