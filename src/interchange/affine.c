/* Factors and terms that are constants. Each channel may have its own; they go into the layer
 * before where that has room for them (a bias that is missing, weights of a normalisation that are
 * ones), else they are a layer: "layerscale", or a convolution of one pixel and one channel. */
#include <string.h>

#include "base/memory.h"
#include "interchange/importer.h"

/* ---- a number for each channel ---- */

static bool is_along_channels(const tutti_aspect *v, int dim, int64_t pixels)
{
    for (int i = 0; i < v->factors; i++)
        if (v->factor[i].dim == dim && (v->factor[i].samples || v->factor[i].stride % pixels))
            return false;
    return true;
}

static tutti_status check_spread(const tutti_importer *im, const tutti_value *v,
                                 const tutti_constant *c)
{
    const tutti_shape s = tutti_import_shape(im, v->layer);
    const int behind = v->view.dims - c->dims;
    for (int d = 0; d < c->dims; d++) {
        if (c->size[d] == 1) continue;
        if (d + behind < 0 || c->size[d] != v->view.size[d + behind])
            return tutti_import_unknown(im, "its constant does not fit its input's shape");
        if (!is_along_channels(&v->view, d + behind, (int64_t)s.h * s.w))
            return tutti_import_unknown(im, "its constant differs from pixel to pixel: Tutti has "
                                            "factors and terms for channels");
    }
    return TUTTI_OK;
}

/* Which element of the constant is that of channel k: its place in each dimension is made of what
 * the view's factors say. */
static int64_t element_of(const tutti_aspect *v, const tutti_constant *c, int64_t pixels, int64_t k)
{
    const int behind = v->dims - c->dims;
    int64_t place[TUTTI_ASPECT_DIMS] = {0}, element = 0;
    for (int i = 0; i < v->factors; i++) {
        const tutti_aspect_factor f = v->factor[i];
        if (f.samples || f.stride % pixels) continue;
        place[f.dim] = place[f.dim] * f.size + k / (f.stride / pixels) % f.size;
    }
    for (int d = 0; d < c->dims; d++)
        element = element * c->size[d] + (c->size[d] > 1 ? place[d + behind] : 0);
    return element;
}

/* Leaves 'value' complete, so that all channels have a number; *out is to be freed. */
static tutti_status spread(tutti_importer *im, tutti_value *value, const tutti_constant *c,
                           float **out)
{
    TUTTI_TRY(tutti_import_complete(im, value));
    const tutti_shape s = tutti_import_shape(im, value->layer);
    TUTTI_TRY(check_spread(im, value, c));
    TUTTI_TRY(tutti_alloc(out, (size_t)s.c, sizeof **out));
    for (int64_t k = 0; k < s.c; k++)
        (*out)[k] = (float)tutti_constant_at(c, element_of(&value->view, c, (int64_t)s.h * s.w, k));
    return TUTTI_OK;
}

/* ---- layers ---- */

static tutti_status add_scale(tutti_importer *im, tutti_value *value, const float *factors,
                              int name, int *draft)
{
    const tutti_shape s = tutti_import_shape(im, value->layer);
    const int64_t size[3] = {s.c, 1, 1};
    const bool is_given = name && tutti_name_is_given(tutti_onnx_name(im->model, name));
    TUTTI_TRY(tutti_draft_add(im, "layerscale", &value->layer, 1, s, draft));
    TUTTI_TRY(tutti_draft_param_add(im, *draft, "layer_scale", 3, size, factors, 1, NULL));
    im->drafts[*draft].is_frozen = !is_given;
    if (name) tutti_draft_call_after_param(im, &im->drafts[*draft], name);
    value->layer = *draft;
    return TUTTI_OK;
}

/* y = factor * x + term, of each channel; either may be NULL. */
static tutti_status add_channelwise(tutti_importer *im, tutti_value *value, tutti_shape out,
                                    const float *factors, const float *terms, int *draft)
{
    const int64_t size[4] = {out.c, 1, 1, 1};
    TUTTI_TRY(tutti_draft_add(im, "conv", &value->layer, 1, out, draft));
    tutti_draft_say(im, *draft, " %d kernel=1 groups=%d", out.c, out.c);
    TUTTI_TRY(tutti_draft_param_add(im, *draft, "weight", 4, size, factors, 1, NULL));
    if (terms) TUTTI_TRY(tutti_draft_param_add(im, *draft, "bias", 1, size, terms, 0, NULL));
    im->drafts[*draft].is_frozen = true;
    value->layer = *draft;
    return TUTTI_OK;
}

