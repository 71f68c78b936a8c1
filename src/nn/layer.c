#include "nn/layer.h"

#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "kernel/pool.h"

enum { MAX_VALUES = 1 << 30 }; /* of one sample in one layer */

static tutti_shape shape_of(const tutti_net *net, int from)
{
    return from == TUTTI_NET_INPUT ? net->input : net->layers[from].out;
}

static const char *name_of(const tutti_net *net, int from)
{
    return from == TUTTI_NET_INPUT ? "input" : net->layers[from].name;
}

static int or_else(int value, int otherwise)
{
    return value ? value : otherwise;
}

/* ---- windows ---- */

static void set_window(tutti_layer *layer, const tutti_layer_spec *spec, int default_stride[2])
{
    const int full[2] = {layer->in.h, layer->in.w};
    const int *kernel = spec->global ? full : spec->kernel;
    layer->window = (tutti_conv_shape){
        .c = layer->in.c,
        .h = layer->in.h,
        .w = layer->in.w,
        .r = kernel[0],
        .s = kernel[1],
        .stride_h = or_else(spec->stride[0], default_stride[0]),
        .stride_w = or_else(spec->stride[1], default_stride[1]),
        .dilation_h = or_else(spec->dilation[0], 1),
        .dilation_w = or_else(spec->dilation[1], 1),
        .pad_top = spec->pad[0],
        .pad_bottom = spec->pad[0],
        .pad_left = spec->pad[1],
        .pad_right = spec->pad[1],
    };
}

/* Checks that the window fits and derives height and width of the output. */
static tutti_status slide_window(tutti_layer *layer)
{
    const tutti_conv_shape *w = &layer->window;
    const int reach_h = (w->r - 1) * w->dilation_h + 1, reach_w = (w->s - 1) * w->dilation_w + 1;
    const int padded_h = w->h + 2 * w->pad_top, padded_w = w->w + 2 * w->pad_left;
    if (!w->r)
        return tutti_fail(TUTTI_PARSE, "%s needs a window: kernel=N or kernel=HxW", layer->name);
    if (reach_h > padded_h || reach_w > padded_w)
        return tutti_fail(TUTTI_SHAPE, "%s: a window of %dx%d does not fit in its input of %dx%d%s",
                          layer->name, reach_h, reach_w, padded_h, padded_w,
                          w->pad_top || w->pad_left ? " (with padding)" : "");
    layer->out.h = (padded_h - reach_h) / w->stride_h + 1;
    layer->out.w = (padded_w - reach_w) / w->stride_w + 1;
    return TUTTI_OK;
}

/* ---- parameters ---- */

static tutti_status add_param(tutti_net *net, bool is_bias, int dim_count, const int dims[4],
                              size_t stored)
{
    const int layer = net->layer_count - 1;
    tutti_param *param = &net->params[net->param_count];
    *param = (tutti_param){.layer = layer,
                           .is_bias = is_bias,
                           .dim_count = dim_count,
                           .count = 1,
                           .offset = net->param_floats,
                           .stored = stored};
    for (int i = 0; i < dim_count; i++) {
        param->dims[i] = dims[i];
        param->count *= (size_t)dims[i];
    }
    const char *name = net->layers[layer].name, *suffix = is_bias ? ".bias" : ".weight";
    const size_t bytes = strlen(name) + strlen(suffix) + 1;
    TUTTI_TRY(tutti_alloc(&param->name, bytes, 1));
    snprintf(param->name, bytes, "%s%s", name, suffix);
    *(is_bias ? &net->layers[layer].bias : &net->layers[layer].weight) = net->param_count++;
    net->param_floats += stored;
    return TUTTI_OK;
}

static tutti_status add_params(tutti_net *net, const tutti_layer_spec *spec, int dim_count,
                               const int dims[4], size_t stored)
{
    tutti_layer *layer = &net->layers[net->layer_count - 1];
    layer->init = spec->init;
    layer->init_std = (float)spec->std;
    layer->init_bias = (float)spec->bias;
    TUTTI_TRY(add_param(net, false, dim_count, dims, stored));
    if (spec->no_bias) return TUTTI_OK;
    return add_param(net, true, 1, dims, tutti_round_up((size_t)dims[0], TUTTI_BLOCK));
}

