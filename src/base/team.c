/* The team is OpenMP's: its threads stay alive between regions and wake fast. What is added is
 * the choice of how many and where: one per physical core of the process's cpuset, pinned. */
#include "base/team.h"

#include <omp.h>
#include <stdlib.h>

#include "base/memory.h"
#include "base/topology.h"

struct tutti_team {
    int size;
};

static int default_size(const tutti_topology *topology)
{
    return getenv("OMP_NUM_THREADS") ? omp_get_max_threads() : tutti_topology_cores(topology);
}

static bool environment_binds(void)
{
    return getenv("OMP_PROC_BIND") || getenv("OMP_PLACES") || getenv("GOMP_CPU_AFFINITY") ||
           getenv("KMP_AFFINITY");
}

static void pin_members(int size, const tutti_topology *topology)
{
    if (environment_binds() || size > tutti_topology_cores(topology)) return;
#pragma omp parallel num_threads(size)
    tutti_topology_pin_caller(topology, omp_get_thread_num());
}

tutti_status tutti_team_create(tutti_team **out, int threads)
{
    tutti_topology *topology = NULL;
    TUTTI_TRY(tutti_topology_open(&topology));
    tutti_team *team = NULL;
    const tutti_status s = tutti_alloc(&team, 1, sizeof *team);
    if (s == TUTTI_OK) {
        team->size = threads > 0 ? threads : default_size(topology);
        omp_set_dynamic(0);
        pin_members(team->size, topology);
        *out = team;
    }
    tutti_topology_close(&topology);
    return s;
}

void tutti_team_destroy(tutti_team **team)
{
    tutti_free(*team);
    *team = NULL;
}

int tutti_team_size(const tutti_team *team)
{
    return team ? team->size : 1;
}

void tutti_team_run(tutti_team *team, tutti_team_job *job, void *arg)
{
    const int size = tutti_team_size(team);
    if (size == 1) {
        job(arg, 0, 1);
        return;
    }
#pragma omp parallel num_threads(size)
    job(arg, omp_get_thread_num(), size);
}
