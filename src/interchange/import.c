#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/memory.h"
#include "interchange/curve.h"

enum {
    OLDEST = 7, /* opset */
    MOST_SAMPLES = 1 << 20,
    /* A prime: no shape is a multiple of it by chance. It is small, since today's exporter computes
     * indices of all samples' values. */
    OPEN_SAMPLES = 10007,
    MOST_VALUES = 1 << 28,
    MOST_COMPUTED = 1 << 26, /* elements, without any constant that was read */
    NOT_LOADED = -1,
};

/* ---- the beginning ---- */

static tutti_status count_uses(tutti_importer *im)
{
    const tutti_onnx *m = im->model;
    TUTTI_TRY(tutti_alloc(&im->values, (size_t)m->name_count, sizeof(tutti_value *)));
    TUTTI_TRY(tutti_alloc(&im->uses, (size_t)m->name_count, sizeof *im->uses));
    for (int i = 0; i < m->node_count; i++) {
        const tutti_onnx_node *node = &m->nodes[i];
        const bool only_looks = !strcmp(node->op, "Shape") || !strcmp(node->op, "Size");
        for (int k = 0; k < node->input_count && !only_looks; k++) im->uses[node->inputs[k]]++;
    }
    for (int i = 0; i < m->output_count; i++) im->uses[m->outputs[i].name]++;
    return TUTTI_OK;
}

/* Old files list constants among the inputs, too. */
static tutti_status find_input(const tutti_importer *im, const tutti_onnx_port **out)
{
    const tutti_onnx *m = im->model;
    *out = NULL;
    for (int i = 0; i < m->input_count; i++) {
        if (im->places[m->inputs[i].name]) continue;
        if (*out)
            return tutti_import_unknown(im,
                                        "it has more than one input, '%s' and '%s': Tutti's "
                                        "nets have one",
                                        tutti_onnx_name(m, (*out)->name),
                                        tutti_onnx_name(m, m->inputs[i].name));
        *out = &m->inputs[i];
    }
    return *out ? TUTTI_OK : tutti_import_unknown(im, "it has no input");
}

/* Do images come with channels last, and does every reader turn them at once? */
static bool is_turned(const tutti_importer *im, const tutti_onnx_port *port)
{
    static const int64_t wanted[4] = {0, 3, 1, 2};
    int readers = 0;
    for (int i = 0; i < im->model->node_count; i++) {
        const tutti_onnx_node *node = &im->model->nodes[i];
        for (int k = 0; k < node->input_count; k++) {
            int64_t order[4];
            if (node->inputs[k] != port->name) continue;
            if (strcmp(node->op, "Transpose") || tutti_onnx_ints(node, "perm", order, 4) != 4 ||
                memcmp(order, wanted, sizeof order))
                return false;
            readers++;
        }
    }
    return port->dims == 4 && readers > 0;
}

static tutti_status set_shape(tutti_importer *im, const tutti_onnx_port *port, bool turned)
{
    static const int plain[3] = {1, 2, 3}, last[3] = {3, 1, 2};
    const int *place = turned ? last : plain;
    const tutti_shape said = im->options->input;
    const int64_t given[3] = {said.c, said.h, said.w};
    int64_t size[3] = {1, 1, 1}, count = 1;
    for (int i = 0; i < (port->dims == 2 ? 1 : 3); i++) {
        const int64_t known = port->dims == 2 ? port->shape[1] : port->shape[place[i]];
        size[i] = known > 0 ? known : given[i];
        if (size[i] < 1)
            return tutti_import_unknown(im, "the file leaves the size of its input open: say "
                                            "--input CxHxW");
        if (known > 0 && said.c && given[i] != known)
            return tutti_fail(TUTTI_ARGUMENT,
                              "--input: the file's input has %lld where you say "
                              "%lld",
                              (long long)known, (long long)given[i]);
        if (size[i] > MOST_VALUES / count)
            return tutti_import_unknown(im, "its input is too large");
        count *= size[i];
    }
    im->input = (tutti_shape){(int)size[0], (int)size[1], (int)size[2]};
    return TUTTI_OK;
}

