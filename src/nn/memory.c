/* Where everything of a step is stored. All of it gets a place in one arena, by lifetimes: the
 * forward pass of layer i is time i, its backward pass time 2*layers-1-i, a late weight gradient
 * time 2*layers+i, and things that are not alive at the same time may share a place (nn/pack.h). An
 * output is alive until its last reader, forward or backward. The backward pass needs little:
 *
 *   - a ReLU has no backward pass: whoever reads its output zeroes the gradient where its own
 *     input is not positive;
 *   - max pooling keeps 16 bits per output and masks by its output, so the large output of a
 *     convolution before it is soon free;
 *   - dropout draws its numbers again;
 *   - of a fused activation it reads the output, or, where the derivative does not follow from
 *     that (silu, gelu), the sum before it, which then has a place of its own;
 *   - elementwise layers work in place where nobody else needs what they overwrite;
 *   - the gradient by a sum is that by its inputs, and lies where these are, unless one of those
 *     would change it in place. */
#include "base/memory.h"
#include "nn/unit.h"
#include "nn/pack.h"

typedef struct planner {
    tutti_model *model;
    tutti_lease *leases;
    int count;
} planner;

static int backward_time(const tutti_model *m, int unit)
{
    return 2 * m->unit_count - 1 - unit;
}

/* When its weight gradient is computed. */
static int weights_time(const tutti_model *m, int unit)
{
    return m->units[unit].late ? 2 * m->unit_count + unit : backward_time(m, unit);
}

static int end_time(const tutti_model *m)
{
    return 3 * m->unit_count;
}

static int new_lease(planner *p, size_t bytes, int begin, int end)
{
    p->leases[p->count] = (tutti_lease){.bytes = bytes, .begin = begin, .end = end};
    return p->count++;
}

static void lives_at(planner *p, int lease, int time)
{
    if (time < p->leases[lease].begin) p->leases[lease].begin = time;
    if (time > p->leases[lease].end) p->leases[lease].end = time;
}

int tutti_unit_consumers(const tutti_model *m, int from)
{
    int count = 0;
    for (int i = from + 1; i < m->unit_count; i++)
        for (int k = 0; k < m->units[i].layer->input_count; k++)
            count += m->units[i].edges[k].from == from;
    return count;
}

/* What its own backward pass and that of its activation read again. */
static unsigned again(const tutti_layer *layer)
{
    return layer->kind->again | (layer->activation ? layer->activation->again : 0);
}

/* May the unit overwrite its input? Those below must not read it again, and if they mask by it, the
 * unit must keep its signs. */
static bool works_in_place(const tutti_model *m, const tutti_unit *unit)
{
    const int from = unit->edges[0].from;
    const tutti_kind *kind = unit->layer->kind;
    if (!kind->in_place || from == TUTTI_NET_INPUT || tutti_unit_consumers(m, from) != 1)
        return false;
    const tutti_layer *below = m->units[from].layer;
    if (m->options.forward_only || !unit->edges[0].wants_dx) return true;
    if (kind->again & TUTTI_AGAIN_X_DATA || again(below) & TUTTI_AGAIN_Y) return false;
    return kind->keeps_sign ||
           !(below->kind->in_place || tutti_ends_in_gate(below) || below->kind->gates_by_y);
}

/* Does it have a backward pass? */
static bool goes_back(const tutti_model *m, const tutti_unit *unit)
{
    return !m->options.forward_only && tutti_layer_flows_into(m->net, unit->layer);
}

static bool is_gated(const tutti_model *m, const tutti_edge *edge)
{
    return edge->from != TUTTI_NET_INPUT && tutti_ends_in_gate(m->units[edge->from].layer);
}

static bool wants_any_dx(const tutti_unit *unit)
{
    for (int e = 0; e < unit->layer->input_count; e++)
        if (unit->edges[e].wants_dx) return true;
    return false;
}

/* Does the unit's backward pass read this input, or its own output? A gate passes its gradient on:
 * readers have masked it by an output that is positive only where the input is. */
static bool needs_x(const tutti_model *m, const tutti_unit *unit, const tutti_edge *edge)
{
    const tutti_kind *kind = unit->layer->kind;
    const unsigned data =
        TUTTI_AGAIN_X_DATA | (tutti_layer_measures(unit->layer) ? TUTTI_AGAIN_X_STATISTICS : 0u);
    if (kind->again & TUTTI_AGAIN_X_PARAMETERS && unit->region.trained) return true;
    if (kind->again & data && wants_any_dx(unit)) return true; /* one by the other */
    return edge->wants_dx && is_gated(m, edge) && !kind->gates_by_y && !kind->is_gate;
}

