/* The losses of a net: the last layer is one, and others before it are auxiliary, for training. */
#include "nn/kinds/kind.h"
#include "nn/parse.h"

static tutti_status wrong(const char *where, const tutti_layer *layer)
{
    return tutti_fail(TUTTI_PARSE, "%s:%d:%d: %s", where, layer->line, layer->column,
                      tutti_message());
}

static tutti_status check_inputs(const tutti_net *net, const tutti_layer *layer)
{
    for (int i = 0; i < layer->input_count; i++) {
        if (layer->from[i] == TUTTI_NET_INPUT) continue;
        const tutti_layer *below = &net->layers[layer->from[i]];
        if (below->kind->is_loss)
            return tutti_fail(TUTTI_PARSE,
                              "%s is a loss, which has no output: say with from= what %s reads",
                              below->name, layer->name);
    }
    return TUTTI_OK;
}

/* All of them judge the same samples by the same labels. */
static tutti_status check_loss(const tutti_layer *layer, const tutti_layer *last)
{
    if (!layer->trains_below)
        return tutti_fail(TUTTI_PARSE, "there is nothing to train below '%s'", layer->name);
    if (layer->in.c == last->in.c) return TUTTI_OK;
    return tutti_fail(TUTTI_PARSE, "'%s' tells %d classes apart, '%s' %d", layer->name, layer->in.c,
                      last->name, last->in.c);
}

static bool is_needed(const tutti_net *net, int layer)
{
    for (int k = layer + 1; k < net->layer_count; k++)
        for (int e = 0; e < net->layers[k].input_count; e++)
            if (net->layers[k].from[e] == layer && !net->layers[k].only_trains) return true;
    return layer == net->layer_count - 1;
}

tutti_status tutti_net_check_losses(tutti_net *net, const char *where)
{
    const tutti_layer *last = &net->layers[net->layer_count - 1];
    bool found = false;
    for (int i = 0; i < net->layer_count; i++) {
        tutti_layer *layer = &net->layers[i];
        if (check_inputs(net, layer)) return wrong(where, layer);
        if (!layer->kind->is_loss) continue;
        if (layer != last && check_loss(layer, last)) return wrong(where, layer);
        layer->adds_loss = found;
        found = true;
    }
    for (int i = net->layer_count - 1; i >= 0; i--) net->layers[i].only_trains = !is_needed(net, i);
    return TUTTI_OK;
}