static tutti_status begin(tutti_importer *im)
{
    static const int64_t last[4] = {0, 2, 3, 1};
    const tutti_onnx_port *port;
    tutti_value *x = NULL;
    TUTTI_TRY(find_input(im, &port));
    if (port->dims != 2 && port->dims != 4)
        return tutti_import_unknown(im,
                                    "its input '%s' has %d dimensions: Tutti reads images, [N, "
                                    "C, H, W], and vectors, [N, C]",
                                    tutti_onnx_name(im->model, port->name), port->dims);
    const bool turned = is_turned(im, port);
    TUTTI_TRY(set_shape(im, port, turned));
    im->samples = port->shape[0] > 0 ? port->shape[0] : OPEN_SAMPLES;
    if (im->samples > MOST_SAMPLES)
        return tutti_import_unknown(im, "%lld samples", (long long)im->samples);
    TUTTI_TRY(tutti_alloc(&x, 1, sizeof *x));
    im->values[port->name] = x;
    x->layer = TUTTI_INPUT;
    x->view = tutti_aspect_of(im->samples, im->input, port->dims);
    if (turned) tutti_aspect_permute(&x->view, last);
    return TUTTI_OK;
}

/* ---- the walk ---- */

/* Constants are named at once, and read when somebody wants them. */
static tutti_status list_constants(tutti_importer *im)
{
    TUTTI_TRY(tutti_alloc(&im->places, (size_t)im->model->name_count, sizeof *im->places));
    for (int i = 0; i < im->model->constant_count; i++) {
        const int name = im->model->constants[i].name;
        if (im->places[name])
            return tutti_fail(TUTTI_CHECKPOINT, "'%s': two constants are called '%s'",
                              im->model->path, tutti_onnx_name(im->model, name));
        im->places[name] = name ? i + 1 : 0;
    }
    return TUTTI_OK;
}

static tutti_status load_input(tutti_importer *im, int name)
{
    tutti_constant *c;
    if (name == TUTTI_ONNX_NONE || im->values[name]) return TUTTI_OK;
    if (!im->places[name])
        return tutti_fail(TUTTI_CHECKPOINT,
                          "'%s': node %d '%s' (%s) reads '%s', which nothing before it makes: the "
                          "graph goes in a circle, or its nodes are out of order",
                          im->model->path, (int)(im->node - im->model->nodes), im->node->name,
                          im->node->op, tutti_onnx_name(im->model, name));
    TUTTI_TRY(tutti_import_tensor(im, &im->model->constants[im->places[name] - 1], &c));
    TUTTI_TRY(tutti_alloc(&im->values[name], 1, sizeof **im->values));
    im->values[name]->constant = c;
    return TUTTI_OK;
}

static bool has_only_constants(const tutti_importer *im, const tutti_onnx_node *node)
{
    for (int i = 0; i < node->input_count; i++) {
        const tutti_value *v = tutti_import_input(im, node, i);
        if (v && !v->constant) return false;
    }
    return true;
}

/* What a layer has copied and nobody else reads. */
static void release(const tutti_importer *im, const tutti_onnx_node *node)
{
    enum { LARGE = 1 << 16 };
    for (int i = 0; i < node->input_count; i++) {
        const tutti_value *v = tutti_import_input(im, node, i);
        tutti_constant *c = v ? v->constant : NULL;
        if (!c || c->count < LARGE || !c->is_real || c->name != node->inputs[i] ||
            im->uses[c->name] != 1)
            continue;
        tutti_free(c->reals);
        c->reals = NULL;
    }
}

static tutti_status convert(tutti_importer *im, const tutti_onnx_node *node)
{
    const tutti_operator *o = *node->domain ? NULL : tutti_operator_find(node->op);
    if (!o)
        return tutti_import_unknown(im, "Tutti has nothing like it; 'tutti import --operators' "
                                        "lists what it has");
    const bool folds = has_only_constants(im, node) && o->fold;
    if (!folds && !o->convert)
        return tutti_import_unknown(im, "Tutti has it for constants only, to find out shapes");
    if (folds && o->fold != o->convert && !tutti_import_input(im, node, 0))
        return tutti_import_unknown(im, "its input is missing");
    if (folds) return o->fold(im, node);
    TUTTI_TRY(o->convert(im, node));
    release(im, node);
    return TUTTI_OK;
}

