#include "nn/hop.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "kernel/ops.h"
#include "nn/unit.h"

/* ---- which hops ---- */

static int group_samples(const tutti_hop *hop)
{
    return hop->samples[hop->members];
}

static int own_samples(const tutti_hop *hop)
{
    return hop->samples[hop->member + 1] - hop->samples[hop->member];
}

static size_t own_features(const tutti_hop *hop)
{
    return hop->features[hop->member + 1] - hop->features[hop->member];
}

size_t tutti_hop_floats(const tutti_hop *hop)
{
    const int samples = hop->kind == TUTTI_HOP_ASSEMBLE ? own_samples(hop) : group_samples(hop);
    return (size_t)samples * hop->row;
}

static tutti_status share_samples(const tutti_model *m, tutti_hop *hop)
{
    const int first = m->options.worker / hop->members * hop->members;
    TUTTI_TRY(tutti_alloc(&hop->samples, (size_t)hop->members + 1, sizeof(int)));
    tutti_model_places(m, first, hop->members, hop->samples);
    return TUTTI_OK;
}

/* Rows of the split layer below: whole leaves for each member, the last one filled up to 16. */
static tutti_status share_features(const tutti_unit *below, tutti_hop *hop)
{
    const int leaves = tutti_ceil_div(below->layer->out.c, TUTTI_FC_LEAF);
    TUTTI_TRY(tutti_alloc(&hop->features, (size_t)hop->members + 1, sizeof(size_t)));
    for (int i = 0; i <= hop->members; i++) {
        const size_t at = (size_t)tutti_share_begin(leaves, hop->members, i) * TUTTI_FC_LEAF;
        hop->features[i] = at < hop->row ? at : hop->row;
    }
    return TUTTI_OK;
}

/* Floats of a sample of the net's input, as the layer reads it. */
static size_t input_row(const tutti_model *m, const tutti_layer *layer)
{
    return layer->form == TUTTI_FORM_BLOCKED ? tutti_shape_floats(m->net->input)
                                             : tutti_net_input_floats(m->net);
}

static tutti_status add_hop(const tutti_model *m, tutti_unit *unit, int k, tutti_hop_kind kind,
                            const tutti_unit *splitter)
{
    tutti_edge *edge = &unit->edges[k];
    tutti_hop *hop = &edge->hops[edge->hop_count++];
    const tutti_unit *below = edge->from < 0 ? NULL : &m->units[edge->from];
    hop->kind = kind;
    hop->groups = splitter->groups;
    hop->members = splitter->members;
    hop->member = splitter->member;
    hop->row = below ? tutti_shape_floats(below->layer->out) : input_row(m, unit->layer);
    hop->root_count = 1;
    hop->x_lease = hop->partial_lease = hop->ordered_lease = -1;
    hop->stage_lease[0] = hop->stage_lease[1] = hop->move[0] = hop->move[1] = -1;
    TUTTI_TRY(share_samples(m, hop));
    if (kind != TUTTI_HOP_SHARE) TUTTI_TRY(share_features(below, hop));
    if (kind != TUTTI_HOP_ASSEMBLE) {
        tutti_subtree roots[TUTTI_TREE_MAX_ROOTS];
        hop->leaves = tutti_ceil_div(unit->layer->out.c, TUTTI_FC_LEAF);
        hop->root_count = tutti_tree_roots(roots, hop->leaves, unit->first_leaf, unit->end_leaf);
    }
    TUTTI_TRY(tutti_alloc(&hop->partial, (size_t)hop->root_count, sizeof(float *)));
    TUTTI_TRY(tutti_alloc(&hop->ordered, (size_t)hop->root_count, sizeof(float *)));
    TUTTI_TRY(tutti_alloc(&hop->cuts[0], (size_t)hop->members + 1, sizeof(size_t)));
    return tutti_alloc(&hop->cuts[1], (size_t)hop->members + 1, sizeof(size_t));
}

