/* Randomness without state: Philox4x32-10, a counter-based generator (Salmon et al., "Parallel
 * random numbers: as easy as 1, 2, 3", SC11). A number depends on what it is for, never on who
 * asks or in which order, so every rank and thread sees the same ones. */
#ifndef TUTTI_BASE_RANDOM_H
#define TUTTI_BASE_RANDOM_H

#include <stdint.h>

typedef enum tutti_purpose {
    TUTTI_RANDOM_INIT,
    TUTTI_RANDOM_DROPOUT,
    TUTTI_RANDOM_SHUFFLE,
    TUTTI_RANDOM_AUGMENT,
    TUTTI_RANDOM_SYNTHETIC,
    TUTTI_RANDOM_MIX
} tutti_purpose;

/* What a random number is for. 'when' is the step or the epoch, 'sample' the sample's id or its
 * place in the global minibatch, 'layer' the layer's number in the net (< 2^24). */
typedef struct tutti_random_key {
    uint64_t seed;
    tutti_purpose purpose;
    uint32_t layer, when, sample;
} tutti_random_key;

/* Ten rounds of Philox4x32. */
void tutti_philox(uint32_t out[4], const uint32_t counter[4], const uint32_t key[2]);

/* Numbers 4*block .. 4*block+3 of the key's sequence. */
void tutti_random_block(uint32_t out[4], const tutti_random_key *key, uint32_t block);

/* Number 'index' of the key's sequence: raw; uniform in [0, 1); uniform in 0 .. bound-1; standard
 * normal (by Box-Muller, from numbers 2*index and 2*index+1). */
uint32_t tutti_random_u32(const tutti_random_key *key, uint64_t index);
double tutti_random_uniform(const tutti_random_key *key, uint64_t index);
uint32_t tutti_random_below(const tutti_random_key *key, uint64_t index, uint32_t bound);
double tutti_random_normal(const tutti_random_key *key, uint64_t index);

/* Normals number 2*pair and 2*pair+1, for the price of one. */
void tutti_random_normals(double out[2], const tutti_random_key *key, uint64_t pair);

#endif
