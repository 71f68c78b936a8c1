#include "machine/doctor.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "comm/launch.h"

/* The first line of a small file of the system; false, and "", if it cannot be read. */
static bool first_line(const char *path, char *out, size_t size)
{
    out[0] = 0;
    FILE *file = fopen(path, "r");
    if (!file) return false;
    const bool read = fgets(out, (int)size, file) != NULL;
    fclose(file);
    out[strcspn(out, "\n")] = 0;
    return read;
}

/* "always [madvise] never": the one in brackets. */
static void read_huge_pages(tutti_facts *facts)
{
    char line[64];
    if (!first_line("/sys/kernel/mm/transparent_hugepage/enabled", line, sizeof line)) return;
    const char *open = strchr(line, '[');
    const char *close = open ? strchr(open, ']') : NULL;
    if (close)
        snprintf(facts->huge_pages, sizeof facts->huge_pages, "%.*s", (int)(close - open - 1),
                 open + 1);
}

static uint64_t memory_free(void)
{
    char line[128];
    unsigned long long kib = 0;
    FILE *file = fopen("/proc/meminfo", "r");
    if (!file) return 0;
    while (fgets(line, sizeof line, file))
        if (sscanf(line, "MemAvailable: %llu", &kib) == 1) break;
    fclose(file);
    return (uint64_t)kib << 10;
}

/* Where the control group of this process lies: "" in the root. Both versions are tried; inside a
 * container its own group is usually mounted as the root. */
static void read_limits(tutti_facts *facts)
{
    char line[128];
    double quota, period;
    if (first_line("/sys/fs/cgroup/cpu.max", line, sizeof line) &&
        sscanf(line, "%lf %lf", &quota, &period) == 2 && period > 0)
        facts->cpu_limit = quota / period;
    else if (first_line("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", line, sizeof line) &&
             (quota = atof(line)) > 0 &&
             first_line("/sys/fs/cgroup/cpu/cpu.cfs_period_us", line, sizeof line) &&
             (period = atof(line)) > 0)
        facts->cpu_limit = quota / period;

    if (!first_line("/sys/fs/cgroup/memory.max", line, sizeof line) &&
        !first_line("/sys/fs/cgroup/memory/memory.limit_in_bytes", line, sizeof line))
        return;
    const uint64_t limit = strtoull(line, NULL, 10); /* "max" is 0 */
    if (limit < facts->memory) facts->memory_limit = limit;
}

static const char *best_row(void)
{
    const char *best = "";
    for (const tutti_kernels *const *row = tutti_kernel_table; *row; row++)
        if (tutti_kernels_run_here(*row)) best = (*row)->name;
    return best;
}

void tutti_facts_collect(tutti_facts *facts, const tutti_rank *me)
{
    const tutti_topology *topology = me->topology;
    const tutti_team *team = me->exec.team;
    *facts = (tutti_facts){
        .cores = tutti_topology_cores(topology),
        .threads = tutti_topology_threads(topology),
        .machine_cores = tutti_topology_machine_cores(topology),
        .machine_threads = tutti_topology_machine_threads(topology),
        .numa_nodes = tutti_topology_numa_nodes(topology),
        .memory = tutti_topology_memory(topology),
        .memory_free = memory_free(),
        .isa = me->exec.row->name,
        .best_isa = best_row(),
        .team = tutti_team_size(team),
        .pinned = tutti_team_is_pinned(team),
        .ranks = 1,
        .all_ranks = 1,
        .host_threads = tutti_team_size(team),
        .grace = tutti_launch_grace(getenv),
    };
    snprintf(facts->cpu, sizeof facts->cpu, "%s", tutti_topology_cpu(topology));
    for (int level = 1; level <= 3; level++) {
        facts->cache[level - 1] = tutti_topology_cache(topology, level);
        facts->sharers[level - 1] = tutti_topology_cache_sharers(topology, level);
    }
    if (strcmp(tutti_comm_library(), "none"))
        snprintf(facts->mpi, sizeof facts->mpi, "%s", tutti_comm_library());
    read_huge_pages(facts);
    read_limits(facts);
    (void)first_line("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", facts->governor,
                     sizeof facts->governor);
}
