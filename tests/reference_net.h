/* A net by definition: plain double arithmetic on torch's layouts, a minibatch at a time, and from
 * its text alone, so that it shares nothing with what it is a reference for. Texts come from tests:
 * a mistake in one ends the program.
 *
 * How far a computation in single precision may be off is derived beside it. Each rounding is taken
 * for an independent error of mean zero (Higham and Mary, "A new approach to probabilistic rounding
 * error analysis", 2019): a sum of n terms x[i] has an error of deviation sqrt(n) u sum|x[i]|, u
 * being 2^-24; derivatives pass on the errors of inputs, and variances add. Where a ReLU or a
 * maximum may fall to the other side within its error, what flows back may be lost altogether. A
 * value is wrong when it is off by more than REFERENCE_DEVIATIONS deviations. */
#ifndef TUTTI_TESTS_REFERENCE_NET_H
#define TUTTI_TESTS_REFERENCE_NET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { REFERENCE_DEVIATIONS = 8 };

/* How dropout decides: key of the sample. training false leaves it out. */
typedef struct reference_mode {
    bool training;
    uint64_t seed;
    uint32_t step;
} reference_mode;

/* One of a minibatch of 'batch' samples. */
typedef struct reference_sample {
    const double *x; /* [c][h][w] */
    int place;       /* in the minibatch */
    int batch;
} reference_sample;

typedef struct reference_net reference_net;

reference_net *reference_read(const char *text);
void reference_destroy(reference_net *net);

/* Parameters are numbered layer by layer, weights before bias, in torch's layouts. */
int reference_parameters(const reference_net *net);
size_t reference_parameter_count(const reference_net *net, int parameter);
double *reference_parameter(reference_net *net, int parameter); /* to be filled */

enum { REFERENCE_MOST_SAMPLES = 16 };

/* The losses of a minibatch, all samples of it; deviations are those of their errors. */
void reference_losses(reference_net *net, const reference_mode *mode,
                      const reference_sample *samples, int count, double *losses,
                      double *deviations);

/* Computes the gradient of the minibatch's mean loss; gives element i and the deviation of its
 * error. Of a parameter that is averaged it is what the average follows. */
void reference_backward(reference_net *net, const reference_mode *mode,
                        const reference_sample *samples, int count);
double reference_gradient(const reference_net *net, int parameter, size_t i, double *deviation);

#endif
