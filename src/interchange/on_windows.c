/* Convolutions and pooling. */
#include <string.h>

#include "interchange/importer.h"
#include "nn/net.h"

typedef struct window {
    int64_t kernel[2], stride[2], dilation[2], begin[2], end[2]; /* begin, end: padding */
    bool ceil;
} window;

enum { MOST_SIDE = 1 << 16 };

/* ---- what the node says ---- */

static tutti_status read_pair(const tutti_importer *im, const tutti_onnx_node *node,
                              const char *name, int64_t least, int64_t out[2])
{
    int64_t list[2];
    const int count = tutti_onnx_ints(node, name, list, 2);
    if (!count) return TUTTI_OK;
    for (int i = 0; i < 2; i++)
        if (count != 2 || list[i] < least || list[i] > MOST_SIDE)
            return tutti_import_unknown(im,
                                        "its %s have %d numbers, or one out of range: images "
                                        "have a height and a width",
                                        name, count);
    out[0] = list[0], out[1] = list[1];
    return TUTTI_OK;
}

static tutti_status read_pads(const tutti_importer *im, const tutti_onnx_node *node, window *w)
{
    int64_t list[4] = {0};
    const int count = tutti_onnx_ints(node, "pads", list, 4);
    if (count && count != 4) return tutti_import_unknown(im, "it has %d pads, not 4", count);
    for (int i = 0; i < 4; i++)
        if (list[i] < 0 || list[i] > MOST_SIDE)
            return tutti_import_unknown(im, "a padding of %lld", (long long)list[i]);
    w->begin[0] = list[0], w->begin[1] = list[1], w->end[0] = list[2], w->end[1] = list[3];
    return TUTTI_OK;
}

/* Padding that is not said but follows from the size of the image. */
static tutti_status auto_pad(const tutti_importer *im, const tutti_onnx_node *node, window *w,
                             tutti_shape in)
{
    const bool lower = tutti_onnx_text_is(node, "auto_pad", "SAME_LOWER");
    const int64_t size[2] = {in.h, in.w};
    if (!tutti_onnx_has(node, "auto_pad") || tutti_onnx_text_is(node, "auto_pad", "NOTSET"))
        return read_pads(im, node, w);
    if (tutti_onnx_text_is(node, "auto_pad", "VALID")) return TUTTI_OK;
    if (!lower && !tutti_onnx_text_is(node, "auto_pad", "SAME_UPPER"))
        return tutti_import_unknown(im, "an auto_pad that there is not");
    for (int i = 0; i < 2; i++) {
        const int64_t windows = (size[i] + w->stride[i] - 1) / w->stride[i];
        const int64_t reach = (w->kernel[i] - 1) * w->dilation[i] + 1;
        const int64_t all = (windows - 1) * w->stride[i] + reach - size[i];
        w->begin[i] = all > 0 ? (all + lower) / 2 : 0;
        w->end[i] = all > 0 ? all - w->begin[i] : 0;
    }
    return TUTTI_OK;
}

static tutti_status read_window(const tutti_importer *im, const tutti_onnx_node *node, window *w,
                                tutti_shape in)
{
    TUTTI_TRY(read_pair(im, node, "kernel_shape", 1, w->kernel));
    TUTTI_TRY(read_pair(im, node, "strides", 1, w->stride));
    TUTTI_TRY(read_pair(im, node, "dilations", 1, w->dilation));
    return auto_pad(im, node, w, in);
}

static int64_t windows(const window *w, int way, int64_t size)
{
    const int64_t reach = (w->kernel[way] - 1) * w->dilation[way] + 1;
    const int64_t room = size + w->begin[way] + w->end[way] - reach;
    int64_t count = room < 0 ? 0 : room / w->stride[way] + 1;
    if (room >= 0 && w->ceil && room % w->stride[way] &&
        count * w->stride[way] < size + w->begin[way])
        count++;
    return count;
}

static tutti_status slide(const tutti_importer *im, const window *w, tutti_shape in,
                          tutti_shape *out)
{
    out->h = (int)windows(w, 0, in.h);
    out->w = (int)windows(w, 1, in.w);
    return out->h && out->w ? TUTTI_OK
                            : tutti_import_unknown(im, "its window is larger than its image");
}

