/* Places in one block of memory for things that are not all alive at the same time. */
#ifndef TUTTI_NN_PACK_H
#define TUTTI_NN_PACK_H

#include <stddef.h>
#include "base/status.h"

typedef struct tutti_lease {
    size_t bytes;
    int begin, end; /* alive from 'begin' to 'end', both included */
    size_t offset;  /* where it goes: set by tutti_pack, a multiple of a cache line */
} tutti_lease;

/* Finds an offset for every lease such that no two that are alive at the same time overlap, and
 * stores the bytes that all of them need in *total. Largest first, each into the smallest gap that
 * holds it: for the nets we know, within a few percent of the most that is ever alive at once. */
tutti_status tutti_pack(tutti_lease *leases, int count, size_t *total) TUTTI_MUST_CHECK;

#endif
