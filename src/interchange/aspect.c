#include "interchange/aspect.h"

#include <string.h>

/* ---- factors ---- */

static bool join(tutti_aspect_factor *outer, const tutti_aspect_factor *inner)
{
    if (outer->samples || inner->samples || outer->dim != inner->dim ||
        outer->stride != inner->size * inner->stride)
        return false;
    outer->size *= inner->size;
    outer->stride = inner->stride;
    return true;
}

/* One way of saying it: no factor of one step but for samples, none that continues another. */
static void tidy(tutti_aspect *v)
{
    int kept = 0;
    for (int i = 0; i < v->factors; i++) {
        const tutti_aspect_factor f = v->factor[i];
        if (f.size == 1 && !f.samples) continue;
        if (kept && join(&v->factor[kept - 1], &f)) continue;
        v->factor[kept++] = f;
    }
    for (int i = kept; i < TUTTI_ASPECT_FACTORS; i++) v->factor[i] = (tutti_aspect_factor){0};
    v->factors = kept;
}

static bool add(tutti_aspect *v, tutti_aspect_factor f, int dim)
{
    if (v->factors == TUTTI_ASPECT_FACTORS) return false;
    f.dim = dim;
    v->factor[v->factors++] = f;
    return true;
}

tutti_aspect tutti_aspect_of(int64_t samples, tutti_shape s, int dims)
{
    const int64_t c = s.c, h = s.h, w = s.w;
    tutti_aspect v = {.dims = dims, .size = {samples}};
    add(&v, (tutti_aspect_factor){samples, 0, 0, true}, 0);
    if (dims == 2) {
        v.size[1] = c * h * w;
        add(&v, (tutti_aspect_factor){c * h * w, 1, 1, false}, 1);
    } else {
        v.size[1] = c, v.size[2] = h, v.size[3] = w;
        add(&v, (tutti_aspect_factor){c, h * w, 1, false}, 1);
        add(&v, (tutti_aspect_factor){h, w, 2, false}, 2);
        add(&v, (tutti_aspect_factor){w, 1, 3, false}, 3);
    }
    tidy(&v);
    return v;
}

int64_t tutti_aspect_count(const tutti_aspect *view)
{
    int64_t count = 1;
    for (int i = 0; i < view->factors; i++) count *= view->factor[i].size;
    return count;
}

/* ---- other dimensions ---- */

/* Takes from the factors, of which 'rest' is what is left of the first, enough for a dimension. */
static bool fill_dim(tutti_aspect *to, int dim, int64_t wanted, const tutti_aspect *from, int *at,
                     tutti_aspect_factor *rest)
{
    while (*at < from->factors) {
        if (wanted == 1 && rest->size != 1) return true;
        if (wanted % rest->size == 0) {
            if (!add(to, *rest, dim)) return false;
            wanted /= rest->size;
            if (++*at < from->factors) *rest = from->factor[*at];
            continue;
        }
        if (rest->samples || rest->size % wanted) return false;
        tutti_aspect_factor outer = *rest;
        rest->size /= wanted;
        outer.size = wanted;
        outer.stride *= rest->size;
        return add(to, outer, dim);
    }
    return wanted == 1;
}

bool tutti_aspect_reshape(tutti_aspect *view, int dims, const int64_t *size)
{
    tutti_aspect to = {.dims = dims, .offset = view->offset};
    tutti_aspect_factor rest = view->factor[0];
    int at = 0;
    if (dims < 1 || dims > TUTTI_ASPECT_DIMS) return false;
    for (int d = 0; d < dims; d++) {
        to.size[d] = size[d];
        if (size[d] < 1 || !fill_dim(&to, d, size[d], view, &at, &rest)) return false;
    }
    if (at < view->factors) return false;
    tidy(&to);
    *view = to;
    return true;
}

bool tutti_aspect_permute(tutti_aspect *view, const int64_t *order)
{
    tutti_aspect to = {.dims = view->dims, .offset = view->offset};
    unsigned seen = 0;
    for (int d = 0; d < view->dims; d++) {
        if (order[d] < 0 || order[d] >= view->dims || seen >> order[d] & 1) return false;
        seen |= 1u << order[d];
        to.size[d] = view->size[order[d]];
        for (int i = 0; i < view->factors; i++)
            if (view->factor[i].dim == order[d]) add(&to, view->factor[i], d);
    }
    tidy(&to);
    *view = to;
    return true;
}