static void say_window(tutti_importer *im, int draft, const window *w, bool is_pool)
{
    tutti_draft_say_pair(im, draft, "kernel", w->kernel[0], w->kernel[1], -1);
    const bool is_usual = is_pool && !memcmp(w->stride, w->kernel, sizeof w->stride);
    if (!is_usual)
        tutti_draft_say_pair(im, draft, "stride", w->stride[0], w->stride[1], is_pool ? -1 : 1);
    tutti_draft_say_pair(im, draft, "pad", w->begin[0], w->begin[1], 0);
    if (w->begin[0] != w->end[0] || w->begin[1] != w->end[1])
        tutti_draft_say_pair(im, draft, "pad-end", w->end[0], w->end[1], -1);
    tutti_draft_say_pair(im, draft, "dilation", w->dilation[0], w->dilation[1], 1);
}

/* ---- convolutions ---- */

/* An image, and zeros around it that a convolution can make itself. */
static tutti_status take_padded(tutti_importer *im, const tutti_onnx_node *node, tutti_value *x,
                                int64_t pad[4])
{
    tutti_value *input = tutti_import_input(im, node, 0);
    memset(pad, 0, 4 * sizeof *pad);
    if (!input || input->constant) return tutti_import_image(im, node, 0, x);
    tutti_value bare = *input;
    memcpy(pad, input->pad, sizeof bare.pad);
    memset(bare.pad, 0, sizeof bare.pad);
    if (!pad[0] && !pad[1] && !pad[2] && !pad[3]) return tutti_import_image(im, node, 0, x);
    *x = bare; /* a padded value is an image, and all of one */
    return TUTTI_OK;
}

static tutti_status weights_of(tutti_importer *im, const tutti_onnx_node *node,
                               const tutti_constant **w)
{
    TUTTI_TRY(tutti_import_reals(im, node, 1, w));
    for (int i = 0; i < (*w)->dims; i++)
        if ((*w)->size[i] < 1 || (*w)->size[i] > MOST_SIDE * 16)
            return tutti_import_unknown(im, "its weights have an impossible shape");
    return (*w)->dims == 4
               ? TUTTI_OK
               : tutti_import_unknown(im,
                                      "its weights have %d dimensions: Tutti has convolutions "
                                      "of images, with 4",
                                      (*w)->dims);
}

static tutti_status add_weights(tutti_importer *im, const tutti_onnx_node *node, int draft,
                                const tutti_constant *w)
{
    const int64_t bias[1] = {im->drafts[draft].shape.c};
    TUTTI_TRY(tutti_draft_weight(im, draft, "weight", 4, w->size, 1));
    im->drafts[draft].takes_term = !tutti_import_has(node, 2);
    if (tutti_import_has(node, 2)) return tutti_draft_weight(im, draft, "bias", 1, bias, 2);
    return TUTTI_OK;
}

static tutti_status give_image(tutti_importer *im, const tutti_onnx_node *node, int draft)
{
    const tutti_value y = tutti_import_made(im, draft);
    return tutti_import_give(im, node, 0, &y);
}

/* PyTorch's exporters fold batch normalisation into the convolution before it, and leave traces. */
static bool is_folded(const tutti_importer *im, const tutti_onnx_node *node)
{
    return strstr(node->scopes, "batch_norm") ||
           (!strcmp(im->model->producer, "pytorch") && tutti_import_has(node, 2) &&
            !strncmp(tutti_onnx_name(im->model, node->inputs[1]), "onnx::Conv", 10));
}

