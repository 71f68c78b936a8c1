/* The losses of a net. The last layer is one. Of those that share a target the last one judges; the
 * others are auxiliary, for training. */
#include <stdio.h>

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

static tutti_target target_of(const tutti_layer *loss)
{
    return (tutti_target){loss->kind->aims, loss->in.c, loss->in.h, loss->in.w};
}

/* Losses of one target compare with the same. */
static tutti_status check_alike(const tutti_layer *layer, const tutti_layer *last)
{
    const tutti_target a = target_of(layer), b = target_of(last);
    const bool tells = a.form == TUTTI_TARGET_CLASS && b.form == TUTTI_TARGET_CLASS;
    if (tells && a.c != b.c)
        return tutti_fail(TUTTI_PARSE, "'%s' tells %d classes apart, '%s' %d", layer->name, a.c,
                          last->name, b.c);
    if (a.form == b.form && a.c == b.c && a.h == b.h && a.w == b.w) return TUTTI_OK;
    return tutti_fail(
        TUTTI_PARSE,
        "'%s' (%s of %dx%dx%d) and '%s' (%s of %dx%dx%d) cannot have the same target: "
        "give one of them target=%d",
        layer->name, layer->kind->word, a.c, a.h, a.w, last->name, last->kind->word, b.c, b.h, b.w,
        layer->target + 2);
}

static tutti_status check_loss(const tutti_net *net, const tutti_layer *layer)
{
    const tutti_layer *last = &net->layers[net->judges[layer->target]];
    if (!layer->trains_below)
        return tutti_fail(TUTTI_PARSE, "there is nothing to train below '%s'", layer->name);
    return check_alike(layer, last);
}

static void find_targets(tutti_net *net)
{
    for (int t = 0; t < TUTTI_MOST_TARGETS; t++) net->judges[t] = -1;
    for (int i = 0; i < net->layer_count; i++) {
        const tutti_layer *layer = &net->layers[i];
        if (!layer->kind->is_loss) continue;
        net->judges[layer->target] = i;
        net->targets[layer->target] = target_of(layer);
        if (layer->target >= net->target_count) net->target_count = layer->target + 1;
    }
}

static tutti_status check_numbers(const tutti_net *net, const char *where)
{
    for (int t = 0; t < net->target_count; t++)
        if (net->judges[t] < 0)
            return tutti_fail(TUTTI_PARSE,
                              "%s: no loss has target=%d, but one has target=%d: they count from 1",
                              where, t + 1, net->target_count);
    return TUTTI_OK;
}

/* "10 classes" */
static void describe_answer(tutti_net *net)
{
    static const char *const forms[] = {
        [TUTTI_TARGET_CLASS] = "classes",
        [TUTTI_TARGET_PIXELS] = "classes",
        [TUTTI_TARGET_VALUES] = "values",
        [TUTTI_TARGET_SHARES] = "classes",
    };
    const tutti_target *t = &net->targets[tutti_net_answer(net)];
    char pixels[48] = "";
    if (t->h * t->w > 1 || t->form == TUTTI_TARGET_PIXELS)
        snprintf(pixels, sizeof pixels, " for each of %dx%d pixels", t->h, t->w);
    snprintf(net->answers, sizeof net->answers, "%s%d %s%s",
             t->form == TUTTI_TARGET_SHARES ? "any of " : "", t->c, forms[t->form], pixels);
}

static bool is_needed(const tutti_net *net, int layer)
{
    for (int k = layer + 1; k < net->layer_count; k++)
        for (int e = 0; e < net->layers[k].input_count; e++)
            if (net->layers[k].from[e] == layer && !net->layers[k].only_trains) return true;
    return net->layers[layer].kind->is_loss && net->judges[net->layers[layer].target] == layer;
}

tutti_status tutti_net_check_losses(tutti_net *net, const char *where)
{
    bool found[TUTTI_MOST_TARGETS] = {false};
    find_targets(net);
    for (int i = 0; i < net->layer_count; i++) {
        tutti_layer *layer = &net->layers[i];
        if (check_inputs(net, layer)) return wrong(where, layer);
        if (!layer->kind->is_loss) continue;
        if (i + 1 < net->layer_count && check_loss(net, layer)) return wrong(where, layer);
        layer->adds_loss = found[layer->target];
        found[layer->target] = true;
    }
    TUTTI_TRY(check_numbers(net, where));
    describe_answer(net);
    for (int i = net->layer_count - 1; i >= 0; i--) net->layers[i].only_trains = !is_needed(net, i);
    return TUTTI_OK;
}