bool tutti_aspect_cut(tutti_aspect *view, int dim, int64_t first, int64_t end)
{
    tutti_aspect to = *view;
    int64_t inner = 1;
    int outer = -1;
    if (first < 0 || end > view->size[dim] || first >= end) return false;
    if (first == 0 && end == view->size[dim]) return true;
    for (int i = view->factors - 1; i >= 0; i--) {
        if (view->factor[i].dim != dim) continue;
        if (outer >= 0) inner *= view->factor[outer].size;
        outer = i;
    }
    if (outer < 0 || view->factor[outer].samples || first % inner || end % inner) return false;
    to.factor[outer].size = (end - first) / inner;
    to.offset += first / inner * view->factor[outer].stride;
    to.size[dim] = end - first;
    tidy(&to);
    *view = to;
    return true;
}

/* ---- questions ---- */

bool tutti_aspect_is_equal(const tutti_aspect *a, const tutti_aspect *b)
{
    if (a->dims != b->dims || a->factors != b->factors || a->offset != b->offset) return false;
    for (int d = 0; d < a->dims; d++)
        if (a->size[d] != b->size[d]) return false;
    for (int i = 0; i < a->factors; i++) {
        const tutti_aspect_factor f = a->factor[i], g = b->factor[i];
        if (f.size != g.size || f.stride != g.stride || f.dim != g.dim || f.samples != g.samples)
            return false;
    }
    return true;
}

bool tutti_aspect_has_samples_first(const tutti_aspect *view)
{
    if (!view->factors || !view->factor[0].samples || view->factor[0].dim != 0) return false;
    return view->factors == 1 || view->factor[1].dim != 0;
}

/* Do the factors of these dimensions, one after another, go through 'count' places 'step' apart? */
static bool go_through(const tutti_aspect *view, unsigned dims, int64_t count, int64_t step)
{
    int64_t next = step, product = 1;
    for (int i = view->factors - 1; i >= 0; i--) {
        const tutti_aspect_factor f = view->factor[i];
        if (f.samples || !(dims >> f.dim & 1)) continue;
        if (f.stride != next) return false;
        next *= f.size;
        product *= f.size;
    }
    return product == count;
}

bool tutti_aspect_is_whole(const tutti_aspect *view, int64_t count)
{
    return tutti_aspect_has_samples_first(view) && !view->offset && go_through(view, ~0u, count, 1);
}

/* Strides in ascending order must continue each other. */
bool tutti_aspect_is_complete(const tutti_aspect *view, int64_t count)
{
    int64_t next = 1;
    if (!tutti_aspect_has_samples_first(view) || view->offset) return false;
    for (int found = 1; found;) {
        found = 0;
        for (int i = 0; i < view->factors; i++) {
            const tutti_aspect_factor f = view->factor[i];
            if (f.samples || f.stride != next) continue;
            next *= f.size;
            found = 1;
        }
    }
    return next == count && tutti_aspect_count(view) == count * view->size[0];
}

bool tutti_aspect_has_pixels(const tutti_aspect *view, tutti_shape s, unsigned dims)
{
    const int64_t pixels = (int64_t)s.h * s.w;
    return tutti_aspect_has_samples_first(view) && !view->offset && !(dims & 1) &&
           go_through(view, dims, pixels, 1) && go_through(view, ~dims, s.c, pixels);
}

bool tutti_aspect_has_channels(const tutti_aspect *view, tutti_shape s, int dim)
{
    return view->size[dim] == s.c && tutti_aspect_has_pixels(view, s, ~1u & ~(1u << dim));
}

bool tutti_aspect_is_image(const tutti_aspect *view, tutti_shape s)
{
    return view->dims == 4 && view->size[1] == s.c && view->size[2] == s.h &&
           view->size[3] == s.w && tutti_aspect_is_whole(view, (int64_t)s.c * s.h * s.w);
}

void tutti_aspect_places(const tutti_aspect *view, int64_t *out)
{
    int64_t count = 1;
    out[0] = view->offset;
    for (int i = 0; i < view->factors; i++) {
        const tutti_aspect_factor f = view->factor[i];
        if (f.samples) continue;
        for (int64_t at = count - 1; at >= 0; at--)
            for (int64_t k = f.size - 1; k >= 0; k--) out[at * f.size + k] = out[at] + k * f.stride;
        count *= f.size;
    }
}
