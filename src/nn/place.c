/* Who computes what: which samples and features of a layer a worker has, pass by pass.
 *
 * A whole layer computes the worker's own samples. A split one computes those of its group: in one
 * pass these are next to each other; in several each member brings a piece of its own share, so a
 * pass has one run of grains of each. There is room for the largest piece of each member; where a
 * piece is smaller, what lies behind it is computed and never read. */
#include "base/memory.h"
#include "nn/unit.h"

tutti_status tutti_model_share(tutti_model *m)
{
    const tutti_model_options *o = &m->options;
    m->sharing = (tutti_sharing){o->batch, o->grains, o->workers, o->worker};
    m->first_grain = tutti_share_begin(o->grains, o->workers, o->worker);
    m->grain_count = tutti_share_begin(o->grains, o->workers, o->worker + 1) - m->first_grain;
    m->first_sample = tutti_sharing_sample(&m->sharing, m->first_grain);
    m->samples =
        tutti_sharing_sample(&m->sharing, m->first_grain + m->grain_count) - m->first_sample;
    TUTTI_TRY(tutti_passes_init(&m->passes, m->net, &m->sharing, !o->forward_only, o->micro_batch));
    m->most = tutti_passes_largest(&m->passes, &m->sharing, o->worker);
    return TUTTI_OK;
}

void tutti_model_places(const tutti_model *m, int first, int members, int *at)
{
    at[0] = 0;
    for (int i = 0; i < members; i++)
        at[i + 1] = at[i] + tutti_passes_largest(&m->passes, &m->sharing, first + i);
}

/* ---- a unit ---- */

static tutti_status take_runs(const tutti_model *m, tutti_unit *unit)
{
    const int first = m->options.worker / unit->members * unit->members;
    unit->run_count = m->passes.count > 1 ? unit->members : 1;
    TUTTI_TRY(tutti_alloc(&unit->run_cuts, (size_t)unit->run_count, sizeof *unit->run_cuts));
    TUTTI_TRY(tutti_alloc(&unit->run_at, (size_t)unit->members + 1, sizeof *unit->run_at));
    tutti_model_places(m, first, unit->members, unit->run_at);
    unit->samples = unit->run_at[unit->members];
    unit->all_cuts[0] = tutti_passes_of(&m->passes, first)[0];
    unit->all_cuts[1] = tutti_passes_of(&m->passes, first + unit->members - 1)[m->passes.count];
    unit->run_cuts[0] = unit->all_cuts;
    for (int r = 0; r < unit->run_count && m->passes.count > 1; r++)
        unit->run_cuts[r] = tutti_passes_of(&m->passes, first + r);
    return TUTTI_OK;
}

static tutti_status live_whole(const tutti_model *m, tutti_unit *unit)
{
    unit->groups = m->options.workers;
    unit->members = 1;
    unit->channels = unit->layer->out.c;
    unit->count = tutti_shape_floats(unit->layer->out);
    return take_runs(m, unit);
}

static tutti_status live_split(const tutti_model *m, tutti_unit *unit, int groups)
{
    const tutti_model_options *o = &m->options;
    const int features = unit->layer->out.c, leaves = tutti_ceil_div(features, TUTTI_FC_LEAF);
    unit->groups = groups;
    unit->members = o->workers / groups;
    unit->member = o->worker % unit->members;
    unit->first_leaf = tutti_share_begin(leaves, unit->members, unit->member);
    unit->end_leaf = tutti_share_begin(leaves, unit->members, unit->member + 1);
    unit->first_channel = unit->first_leaf * TUTTI_FC_LEAF;
    const int end = unit->end_leaf * TUTTI_FC_LEAF;
    unit->channels = (end < features ? end : features) - unit->first_channel;
    unit->count = tutti_round_up((size_t)unit->channels, TUTTI_BLOCK);
    return take_runs(m, unit);
}

tutti_status tutti_unit_place(const tutti_model *m, tutti_unit *unit)
{
    const tutti_layer *layer = unit->layer;
    const int asked = m->options.groups ? m->options.groups[unit - m->units] : 0;
    const int from = layer->from[0];
    if (asked && asked != m->options.workers) {
        TUTTI_TRY(tutti_layer_check_split(layer, m->options.workers, asked));
        return live_split(m, unit, asked);
    }
    if (layer->kind->follows && from >= 0 && m->units[from].members > 1)
        return live_split(m, unit, m->units[from].groups);
    return live_whole(m, unit);
}

void tutti_unit_displace(tutti_unit *unit)
{
    tutti_free(unit->run_cuts);
    tutti_free(unit->run_at);
}

/* ---- a pass ---- */

tutti_grain_run tutti_unit_run(const tutti_model *m, const tutti_unit *unit, const tutti_pass *pass,
                               int run)
{
    const int *cuts = unit->run_cuts[run] + pass->number;
    const int first = tutti_sharing_sample(&m->sharing, cuts[0]);
    return (tutti_grain_run){.first_grain = cuts[0],
                             .end_grain = cuts[1],
                             .first_sample = first,
                             .samples = tutti_sharing_sample(&m->sharing, cuts[1]) - first,
                             .at = unit->run_at[run]};
}

bool tutti_unit_rests(const tutti_model *m, const tutti_unit *unit, const tutti_pass *pass)
{
    return m->options.stand_in || !tutti_unit_samples(unit, pass->n);
}

/* The part of a step's samples that the unit computes in this pass. */
static double part_of_step(const tutti_model *m, const tutti_unit *unit, const tutti_pass *pass)
{
    int samples = 0, all = 0;
    for (int r = 0; r < unit->run_count; r++) {
        const int *cuts = unit->run_cuts[r];
        samples += tutti_unit_run(m, unit, pass, r).samples;
        all += tutti_sharing_sample(&m->sharing, cuts[m->passes.count]) -
               tutti_sharing_sample(&m->sharing, cuts[0]);
    }
    return (double)samples / all;
}

bool tutti_unit_stand_in(const tutti_model *m, const tutti_unit *unit, const tutti_pass *pass,
                         tutti_layer_pass which)
{
    const tutti_stand_in *stand_in = m->options.stand_in;
    if (stand_in)
        stand_in->compute(stand_in->user, (int)(unit - m->units), which,
                          part_of_step(m, unit, pass));
    return tutti_unit_rests(m, unit, pass);
}
