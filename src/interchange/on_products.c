/* Gemm and MatMul: fully connected layers, and on each pixel with channels last, convolutions of
 * one pixel. */
#include <string.h>

#include "base/memory.h"
#include "interchange/importer.h"

/* Weights as a layer wants them, [out][in], from a constant [in][out] or [out][in]. */
static void place_weights(const tutti_constant *c, bool is_turned, float scale, float *to)
{
    const int64_t out = c->size[is_turned ? 0 : 1], in = c->size[is_turned ? 1 : 0];
    for (int64_t o = 0; o < out; o++)
        for (int64_t i = 0; i < in; i++)
            to[o * in + i] = scale * c->reals[is_turned ? o * in + i : i * out + o];
}

/* Where the view reads the layer's values in another order, weights go to where those are. */
static tutti_status reorder(const tutti_value *x, int64_t out, int64_t in, float *weights)
{
    int64_t *places = NULL;
    float *row = NULL;
    if (tutti_aspect_is_whole(&x->view, in)) return TUTTI_OK;
    tutti_status s = tutti_alloc(&places, (size_t)in, sizeof *places);
    if (s == TUTTI_OK) s = tutti_alloc(&row, (size_t)in, sizeof *row);
    if (s == TUTTI_OK) tutti_aspect_places(&x->view, places);
    for (int64_t o = 0; s == TUTTI_OK && o < out; o++) {
        memcpy(row, weights + o * in, (size_t)in * sizeof *row);
        for (int64_t i = 0; i < in; i++) weights[o * in + places[i]] = row[i];
    }
    tutti_free(places);
    tutti_free(row);
    return s;
}

/* The product of the last dimension of x with the weights. */
typedef struct product {
    tutti_value x;
    const tutti_constant *weights;
    int64_t in, out;
    bool is_turned; /* weights are [out][in] */
    float scale;
    int draft;
} product;

static tutti_status check_product(tutti_importer *im, product *p)
{
    const tutti_constant *w = p->weights;
    const tutti_aspect *v = &p->x.view;
    if (w->dims != 2 || w->size[0] < 1 || w->size[1] < 1 || w->count > INT32_MAX / 2)
        return tutti_import_unknown(im, "its weights are no matrix");
    p->out = w->size[p->is_turned ? 0 : 1];
    p->in = w->size[p->is_turned ? 1 : 0];
    if (v->dims < 2 || v->size[v->dims - 1] != p->in)
        return tutti_import_unknown(im, "its weights are for %lld features, its input has %lld",
                                    (long long)p->in, (long long)v->size[v->dims - 1]);
    return TUTTI_OK;
}

static tutti_status add_params(tutti_importer *im, product *p)
{
    const int64_t size[2] = {p->out, p->in};
    float *values;
    TUTTI_TRY(tutti_draft_param_add(im, p->draft, "weight", 2, size, NULL, 0, &values));
    place_weights(p->weights, p->is_turned, p->scale, values);
    tutti_draft_call_after_param(im, &im->drafts[p->draft], im->node->inputs[1]);
    im->drafts[p->draft].takes_term = true;
    return p->x.view.dims == 2 ? reorder(&p->x, p->out, p->in, values) : TUTTI_OK;
}

static tutti_status add_fc(tutti_importer *im, product *p, tutti_value *y)
{
    const tutti_shape out = {(int)p->out, 1, 1};
    TUTTI_TRY(tutti_import_complete(im, &p->x));
    TUTTI_TRY(tutti_draft_add(im, "fc", &p->x.layer, 1, out, &p->draft));
    tutti_draft_say(im, p->draft, " %d", out.c);
    TUTTI_TRY(add_params(im, p));
    *y = (tutti_value){.layer = p->draft, .view = tutti_aspect_of(im->samples, out, 2)};
    return TUTTI_OK;
}

