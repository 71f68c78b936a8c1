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

static void answer(void *arg, int thread, int size)
{
    const roll_call *call = arg;
    (void)size;
    call->cores[thread] = tutti_topology_core_of_caller(call->topology);
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
    if (s == TUTTI_OK) s = tutti_net_memory(net, share, 0, facts->team, -1, &memory);
    if (s == TUTTI_OK) facts->net_bytes = memory.peak;
    if (s == TUTTI_OK) facts->net_flops = (double)tutti_net_total(net).train_flops * share;
    tutti_net_destroy(&net);
    return s;
}

/* What this rank finds out alone. */
static tutti_status look(tutti_machine *machine, const tutti_machine_options *options,
                         const tutti_rank *me, int **cores)
{
    tutti_facts_collect(&machine->facts, me);
    TUTTI_TRY(tutti_alloc(cores, (size_t)tutti_team_size(me->exec.team), sizeof **cores));
    tutti_team_run(me->exec.team, answer, &(roll_call){me->topology, *cores});
    TUTTI_TRY(weigh_net(machine, options, me->size));
    if (options->seconds <= 0) return TUTTI_OK;
    return tutti_speeds_measure(&machine->facts.speeds, me, machine->facts.memory_free,
                                options->seconds);
}

/* Collective. */
static tutti_status examine(tutti_machine *machine, const tutti_machine_options *options,
                            const tutti_rank *me)
{
    int *cores = NULL;
    tutti_status s = tutti_comm_agree(me->comm, look(machine, options, me, &cores));
    if (s == TUTTI_OK) s = tutti_facts_gather(&machine->facts, me->comm, cores, &machine->seats);
    if (s == TUTTI_OK) machine->finding_count = tutti_findings(machine->findings, &machine->facts);
    tutti_free(cores);
    return s;
}

tutti_status tutti_machine_create(tutti_machine **out, const tutti_machine_options *options)
{
    tutti_machine *machine = NULL;
    tutti_rank me;
    tutti_comm_options o = tutti_comm_defaults();
    o.core = TUTTI_CORE_NONE;
    o.compute_threads = options->threads;
    TUTTI_TRY(tutti_rank_open(&me, &o));
    tutti_status s = tutti_comm_agree(me.comm, tutti_alloc(&machine, 1, sizeof *machine));
    if (s == TUTTI_OK) s = tutti_comm_survive(me.comm, examine(machine, options, &me));
    if (s == TUTTI_OK) *out = machine;
    else tutti_machine_destroy(&machine);
    tutti_rank_close(&me);
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