/* ---- kinds ---- */

static size_t conv_stored(const tutti_conv_shape *w)
{
    const size_t k = tutti_round_up((size_t)w->k, TUTTI_BLOCK), c = (size_t)(w->c / w->groups);
    const size_t rows = w->compact ? c : tutti_round_up(c, TUTTI_BLOCK);
    return k * rows * (size_t)w->r * (size_t)w->s;
}

static tutti_status complete_conv(tutti_net *net, tutti_layer *layer, const tutti_layer_spec *spec)
{
    set_window(layer, spec, (int[2]){1, 1});
    TUTTI_TRY(slide_window(layer));
    tutti_conv_shape *w = &layer->window;
    w->k = spec->features;
    w->groups = or_else(spec->groups, 1);
    w->compact = layer->from[0] == TUTTI_NET_INPUT && tutti_net_input_is_compact(net);
    if (w->c % w->groups || w->k % w->groups)
        return tutti_fail(TUTTI_SHAPE,
                          "%s: groups=%d must divide its %d input channels and its %d features",
                          layer->name, w->groups, w->c, w->k);
    layer->out.c = w->k;
    const int dims[4] = {w->k, w->c / w->groups, w->r, w->s};
    layer->macs = (uint64_t)w->k * (uint64_t)dims[1] * (uint64_t)(w->r * w->s) *
                  (uint64_t)layer->out.h * (uint64_t)layer->out.w;
    return add_params(net, spec, 4, dims, conv_stored(w));
}

static tutti_status complete_fc(tutti_net *net, tutti_layer *layer, const tutti_layer_spec *spec)
{
    const size_t in = tutti_shape_count(layer->in);
    layer->reads_compact = layer->from[0] == TUTTI_NET_INPUT && tutti_net_input_is_compact(net) &&
                           in % TUTTI_BLOCK == 0;
    const size_t rows = layer->reads_compact ? in : tutti_shape_floats(layer->in);
    layer->out = (tutti_shape){spec->features, 1, 1};
    layer->macs = (uint64_t)in * (uint64_t)spec->features;
    const int dims[4] = {spec->features, (int)in};
    return add_params(net, spec, 2, dims,
                      rows * tutti_round_up((size_t)spec->features, TUTTI_BLOCK));
}

static tutti_status complete_pool(tutti_net *net, tutti_layer *layer, const tutti_layer_spec *spec)
{
    (void)net;
    set_window(layer, spec, (int[2]){or_else(spec->kernel[0], 1), or_else(spec->kernel[1], 1)});
    TUTTI_TRY(slide_window(layer));
    tutti_conv_shape *w = &layer->window;
    w->k = w->groups = w->c;
    if (2 * w->pad_top > w->r || 2 * w->pad_left > w->s)
        return tutti_fail(TUTTI_SHAPE, "%s: pad=%dx%d is more than half of the window %dx%d",
                          layer->name, w->pad_top, w->pad_left, w->r, w->s);
    if ((double)w->r * w->s > TUTTI_POOL_MAX_TAPS)
        return tutti_fail(TUTTI_SHAPE, "%s: a window of %dx%d is too large", layer->name, w->r,
                          w->s);
    layer->out.c = w->k;
    return TUTTI_OK;
}

static tutti_status complete_same(tutti_net *net, tutti_layer *layer, const tutti_layer_spec *spec)
{
    (void)net;
    layer->rate = (float)spec->rate;
    layer->out = layer->in;
    return TUTTI_OK;
}

static tutti_status complete_lrn(tutti_net *net, tutti_layer *layer, const tutti_layer_spec *spec)
{
    (void)net;
    layer->lrn = (tutti_lrn){.size = spec->features,
                             .alpha = spec->alpha > 0 ? (float)spec->alpha : 1e-4f,
                             .beta = spec->beta > 0 ? (float)spec->beta : 0.75f,
                             .k = spec->k > 0 ? (float)spec->k : 1.0f};
    layer->out = layer->in;
    return TUTTI_OK;
}

