/* Models against the plain reference. */
#ifndef TUTTI_TESTS_AGREE_H
#define TUTTI_TESTS_AGREE_H

#include "minibatch.h"
#include "reference_net.h"

/* The reference of the batch's net with the model's parameters; reference_destroy. */
reference_net *reference_of(const batch *b, tutti_model *model);

/* Sample i of the batch. */
reference_sample reference_sample_of(const batch *b, int i);

/* Losses of the batch, and the deviations of their errors. */
void reference_minibatch(reference_net *net, const batch *b, const reference_mode *mode,
                         double *losses, double *deviations);

/* The gradient of the step of train() in 'net'. */
void reference_step(reference_net *net, const batch *b);

/* Ends the test unless the losses of the batch's samples, and the gradient of a model of one
 * worker, are those of the reference as far as rounding allows. Both return the largest error as a
 * share of what is allowed. */
double losses_agree(reference_net *net, const batch *b, bool training, const float *losses);
double gradients_agree(const reference_net *net, const batch *b, tutti_model *model);

#endif
