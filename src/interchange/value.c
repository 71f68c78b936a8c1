#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "interchange/importer.h"

/* ---- complaints ---- */

tutti_status tutti_import_unknown(const tutti_importer *im, const char *format, ...)
{
    char what[512], where[256] = "";
    const tutti_onnx_node *node = im->node;
    va_list args;
    va_start(args, format);
    vsnprintf(what, sizeof what, format, args);
    va_end(args);
    if (!node) return tutti_fail(TUTTI_UNSUPPORTED, "'%s': %s", im->model->path, what);
    if (node->output_count)
        snprintf(where, sizeof where, ", which makes '%.200s'",
                 tutti_onnx_name(im->model, node->outputs[0]));
    return tutti_fail(TUTTI_UNSUPPORTED, "'%s': node %d%s%.200s%s (%.60s%s%.60s%s): %s",
                      im->model->path, (int)(node - im->model->nodes), *node->name ? " '" : "",
                      node->name, *node->name ? "'" : "", node->op, *node->domain ? " of " : "",
                      node->domain, where, what);
}

/* ---- inputs ---- */

bool tutti_import_has(const tutti_onnx_node *node, int input)
{
    return input < node->input_count && node->inputs[input] != TUTTI_ONNX_NONE;
}

tutti_value *tutti_import_input(const tutti_importer *im, const tutti_onnx_node *node, int input)
{
    return tutti_import_has(node, input) ? im->values[node->inputs[input]] : NULL;
}

double tutti_constant_at(const tutti_constant *c, int64_t at)
{
    return c->is_real ? (double)c->reals[at] : (double)c->integers[at];
}

static tutti_status need_constant(tutti_importer *im, const tutti_onnx_node *node, int input,
                                  bool is_real, const tutti_constant **out)
{
    const tutti_value *value = tutti_import_input(im, node, input);
    if (!value) return tutti_import_unknown(im, "its input %d is missing", input);
    if (!value->constant)
        return tutti_import_unknown(im, "its input %d is computed: Tutti wants a constant there",
                                    input);
    if (value->constant->is_real != is_real)
        return tutti_import_unknown(im, "its input %d are %s", input,
                                    is_real ? "whole numbers" : "no whole numbers");
    *out = value->constant;
    return TUTTI_OK;
}

tutti_status tutti_import_reals(tutti_importer *im, const tutti_onnx_node *node, int input,
                                const tutti_constant **out)
{
    return need_constant(im, node, input, true, out);
}

tutti_status tutti_import_integers(tutti_importer *im, const tutti_onnx_node *node, int input,
                                   const tutti_constant **out)
{
    return need_constant(im, node, input, false, out);
}

tutti_status tutti_import_list(tutti_importer *im, const tutti_onnx_node *node,
                               const char *attribute, int input, int64_t out[TUTTI_ONNX_MAX_DIMS],
                               int *count)
{
    const tutti_constant *c = NULL;
    *count = -1;
    if (tutti_onnx_has(node, attribute))
        *count = tutti_onnx_ints(node, attribute, out, TUTTI_ONNX_MAX_DIMS);
    else if (tutti_import_has(node, input)) {
        TUTTI_TRY(tutti_import_integers(im, node, input, &c));
        *count = c->count > TUTTI_ONNX_MAX_DIMS ? TUTTI_ONNX_MAX_DIMS + 1 : (int)c->count;
        for (int i = 0; i < *count && i < TUTTI_ONNX_MAX_DIMS; i++) out[i] = c->integers[i];
    }
    if (*count > TUTTI_ONNX_MAX_DIMS)
        return tutti_import_unknown(im, "%s has more than %d numbers", attribute,
                                    TUTTI_ONNX_MAX_DIMS);
    return TUTTI_OK;
}

tutti_status tutti_import_axis(const tutti_importer *im, int64_t *axis, int dims)
{
    if (*axis < -dims || *axis >= dims)
        return tutti_import_unknown(im, "axis %lld of %d dimensions", (long long)*axis, dims);
    if (*axis < 0) *axis += dims;
    return TUTTI_OK;
}

tutti_shape tutti_import_shape(const tutti_importer *im, int layer)
{
    return layer == TUTTI_INPUT ? im->input : im->drafts[layer].shape;
}

tutti_status tutti_import_feature(tutti_importer *im, const tutti_onnx_node *node, int input,
                                  tutti_value *out)
{
    tutti_value *value = tutti_import_input(im, node, input);
    if (!value) return tutti_import_unknown(im, "its input %d is missing", input);
    if (value->constant)
        return tutti_import_unknown(im, "its input %d is a constant: nothing is left to compute",
                                    input);
    TUTTI_TRY(tutti_import_settle(im, value));
    *out = *value;
    return TUTTI_OK;
}

