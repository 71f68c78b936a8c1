/* Which layers are trained, and how fast: as the words of a net's text say, or patterns over the
 * names of its layers. */
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "nn/net.h"

/* ---- layers ---- */

bool tutti_layer_flows_into(const tutti_net *net, const tutti_layer *layer)
{
    return layer->trains_below || tutti_layer_trains(net, layer);
}

void tutti_layer_look_below(const tutti_net *net, tutti_layer *layer)
{
    layer->trains_below = false;
    for (int i = 0; i < layer->input_count; i++)
        if (layer->from[i] != TUTTI_NET_INPUT)
            layer->trains_below |= tutti_layer_flows_into(net, &net->layers[layer->from[i]]);
}

void tutti_layer_scale_lr(tutti_net *net, tutti_layer *layer, double scale)
{
    layer->lr_scale = scale;
    for (int i = 0; i < layer->param_count; i++)
        net->params[layer->first_param + i].lr_scale = scale;
}

void tutti_layer_freeze(tutti_net *net, tutti_layer *layer)
{
    layer->frozen = true;
    for (int i = 0; i < layer->param_count; i++) {
        tutti_param *param = &net->params[layer->first_param + i];
        param->frozen |= param->role == TUTTI_TRAINED;
        param->role = TUTTI_KEPT;
    }
}

/* ---- patterns ---- */

/* One of a list that is separated by commas: "conv1*", or "conv1*=0.1". */
typedef struct item {
    char pattern[256];
    double scale;
} item;

static tutti_status take_item(item *out, const char *text, size_t length, const char *option)
{
    if (length >= sizeof out->pattern)
        return tutti_fail(TUTTI_ARGUMENT, "%s: '%.40s...' is longer than any name of a layer",
                          option, text);
    snprintf(out->pattern, sizeof out->pattern, "%.*s", (int)length, text);
    if (*out->pattern) return TUTTI_OK;
    return tutti_fail(TUTTI_ARGUMENT,
                      "%s: a pattern is empty; write names of layers, as in "
                      "'conv1,conv2*'",
                      option);
}

/* Cuts "=0.1" off. */
static tutti_status take_scale(item *out, const char *option)
{
    char *equals = strrchr(out->pattern, '='), *end = NULL;
    if (!equals)
        return tutti_fail(TUTTI_ARGUMENT, "%s %s: write PATTERN=FACTOR, as in 'conv*=0.1'", option,
                          out->pattern);
    out->scale = strtod(equals + 1, &end);
    if (end == equals + 1 || *end ||
        !(out->scale >= TUTTI_LEAST_LR_SCALE && out->scale <= TUTTI_MOST_LR_SCALE))
        return tutti_fail(TUTTI_ARGUMENT,
                          "%s %s: the factor must be a number between %g and %g; --freeze keeps "
                          "layers as they are",
                          option, out->pattern, TUTTI_LEAST_LR_SCALE, TUTTI_MOST_LR_SCALE);
    *equals = 0;
    return TUTTI_OK;
}

/* A pattern that touches nothing is a mistake, such as a name of another net. */
static tutti_status apply(tutti_net *net, const item *what, bool freezes, const char *option)
{
    int meant = 0, matched = 0;
    for (int i = 0; i < net->layer_count; i++) {
        tutti_layer *layer = &net->layers[i];
        if (fnmatch(what->pattern, layer->name, 0)) continue;
        meant++;
        if (!tutti_layer_learns(net, layer)) continue;
        matched++;
        if (freezes) tutti_layer_freeze(net, layer);
        else tutti_layer_scale_lr(net, layer, what->scale);
    }
    if (matched) return TUTTI_OK;
    if (meant)
        return tutti_fail(TUTTI_ARGUMENT, "%s %s: the layers of that name have no parameters",
                          option, what->pattern);
    return tutti_fail(TUTTI_ARGUMENT,
                      "%s %s: %s has no layer of that name; they go from %s to %s (tutti info %s)",
                      option, what->pattern, net->name, net->layers[0].name,
                      net->layers[net->layer_count - 1].name, net->name);
}

static tutti_status apply_list(tutti_net *net, const char *list, bool freezes, const char *option)
{
    for (const char *at = list; at; at = strchr(at, ',')) {
        item what = {.scale = 1};
        at += *at == ',' && at != list;
        TUTTI_TRY(take_item(&what, at, strcspn(at, ","), option));
        if (!freezes) TUTTI_TRY(take_scale(&what, option));
        TUTTI_TRY(apply(net, &what, freezes, option));
    }
    return TUTTI_OK;
}

tutti_status tutti_net_freeze(tutti_net *net, const char *patterns)
{
    if (!patterns || !*patterns) return TUTTI_OK;
    TUTTI_TRY(apply_list(net, patterns, true, "--freeze"));
    for (int i = 0; i < net->layer_count; i++) tutti_layer_look_below(net, &net->layers[i]);
    if (net->layers[net->layer_count - 1].trains_below) return TUTTI_OK;
    return tutti_fail(TUTTI_ARGUMENT, "--freeze %s leaves nothing of %s to train", patterns,
                      net->name);
}

tutti_status tutti_net_scale_lr(tutti_net *net, const char *scales)
{
    if (!scales || !*scales) return TUTTI_OK;
    return apply_list(net, scales, false, "--lr-scale");
}
