/* Layers that bring into order what a view only says: "slice" takes channels out, "shuffle" takes
 * them in turn from several groups. */
#include <stdio.h>
#include <string.h>

#include "interchange/importer.h"

/* What a view says in channels: up to two factors, the first channel. */
typedef struct channels {
    int64_t size[2], stride[2], first;
    int factors;
} channels;

static tutti_status unordered(const tutti_importer *im)
{
    return tutti_import_unknown(im, "its input has elements in an order that no layer makes");
}

/* Takes the pixels off the end: *left is how many factors are before them, the last of which may be
 * left in part. */
static bool take_pixels(tutti_aspect *view, int64_t pixels, int *left)
{
    int64_t next = 1;
    for (*left = view->factors; next < pixels;) {
        if (!*left) return false;
        tutti_aspect_factor *f = &view->factor[*left - 1];
        if (f->samples || f->stride != next) return false;
        if (next * f->size <= pixels) {
            next *= f->size;
            --*left;
            continue;
        }
        const int64_t wanted = pixels / next;
        if (pixels % next || f->size % wanted) return false;
        f->size /= wanted;
        f->stride *= wanted;
        next = pixels;
    }
    return next == pixels;
}

static bool find_channels(tutti_aspect view, int64_t pixels, channels *out)
{
    int left;
    *out = (channels){.first = view.offset / pixels};
    if (view.offset % pixels || !take_pixels(&view, pixels, &left)) return false;
    for (int i = 0; i < left; i++) {
        const tutti_aspect_factor f = view.factor[i];
        if (f.samples) continue;
        const int last = out->factors - 1;
        if (f.stride % pixels) return false;
        if (last >= 0 && out->stride[last] == f.size * f.stride / pixels) {
            out->size[last] *= f.size;
            out->stride[last] = f.stride / pixels;
            continue;
        }
        if (out->factors == 2) return false;
        out->size[out->factors] = f.size;
        out->stride[out->factors++] = f.stride / pixels;
    }
    if (!out->factors) *out = (channels){{1, 1}, {1, 1}, out->first, 1};
    return true;
}

/* The layer that does that to the input, if there is one already. */
static int find_made(const tutti_importer *im, const char *kind, const char *words, int input)
{
    for (int i = input + 1; i < im->draft_count; i++) {
        const tutti_draft *d = &im->drafts[i];
        if (!strcmp(d->kind, kind) && !strcmp(d->words, words) && d->inputs[0] == input) return i;
    }
    return -1;
}

/* 'by' is the node that it is called after. */
static tutti_status derive(tutti_importer *im, const tutti_onnx_node *by, const char *kind,
                           const char *words, tutti_shape shape, int *layer)
{
    const tutti_onnx_node *now = im->node;
    int draft = find_made(im, kind, words, *layer);
    if (draft < 0) {
        im->node = by ? by : now;
        TUTTI_TRY(tutti_draft_add(im, kind, layer, 1, shape, &draft));
        im->node = now;
        tutti_draft_say(im, draft, "%s", words);
    }
    *layer = draft;
    return TUTTI_OK;
}

static tutti_status shuffle(tutti_importer *im, const tutti_onnx_node *by, int64_t groups,
                            int *layer)
{
    char words[32];
    snprintf(words, sizeof words, " %lld", (long long)groups);
    return derive(im, by, "shuffle", words, tutti_import_shape(im, *layer), layer);
}

static tutti_status slice(tutti_importer *im, const tutti_onnx_node *by, int64_t first, int64_t end,
                          int *layer)
{
    tutti_shape shape = tutti_import_shape(im, *layer);
    char words[64];
    if (!first && end == shape.c) return TUTTI_OK;
    if (end == shape.c) snprintf(words, sizeof words, " first=%lld", (long long)first);
    else if (!first) snprintf(words, sizeof words, " end=%lld", (long long)end);
    else snprintf(words, sizeof words, " first=%lld end=%lld", (long long)first, (long long)end);
    shape.c = (int)(end - first);
    return derive(im, by, "slice", words, shape, layer);
}

