#include "base/topology.h"

#include <hwloc.h>
#include <unistd.h>

#include "base/memory.h"

struct tutti_topology {
    hwloc_topology_t all;   /* what the machine has */
    hwloc_bitmap_t allowed; /* hardware threads this process may run on */
    int cores;
};

static hwloc_obj_t allowed_core(const tutti_topology *t, int index)
{
    for (hwloc_obj_t core = NULL;
         (core = hwloc_get_next_obj_by_type(t->all, HWLOC_OBJ_CORE, core));)
        if (hwloc_bitmap_intersects(core->cpuset, t->allowed) && index-- == 0) return core;
    return NULL;
}

tutti_status tutti_topology_open(tutti_topology **out)
{
    tutti_topology *t = NULL;
    TUTTI_TRY(tutti_alloc(&t, 1, sizeof *t));
    if (hwloc_topology_init(&t->all) || hwloc_topology_load(t->all)) {
        tutti_topology_close(&t);
        return tutti_fail(TUTTI_UNSUPPORTED, "hwloc cannot read the topology of this machine");
    }
    t->allowed = hwloc_bitmap_alloc();
    if (!t->allowed) {
        tutti_topology_close(&t);
        return tutti_fail(TUTTI_MEMORY, "cannot allocate a set of processors");
    }
    if (hwloc_get_cpubind(t->all, t->allowed, HWLOC_CPUBIND_PROCESS))
        hwloc_bitmap_copy(t->allowed, hwloc_topology_get_allowed_cpuset(t->all));
    while (allowed_core(t, t->cores)) t->cores++;
    if (!t->cores) t->cores = tutti_topology_threads(t); /* no notion of cores: threads, then */
    *out = t;
    return TUTTI_OK;
}

void tutti_topology_close(tutti_topology **topology)
{
    tutti_topology *t = *topology;
    if (!t) return;
    if (t->allowed) hwloc_bitmap_free(t->allowed);
    if (t->all) hwloc_topology_destroy(t->all);
    tutti_free(t);
    *topology = NULL;
}

const char *tutti_topology_cpu(const tutti_topology *t)
{
    hwloc_obj_t package = hwloc_get_obj_by_type(t->all, HWLOC_OBJ_PACKAGE, 0);
    const char *model = package ? hwloc_obj_get_info_by_name(package, "CPUModel") : NULL;
    return model ? model : "unknown";
}

int tutti_topology_cores(const tutti_topology *t)
{
    return t->cores;
}

int tutti_topology_threads(const tutti_topology *t)
{
    return hwloc_bitmap_weight(t->allowed);
}

static int count_of(const tutti_topology *t, hwloc_obj_type_t type)
{
    const int count = hwloc_get_nbobjs_by_type(t->all, type);
    return count > 0 ? count : 0;
}

int tutti_topology_machine_cores(const tutti_topology *t)
{
    return count_of(t, HWLOC_OBJ_CORE);
}

int tutti_topology_machine_threads(const tutti_topology *t)
{
    return count_of(t, HWLOC_OBJ_PU);
}

int tutti_topology_numa_nodes(const tutti_topology *t)
{
    return count_of(t, HWLOC_OBJ_NUMANODE);
}

/* The first cache of that level that an allowed core uses. */
static hwloc_obj_t first_cache(const tutti_topology *t, int level)
{
    static const hwloc_obj_type_t type[] = {HWLOC_OBJ_L1CACHE, HWLOC_OBJ_L2CACHE,
                                            HWLOC_OBJ_L3CACHE};
    hwloc_obj_t cache = NULL;
    if (level < 1 || level > 3) return NULL;
    do cache = hwloc_get_next_obj_by_type(t->all, type[level - 1], cache);
    while (cache && !hwloc_bitmap_intersects(cache->cpuset, t->allowed));
    return cache;
}

size_t tutti_topology_cache(const tutti_topology *t, int level)
{
    const hwloc_obj_t cache = first_cache(t, level);
    return cache ? (size_t)cache->attr->cache.size : 0;
}

int tutti_topology_cache_sharers(const tutti_topology *t, int level)
{
    const hwloc_obj_t cache = first_cache(t, level);
    int sharers = 0;
    for (int i = 0; cache && i < t->cores; i++) {
        const hwloc_obj_t core = allowed_core(t, i);
        sharers += core && hwloc_bitmap_intersects(core->cpuset, cache->cpuset);
    }
    return sharers;
}

int tutti_topology_cache_cores(const tutti_topology *t, int level)
{
    const hwloc_obj_t cache = first_cache(t, level);
    return cache ? hwloc_get_nbobjs_inside_cpuset_by_type(t->all, cache->cpuset, HWLOC_OBJ_CORE)
                 : 0;
}

/* Not the sum of hwloc's NUMA nodes: memory plugged in later is missing from their files. */
uint64_t tutti_topology_memory(const tutti_topology *t)
{
    const long pages = sysconf(_SC_PHYS_PAGES), bytes = sysconf(_SC_PAGESIZE);
    if (pages > 0 && bytes > 0) return (uint64_t)pages * (uint64_t)bytes;
    return hwloc_get_root_obj(t->all)->total_memory;
}

bool tutti_topology_pin_caller(const tutti_topology *t, int core)
{
    const hwloc_obj_t obj = allowed_core(t, core);
    if (!obj) return false;
    hwloc_bitmap_t where = hwloc_bitmap_alloc();
    if (!where) return false;
    hwloc_bitmap_and(where, obj->cpuset, t->allowed);
    hwloc_bitmap_singlify(where);
    const bool bound = !hwloc_set_cpubind(t->all, where, HWLOC_CPUBIND_THREAD);
    hwloc_bitmap_free(where);
    return bound;
}

void tutti_topology_unpin_caller(const tutti_topology *t)
{
    (void)hwloc_set_cpubind(t->all, t->allowed, HWLOC_CPUBIND_THREAD);
}

int tutti_topology_core_of_caller(const tutti_topology *t)
{
    int core = -1;
    hwloc_bitmap_t where = hwloc_bitmap_alloc();
    if (where && !hwloc_get_cpubind(t->all, where, HWLOC_CPUBIND_THREAD)) {
        for (hwloc_obj_t obj = NULL;
             (obj = hwloc_get_next_obj_by_type(t->all, HWLOC_OBJ_CORE, obj));)
            if (hwloc_bitmap_isincluded(where, obj->cpuset)) core = (int)obj->logical_index;
    }
    hwloc_bitmap_free(where);
    return core;
}
