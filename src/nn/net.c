#include "nn/net.h"

#include <string.h>

#include "base/memory.h"
#include "kernel/fc.h"
#include "nn/kinds/kind.h"

const char *const tutti_init_words[] = {"auto", "he", "xavier", "gaussian", NULL};

static void destroy_layer(tutti_layer *layer)
{
    tutti_free(layer->name);
    tutti_free(layer->options);
    tutti_free(layer->said);
    tutti_free(layer->from);
}

void tutti_net_destroy(tutti_net **net)
{
    if (!*net) return;
    for (int i = 0; i < (*net)->layer_count; i++) destroy_layer(&(*net)->layers[i]);
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
    tutti_free((*net)->text);
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

const char *tutti_net_answers(const tutti_net *net)
{
    return net->answers;
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

tutti_shape tutti_layer_input_shape(const tutti_net *net, const tutti_layer *layer, int input)
{
    const int from = layer->from[input];
    return from == TUTTI_NET_INPUT ? net->input : net->layers[from].out;
}

size_t tutti_layer_offset(const tutti_net *net, int layer)
{
    const tutti_layer *l = &net->layers[layer];
    return l->param_count ? net->params[l->first_param].offset : 0;
}

static tutti_param *first_param(const tutti_net *net, const tutti_layer *layer)
{
    return layer->param_count ? &net->params[layer->first_param] : NULL;
}

static size_t stored(const tutti_net *net, const tutti_layer *layer, tutti_role last)
{
    const tutti_param *param = first_param(net, layer);
    size_t sum = 0;
    for (int i = 0; i < layer->param_count && param[i].role <= last; i++) sum += param[i].stored;
    return sum;
}

size_t tutti_layer_floats(const tutti_net *net, int layer)
{
    return stored(net, &net->layers[layer], TUTTI_KEPT);
}

size_t tutti_layer_trained(const tutti_net *net, int layer)
{
    return stored(net, &net->layers[layer], TUTTI_TRAINED);
}

static uint64_t param_values(const tutti_net *net, const tutti_layer *layer)
{
    const tutti_param *param = first_param(net, layer);
    uint64_t sum = 0;
    for (int i = 0; i < layer->param_count; i++)
        if (param[i].role == TUTTI_TRAINED || param[i].frozen) sum += param[i].count;
    return sum;
}

bool tutti_layer_trains(const tutti_net *net, const tutti_layer *layer)
{
    const tutti_param *first = first_param(net, layer);
    return first && first->role == TUTTI_TRAINED; /* trained ones come first */
}

bool tutti_layer_learns(const tutti_net *net, const tutti_layer *layer)
{
    return layer->frozen || tutti_layer_trains(net, layer);
}

bool tutti_layer_measures(const tutti_layer *layer)
{
    return layer->kind->group && !layer->frozen;
}

/* ---- splitting ---- */

static int leaves_of(const tutti_layer *layer)
{
    return tutti_ceil_div(layer->out.c, TUTTI_FC_LEAF);
}

bool tutti_layer_can_split(const tutti_layer *layer, int workers, int groups)
{
    return groups == workers || (layer->kind->splits && groups > 0 && workers % groups == 0 &&
                                 leaves_of(layer) >= workers / groups);
}

tutti_status tutti_layer_check_split(const tutti_layer *layer, int workers, int groups)
{
    if (tutti_layer_can_split(layer, workers, groups)) return TUTTI_OK;
    if (!layer->kind->splits)
        return tutti_fail(TUTTI_ARGUMENT,
                          "layer %s: only fully connected layers can be split by features; "
                          "a %s is data parallel",
                          layer->name, layer->kind->word);
    if (groups < 1 || workers % groups)
        return tutti_fail(TUTTI_ARGUMENT, "layer %s: %d groups do not divide %d ranks", layer->name,
                          groups, workers);
    return tutti_fail(TUTTI_ARGUMENT,
                      "layer %s: its %d outputs are %d blocks of %d, too few for the %d ranks "
                      "of a group; take at least %d groups",
                      layer->name, layer->out.c, leaves_of(layer), TUTTI_FC_LEAF, workers / groups,
                      tutti_ceil_div(workers, leaves_of(layer)));
}

/* ---- looking ---- */

uint64_t tutti_layer_train_flops(const tutti_layer *layer)
{
    return 2 * layer->macs * (uint64_t)(1 + !layer->frozen + layer->trains_below);
}

double tutti_net_made_flops(const tutti_net *net)
{
    double flops = 0;
    for (int i = 0; i < net->layer_count; i++) {
        const tutti_layer *l = &net->layers[i];
        flops += (double)tutti_layer_train_flops(l) * (l->effort > 0 ? l->effort : 1);
    }
    return flops;
}

tutti_layer_info tutti_net_layer_info(const tutti_net *net, int layer)
{
    const tutti_layer *l = &net->layers[layer];
    return (tutti_layer_info){
        .name = l->name,
        .kind = l->kind->word,
        .activation = l->activation ? l->activation->word : "",
        .precision = tutti_layer_precision(l),
        .in = l->in,
        .out = l->out,
        .parameters = param_values(net, l),
        .trained = l->frozen ? 0 : param_values(net, l),
        .macs = l->macs,
        .train_flops = tutti_layer_train_flops(l),
        .weight_bytes = tutti_layer_floats(net, layer) * sizeof(float),
        .activation_bytes = tutti_shape_floats(l->out) * sizeof(float),
    };
}

tutti_layer_info tutti_net_total(const tutti_net *net)
{
    tutti_layer_info total = {.name = net->name, .kind = "net", .activation = "", .precision = ""};
    total.in = net->input;
    total.out = net->layers[net->layer_count - 1].out;
    for (int i = 0; i < net->layer_count; i++) {
        const tutti_layer_info layer = tutti_net_layer_info(net, i);
        total.parameters += layer.parameters;
        total.trained += layer.trained;
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

int tutti_net_name_width(const tutti_net *net, int least)
{
    for (int i = 0; i < net->layer_count; i++) {
        const int length = (int)strlen(net->layers[i].name);
        if (length > least) least = length;
    }
    return least;
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
