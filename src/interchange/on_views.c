/* What only rearranges: of a layer's output it changes the view, of a constant the elements. */
#include <string.h>

#include "base/memory.h"
#include "interchange/fold.h"

/* ---- other dimensions ---- */

static tutti_status give_reshaped(tutti_importer *im, const tutti_onnx_node *node, int dims,
                                  const int64_t *size)
{
    tutti_value x;
    TUTTI_TRY(tutti_import_feature(im, node, 0, &x));
    if (!tutti_aspect_reshape(&x.view, dims, size)) {
        TUTTI_TRY(tutti_import_whole(im, &x));
        if (!tutti_aspect_reshape(&x.view, dims, size))
            return tutti_import_unknown(im, "a shape that mixes samples, or has another number of "
                                            "values");
    }
    return tutti_import_give(im, node, 0, &x);
}

static tutti_status give_constant(tutti_importer *im, const tutti_onnx_node *node, int dims,
                                  const int64_t *size)
{
    const tutti_constant *c = tutti_fold_input(im, node, 0);
    tutti_steps steps = tutti_steps_of(c);
    tutti_constant *out, flat = *c;
    int64_t count = 1;
    for (int d = 0; d < dims; d++) {
        if (size[d] < 0 || (size[d] && count > c->count / size[d]))
            return tutti_import_unknown(im, "a shape of another number of values");
        count *= size[d];
    }
    if (count != c->count) return tutti_import_unknown(im, "a shape of another number of values");
    flat.dims = dims;
    memcpy(flat.size, size, (size_t)dims * sizeof *size);
    steps = tutti_steps_of(&flat);
    TUTTI_TRY(tutti_fold_steps(im, c, &steps, &out));
    out->name = c->name;
    return tutti_import_give_constant(im, node, out);
}

static tutti_status give_either(tutti_importer *im, const tutti_onnx_node *node, int dims,
                                const int64_t *size)
{
    return tutti_fold_input(im, node, 0) ? give_constant(im, node, dims, size)
                                         : give_reshaped(im, node, dims, size);
}

/* The dimensions of the first input, whatever it is. */
static tutti_status dims_of(tutti_importer *im, const tutti_onnx_node *node, int *dims,
                            int64_t size[TUTTI_ONNX_MAX_DIMS])
{
    tutti_value *x = tutti_import_input(im, node, 0);
    if (!x) return tutti_import_unknown(im, "its input is missing");
    if (!x->constant) TUTTI_TRY(tutti_import_settle(im, x));
    *dims = x->constant ? x->constant->dims : x->view.dims;
    memcpy(size, x->constant ? x->constant->size : x->view.size, sizeof x->view.size);
    return TUTTI_OK;
}

static int64_t product(const int64_t *size, int first, int end)
{
    int64_t count = 1;
    for (int d = first; d < end; d++)
        count *= size[d] > 0 && count < INT64_MAX / size[d] ? size[d] : 0;
    return count;
}

static tutti_status on_reshape(tutti_importer *im, const tutti_onnx_node *node)
{
    int64_t old[TUTTI_ONNX_MAX_DIMS], size[TUTTI_ONNX_MAX_DIMS];
    const bool zero = tutti_onnx_int(node, "allowzero", 0) != 0;
    int dims = 0, count = 0, open = -1;
    TUTTI_TRY(dims_of(im, node, &dims, old));
    TUTTI_TRY(tutti_import_list(im, node, "shape", 1, size, &count));
    if (count < 0) return tutti_import_unknown(im, "its shape is missing");
    for (int d = 0; d < count; d++) {
        if (size[d] == 0 && !zero && d < dims) size[d] = old[d];
        if (size[d] == -1) open = d;
    }
    if (open >= 0) {
        size[open] = 1;
        const int64_t rest = product(size, 0, count), all = product(old, 0, dims);
        size[open] = rest > 0 && all % rest == 0 ? all / rest : -1;
    }
    return give_either(im, node, count, size);
}