tutti_status tutti_hops_init(const tutti_model *m, tutti_unit *unit, int k)
{
    const int from = unit->edges[k].from;
    const tutti_unit *below = from < 0 ? NULL : &m->units[from];
    const bool from_split = below && below->members > 1;
    const bool to_split = unit->members > 1;
    if (to_split && !unit->layer->kind->splits) return TUTTI_OK; /* placed like the one below */
    if (from_split && to_split && below->groups == unit->groups)
        return add_hop(m, unit, k, TUTTI_HOP_MERGE, unit);
    if (from_split) TUTTI_TRY(add_hop(m, unit, k, TUTTI_HOP_ASSEMBLE, below));
    if (to_split) TUTTI_TRY(add_hop(m, unit, k, TUTTI_HOP_SHARE, unit));
    return TUTTI_OK;
}

void tutti_hops_deinit(tutti_unit *unit, int k)
{
    for (int i = 0; i < unit->edges[k].hop_count; i++) {
        tutti_hop *hop = &unit->edges[k].hops[i];
        tutti_free(hop->samples);
        tutti_free(hop->features);
        tutti_free(hop->partial);
        tutti_free(hop->ordered);
        tutti_free(hop->cuts[0]);
        tutti_free(hop->cuts[1]);
    }
}

/* ---- moves ---- */

static void set_cuts(tutti_hop *hop)
{
    for (int i = 0; i <= hop->members; i++) {
        switch (hop->kind) {
        case TUTTI_HOP_ASSEMBLE:
            hop->cuts[0][i] = (size_t)hop->samples[i] * own_features(hop);
            hop->cuts[1][i] = (size_t)own_samples(hop) * hop->features[i];
            break;
        case TUTTI_HOP_SHARE: hop->cuts[0][i] = (size_t)hop->samples[i] * hop->row; break;
        case TUTTI_HOP_MERGE:
            hop->cuts[0][i] = (size_t)group_samples(hop) * hop->features[i];
            break;
        }
    }
}

static tutti_move *new_move(tutti_model *m, tutti_unit *unit, tutti_hop *hop, bool backward)
{
    static const tutti_move_kind kinds[][2] = {
        [TUTTI_HOP_ASSEMBLE] = {TUTTI_MOVE_ALLTOALL, TUTTI_MOVE_ALLTOALL},
        [TUTTI_HOP_SHARE] = {TUTTI_MOVE_BROADCAST, TUTTI_MOVE_REDUCE},
        [TUTTI_HOP_MERGE] = {TUTTI_MOVE_BROADCAST, TUTTI_MOVE_REDUCE},
    };
    static const char *const names[] = {[TUTTI_MOVE_BROADCAST] = "gather",
                                        [TUTTI_MOVE_REDUCE] = "reduce",
                                        [TUTTI_MOVE_ALLTOALL] = "all-to-all"};
    const tutti_move_kind kind = kinds[hop->kind][backward];
    hop->move[backward] = m->move_count;
    tutti_named_move *slot = &m->moves[m->move_count++];
    snprintf(slot->name, sizeof slot->name, "%s %s %s", unit->layer->name, names[kind],
             backward ? "back" : "forth");
    slot->move = (tutti_move){.name = slot->name,
                              .layer = (int)(unit - m->units),
                              .backward = backward,
                              .kind = kind,
                              .groups = hop->groups,
                              .members = hop->members,
                              .cuts = hop->cuts[0]};
    return &slot->move;
}

/* What the hop reads forward: the hop before it, the layer below, or the input (known later). */
static const float *source(const tutti_model *m, const tutti_edge *edge, int h)
{
    if (h > 0) return edge->hops[h - 1].x;
    return edge->from < 0 ? NULL : m->units[edge->from].y;
}

/* Where its gradient ends up. */
static float *target(const tutti_edge *edge, int h)
{
    return h > 0 ? edge->hops[h - 1].partial[0] : edge->dx_below;
}

