#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "nn/kinds/kind.h"

tutti_status tutti_complete_same(tutti_net *net, tutti_layer *layer)
{
    (void)net;
    layer->out = layer->in;
    return TUTTI_OK;
}

const char *tutti_layer_input_name(const tutti_net *net, const tutti_layer *layer, int input)
{
    const int from = layer->from[input];
    return from == TUTTI_NET_INPUT ? "input" : net->layers[from].name;
}

bool tutti_layer_reads_compact(const tutti_net *net, const tutti_layer *layer)
{
    return layer->from[0] == TUTTI_NET_INPUT && tutti_net_input_is_compact(net);
}

static tutti_status set_name(tutti_param *param, const char *layer, const char *suffix)
{
    const size_t bytes = strlen(layer) + strlen(suffix) + 2;
    TUTTI_TRY(tutti_alloc(&param->name, bytes, 1));
    snprintf(param->name, bytes, "%s.%s", layer, suffix);
    return TUTTI_OK;
}

tutti_status tutti_layer_add_param(tutti_net *net, const char *suffix, const tutti_param *like)
{
    tutti_layer *layer = &net->layers[net->layer_count - 1];
    TUTTI_TRY(tutti_grow(&net->params, &net->param_room, net->param_count, sizeof *net->params));
    tutti_param *param = &net->params[net->param_count];
    TUTTI_ASSERT(!layer->param_count || like->role >= param[-1].role);
    *param = *like;
    TUTTI_TRY(set_name(param, layer->name, suffix));
    param->layer = net->layer_count - 1;
    param->lr_scale = 1;
    param->count = tutti_weight_torch_count(&param->layout);
    param->stored = tutti_weight_blocked_count(&param->layout);
    param->offset = net->param_floats;
    net->param_floats += param->stored;
    if (!layer->param_count++) layer->first_param = net->param_count;
    net->param_count++;
    return TUTTI_OK;
}