static tutti_status on_flatten(tutti_importer *im, const tutti_onnx_node *node)
{
    int64_t old[TUTTI_ONNX_MAX_DIMS], axis = tutti_onnx_int(node, "axis", 1);
    int dims = 0;
    TUTTI_TRY(dims_of(im, node, &dims, old));
    if (axis != dims) TUTTI_TRY(tutti_import_axis(im, &axis, dims));
    const int64_t size[2] = {product(old, 0, (int)axis), product(old, (int)axis, dims)};
    return give_either(im, node, 2, size);
}

static tutti_status on_squeeze(tutti_importer *im, const tutti_onnx_node *node)
{
    int64_t old[TUTTI_ONNX_MAX_DIMS], axes[TUTTI_ONNX_MAX_DIMS], size[TUTTI_ONNX_MAX_DIMS];
    unsigned gone = 0;
    int dims = 0, count = 0, kept = 0;
    TUTTI_TRY(dims_of(im, node, &dims, old));
    TUTTI_TRY(tutti_import_list(im, node, "axes", 1, axes, &count));
    for (int i = 0; i < count; i++) {
        TUTTI_TRY(tutti_import_axis(im, &axes[i], dims));
        gone |= 1u << axes[i];
    }
    for (int d = 0; d < dims; d++) {
        const bool goes = count < 0 ? old[d] == 1 : gone >> d & 1;
        if (goes && old[d] != 1) return tutti_import_unknown(im, "a dimension that is not 1");
        if (!goes) size[kept++] = old[d];
    }
    return give_either(im, node, kept, size);
}

static tutti_status on_unsqueeze(tutti_importer *im, const tutti_onnx_node *node)
{
    int64_t old[TUTTI_ONNX_MAX_DIMS], axes[TUTTI_ONNX_MAX_DIMS], size[TUTTI_ONNX_MAX_DIMS];
    unsigned added = 0;
    int dims = 0, count = 0, from = 0;
    TUTTI_TRY(dims_of(im, node, &dims, old));
    TUTTI_TRY(tutti_import_list(im, node, "axes", 1, axes, &count));
    if (count < 0 || dims + count > TUTTI_ONNX_MAX_DIMS)
        return tutti_import_unknown(im, "its axes are missing, or too many");
    for (int i = 0; i < count; i++) {
        TUTTI_TRY(tutti_import_axis(im, &axes[i], dims + count));
        if (added >> axes[i] & 1) return tutti_import_unknown(im, "an axis twice");
        added |= 1u << axes[i];
    }
    for (int d = 0; d < dims + count; d++) size[d] = added >> d & 1 ? 1 : old[from++];
    return give_either(im, node, dims + count, size);
}

/* ---- another order ---- */

static tutti_status read_order(tutti_importer *im, const tutti_onnx_node *node, int dims,
                               int64_t order[TUTTI_ONNX_MAX_DIMS])
{
    const int count = tutti_onnx_ints(node, "perm", order, TUTTI_ONNX_MAX_DIMS);
    unsigned seen = 0;
    for (int d = 0; d < dims; d++) {
        if (!count) order[d] = dims - 1 - d;
        if (order[d] >= 0 && order[d] < dims) seen |= 1u << order[d];
    }
    return (!count || count == dims) && seen == (1u << dims) - 1
               ? TUTTI_OK
               : tutti_import_unknown(im, "its perm is none of %d dimensions", dims);
}

static tutti_status on_transpose(tutti_importer *im, const tutti_onnx_node *node)
{
    int64_t order[TUTTI_ONNX_MAX_DIMS] = {0};
    tutti_value x;
    TUTTI_TRY(tutti_import_feature(im, node, 0, &x));
    TUTTI_TRY(read_order(im, node, x.view.dims, order));
    const bool fits = tutti_aspect_permute(&x.view, order);
    TUTTI_ASSERT(fits);
    x.turned = node;
    return tutti_import_give(im, node, 0, &x);
}

