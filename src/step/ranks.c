#include "step/ranks.h"

#include "base/memory.h"

tutti_ranks_options tutti_ranks_defaults(void)
{
    const tutti_comm_options o = tutti_comm_defaults();
    return (tutti_ranks_options){.comm_core = o.core,
                                 .stall_warn = o.stall_warn,
                                 .stall_abort = o.stall_abort,
                                 .log = {.rank = -1}};
}

static tutti_comm_options comm_options(const tutti_ranks_options *options)
{
    tutti_comm_options o = tutti_comm_defaults();
    o.log = options->log;
    o.core = options->comm_core;
    o.compute_threads = options->threads;
    o.no_thread = options->no_thread;
    o.stall_warn = options->stall_warn;
    o.stall_abort = options->stall_abort;
    o.mpi_comm = options->mpi_comm;
    o.mpi_comm_bytes = options->mpi_comm_bytes;
    return o;
}

tutti_status tutti_ranks_open(tutti_ranks **out, const tutti_ranks_options *options)
{
    tutti_ranks *ranks = NULL;
    *out = NULL;
    TUTTI_TRY(tutti_alloc(&ranks, 1, sizeof *ranks));
    const tutti_comm_options o = comm_options(options);
    const tutti_status s = tutti_rank_open(&ranks->me, &o);
    if (s == TUTTI_OK) *out = ranks;
    else tutti_free(ranks);
    return s;
}

void tutti_ranks_close(tutti_ranks **ranks)
{
    if (!*ranks) return;
    tutti_rank_close(&(*ranks)->me);
    tutti_free(*ranks);
    *ranks = NULL;
}

int tutti_ranks_rank(const tutti_ranks *ranks)
{
    return ranks->me.rank;
}

int tutti_ranks_size(const tutti_ranks *ranks)
{
    return ranks->me.size;
}

int tutti_ranks_threads(const tutti_ranks *ranks)
{
    return tutti_team_size(ranks->me.exec.team);
}

tutti_status tutti_ranks_agree(tutti_ranks *ranks, tutti_status mine)
{
    return tutti_comm_agree(ranks->me.comm, mine);
}