static tutti_status on_conv(tutti_importer *im, const tutti_onnx_node *node)
{
    const int64_t groups = tutti_onnx_int(node, "group", 1);
    const tutti_constant *c;
    tutti_value x;
    int64_t pad[4];
    int draft;
    TUTTI_TRY(take_padded(im, node, &x, pad));
    TUTTI_TRY(weights_of(im, node, &c));
    const tutti_shape in = tutti_import_shape(im, x.layer);
    const tutti_shape padded = {in.c, in.h + (int)(pad[0] + pad[2]), in.w + (int)(pad[1] + pad[3])};
    window w = {.kernel = {c->size[2], c->size[3]}, .stride = {1, 1}, .dilation = {1, 1}};
    TUTTI_TRY(read_window(im, node, &w, padded));
    if (groups < 1 || groups > in.c || c->size[1] * groups != in.c || c->size[0] % groups ||
        w.kernel[0] != c->size[2] || w.kernel[1] != c->size[3])
        return tutti_import_unknown(im, "its weights do not fit an input of %d channels", in.c);
    for (int i = 0; i < 2; i++) w.begin[i] += pad[i], w.end[i] += pad[2 + i];
    tutti_shape out = {(int)c->size[0], 0, 0};
    TUTTI_TRY(slide(im, &w, in, &out));
    TUTTI_TRY(tutti_draft_add(im, "conv", &x.layer, 1, out, &draft));
    tutti_draft_say(im, draft, " %d", out.c);
    say_window(im, draft, &w, false);
    if (groups != 1) tutti_draft_say(im, draft, " groups=%lld", (long long)groups);
    im->folded += is_folded(im, node);
    TUTTI_TRY(add_weights(im, node, draft, c));
    return give_image(im, node, draft);
}

/* Padding of a transposed convolution that is said as the size it is to have. */
static tutti_status fit_output(const tutti_importer *im, const tutti_onnx_node *node, window *w,
                               tutti_shape in, int64_t more[2])
{
    const bool lower = tutti_onnx_text_is(node, "auto_pad", "SAME_LOWER");
    const bool same = lower || tutti_onnx_text_is(node, "auto_pad", "SAME_UPPER");
    const int64_t size[2] = {in.h, in.w};
    int64_t wanted[2] = {in.h * w->stride[0], in.w * w->stride[1]};
    const bool is_said = tutti_onnx_has(node, "output_shape");
    TUTTI_TRY(read_pair(im, node, "output_shape", 1, wanted));
    for (int i = 0; i < 2 && (is_said || same); i++) {
        const int64_t all = w->stride[i] * (size[i] - 1) + more[i] +
                            (w->kernel[i] - 1) * w->dilation[i] + 1 - wanted[i];
        if (all < 0) more[i] -= all;
        w->begin[i] = all < 0 ? 0 : (all + lower) / 2;
        w->end[i] = all < 0 ? 0 : all - w->begin[i];
    }
    return TUTTI_OK;
}

static tutti_status on_deconv(tutti_importer *im, const tutti_onnx_node *node)
{
    const int64_t groups = tutti_onnx_int(node, "group", 1);
    int64_t more[2] = {0, 0};
    const tutti_constant *c;
    tutti_value x;
    int draft;
    TUTTI_TRY(tutti_import_image(im, node, 0, &x));
    TUTTI_TRY(weights_of(im, node, &c));
    const tutti_shape in = tutti_import_shape(im, x.layer);
    window w = {.kernel = {c->size[2], c->size[3]}, .stride = {1, 1}, .dilation = {1, 1}};
    TUTTI_TRY(read_window(im, node, &w, in));
    TUTTI_TRY(read_pair(im, node, "output_padding", 0, more));
    TUTTI_TRY(fit_output(im, node, &w, in, more));
    if (groups < 1 || c->size[0] != in.c || in.c % groups || w.kernel[0] != c->size[2] ||
        w.kernel[1] != c->size[3] || c->size[1] * groups > MOST_SIDE * 16)
        return tutti_import_unknown(im, "its weights do not fit an input of %d channels", in.c);
    tutti_shape out = {(int)(c->size[1] * groups), 0, 0};
    const int64_t size[2] = {in.h, in.w};
    for (int i = 0; i < 2; i++) {
        const int64_t side = (size[i] - 1) * w.stride[i] - w.begin[i] - w.end[i] +
                             (w.kernel[i] - 1) * w.dilation[i] + 1 + more[i];
        if (side < 1) return tutti_import_unknown(im, "nothing is left of its image");
        if (side > INT32_MAX) return tutti_import_unknown(im, "its image is too large");
        *(i ? &out.w : &out.h) = (int)side;
    }
    TUTTI_TRY(tutti_draft_add(im, "deconv", &x.layer, 1, out, &draft));
    tutti_draft_say(im, draft, " %d", out.c);
    say_window(im, draft, &w, false);
    tutti_draft_say_pair(im, draft, "output-pad", more[0], more[1], 0);
    if (groups != 1) tutti_draft_say(im, draft, " groups=%lld", (long long)groups);
    TUTTI_TRY(add_weights(im, node, draft, c));
    return give_image(im, node, draft);
}