static tutti_status fold_transpose(tutti_importer *im, const tutti_onnx_node *node)
{
    const tutti_constant *c = tutti_fold_input(im, node, 0);
    int64_t order[TUTTI_ONNX_MAX_DIMS] = {0};
    tutti_constant *out;
    TUTTI_TRY(read_order(im, node, c->dims, order));
    const tutti_steps old = tutti_steps_of(c);
    tutti_steps steps = old;
    for (int d = 0; d < c->dims; d++) {
        steps.size[d] = old.size[order[d]];
        steps.step[d] = old.step[order[d]];
    }
    TUTTI_TRY(tutti_fold_steps(im, c, &steps, &out));
    out->name = c->name;
    return tutti_import_give_constant(im, node, out);
}

/* ---- parts ---- */

typedef struct cut {
    int64_t first[TUTTI_ONNX_MAX_DIMS], end[TUTTI_ONNX_MAX_DIMS], step[TUTTI_ONNX_MAX_DIMS];
} cut;

static int64_t bounded(int64_t value, int64_t least, int64_t most)
{
    return value < least ? least : value > most ? most : value;
}

/* Starts and ends may count from the end, and lie beyond it. */
static void set_cut(cut *c, int64_t axis, int64_t size, int64_t first, int64_t end, int64_t step)
{
    if (first < 0) first += size;
    if (end < 0 && end > -INT64_MAX / 2) end += size;
    c->step[axis] = step;
    c->first[axis] = step > 0 ? bounded(first, 0, size) : bounded(first, 0, size - 1);
    c->end[axis] = step > 0 ? bounded(end, 0, size) : bounded(end, -1, size - 1);
}

static tutti_status read_cut(tutti_importer *im, const tutti_onnx_node *node, int dims,
                             const int64_t *size, cut *out)
{
    int64_t first[TUTTI_ONNX_MAX_DIMS], end[TUTTI_ONNX_MAX_DIMS], axes[TUTTI_ONNX_MAX_DIMS];
    int64_t step[TUTTI_ONNX_MAX_DIMS];
    int count, ends, axis_count, steps;
    for (int d = 0; d < dims; d++) out->first[d] = 0, out->end[d] = size[d], out->step[d] = 1;
    TUTTI_TRY(tutti_import_list(im, node, "starts", 1, first, &count));
    TUTTI_TRY(tutti_import_list(im, node, "ends", 2, end, &ends));
    TUTTI_TRY(tutti_import_list(im, node, "axes", 3, axes, &axis_count));
    TUTTI_TRY(tutti_import_list(im, node, "steps", 4, step, &steps));
    if (count < 0 || ends != count || (axis_count >= 0 && axis_count != count) ||
        (steps >= 0 && steps != count) || count > dims)
        return tutti_import_unknown(im, "its starts, ends, axes and steps do not fit together");
    for (int i = 0; i < count; i++) {
        int64_t axis = axis_count < 0 ? i : axes[i];
        TUTTI_TRY(tutti_import_axis(im, &axis, dims));
        if (steps >= 0 && (step[i] == 0 || step[i] < -INT32_MAX || step[i] > INT32_MAX))
            return tutti_import_unknown(im, "a step of %lld", (long long)step[i]);
        set_cut(out, axis, size[axis], first[i], end[i], steps < 0 ? 1 : step[i]);
    }
    return TUTTI_OK;
}

/* A part of what a layer computes; where the view cannot say it the layer is brought into order. */
static tutti_status cut_feature(tutti_importer *im, tutti_value *x, int dim, int64_t first,
                                int64_t end)
{
    if (first || end != x->view.size[dim]) x->taken = im->node;
    if (tutti_aspect_cut(&x->view, dim, first, end)) return TUTTI_OK;
    TUTTI_TRY(tutti_import_whole(im, x));
    return tutti_aspect_cut(&x->view, dim, first, end)
               ? TUTTI_OK
               : tutti_import_unknown(im, "a part of its input that no view of it is, or nothing");
}

