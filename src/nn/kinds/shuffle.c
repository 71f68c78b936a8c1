/* Channels of several groups in turn: the first of each group, the second of each, and so on. */
#include "nn/kinds/channels.h"

typedef struct options {
    int groups;
} options;

static const options defaults = {0};

static tutti_status complete(tutti_net *net, tutti_layer *layer)
{
    const int groups = ((const options *)layer->options)->groups;
    (void)net;
    if (layer->in.c % groups)
        return tutti_fail(TUTTI_SHAPE, "%s: %d groups must divide its %d input channels",
                          layer->name, groups, layer->in.c);
    layer->out = layer->in;
    return TUTTI_OK;
}

static int source(const tutti_layer *layer, int k)
{
    const int groups = ((const options *)layer->options)->groups;
    return k % groups * (layer->in.c / groups) + k / groups;
}

static tutti_status create(void **own, const tutti_layer *layer, const tutti_setup *setup)
{
    (void)setup;
    return tutti_channels_create(own, layer, source);
}

const tutti_kind tutti_kind_shuffle = {
    .word = "shuffle",
    .what = "channels of groups in turn",
    .argument = {"groups", TUTTI_KEY_INT, offsetof(options, groups), 1, 1 << 20, true, NULL},
    .wants = "a number of groups",
    .options_size = sizeof(options),
    .defaults = &defaults,
    .complete = complete,
    .takes_gate = true,
    .create = create,
    .destroy = tutti_channels_destroy,
    .forward = tutti_channels_forward,
    .backward_data = tutti_channels_backward,
};