static tutti_draft_param *find_param(tutti_draft *d, const char *suffix)
{
    for (int i = 0; i < d->param_count; i++)
        if (!strcmp(d->params[i].suffix, suffix)) return &d->params[i];
    return NULL;
}

/* Multiplies the weights and the bias of a normalisation. */
static void absorb_factors(tutti_importer *im, tutti_draft *d, const float *factors, int name)
{
    for (int i = 0; i < d->param_count; i++)
        for (int64_t k = 0; k < d->params[i].count; k++) d->params[i].values[k] *= factors[k];
    d->takes_factor = false;
    if (name) tutti_draft_call_after_param(im, d, name);
}

static tutti_status absorb_terms(tutti_importer *im, int draft, const float *terms, int name)
{
    tutti_draft *d = &im->drafts[draft];
    const int64_t size[1] = {d->shape.c};
    tutti_draft_param *bias = find_param(d, "bias");
    for (int64_t k = 0; bias && k < bias->count; k++) bias->values[k] += terms[k];
    if (!bias) TUTTI_TRY(tutti_draft_param_add(im, draft, "bias", 1, size, terms, 0, NULL));
    d->takes_factor = d->takes_term = false;
    if (name) tutti_draft_call_after_param(im, d, name);
    return TUTTI_OK;
}

/* ---- for operators ---- */

static bool takes(const tutti_importer *im, const tutti_value *v, bool factor)
{
    if (v->layer < 0) return false;
    const tutti_draft *d = &im->drafts[v->layer];
    return factor ? d->takes_factor : d->takes_term;
}

tutti_status tutti_import_scale(tutti_importer *im, tutti_value *value, const tutti_constant *c,
                                bool divide)
{
    float *factors = NULL;
    int draft;
    tutti_status s = spread(im, value, c, &factors);
    const int count = s == TUTTI_OK ? tutti_import_shape(im, value->layer).c : 0;
    for (int k = 0; divide && k < count; k++) factors[k] = 1 / factors[k];
    if (s == TUTTI_OK && takes(im, value, true))
        absorb_factors(im, &im->drafts[value->layer], factors, c->name);
    else if (s == TUTTI_OK) s = add_scale(im, value, factors, c->name, &draft);
    tutti_free(factors);
    return s;
}

tutti_status tutti_import_shift(tutti_importer *im, tutti_value *value, const tutti_constant *c,
                                double sign)
{
    float *terms = NULL;
    int draft;
    tutti_status s = spread(im, value, c, &terms);
    const tutti_shape shape = tutti_import_shape(im, value->layer);
    for (int k = 0; s == TUTTI_OK && sign < 0 && k < shape.c; k++) terms[k] = -terms[k];
    if (s == TUTTI_OK && takes(im, value, false))
        s = absorb_terms(im, value->layer, terms, c->name);
    else if (s == TUTTI_OK) s = add_channelwise(im, value, shape, NULL, terms, &draft);
    tutti_free(terms);
    return s;
}

tutti_status tutti_import_affine(tutti_importer *im, tutti_value *value, double factor, double term)
{
    float *factors = NULL;
    int draft;
    if (factor == 1 && term == 0) return TUTTI_OK;
    TUTTI_TRY(tutti_import_complete(im, value));
    const tutti_shape shape = tutti_import_shape(im, value->layer);
    TUTTI_TRY(tutti_alloc(&factors, 2 * (size_t)shape.c, sizeof *factors));
    float *terms = factors + shape.c;
    for (int k = 0; k < shape.c; k++) factors[k] = (float)factor, terms[k] = (float)term;
    const tutti_status s = term == 0 ? add_scale(im, value, factors, TUTTI_ONNX_NONE, &draft)
                                     : add_channelwise(im, value, shape, factors, terms, &draft);
    tutti_free(factors);
    return s;
}

tutti_status tutti_import_pad(tutti_importer *im, tutti_value *value)
{
    const int64_t *p = value->pad;
    const tutti_shape in = tutti_import_shape(im, value->layer);
    const tutti_shape out = {in.c, in.h + (int)(p[0] + p[2]), in.w + (int)(p[1] + p[3])};
    int draft;
    TUTTI_TRY(add_channelwise(im, value, out, NULL, NULL, &draft));
    tutti_draft_say_pair(im, draft, "pad", p[0], p[1], 0);
    if (p[0] != p[2] || p[1] != p[3]) tutti_draft_say_pair(im, draft, "pad-end", p[2], p[3], -1);
    *value = tutti_import_made(im, draft);
    return TUTTI_OK;
}
