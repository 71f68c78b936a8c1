/* The definitions of ops.h and pool.h in double: to be read, and what every row is tested against.
 * Never optimise them. Layouts are those of the contracts, with double for float; forward passes
 * and backward passes are independent of each other, and agree by finite differences. */
#ifndef TUTTI_KERNEL_REF_OPS_H
#define TUTTI_KERNEL_REF_OPS_H

#include "kernel/ops.h"
#include "kernel/pool.h"

/* Where channel c of a pixel of sample n is in [n][channels/16][pixels][16]. */
size_t tutti_ref_at(int channels, int pixels, int n, int c, int pixel);

double tutti_ref_sigmoid(double x);
double tutti_ref_sigmoid_slope(double y); /* by the input, from the output */
double tutti_ref_tanh_slope(double y);

/* Whether element 'e' of a sample, counted over all channels of the layer, stays; 'sample' counts
 * from the dropout's first. */
bool tutti_ref_dropout_keeps(const tutti_dropout *dropout, int sample, size_t e);

void tutti_ref_lrn_forward(const tutti_lrn *lrn, int n, int c, int pixels, const double *x,
                           double *y);
void tutti_ref_lrn_backward(const tutti_lrn *lrn, int n, int c, int pixels, const double *x,
                            const double *dy, double *dx);

void tutti_ref_softmax(int n, int classes, const double *x, const int32_t *labels, double *p,
                       double *loss);
void tutti_ref_softmax_backward(int n, int classes, const double *p, const int32_t *labels,
                                double scale, double *dx);

void tutti_ref_sgd_step(const tutti_sgd *sgd, size_t count, const double *dw, double *v, double *w);

/* Step 'step' (1, 2, ...) by PyTorch's own settings. */
typedef struct tutti_ref_adam {
    double lr, beta1, beta2, eps, weight_decay;
    bool decoupled; /* AdamW */
} tutti_ref_adam;
void tutti_ref_adam_step(const tutti_ref_adam *adam, int step, size_t count, const double *dw,
                         double *m, double *v, double *w);

void tutti_ref_max_pool_forward(const tutti_pool_shape *shape, int n, const double *x, double *y,
                                uint16_t *tap);
void tutti_ref_max_pool_backward(const tutti_pool_shape *shape, int n, const double *dy,
                                 const uint16_t *tap, double *dx);
void tutti_ref_average_pool_forward(const tutti_pool_shape *shape, int n, const double *x,
                                    double *y);
void tutti_ref_average_pool_backward(const tutti_pool_shape *shape, int n, const double *dy,
                                     double *dx);

#endif
