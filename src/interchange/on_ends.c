/* What does nothing, what a net does differently, and what stands at the end. */
#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "interchange/fold.h"

/* ---- nothing ---- */

static tutti_status on_identity(tutti_importer *im, const tutti_onnx_node *node)
{
    const tutti_value *x = tutti_import_input(im, node, 0);
    if (!x) return tutti_import_unknown(im, "its input is missing");
    return tutti_import_give(im, node, 0, x);
}

/* What the node itself says: a tensor, a number, a list. */
static tutti_status on_constant(tutti_importer *im, const tutti_onnx_node *node)
{
    tutti_constant like = {.dims = 1}, *out;
    tutti_onnx_tensor tensor;
    const bool is_int = tutti_onnx_has(node, "value_int");
    const bool is_float = tutti_onnx_has(node, "value_float");
    const int ints = tutti_onnx_ints(node, "value_ints", NULL, 0);
    const int floats = tutti_onnx_floats(node, "value_floats", NULL, 0);
    if (!is_int && !is_float && !ints && !floats) {
        TUTTI_TRY(tutti_onnx_attribute_tensor(im->model, node, "value", &tensor));
        TUTTI_TRY(tutti_import_tensor(im, &tensor, &out));
        return tutti_import_give_constant(im, node, out);
    }
    like.is_real = is_float || floats;
    like.size[0] = ints ? ints : floats;
    if (is_int || is_float) like.dims = 0;
    TUTTI_TRY(tutti_import_constant(im, &like, &out));
    if (is_int) out->integers[0] = tutti_onnx_int(node, "value_int", 0);
    else if (is_float) out->reals[0] = (float)tutti_onnx_float(node, "value_float", 0);
    else if (ints) tutti_onnx_ints(node, "value_ints", out->integers, ints);
    else tutti_onnx_floats(node, "value_floats", out->reals, floats);
    return tutti_import_give_constant(im, node, out);
}

static tutti_status on_cast(tutti_importer *im, const tutti_onnx_node *node)
{
    const tutti_onnx_tensor to = {.type = (int)tutti_onnx_int(node, "to", TUTTI_ONNX_FLOAT)};
    if (!tutti_onnx_is_real(&to)) return tutti_import_unknown(im, "to whole numbers");
    return on_identity(im, node);
}

/* ---- noise ---- */

static tutti_status on_dropout(tutti_importer *im, const tutti_onnx_node *node)
{
    double rate = tutti_onnx_float(node, "ratio", 0.5);
    const tutti_value *said = tutti_import_input(im, node, 1);
    tutti_value x;
    int draft;
    if (said && (!said->constant || said->constant->count != 1))
        return tutti_import_unknown(im, "its ratio is no number of the file");
    if (said) rate = tutti_constant_at(said->constant, 0);
    if (node->output_count > 1 && im->uses[node->outputs[1]])
        return tutti_import_unknown(im, "the mask (its second output)");
    TUTTI_TRY(tutti_import_feature(im, node, 0, &x));
    if (!(rate > 0 && rate < 1)) return tutti_import_give(im, node, 0, &x);
    TUTTI_TRY(tutti_import_complete(im, &x));
    TUTTI_TRY(tutti_draft_add(im, "dropout", &x.layer, 1, tutti_import_shape(im, x.layer), &draft));
    tutti_draft_say(im, draft, " %.6g", rate);
    x.layer = draft;
    return tutti_import_give(im, node, 0, &x);
}

/* ---- means ---- */

static tutti_status on_reduce_mean(tutti_importer *im, const tutti_onnx_node *node)
{
    const bool keeps = tutti_onnx_int(node, "keepdims", 1) != 0;
    int64_t axes[TUTTI_ONNX_MAX_DIMS], size[TUTTI_ONNX_MAX_DIMS];
    int count, kept = 0, draft;
    unsigned gone = 0;
    tutti_value x;
    TUTTI_TRY(tutti_import_feature(im, node, 0, &x));
    TUTTI_TRY(tutti_import_complete(im, &x));
    TUTTI_TRY(tutti_import_list(im, node, "axes", 1, axes, &count));
    for (int i = 0; i < count; i++) {
        TUTTI_TRY(tutti_import_axis(im, &axes[i], x.view.dims));
        gone |= 1u << axes[i];
    }
    const tutti_shape in = tutti_import_shape(im, x.layer);
    if (!gone || !tutti_aspect_has_pixels(&x.view, in, gone))
        return tutti_import_unknown(im, "a mean over something else than all pixels of a channel");
    for (int d = 0; d < x.view.dims; d++)
        if (keeps || !(gone >> d & 1)) size[kept++] = gone >> d & 1 ? 1 : x.view.size[d];
    TUTTI_TRY(tutti_draft_add(im, "avgpool", &x.layer, 1, (tutti_shape){in.c, 1, 1}, &draft));
    tutti_draft_say(im, draft, " global");
    tutti_value y = tutti_import_made(im, draft);
    if (!tutti_aspect_reshape(&y.view, kept, size))
        return tutti_import_unknown(im, "a mean whose channels are in another order");
    return tutti_import_give(im, node, 0, &y);
}