static tutti_status select_channels(tutti_importer *im, const channels *c, tutti_value *value)
{
    int *layer = &value->layer;
    const int64_t all = tutti_import_shape(im, *layer).c;
    if (c->factors == 1 && c->stride[0] == 1)
        return slice(im, value->taken, c->first, c->first + c->size[0], layer);
    const int64_t groups = c->size[c->factors - 1], apart = c->stride[c->factors - 1];
    const int64_t from_each = c->factors == 2 ? c->size[0] : 1;
    if ((c->factors == 2 && c->stride[0] != 1) || groups * apart != all ||
        c->first + from_each > apart)
        return unordered(im);
    TUTTI_TRY(shuffle(im, value->turned, groups, layer));
    return slice(im, value->taken, c->first * groups, (c->first + from_each) * groups, layer);
}

tutti_status tutti_import_whole(tutti_importer *im, tutti_value *value)
{
    const tutti_shape s = tutti_import_shape(im, value->layer);
    const int64_t pixels = (int64_t)s.h * s.w;
    channels c;
    if (tutti_aspect_is_whole(&value->view, pixels * s.c)) return TUTTI_OK;
    if (!tutti_aspect_has_samples_first(&value->view))
        return tutti_import_unknown(im, "the samples of its input are not its first dimension");
    if (!find_channels(value->view, pixels, &c)) return unordered(im);
    TUTTI_TRY(select_channels(im, &c, value));
    tutti_aspect view = tutti_aspect_of(im->samples, tutti_import_shape(im, value->layer), 4);
    if (!tutti_aspect_reshape(&view, value->view.dims, value->view.size)) return unordered(im);
    value->view = view;
    return TUTTI_OK;
}

tutti_status tutti_import_complete(tutti_importer *im, tutti_value *value)
{
    const tutti_shape s = tutti_import_shape(im, value->layer);
    if (tutti_aspect_is_complete(&value->view, (int64_t)s.c * s.h * s.w)) return TUTTI_OK;
    return tutti_import_whole(im, value);
}

/* ---- two inputs ---- */

static bool is_same_shape(tutti_shape a, tutti_shape b)
{
    return a.c == b.c && a.h == b.h && a.w == b.w;
}

static bool is_alike(const tutti_importer *im, const tutti_value *a, const tutti_value *b)
{
    return tutti_aspect_is_equal(&a->view, &b->view) &&
           is_same_shape(tutti_import_shape(im, a->layer), tutti_import_shape(im, b->layer));
}

/* Has it a pixel for each of the channels that the other has? */
static bool is_factor_of(const tutti_importer *im, const tutti_value *f, const tutti_value *image)
{
    const tutti_shape a = tutti_import_shape(im, f->layer),
                      b = tutti_import_shape(im, image->layer);
    return a.h * a.w == 1 && a.c == b.c && f->view.dims == 4 && image->view.dims == 4 &&
           f->view.size[1] == b.c && tutti_aspect_is_image(&image->view, b);
}

tutti_status tutti_import_join(tutti_importer *im, const char *kind, tutti_value *a, tutti_value *b,
                               tutti_value *out)
{
    int draft;
    TUTTI_TRY(tutti_import_complete(im, a));
    TUTTI_TRY(tutti_import_complete(im, b));
    bool fits = is_alike(im, a, b);
    if (!fits) {
        TUTTI_TRY(tutti_import_whole(im, a));
        TUTTI_TRY(tutti_import_whole(im, b));
        fits = is_alike(im, a, b);
    }
    const bool second = !fits && is_factor_of(im, a, b);
    if (!fits && !(!strcmp(kind, "mul") && (second || is_factor_of(im, b, a))))
        return tutti_import_unknown(im, "its inputs have different shapes: Tutti wants equal ones, "
                                        "or to multiply, a factor for each channel");
    *out = second ? *b : *a;
    const int inputs[2] = {a->layer, b->layer};
    TUTTI_TRY(tutti_draft_add(im, kind, inputs, 2, tutti_import_shape(im, out->layer), &draft));
    *out = (tutti_value){.layer = draft, .view = out->view};
    return TUTTI_OK;
}
