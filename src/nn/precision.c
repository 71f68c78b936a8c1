/* Which layers multiply numbers that are rounded to bf16. It follows from the net, the precision
 * that a run asks for and the layers' own words, never from the machine or from who computes what:
 *
 *   - a layer whose line says precision=fp32 or bf16 has that;
 *   - the others have the run's, but for those at the ends of the net: what multiplies the net's
 *     input itself, or makes what a loss reads, with no other such layer between, stays in fp32;
 *   - of these, layers round whose kernels can (the kind's may_round).
 *
 * A net may have several layers at an end: branches that begin at its input, or several losses. */
#include <stdio.h>
#include <string.h>

#include "nn/kinds/kind.h"

const char *const tutti_precision_words[] = {"auto", "fp32", "bf16", NULL};

static bool multiplies(const tutti_layer *layer)
{
    return layer->kind->may_round != NULL;
}

/* What the line says; 0: nothing. */
static int said_by(const tutti_layer *layer)
{
    return multiplies(layer) ? (int)tutti_layer_number(layer, "precision", 0) : 0;
}

static bool reads_raw(const tutti_layer *layer, const bool *raw)
{
    for (int i = 0; i < layer->input_count; i++)
        if (layer->from[i] == TUTTI_NET_INPUT || raw[layer->from[i]]) return true;
    return false;
}

void tutti_net_find_ends(tutti_net *net)
{
    bool raw[TUTTI_MAX_LAYERS], judged[TUTTI_MAX_LAYERS] = {false};
    for (int i = 0; i < net->layer_count; i++) {
        tutti_layer *layer = &net->layers[i];
        const bool reads = reads_raw(layer, raw);
        raw[i] = reads && !multiplies(layer);
        layer->is_end = reads && multiplies(layer);
    }
    for (int i = net->layer_count - 1; i >= 0; i--) {
        tutti_layer *layer = &net->layers[i];
        layer->is_end |= judged[i] && multiplies(layer);
        for (int k = 0; k < layer->input_count; k++)
            if (layer->from[k] >= 0 && (layer->kind->is_loss || (judged[i] && !multiplies(layer))))
                judged[layer->from[k]] = true;
    }
}

void tutti_net_round(tutti_net *net, tutti_precision precision)
{
    for (int i = 0; i < net->layer_count; i++) {
        tutti_layer *layer = &net->layers[i];
        const int said = said_by(layer);
        layer->precision = said             ? (tutti_precision)(said - 1)
                           : !layer->is_end ? precision
                                            : TUTTI_IN_FP32;
    }
}

bool tutti_layer_rounds(const tutti_layer *layer)
{
    return layer->precision == TUTTI_IN_BF16 && multiplies(layer) && layer->kind->may_round(layer);
}

bool tutti_net_rounds(const tutti_net *net)
{
    for (int i = 0; i < net->layer_count; i++)
        if (tutti_layer_rounds(&net->layers[i])) return true;
    return false;
}

void tutti_net_describe_precision(const tutti_net *net, char text[64])
{
    int rounding = 0, all = 0;
    for (int i = 0; i < net->layer_count; i++) {
        all += multiplies(&net->layers[i]);
        rounding += tutti_layer_rounds(&net->layers[i]);
    }
    *text = 0;
    if (rounding) snprintf(text, 64, "%d of %d layers round to bf16", rounding, all);
}

tutti_status tutti_layer_check_precision(const tutti_layer *layer)
{
    if (said_by(layer) != 1 + TUTTI_IN_BF16 || layer->kind->may_round(layer)) return TUTTI_OK;
    return tutti_fail(TUTTI_PARSE,
                      "%s: precision=bf16 is for direct sums (algorithm=direct) of whole blocks of "
                      "16 channels and 16 features in each group, and not for images of fewer: "
                      "leave it out",
                      layer->name);
}

/* ---- of a whole net ---- */

tutti_status tutti_precision_named(const char *text, const char *option, tutti_precision *out)
{
    for (int i = 1; tutti_precision_words[i]; i++) {
        if (strcmp(tutti_precision_words[i], text)) continue;
        *out = (tutti_precision)(i - 1);
        return TUTTI_OK;
    }
    return tutti_fail(TUTTI_ARGUMENT, "%s is fp32 or bf16, not '%.20s'", option, text);
}

tutti_status tutti_net_set_precision(tutti_net *net, const char *precision)
{
    tutti_suggested suggested;
    TUTTI_TRY(tutti_net_suggested(&suggested, net));
    if (precision) TUTTI_TRY(tutti_precision_named(precision, "--precision", &suggested.precision));
    tutti_net_round(net, suggested.precision);
    return TUTTI_OK;
}

const char *tutti_layer_precision(const tutti_layer *layer)
{
    return multiplies(layer) ? tutti_precision_words[1 + tutti_layer_rounds(layer)] : "";
}