/* ---- zeros around an image ---- */

static tutti_status read_padding(tutti_importer *im, const tutti_onnx_node *node, int dims,
                                 int64_t begin[TUTTI_ONNX_MAX_DIMS],
                                 int64_t end[TUTTI_ONNX_MAX_DIMS])
{
    int64_t pads[2 * TUTTI_ONNX_MAX_DIMS], axes[TUTTI_ONNX_MAX_DIMS];
    const tutti_constant *c = NULL;
    int axis_count, count = tutti_onnx_ints(node, "pads", pads, 2 * TUTTI_ONNX_MAX_DIMS);
    if (!count) {
        TUTTI_TRY(tutti_import_integers(im, node, 1, &c));
        count = c->count > 2 * TUTTI_ONNX_MAX_DIMS ? -1 : (int)c->count;
        for (int i = 0; i < count; i++) pads[i] = c->integers[i];
    }
    TUTTI_TRY(tutti_import_list(im, node, "", 3, axes, &axis_count));
    const int each = axis_count < 0 ? dims : axis_count;
    if (count != 2 * each) return tutti_import_unknown(im, "its pads do not fit its input");
    for (int i = 0; i < each; i++) {
        int64_t axis = axis_count < 0 ? i : axes[i];
        TUTTI_TRY(tutti_import_axis(im, &axis, dims));
        begin[axis] = pads[i];
        end[axis] = pads[each + i];
    }
    return TUTTI_OK;
}

static tutti_status on_pad(tutti_importer *im, const tutti_onnx_node *node)
{
    int64_t begin[TUTTI_ONNX_MAX_DIMS] = {0}, end[TUTTI_ONNX_MAX_DIMS] = {0};
    const tutti_value *with = tutti_import_input(im, node, 2);
    tutti_value x;
    if (tutti_onnx_has(node, "mode") && !tutti_onnx_text_is(node, "mode", "constant"))
        return tutti_import_unknown(im, "padding with something else than zeros");
    if (tutti_onnx_float(node, "value", 0) != 0 ||
        (with && (!with->constant || with->constant->count != 1 ||
                  tutti_constant_at(with->constant, 0) != 0)))
        return tutti_import_unknown(im, "padding with something else than zeros");
    TUTTI_TRY(tutti_import_image(im, node, 0, &x));
    TUTTI_TRY(read_padding(im, node, x.view.dims, begin, end));
    for (int d = 0; d < 4; d++)
        if ((d < 2 && (begin[d] || end[d])) || begin[d] < 0 || end[d] < 0 || begin[d] > 1 << 16 ||
            end[d] > 1 << 16)
            return tutti_import_unknown(im, "padding that is not around an image");
    x.pad[0] = begin[2], x.pad[1] = begin[3], x.pad[2] = end[2], x.pad[3] = end[3];
    return tutti_import_give(im, node, 0, &x);
}

/* ---- larger images ---- */

/* Is it what the sizes say? 1.55 of 10 pixels are 15: taken for 1.5 it would read others. */
static bool is_factor(float factor, int in, int out)
{
    return fabsf(factor - (float)out / (float)in) <= 1e-6F * factor;
}

/* The size that the output is to have: said, or as factors. */
static tutti_status new_size(tutti_importer *im, const tutti_onnx_node *node, tutti_shape in,
                             tutti_shape *out)
{
    const bool is_old = node->input_count < 3;
    const tutti_constant *c = tutti_fold_input(im, node, 3);
    int64_t axes[2];
    const bool two = tutti_onnx_ints(node, "axes", axes, 2) == 2 && axes[0] == 2 && axes[1] == 3;
    if (c && !c->is_real && c->count == (two ? 2 : 4)) {
        const int64_t *size = c->integers + c->count - 2;
        for (int i = 0; i < 2; i++)
            if (size[i] < 1 || size[i] > 1 << 20)
                return tutti_import_unknown(im, "images of a size of %lld", (long long)size[i]);
        *out = (tutti_shape){in.c, (int)size[0], (int)size[1]};
        return TUTTI_OK;
    }
    c = tutti_fold_input(im, node, is_old ? 1 : 2);
    if (!c || c->count != 4 || !c->is_real || c->reals[0] != 1 || c->reals[1] != 1 ||
        !(c->reals[2] > 0 && c->reals[2] < 4096 && c->reals[3] > 0 && c->reals[3] < 4096))
        return tutti_import_unknown(im, "its sizes are not in the file, or not those of an image");
    *out = (tutti_shape){in.c, (int)((float)in.h * c->reals[2]), (int)((float)in.w * c->reals[3])};
    if (is_factor(c->reals[2], in.h, out->h) && is_factor(c->reals[3], in.w, out->w))
        return TUTTI_OK;
    return tutti_import_unknown(im,
                                "its factors are not those of whole sizes: Tutti goes by sizes");
}

