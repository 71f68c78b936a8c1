/* Arithmetic with shapes: exporters write sizes down as nodes that find them out again. */
#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "interchange/fold.h"

/* ---- sizes ---- */

static tutti_status on_shape(tutti_importer *im, const tutti_onnx_node *node)
{
    const tutti_value *x = tutti_import_input(im, node, 0);
    tutti_constant like = {.dims = 1}, *out;
    if (!x) return tutti_import_unknown(im, "its input is missing");
    const int dims = x->constant ? x->constant->dims : x->view.dims;
    const int64_t *size = x->constant ? x->constant->size : x->view.size;
    int64_t first = tutti_onnx_int(node, "start", 0), end = tutti_onnx_int(node, "end", dims);
    first = first < -dims ? 0 : first < 0 ? first + dims : first > dims ? dims : first;
    end = end < -dims ? 0 : end < 0 ? end + dims : end > dims ? dims : end;
    like.size[0] = end > first ? end - first : 0;
    TUTTI_TRY(tutti_import_constant(im, &like, &out));
    for (int64_t i = 0; i < out->count; i++) {
        const bool padded = !x->constant && first + i >= dims - 2;
        out->integers[i] = size[first + i];
        if (padded) out->integers[i] += x->pad[first + i - dims + 2] + x->pad[first + i - dims + 4];
    }
    return tutti_import_give_constant(im, node, out);
}

static tutti_status fold_size(tutti_importer *im, const tutti_onnx_node *node)
{
    tutti_constant like = {0}, *out;
    TUTTI_TRY(tutti_import_constant(im, &like, &out));
    out->integers[0] = tutti_fold_input(im, node, 0)->count;
    return tutti_import_give_constant(im, node, out);
}

/* ---- made from nothing ---- */

/* A list of whole numbers as a shape. */
static tutti_status shape_from(tutti_importer *im, const tutti_onnx_node *node, int input,
                               tutti_constant *out)
{
    const tutti_constant *c;
    TUTTI_TRY(tutti_import_integers(im, node, input, &c));
    if (c->count > TUTTI_ONNX_MAX_DIMS)
        return tutti_import_unknown(im, "more than %d dimensions", TUTTI_ONNX_MAX_DIMS);
    out->dims = (int)c->count;
    memcpy(out->size, c->integers, (size_t)c->count * sizeof *out->size);
    return TUTTI_OK;
}

static tutti_status fold_constant_of_shape(tutti_importer *im, const tutti_onnx_node *node)
{
    tutti_constant like = {.is_real = true}, *out, *value = NULL;
    tutti_onnx_tensor tensor;
    if (tutti_onnx_has(node, "value")) {
        TUTTI_TRY(tutti_onnx_attribute_tensor(im->model, node, "value", &tensor));
        TUTTI_TRY(tutti_import_tensor(im, &tensor, &value));
        if (value->count != 1) return tutti_import_unknown(im, "its value is not one number");
        like.is_real = value->is_real;
    }
    TUTTI_TRY(shape_from(im, node, 0, &like));
    TUTTI_TRY(tutti_import_constant(im, &like, &out));
    for (int64_t i = 0; value && i < out->count; i++)
        tutti_constant_set(out, i, tutti_constant_at(value, 0));
    return tutti_import_give_constant(im, node, out);
}

static tutti_status fold_range(tutti_importer *im, const tutti_onnx_node *node)
{
    const tutti_constant *c[3];
    tutti_constant like = {.dims = 1}, *out;
    for (int i = 0; i < 3; i++) {
        c[i] = tutti_fold_input(im, node, i);
        if (!c[i] || c[i]->count != 1) return tutti_import_unknown(im, "its limits are no numbers");
        like.is_real = like.is_real || c[i]->is_real;
    }
    const double first = tutti_constant_at(c[0], 0), step = tutti_constant_at(c[2], 0);
    const double count = ceil((tutti_constant_at(c[1], 0) - first) / step);
    if (!(count < INT32_MAX))
        return tutti_import_unknown(im, "a range without an end, or a huge one");
    like.size[0] = count > 0 ? (int64_t)count : 0;
    TUTTI_TRY(tutti_import_constant(im, &like, &out));
    for (int64_t i = 0; i < out->count; i++) tutti_constant_set(out, i, first + (double)i * step);
    return tutti_import_give_constant(im, node, out);
}

