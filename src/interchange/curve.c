#include "interchange/curve.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"

/* ---- points ---- */

enum { POWERS = 40, DENSE = TUTTI_CURVE_POINTS - 2 * POWERS };

/* Powers of two on both sides, and between them the range where activations bend, most of all
 * around zero. */
static void make_points(double *x)
{
    for (int i = 0; i < POWERS; i++) {
        x[i] = -ldexp(13, POWERS - 1 - i);
        x[TUTTI_CURVE_POINTS - 1 - i] = ldexp(13, POWERS - 1 - i);
    }
    for (int i = 0; i < DENSE; i++) {
        const double t = 2.0 * i / (DENSE - 1) - 1;
        x[POWERS + i] = 12 * t * t * t;
    }
}

/* ---- curves of values ---- */

void tutti_curves_destroy(tutti_importer *im)
{
    for (int i = 0; i < im->curve_count; i++) tutti_free(im->curves[i]);
    tutti_free(im->curves);
}

static tutti_status new_curve(tutti_importer *im, const tutti_value *from, tutti_sampled **out)
{
    tutti_sampled *c = NULL;
    TUTTI_TRY(tutti_grow(&im->curves, &im->curve_room, im->curve_count, sizeof(tutti_sampled *)));
    TUTTI_TRY(tutti_alloc(&c, 1, sizeof *c));
    im->curves[im->curve_count++] = c;
    c->layer = from->layer;
    c->view = from->view;
    *out = c;
    return TUTTI_OK;
}

/* The value's function at the points. */
static void values_of(const tutti_value *v, double *y)
{
    if (v->is_pending) memcpy(y, v->curve->y, sizeof v->curve->y);
    else make_points(y);
}

/* A value to continue: its function has not become too long, its padding is a layer. */
static tutti_status prepare(tutti_importer *im, tutti_value *v)
{
    const bool is_padded = v->pad[0] || v->pad[1] || v->pad[2] || v->pad[3];
    if (is_padded || (v->is_pending && v->curve->depth >= TUTTI_CURVE_DEPTH))
        return tutti_import_settle(im, v);
    return TUTTI_OK;
}

static tutti_status give(tutti_importer *im, const tutti_onnx_node *node, const tutti_value *from,
                         tutti_sampled *curve)
{
    tutti_value out = *from;
    out.curve = curve;
    out.is_pending = true;
    curve->node = node;
    return tutti_import_give(im, node, 0, &out);
}

static int depth_of(const tutti_value *v)
{
    return v && v->is_pending ? v->curve->depth : 0;
}

tutti_status tutti_curve_apply(tutti_importer *im, const tutti_onnx_node *node, int input,
                               tutti_curve_function *f, const void *context)
{
    tutti_value *x = tutti_import_input(im, node, input);
    tutti_sampled *c;
    double points[TUTTI_CURVE_POINTS];
    if (!x || x->constant)
        return tutti_import_unknown(im, "its input is a constant, or missing: nothing is left to "
                                        "compute");
    TUTTI_TRY(prepare(im, x));
    TUTTI_TRY(new_curve(im, x, &c));
    values_of(x, points);
    for (int i = 0; i < TUTTI_CURVE_POINTS; i++) c->y[i] = f(points[i], context);
    c->a = x;
    c->depth = depth_of(x) + 1;
    return give(im, node, x, c);
}

static bool is_of_same(const tutti_value *a, const tutti_value *b)
{
    return a->layer == b->layer && tutti_aspect_is_equal(&a->view, &b->view);
}

tutti_status tutti_curve_combine(tutti_importer *im, const tutti_onnx_node *node,
                                 tutti_curve_pair *f, tutti_curve_join join, bool *done)
{
    tutti_value *a = tutti_import_input(im, node, 0), *b = tutti_import_input(im, node, 1);
    double x[TUTTI_CURVE_POINTS], y[TUTTI_CURVE_POINTS];
    tutti_sampled *c;
    TUTTI_TRY(prepare(im, a));
    TUTTI_TRY(prepare(im, b));
    *done = is_of_same(a, b);
    if (!*done) return TUTTI_OK;
    TUTTI_TRY(new_curve(im, a, &c));
    values_of(a, x);
    values_of(b, y);
    for (int i = 0; i < TUTTI_CURVE_POINTS; i++) c->y[i] = f(x[i], y[i]);
    c->a = a;
    c->b = b;
    c->join = join;
    c->depth = (depth_of(a) > depth_of(b) ? depth_of(a) : depth_of(b)) + 1;
    return give(im, node, a, c);
}

/* ---- layers of them ---- */

static tutti_status add_activation(tutti_importer *im, tutti_value *v, const char *kind,
                                   double slope)
{
    int draft;
    TUTTI_TRY(tutti_import_complete(im, v));
    TUTTI_TRY(tutti_draft_add(im, kind, &v->layer, 1, tutti_import_shape(im, v->layer), &draft));
    if (slope > 0) tutti_draft_say_real(im, draft, "slope", slope, 0.01);
    v->layer = draft;
    return TUTTI_OK;
}