/* ---- pooling ---- */

static tutti_status global(tutti_importer *im, const tutti_onnx_node *node, const tutti_value *x,
                           const char *kind)
{
    const tutti_shape out = {tutti_import_shape(im, x->layer).c, 1, 1};
    int draft;
    TUTTI_TRY(tutti_draft_add(im, kind, &x->layer, 1, out, &draft));
    tutti_draft_say(im, draft, " global");
    return give_image(im, node, draft);
}

static tutti_status pool(tutti_importer *im, const tutti_onnx_node *node, const char *kind)
{
    window w = {.stride = {1, 1}, .dilation = {1, 1}};
    const bool is_mean = !strcmp(kind, "avgpool");
    tutti_value x;
    int draft;
    TUTTI_TRY(tutti_import_image(im, node, 0, &x));
    const tutti_shape in = tutti_import_shape(im, x.layer);
    w.ceil = tutti_onnx_int(node, "ceil_mode", 0) != 0;
    TUTTI_TRY(read_window(im, node, &w, in));
    const bool is_padded = w.begin[0] || w.begin[1] || w.end[0] || w.end[1];
    if (!w.kernel[0]) return tutti_import_unknown(im, "its kernel_shape is missing");
    if (w.dilation[0] != 1 || w.dilation[1] != 1)
        return tutti_import_unknown(im, "pooling with dilation");
    if (node->output_count > 1 && im->uses[node->outputs[1]])
        return tutti_import_unknown(im, "the places of maxima (its second output)");
    if (!is_padded && w.kernel[0] == in.h && w.kernel[1] == in.w) return global(im, node, &x, kind);
    if (!is_padded && w.kernel[0] * w.kernel[1] * w.stride[0] * w.stride[1] == 1)
        return tutti_import_give(im, node, 0, &x);
    tutti_shape out = {in.c, 0, 0};
    TUTTI_TRY(slide(im, &w, in, &out));
    TUTTI_TRY(tutti_draft_add(im, kind, &x.layer, 1, out, &draft));
    say_window(im, draft, &w, true);
    if (w.ceil) tutti_draft_say(im, draft, " ceil");
    if (is_mean && (is_padded || w.ceil) && !tutti_onnx_int(node, "count_include_pad", 0))
        tutti_draft_say(im, draft, " exclude-pad");
    return give_image(im, node, draft);
}

static tutti_status on_max(tutti_importer *im, const tutti_onnx_node *node)
{
    return pool(im, node, "maxpool");
}

static tutti_status on_mean(tutti_importer *im, const tutti_onnx_node *node)
{
    return pool(im, node, "avgpool");
}

static tutti_status on_global_max(tutti_importer *im, const tutti_onnx_node *node)
{
    tutti_value x;
    TUTTI_TRY(tutti_import_image(im, node, 0, &x));
    return global(im, node, &x, "maxpool");
}

static tutti_status on_global_mean(tutti_importer *im, const tutti_onnx_node *node)
{
    tutti_value x;
    TUTTI_TRY(tutti_import_image(im, node, 0, &x));
    return global(im, node, &x, "avgpool");
}

// clang-format off
const tutti_operator tutti_on_windows[] = {
    {"Conv", "conv", "two-dimensional; weights in the file", on_conv, NULL},
    {"ConvTranspose", "deconv", "likewise", on_deconv, NULL},
    {"MaxPool", "maxpool", "two-dimensional; no dilation, no Indices", on_max, NULL},
    {"AveragePool", "avgpool", "two-dimensional; no dilation", on_mean, NULL},
    {"GlobalMaxPool", "maxpool global", "two-dimensional", on_global_max, NULL},
    {"GlobalAveragePool", "avgpool global", "two-dimensional", on_global_mean, NULL},
    {NULL, NULL, NULL, NULL, NULL},
};
// clang-format on
