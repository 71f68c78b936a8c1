/* Which plan a run has, and what is expected of it.
 *
 * "auto" searches for the plan with the least predicted step. The prediction stands on the platform
 * that tutti calibrate measured for as many ranks and threads on a host as there are now; where
 * there is none, on this machine's peak and the network of a described platform, and the header
 * says so. Rank 0 decides for all: files and measurements may differ from host to host, a plan
 * may not. Weights do not depend on it. */
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "machine/machine_name.h"
#include "train/trainer.h"

static const char described_network[] = "ethernet-100g";

static tutti_predict_options how(const tutti_trainer *t)
{
    const bool overlap = t->options->overlap && t->settings.clip <= 0;
    return (tutti_predict_options){t->settings.batch, overlap, true,
                                   tutti_optimizer_cost_of(&t->settings.optimizer)};
}

/* ---- the platform ---- */

/* What was measured for this machine; *out stays NULL if nothing was. */
static tutti_status load_measured(tutti_trainer *t, tutti_platform **out)
{
    char name[TUTTI_HERE_NAME], machine[TUTTI_MACHINE_NAME];
    tutti_platform *p = NULL;
    tutti_platform_here(name, tutti_comm_local_size(t->me.comm), tutti_team_size(t->me.exec.team));
    if (!tutti_platform_exists(name)) return TUTTI_OK;
    TUTTI_TRY(tutti_platform_load(&p, name));
    tutti_machine_name(machine, tutti_topology_cpu(t->me.topology), t->me.exec.row);
    if (!strcmp(p->machine, machine)) {
        *out = p;
        return TUTTI_OK;
    }
    tutti_warn(&t->log, "platform %s was measured on '%s', this is '%s': run 'tutti calibrate'",
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
static void assume_common_memory(const tutti_trainer *t, tutti_platform *p)
{
    if (!tutti_common_is_likely(t->me.comm)) return;
    p->ranks = t->me.size;
    p->common = tutti_platform_update(p, 1, TUTTI_MEASURED_ACCESSES) *
                (t->me.size + TUTTI_MEASURED_ACCESSES) / (TUTTI_MEASURED_ACCESSES + 1);
}

static void note_what_is_missing(tutti_trainer *t, const char *what)
{
    snprintf(t->prediction_note, sizeof t->prediction_note,
             "for %s and the network of %s; 'mpirun -n %d tutti calibrate' measures both", what,
             described_network, t->me.size);
}

/* *describes: the platform is this machine and what joins its ranks, as measured. One rank that was
 * not measured has no platform: there is nothing to choose. */
static tutti_status choose_platform(tutti_trainer *t, tutti_platform **out, bool *describes)
{
    tutti_platform *measured = NULL, *described = NULL;
    TUTTI_TRY(load_measured(t, &measured));
    *describes = measured && (measured->link > 0 || t->me.size == 1);
    *out = measured;
    if (t->me.size == 1 && !measured) return TUTTI_OK;
    if (*describes) {
        snprintf(t->prediction_note, sizeof t->prediction_note, "on %s", measured->name);
        return TUTTI_OK;
    }
    const tutti_status s = tutti_platform_load(&described, described_network);
    if (s == TUTTI_OK && measured) {
        take_network(measured, described);
        note_what_is_missing(t, "this machine as measured");
        tutti_platform_destroy(&described);
    } else if (s == TUTTI_OK) {
        described->peak = t->peak / t->me.size;
        note_what_is_missing(t, "this machine's peak");
        *out = described;
    }
    if (s == TUTTI_OK) assume_common_memory(t, *out);
    return s;
}

/* ---- the plan ---- */

static tutti_status find_and_predict(tutti_trainer *t, bool searches)
{
    const tutti_predict_options o = how(t);
    tutti_platform *platform = NULL;
    tutti_prediction *prediction = NULL;
    tutti_plan *best = NULL;
    tutti_status s = choose_platform(t, &platform, &t->is_accountable);
    if (s != TUTTI_OK || !platform) return s;
    if (t->options->part_reduce || t->options->part_broadcast) platform->common = 0;
    if (searches) {
        s = tutti_plan_search(&best, t->net, platform, t->me.size, &o);
        if (s == TUTTI_OK)
            memcpy(t->plan->groups, best->groups, sizeof *best->groups * (size_t)best->layers);
    }
    if (s == TUTTI_OK) s = tutti_predict_step(&prediction, t->net, platform, t->plan, &o);
    if (s == TUTTI_OK) {
        t->prediction = prediction;
        t->plan->late = prediction->late;
    }
    tutti_plan_destroy(&best);
    tutti_platform_destroy(&platform);
    return s;
}

tutti_status tutti_trainer_choose_plan(tutti_trainer *t, bool evaluates_only)
{
    const char *given = t->options->plan ? t->options->plan : "auto";
    const bool searches = !strcmp(given, "auto");
    TUTTI_TRY(tutti_grains_suffice(t->me.size, t->settings.grains, t->settings.batch));
    const char *name = searches || evaluates_only ? "data" : given;
    TUTTI_TRY(tutti_comm_agree(t->me.comm, tutti_plan_named(&t->plan, t->net, t->me.size, name)));
    if (evaluates_only) return TUTTI_OK;
    TUTTI_TRY(
        tutti_comm_agree(t->me.comm, t->me.rank == 0 ? find_and_predict(t, searches) : TUTTI_OK));
    TUTTI_TRY(tutti_comm_broadcast(t->me.comm, 0, &t->plan->late, sizeof t->plan->late));
    return tutti_comm_broadcast(t->me.comm, 0, t->plan->groups,
                                sizeof *t->plan->groups * (size_t)t->plan->layers);
}