/* No less than low, no more than high, of factor * x + term. */
static tutti_status add_ramp(tutti_importer *im, tutti_value *v, const tutti_known_curve *k)
{
    const bool has_low = isfinite(k->low), has_high = isfinite(k->high);
    if (!has_low && !has_high) return tutti_import_affine(im, v, k->factor, k->term);
    if (has_low && has_high) {
        const double size = 6 / (k->high - k->low);
        TUTTI_TRY(tutti_import_affine(im, v, k->factor * size, (k->term - k->low) * size));
        TUTTI_TRY(add_activation(im, v, "relu6", 0));
        return tutti_import_affine(im, v, 1 / size, k->low);
    }
    const double sign = has_low ? 1 : -1, end = has_low ? k->low : k->high;
    TUTTI_TRY(tutti_import_affine(im, v, sign * k->factor, sign * (k->term - end)));
    TUTTI_TRY(add_activation(im, v, "relu", 0));
    return tutti_import_affine(im, v, sign, end);
}

static tutti_status add_known(tutti_importer *im, tutti_value *v, const tutti_known_curve *k)
{
    return k->kind ? add_activation(im, v, k->kind, k->slope) : add_ramp(im, v, k);
}

/* The values that the curve was computed from, nearest first, as far as they are functions of the
 * same. */
enum { MOST_CANDIDATES = 64 };

static bool is_among(tutti_value *const *list, int count, const tutti_value *v)
{
    for (int i = 0; i < count; i++)
        if (list[i] == v) return true;
    return false;
}

static void add_candidate(tutti_value **list, int *count, tutti_value *v, const tutti_sampled *of)
{
    if (!v || !v->curve || *count == MOST_CANDIDATES || is_among(list, *count, v)) return;
    if (v->curve->layer == of->layer && tutti_aspect_is_equal(&v->curve->view, &of->view))
        list[(*count)++] = v;
}

static int candidates_of(const tutti_sampled *c, tutti_value **list)
{
    int count = 0;
    add_candidate(list, &count, c->a, c);
    add_candidate(list, &count, c->b, c);
    for (int i = 0; i < count; i++) {
        add_candidate(list, &count, list[i]->curve->a, c);
        add_candidate(list, &count, list[i]->curve->b, c);
    }
    return count;
}

/* Is it a function of a value before it? Those of one activation first, then lines and ramps. */
static tutti_status try_candidates(tutti_importer *im, tutti_value *v, bool *done)
{
    tutti_value *list[MOST_CANDIDATES];
    tutti_known_curve known;
    const tutti_sampled *c = v->curve;
    const int count = candidates_of(c, list);
    for (int pass = 0; pass < 2; pass++)
        for (int i = 0; i < count; i++) {
            if (!tutti_curve_recognise(list[i]->curve->y, c->y, &known)) continue;
            if (!pass && !known.kind) continue;
            TUTTI_TRY(tutti_import_settle(im, list[i]));
            tutti_value on = {.layer = list[i]->layer, .view = list[i]->view};
            TUTTI_TRY(add_known(im, &on, &known));
            v->layer = on.layer;
            v->view = on.view;
            *done = true;
            return TUTTI_OK;
        }
    return TUTTI_OK;
}

/* A sum or product of two functions that are layers each. */
static tutti_status add_join(tutti_importer *im, tutti_value *v)
{
    const tutti_sampled *c = v->curve;
    TUTTI_TRY(tutti_import_settle(im, c->a));
    TUTTI_TRY(tutti_import_settle(im, c->b));
    tutti_value a = *c->a, b = *c->b, sum;
    TUTTI_TRY(tutti_import_join(im, c->join == TUTTI_CURVE_SUM ? "add" : "mul", &a, &b, &sum));
    v->layer = sum.layer;
    v->view = sum.view;
    return TUTTI_OK;
}

static tutti_status settle_curve(tutti_importer *im, tutti_value *v)
{
    const tutti_sampled *c = v->curve;
    tutti_known_curve known;
    double x[TUTTI_CURVE_POINTS];
    bool done = false;
    make_points(x);
    if (tutti_curve_recognise(x, c->y, &known)) {
        tutti_value on = {.layer = c->layer, .view = c->view};
        TUTTI_TRY(add_known(im, &on, &known));
        v->layer = on.layer;
        v->view = on.view;
        return TUTTI_OK;
    }
    TUTTI_TRY(try_candidates(im, v, &done));
    if (done) return TUTTI_OK;
    if (c->b && c->join != TUTTI_CURVE_ALONE) return add_join(im, v);
    return tutti_import_unknown(im, "no layer of Tutti is this function");
}

tutti_status tutti_import_settle(tutti_importer *im, tutti_value *value)
{
    const tutti_onnx_node *now = im->node;
    if (value->is_pending) {
        im->node = value->curve->node;
        TUTTI_TRY(settle_curve(im, value));
        value->is_pending = false;
        im->node = now;
    }
    if (!value->pad[0] && !value->pad[1] && !value->pad[2] && !value->pad[3]) return TUTTI_OK;
    return tutti_import_pad(im, value);
}
