#include "train/machine.h"

#include "base/memory.h"

tutti_machine_options tutti_machine_defaults(void)
{
    return (tutti_machine_options){.threads = 0, .seconds = 4};
}

typedef struct roll_call {
    const tutti_topology *topology;
    tutti_seat *seats;
} roll_call;

static void answer(void *arg, int member, int size)
{
    const roll_call *call = arg;
    (void)size;
    call->seats[member] =
        (tutti_seat){.member = member, .core = tutti_topology_core_of_caller(call->topology)};
}

static tutti_status take_seats(tutti_machine *machine, tutti_team *team,
                               const tutti_topology *topology)
{
    const int size = tutti_team_size(team);
    TUTTI_TRY(tutti_alloc(&machine->seats, (size_t)size, sizeof *machine->seats));
    tutti_team_run(team, answer, &(roll_call){topology, machine->seats});
    machine->facts.seats = machine->seats;
    machine->facts.seat_count = size;
    return TUTTI_OK;
}

static size_t largest_cache(const tutti_facts *facts)
{
    size_t largest = 0;
    for (int i = 0; i < 3; i++)
        if (facts->cache[i] > largest) largest = facts->cache[i];
    return largest;
}

static tutti_status examine(tutti_machine *machine, const tutti_machine_options *options,
                            const tutti_topology *topology, const tutti_kernels *row,
                            tutti_team *team)
{
    tutti_facts *facts = &machine->facts;
    TUTTI_TRY(tutti_facts_collect(facts, topology, row, team));
    TUTTI_TRY(take_seats(machine, team, topology));
    if (options->seconds > 0)
        TUTTI_TRY(tutti_rates_measure(&facts->rates, row, team, largest_cache(facts),
                                      facts->memory_free, options->seconds));
    machine->finding_count = tutti_findings(machine->findings, facts);
    return TUTTI_OK;
}

tutti_status tutti_machine_create(tutti_machine **out, const tutti_machine_options *options)
{
    tutti_machine *machine = NULL;
    tutti_topology *topology = NULL; /* opened before the team pins anybody */
    tutti_team *team = NULL;
    const tutti_kernels *row = NULL;
    tutti_status s = TUTTI_OK;
    if ((s = tutti_kernels_choose(&row))) goto out;
    if ((s = tutti_alloc(&machine, 1, sizeof *machine))) goto out;
    if ((s = tutti_topology_open(&topology))) goto out;
    if ((s = tutti_team_create(&team, options->threads))) goto out;
    if ((s = examine(machine, options, topology, row, team))) goto out;
    *out = machine;
    machine = NULL;
out:
    tutti_team_destroy(&team);
    tutti_topology_close(&topology);
    tutti_machine_destroy(&machine);
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