/* On each pixel: the output is seen as the input was, with other channels at the end. */
static tutti_status add_pixelwise(tutti_importer *im, product *p, tutti_value *y)
{
    const tutti_shape in = tutti_import_shape(im, p->x.layer);
    const tutti_shape out = {(int)p->out, in.h, in.w};
    const int last = p->x.view.dims - 1;
    int64_t size[TUTTI_ASPECT_DIMS], order[TUTTI_ASPECT_DIMS];
    TUTTI_TRY(tutti_draft_add(im, "conv", &p->x.layer, 1, out, &p->draft));
    tutti_draft_say(im, p->draft, " %d kernel=1 linear", out.c);
    TUTTI_TRY(add_params(im, p));
    *y = (tutti_value){.layer = p->draft, .view = tutti_aspect_of(im->samples, out, 4)};
    size[0] = im->samples, size[1] = out.c, order[0] = 0, order[last] = 1;
    for (int d = 1; d < last; d++) size[d + 1] = p->x.view.size[d], order[d] = d + 1;
    const bool fits =
        tutti_aspect_reshape(&y->view, last + 1, size) && tutti_aspect_permute(&y->view, order);
    TUTTI_ASSERT(fits);
    return TUTTI_OK;
}

static tutti_status multiply(tutti_importer *im, product *p, tutti_value *y)
{
    const tutti_aspect *v = &p->x.view;
    TUTTI_TRY(check_product(im, p));
    if (!tutti_aspect_has_samples_first(v))
        return tutti_import_unknown(im, "the samples of its input are not its first dimension");
    if (v->dims == 2) return add_fc(im, p, y);
    if (tutti_aspect_has_channels(v, tutti_import_shape(im, p->x.layer), v->dims - 1))
        return add_pixelwise(im, p, y);
    return tutti_import_unknown(im, "a product along something else than all features, or the "
                                    "channels of each pixel");
}

static tutti_status on_matmul(tutti_importer *im, const tutti_onnx_node *node)
{
    product p = {.scale = 1};
    tutti_value y;
    const tutti_value *other = tutti_import_input(im, node, 1);
    if (other && !other->constant)
        return tutti_import_unknown(im, "a product of two things that are computed, as in "
                                        "attention: Tutti has none");
    TUTTI_TRY(tutti_import_feature(im, node, 0, &p.x));
    TUTTI_TRY(tutti_import_reals(im, node, 1, &p.weights));
    TUTTI_TRY(multiply(im, &p, &y));
    return tutti_import_give(im, node, 0, &y);
}

/* beta * C, which has a number for each feature, or one for all. */
static tutti_status add_terms(tutti_importer *im, const tutti_onnx_node *node, product *p)
{
    const float beta = (float)tutti_onnx_float(node, "beta", 1);
    const int64_t size[1] = {p->out};
    const tutti_constant *c;
    float *values;
    TUTTI_TRY(tutti_import_reals(im, node, 2, &c));
    if (c->count != 1 && (c->count != p->out || c->size[c->dims - 1] != p->out))
        return tutti_import_unknown(im, "its C differs from sample to sample");
    TUTTI_TRY(tutti_draft_param_add(im, p->draft, "bias", 1, size, NULL, 0, &values));
    for (int64_t i = 0; i < p->out; i++) values[i] = beta * c->reals[c->count == 1 ? 0 : i];
    tutti_draft_call_after_param(im, &im->drafts[p->draft], node->inputs[2]);
    im->drafts[p->draft].takes_term = false;
    return TUTTI_OK;
}

static tutti_status on_gemm(tutti_importer *im, const tutti_onnx_node *node)
{
    product p = {.scale = (float)tutti_onnx_float(node, "alpha", 1),
                 .is_turned = tutti_onnx_int(node, "transB", 0) != 0};
    tutti_value y;
    if (tutti_onnx_int(node, "transA", 0))
        return tutti_import_unknown(im, "transA: samples would be features");
    TUTTI_TRY(tutti_import_feature(im, node, 0, &p.x));
    TUTTI_TRY(tutti_import_reals(im, node, 1, &p.weights));
    if (p.x.view.dims != 2) return tutti_import_unknown(im, "its input is no matrix");
    TUTTI_TRY(multiply(im, &p, &y));
    if (tutti_import_has(node, 2)) TUTTI_TRY(add_terms(im, node, &p));
    return tutti_import_give(im, node, 0, &y);
}

// clang-format off
const tutti_operator tutti_on_products[] = {
    {"Gemm", "fc", "weights in the file; no transA; C for each feature", on_gemm, NULL},
    {"MatMul", "fc; of channels last conv linear", "the second input in the file", on_matmul, NULL},
    {NULL, NULL, NULL, NULL, NULL},
};
// clang-format on
