/* Normalisation. */
#include <string.h>

#include "interchange/importer.h"

static void say_eps(tutti_importer *im, const tutti_onnx_node *node, int draft)
{
    tutti_draft_say_real(im, draft, "eps", tutti_onnx_float(node, "epsilon", 1e-5), 1e-5);
}

/* The output is seen as the input is. */
static tutti_status give_like(tutti_importer *im, const tutti_onnx_node *node, const tutti_value *x,
                              int draft)
{
    const tutti_value y = {.layer = draft, .view = x->view};
    return tutti_import_give(im, node, 0, &y);
}

/* Channels in dimension 1. */
static tutti_status take_channels(tutti_importer *im, const tutti_onnx_node *node, tutti_value *x)
{
    TUTTI_TRY(tutti_import_feature(im, node, 0, x));
    TUTTI_TRY(tutti_import_complete(im, x));
    if (x->view.dims > 1 &&
        tutti_aspect_has_channels(&x->view, tutti_import_shape(im, x->layer), 1))
        return TUTTI_OK;
    TUTTI_TRY(tutti_import_whole(im, x));
    return x->view.dims > 1 &&
                   tutti_aspect_has_channels(&x->view, tutti_import_shape(im, x->layer), 1)
               ? TUTTI_OK
               : tutti_import_unknown(im, "the channels of its input are not its second dimension");
}

static tutti_status on_batch(tutti_importer *im, const tutti_onnx_node *node)
{
    static const char *const suffixes[] = {"weight", "bias", "running_mean", "running_var"};
    tutti_value x;
    int draft;
    TUTTI_TRY(take_channels(im, node, &x));
    const tutti_shape shape = tutti_import_shape(im, x.layer);
    const int64_t size[1] = {shape.c};
    const double momentum = tutti_onnx_float(node, "momentum", 0.9);
    TUTTI_TRY(tutti_draft_add(im, "batchnorm", &x.layer, 1, shape, &draft));
    tutti_draft_say(im, draft, " group=all");
    say_eps(im, node, draft);
    const double rest = (double)(float)(1 - momentum);
    if (rest < 0.0999999 || rest > 0.1000001)
        tutti_draft_say_real(im, draft, "momentum", rest, 0.1);
    for (int i = 0; i < 4; i++)
        TUTTI_TRY(tutti_draft_weight(im, draft, suffixes[i], 1, size, i + 1));
    TUTTI_TRY(tutti_draft_param_add(im, draft, "num_batches_tracked", 0, NULL, NULL, 0, NULL));
    im->drafts[draft].params[4].counts = true;
    return give_like(im, node, &x, draft);
}

/* The channels of each pixel, which come last; or all values of a sample, in their order. */
static tutti_status take_normalised(tutti_importer *im, const tutti_onnx_node *node, tutti_value *x,
                                    bool *whole)
{
    int64_t axis = tutti_onnx_int(node, "axis", -1);
    TUTTI_TRY(tutti_import_feature(im, node, 0, x));
    TUTTI_TRY(tutti_import_complete(im, x));
    TUTTI_TRY(tutti_import_axis(im, &axis, x->view.dims));
    *whole = false;
    if (axis == x->view.dims - 1 && axis > 0 &&
        tutti_aspect_has_channels(&x->view, tutti_import_shape(im, x->layer), (int)axis))
        return TUTTI_OK;
    TUTTI_TRY(tutti_import_whole(im, x));
    *whole = true;
    if (axis == 1) return TUTTI_OK;
    return tutti_import_unknown(im,
                                "Tutti normalises the channels of each pixel, which are the last "
                                "dimension, or all values of a sample (axis 1)");
}

static tutti_status on_layer(tutti_importer *im, const tutti_onnx_node *node)
{
    tutti_value x;
    int draft;
    bool whole;
    TUTTI_TRY(take_normalised(im, node, &x, &whole));
    const tutti_shape shape = tutti_import_shape(im, x.layer);
    const int64_t size[3] = {shape.c, shape.h, shape.w};
    const int dims = whole ? 3 : 1;
    if (node->output_count > 1 && im->uses[node->outputs[1]])
        return tutti_import_unknown(im, "the means themselves (its second output)");
    TUTTI_TRY(tutti_draft_add(im, "layernorm", &x.layer, 1, shape, &draft));
    if (whole) tutti_draft_say(im, draft, " whole");
    say_eps(im, node, draft);
    TUTTI_TRY(tutti_draft_weight(im, draft, "weight", dims, size, 1));
    if (tutti_import_has(node, 2)) TUTTI_TRY(tutti_draft_weight(im, draft, "bias", dims, size, 2));
    else TUTTI_TRY(tutti_draft_param_add(im, draft, "bias", dims, size, NULL, 0, NULL));
    return give_like(im, node, &x, draft);
}

