#include "nn/pack.h"

#include <stdint.h>
#include <string.h>

#include "base/memory.h"

static void sort_by_size(const tutti_lease *leases, int *order, int count)
{
    for (int i = 0; i < count; i++) {
        int at = i;
        for (; at && leases[order[at - 1]].bytes < leases[i].bytes; at--) order[at] = order[at - 1];
        order[at] = i;
    }
}

static int meet(const tutti_lease *a, const tutti_lease *b)
{
    return a->begin <= b->end && b->begin <= a->end;
}

/* The start of the smallest gap for 'lease' among the 'placed' ones, which are in the order of
 * their offsets; after all of them if there is none. */
static size_t best_gap(const tutti_lease *lease, const tutti_lease *leases, const int *placed,
                       int count)
{
    size_t best = SIZE_MAX, best_slack = SIZE_MAX, at = 0;
    for (int i = 0; i < count; i++) {
        const tutti_lease *other = &leases[placed[i]];
        if (!meet(lease, other)) continue;
        if (other->offset >= at + lease->bytes && other->offset - at - lease->bytes < best_slack) {
            best = at;
            best_slack = other->offset - at - lease->bytes;
        }
        if (other->offset + other->bytes > at) at = other->offset + other->bytes;
    }
    return best == SIZE_MAX ? at : best;
}

static void insert(const tutti_lease *leases, int *placed, int count, int lease)
{
    int at = count;
    for (; at && leases[placed[at - 1]].offset > leases[lease].offset; at--)
        placed[at] = placed[at - 1];
    placed[at] = lease;
}

tutti_status tutti_pack(tutti_lease *leases, int count, size_t *total)
{
    int *order = NULL;
    TUTTI_TRY(tutti_alloc(&order, 2 * (size_t)count, sizeof *order));
    int *placed = order + count;
    for (int i = 0; i < count; i++)
        leases[i].bytes = tutti_round_up(leases[i].bytes, TUTTI_CACHE_LINE);
    sort_by_size(leases, order, count);
    *total = 0;
    for (int i = 0; i < count; i++) {
        tutti_lease *lease = &leases[order[i]];
        lease->offset = best_gap(lease, leases, placed, i);
        insert(leases, placed, i, order[i]);
        if (lease->offset + lease->bytes > *total) *total = lease->offset + lease->bytes;
    }
    tutti_free(order);
    return TUTTI_OK;
}
