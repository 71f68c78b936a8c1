#include "nn/net.h"

#include <string.h>

#include "base/memory.h"

static const char *const kind_names[] = {
#define X(name, text, what) text,
    TUTTI_KIND_MAP(X)
#undef X
};

static const char *const activation_names[] = {"", "relu", "sigmoid", "tanh"};

const char *tutti_kind_name(tutti_kind kind)
{
    return kind_names[kind];
}

void tutti_net_destroy(tutti_net **net)
{
    if (!*net) return;
    for (int i = 0; i < (*net)->layer_count; i++) tutti_free((*net)->layers[i].name);
    for (int i = 0; i < (*net)->param_count; i++) tutti_free((*net)->params[i].name);
    for (int i = 0; i < (*net)->setting_count; i++) {
        tutti_free((*net)->settings[i].key);
        tutti_free((*net)->settings[i].value);
        tutti_free((*net)->settings[i].where);
    }
    tutti_free((*net)->layers);
    tutti_free((*net)->params);
    tutti_free((*net)->settings);
    tutti_free((*net)->name);
    tutti_free(*net);
    *net = NULL;
}

const char *tutti_net_name(const tutti_net *net)
{
    return net->name;
}

tutti_shape tutti_net_input(const tutti_net *net)
{
    return net->input;
}

int tutti_net_classes(const tutti_net *net)
{
    return net->layers[net->layer_count - 1].in.c;
}

int tutti_net_layer_count(const tutti_net *net)
{
    return net->layer_count;
}

bool tutti_net_input_is_compact(const tutti_net *net)
{
    return net->input.c < TUTTI_BLOCK && (net->input.h > 1 || net->input.w > 1);
}

size_t tutti_net_input_floats(const tutti_net *net)
{
    return tutti_net_input_is_compact(net)
               ? tutti_round_up(tutti_shape_count(net->input), TUTTI_BLOCK)
               : tutti_shape_floats(net->input);
}

static size_t stored(const tutti_net *net, int param)
{
    return param < 0 ? 0 : net->params[param].stored;
}

static size_t count(const tutti_net *net, int param)
{
    return param < 0 ? 0 : net->params[param].count;
}

size_t tutti_layer_offset(const tutti_net *net, int layer)
{
    const int weight = net->layers[layer].weight;
    return weight < 0 ? 0 : net->params[weight].offset;
}

size_t tutti_layer_floats(const tutti_net *net, int layer)
{
    return stored(net, net->layers[layer].weight) + stored(net, net->layers[layer].bias);
}

uint64_t tutti_layer_train_flops(const tutti_layer *layer)
{
    return 2 * layer->macs * (layer->trains_below ? 3 : 2);
}

tutti_layer_info tutti_net_layer_info(const tutti_net *net, int layer)
{
    const tutti_layer *l = &net->layers[layer];
    return (tutti_layer_info){
        .name = l->name,
        .kind = tutti_kind_name(l->kind),
        .activation = activation_names[l->activation],
        .in = l->in,
        .out = l->out,
        .parameters = count(net, l->weight) + count(net, l->bias),
        .macs = l->macs,
        .train_flops = tutti_layer_train_flops(l),
        .weight_bytes = tutti_layer_floats(net, layer) * sizeof(float),
        .activation_bytes = tutti_shape_floats(l->out) * sizeof(float),
    };
}

tutti_layer_info tutti_net_total(const tutti_net *net)
{
    tutti_layer_info total = {.name = net->name, .kind = "net", .activation = ""};
    total.in = net->input;
    total.out = net->layers[net->layer_count - 1].out;
    for (int i = 0; i < net->layer_count; i++) {
        const tutti_layer_info layer = tutti_net_layer_info(net, i);
        total.parameters += layer.parameters;
        total.macs += layer.macs;
        total.train_flops += layer.train_flops;
        total.weight_bytes += layer.weight_bytes;
        total.activation_bytes += layer.activation_bytes;
    }
    return total;
}

int tutti_net_default(const tutti_net *net, int index, const char **key, const char **value,
                      const char **where)
{
    if (index < 0 || index >= net->setting_count) return false;
    *key = net->settings[index].key;
    *value = net->settings[index].value;
    *where = net->settings[index].where;
    return true;
}

int tutti_net_find_layer(const tutti_net *net, const char *name)
{
    for (int i = 0; i < net->layer_count; i++)
        if (!strcmp(net->layers[i].name, name)) return i;
    return -1;
}

int tutti_net_find_param(const tutti_net *net, const char *name)
{
    for (int i = 0; i < net->param_count; i++)
        if (!strcmp(net->params[i].name, name)) return i;
    return -1;
}