static bool needs_y(const tutti_model *m, const tutti_unit *unit)
{
    const bool gates = unit->layer->kind->gates_by_y && is_gated(m, &unit->edges[0]);
    return goes_back(m, unit) && (gates || again(unit->layer) & TUTTI_AGAIN_Y);
}

/* An activation whose derivative does not follow from its output needs what it was applied to. */
static bool needs_sum(const tutti_model *m, const tutti_unit *unit)
{
    const tutti_kind *activation = unit->layer->activation;
    return goes_back(m, unit) && activation && activation->again & TUTTI_AGAIN_X_DATA;
}

bool tutti_unit_wants_tight(const tutti_model *model, const tutti_unit *unit)
{
    return unit->layer->form == TUTTI_FORM_COMPACT &&
           tutti_shape_count(model->net->input) != tutti_net_input_floats(model->net);
}

bool tutti_unit_wants_blocked(const tutti_model *model, const tutti_unit *unit)
{
    return unit->layer->form == TUTTI_FORM_BLOCKED && tutti_net_input_is_compact(model->net);
}

/* The net's input in other forms, made before the first layer. */
static void plan_input(planner *p, int i, int edge)
{
    tutti_model *m = p->model;
    const tutti_unit *unit = &m->units[i];
    const size_t bytes = (size_t)m->most * sizeof(float);
    int *lease;
    size_t floats;
    if (tutti_unit_wants_tight(m, unit)) {
        lease = &m->tight_lease;
        floats = tutti_shape_count(m->net->input);
    } else if (tutti_unit_wants_blocked(m, unit)) {
        lease = &m->blocked_lease;
        floats = tutti_shape_floats(m->net->input);
    } else return;
    if (*lease < 0) *lease = new_lease(p, floats * bytes, 0, 0);
    lives_at(p, *lease, i);
    if (!m->options.forward_only && needs_x(m, unit, &unit->edges[edge]))
        lives_at(p, *lease, weights_time(m, i));
}

/* What a layer reads, forward and perhaps backward: with hops in between it reads the last hop's
 * copy, and what goes into a hop is needed again where the hop masks by it. */
static void plan_reading(planner *p, int i, int k)
{
    tutti_model *m = p->model;
    tutti_edge *edge = &m->units[i].edges[k];
    const bool again = !m->options.forward_only && needs_x(m, &m->units[i], edge);
    const bool masks = !m->options.forward_only && edge->wants_dx && is_gated(m, edge);
    int source = edge->from < 0 ? -1 : m->units[edge->from].y_lease;
    for (int h = 0; h < edge->hop_count; h++) {
        tutti_hop *hop = &edge->hops[h];
        if (source >= 0) lives_at(p, source, i);
        if (source >= 0 && masks && hop->kind != TUTTI_HOP_ASSEMBLE)
            lives_at(p, source, backward_time(m, i));
        hop->x_lease = source = new_lease(p, tutti_hop_floats(hop) * sizeof(float), i, i);
        if (hop->kind != TUTTI_HOP_SHARE)
            hop->stage_lease[0] = new_lease(p, tutti_hop_floats(hop) * sizeof(float), i, i);
    }
    if (source >= 0) lives_at(p, source, i);
    if (source >= 0 && again) lives_at(p, source, weights_time(m, i));
}

/* Whose output the unit's lies over; -1: it has a place of its own. */
static int output_of(const tutti_model *m, const tutti_unit *unit)
{
    return works_in_place(m, unit) ? unit->edges[0].from : unit->sum_done_by;
}

static void plan_output(planner *p, int i)
{
    tutti_model *m = p->model;
    tutti_unit *unit = &m->units[i];
    for (int k = 0; k < unit->layer->input_count; k++) {
        if (unit->edges[k].from == TUTTI_NET_INPUT) plan_input(p, i, k);
        plan_reading(p, i, k);
    }
    const int shared = output_of(m, unit);
    unit->y_lease = shared >= 0
                        ? m->units[shared].y_lease
                        : new_lease(p, (size_t)unit->samples * unit->count * sizeof(float), i, i);
    if (needs_y(m, unit)) lives_at(p, unit->y_lease, backward_time(m, i));
    if (needs_sum(m, unit))
        unit->sum_lease = new_lease(p, (size_t)unit->samples * unit->count * sizeof(float), i,
                                    backward_time(m, i));
    if (unit->layer->kind->is_loss) /* the caller reads it */
        lives_at(p, unit->y_lease, end_time(m));
}

