/* Arithmetic with constants: what exporters write to find out shapes. */
#ifndef TUTTI_INTERCHANGE_FOLD_H
#define TUTTI_INTERCHANGE_FOLD_H

#include "interchange/curve.h"

/* y = f(a, b) element by element, sizes of 1 repeated. Whole numbers stay whole, rounded to zero.
 * */
tutti_status tutti_fold_pair(tutti_importer *im, const tutti_onnx_node *node,
                             tutti_curve_pair *f) TUTTI_MUST_CHECK;

/* y = f(x) element by element; 'context' is for f. */
tutti_status tutti_fold_function(tutti_importer *im, const tutti_onnx_node *node,
                                 tutti_curve_function *f, const void *context) TUTTI_MUST_CHECK;

/* Steps through a constant's elements: each dimension its own, which may be 0 or go back. */
typedef struct tutti_steps {
    int dims;
    int64_t size[TUTTI_ONNX_MAX_DIMS], step[TUTTI_ONNX_MAX_DIMS], first;
} tutti_steps;

/* Those of all elements in their order. */
tutti_steps tutti_steps_of(const tutti_constant *c);

/* A constant of the elements that the steps reach. */
tutti_status tutti_fold_steps(tutti_importer *im, const tutti_constant *c, const tutti_steps *steps,
                              tutti_constant **out) TUTTI_MUST_CHECK;

/* For operators that also rearrange what is computed. */
tutti_convert tutti_fold_concat, tutti_fold_gather, tutti_fold_cast;

/* Sets an element. */
void tutti_constant_set(tutti_constant *c, int64_t at, double value);

/* The constant that is the node's input. */
const tutti_constant *tutti_fold_input(const tutti_importer *im, const tutti_onnx_node *node,
                                       int input);

#endif
