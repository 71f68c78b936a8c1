/* A net with its weights as a file of ONNX. The graph's messages are made in memory; weights, which
 * are most of it, go from file to file one tensor after another. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <tutti/interchange.h>
#include "base/memory.h"
#include "checkpoint/files.h"
#include "format/file.h"
#include "format/onnx.h"
#include "interchange/exporter.h"
#include "nn/kinds/kind.h"

enum {
    IR_VERSION = 9,
    OPSET = 20,                      /* of 2023: what PyTorch writes, too */
    MOST_BYTES = 2000 * 1000 * 1000, /* protocol buffers end at 2 GiB */
};

typedef struct source {
    tutti_net *net;
    tutti_safetensors *weights;
    char path[TUTTI_PATH_BYTES];
} source;

/* ---- net and weights ---- */

static tutti_status open_net(source *s, const tutti_export_options *o)
{
    char where[256];
    const char *name = tutti_safetensors_metadata(s->weights, "net");
    const char *text = tutti_safetensors_metadata(s->weights, "net_text");
    if (o->net) return tutti_net_load(&s->net, o->net);
    if (!text)
        return tutti_fail(TUTTI_ARGUMENT,
                          "'%s' does not say which net it is of: name that, and say --weights %s",
                          s->path, o->weights);
    snprintf(where, sizeof where, "%.200s.net", name ? name : "net");
    return tutti_net_parse(&s->net, text, where);
}

static tutti_status check_weights(const source *s)
{
    for (int i = 0; i < s->net->param_count; i++) {
        const tutti_param *p = &s->net->params[i];
        const int tensor = tutti_safetensors_find(s->weights, p->name);
        if (tensor < 0)
            return tutti_fail(TUTTI_ARGUMENT, "'%s' has no '%s', which the net wants", s->path,
                              p->name);
        const tutti_tensor_info *info = tutti_safetensors_tensor(s->weights, tensor);
        if (tutti_tensor_elements(&info->spec) != (int64_t)p->count)
            return tutti_fail(TUTTI_ARGUMENT, "'%s': '%s' has another size than in the net",
                              s->path, p->name);
    }
    return TUTTI_OK;
}

static tutti_status open_source(source *s, const tutti_export_options *o)
{
    TUTTI_TRY(tutti_checkpoint_weights(s->path, o->weights));
    TUTTI_TRY(tutti_checkpoint_verify_file(s->path));
    TUTTI_TRY(tutti_safetensors_open(&s->weights, s->path));
    TUTTI_TRY(open_net(s, o));
    return check_weights(s);
}

/* ---- the graph ---- */

/* Of the graph's own inputs and outputs: [N, c] or [N, c, h, w]. */
static int dims_of(tutti_shape s)
{
    return s.h * s.w == 1 ? 2 : 4;
}

static tutti_status write_layer(tutti_exporter *x)
{
    const tutti_layer *l = x->layer;
    const tutti_outer_kind *k = tutti_outer_kind_find(l->kind->word);
    const tutti_outer_kind *a = l->activation ? tutti_outer_kind_find(l->activation->word) : NULL;
    const int number = (int)(l - x->net->layers);
    char in[TUTTI_OUTER], out[TUTTI_OUTER], sum[TUTTI_OUTER];
    if (!k || (l->activation && !a))
        return tutti_fail(TUTTI_UNSUPPORTED,
                          "layer %s: ONNX has nothing for '%s', or Tutti does "
                          "not write it",
                          l->name, k ? l->activation->word : l->kind->word);
    const int reads =
        l->kind->is_loss ? dims_of(tutti_outer_answer_shape(x->net, l->target)) : k->dims;
    if (!l->kind->names_inputs) tutti_outer_input(x, 0, reads, in);
    const int from = l->from[0], given = from < 0 ? dims_of(x->net->input) : x->dims[from];
    x->dims[number] = k->makes ? k->makes : k->dims ? k->dims : given;
    if (l->kind->is_loss) tutti_outer_answer(x->net, l->target, out);
    else tutti_outer_output(x, out);
    snprintf(sum, sizeof sum, "%.80s:sum", l->name);
    k->write(x, in, a ? sum : out);
    x->is_merged = a != NULL;
    if (a) a->write(x, sum, out);
    x->is_merged = false;
    return TUTTI_OK;
}