static void plan_hops_back(planner *p, tutti_edge *edge, int now)
{
    for (int h = 0; h < edge->hop_count; h++) {
        tutti_hop *hop = &edge->hops[h];
        const size_t bytes = tutti_hop_floats(hop) * sizeof(float);
        hop->partial_lease = new_lease(p, (size_t)hop->root_count * bytes, now, now);
        if (hop->kind == TUTTI_HOP_MERGE)
            hop->ordered_lease = new_lease(p, (size_t)hop->root_count * bytes, now, now);
        if (hop->kind == TUTTI_HOP_ASSEMBLE) hop->stage_lease[1] = new_lease(p, bytes, now, now);
    }
}

/* Is the unit's dy the gradient by this input, too? */
static bool passes_dy(const tutti_model *m, const tutti_unit *unit, const tutti_edge *edge)
{
    return unit->layer->kind->is_sum && !edge->hop_count && !is_gated(m, edge);
}

/* May a unit work on dy in place, while others want it as it is? */
static bool changes_dy(const tutti_layer *layer)
{
    return layer->kind->in_place || layer->kind->is_sum ||
           (layer->activation && !layer->activation->is_gate);
}

/* Is the gradient by this input, which nobody else reads, where dy is? */
static bool lies_over_dy(const tutti_model *m, const tutti_unit *unit, const tutti_edge *edge)
{
    if (tutti_unit_consumers(m, edge->from) != 1) return false;
    return unit->layer->kind->in_place ||
           (passes_dy(m, unit, edge) && !changes_dy(m->units[edge->from].layer));
}

/* Where the gradients by the unit's inputs go. */
static void plan_gradients(planner *p, int i)
{
    tutti_model *m = p->model;
    const int now = backward_time(m, i);
    tutti_unit *unit = &m->units[i];
    if (unit->late && unit->dy_lease >= 0) lives_at(p, unit->dy_lease, weights_time(m, i));
    for (int k = 0; k < unit->layer->input_count; k++) {
        tutti_edge *edge = &unit->edges[k];
        if (!edge->wants_dx) continue;
        plan_hops_back(p, edge, now);
        tutti_unit *below = &m->units[edge->from];
        const size_t bytes = (size_t)below->samples * below->count * sizeof(float);
        edge->adds = below->dy_lease >= 0;
        if (edge->adds) {
            edge->dx_lease =
                passes_dy(m, unit, edge) ? unit->dy_lease : new_lease(p, bytes, now, now);
            continue;
        }
        below->dy_lease =
            lies_over_dy(m, unit, edge) ? unit->dy_lease : new_lease(p, bytes, now, now);
        lives_at(p, below->dy_lease, backward_time(m, edge->from));
        edge->dx_lease = below->dy_lease;
    }
}

static size_t scratch_bytes(const tutti_unit *unit)
{
    const tutti_kind *kind = unit->layer->kind;
    return kind->scratch && unit->own ? kind->scratch(unit->own, unit->samples) : 0;
}

static void plan_own(planner *p, int i)
{
    tutti_model *m = p->model;
    tutti_unit *unit = &m->units[i];
    const int later = backward_time(m, i), latest = weights_time(m, i);
    const size_t scratch = scratch_bytes(unit);
    if (scratch) unit->scratch_lease[TUTTI_PASS_FORWARD] = new_lease(p, scratch, i, i);
    if (!goes_back(m, unit)) return;
    if (m->passes.count > 1 && unit->region.trained)
        unit->spare_lease = new_lease(p, unit->region.trained * sizeof(float), latest, latest);
    if (unit->statistics) {
        unit->sums_lease[0] = new_lease(p, tutti_measures_bytes(unit), i, i);
        unit->sums_lease[1] = new_lease(p, tutti_measures_bytes(unit), later, later);
    }
    if (scratch) unit->scratch_lease[TUTTI_PASS_WEIGHTS] = new_lease(p, scratch, latest, latest);
    unit->scratch_lease[TUTTI_PASS_DATA] = scratch && unit->late
                                               ? new_lease(p, scratch, later, later)
                                               : unit->scratch_lease[TUTTI_PASS_WEIGHTS];
    if (unit->layer->kind->saved)
        unit->saved_lease =
            new_lease(p, unit->layer->kind->saved(unit->layer, unit->samples), i, latest);
}

