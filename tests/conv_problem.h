/* A convolution to try: a shape, numbers for it, and what must come of them by definition. */
#ifndef TUTTI_TESTS_CONV_PROBLEM_H
#define TUTTI_TESTS_CONV_PROBLEM_H

#include "fenced.h"
#include "kernel/ref_conv.h"

typedef struct problem {
    uint64_t seed;
    int index;
    tutti_conv_shape shape;
    int n, out_h, out_w, grain_count;
    int grain_begin[9];
    bool relu, bias, mask;
    fenced x, w, b, dy, m;
} problem;

/* What the passes compute. */
typedef struct results {
    fenced y, dx, dw, db;
} results;

/* 'index' decides, with the seed, on numbers, bias, ReLU and mask. */
problem problem_new(uint64_t seed, int index, const tutti_conv_shape *shape, int n, int grains);
void problem_free(problem *p);

results results_new(const problem *p); /* of NaN */
void results_free(results *r);

/* By definition, in plain C; each sum is within its derived bound of the one in double, else the
 * test ends. */
results defined(const problem *p);

void print_shape(const problem *p);

#endif
