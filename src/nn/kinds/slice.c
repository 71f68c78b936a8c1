/* Channels first .. end-1 of its input. */
#include "nn/kinds/channels.h"

typedef struct options {
    int first, end;
} options;

static const options defaults = {0, 0};

static const tutti_key keys[] = {
    {"first", TUTTI_KEY_INT, offsetof(options, first), 0, 1 << 20, false, NULL},
    {"end", TUTTI_KEY_INT, offsetof(options, end), 1, 1 << 20, false, NULL},
    {.name = NULL}};

static tutti_status complete(tutti_net *net, tutti_layer *layer)
{
    options *o = layer->options;
    (void)net;
    if (!o->end) o->end = layer->in.c;
    if (o->first >= o->end || o->end > layer->in.c)
        return tutti_fail(
            TUTTI_SHAPE,
            "%s: channels first=%d to end=%d, not included, of %d: there are none, or "
            "not so many",
            layer->name, o->first, o->end, layer->in.c);
    layer->out = layer->in;
    layer->out.c = o->end - o->first;
    return TUTTI_OK;
}

static int source(const tutti_layer *layer, int k)
{
    return ((const options *)layer->options)->first + k;
}

static tutti_status create(void **own, const tutti_layer *layer, const tutti_setup *setup)
{
    (void)setup;
    return tutti_channels_create(own, layer, source);
}

const tutti_kind tutti_kind_slice = {
    .word = "slice",
    .what = "some of the channels",
    .keys = keys,
    .options_size = sizeof(options),
    .defaults = &defaults,
    .complete = complete,
    .takes_gate = true,
    .create = create,
    .destroy = tutti_channels_destroy,
    .forward = tutti_channels_forward,
    .backward_data = tutti_channels_backward,
};
