/* Drafts as a net's text and a file of weights. The text is read as a net before anything is
 * written: what the importer thinks of shapes and parameters is what the net thinks, or it fails.
 * */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "format/file.h"
#include "interchange/about.h"
#include "nn/kinds/kind.h"

/* ---- layers that stay ---- */

static const tutti_kind *kind_of(const char *word)
{
    const tutti_kind *const *k = tutti_kinds;
    while (*k && strcmp((*k)->word, word)) k++;
    TUTTI_ASSERT(*k);
    return *k;
}

/* Layers that nothing leads to are gone, merged with themselves; the others know their readers. */
static void drop_unread(tutti_importer *im, int last)
{
    for (int i = im->draft_count - 1; i >= 0; i--) {
        tutti_draft *d = &im->drafts[i];
        if (!d->readers && i != last) d->merged = i;
        for (int k = 0; k < d->input_count && d->merged < 0; k++)
            if (d->inputs[k] >= 0) im->drafts[d->inputs[k]].readers++;
    }
}

static int real_layer(const tutti_importer *im, int layer)
{
    while (layer >= 0 && im->drafts[layer].merged >= 0) layer = im->drafts[layer].merged;
    return layer;
}

/* Activations become words of the layer below, where nobody else reads that one. */
static void merge_activations(tutti_importer *im)
{
    for (int i = 0; i < im->draft_count; i++) {
        tutti_draft *d = &im->drafts[i];
        if (d->merged >= 0) continue;
        for (int k = 0; k < d->input_count; k++) d->inputs[k] = real_layer(im, d->inputs[k]);
        const int below = d->inputs[0];
        if (below < 0 || *d->words || !kind_of(d->kind)->is_activation) continue;
        tutti_draft *under = &im->drafts[below];
        if (under->activation || under->readers != 1 || !kind_of(under->kind)->takes_activation)
            continue;
        under->activation = d->kind;
        under->readers = d->readers;
        d->merged = below;
    }
}

/* ---- text ---- */

static const char *name_of(const tutti_importer *im, int layer)
{
    return layer < 0 ? "input" : im->drafts[layer].name;
}

static bool lacks_bias(const tutti_draft *d)
{
    const bool has_weights =
        !strcmp(d->kind, "conv") || !strcmp(d->kind, "deconv") || !strcmp(d->kind, "fc");
    return has_weights && d->param_count == 1;
}

static void write_layer(const tutti_importer *im, const tutti_draft *d, int width, int *above,
                        tutti_string *text)
{
    const bool names_inputs = kind_of(d->kind)->names_inputs;
    tutti_string_printf(text, "%-*s %s", width, d->name, d->kind);
    for (int k = 0; k < d->input_count && names_inputs; k++)
        tutti_string_printf(text, " %s", name_of(im, d->inputs[k]));
    tutti_string_printf(text, "%s%s", d->words, lacks_bias(d) ? " nobias" : "");
    if (d->activation) tutti_string_printf(text, " %s", d->activation);
    if (d->is_frozen) tutti_string_printf(text, " frozen");
    if (!names_inputs && d->inputs[0] != *above)
        tutti_string_printf(text, " from=%s", name_of(im, d->inputs[0]));
    tutti_string_printf(text, "\n");
    *above = (int)(d - im->drafts);
}

static int width_of(const tutti_importer *im)
{
    int width = (int)strlen("loss");
    for (int i = 0; i < im->draft_count; i++) {
        const int length = (int)strlen(im->drafts[i].name);
        if (im->drafts[i].merged < 0 && length > width) width = length;
    }
    return width;
}

static void write_text(const tutti_importer *im, int last, tutti_string *text)
{
    const tutti_onnx *m = im->model;
    const tutti_shape in = im->input;
    const char *slash = strrchr(m->path, '/');
    const int width = width_of(im);
    int above = TUTTI_INPUT;
    tutti_string_printf(text, "tutti net 1\n# from %s, ONNX opset %lld%s%s\n",
                        slash ? slash + 1 : m->path, (long long)m->opset,
                        *m->producer ? " by " : "", m->producer);
    if (in.h == 1 && in.w == 1) tutti_string_printf(text, "input %d\n\n", in.c);
    else tutti_string_printf(text, "input %d %d %d\n\n", in.c, in.h, in.w);
    for (int i = 0; i < im->draft_count; i++)
        if (im->drafts[i].merged < 0) write_layer(im, &im->drafts[i], width, &above, text);
    const tutti_shape out = im->drafts[last].shape;
    tutti_string_printf(text, "%-*s %ssoftmax", width, "loss", out.h * out.w > 1 ? "pixel" : "");
    if (above != last) tutti_string_printf(text, " from=%s", name_of(im, last));
    tutti_string_printf(text, "\n");
}

/* ---- weights ---- */

typedef struct tensors {
    tutti_tensor_spec *specs;
    const tutti_draft_param **params;
    char (*names)[TUTTI_CALLED + 32];
    int count;
} tensors;

static void tensors_deinit(tensors *t)
{
    tutti_free(t->specs);
    tutti_free(t->params);
    tutti_free(t->names);
}