/* ---- repeated, joined, chosen ---- */

static tutti_status fold_expand(tutti_importer *im, const tutti_onnx_node *node)
{
    const tutti_constant *c = tutti_fold_input(im, node, 0);
    const tutti_steps own = tutti_steps_of(c);
    tutti_constant to = {0}, *out;
    tutti_steps steps = {0};
    TUTTI_TRY(shape_from(im, node, 1, &to));
    const int dims = steps.dims = to.dims > c->dims ? to.dims : c->dims;
    for (int d = 0; d < dims; d++) {
        const int at = d - (dims - c->dims), wanted = d - (dims - to.dims);
        const int64_t has = at < 0 ? 1 : c->size[at], asked = wanted < 0 ? 1 : to.size[wanted];
        if (has != 1 && asked != 1 && asked != has)
            return tutti_import_unknown(im, "a shape that its input does not fit");
        steps.size[d] = has == 1 ? asked : has;
        steps.step[d] = has == 1 ? 0 : own.step[at];
    }
    TUTTI_TRY(tutti_fold_steps(im, c, &steps, &out));
    return tutti_import_give_constant(im, node, out);
}

/* Of a layer's output only where nothing is repeated. */
static tutti_status on_expand(tutti_importer *im, const tutti_onnx_node *node)
{
    tutti_constant to = {0};
    tutti_value x;
    TUTTI_TRY(tutti_import_feature(im, node, 0, &x));
    TUTTI_TRY(shape_from(im, node, 1, &to));
    for (int d = 0; d < to.dims; d++) {
        const int at = d - to.dims + x.view.dims;
        if (to.size[d] != 1 && (at < 0 || to.size[d] != x.view.size[at]))
            return tutti_import_unknown(im, "values that are repeated");
    }
    return to.dims <= x.view.dims ? tutti_import_give(im, node, 0, &x)
                                  : tutti_import_unknown(im, "more dimensions than its input has");
}

static tutti_status check_joined(const tutti_importer *im, const tutti_constant *a,
                                 const tutti_constant *b, int64_t axis)
{
    bool fits = a->dims == b->dims && a->is_real == b->is_real;
    for (int d = 0; fits && d < a->dims; d++) fits = d == axis || a->size[d] == b->size[d];
    return fits ? TUTTI_OK : tutti_import_unknown(im, "constants that do not fit together");
}

/* Copies runs of 'inner' elements of all inputs in turn. */
enum { MOST_RUNS = 1 << 28 };

static void join(const tutti_importer *im, const tutti_onnx_node *node, int64_t axis,
                 tutti_constant *out)
{
    int64_t at = 0, outer = 1;
    for (int d = 0; d < axis; d++) outer *= out->size[d];
    for (int64_t o = 0; o < outer; o++)
        for (int i = 0; i < node->input_count; i++) {
            const tutti_constant *c = tutti_fold_input(im, node, i);
            const int64_t run = c->count / outer;
            for (int64_t k = 0; k < run; k++)
                tutti_constant_set(out, at++, tutti_constant_at(c, o * run + k));
        }
}

tutti_status tutti_fold_concat(tutti_importer *im, const tutti_onnx_node *node)
{
    const tutti_constant *first = tutti_fold_input(im, node, 0);
    int64_t axis = tutti_onnx_int(node, "axis", 1);
    tutti_constant like = *first, *out;
    TUTTI_TRY(tutti_import_axis(im, &axis, first->dims));
    for (int i = 1; i < node->input_count; i++) {
        const tutti_constant *next = tutti_fold_input(im, node, i);
        if (!next) return tutti_import_unknown(im, "its input %d is missing", i);
        TUTTI_TRY(check_joined(im, first, next, axis));
        like.size[axis] += next->size[axis];
    }
    TUTTI_TRY(tutti_import_constant(im, &like, &out));
    if (out->count && out->count / like.size[axis] > MOST_RUNS / node->input_count)
        return tutti_import_unknown(im, "too many constants of too many rows");
    if (out->count) join(im, node, axis, out);
    return tutti_import_give_constant(im, node, out);
}

