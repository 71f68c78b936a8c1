/* When the loss is not a number: which layer was first?
 *
 * Outputs that nobody reads again are gone by the end of the forward pass, so the pass is repeated,
 * layer by layer, up to the first nonfinite output: same inputs, same parameters, same values. One
 * worker alone cannot repeat layers that follow a move between workers; for these it looks at what
 * arrived by the move and at the outputs that are still there. */
#include <math.h>

#include "nn/unit.h"

static size_t first_nonfinite(const float *x, size_t count)
{
    size_t i = 0;
    while (i < count && isfinite(x[i])) i++;
    return i;
}

static bool has_moves(const tutti_unit *unit)
{
    for (int k = 0; k < unit->layer->input_count; k++)
        if (unit->edges[k].hop_count) return true;
    return unit->sums_move[0] >= 0;
}

static bool find_in_samples(const tutti_model *m, const tutti_pass *pass, tutti_nonfinite *found)
{
    const size_t each = tutti_net_input_floats(m->net), count = (size_t)pass->n * each;
    const size_t at = first_nonfinite(pass->samples, count);
    if (at == count) return false;
    *found = (tutti_nonfinite){TUTTI_NONFINITE_SAMPLE, -1, pass->first_sample + (int)(at / each)};
    return true;
}

/* The sample of the minibatch with the first nonfinite one among rows of 'row' floats that the unit
 * has of its samples; -1: all are finite. */
static int find_in_rows(const tutti_model *m, const tutti_unit *unit, const tutti_pass *pass,
                        const float *rows, size_t row)
{
    for (int r = 0; r < unit->run_count; r++) {
        const tutti_grain_run run = tutti_unit_run(m, unit, pass, r);
        const size_t count = (size_t)run.samples * row;
        const size_t at = first_nonfinite(rows + (size_t)run.at * row, count);
        if (at < count) return run.first_sample + (int)(at / row);
    }
    return -1;
}

/* A layer with parameters keeps what it reads for its backward pass. */
static bool find_in_arrivals(const tutti_model *m, const tutti_unit *unit, const tutti_pass *pass,
                             tutti_nonfinite *found)
{
    const tutti_edge *edge = &unit->edges[0];
    if (!unit->region.count || !edge->hop_count || edge->from == TUTTI_NET_INPUT) return false;
    const tutti_hop *last = &edge->hops[edge->hop_count - 1];
    if (find_in_rows(m, unit, pass, last->x, last->row) < 0) return false;
    *found = (tutti_nonfinite){TUTTI_NONFINITE_OUTPUT, edge->from, -1};
    return true;
}

static bool find_in_unit(const tutti_model *m, const tutti_unit *unit, const tutti_pass *pass,
                         tutti_nonfinite *found)
{
    const int layer = (int)(unit - m->units);
    const size_t own = unit->region.count;
    if (own && first_nonfinite(m->parameters + unit->region.offset, own) < own) {
        *found = (tutti_nonfinite){TUTTI_NONFINITE_PARAMETERS, layer, -1};
        return true;
    }
    const int sample = find_in_rows(m, unit, pass, unit->y, unit->count);
    *found = (tutti_nonfinite){TUTTI_NONFINITE_OUTPUT, layer, sample};
    return sample >= 0;
}

void tutti_model_find_nonfinite(tutti_model *m, const tutti_pass *pass)
{
    bool alone = true;
    if (m->nonfinite.kind != TUTTI_NONFINITE_NOTHING) return;
    if (find_in_samples(m, pass, &m->nonfinite)) return;
    tutti_prepare_input(m, pass);
    for (int i = 0; i < m->unit_count; i++) {
        tutti_unit *unit = &m->units[i];
        if (has_moves(unit)) alone = false;
        if (alone && tutti_unit_forward(m, unit, pass) != TUTTI_OK) break;
        if (find_in_arrivals(m, unit, pass, &m->nonfinite)) return;
        if (find_in_unit(m, unit, pass, &m->nonfinite)) return;
    }
    m->nonfinite = (tutti_nonfinite){TUTTI_NONFINITE_LOSS, -1, -1};
}