static void describe(tutti_model *m, tutti_unit *unit, tutti_edge *edge, int h)
{
    tutti_hop *hop = &edge->hops[h];
    set_cuts(hop);
    tutti_move *forth = new_move(m, unit, hop, false);
    if (hop->kind == TUTTI_HOP_ASSEMBLE) {
        forth->send = source(m, edge, h);
        forth->send_cuts = hop->cuts[0];
        forth->receive = hop->stage[0];
        forth->receive_cuts = hop->cuts[1];
    } else forth->whole = hop->kind == TUTTI_HOP_MERGE ? hop->stage[0] : hop->x;
    if (!edge->wants_dx || m->options.forward_only) return;
    tutti_move *back = new_move(m, unit, hop, true);
    if (hop->kind == TUTTI_HOP_ASSEMBLE) {
        back->send = hop->stage[1];
        back->send_cuts = hop->cuts[1];
        back->receive = target(edge, h);
        back->receive_cuts = hop->cuts[0];
    } else {
        back->leaves = hop->leaves;
        back->partial_count = hop->root_count;
        back->partials = hop->kind == TUTTI_HOP_MERGE ? hop->ordered : hop->partial;
    }
}

tutti_status tutti_moves_init(tutti_model *m)
{
    int ways = 0;
    for (int i = 0; i < m->unit_count; i++) {
        ways += m->units[i].statistics != NULL;
        for (int k = 0; k < m->units[i].layer->input_count; k++)
            ways += m->units[i].edges[k].hop_count;
    }
    TUTTI_TRY(tutti_alloc(&m->moves, 2 * (size_t)ways, sizeof *m->moves));
    for (int i = 0; i < m->unit_count; i++) {
        for (int k = 0; k < m->units[i].layer->input_count; k++)
            for (int h = 0; h < m->units[i].edges[k].hop_count; h++)
                describe(m, &m->units[i], &m->units[i].edges[k], h);
        tutti_measures_describe(m, &m->units[i]);
    }
    return TUTTI_OK;
}

tutti_status tutti_move_carry_out(tutti_model *m, tutti_unit *unit, int move)
{
    const tutti_model_hooks *hooks = &m->options.hooks;
    TUTTI_ASSERT(hooks->move);
    const double start = tutti_now();
    const tutti_status s = hooks->move(hooks->user, move);
    unit->times.move += tutti_now() - start;
    return s;
}

/* ---- bringing together and taking apart ---- */

/* Leaves that much copying to the stand-in, if there is one. */
static bool stands_in(const tutti_model *m, size_t floats)
{
    const tutti_stand_in *stand_in = m->options.stand_in;
    if (stand_in) stand_in->copy(stand_in->user, floats);
    return stand_in != NULL;
}

static void copy(const tutti_model *m, float *to, const float *from, size_t floats)
{
    if (!stands_in(m, floats)) memcpy(to, from, floats * sizeof(float));
}

/* Rows of 'width' floats, 'from_row' apart, to rows 'to_row' apart. */
static void copy_rows(int rows, size_t width, const float *from, size_t from_row, float *to,
                      size_t to_row)
{
    for (size_t i = 0; i < (size_t)rows; i++)
        memcpy(to + i * to_row, from + i * from_row, width * sizeof(float));
}

/* [members][rows][features of the member] <-> [rows][row] */
static void join_features(const tutti_model *m, const tutti_hop *hop, int rows, const float *apart,
                          float *joined)
{
    if (stands_in(m, (size_t)rows * hop->row)) return;
    for (int i = 0; i < hop->members; i++) {
        const size_t begin = hop->features[i], width = hop->features[i + 1] - begin;
        copy_rows(rows, width, apart + (size_t)rows * begin, width, joined + begin, hop->row);
    }
}

static void part_features(const tutti_model *m, const tutti_hop *hop, int rows, const float *joined,
                          float *apart)
{
    if (stands_in(m, (size_t)rows * hop->row)) return;
    for (int i = 0; i < hop->members; i++) {
        const size_t begin = hop->features[i], width = hop->features[i + 1] - begin;
        copy_rows(rows, width, joined + begin, hop->row, apart + (size_t)rows * begin, width);
    }
}

/* ---- forward ---- */