tutti_status tutti_fold_gather(tutti_importer *im, const tutti_onnx_node *node)
{
    const tutti_constant *c = tutti_fold_input(im, node, 0), *at;
    int64_t axis = tutti_onnx_int(node, "axis", 0), inner = 1;
    tutti_constant like = {.is_real = c->is_real}, *out;
    TUTTI_TRY(tutti_import_axis(im, &axis, c->dims));
    TUTTI_TRY(tutti_import_integers(im, node, 1, &at));
    like.dims = c->dims - 1 + at->dims;
    if (like.dims > TUTTI_ONNX_MAX_DIMS) return tutti_import_unknown(im, "too many dimensions");
    for (int d = 0; d < axis; d++) like.size[d] = c->size[d];
    for (int d = 0; d < at->dims; d++) like.size[axis + d] = at->size[d];
    for (int d = (int)axis + 1; d < c->dims; d++) {
        like.size[d - 1 + at->dims] = c->size[d];
        inner *= c->size[d];
    }
    TUTTI_TRY(tutti_import_constant(im, &like, &out));
    for (int64_t i = 0; i < out->count; i++) {
        int64_t index = at->integers[i / inner % at->count];
        if (index < 0) index += c->size[axis];
        if (index < 0 || index >= c->size[axis])
            return tutti_import_unknown(im, "an index that there is not");
        const int64_t from = (i / inner / at->count * c->size[axis] + index) * inner + i % inner;
        tutti_constant_set(out, i, tutti_constant_at(c, from));
    }
    return tutti_import_give_constant(im, node, out);
}

static const tutti_constant *larger(const tutti_constant *a, const tutti_constant *b)
{
    if (a->count != b->count) return a->count > b->count ? a : b;
    return a->dims > b->dims ? a : b;
}

/* One number, or as many in the same dimensions. */
static bool is_one_or_like(const tutti_constant *c, const tutti_constant *like)
{
    return c->count == 1 || (c->dims == like->dims &&
                             !memcmp(c->size, like->size, (size_t)c->dims * sizeof *c->size));
}

static tutti_status fold_where(tutti_importer *im, const tutti_onnx_node *node)
{
    const tutti_constant *c = tutti_fold_input(im, node, 0);
    const tutti_constant *a = tutti_fold_input(im, node, 1), *b = tutti_fold_input(im, node, 2);
    tutti_constant *out;
    if (!c || !a || !b || a->is_real != b->is_real)
        return tutti_import_unknown(im, "it has not three inputs that fit");
    tutti_constant like = *larger(c, larger(a, b));
    like.is_real = a->is_real;
    if (!is_one_or_like(a, &like) || !is_one_or_like(b, &like) || !is_one_or_like(c, &like))
        return tutti_import_unknown(im, "the shapes of its constants do not fit");
    TUTTI_TRY(tutti_import_constant(im, &like, &out));
    for (int64_t i = 0; i < out->count; i++) {
        const tutti_constant *from = tutti_constant_at(c, c->count == 1 ? 0 : i) != 0 ? a : b;
        tutti_constant_set(out, i, tutti_constant_at(from, from->count == 1 ? 0 : i));
    }
    return tutti_import_give_constant(im, node, out);
}

/* ---- element by element ---- */

static double equal(double a, double b)
{
    return a == b;
}

static double less(double a, double b)
{
    return a < b;
}

static double more(double a, double b)
{
    return a > b;
}

static double both(double a, double b)
{
    return a != 0 && b != 0;
}

static double either(double a, double b)
{
    return a != 0 || b != 0;
}

