#include "nn/kinds/pool.h"

const tutti_pool_options tutti_pool_defaults = {
    .window = {.dilation = {1, 1}, .pad_end = {-1, -1}}};

bool tutti_pool_has_window(const tutti_window *w)
{
    return w->kernel[0] || w->stride[0] || w->pad[0] || w->pad[1] || w->pad_end[0] >= 0 || w->ceil;
}

/* Sets what the text left open: the window of global pooling, and the stride. */
static tutti_status fill_up(tutti_window *w, const tutti_layer *layer, bool global)
{
    if (global && tutti_pool_has_window(w))
        return tutti_fail(
            TUTTI_PARSE,
            "%s: global pools the whole image: leave out kernel=, stride= and pad=", layer->name);
    for (int i = 0; i < 2; i++) {
        if (global) w->kernel[i] = i ? layer->in.w : layer->in.h;
        if (!w->stride[i]) w->stride[i] = w->kernel[i] ? w->kernel[i] : 1;
    }
    return TUTTI_OK;
}

tutti_status tutti_pool_complete(tutti_net *net, tutti_layer *layer)
{
    tutti_pool_options *o = layer->options;
    tutti_window *w = &o->window;
    (void)net;
    TUTTI_TRY(fill_up(w, layer, o->global));
    TUTTI_TRY(tutti_window_slide(w, layer));
    if (2 * w->pad[0] > w->kernel[0] || 2 * w->pad[1] > w->kernel[1])
        return tutti_fail(TUTTI_SHAPE, "%s: pad=%dx%d is more than half of the window %dx%d",
                          layer->name, w->pad[0], w->pad[1], w->kernel[0], w->kernel[1]);
    if (tutti_window_pad_end(w, 0) >= w->kernel[0] || tutti_window_pad_end(w, 1) >= w->kernel[1])
        return tutti_fail(TUTTI_SHAPE, "%s: pad-end=%dx%d is as much as the window %dx%d",
                          layer->name, w->pad_end[0], w->pad_end[1], w->kernel[0], w->kernel[1]);
    if ((double)w->kernel[0] * w->kernel[1] > TUTTI_POOL_MAX_TAPS)
        return tutti_fail(TUTTI_SHAPE, "%s: a window of %dx%d is too large", layer->name,
                          w->kernel[0], w->kernel[1]);
    layer->out.c = layer->in.c;
    return TUTTI_OK;
}

void tutti_pool_work(const tutti_layer *layer, char text[32])
{
    const tutti_pool_options *o = layer->options;
    tutti_window_work(&o->window, 1, text);
}

tutti_pool_shape tutti_pool_layer_shape(const tutti_layer *layer)
{
    const tutti_pool_options *o = layer->options;
    const tutti_window *w = &o->window;
    return (tutti_pool_shape){
        .c = layer->in.c,
        .h = layer->in.h,
        .w = layer->in.w,
        .r = w->kernel[0],
        .s = w->kernel[1],
        .stride_h = w->stride[0],
        .stride_w = w->stride[1],
        .pad_top = w->pad[0],
        .pad_bottom = tutti_window_pad_end(w, 0),
        .pad_left = w->pad[1],
        .pad_right = tutti_window_pad_end(w, 1),
        .ceil_mode = w->ceil,
        .count_padding = !o->exclude_pad, /* as Caffe and torch do */
    };
}
