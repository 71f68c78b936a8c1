/* A net by definition: plain double arithmetic on torch's layouts, one sample at a time. What
 * models are tested against; never optimise it. */
#ifndef TUTTI_TESTS_REFERENCE_NET_H
#define TUTTI_TESTS_REFERENCE_NET_H

#include <stdint.h>
#include "nn/net.h"

/* How dropout decides: key of the sample. training false leaves it out. */
typedef struct reference_mode {
    bool training;
    uint64_t seed;
    uint32_t step;
} reference_mode;

/* The loss of one sample, [c][h][w], which is number 'place' of the minibatch. params[i] is
 * parameter i of the net in torch's layout. */
double reference_loss(const tutti_net *net, double *const *params, const reference_mode *mode,
                      const double *sample, int place, int label);

#endif