static tutti_status write_layers(tutti_exporter *x)
{
    const tutti_net *net = x->net;
    TUTTI_TRY(tutti_alloc(&x->dims, (size_t)net->layer_count, sizeof *x->dims));
    TUTTI_TRY(tutti_alloc(&x->params, (size_t)net->param_count + 1, sizeof *x->params));
    for (int i = 0; i < net->layer_count; i++) {
        x->layer = &net->layers[i];
        if (!x->layer->only_trains) TUTTI_TRY(write_layer(x));
    }
    TUTTI_TRY(tutti_string_status(&x->small));
    return tutti_string_status(&x->nodes);
}

/* Of floats. */
static void put_port(tutti_string *graph, int number, const char *name, tutti_shape shape)
{
    const int64_t size[3] = {shape.c, shape.h, shape.w};
    tutti_string dims = {0}, one = {0}, tensor = {0}, type = {0}, port = {0};
    tutti_wire_put_text(&one, 2, "N");
    tutti_wire_put_message(&dims, 1, &one);
    for (int i = 0; i < dims_of(shape) - 1; i++) {
        tutti_wire_put_int(&one, 1, size[i]);
        tutti_wire_put_message(&dims, 1, &one);
    }
    tutti_wire_put_int(&tensor, 1, TUTTI_ONNX_FLOAT);
    tutti_wire_put_message(&tensor, 2, &dims);
    tutti_wire_put_message(&type, 1, &tensor);
    tutti_wire_put_text(&port, 1, name);
    tutti_wire_put_message(&port, 2, &type);
    tutti_wire_put_message(graph, number, &port);
}

static void put_answer(tutti_string *graph, const tutti_net *net, int target)
{
    char name[TUTTI_OUTER];
    tutti_outer_answer(net, target, name);
    put_port(graph, 12, name, tutti_outer_answer_shape(net, target));
}

/* All of the graph but the parameters. */
static void put_graph(tutti_exporter *x, tutti_string *graph)
{
    tutti_string_append(graph, x->nodes.data, x->nodes.length);
    tutti_wire_put_text(graph, 2, tutti_net_name(x->net));
    if (x->small.length) tutti_string_append(graph, x->small.data, x->small.length);
    put_port(graph, 11, "input", x->net->input);
    put_answer(graph, x->net, tutti_net_answer(x->net));
    for (int t = 0; t < x->net->target_count; t++)
        if (t != tutti_net_answer(x->net)) put_answer(graph, x->net, t);
}

/* The beginning of a parameter, up to its values. */
static void put_param(const tutti_outer_param *p, tutti_string *out)
{
    tutti_string tensor = {0};
    const size_t bytes = p->param->count * sizeof(float);
    for (int i = 0; i < p->dims; i++) tutti_wire_put_int(&tensor, 1, p->size[i]);
    tutti_wire_put_int(&tensor, 2, TUTTI_ONNX_FLOAT);
    tutti_wire_put_text(&tensor, 8, p->param->name);
    tutti_wire_put_head(&tensor, 9, bytes);
    tutti_wire_put_head(out, 5, tensor.length + bytes);
    if (tensor.status != TUTTI_OK) out->status = tensor.status;
    else tutti_string_append(out, tensor.data, tensor.length);
    tutti_string_deinit(&tensor);
}

/* ---- the file ---- */

static void put_fact(tutti_string *model, const source *s, const char *name)
{
    const char *value = tutti_safetensors_metadata(s->weights, name);
    tutti_string fact = {0};
    if (!value) return;
    tutti_wire_put_text(&fact, 1, name);
    tutti_wire_put_text(&fact, 2, value);
    tutti_wire_put_message(model, 14, &fact);
}

static void put_model(const source *s, size_t graph_bytes, tutti_string *model)
{
    static const char *const facts[] = {"classes", "mean", "std", "picture", NULL};
    tutti_string opset = {0};
    tutti_wire_put_int(model, 1, IR_VERSION);
    tutti_wire_put_text(model, 2, "tutti");
    tutti_wire_put_text(model, 3, TUTTI_VERSION);
    tutti_wire_put_int(&opset, 2, OPSET);
    tutti_wire_put_message(model, 8, &opset);
    for (int i = 0; facts[i]; i++) put_fact(model, s, facts[i]);
    tutti_wire_put_head(model, 7, graph_bytes);
}