static tutti_status walk(tutti_importer *im)
{
    for (int i = 0; i < im->model->node_count; i++) {
        const tutti_onnx_node *node = im->node = &im->model->nodes[i];
        for (int k = 0; k < node->input_count; k++) TUTTI_TRY(load_input(im, node->inputs[k]));
        TUTTI_TRY(convert(im, node));
    }
    return TUTTI_OK;
}

/* ---- the end ---- */

static tutti_status find_last(tutti_importer *im, int *layer)
{
    const tutti_onnx *m = im->model;
    im->node = NULL;
    if (m->output_count != 1)
        return tutti_import_unknown(im, "it has %d outputs: Tutti's nets have one",
                                    m->output_count);
    tutti_value *v = im->values[m->outputs[0].name];
    if (!v || v->constant) return tutti_import_unknown(im, "its output is not computed");
    TUTTI_TRY(tutti_import_settle(im, v));
    TUTTI_TRY(tutti_import_whole(im, v));
    const tutti_shape shape = tutti_import_shape(im, v->layer);
    if (v->layer < 0 || (shape.h * shape.w != 1 && !tutti_aspect_is_image(&v->view, shape)))
        return tutti_import_unknown(im,
                                    "its output is not one value for each class, of a sample or of "
                                    "each of its pixels, which is what Tutti's nets give");
    *layer = v->layer;
    return TUTTI_OK;
}

static void remark(const tutti_importer *im)
{
    const tutti_log *log = &im->options->log;
    if (im->folded)
        tutti_warn(log,
                   "batch normalisation was folded into %d convolutions: the net computes the "
                   "same and trains without it; to keep it export the module in training mode "
                   "(doc/ONNX.md)",
                   im->folded);
    for (int i = 0; i < im->model->constant_count; i++) {
        const tutti_onnx_tensor *t = &im->model->constants[i];
        if (t->dims > 1 && im->uses[t->name] > 1 && tutti_onnx_is_real(t))
            tutti_info(log, "several layers use '%s': each gets a copy and trains its own",
                       tutti_onnx_name(im->model, t->name));
    }
}

static tutti_status import(tutti_importer *im, tutti_import_result *result)
{
    int last = 0;
    if (im->model->opset < OLDEST)
        return tutti_import_unknown(im, "it is of opset %lld: Tutti reads 7 and newer",
                                    (long long)im->model->opset);
    TUTTI_TRY(count_uses(im));
    TUTTI_TRY(list_constants(im));
    TUTTI_TRY(begin(im));
    TUTTI_TRY(walk(im));
    TUTTI_TRY(find_last(im, &last));
    TUTTI_TRY(tutti_drafts_finish(im, last, result));
    remark(im);
    return TUTTI_OK;
}

static void deinit(tutti_importer *im)
{
    for (int i = 0; im->values && i < im->model->name_count; i++) tutti_free(im->values[i]);
    for (int i = 0; i < im->constant_count; i++) {
        tutti_free(im->constants[i]->reals);
        tutti_free(im->constants[i]->integers);
        tutti_free(im->constants[i]);
    }
    for (int i = 0; i < im->draft_count; i++) {
        for (int k = 0; k < im->drafts[i].param_count; k++)
            tutti_free(im->drafts[i].params[k].values);
        tutti_free(im->drafts[i].inputs);
    }
    tutti_curves_destroy(im);
    tutti_free(im->values);
    tutti_free(im->uses);
    tutti_free(im->places);
    tutti_free(im->constants);
    tutti_free(im->drafts);
}

static int64_t memory(void)
{
    const long pages = sysconf(_SC_PHYS_PAGES), bytes = sysconf(_SC_PAGESIZE);
    return pages > 0 && bytes > 0 ? (int64_t)pages * bytes : INT64_MAX / 2;
}

tutti_status tutti_import(const tutti_import_options *options, tutti_import_result *result)
{
    tutti_importer im = {
        .options = options, .bytes_left = memory(), .computed_left = MOST_COMPUTED};
    tutti_onnx *model = NULL;
    *result = (tutti_import_result){0};
    TUTTI_TRY(tutti_onnx_open(&model, options->model));
    im.model = model;
    const tutti_status s = import(&im, result);
    deinit(&im);
    tutti_onnx_close(&model);
    return s;
}
