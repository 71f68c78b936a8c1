/* The definition of fully connected layers, in plain C: what fc.h's passes must equal bit for bit.
 * Never optimise it. Arrays are laid out as in fc.h; 'in' and 'out' are multiples of 16. */
#ifndef TUTTI_KERNEL_REF_FC_H
#define TUTTI_KERNEL_REF_FC_H

#include "kernel/fc.h"

void tutti_ref_fc_forward(int n, int in, int out, const float *x, const float *w, const float *bias,
                          bool relu, float *y);
void tutti_ref_fc_backward_data(int n, int in, int out, const float *dy, const float *w,
                                const float *mask, float *dx);
void tutti_ref_fc_backward_weights(const tutti_grains *grains, int in, int out, const float *x,
                                   const float *dy, float *dw, float *db);

/* The same of operands rounded to bf16; see fc.h. */
void tutti_ref_fc_bf16_forward(int n, int in, int out, const float *x, const float *w,
                               const float *bias, bool relu, float *y);
void tutti_ref_fc_bf16_backward_data(int n, int in, int out, const float *dy, const float *w,
                                     const float *mask, float *dx);
void tutti_ref_fc_bf16_backward_weights(const tutti_grains *grains, int in, int out, const float *x,
                                        const float *dy, float *dw, float *db);

/* A sum in double and the sum of its terms' magnitudes, for bounds: a float sum of k products in
 * any order is at most (k+1) eps/2 times the magnitude away from the exact one. */
typedef struct tutti_ref_exact {
    double value, magnitude;
} tutti_ref_exact;

/* One element of each: y[sample][o] before the ReLU, dx[sample][i] before the mask, dw[o][i]. */
tutti_ref_exact tutti_ref_fc_y(int in, const float *x, const float *w, const float *bias,
                               int sample, int o);
tutti_ref_exact tutti_ref_fc_dx(int in, int out, const float *dy, const float *w, int sample,
                                int i);
tutti_ref_exact tutti_ref_fc_dw(int first, int end, int in, int out, const float *x,
                                const float *dy, int o, int i);

#endif