typedef struct sink {
    int fd;
    const char *path;
    uint64_t at;
} sink;

static tutti_status put(sink *to, const void *bytes, size_t count)
{
    TUTTI_TRY(tutti_file_write_at(to->fd, to->path, bytes, count, to->at));
    to->at += count;
    return TUTTI_OK;
}

static tutti_status put_values(sink *to, const source *s, const tutti_outer_param *p)
{
    tutti_string head = {0};
    float *values = NULL;
    put_param(p, &head);
    tutti_status status = tutti_string_status(&head);
    if (status == TUTTI_OK) status = put(to, head.data, head.length);
    if (status == TUTTI_OK) status = tutti_alloc(&values, p->param->count, sizeof *values);
    if (status == TUTTI_OK)
        status =
            tutti_safetensors_read(s->weights, tutti_safetensors_find(s->weights, p->param->name),
                                   0, values, (int64_t)p->param->count);
    if (status == TUTTI_OK) status = put(to, values, p->param->count * sizeof *values);
    tutti_free(values);
    tutti_string_deinit(&head);
    return status;
}

static tutti_status write_all(sink *to, const source *s, const tutti_exporter *x,
                              const tutti_string *model, const tutti_string *graph)
{
    TUTTI_TRY(put(to, model->data, model->length));
    TUTTI_TRY(put(to, graph->data, graph->length));
    for (int i = 0; i < x->param_count; i++) TUTTI_TRY(put_values(to, s, &x->params[i]));
    if (fsync(to->fd)) return tutti_file_failure("write", to->path);
    return TUTTI_OK;
}

/* A file that is there is replaced when the new one is whole. */
static tutti_status replace(const char *path, const source *s, const tutti_exporter *x,
                            const tutti_string *model, const tutti_string *graph)
{
    char fresh[TUTTI_PATH_BYTES + 8];
    if ((size_t)snprintf(fresh, sizeof fresh, "%s.new", path) >= sizeof fresh)
        return tutti_fail(TUTTI_ARGUMENT, "--onnx: the path is too long");
    sink to = {open(fresh, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666), fresh, 0};
    if (to.fd < 0) return tutti_file_failure("write", fresh);
    tutti_status status = write_all(&to, s, x, model, graph);
    if (close(to.fd) && status == TUTTI_OK) status = tutti_file_failure("write", fresh);
    if (status == TUTTI_OK && rename(fresh, path)) status = tutti_file_failure("replace", path);
    if (status != TUTTI_OK) unlink(fresh);
    return status;
}

static tutti_status write_model(const char *path, const source *s, tutti_exporter *x)
{
    tutti_string graph = {0}, model = {0}, head = {0};
    TUTTI_TRY(write_layers(x));
    put_graph(x, &graph);
    size_t bytes = graph.length;
    for (int i = 0; i < x->param_count; i++) {
        tutti_string_clear(&head);
        put_param(&x->params[i], &head);
        bytes += head.length + x->params[i].param->count * sizeof(float);
    }
    put_model(s, bytes, &model);
    tutti_status status = tutti_string_status(&graph);
    if (status == TUTTI_OK) status = tutti_string_status(&model);
    if (status == TUTTI_OK && bytes > MOST_BYTES)
        status =
            tutti_fail(TUTTI_UNSUPPORTED, "the weights are more than 2 GB, which is as much as "
                                          "a file of ONNX can hold");
    if (status == TUTTI_OK) status = replace(path, s, x, &model, &graph);
    tutti_string_deinit(&graph);
    tutti_string_deinit(&model);
    tutti_string_deinit(&head);
    return status;
}

tutti_status tutti_export(const tutti_export_options *options, tutti_export_result *result)
{
    source s = {0};
    tutti_exporter x = {0};
    *result = (tutti_export_result){0};
    tutti_status status = open_source(&s, options);
    x.net = s.net;
    if (status == TUTTI_OK) status = write_model(options->onnx, &s, &x);
    *result = (tutti_export_result){x.node_count, x.param_count};
    tutti_string_deinit(&x.nodes);
    tutti_string_deinit(&x.small);
    tutti_string_deinit(&x.node);
    tutti_free(x.params);
    tutti_free(x.dims);
    tutti_net_destroy(&s.net);
    tutti_safetensors_close(&s.weights);
    return status;
}
