/* A function that the graph applies element by element, before it is known which layer that is. One
 * exporter writes GELU as one operator, another as five; instead of knowing how each writes it, the
 * function is kept as its values at points that tell functions apart, computed in double along with
 * the graph. When an operator wants to read the result, the values decide: if they are those of an
 * activation it becomes that; if they are an activation of what an operator before computed, that
 * one becomes a layer first; else a line or a ramp is written with frozen layers. */
#ifndef TUTTI_INTERCHANGE_CURVE_H
#define TUTTI_INTERCHANGE_CURVE_H

#include "interchange/importer.h"

enum { TUTTI_CURVE_POINTS = 192, TUTTI_CURVE_DEPTH = 24 };

typedef enum tutti_curve_join {
    TUTTI_CURVE_ALONE,
    TUTTI_CURVE_SUM,
    TUTTI_CURVE_PRODUCT
} tutti_curve_join;

struct tutti_sampled {
    double y[TUTTI_CURVE_POINTS];
    int layer; /* whose output it is a function of, seen so */
    tutti_aspect view;
    tutti_value *a, *b; /* what it was computed from; b may be NULL */
    tutti_curve_join join;
    int depth;                   /* operators so far */
    const tutti_onnx_node *node; /* of the last */
};

/* y = f(x): continues the node's input's function. 'context' is for f. */
typedef double tutti_curve_function(double x, const void *context);
tutti_status tutti_curve_apply(tutti_importer *im, const tutti_onnx_node *node, int input,
                               tutti_curve_function *f, const void *context) TUTTI_MUST_CHECK;

/* y = f(a, b) where both are functions of the same; *done says whether they are. */
typedef double tutti_curve_pair(double a, double b);
tutti_status tutti_curve_combine(tutti_importer *im, const tutti_onnx_node *node,
                                 tutti_curve_pair *f, tutti_curve_join join,
                                 bool *done) TUTTI_MUST_CHECK;

/* ---- recognise.c: values at points as what they are ---- */

typedef struct tutti_known_curve {
    const char *kind; /* "gelu"; NULL: a line or a ramp */
    double slope;     /* of leakyrelu */
    double factor, term, low,
        high; /* else: factor * x + term, no less than low, no more than high */
} tutti_known_curve;

/* Is y = f(x) at all points, with a function that layers can make? */
bool tutti_curve_recognise(const double *x, const double *y, tutti_known_curve *out);

#endif
