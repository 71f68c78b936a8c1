/* When the loss is not a number: which layer was first?
 *
 * Outputs that nobody reads again are gone by the end of the forward pass, so the pass is done
 * again, layer by layer, and stopped at the first odd one: same inputs, same parameters, same
 * values. Layers behind a move between workers cannot be done again by one worker alone; of these
 * what arrived by the move and what is still there of the outputs are looked at. */
#include <math.h>

#include "nn/node.h"

static size_t first_odd(const float *x, size_t count)
{
    size_t i = 0;
    while (i < count && isfinite(x[i])) i++;
    return i;
}

static bool has_hops(const tutti_node *node)
{
    for (int k = 0; k < node->layer->input_count; k++)
        if (node->edges[k].hop_count) return true;
    return false;
}

static bool find_in_samples(const tutti_model *m, const tutti_pass *pass, tutti_oddity *odd)
{
    const size_t each = tutti_net_input_floats(m->net), count = (size_t)pass->n * each;
    const size_t at = first_odd(pass->samples, count);
    if (at == count) return false;
    *odd = (tutti_oddity){TUTTI_ODD_SAMPLE, -1, m->first_sample + (int)(at / each)};
    return true;
}

/* A layer with parameters keeps what it reads for its backward pass. */
static bool find_in_arrivals(const tutti_node *node, tutti_oddity *odd)
{
    const tutti_edge *edge = &node->edges[0];
    if (!node->region.count || !edge->hop_count || edge->from == TUTTI_NET_INPUT) return false;
    const tutti_hop *last = &edge->hops[edge->hop_count - 1];
    const size_t count = tutti_hop_floats(last);
    if (first_odd(last->x, count) == count) return false;
    *odd = (tutti_oddity){TUTTI_ODD_OUTPUT, edge->from, -1};
    return true;
}

static bool find_in_node(const tutti_model *m, const tutti_node *node, int n, tutti_oddity *odd)
{
    const int layer = (int)(node - m->nodes);
    const size_t own = node->region.count, count = (size_t)n * node->count;
    if (own && first_odd(m->parameters + node->region.offset, own) < own) {
        *odd = (tutti_oddity){TUTTI_ODD_PARAMETERS, layer, -1};
        return true;
    }
    const size_t at = first_odd(node->y, count);
    if (at == count) return false;
    *odd = (tutti_oddity){TUTTI_ODD_OUTPUT, layer, node->first_sample + (int)(at / node->count)};
    return true;
}

void tutti_model_find_oddity(tutti_model *m, const tutti_pass *pass)
{
    bool alone = true;
    if (m->oddity.kind != TUTTI_ODD_NOTHING) return;
    if (find_in_samples(m, pass, &m->oddity)) return;
    tutti_prepare_input(m, pass);
    for (int i = 0; i < m->node_count; i++) {
        tutti_node *node = &m->nodes[i];
        if (has_hops(node)) alone = false;
        if (alone && tutti_node_forward(m, node, pass) != TUTTI_OK) break;
        if (find_in_arrivals(node, &m->oddity)) return;
        if (find_in_node(m, node, tutti_node_samples(node, pass->n), &m->oddity)) return;
    }
    m->oddity = (tutti_oddity){TUTTI_ODD_LOSS, -1, -1};
}
