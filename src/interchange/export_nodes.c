/* The messages of a graph; the numbers of their fields are those of onnx.proto. */
#include <stdio.h>
#include <string.h>

#include "format/onnx.h"
#include "interchange/exporter.h"

void tutti_node_begin(tutti_exporter *x, const char *op, const char *part)
{
    char name[TUTTI_OUTER];
    if (x->is_merged && !*part) part = "activation";
    snprintf(name, sizeof name, "%.80s%s%.40s", x->layer->name, *part ? "/" : "", part);
    tutti_wire_put_text(&x->node, 3, name);
    tutti_wire_put_text(&x->node, 4, op);
}

void tutti_node_in(tutti_exporter *x, const char *name)
{
    tutti_wire_put_text(&x->node, 1, name);
}

void tutti_node_end(tutti_exporter *x, const char *out)
{
    tutti_wire_put_text(&x->node, 2, out);
    tutti_wire_put_message(&x->nodes, 1, &x->node);
    x->node_count++;
}

/* ---- attributes ---- */

static void put_attribute(tutti_exporter *x, tutti_string *attribute, const char *name, int type)
{
    tutti_wire_put_text(attribute, 1, name);
    tutti_wire_put_int(attribute, 20, type);
    tutti_wire_put_message(&x->node, 5, attribute);
}

void tutti_node_int(tutti_exporter *x, const char *name, int64_t value)
{
    tutti_string a = {0};
    tutti_wire_put_int(&a, 3, value);
    put_attribute(x, &a, name, TUTTI_ONNX_A_INT);
}

void tutti_node_ints(tutti_exporter *x, const char *name, const int64_t *values, int count)
{
    tutti_string a = {0};
    for (int i = 0; i < count; i++) tutti_wire_put_int(&a, 8, values[i]);
    put_attribute(x, &a, name, TUTTI_ONNX_A_INTS);
}

void tutti_node_real(tutti_exporter *x, const char *name, double value)
{
    tutti_string a = {0};
    tutti_wire_put_float(&a, 2, (float)value);
    put_attribute(x, &a, name, TUTTI_ONNX_A_FLOAT);
}

void tutti_node_text(tutti_exporter *x, const char *name, const char *value)
{
    tutti_string a = {0};
    tutti_wire_put_text(&a, 4, value);
    put_attribute(x, &a, name, TUTTI_ONNX_A_STRING);
}

/* ---- constants ---- */

static const char *put_constant(tutti_exporter *x, int type, int dims, const int64_t *size,
                                const void *bytes, size_t count, char name[TUTTI_OUTER])
{
    tutti_string t = {0};
    snprintf(name, TUTTI_OUTER, "%.80s:constant%d", x->layer->name, x->constants++);
    for (int i = 0; i < dims; i++) tutti_wire_put_int(&t, 1, size[i]);
    tutti_wire_put_int(&t, 2, type);
    tutti_wire_put_text(&t, 8, name);
    tutti_wire_put_bytes(&t, 9, bytes, count);
    tutti_wire_put_message(&x->small, 5, &t);
    return name;
}

const char *tutti_outer_ints(tutti_exporter *x, const int64_t *values, int count,
                             char name[TUTTI_OUTER])
{
    const int64_t size[1] = {count};
    return put_constant(x, TUTTI_ONNX_INT64, 1, size, values, (size_t)count * sizeof *values, name);
}

const char *tutti_outer_reals(tutti_exporter *x, const float *values, int dims, const int64_t *size,
                              char name[TUTTI_OUTER])
{
    size_t count = 1;
    for (int i = 0; i < dims; i++) count *= (size_t)size[i];
    return put_constant(x, TUTTI_ONNX_FLOAT, dims, size, values, count * sizeof *values, name);
}

const char *tutti_outer_param_of(tutti_exporter *x, int index, int dims, const int64_t *size)
{
    const tutti_param *p = &x->net->params[x->layer->first_param + index];
    tutti_outer_param *out = &x->params[x->param_count++];
    *out = (tutti_outer_param){.param = p, .dims = dims ? dims : p->dim_count};
    for (int i = 0; i < out->dims; i++) out->size[i] = dims ? size[i] : p->dims[i];
    return p->name;
}

/* ---- what layers compute ---- */

static void name_of(const tutti_exporter *x, int layer, const char *part, char name[TUTTI_OUTER])
{
    if (layer < 0) snprintf(name, TUTTI_OUTER, "input%s", part);
    else snprintf(name, TUTTI_OUTER, "%.80s:%s", x->net->layers[layer].name, *part ? part : "out");
}

void tutti_outer_answer(const tutti_net *net, int target, char name[TUTTI_OUTER])
{
    const bool values = net->targets[target].form == TUTTI_TARGET_VALUES;
    char number[16] = "";
    if (target != tutti_net_answer(net)) snprintf(number, sizeof number, "%d", target + 1);
    snprintf(name, TUTTI_OUTER, "%s%s", values ? "values" : "probabilities", number);
}

tutti_shape tutti_outer_answer_shape(const tutti_net *net, int target)
{
    const tutti_target *t = &net->targets[target];
    return (tutti_shape){t->c, t->h, t->w};
}

void tutti_outer_output(const tutti_exporter *x, char name[TUTTI_OUTER])
{
    name_of(x, (int)(x->layer - x->net->layers), "", name);
}

void tutti_outer_input(tutti_exporter *x, int input, int dims, char name[TUTTI_OUTER])
{
    const int from = x->layer->from[input];
    const int has = from < 0 ? x->net->input.h * x->net->input.w == 1 ? 2 : 4 : x->dims[from];
    char whole[TUTTI_OUTER], part[32];
    name_of(x, from, "", name);
    if (!dims || has == dims) return;
    snprintf(whole, sizeof whole, "%.155s", name);
    snprintf(part, sizeof part, "%s%d", dims == 2 ? "flat" : "image", input);
    snprintf(name, TUTTI_OUTER, "%.80s:%s", x->layer->name, part);
    tutti_node_begin(x, dims == 2 ? "Flatten" : "Unsqueeze", part);
    tutti_node_in(x, whole);
    if (dims == 4) {
        static const int64_t axes[2] = {2, 3};
        char constant[TUTTI_OUTER];
        tutti_node_in(x, tutti_outer_ints(x, axes, 2, constant));
    }
    tutti_node_end(x, name);
}

int64_t tutti_outer_number(const tutti_exporter *x, const char *key, int index)
{
    return (int64_t)tutti_layer_number(x->layer, key, index);
}
