#include "kernel/caches.h"

/* Processes that are bound to cores of their own share the caches of these cores. */
static size_t share_of(const tutti_topology *topology, int level, int ranks)
{
    const int all = tutti_topology_cache_cores(topology, level);
    const int own = tutti_topology_cache_sharers(topology, level) * ranks;
    const int sharers = own < all ? own : all;
    return tutti_topology_cache(topology, level) / (size_t)(sharers > 0 ? sharers : 1);
}

tutti_caches tutti_caches_of_thread(const tutti_topology *topology, int ranks)
{
    return (tutti_caches){share_of(topology, 1, ranks), share_of(topology, 2, ranks),
                          share_of(topology, 3, ranks)};
}