static void *address(const planner *p, int lease)
{
    return lease < 0 ? NULL : (char *)p->model->arena + p->leases[lease].offset;
}

static void set_hop_addresses(const planner *p, tutti_hop *hop)
{
    const size_t floats = tutti_hop_floats(hop);
    float *partial = address(p, hop->partial_lease), *ordered = address(p, hop->ordered_lease);
    hop->x = address(p, hop->x_lease);
    hop->stage[0] = address(p, hop->stage_lease[0]);
    hop->stage[1] = address(p, hop->stage_lease[1]);
    for (int r = 0; r < hop->root_count; r++) {
        hop->partial[r] = partial ? partial + (size_t)r * floats : NULL;
        hop->ordered[r] = ordered ? ordered + (size_t)r * floats : NULL;
    }
}

static void set_edge_addresses(const planner *p, tutti_unit *unit, int k)
{
    tutti_model *m = p->model;
    tutti_edge *edge = &unit->edges[k];
    tutti_input *in = &unit->in[k];
    const bool splits = unit->members > 1 && unit->layer->kind->splits;
    in->x = edge->from == TUTTI_NET_INPUT ? NULL : m->units[edge->from].y;
    in->dx = edge->dx_below = address(p, edge->dx_lease);
    for (int h = 0; h < edge->hop_count; h++) {
        set_hop_addresses(p, &edge->hops[h]);
        in->x = edge->hops[h].x;
        in->dx = edge->hops[h].partial[0];
        in->roots = splits ? edge->hops[h].partial : NULL;
    }
    if (!edge->wants_dx) in->dx = NULL;
    if (is_gated(m, edge)) in->gate = unit->layer->kind->gates_by_y ? unit->y : in->x;
}

static void set_addresses(const planner *p)
{
    tutti_model *m = p->model;
    m->tight = address(p, m->tight_lease);
    m->blocked = address(p, m->blocked_lease);
    for (int i = 0; i < m->unit_count; i++) {
        tutti_unit *unit = &m->units[i];
        unit->y = address(p, unit->y_lease);
        unit->plus = unit->plus_from < 0 ? NULL : m->units[unit->plus_from].y;
        unit->sum = address(p, unit->sum_lease);
        unit->dy = address(p, unit->dy_lease);
        unit->saved = address(p, unit->saved_lease);
        unit->spare = address(p, unit->spare_lease);
        unit->sums[0] = address(p, unit->sums_lease[0]);
        unit->sums[1] = address(p, unit->sums_lease[1]);
        for (int pass = 0; pass < TUTTI_PASSES; pass++)
            unit->scratch[pass] = address(p, unit->scratch_lease[pass]);
        for (int k = 0; k < unit->layer->input_count; k++) set_edge_addresses(p, unit, k);
    }
}

static int most_leases(const tutti_model *m)
{
    int count = 2;
    for (int i = 0; i < m->unit_count; i++) {
        count += 10 + m->units[i].layer->input_count;
        for (int k = 0; k < m->units[i].layer->input_count; k++)
            count += 5 * m->units[i].edges[k].hop_count;
    }
    return count;
}

tutti_status tutti_model_plan_memory(tutti_model *m)
{
    planner p = {.model = m};
    tutti_status s = TUTTI_OK;
    if ((s = tutti_alloc(&p.leases, (size_t)most_leases(m), sizeof *p.leases))) goto out;
    for (int i = 0; i < m->unit_count; i++) plan_output(&p, i);
    for (int i = 0; i < m->unit_count; i++) plan_own(&p, i);
    for (int i = m->unit_count - 1; i >= 0 && !m->options.forward_only; i--) plan_gradients(&p, i);
    if ((s = tutti_pack(p.leases, p.count, &m->arena_bytes))) goto out;
    m->separate_bytes = 0;
    for (int i = 0; i < p.count; i++) m->separate_bytes += p.leases[i].bytes;
    if (m->measure_only) goto out;
    if ((s = tutti_alloc_floats(&m->arena, m->arena_bytes / sizeof *m->arena))) goto out;
    set_addresses(&p);
out:
    tutti_free(p.leases);
    return s;
}
