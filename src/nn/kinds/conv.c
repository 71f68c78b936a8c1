/* Convolution. */
#include "nn/kinds/conv.h"

#include <stdio.h>
#include <string.h>

#include "nn/kinds/weights.h"
#include "nn/kinds/window.h"

typedef struct options {
    int features, groups, algorithm;
    bool linear;
    tutti_window window;
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
    {"dilation", TUTTI_KEY_PAIR, offsetof(options, window.dilation), 1, 4096, false, NULL},
    {"groups", TUTTI_KEY_INT, offsetof(options, groups), 1, TUTTI_MAX_FEATURES, false, NULL},
    {"linear", TUTTI_KEY_BOOL, offsetof(options, linear), 0, 0, false, NULL},
    TUTTI_ALGORITHM_KEY(options, algorithm),
    TUTTI_WEIGHTS_KEYS(options, weights),
    {.name = NULL}};
// clang-format on

tutti_conv_shape tutti_conv_layer_shape(const tutti_layer *layer)
{
    const options *o = layer->options;
    const tutti_window *w = &o->window;
    return (tutti_conv_shape){
        .c = layer->in.c,
        .h = layer->in.h,
        .w = layer->in.w,
        .k = o->features,
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
        .compact = layer->form == TUTTI_FORM_COMPACT,
        .algorithm = (tutti_conv_algorithm)o->algorithm,
        .precision = layer->precision,
    };
}

static bool is_pointwise(const options *o)
{
    const tutti_window *w = &o->window;
    for (int way = 0; way < 2; way++)
        if (w->kernel[way] > 1 || w->stride[way] > 1 || w->pad[way] > 0 ||
            tutti_window_pad_end(w, way) > 0)
            return false;
    return o->groups == 1;
}

static tutti_status check(const tutti_layer *layer)
{
    const options *o = layer->options;
    if (o->linear && !is_pointwise(o))
        return tutti_fail(TUTTI_PARSE,
                          "%s: linear is a linear layer on each pixel: kernel=1 without groups, "
                          "stride and padding",
                          layer->name);
    if (layer->in.c % o->groups || o->features % o->groups)
        return tutti_fail(TUTTI_SHAPE,
                          "%s: groups=%d must divide its %d input channels and its %d features",
                          layer->name, o->groups, layer->in.c, o->features);
    return TUTTI_OK;
}

tutti_status tutti_conv_settle(tutti_layer *layer, const tutti_conv_shape *shape)
{
    if (!tutti_conv_may(shape, shape->algorithm))
        return tutti_fail(TUTTI_SHAPE,
                          "%s: algorithm=%s is for 3x3 kernels at stride 1, without dilation and "
                          "groups, of an input that is no image of few channels: leave it out, or "
                          "say direct",
                          layer->name, tutti_conv_algorithm_words[shape->algorithm]);
    layer->effort = tutti_conv_effort(shape);
    return TUTTI_OK;
}

void tutti_conv_work(const tutti_window *window, const tutti_conv_shape *shape, char text[32])
{
    enum { ROOM = 32 };
    const tutti_conv_algorithm algorithm = tutti_conv_takes(shape);
    tutti_window_work(window, shape->groups, text);
    const size_t used = strlen(text);
    if (algorithm != TUTTI_CONV_DIRECT)
        snprintf(text + used, ROOM - used, ",%s", tutti_conv_algorithm_words[algorithm]);
    if (tutti_conv_rounds(shape)) snprintf(text + used, ROOM - used, ",bf16");
}

int tutti_conv_asked(const tutti_conv_shape *shape, int algorithm)
{
    const bool is_free = shape->algorithm == TUTTI_CONV_AUTO;
    return is_free && tutti_conv_takes(shape) != TUTTI_CONV_DIRECT ? algorithm
                                                                   : (int)shape->algorithm;
}

