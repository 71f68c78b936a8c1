#include "machine/doctor.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <tutti/net.h>
#include "base/memory.h"

tutti_machine_options tutti_machine_defaults(void)
{
    return (tutti_machine_options){.threads = 0, .seconds = 4};
}

typedef struct roll_call {
    const tutti_topology *topology;
    int *cores;
} roll_call;

static void answer(void *arg, int member, int size)
{
    const roll_call *call = arg;
    (void)size;
    call->cores[member] = tutti_topology_core_of_caller(call->topology);
}

static size_t largest_cache(const tutti_facts *facts)
{
    size_t largest = 0;
    for (int i = 0; i < 3; i++)
        if (facts->cache[i] > largest) largest = facts->cache[i];
    return largest;
}

static tutti_status weigh_net(tutti_machine *machine, const tutti_machine_options *options,
                              int ranks)
{
    tutti_facts *facts = &machine->facts;
    tutti_net *net = NULL;
    tutti_memory memory;
    if (!options->net) return TUTTI_OK;
    TUTTI_TRY(tutti_net_load(&net, options->net));
    snprintf(machine->net, sizeof machine->net, "%s", options->net);
    facts->net = machine->net;
    tutti_status s = tutti_net_batch_size(net, &facts->batch);
    if (options->batch_size > 0) facts->batch = options->batch_size;
    const int share = tutti_ceil_div(facts->batch, ranks);
    if (s == TUTTI_OK) s = tutti_net_memory(net, share, facts->team, &memory);
    if (s == TUTTI_OK) facts->net_bytes = memory.peak;
    tutti_net_destroy(&net);
    return s;
}

/* What this rank finds out alone. */
static tutti_status look(tutti_machine *machine, const tutti_machine_options *options,
                         const tutti_topology *topology, tutti_team *team, int **cores, int ranks)
{
    const tutti_kernels *row = NULL;
    TUTTI_TRY(tutti_kernels_choose(&row));
    TUTTI_TRY(tutti_facts_collect(&machine->facts, topology, row, team));
    TUTTI_TRY(tutti_alloc(cores, (size_t)tutti_team_size(team), sizeof **cores));
    tutti_team_run(team, answer, &(roll_call){topology, *cores});
    return weigh_net(machine, options, ranks);
}

static tutti_status measure(tutti_facts *facts, tutti_team *team, double seconds)
{
    if (seconds <= 0) return TUTTI_OK;
    return tutti_rates_measure(&facts->rates, tutti_kernels_named(facts->isa), team,
                               largest_cache(facts), facts->memory_free / (uint64_t)facts->ranks,
                               seconds);
}

/* Collective. */
static tutti_status examine(tutti_machine *machine, const tutti_machine_options *options,
                            tutti_comm *comm)
{
    tutti_topology *topology = NULL; /* opened before the team pins anybody */
    tutti_team *team = NULL;
    int *cores = NULL;
    tutti_facts *facts = &machine->facts;
    tutti_status s = tutti_topology_open(&topology);
    if (s == TUTTI_OK) s = tutti_team_create(&team, options->threads);
    if (s == TUTTI_OK) s = look(machine, options, topology, team, &cores, tutti_comm_size(comm));
    if ((s = tutti_comm_agree(comm, s))) goto out;
    facts->ranks = tutti_comm_local_size(comm);
    if ((s = tutti_comm_agree(comm, measure(facts, team, options->seconds)))) goto out;
    if ((s = tutti_facts_gather(facts, comm, cores, &machine->seats))) goto out;
    machine->finding_count = tutti_findings(machine->findings, facts);
out:
    tutti_free(cores);
    tutti_team_destroy(&team);
    tutti_topology_close(&topology);
    return s;
}

tutti_status tutti_machine_create(tutti_machine **out, const tutti_machine_options *options)
{
    tutti_machine *machine = NULL;
    tutti_comm *comm = NULL;
    tutti_comm_options ranks = tutti_comm_defaults();
    ranks.core = TUTTI_CORE_NONE;
    ranks.compute_threads = options->threads ? options->threads : tutti_team_asked();
    TUTTI_TRY(tutti_comm_open(&comm, &ranks));
    tutti_status s = tutti_comm_agree(comm, tutti_alloc(&machine, 1, sizeof *machine));
    if (s == TUTTI_OK) s = examine(machine, options, comm);
    if (s == TUTTI_OK) *out = machine;
    else tutti_machine_destroy(&machine);
    tutti_comm_close(&comm);
    return s;
}

void tutti_machine_destroy(tutti_machine **machine)
{
    if (!*machine) return;
    tutti_free((*machine)->seats);
    tutti_free(*machine);
    *machine = NULL;
}

static const tutti_finding *finding_at(const tutti_machine *machine, int index)
{
    return index >= 0 && index < machine->finding_count ? &machine->findings[index] : NULL;
}

const char *tutti_machine_finding(const tutti_machine *machine, int index)
{
    const tutti_finding *f = finding_at(machine, index);
    return f ? f->sentence : NULL;
}

const char *tutti_machine_remedy(const tutti_machine *machine, int index)
{
    const tutti_finding *f = finding_at(machine, index);
    return f ? f->remedy : NULL;
}
