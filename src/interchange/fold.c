#include "interchange/fold.h"

#include <math.h>
#include <string.h>

#include "base/memory.h"

const tutti_constant *tutti_fold_input(const tutti_importer *im, const tutti_onnx_node *node,
                                       int input)
{
    const tutti_value *v = tutti_import_input(im, node, input);
    return v ? v->constant : NULL;
}

/* Beyond this, whole numbers are said to be endless. */
static const double most_integer = 4611686018427387904.0;

void tutti_constant_set(tutti_constant *c, int64_t at, double value)
{
    if (c->is_real) c->reals[at] = (float)value;
    else if (isnan(value)) c->integers[at] = 0;
    else c->integers[at] = (int64_t)fmax(-most_integer, fmin(most_integer, value));
}

/* ---- steps ---- */

tutti_steps tutti_steps_of(const tutti_constant *c)
{
    tutti_steps s = {.dims = c->dims};
    int64_t step = 1;
    for (int d = c->dims - 1; d >= 0; d--) {
        s.size[d] = c->size[d];
        s.step[d] = step;
        step *= c->size[d] ? c->size[d] : 1;
    }
    return s;
}

/* Where element number 'at', in the order of the steps, is. */
static int64_t place_of(const tutti_steps *s, int64_t at)
{
    int64_t place = s->first;
    for (int d = s->dims - 1; d >= 0; d--) {
        place += at % s->size[d] * s->step[d];
        at /= s->size[d];
    }
    return place;
}

tutti_status tutti_fold_steps(tutti_importer *im, const tutti_constant *c, const tutti_steps *steps,
                              tutti_constant **out)
{
    tutti_constant like = {.dims = steps->dims, .is_real = c->is_real};
    memcpy(like.size, steps->size, sizeof like.size);
    TUTTI_TRY(tutti_import_constant(im, &like, out));
    for (int64_t i = 0; i < (*out)->count; i++) {
        const int64_t from = place_of(steps, i);
        TUTTI_ASSERT(from >= 0 && from < c->count);
        if (c->is_real) (*out)->reals[i] = c->reals[from];
        else (*out)->integers[i] = c->integers[from];
    }
    return TUTTI_OK;
}

/* ---- element by element ---- */

/* The steps through 'c' that give it the sizes of 'to': 0 where it has one element for many. */
static bool repeat(const tutti_constant *c, const tutti_constant *to, tutti_steps *out)
{
    const tutti_steps own = tutti_steps_of(c);
    const int behind = to->dims - c->dims;
    *out = (tutti_steps){.dims = to->dims};
    for (int d = 0; d < to->dims; d++) {
        const int64_t size = d < behind ? 1 : c->size[d - behind];
        out->size[d] = to->size[d];
        out->step[d] = d < behind || size == 1 ? 0 : own.step[d - behind];
        if (size != 1 && size != to->size[d]) return false;
    }
    return true;
}

static void join_sizes(const tutti_constant *a, const tutti_constant *b, tutti_constant *out)
{
    out->dims = a->dims > b->dims ? a->dims : b->dims;
    for (int d = 0; d < out->dims; d++) {
        const int at_a = d - (out->dims - a->dims), at_b = d - (out->dims - b->dims);
        const int64_t of_a = at_a < 0 ? 1 : a->size[at_a], of_b = at_b < 0 ? 1 : b->size[at_b];
        out->size[d] = of_a == 1 ? of_b : of_a;
    }
}

tutti_status tutti_fold_pair(tutti_importer *im, const tutti_onnx_node *node, tutti_curve_pair *f)
{
    const tutti_constant *a = tutti_fold_input(im, node, 0), *b = tutti_fold_input(im, node, 1);
    tutti_constant like = {0}, *out;
    tutti_steps by_a, by_b;
    if (!a || !b) return tutti_import_unknown(im, "it has not two inputs");
    like.is_real = a->is_real || b->is_real;
    join_sizes(a, b, &like);
    if (!repeat(a, &like, &by_a) || !repeat(b, &like, &by_b))
        return tutti_import_unknown(im, "the shapes of its constants do not fit");
    TUTTI_TRY(tutti_import_constant(im, &like, &out));
    for (int64_t i = 0; i < out->count; i++)
        tutti_constant_set(
            out, i,
            f(tutti_constant_at(a, place_of(&by_a, i)), tutti_constant_at(b, place_of(&by_b, i))));
    return tutti_import_give_constant(im, node, out);
}

tutti_status tutti_fold_function(tutti_importer *im, const tutti_onnx_node *node,
                                 tutti_curve_function *f, const void *context)
{
    const tutti_constant *x = tutti_fold_input(im, node, 0);
    tutti_constant *out;
    if (!x) return tutti_import_unknown(im, "its input is missing");
    TUTTI_TRY(tutti_import_constant(im, x, &out));
    for (int64_t i = 0; i < out->count; i++)
        tutti_constant_set(out, i, f(tutti_constant_at(x, i), context));
    return tutti_import_give_constant(im, node, out);
}