static tutti_status complete(tutti_net *net, tutti_layer *layer)
{
    options *o = layer->options;
    const int r = o->window.kernel[0], s = o->window.kernel[1];
    TUTTI_TRY(tutti_window_slide(&o->window, layer));
    TUTTI_TRY(check(layer));
    const int channels = layer->in.c / o->groups;
    layer->out.c = o->features;
    layer->form = tutti_layer_reads_compact(net, layer) ? TUTTI_FORM_COMPACT : TUTTI_FORM_BLOCKED;
    layer->macs = (uint64_t)o->features * (uint64_t)channels * (uint64_t)(r * s) *
                  (uint64_t)layer->out.h * (uint64_t)layer->out.w;
    const tutti_conv_shape shape = tutti_conv_layer_shape(layer);
    TUTTI_TRY(tutti_conv_settle(layer, &shape));
    const tutti_param weight = {
        .dim_count = o->linear ? 2 : 4,
        .dims = {o->features, channels, r, s},
        .layout = {o->features, channels, r, s, tutti_conv_has_compact_weights(&shape)}};
    return tutti_layer_add_weights(net, layer, &o->weights, &weight);
}

static void work(const tutti_layer *layer, char text[32])
{
    const options *o = layer->options;
    const tutti_conv_shape shape = tutti_conv_layer_shape(layer);
    tutti_conv_work(&o->window, &shape, text);
}

bool tutti_conv_may_round(tutti_conv_shape shape)
{
    shape.precision = TUTTI_IN_BF16;
    return tutti_conv_rounds(&shape);
}

static bool may_round(const tutti_layer *layer)
{
    return tutti_conv_may_round(tutti_conv_layer_shape(layer));
}

static void convolve(tutti_layer *layer, int algorithm)
{
    options *o = layer->options;
    tutti_conv_shape shape = tutti_conv_layer_shape(layer);
    o->algorithm = tutti_conv_asked(&shape, algorithm);
    shape.algorithm = (tutti_conv_algorithm)o->algorithm;
    layer->effort = tutti_conv_effort(&shape);
}

tutti_status tutti_conv_own(void **own, const tutti_conv_shape *shape, const tutti_setup *setup)
{
    tutti_conv *conv = NULL;
    TUTTI_TRY(
        tutti_conv_create(&conv, shape, setup->row, setup->caches, setup->samples, setup->threads));
    *own = conv;
    return TUTTI_OK;
}

static tutti_status create(void **own, const tutti_layer *layer, const tutti_setup *setup)
{
    const tutti_conv_shape shape = tutti_conv_layer_shape(layer);
    return tutti_conv_own(own, &shape, setup);
}

void tutti_conv_disown(void *own)
{
    tutti_conv *conv = own;
    tutti_conv_destroy(&conv);
}

size_t tutti_conv_own_scratch(const void *own, int samples)
{
    (void)samples;
    return tutti_conv_scratch(own);
}

tutti_task tutti_conv_task(const tutti_call *c)
{
    return (tutti_task){
        .team = c->exec.team, .scratch = c->scratch, .n = c->out.n, .grains = c->grains};
}

static void forward(const tutti_call *c)
{
    const tutti_task task = tutti_conv_task(c);
    const float *bias = c->layer->param_count > 1 ? c->param[1] : NULL;
    tutti_conv_forward(c->own, &task, c->in->x, c->param[0], bias, c->relu, c->y);
}

static void backward_parameters(const tutti_call *c)
{
    const tutti_task task = tutti_conv_task(c);
    float *db = c->layer->param_count > 1 ? c->gradient[1] : NULL;
    tutti_conv_backward_weights(c->own, &task, c->in->x, c->dy, c->gradient[0], db);
}

static void backward_data(const tutti_call *c)
{
    const tutti_task task = tutti_conv_task(c);
    tutti_conv_backward_data(c->own, &task, c->dy, c->param[0], c->in->gate, c->in->dx);
}

const tutti_kind tutti_kind_conv = {
    .word = "conv",
    .what = "convolution",
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
    .takes_gate = true,
    .again = TUTTI_AGAIN_X_PARAMETERS,
    .create = create,
    .destroy = tutti_conv_disown,
    .scratch = tutti_conv_own_scratch,
    .forward = forward,
    .backward_parameters = backward_parameters,
    .backward_data = backward_data,
};
