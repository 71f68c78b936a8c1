/* Normalisation within a sample, defined in double: to be read, and what every row is tested
 * against. Never optimise it. Arrays are [n][c][pixels]. */
#ifndef TUTTI_KERNEL_REF_NORM_H
#define TUTTI_KERNEL_REF_NORM_H

#include <stdbool.h>
#include <stddef.h>

/* The values of a sample that are normalised together: those of c / groups channels one after the
 * other, of all pixels or of one. */
typedef struct tutti_ref_norm {
    int n, c, pixels;
    int groups;      /* divides c */
    bool each_pixel; /* by itself */
    bool each_value; /* has a weight and a bias; else each channel */
    double eps;
    const double *weight, *bias;
} tutti_ref_norm;

/* One such set: its mean, its variance, and how far values are from the mean at most. */
typedef struct tutti_ref_norm_set {
    size_t count;
    double mean, variance, reach, inverse;
} tutti_ref_norm_set;

size_t tutti_ref_norm_sets(const tutti_ref_norm *norm);
/* Where value i of a set is in x; and which weight and bias it has. */
size_t tutti_ref_norm_place(const tutti_ref_norm *norm, size_t set, size_t i);
size_t tutti_ref_norm_weight(const tutti_ref_norm *norm, size_t place);
tutti_ref_norm_set tutti_ref_norm_measure(const tutti_ref_norm *norm, size_t set, const double *x);

void tutti_ref_norm_forward(const tutti_ref_norm *norm, const double *x, double *y);
/* Adds to dw and db. */
void tutti_ref_norm_backward(const tutti_ref_norm *norm, const double *x, const double *dy,
                             double *dx, double *dw, double *db);

#endif