static tutti_status on_slice(tutti_importer *im, const tutti_onnx_node *node)
{
    tutti_value x;
    cut c;
    TUTTI_TRY(tutti_import_feature(im, node, 0, &x));
    TUTTI_TRY(read_cut(im, node, x.view.dims, x.view.size, &c));
    for (int d = 0; d < x.view.dims; d++) {
        if (c.step[d] != 1) return tutti_import_unknown(im, "a step that is not 1");
        TUTTI_TRY(cut_feature(im, &x, d, c.first[d], c.end[d]));
    }
    return tutti_import_give(im, node, 0, &x);
}

static tutti_status fold_slice(tutti_importer *im, const tutti_onnx_node *node)
{
    const tutti_constant *c = tutti_fold_input(im, node, 0);
    tutti_steps steps = tutti_steps_of(c);
    tutti_constant *out;
    cut part;
    TUTTI_TRY(read_cut(im, node, c->dims, c->size, &part));
    for (int d = 0; d < c->dims; d++) {
        const int64_t way = part.end[d] - part.first[d], step = part.step[d];
        const int64_t count = way / step + (way % step != 0);
        steps.size[d] = way * step > 0 ? count : 0;
        steps.first += part.first[d] * steps.step[d];
        steps.step[d] *= step;
    }
    TUTTI_TRY(tutti_fold_steps(im, c, &steps, &out));
    return tutti_import_give_constant(im, node, out);
}

/* How large the parts are: said, or all alike with a smaller last one. */
enum { MOST_PARTS = 1024 };

static tutti_status read_parts(tutti_importer *im, const tutti_onnx_node *node, int64_t size,
                               int64_t out[MOST_PARTS])
{
    const int parts = node->output_count;
    const tutti_constant *sizes = NULL;
    if (parts < 1 || parts > MOST_PARTS) return tutti_import_unknown(im, "%d parts", parts);
    const int64_t alike = (size + parts - 1) / parts;
    int said = tutti_onnx_ints(node, "split", out, MOST_PARTS);
    if (tutti_import_has(node, 1)) {
        TUTTI_TRY(tutti_import_integers(im, node, 1, &sizes));
        said = sizes->count == parts ? parts : -1;
        if (said > 0) memcpy(out, sizes->integers, (size_t)parts * sizeof *out);
    }
    for (int i = 0; i < parts && !said; i++)
        out[i] = (i + 1) * alike > size ? size - i * alike : alike;
    for (int i = 0; i < parts; i++)
        if ((said && said != parts) || out[i] < 1 || out[i] > size)
            return tutti_import_unknown(im, "parts that are not those of its input");
    return TUTTI_OK;
}

static tutti_status on_split(tutti_importer *im, const tutti_onnx_node *node)
{
    int64_t axis = tutti_onnx_int(node, "axis", 0), first = 0, parts[MOST_PARTS];
    tutti_value x;
    TUTTI_TRY(tutti_import_feature(im, node, 0, &x));
    TUTTI_TRY(tutti_import_axis(im, &axis, x.view.dims));
    TUTTI_TRY(read_parts(im, node, x.view.size[axis], parts));
    for (int i = 0; i < node->output_count; i++) {
        tutti_value part = x;
        TUTTI_TRY(cut_feature(im, &part, (int)axis, first, first + parts[i]));
        TUTTI_TRY(tutti_import_give(im, node, i, &part));
        first += parts[i];
    }
    return first == x.view.size[axis]
               ? TUTTI_OK
               : tutti_import_unknown(im, "parts that are not all of its input");
}

