/* What the kernels' loops are cut to fit. */
#ifndef TUTTI_KERNEL_CACHES_H
#define TUTTI_KERNEL_CACHES_H

#include <stddef.h>

#include "base/topology.h"

/* Bytes of the caches a thread has for itself. */
typedef struct tutti_caches {
    size_t l1, l2, l3;
} tutti_caches;

/* A thread's share of each cache when 'ranks' processes like this one compute on the machine, each
 * with a thread on every core it may use. */
tutti_caches tutti_caches_of_thread(const tutti_topology *topology, int ranks);

#endif
