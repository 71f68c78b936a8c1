/* A team of threads that compute together. Threads split outputs, never a sum. */
#ifndef TUTTI_BASE_TEAM_H
#define TUTTI_BASE_TEAM_H

#include <stdbool.h>
#include "base/status.h"

typedef struct tutti_team tutti_team;

/* A team of 'threads' threads; 0 means OMP_NUM_THREADS where it is set, else one per physical core
 * this process may use. Where a launcher started several ranks on this host and bound none of
 * them, each may use its share of the cores. The threads are pinned, one to a core, unless there
 * are fewer cores than threads or the environment already binds (OMP_PROC_BIND, OMP_PLACES,
 * GOMP_CPU_AFFINITY, KMP_AFFINITY). Only the thread that creates a team may run it. */
tutti_status tutti_team_create(tutti_team **out, int threads) TUTTI_MUST_CHECK;
void tutti_team_destroy(tutti_team **team);

/* What OMP_NUM_THREADS asks for ("4", or "4,2": the outermost level); 0 where it is not set.
 * TUTTI_ARGUMENT where it is no number of threads. */
tutti_status tutti_team_asked(int *threads) TUTTI_MUST_CHECK;

int tutti_team_size(const tutti_team *team); /* NULL is a team of one: the caller */
bool tutti_team_is_pinned(const tutti_team *team);

/* Calls job(arg, thread, threads) once for every thread, in parallel; returns when all are done.
 * The caller is thread 0. By then everything the threads stored, also past the caches, is
 * visible. */
typedef void tutti_team_job(void *arg, int thread, int threads);
void tutti_team_run(tutti_team *team, tutti_team_job *job, void *arg);

#endif