static tutti_status on_concat(tutti_importer *im, const tutti_onnx_node *node)
{
    int64_t axis = tutti_onnx_int(node, "axis", 1);
    int *layers = NULL, draft = 0;
    tutti_shape shape = {0};
    tutti_value x = {0};
    if (!node->input_count) return tutti_import_unknown(im, "it has no inputs");
    TUTTI_TRY(tutti_alloc(&layers, (size_t)node->input_count, sizeof *layers));
    tutti_status s = TUTTI_OK;
    for (int i = 0; s == TUTTI_OK && i < node->input_count; i++) {
        s = tutti_import_feature(im, node, i, &x);
        if (s == TUTTI_OK) s = tutti_import_axis(im, &axis, x.view.dims);
        if (s == TUTTI_OK) s = tutti_import_whole(im, &x);
        if (s != TUTTI_OK) break;
        const tutti_shape next = tutti_import_shape(im, x.layer);
        if (axis != 1 || (x.view.dims != 2 && x.view.dims != 4) ||
            !tutti_aspect_has_channels(&x.view, next, 1) ||
            (i && (next.h != shape.h || next.w != shape.w)) || next.c > (1 << 24) - shape.c)
            s = tutti_import_unknown(im, "along something else than channels, or of images of "
                                         "different sizes");
        layers[i] = x.layer;
        shape = (tutti_shape){shape.c + next.c, next.h, next.w};
    }
    if (s == TUTTI_OK && node->input_count == 1) s = tutti_import_give(im, node, 0, &x);
    else if (s == TUTTI_OK) {
        s = tutti_draft_add(im, "concat", layers, node->input_count, shape, &draft);
        const tutti_value y = {.layer = draft,
                               .view = tutti_aspect_of(im->samples, shape, x.view.dims)};
        if (s == TUTTI_OK) s = tutti_import_give(im, node, 0, &y);
    }
    tutti_free(layers);
    return s;
}

/* Elements 0, 1, 2, ... of what was flattened: another shape, as PyTorch writes as_strided. One
 * index is a part. */
static tutti_status on_gather(tutti_importer *im, const tutti_onnx_node *node)
{
    int64_t axis = tutti_onnx_int(node, "axis", 0);
    const tutti_constant *at;
    tutti_value x;
    TUTTI_TRY(tutti_import_feature(im, node, 0, &x));
    TUTTI_TRY(tutti_import_axis(im, &axis, x.view.dims));
    TUTTI_TRY(tutti_import_integers(im, node, 1, &at));
    bool is_all = x.view.dims == 1 && at->count == x.view.size[0];
    for (int64_t i = 0; is_all && i < at->count; i++) is_all = at->integers[i] == i;
    if (is_all) return give_reshaped(im, node, at->dims, at->size);
    if (at->count != 1) return tutti_import_unknown(im, "elements chosen one by one");
    int64_t index = at->integers[0];
    if (index < 0) index += x.view.size[axis];
    TUTTI_TRY(cut_feature(im, &x, (int)axis, index, index + 1));
    int64_t size[TUTTI_ONNX_MAX_DIMS];
    int kept = 0;
    for (int d = 0; d < x.view.dims; d++)
        if (d != axis || at->dims) size[kept++] = x.view.size[d];
    const bool fits = tutti_aspect_reshape(&x.view, kept, size);
    return fits ? tutti_import_give(im, node, 0, &x)
                : tutti_import_unknown(im, "a part that is no view of its input");
}

// clang-format off
const tutti_operator tutti_on_views[] = {
    {"Reshape", "nothing", "samples stay apart", on_reshape, on_reshape},
    {"Flatten", "nothing", "likewise", on_flatten, on_flatten},
    {"Squeeze", "nothing", "", on_squeeze, on_squeeze},
    {"Unsqueeze", "nothing", "", on_unsqueeze, on_unsqueeze},
    {"Transpose", "nothing, or shuffle", "as far as a layer reads channels or pixels in order", on_transpose, fold_transpose},
    {"Slice", "slice", "channels; no steps", on_slice, fold_slice},
    {"Split", "slice", "channels", on_split, NULL},
    {"Concat", "concat", "channels", on_concat, tutti_fold_concat},
    {"Gather", "slice", "one index, or all in order; of constants any", on_gather, tutti_fold_gather},
    {NULL, NULL, NULL, NULL, NULL},
};
// clang-format on
