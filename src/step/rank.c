#include "step/rank.h"

#include "base/memory.h"

static tutti_status open_machine(tutti_rank *r)
{
    TUTTI_TRY(tutti_kernels_choose(&r->exec.row));
    TUTTI_TRY(tutti_topology_open(&r->topology));
    r->caches = tutti_caches_of_thread(r->topology, tutti_comm_local_size(r->comm));
    return tutti_team_create(&r->exec.team, tutti_comm_compute_threads(r->comm));
}

tutti_status tutti_rank_open(tutti_rank *out, const tutti_comm_options *options)
{
    tutti_rank r = {0};
    tutti_comm_options o = *options;
    if (!o.compute_threads) TUTTI_TRY(tutti_team_asked(&o.compute_threads));
    TUTTI_TRY(tutti_comm_open(&r.comm, &o));
    r.rank = tutti_comm_rank(r.comm);
    r.size = tutti_comm_size(r.comm);
    const tutti_status s = tutti_comm_agree(r.comm, open_machine(&r));
    if (s != TUTTI_OK) tutti_rank_close(&r);
    *out = r;
    return s;
}

tutti_status tutti_rank_write_trace(const tutti_rank *rank, const tutti_trace *trace,
                                    const char *path, double begun)
{
    double *offsets = NULL;
    tutti_status s = tutti_alloc(&offsets, (size_t)rank->size, sizeof *offsets);
    if (s == TUTTI_OK) s = tutti_comm_clock_offsets(rank->comm, offsets);
    if (s == TUTTI_OK) s = tutti_comm_broadcast(rank->comm, 0, &begun, sizeof begun);
    if (s == TUTTI_OK) s = tutti_trace_write(trace, path, begun - offsets[rank->rank]);
    s = tutti_comm_agree(rank->comm, s);
    if (s == TUTTI_OK && rank->rank == 0) s = tutti_trace_join(path, rank->size);
    tutti_free(offsets);
    return tutti_comm_agree(rank->comm, s);
}

void tutti_rank_close(tutti_rank *rank)
{
    tutti_team_destroy(&rank->exec.team);
    tutti_topology_close(&rank->topology);
    tutti_comm_close(&rank->comm);
    *rank = (tutti_rank){0};
}
