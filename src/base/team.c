/* The team is OpenMP's: its threads stay alive between regions and wake fast. What is added is
 * the choice of how many and where: one per physical core of the process's cpuset, pinned. */
#include "base/team.h"

#include <omp.h>
#include <stdlib.h>
#include <string.h>

#include "base/cpu.h"
#include "base/memory.h"
#include "base/topology.h"
#include "base/tree.h"

struct tutti_team {
    int size;
    int first_core, cores; /* of the allowed ones: where the threads go */
    bool pinned;
    tutti_topology *topology;
};

/* How launchers tell a rank its number, and how many there are, on its host. */
static const struct {
    const char *rank, *size;
} launchers[] = {
    {"OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE"},
    {"MPI_LOCALRANKID", "MPI_LOCALNRANKS"},
    {"SLURM_LOCALID", "SLURM_NTASKS_PER_NODE"},
};

/* The cores for this process: those allowed, or a share of them when nobody was bound. */
static void choose_cores(tutti_team *team)
{
    const int cores = tutti_topology_cores(team->topology);
    team->cores = cores;
    if (cores < tutti_topology_machine_cores(team->topology)) return;
    for (size_t i = 0; i < sizeof launchers / sizeof *launchers; i++) {
        const char *rank = getenv(launchers[i].rank), *size = getenv(launchers[i].size);
        const int r = rank ? atoi(rank) : 0, n = size ? atoi(size) : 1;
        if (n <= 1 || r < 0 || r >= n) continue;
        team->first_core = tutti_share_begin(cores, n, r);
        team->cores = tutti_share_begin(cores, n, r + 1) - team->first_core;
        return;
    }
}

tutti_status tutti_team_asked(int *threads)
{
    enum { MOST = 65536 };
    const char *text = getenv("OMP_NUM_THREADS");
    char *end = NULL;
    *threads = 0;
    if (!text || !*text) return TUTTI_OK;
    const long count = strtol(text, &end, 10);
    if (end == text || end[strspn(end, " ,0123456789")] || count < 1 || count > MOST)
        return tutti_fail(TUTTI_ARGUMENT,
                          "OMP_NUM_THREADS=%s is not a number of threads, 1 to %d: mend it, unset "
                          "it or give --threads",
                          text, MOST);
    *threads = (int)count;
    return TUTTI_OK;
}

static tutti_status choose_size(tutti_team *team, int threads)
{
    if (!threads) TUTTI_TRY(tutti_team_asked(&threads));
    team->size = threads > 0 ? threads : team->cores > 0 ? team->cores : 1;
    return TUTTI_OK;
}

static bool environment_binds(void)
{
    return getenv("OMP_PROC_BIND") || getenv("OMP_PLACES") || getenv("GOMP_CPU_AFFINITY") ||
           getenv("KMP_AFFINITY");
}

static void pin_threads(tutti_team *team)
{
    if (environment_binds() || team->size > team->cores) return;
    team->pinned = true;
#pragma omp parallel num_threads(team->size)
    tutti_topology_pin_caller(team->topology, team->first_core + omp_get_thread_num());
}

tutti_status tutti_team_create(tutti_team **out, int threads)
{
    tutti_team *team = NULL;
    TUTTI_TRY(tutti_alloc(&team, 1, sizeof *team));
    tutti_status s = tutti_topology_open(&team->topology);
    if (s == TUTTI_OK) {
        choose_cores(team);
        s = choose_size(team, threads);
    }
    if (s) {
        tutti_team_destroy(&team);
        return s;
    }
    omp_set_dynamic(0);
    pin_threads(team);
    *out = team;
    return TUTTI_OK;
}

/* OpenMP's threads and the caller outlive the team: whoever comes next finds them unbound. */
void tutti_team_destroy(tutti_team **handle)
{
    tutti_team *team = *handle;
    if (!team) return;
    if (team->pinned) {
#pragma omp parallel num_threads(team->size)
        tutti_topology_unpin_caller(team->topology);
    }
    tutti_topology_close(&team->topology);
    tutti_free(team);
    *handle = NULL;
}

int tutti_team_size(const tutti_team *team)
{
    return team ? team->size : 1;
}

bool tutti_team_is_pinned(const tutti_team *team)
{
    return team && team->pinned;
}

/* One fence for all that a share stored around the caches. */
static void run_share(tutti_team_job *job, void *arg, int thread, int threads)
{
    job(arg, thread, threads);
    tutti_fence_streams();
}

void tutti_team_run(tutti_team *team, tutti_team_job *job, void *arg)
{
    const int size = tutti_team_size(team);
    if (size == 1) {
        run_share(job, arg, 0, 1);
        return;
    }
#pragma omp parallel num_threads(size)
    run_share(job, arg, omp_get_thread_num(), size);
}
