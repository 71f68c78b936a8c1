/* Sums of two layers, the end of a residual branch: where the later one, a normalisation that
 * nobody else reads, can add the earlier one's output in its own pass, the sum costs no pass of its
 * own: its output is not written and read once more. The bits are the same, for what is added is
 * rounded before. */
#include "nn/unit.h"

static bool is_plain_or_gate(const tutti_layer *layer)
{
    return !layer->activation || layer->activation->is_gate;
}

static bool has_hops(const tutti_unit *unit)
{
    return unit->edges[0].hop_count || unit->edges[1].hop_count;
}

static void fuse(tutti_model *m, int number)
{
    tutti_unit *sum = &m->units[number];
    const tutti_layer *layer = sum->layer;
    if (!layer->kind->is_sum || layer->input_count != 2 || !is_plain_or_gate(layer)) return;
    const int a = layer->from[0], b = layer->from[1], later = a > b ? a : b, other = a > b ? b : a;
    if (other == TUTTI_NET_INPUT || has_hops(sum)) return;
    tutti_unit *unit = &m->units[later];
    if (!unit->layer->kind->fuses_sum || unit->layer->activation) return;
    if (tutti_unit_consumers(m, later) != 1) return;
    unit->does_sum = number;
    unit->plus_from = other;
    sum->sum_done_by = later;
}

void tutti_model_fuse(tutti_model *m)
{
    for (int i = 0; i < m->unit_count; i++)
        m->units[i].does_sum = m->units[i].sum_done_by = m->units[i].plus_from = -1;
    for (int i = 0; i < m->unit_count; i++) fuse(m, i);
}
