/* mixup (Zhang et al., "mixup: beyond empirical risk minimization", ICLR 2018): a sample becomes
 * share * itself + (1 - share) * another training sample, and so does its target. Both share and
 * the other one depend on the seed, the epoch and the sample, so that any rank can have both. */
#ifndef TUTTI_DATA_MIX_H
#define TUTTI_DATA_MIX_H

#include <stddef.h>
#include <stdint.h>

typedef struct tutti_partner {
    uint32_t id; /* any sample, itself among them */
    float share; /* of the sample itself: Beta(alpha, alpha) */
} tutti_partner;

tutti_partner tutti_mix_partner(double alpha, uint64_t seed, uint32_t epoch, uint32_t id,
                                uint32_t count);

void tutti_mix_values(float *values, const float *others, float share, size_t count);

#endif
