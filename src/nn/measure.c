/* Statistics over samples, in a model: a unit whose kind has groups measures its roots, gets those
 * of other workers by a move, and goes on. Backward, weight gradients are computed while the move
 * is under way. */
#include <stdio.h>

#include "base/clock.h"
#include "base/memory.h"
#include "nn/unit.h"

/* ---- making ---- */

static size_t pair_floats(const tutti_unit *unit)
{
    return tutti_norm_pair(unit->channels) * (sizeof(double) / sizeof(float));
}

size_t tutti_measures_bytes(const tutti_unit *unit)
{
    return (size_t)unit->statistics->slot_count * pair_floats(unit) * sizeof(float);
}

tutti_status tutti_measures_init(const tutti_model *m, tutti_unit *unit)
{
    const tutti_model_options *o = &m->options;
    const tutti_sharing sharing = {o->batch, o->grains, o->workers, o->worker};
    unit->sums_lease[0] = unit->sums_lease[1] = unit->sums_move[0] = unit->sums_move[1] = -1;
    if (!unit->layer->kind->group || o->forward_only) return TUTTI_OK;
    const int group = unit->layer->kind->group(unit->layer);
    TUTTI_TRY(tutti_statistics_check(unit->layer, o->batch, group));
    TUTTI_TRY(tutti_statistics_create(&unit->statistics, &sharing, group));
    const int members = unit->statistics->members;
    TUTTI_TRY(tutti_alloc(&unit->sums_cuts, (size_t)members + 1, sizeof *unit->sums_cuts));
    for (int i = 0; i <= members; i++)
        unit->sums_cuts[i] = (size_t)unit->statistics->cuts[i] * pair_floats(unit);
    return TUTTI_OK;
}

void tutti_measures_deinit(tutti_unit *unit)
{
    tutti_statistics_destroy(&unit->statistics);
    tutti_free(unit->sums_cuts);
}

void tutti_measures_describe(tutti_model *m, tutti_unit *unit)
{
    const tutti_statistics *s = unit->statistics;
    for (int backward = 0; s && s->members > 1 && backward < 2; backward++) {
        unit->sums_move[backward] = m->move_count;
        tutti_named_move *slot = &m->moves[m->move_count++];
        snprintf(slot->name, sizeof slot->name, "%s statistics %s", unit->layer->name,
                 backward ? "back" : "forth");
        slot->move = (tutti_move){.name = slot->name,
                                  .layer = (int)(unit - m->units),
                                  .backward = backward,
                                  .kind = TUTTI_MOVE_BROADCAST,
                                  .groups = m->options.workers / s->members,
                                  .members = s->members,
                                  .cuts = unit->sums_cuts,
                                  .whole = (float *)unit->sums[backward]};
    }
}

/* ---- running ---- */

tutti_status tutti_measure_forward(tutti_model *m, tutti_unit *unit, const tutti_pass *pass)
{
    if (!unit->statistics || !pass->training) return TUTTI_OK;
    const double start = tutti_now();
    const tutti_call call = tutti_unit_call(m, unit, pass, TUTTI_PASS_FORWARD);
    if (!m->options.stand_in) unit->layer->kind->measure(&call);
    unit->times.forward += tutti_now() - start;
    return unit->sums_move[0] < 0 ? TUTTI_OK : tutti_move_carry_out(m, unit, unit->sums_move[0]);
}

tutti_status tutti_measure_back(tutti_model *m, tutti_unit *unit, const tutti_pass *pass,
                                bool moves)
{
    const tutti_model_hooks *hooks = &m->options.hooks;
    if (!unit->statistics) return TUTTI_OK;
    const double start = tutti_now();
    tutti_call call = tutti_unit_call(m, unit, pass, TUTTI_PASS_DATA);
    if (!m->options.stand_in) unit->layer->kind->measure_back(&call);
    unit->times.backward_weights += tutti_now() - start;
    return moves && unit->sums_move[1] >= 0 && hooks->start_move
               ? hooks->start_move(hooks->user, unit->sums_move[1])
               : TUTTI_OK;
}

tutti_status tutti_measure_arrive(tutti_model *m, tutti_unit *unit)
{
    return unit->sums_move[1] < 0 ? TUTTI_OK : tutti_move_carry_out(m, unit, unit->sums_move[1]);
}
