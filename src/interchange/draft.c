#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "interchange/importer.h"
#include "nn/net.h"

enum { MOST_VALUES = 1 << 30 }; /* of a sample in a layer, as nets have it */

static bool is_too_large(tutti_shape s)
{
    return s.c > MOST_VALUES / s.h || (int64_t)s.c * s.h > MOST_VALUES / s.w;
}

tutti_status tutti_draft_add(tutti_importer *im, const char *kind, const int *inputs, int count,
                             tutti_shape shape, int *out)
{
    if (im->draft_count == TUTTI_MAX_LAYERS)
        return tutti_import_unknown(im, "a net of Tutti has at most %d layers", TUTTI_MAX_LAYERS);
    if (is_too_large(shape))
        return tutti_import_unknown(im, "a layer of %dx%dx%d values is too large", shape.c, shape.h,
                                    shape.w);
    TUTTI_TRY(tutti_grow(&im->drafts, &im->draft_room, im->draft_count, sizeof *im->drafts));
    tutti_draft *d = &im->drafts[im->draft_count];
    d->kind = kind;
    d->shape = shape;
    d->merged = -1;
    TUTTI_TRY(tutti_alloc(&d->inputs, (size_t)count, sizeof *d->inputs));
    *out = im->draft_count++;
    d->input_count = count;
    memcpy(d->inputs, inputs, (size_t)count * sizeof *inputs);
    tutti_draft_call_after_node(im, d);
    return TUTTI_OK;
}

/* ---- words ---- */

void tutti_draft_say(tutti_importer *im, int draft, const char *format, ...)
{
    tutti_draft *d = &im->drafts[draft];
    const size_t used = strlen(d->words);
    va_list args;
    va_start(args, format);
    const int n = vsnprintf(d->words + used, sizeof d->words - used, format, args);
    va_end(args);
    TUTTI_ASSERT(n >= 0 && (size_t)n < sizeof d->words - used);
}

void tutti_draft_say_pair(tutti_importer *im, int draft, const char *word, int64_t height,
                          int64_t width, int64_t otherwise)
{
    if (height == otherwise && width == otherwise) return;
    if (height == width) tutti_draft_say(im, draft, " %s=%lld", word, (long long)height);
    else tutti_draft_say(im, draft, " %s=%lldx%lld", word, (long long)height, (long long)width);
}

/* ONNX has floats: 9.99999974e-06 was 1e-5. */
void tutti_draft_say_real(tutti_importer *im, int draft, const char *word, double value,
                          double otherwise)
{
    char text[32];
    for (int digits = 1; digits <= 9; digits++) {
        float again;
        snprintf(text, sizeof text, "%.*g", digits, value);
        if (sscanf(text, "%f", &again) == 1 && again == (float)value) break;
    }
    if ((float)value != (float)otherwise) tutti_draft_say(im, draft, " %s=%s", word, text);
}

/* ---- parameters ---- */

tutti_status tutti_draft_param_add(tutti_importer *im, int draft, const char *suffix, int dims,
                                   const int64_t *size, const float *values, float fill,
                                   float **out)
{
    tutti_draft *d = &im->drafts[draft];
    TUTTI_ASSERT(d->param_count < TUTTI_DRAFT_PARAMS && dims <= 4);
    tutti_draft_param *p = &d->params[d->param_count];
    *p = (tutti_draft_param){.suffix = suffix, .dims = dims, .count = 1};
    for (int i = 0; i < dims; i++) {
        p->size[i] = size[i];
        p->count *= size[i];
    }
    TUTTI_TRY(tutti_alloc(&p->values, (size_t)p->count, sizeof *p->values));
    d->param_count++;
    for (int64_t i = 0; i < p->count; i++) p->values[i] = values ? values[i] : fill;
    if (out) *out = p->values;
    return TUTTI_OK;
}

tutti_status tutti_draft_weight(tutti_importer *im, int draft, const char *suffix, int dims,
                                const int64_t *size, int input)
{
    const tutti_constant *c;
    int64_t count = 1;
    TUTTI_TRY(tutti_import_reals(im, im->node, input, &c));
    for (int i = 0; i < dims; i++) count *= size[i];
    if (c->count != count)
        return tutti_import_unknown(im, "its input %d has %lld values, not %lld", input,
                                    (long long)c->count, (long long)count);
    tutti_draft_call_after_param(im, &im->drafts[draft], im->node->inputs[input]);
    return tutti_draft_param_add(im, draft, suffix, dims, size, c->reals, 0, NULL);
}

/* ---- what a layer has made ---- */

tutti_value tutti_import_made(const tutti_importer *im, int draft)
{
    const tutti_shape shape = im->drafts[draft].shape;
    return (tutti_value){.layer = draft, .view = tutti_aspect_of(im->samples, shape, 4)};
}

tutti_value tutti_import_made_like(const tutti_importer *im, int draft, const tutti_value *like)
{
    tutti_value v = tutti_import_made(im, draft);
    const bool fits = tutti_aspect_reshape(&v.view, like->view.dims, like->view.size);
    TUTTI_ASSERT(fits);
    return v;
}