tutti_status tutti_import_image(tutti_importer *im, const tutti_onnx_node *node, int input,
                                tutti_value *out)
{
    TUTTI_TRY(tutti_import_feature(im, node, input, out));
    if (out->view.dims != 4)
        return tutti_import_unknown(im,
                                    "its input has %d dimensions: Tutti's images have 4, samples, "
                                    "channels, height and width",
                                    out->view.dims);
    TUTTI_TRY(tutti_import_whole(im, out));
    if (!tutti_aspect_is_image(&out->view, tutti_import_shape(im, out->layer)))
        return tutti_import_unknown(im, "its input is no image as a layer makes it: dimensions "
                                        "were exchanged");
    return TUTTI_OK;
}

/* ---- outputs ---- */

tutti_status tutti_import_give(tutti_importer *im, const tutti_onnx_node *node, int output,
                               const tutti_value *value)
{
    if (output >= node->output_count || node->outputs[output] == TUTTI_ONNX_NONE) return TUTTI_OK;
    const int name = node->outputs[output];
    if (im->values[name])
        return tutti_fail(TUTTI_CHECKPOINT, "'%s': two things are called '%s'", im->model->path,
                          tutti_onnx_name(im->model, name));
    TUTTI_TRY(tutti_alloc(&im->values[name], 1, sizeof **im->values));
    *im->values[name] = *value;
    if (!value->constant && value->layer >= 0 && im->uses[name] > 1) {
        im->drafts[value->layer].takes_factor = false; /* somebody else sees it as it is */
        im->drafts[value->layer].takes_term = false;
    }
    return TUTTI_OK;
}

tutti_status tutti_import_give_constant(tutti_importer *im, const tutti_onnx_node *node,
                                        tutti_constant *c)
{
    const tutti_value value = {.constant = c};
    return tutti_import_give(im, node, 0, &value);
}

/* ---- constants ---- */

enum { MOST_ELEMENTS = INT32_MAX, COMPUTED_PER_READ = 4 };

static tutti_status count_elements(const tutti_importer *im, tutti_constant *c, int64_t most)
{
    c->count = 1;
    for (int i = 0; i < c->dims; i++) {
        if (c->size[i] < 0 || (c->size[i] > 0 && c->count > most / c->size[i]))
            return tutti_import_unknown(im, "a constant of an impossible shape, or a huge one");
        c->count *= c->size[i];
    }
    return TUTTI_OK;
}

static tutti_status new_constant(tutti_importer *im, const tutti_constant *like, int64_t most,
                                 tutti_constant **out)
{
    tutti_constant *c = NULL;
    TUTTI_TRY(tutti_grow(&im->constants, &im->constant_room, im->constant_count,
                         sizeof(tutti_constant *)));
    TUTTI_TRY(tutti_alloc(&c, 1, sizeof *c));
    im->constants[im->constant_count++] = c;
    *c = *like;
    c->name = TUTTI_ONNX_NONE;
    c->reals = NULL;
    c->integers = NULL;
    TUTTI_TRY(count_elements(im, c, most));
    const size_t room = (size_t)c->count + 1; /* at least one */
    *out = c;
    return c->is_real ? tutti_alloc(&c->reals, room, sizeof *c->reals)
                      : tutti_alloc(&c->integers, room, sizeof *c->integers);
}

tutti_status tutti_import_constant(tutti_importer *im, const tutti_constant *like,
                                   tutti_constant **out)
{
    TUTTI_TRY(new_constant(im, like, im->computed_left, out));
    im->computed_left -= (*out)->count;
    return TUTTI_OK;
}

/* A file may name the same bytes beside it as often as it likes. */
static tutti_status take_memory(tutti_importer *im, const tutti_constant *c)
{
    const int64_t bytes = c->count * (c->is_real ? 4 : 8);
    if (bytes > im->bytes_left)
        return tutti_fail(TUTTI_MEMORY, "'%s': its constants take more memory than there is",
                          im->model->path);
    im->bytes_left -= bytes;
    im->computed_left += COMPUTED_PER_READ * c->count;
    return TUTTI_OK;
}

tutti_status tutti_import_tensor(tutti_importer *im, const tutti_onnx_tensor *tensor,
                                 tutti_constant **out)
{
    tutti_constant like = {.dims = tensor->dims, .is_real = tutti_onnx_is_real(tensor)};
    TUTTI_TRY(tutti_onnx_check_size(im->model, tensor));
    memcpy(like.size, tensor->shape, sizeof like.size);
    like.count = tutti_onnx_elements(tensor);
    TUTTI_TRY(take_memory(im, &like));
    TUTTI_TRY(new_constant(im, &like, MOST_ELEMENTS, out));
    (*out)->name = tensor->name;
    return like.is_real ? tutti_onnx_reals(im->model, tensor, (*out)->reals)
                        : tutti_onnx_integers(im->model, tensor, (*out)->integers);
}
