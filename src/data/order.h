/* The order of samples: a permutation of the ids for each epoch. */
#ifndef TUTTI_DATA_ORDER_H
#define TUTTI_DATA_ORDER_H

#include <stdint.h>

/* The id at place 'place' (0 .. count-1) of epoch 'epoch'. */
uint32_t tutti_order_id(uint64_t seed, uint32_t epoch, uint32_t count, uint32_t place);

#endif
