/* How much each class counts in the loss: --class-weights auto, a file, or none. */
#ifndef TUTTI_TRAIN_CLASS_WEIGHTS_H
#define TUTTI_TRAIN_CLASS_WEIGHTS_H

#include "base/hash.h"
#include "data/data.h"

typedef struct tutti_class_weights {
    float *values;             /* one an output; NULL: all 1 */
    char hash[TUTTI_HASH_HEX]; /* of them; "none" */
} tutti_class_weights;

/* 'text' is NULL, "" or "none": no weights.
 *   auto   of a class with n of the N training samples N / (classes * n), where classes are those
 *          that occur: scikit-learn's "balanced". The mean over all samples is 1
 *   FILE   a positive number a line, in the order of the classes, or "NAME NUMBER" in any order;
 *          '#' begins a comment
 * Outputs that the data have no class for get 0. Failures name the line and the class. */
tutti_status tutti_class_weights_init(tutti_class_weights *out, const char *text, tutti_data *data,
                                      int outputs) TUTTI_MUST_CHECK;
void tutti_class_weights_deinit(tutti_class_weights *weights); /* all zero is fine */

#endif
