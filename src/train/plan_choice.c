/* "auto" searches for the plan with the least predicted step. The prediction stands on the platform
 * that tutti calibrate measured for as many ranks and threads on a host as there are now; where
 * there is none, on this machine's peak and the network of a described platform, and the header
 * says so. Rank 0 decides for all: files and measurements may differ from host to host, a plan
 * may not. Weights do not depend on it. */
#include "train/plan_choice.h"

#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "base/memory.h"
#include "machine/machine_name.h"

static const char described_network[] = "ethernet-100g";

/* ---- the platform ---- */

/* What was measured for this machine; *out stays NULL where there is nothing that can be used. */
static tutti_status load_measured(const tutti_plan_question *q, tutti_platform **out)
{
    char name[TUTTI_HERE_NAME], machine[TUTTI_MACHINE_NAME];
    tutti_platform *p = NULL;
    tutti_platform_here(name, tutti_comm_local_size(q->me->comm),
                        tutti_team_size(q->me->exec.team));
    if (!tutti_platform_exists(name)) return TUTTI_OK;
    const tutti_status s = tutti_platform_load(&p, name);
    if (s == TUTTI_MEMORY) return s;
    if (s != TUTTI_OK) {
        tutti_warn(q->log, "a measurement is left aside: %s", tutti_message());
        return TUTTI_OK;
    }
    tutti_machine_name(machine, tutti_topology_cpu(q->me->topology), q->me->exec.row);
    if (!strcmp(p->machine, machine)) {
        *out = p;
        return TUTTI_OK;
    }
    tutti_warn(q->log, "platform %s was measured on '%s', this is '%s': run 'tutti calibrate'",
               name, p->machine, machine);
    tutti_platform_destroy(&p);
    return TUTTI_OK;
}

static void take_network(tutti_platform *to, const tutti_platform *from)
{
    to->link = from->link;
    to->latency = from->latency;
    to->overlap = from->overlap;
}

/* Beside its own floats an update reads everybody's gradient. */
static void assume_common_memory(const tutti_rank *me, tutti_platform *p)
{
    if (!tutti_common_is_likely(me->comm)) return;
    p->ranks = me->size;
    p->common = tutti_platform_update(p, 1, TUTTI_MEASURED_ACCESSES) *
                (me->size + TUTTI_MEASURED_ACCESSES) / (TUTTI_MEASURED_ACCESSES + 1);
}

static void note_what_is_missing(tutti_forecast *f, const char *what, int ranks)
{
    snprintf(f->note, sizeof f->note,
             "for %s and the network of %s; 'mpirun -n %d tutti calibrate' measures both", what,
             described_network, ranks);
}

/* One rank that was not measured has no platform: there is nothing to choose. */
static tutti_status choose_platform(tutti_forecast *f, const tutti_plan_question *q,
                                    tutti_platform **out)
{
    tutti_platform *measured = NULL, *described = NULL;
    const int size = q->me->size;
    TUTTI_TRY(load_measured(q, &measured));
    f->peak = measured ? measured->peak : 0;
    f->is_accountable = measured && (measured->link > 0 || size == 1);
    *out = measured;
    if (size == 1 && !measured) return TUTTI_OK;
    if (f->is_accountable) {
        snprintf(f->note, sizeof f->note, "on %s", measured->name);
        return TUTTI_OK;
    }
    const tutti_status s = tutti_platform_load(&described, described_network);
    if (s == TUTTI_OK && measured) {
        take_network(measured, described);
        note_what_is_missing(f, "this machine as measured", size);
        tutti_platform_destroy(&described);
    } else if (s == TUTTI_OK) {
        described->peak = q->peak;
        note_what_is_missing(f, "this machine's peak", size);
        *out = described;
    }
    if (s == TUTTI_OK) assume_common_memory(q->me, *out);
    return s;
}

/* ---- the plan ---- */

static tutti_status find_and_predict(tutti_forecast *f, const tutti_plan_question *q, bool searches)
{
    const tutti_predict_options how = {q->batch,     q->overlaps,    true,
                                       q->optimizer, q->micro_batch, q->grains};
    tutti_platform *platform = NULL;
    tutti_plan *best = NULL;
    tutti_status s = choose_platform(f, q, &platform);
    if (s != TUTTI_OK || !platform) return s;
    if (q->sends) platform->common = 0;
    if (searches) {
        s = tutti_plan_search(&best, q->net, platform, q->me->size, &how);
        if (s == TUTTI_OK)
            memcpy(f->plan->groups, best->groups, sizeof *best->groups * (size_t)best->layers);
    }
    tutti_prediction_destroy(&f->prediction);
    if (s == TUTTI_OK) s = tutti_predict_step(&f->prediction, q->net, platform, f->plan, &how);
    if (s == TUTTI_OK) f->plan->late = f->prediction->late;
    tutti_plan_destroy(&best);
    tutti_platform_destroy(&platform);
    return s;
}

/* Collective. */
static tutti_status decide(tutti_forecast *f, const tutti_plan_question *q, bool searches)
{
    tutti_comm *comm = q->me->comm;
    TUTTI_TRY(
        tutti_comm_agree(comm, q->me->rank == 0 ? find_and_predict(f, q, searches) : TUTTI_OK));
    return tutti_comm_broadcast(comm, 0, &f->plan->late, sizeof f->plan->late);
}

static tutti_status fill(tutti_forecast *f, const tutti_plan_question *q)
{
    const bool searches = !q->name || !strcmp(q->name, "auto");
    tutti_comm *comm = q->me->comm;
    TUTTI_TRY(tutti_comm_agree(
        comm, tutti_plan_named(&f->plan, q->net, q->me->size, searches ? "data" : q->name)));
    TUTTI_TRY(decide(f, q, searches));
    return tutti_comm_broadcast(comm, 0, f->plan->groups,
                                sizeof *f->plan->groups * (size_t)f->plan->layers);
}

tutti_status tutti_forecast_again(tutti_forecast *forecast, const tutti_plan_question *question)
{
    return decide(forecast, question, false);
}

tutti_status tutti_forecast_init(tutti_forecast *out, const tutti_plan_question *question)
{
    *out = (tutti_forecast){0};
    const tutti_status s = fill(out, question);
    if (s != TUTTI_OK) tutti_forecast_deinit(out);
    return s;
}

void tutti_forecast_deinit(tutti_forecast *forecast)
{
    tutti_prediction_destroy(&forecast->prediction);
    tutti_plan_destroy(&forecast->plan);
    *forecast = (tutti_forecast){0};
}
