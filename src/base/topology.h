/* The machine as hwloc sees it: cores this process may use, caches, memory. */
#ifndef TUTTI_BASE_TOPOLOGY_H
#define TUTTI_BASE_TOPOLOGY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/status.h"

typedef struct tutti_topology tutti_topology;

tutti_status tutti_topology_open(tutti_topology **out) TUTTI_MUST_CHECK;
void tutti_topology_close(tutti_topology **topology);

/* The name of the processor; "unknown" where the system does not say. */
const char *tutti_topology_cpu(const tutti_topology *topology);

/* Physical cores, hardware threads, NUMA nodes: those of the cpuset of this process, and all. */
int tutti_topology_cores(const tutti_topology *topology);
int tutti_topology_threads(const tutti_topology *topology);
int tutti_topology_machine_cores(const tutti_topology *topology);
int tutti_topology_machine_threads(const tutti_topology *topology);
int tutti_topology_numa_nodes(const tutti_topology *topology);

/* Bytes of the data cache of a level (1 to 3), 0 if there is none; the cores that share one: the
 * allowed ones, and all. */
size_t tutti_topology_cache(const tutti_topology *topology, int level);
int tutti_topology_cache_sharers(const tutti_topology *topology, int level);
int tutti_topology_cache_cores(const tutti_topology *topology, int level);

uint64_t tutti_topology_memory(const tutti_topology *topology); /* bytes of RAM */

/* Binds the calling thread to the first hardware thread of allowed core 'core' (0-based).
 * Returns false where the system refuses; the thread then runs where it did. */
bool tutti_topology_pin_caller(const tutti_topology *topology, int core);

/* Lets the calling thread run again wherever the process could when the topology was opened. */
void tutti_topology_unpin_caller(const tutti_topology *topology);

/* The machine's number of the core the calling thread is bound to, -1 if it may run on several. */
int tutti_topology_core_of_caller(const tutti_topology *topology);

#endif