static double rest(double a, double b)
{
    const double r = b == 0 ? 0 : fmod(a, b);
    return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}

static const struct {
    const char *name;
    tutti_curve_pair *f;
} pairs[] = {
    {"Equal", equal}, {"Less", less}, {"Greater", more}, {"And", both},
    {"Or", either},   {"Mod", rest},  {NULL, NULL},
};

static tutti_status fold_question(tutti_importer *im, const tutti_onnx_node *node)
{
    int i = 0;
    while (strcmp(pairs[i].name, node->op)) i++;
    return tutti_fold_pair(im, node, pairs[i].f);
}

static double opposite(double x, const void *context)
{
    (void)context;
    return x == 0;
}

static tutti_status fold_not(tutti_importer *im, const tutti_onnx_node *node)
{
    return tutti_fold_function(im, node, opposite, NULL);
}

/* To a type: reals to reals and whole numbers to whole numbers are nothing. */
tutti_status tutti_fold_cast(tutti_importer *im, const tutti_onnx_node *node)
{
    const tutti_constant *c = tutti_fold_input(im, node, 0);
    const tutti_onnx_tensor to = {.type = (int)tutti_onnx_int(node, "to", TUTTI_ONNX_FLOAT)};
    tutti_constant like = *c, *out;
    like.is_real = tutti_onnx_is_real(&to);
    TUTTI_TRY(tutti_import_constant(im, &like, &out));
    for (int64_t i = 0; i < out->count; i++)
        tutti_constant_set(out, i,
                           to.type == TUTTI_ONNX_BOOL ? tutti_constant_at(c, i) != 0
                                                      : tutti_constant_at(c, i));
    return tutti_import_give_constant(im, node, out);
}

/* ---- all of a list ---- */

static double times(double a, double b)
{
    return a * b;
}

static double plus(double a, double b)
{
    return a + b;
}

static tutti_status reduce(tutti_importer *im, const tutti_onnx_node *node, tutti_curve_pair *f,
                           double first)
{
    const tutti_constant *c = tutti_fold_input(im, node, 0);
    const bool keeps = tutti_onnx_int(node, "keepdims", 1) != 0;
    tutti_constant like = {.dims = keeps ? 1 : 0, .size = {1}, .is_real = c->is_real}, *out;
    if (c->dims > 1) return tutti_import_unknown(im, "of a constant that is no list");
    TUTTI_TRY(tutti_import_constant(im, &like, &out));
    double all = first;
    for (int64_t i = 0; i < c->count; i++) all = f(all, tutti_constant_at(c, i));
    tutti_constant_set(out, 0, all);
    return tutti_import_give_constant(im, node, out);
}

static tutti_status fold_product(tutti_importer *im, const tutti_onnx_node *node)
{
    return reduce(im, node, times, 1);
}

static tutti_status fold_sum(tutti_importer *im, const tutti_onnx_node *node)
{
    return reduce(im, node, plus, 0);
}

// clang-format off
#define FOLDS(name, fold) {name, "arithmetic with shapes", "", NULL, fold}
const tutti_operator tutti_on_shapes[] = {
    {"Shape", "arithmetic with shapes", "", on_shape, on_shape},
    FOLDS("Size", fold_size),
    FOLDS("ConstantOfShape", fold_constant_of_shape),
    FOLDS("Range", fold_range),
    {"Expand", "arithmetic with shapes", "of what is computed: nothing repeated", on_expand, fold_expand},
    FOLDS("Where", fold_where),
    FOLDS("Equal", fold_question),
    FOLDS("Less", fold_question),
    FOLDS("Greater", fold_question),
    FOLDS("And", fold_question),
    FOLDS("Or", fold_question),
    FOLDS("Mod", fold_question),
    FOLDS("Not", fold_not),
    FOLDS("ReduceProd", fold_product),
    FOLDS("ReduceSum", fold_sum),
    {NULL, NULL, NULL, NULL, NULL},
};
// clang-format on