static tutti_status list_tensors(const tutti_importer *im, tensors *t)
{
    const size_t room = (size_t)im->draft_count * TUTTI_DRAFT_PARAMS;
    TUTTI_TRY(tutti_alloc(&t->specs, room, sizeof *t->specs));
    TUTTI_TRY(tutti_alloc(&t->params, room, sizeof(tutti_draft_param *)));
    TUTTI_TRY(tutti_alloc(&t->names, room, sizeof *t->names));
    for (int i = 0; i < im->draft_count; i++) {
        const tutti_draft *d = &im->drafts[i];
        for (int k = 0; k < d->param_count && d->merged < 0; k++) {
            const tutti_draft_param *p = &d->params[k];
            tutti_tensor_spec *spec = &t->specs[t->count];
            snprintf(t->names[t->count], sizeof *t->names, "%s.%s", d->name, p->suffix);
            *spec = (tutti_tensor_spec){.name = t->names[t->count],
                                        .dims = p->dims,
                                        .dtype = p->counts ? TUTTI_I64 : TUTTI_F32};
            memcpy(spec->shape, p->size, sizeof p->size);
            t->params[t->count++] = p;
        }
    }
    return TUTTI_OK;
}

/* Has the layer the shape that the importer thinks it has? */
static bool is_made(const tutti_net *net, const tutti_draft *d)
{
    int i = 0;
    while (i < net->layer_count && strcmp(net->layers[i].name, d->name)) i++;
    if (i == net->layer_count) return false;
    const tutti_shape out = net->layers[i].out;
    return out.c == d->shape.c && out.h == d->shape.h && out.w == d->shape.w;
}

/* Does the net think the same? */
static tutti_status check_net(const tutti_importer *im, const tutti_net *net, const tensors *t)
{
    for (int i = 0; i < im->draft_count; i++)
        if (im->drafts[i].merged < 0 && !is_made(net, &im->drafts[i]))
            return tutti_fail(TUTTI_SHAPE,
                              "'%s': layer %s of the net is not what the model computes",
                              im->model->path, im->drafts[i].name);
    bool fits = net->param_count == t->count;
    for (int i = 0; fits && i < t->count; i++) {
        const int param = tutti_net_find_param(net, t->specs[i].name);
        fits = param >= 0 && net->params[param].count == (size_t)t->params[i]->count;
    }
    return fits ? TUTTI_OK
                : tutti_fail(TUTTI_SHAPE, "the net made of it has other parameters than the model");
}

static tutti_status write_tensors(const tensors *t, tutti_safetensors_layout *layout,
                                  const char *path)
{
    tutti_safetensors_writer *writer = NULL;
    TUTTI_TRY(tutti_safetensors_writer_open(&writer, path, layout, true));
    tutti_status s = TUTTI_OK;
    for (int i = 0; s == TUTTI_OK && i < t->count; i++)
        s = tutti_safetensors_write(writer, i, 0, t->params[i]->values, t->params[i]->count);
    if (s == TUTTI_OK) return tutti_safetensors_writer_close(&writer);
    tutti_safetensors_writer_abandon(&writer);
    return s;
}

/* Under another name first: a file that is there is replaced when the new one is whole. */
static tutti_status save_tensors(const tensors *t, const tutti_told *told, const char *path)
{
    tutti_safetensors_layout *layout = NULL;
    char fresh[4096 + 16];
    snprintf(fresh, sizeof fresh, "%s.new", path);
    TUTTI_TRY(
        tutti_safetensors_layout_create_with(&layout, t->specs, t->count, told->list, told->count));
    unlink(fresh);
    tutti_status s = write_tensors(t, layout, fresh);
    if (s == TUTTI_OK && rename(fresh, path)) s = tutti_file_failure("replace", path);
    if (s != TUTTI_OK) unlink(fresh);
    tutti_safetensors_layout_destroy(&layout);
    return s;
}

/* ---- both ---- */

static tutti_status save(const tutti_importer *im, const tutti_string *text, const tensors *t)
{
    tutti_net *net = NULL;
    tutti_told told = {0};
    const tutti_status parsed = tutti_net_parse(&net, text->data, im->net_path);
    if (parsed != TUTTI_OK)
        return tutti_fail(TUTTI_UNSUPPORTED, "'%s': the net it makes is none: %s", im->model->path,
                          tutti_message());
    tutti_status s = check_net(im, net, t);
    if (s == TUTTI_OK)
        s = tutti_told_init(&told, im, tutti_net_name(net), text->data, tutti_net_classes(net));
    if (s == TUTTI_OK) s = save_tensors(t, &told, im->weights_path);
    if (s == TUTTI_OK) s = tutti_file_replace(im->net_path, text->data, text->length);
    tutti_told_deinit(&told);
    tutti_net_destroy(&net);
    return s;
}

static tutti_status name_files(tutti_importer *im)
{
    const char *path = im->options->output;
    if (strlen(path) + 16 > sizeof im->net_path)
        return tutti_fail(TUTTI_ARGUMENT, "--output: the path is too long");
    snprintf(im->net_path, sizeof im->net_path, "%s.net", path);
    snprintf(im->weights_path, sizeof im->weights_path, "%s.safetensors", path);
    return TUTTI_OK;
}

tutti_status tutti_drafts_finish(tutti_importer *im, int last, tutti_import_result *result)
{
    tutti_string text = {0};
    tensors t = {0};
    drop_unread(im, last);
    merge_activations(im);
    tutti_drafts_name(im);
    last = real_layer(im, last);
    write_text(im, last, &text);
    tutti_status s = tutti_string_status(&text);
    if (s == TUTTI_OK) s = list_tensors(im, &t);
    if (s == TUTTI_OK) s = name_files(im);
    if (s == TUTTI_OK) s = save(im, &text, &t);
    for (int i = 0; i < im->draft_count; i++) result->layers += im->drafts[i].merged < 0;
    result->tensors = t.count;
    tensors_deinit(&t);
    tutti_string_deinit(&text);
    return s;
}