static bool is_nearest(const tutti_onnx_node *node, bool is_old, tutti_shape in, tutti_shape out)
{
    const char *how = "coordinate_transformation_mode";
    const bool is_whole = out.h % in.h == 0 && out.w % in.w == 0;
    if (tutti_onnx_has(node, "mode") && !tutti_onnx_text_is(node, "mode", "nearest")) return false;
    if (is_old || tutti_onnx_text_is(node, how, "asymmetric"))
        return is_old || tutti_onnx_text_is(node, "nearest_mode", "floor");
    return is_whole &&
           (!tutti_onnx_has(node, how) || tutti_onnx_text_is(node, how, "half_pixel")) &&
           !tutti_onnx_text_is(node, "nearest_mode", "floor") &&
           !tutti_onnx_text_is(node, "nearest_mode", "ceil");
}

static const char *resize_words(const tutti_onnx_node *node, bool is_old, tutti_shape in,
                                tutti_shape out)
{
    const char *how = "coordinate_transformation_mode", *policy = "keep_aspect_ratio_policy";
    const bool is_point = (out.h == 1 && in.h > 1) || (out.w == 1 && in.w > 1);
    if (tutti_onnx_has(node, policy) && !tutti_onnx_text_is(node, policy, "stretch")) return NULL;
    if (is_nearest(node, is_old, in, out)) return "";
    if (is_old || !tutti_onnx_text_is(node, "mode", "linear") ||
        tutti_onnx_int(node, "antialias", 0))
        return NULL;
    if (tutti_onnx_text_is(node, how, "align_corners")) return " mode=bilinear align-corners";
    const bool is_half = !tutti_onnx_has(node, how) ||
                         tutti_onnx_text_is(node, how, "half_pixel") ||
                         (tutti_onnx_text_is(node, how, "pytorch_half_pixel") && !is_point);
    return is_half ? " mode=bilinear" : NULL;
}

static tutti_status on_resize(tutti_importer *im, const tutti_onnx_node *node)
{
    const bool is_old = !strcmp(node->op, "Upsample") || im->model->opset < 11;
    tutti_value x;
    tutti_shape out;
    int draft;
    TUTTI_TRY(tutti_import_image(im, node, 0, &x));
    const tutti_shape in = tutti_import_shape(im, x.layer);
    TUTTI_TRY(new_size(im, node, in, &out));
    if (out.h < 1 || out.w < 1 || out.h > 1 << 20 || out.w > 1 << 20)
        return tutti_import_unknown(im, "images of %d x %d", out.h, out.w);
    const char *words = resize_words(node, is_old, in, out);
    if (!words)
        return tutti_import_unknown(im, "Tutti takes the nearest pixel or interpolates linearly, "
                                        "as PyTorch does; this is another way");
    TUTTI_TRY(tutti_draft_add(im, "upsample", &x.layer, 1, out, &draft));
    tutti_draft_say_pair(im, draft, "size", out.h, out.w, -1);
    tutti_draft_say(im, draft, "%s", words);
    const tutti_value y = tutti_import_made(im, draft);
    return tutti_import_give(im, node, 0, &y);
}

/* ---- the end ---- */

static bool is_output(const tutti_importer *im, const tutti_onnx_node *node)
{
    return node->output_count && im->model->output_count &&
           node->outputs[0] == im->model->outputs[0].name && im->uses[node->outputs[0]] == 1;
}

/* The loss has the softmax in it. */
static tutti_status on_softmax(tutti_importer *im, const tutti_onnx_node *node)
{
    tutti_value x;
    TUTTI_TRY(tutti_import_feature(im, node, 0, &x));
    const tutti_shape shape = tutti_import_shape(im, x.layer);
    int64_t axis = tutti_onnx_int(node, "axis", im->model->opset < 13 ? 1 : -1);
    TUTTI_TRY(tutti_import_axis(im, &axis, x.view.dims));
    if (!is_output(im, node))
        return tutti_import_unknown(im, "before the end of the graph, as in attention: Tutti has "
                                        "it as the loss");
    const bool is_image = tutti_aspect_is_image(&x.view, shape);
    if (x.view.size[axis] != shape.c || (shape.h * shape.w != 1 && !(is_image && axis == 1)))
        return tutti_import_unknown(im, "over something else than all classes");
    im->ending = node->op;
    return tutti_import_give(im, node, 0, &x);
}

// clang-format off
const tutti_operator tutti_on_ends[] = {
    {"Identity", "nothing", "", on_identity, on_identity},
    {"Constant", "a constant", "numbers", on_constant, on_constant},
    {"Cast", "nothing", "of what is computed: to reals", on_cast, tutti_fold_cast},
    {"Dropout", "dropout", "no mask", on_dropout, NULL},
    {"ReduceMean", "avgpool global", "over all pixels", on_reduce_mean, NULL},
    {"Pad", "pad= of a convolution, or a frozen conv", "zeros around an image", on_pad, NULL},
    {"Resize", "upsample", "nearest or linear, as PyTorch's", on_resize, NULL},
    {"Upsample", "upsample", "nearest", on_resize, NULL},
    {"Softmax", "the loss", "at the end, over all classes, also of each pixel", on_softmax, NULL},
    {"LogSoftmax", "the loss", "likewise", on_softmax, NULL},
    {NULL, NULL, NULL, NULL, NULL},
};
// clang-format on