static tutti_status hop_forward(tutti_model *m, tutti_unit *unit, tutti_hop *hop, const float *from,
                                int n)
{
    switch (hop->kind) {
    case TUTTI_HOP_ASSEMBLE:
        TUTTI_TRY(tutti_move_carry_out(m, unit, hop->move[0]));
        join_features(m, hop, own_samples(hop), hop->stage[0], hop->x);
        return TUTTI_OK;
    case TUTTI_HOP_SHARE:
        copy(m, hop->x + hop->cuts[0][hop->member], from, (size_t)n * hop->row);
        return tutti_move_carry_out(m, unit, hop->move[0]);
    case TUTTI_HOP_MERGE:
        copy(m, hop->stage[0] + hop->cuts[0][hop->member], from,
             (size_t)group_samples(hop) * own_features(hop));
        TUTTI_TRY(tutti_move_carry_out(m, unit, hop->move[0]));
        join_features(m, hop, group_samples(hop), hop->stage[0], hop->x);
    }
    return TUTTI_OK;
}

tutti_status tutti_hops_forward(tutti_model *m, tutti_unit *unit, int k, const tutti_pass *pass)
{
    tutti_edge *edge = &unit->edges[k];
    for (int h = 0; h < edge->hop_count; h++) {
        const float *from = source(m, edge, h);
        if (!from) from = tutti_input_form(m, unit, pass);
        TUTTI_TRY(hop_forward(m, unit, &edge->hops[h], from, pass->n));
    }
    return TUTTI_OK;
}

/* ---- backward ---- */

/* This member's strip of a reduced gradient, masked by the ReLU it goes back through. */
static void take_strip(const tutti_model *m, const float *sum, size_t count, const float *mask,
                       float *to)
{
    if (stands_in(m, count)) return;
    const tutti_exec exec = {m->options.row, m->options.team};
    if (mask) tutti_relu_backward(exec, count, sum, mask, to);
    else tutti_scale(exec, count, 1, sum, to);
}

/* Brings what is sent next to each other. */
static void hop_pack_back(const tutti_model *m, tutti_hop *hop)
{
    if (hop->kind == TUTTI_HOP_ASSEMBLE)
        part_features(m, hop, own_samples(hop), hop->partial[0], hop->stage[1]);
    if (hop->kind == TUTTI_HOP_MERGE)
        for (int r = 0; r < hop->root_count; r++)
            part_features(m, hop, group_samples(hop), hop->partial[r], hop->ordered[r]);
}

static tutti_status hop_backward(tutti_model *m, tutti_unit *unit, tutti_hop *hop,
                                 const float *mask, float *to)
{
    const size_t own = hop->cuts[0][hop->member], count = hop->cuts[0][hop->member + 1] - own;
    float *const *sums = hop->kind == TUTTI_HOP_MERGE ? hop->ordered : hop->partial;
    TUTTI_TRY(tutti_move_carry_out(m, unit, hop->move[1]));
    if (hop->kind != TUTTI_HOP_ASSEMBLE) take_strip(m, sums[0] + own, count, mask, to);
    return TUTTI_OK;
}

tutti_status tutti_hops_start_back(tutti_model *m, tutti_unit *unit, int k)
{
    const tutti_model_hooks *hooks = &m->options.hooks;
    tutti_edge *edge = &unit->edges[k];
    if (!edge->hop_count) return TUTTI_OK;
    tutti_hop *hop = &edge->hops[edge->hop_count - 1];
    hop_pack_back(m, hop);
    return hooks->start_move ? hooks->start_move(hooks->user, hop->move[1]) : TUTTI_OK;
}

tutti_status tutti_hops_backward(tutti_model *m, tutti_unit *unit, int k)
{
    tutti_edge *edge = &unit->edges[k];
    const bool relu = edge->from >= 0 && tutti_ends_in_gate(m->units[edge->from].layer);
    for (int h = edge->hop_count - 1; h >= 0; h--) {
        if (h < edge->hop_count - 1) hop_pack_back(m, &edge->hops[h]);
        TUTTI_TRY(hop_backward(m, unit, &edge->hops[h], relu ? source(m, edge, h) : NULL,
                               target(edge, h)));
    }
    return TUTTI_OK;
}