/* ---- groups ---- */

/* Weights and biases, one for each channel, or one for all channels of a group. */
static tutti_status add_group_params(tutti_importer *im, const tutti_onnx_node *node, int draft,
                                     int64_t groups)
{
    static const char *const suffixes[] = {"weight", "bias"};
    const int64_t channels = im->drafts[draft].shape.c;
    bool is_plain = true;
    for (int i = 0; i < 2; i++) {
        const tutti_constant *c;
        float *values;
        TUTTI_TRY(tutti_import_reals(im, node, i + 1, &c));
        if (c->count != channels && c->count != groups)
            return tutti_import_unknown(im, "its input %d has %lld values for %lld channels", i + 1,
                                        (long long)c->count, (long long)channels);
        TUTTI_TRY(tutti_draft_param_add(im, draft, suffixes[i], 1, &channels, NULL, 0, &values));
        for (int64_t k = 0; k < channels; k++) {
            values[k] = c->reals[c->count == channels ? k : k / (channels / groups)];
            is_plain = is_plain && values[k] == (i ? 0.0F : 1.0F);
        }
        tutti_draft_call_after_param(im, &im->drafts[draft], node->inputs[i + 1]);
    }
    im->drafts[draft].takes_factor = im->drafts[draft].takes_term = is_plain;
    return TUTTI_OK;
}

static tutti_status add_groups(tutti_importer *im, const tutti_onnx_node *node,
                               const tutti_value *x, int64_t groups)
{
    const tutti_shape shape = tutti_import_shape(im, x->layer);
    int draft;
    if (groups < 1 || shape.c % groups)
        return tutti_import_unknown(im, "%lld groups of %d channels", (long long)groups, shape.c);
    TUTTI_TRY(tutti_draft_add(im, "groupnorm", &x->layer, 1, shape, &draft));
    tutti_draft_say(im, draft, " %lld", (long long)groups);
    say_eps(im, node, draft);
    TUTTI_TRY(add_group_params(im, node, draft, groups));
    return give_like(im, node, x, draft);
}

static tutti_status on_group(tutti_importer *im, const tutti_onnx_node *node)
{
    tutti_value x;
    TUTTI_TRY(take_channels(im, node, &x));
    return add_groups(im, node, &x, tutti_onnx_int(node, "num_groups", 0));
}

/* Its second dimension may be groups of channels: so exporters write group normalisation. */
static tutti_status on_instance(tutti_importer *im, const tutti_onnx_node *node)
{
    tutti_value x;
    TUTTI_TRY(tutti_import_feature(im, node, 0, &x));
    TUTTI_TRY(tutti_import_whole(im, &x));
    const tutti_shape s = tutti_import_shape(im, x.layer);
    const int64_t groups = x.view.dims > 2 ? x.view.size[1] : 0;
    if (groups < 1 || s.c % groups)
        return tutti_import_unknown(im, "its input has %lld instances of %d channels",
                                    (long long)groups, s.c);
    return add_groups(im, node, &x, groups);
}

static tutti_status on_lrn(tutti_importer *im, const tutti_onnx_node *node)
{
    const int64_t size = tutti_onnx_int(node, "size", 0);
    tutti_value x;
    int draft;
    TUTTI_TRY(tutti_import_image(im, node, 0, &x));
    TUTTI_TRY(tutti_draft_add(im, "lrn", &x.layer, 1, tutti_import_shape(im, x.layer), &draft));
    tutti_draft_say(im, draft, " %lld", (long long)size);
    tutti_draft_say_real(im, draft, "alpha", tutti_onnx_float(node, "alpha", 1e-4), 1e-4);
    tutti_draft_say_real(im, draft, "beta", tutti_onnx_float(node, "beta", 0.75), 0.75);
    tutti_draft_say_real(im, draft, "k", tutti_onnx_float(node, "bias", 1), 1);
    return give_like(im, node, &x, draft);
}

// clang-format off
const tutti_operator tutti_on_norms[] = {
    {"BatchNormalization", "batchnorm group=all", "statistics in the file", on_batch, NULL},
    {"LayerNormalization", "layernorm", "along the channels, as the last dimension, or from axis 1", on_layer, NULL},
    {"GroupNormalization", "groupnorm", "", on_group, NULL},
    {"InstanceNormalization", "groupnorm", "also of channels reshaped to groups", on_instance, NULL},
    {"LRN", "lrn", "an odd number of channels", on_lrn, NULL},
    {NULL, NULL, NULL, NULL, NULL},
};
// clang-format on
