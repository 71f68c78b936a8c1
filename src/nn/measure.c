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
    return (size_t)unit->slot_count * pair_floats(unit) * sizeof(float);
}

/* That of the last pass, which is never empty; several passes share nothing with other workers. */
static const tutti_statistics *last_statistics(const tutti_model *m, const tutti_unit *unit)
{
    return unit->statistics[m->passes.count - 1];
}

static tutti_status measure_passes(const tutti_model *m, tutti_unit *unit, int group)
{
    const size_t passes = (size_t)m->passes.count;
    const int *cuts = unit->run_cuts[0];
    unit->pass_count = m->passes.count;
    TUTTI_TRY(tutti_alloc(&unit->statistics, passes, sizeof *unit->statistics));
    for (size_t p = 0; p < passes; p++) {
        const int begin = tutti_sharing_sample(&m->sharing, cuts[p]);
        const int end = tutti_sharing_sample(&m->sharing, cuts[p + 1]);
        tutti_statistics **s = &unit->statistics[p];
        if (begin == end) continue;
        TUTTI_TRY(tutti_statistics_create(s, &m->sharing, group, begin, end));
        if ((*s)->slot_count > unit->slot_count) unit->slot_count = (*s)->slot_count;
    }
    return TUTTI_OK;
}

tutti_status tutti_measures_init(const tutti_model *m, tutti_unit *unit)
{
    const tutti_model_options *o = &m->options;
    unit->sums_lease[0] = unit->sums_lease[1] = unit->sums_move[0] = unit->sums_move[1] = -1;
    if (!tutti_layer_measures(unit->layer) || o->forward_only) return TUTTI_OK;
    const int group = unit->layer->kind->group(unit->layer);
    TUTTI_TRY(tutti_statistics_check(unit->layer, o->batch, group));
    TUTTI_TRY(measure_passes(m, unit, group));
    const tutti_statistics *s = last_statistics(m, unit);
    TUTTI_TRY(tutti_alloc(&unit->sums_cuts, (size_t)s->members + 1, sizeof *unit->sums_cuts));
    for (int i = 0; i <= s->members; i++)
        unit->sums_cuts[i] = (size_t)s->cuts[i] * pair_floats(unit);
    return TUTTI_OK;
}

void tutti_measures_deinit(tutti_unit *unit)
{
    for (int p = 0; unit->statistics && p < unit->pass_count; p++)
        tutti_statistics_destroy(&unit->statistics[p]);
    tutti_free(unit->statistics);
    tutti_free(unit->sums_cuts);
}

void tutti_measures_describe(tutti_model *m, tutti_unit *unit)
{
    const tutti_statistics *s = unit->statistics ? last_statistics(m, unit) : NULL;
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
    if (!tutti_unit_rests(m, unit, pass)) unit->layer->kind->measure(&call);
    unit->times.forward += tutti_now() - start;
    return unit->sums_move[0] < 0 ? TUTTI_OK : tutti_move_carry_out(m, unit, unit->sums_move[0]);
}

tutti_status tutti_measure_back(tutti_model *m, tutti_unit *unit, const tutti_pass *pass,
                                bool moves)
{
    const tutti_model_hooks *hooks = &m->options.hooks;
    const tutti_kind *kind = unit->layer->kind;
    if (!kind->measure_back || (kind->group && !unit->statistics)) return TUTTI_OK;
    const double start = tutti_now();
    tutti_call call = tutti_unit_call(m, unit, pass, TUTTI_PASS_DATA);
    if (!tutti_unit_rests(m, unit, pass)) kind->measure_back(&call);
    unit->times.backward_weights += tutti_now() - start;
    return moves && unit->sums_move[1] >= 0 && hooks->start_move
               ? hooks->start_move(hooks->user, unit->sums_move[1])
               : TUTTI_OK;
}

tutti_status tutti_measure_arrive(tutti_model *m, tutti_unit *unit)
{
    return unit->sums_move[1] < 0 ? TUTTI_OK : tutti_move_carry_out(m, unit, unit->sums_move[1]);
}
