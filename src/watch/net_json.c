#include "watch/net_json.h"

#include "nn/kinds/kind.h"

enum { DIGITS = 4 };

static void put_from(tutti_string *s, const tutti_layer *layer)
{
    tutti_json_key(s, "from");
    tutti_string_append(s, "[", 1);
    for (int i = 0; i < layer->input_count; i++)
        tutti_string_printf(s, i ? ",%d" : "%d", layer->from[i]);
    tutti_string_append(s, "]", 1);
}

static void put_prediction(tutti_string *s, const tutti_layer_prediction *l)
{
    tutti_json_key(s, "predicted");
    tutti_string_append(s, "{", 1);
    tutti_json_field_real(s, "forward", l->compute.forward, DIGITS);
    tutti_json_field_real(s, "weights", l->compute.weights, DIGITS);
    tutti_json_field_real(s, "data", l->compute.data, DIGITS);
    tutti_json_field_real(s, "comm", l->comm, DIGITS);
    tutti_json_field_real(s, "exposed", l->exposed, DIGITS);
    tutti_json_field_real(s, "bytes", l->bytes, DIGITS + 3);
    tutti_string_append(s, "}", 1);
}

static uint64_t parameters_of(const tutti_net *net, const tutti_layer *layer)
{
    uint64_t sum = 0;
    for (int i = 0; i < layer->param_count; i++) sum += net->params[layer->first_param + i].count;
    return sum;
}

static void put_layer(tutti_string *s, const tutti_net *net, int i, const tutti_plan *plan,
                      const tutti_prediction *prediction)
{
    const tutti_layer *layer = &net->layers[i];
    tutti_string_append(s, "{", 1);
    tutti_json_field_string(s, "name", layer->name);
    tutti_json_field_string(s, "kind", layer->kind->word);
    put_from(s, layer);
    tutti_json_key(s, "out");
    tutti_string_printf(s, "[%d,%d,%d]", layer->out.c, layer->out.h, layer->out.w);
    tutti_json_field_int(s, "parameters", (int64_t)parameters_of(net, layer));
    tutti_json_field_int(s, "groups", plan->groups[i]);
    tutti_json_field_string(s, "split", tutti_plan_split(plan, i));
    if (layer->frozen) tutti_json_field_int(s, "frozen", 1);
    if (prediction) put_prediction(s, &prediction->layer[i]);
    tutti_string_append(s, "}", 1);
}

void tutti_net_json(tutti_string *out, const tutti_net *net, const tutti_plan *plan,
                    const tutti_prediction *prediction)
{
    tutti_string_append(out, "[", 1);
    for (int i = 0; i < net->layer_count; i++) {
        if (i) tutti_string_append(out, ",", 1);
        put_layer(out, net, i, plan, prediction);
    }
    tutti_string_append(out, "]", 1);
}

void tutti_prediction_json(tutti_string *out, const tutti_plan *plan,
                           const tutti_prediction *prediction)
{
    tutti_string_append(out, "[", 1);
    for (int i = 0, written = 0; i < prediction->layers; i++) {
        const tutti_layer_prediction *l = &prediction->layer[i];
        const double numbers[] = {
            l->compute.forward, l->compute.weights, l->compute.data, l->comm, l->exposed, l->bytes};
        if (l->elapsed <= 0 && l->comm <= 0 && l->bytes <= 0) continue;
        tutti_string_printf(out, "%s[%d,%d", written++ ? "," : "", i, plan->groups[i]);
        for (size_t n = 0; n < sizeof numbers / sizeof *numbers; n++) {
            tutti_string_append(out, ",", 1);
            tutti_json_real(out, numbers[n], DIGITS);
        }
        tutti_string_append(out, "]", 1);
    }
    tutti_string_append(out, "]", 1);
}