static tutti_status misfit(const tutti_net *net, const tutti_layer *layer, int input,
                           const char *what)
{
    const tutti_shape a = layer->in, b = shape_of(net, layer->from[input]);
    return tutti_fail(TUTTI_SHAPE, "%s: %s is %dx%dx%d and %s is %dx%dx%d; %s must be equal",
                      layer->name, name_of(net, layer->from[0]), a.c, a.h, a.w,
                      name_of(net, layer->from[input]), b.c, b.h, b.w, what);
}

static tutti_status complete_add(tutti_net *net, tutti_layer *layer, const tutti_layer_spec *spec)
{
    (void)spec;
    layer->out = layer->in;
    for (int i = 1; i < layer->input_count; i++) {
        const tutti_shape s = shape_of(net, layer->from[i]);
        if (s.c != layer->in.c || s.h != layer->in.h || s.w != layer->in.w)
            return misfit(net, layer, i, "they");
    }
    return TUTTI_OK;
}

static tutti_status complete_concat(tutti_net *net, tutti_layer *layer,
                                    const tutti_layer_spec *spec)
{
    (void)spec;
    layer->out = layer->in;
    for (int i = 1; i < layer->input_count; i++) {
        const tutti_shape s = shape_of(net, layer->from[i]);
        if (s.h != layer->in.h || s.w != layer->in.w)
            return misfit(net, layer, i, "height and width");
        layer->out.c += s.c;
    }
    return TUTTI_OK;
}

static tutti_status complete_softmax(tutti_net *net, tutti_layer *layer,
                                     const tutti_layer_spec *spec)
{
    (void)net, (void)spec;
    layer->out = layer->in;
    if (layer->in.h != 1 || layer->in.w != 1)
        return tutti_fail(TUTTI_SHAPE,
                          "%s: softmax wants one value per class, its input is %dx%dx%d; put an fc "
                          "or an avgpool global before it",
                          layer->name, layer->in.c, layer->in.h, layer->in.w);
    return TUTTI_OK;
}

typedef tutti_status complete_fn(tutti_net *, tutti_layer *, const tutti_layer_spec *);

static complete_fn *const completers[TUTTI_KIND_COUNT] = {
    [TUTTI_KIND_CONV] = complete_conv,       [TUTTI_KIND_FC] = complete_fc,
    [TUTTI_KIND_MAXPOOL] = complete_pool,    [TUTTI_KIND_AVGPOOL] = complete_pool,
    [TUTTI_KIND_RELU] = complete_same,       [TUTTI_KIND_SIGMOID] = complete_same,
    [TUTTI_KIND_TANH] = complete_same,       [TUTTI_KIND_DROPOUT] = complete_same,
    [TUTTI_KIND_ADD] = complete_add,         [TUTTI_KIND_CONCAT] = complete_concat,
    [TUTTI_KIND_SOFTMAX] = complete_softmax, [TUTTI_KIND_LRN] = complete_lrn,
};

static bool trains_below(const tutti_net *net, const tutti_layer *layer)
{
    for (int i = 0; i < layer->input_count; i++) {
        if (layer->from[i] == TUTTI_NET_INPUT) continue;
        const tutti_layer *below = &net->layers[layer->from[i]];
        if (below->weight >= 0 || below->trains_below) return true;
    }
    return false;
}

tutti_status tutti_layer_complete(tutti_net *net, const tutti_layer_spec *spec)
{
    tutti_layer *layer = &net->layers[net->layer_count - 1];
    layer->weight = layer->bias = -1;
    layer->in = shape_of(net, layer->from[0]);
    layer->trains_below = trains_below(net, layer);
    layer->activation = spec->activation;
    TUTTI_TRY(completers[layer->kind](net, layer, spec));
    if ((double)layer->out.c * layer->out.h * layer->out.w > MAX_VALUES)
        return tutti_fail(TUTTI_SHAPE, "%s: an output of %dx%dx%d is too large", layer->name,
                          layer->out.c, layer->out.h, layer->out.w);
    return TUTTI_OK;
}
