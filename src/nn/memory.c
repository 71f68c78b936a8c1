/* Where everything of a step lies. All of it gets a place in one arena, by lifetimes: the forward
 * pass of layer i is time i, its backward pass time 2*layers-1-i, a late weight gradient time
 * 2*layers+i, and what does not live at the same time may share a place (nn/pack.h). An output
 * lives until its last reader, forward or backward. So little is needed in the backward pass:
 *
 *   - a ReLU has no backward pass: whoever reads its output zeroes the gradient where its own
 *     input is not positive;
 *   - max pooling keeps 16 bits per output and masks by its output, so the large output of a
 *     convolution in front of it dies at once;
 *   - dropout draws its numbers again;
 *   - elementwise layers work in place where nobody else needs what they overwrite. */
#include "base/memory.h"
#include "nn/node.h"
#include "nn/pack.h"

typedef struct planner {
    tutti_model *model;
    tutti_piece *pieces;
    int count;
} planner;

static int backward_time(const tutti_model *m, int node)
{
    return 2 * m->node_count - 1 - node;
}

/* When its weight gradient is computed. */
static int weights_time(const tutti_model *m, int node)
{
    return m->nodes[node].late ? 2 * m->node_count + node : backward_time(m, node);
}

static int end_time(const tutti_model *m)
{
    return 3 * m->node_count;
}

static int new_piece(planner *p, size_t bytes, int begin, int end)
{
    p->pieces[p->count] = (tutti_piece){.bytes = bytes, .begin = begin, .end = end};
    return p->count++;
}

static void lives_at(planner *p, int piece, int time)
{
    if (time < p->pieces[piece].begin) p->pieces[piece].begin = time;
    if (time > p->pieces[piece].end) p->pieces[piece].end = time;
}

static int consumers(const tutti_model *m, int from)
{
    int count = 0;
    for (int i = from + 1; i < m->node_count; i++)
        for (int k = 0; k < m->nodes[i].layer->input_count; k++)
            count += m->nodes[i].edges[k].from == from;
    return count;
}

static bool is_smooth(const tutti_layer *layer) /* derives from its own output */
{
    return layer->kind == TUTTI_KIND_SIGMOID || layer->kind == TUTTI_KIND_TANH ||
           layer->activation == TUTTI_ACT_SIGMOID || layer->activation == TUTTI_ACT_TANH;
}

/* May the layer write over its input? A ReLU and dropout leave positive what was positive, or
 * their gradient is zero there, so that a mask made of their output is as good as one made of
 * their input. */
static bool works_in_place(const tutti_model *m, const tutti_node *node)
{
    const int from = node->edges[0].from;
    if (!tutti_is_elementwise(node->layer) || from == TUTTI_NET_INPUT || consumers(m, from) != 1)
        return false;
    const tutti_layer *below = m->nodes[from].layer;
    if (m->options.forward_only) return true;
    if (!is_smooth(node->layer)) return !is_smooth(below);
    return below->weight >= 0 && below->activation == TUTTI_ACT_NONE;
}

static bool edge_ends_in_relu(const tutti_model *m, const tutti_edge *edge)
{
    return edge->from != TUTTI_NET_INPUT && tutti_ends_in_relu(m->nodes[edge->from].layer);
}

/* Does the layer's backward pass read this input? Its own output? */
static bool needs_x(const tutti_model *m, const tutti_node *node, const tutti_edge *edge)
{
    switch (node->layer->kind) {
    case TUTTI_KIND_CONV:
    case TUTTI_KIND_FC: return true;
    case TUTTI_KIND_LRN: return edge->wants_dx;
    case TUTTI_KIND_MAXPOOL:
    case TUTTI_KIND_RELU: return false;
    default: return edge->wants_dx && edge_ends_in_relu(m, edge);
    }
}

static bool needs_y(const tutti_model *m, const tutti_node *node)
{
    if (node->layer->kind == TUTTI_KIND_MAXPOOL) return edge_ends_in_relu(m, &node->edges[0]);
    return is_smooth(node->layer) || node->layer->kind == TUTTI_KIND_SOFTMAX;
}

bool tutti_edge_wants_tight(const tutti_model *model, const tutti_node *node, int edge)
{
    return node->edges[edge].from == TUTTI_NET_INPUT && node->layer->window.compact &&
           tutti_shape_count(model->net->input) != tutti_net_input_floats(model->net);
}

bool tutti_edge_wants_blocked(const tutti_model *model, const tutti_node *node, int edge)
{
    return node->edges[edge].from == TUTTI_NET_INPUT && tutti_net_input_is_compact(model->net) &&
           !node->layer->window.compact && !node->layer->reads_compact;
}

/* The net's input in other forms, made before the first layer. */
static void plan_input(planner *p, int i, int edge)
{
    tutti_model *m = p->model;
    const tutti_node *node = &m->nodes[i];
    const size_t bytes = (size_t)m->samples * sizeof(float);
    int *piece;
    size_t floats;
    if (tutti_edge_wants_tight(m, node, edge)) {
        piece = &m->tight_piece;
        floats = tutti_shape_count(m->net->input);
    } else if (tutti_edge_wants_blocked(m, node, edge)) {
        piece = &m->blocked_piece;
        floats = tutti_shape_floats(m->net->input);
    } else return;
    if (*piece < 0) *piece = new_piece(p, floats * bytes, 0, 0);
    lives_at(p, *piece, i);
    if (!m->options.forward_only && needs_x(m, node, &node->edges[edge]))
        lives_at(p, *piece, weights_time(m, i));
}

/* What a layer reads, forward and perhaps backward: with hops between, the layer reads the last
 * hop's copy, and what goes into a hop is needed again where the hop masks by it. */
static void plan_reading(planner *p, int i, int k)
{
    tutti_model *m = p->model;
    tutti_edge *edge = &m->nodes[i].edges[k];
    const bool again = !m->options.forward_only && needs_x(m, &m->nodes[i], edge);
    const bool masks = !m->options.forward_only && edge->wants_dx && edge_ends_in_relu(m, edge);
    int source = edge->from < 0 ? -1 : m->nodes[edge->from].y_piece;
    for (int h = 0; h < edge->hop_count; h++) {
        tutti_hop *hop = &edge->hops[h];
        if (source >= 0) lives_at(p, source, i);
        if (source >= 0 && masks && hop->kind != TUTTI_HOP_ASSEMBLE)
            lives_at(p, source, backward_time(m, i));
        hop->x_piece = source = new_piece(p, tutti_hop_floats(hop) * sizeof(float), i, i);
        if (hop->kind != TUTTI_HOP_SPREAD)
            hop->stage_piece[0] = new_piece(p, tutti_hop_floats(hop) * sizeof(float), i, i);
    }
    if (source >= 0) lives_at(p, source, i);
    if (source >= 0 && again) lives_at(p, source, weights_time(m, i));
}

static void plan_output(planner *p, int i)
{
    tutti_model *m = p->model;
    tutti_node *node = &m->nodes[i];
    for (int k = 0; k < node->layer->input_count; k++) {
        if (node->edges[k].from == TUTTI_NET_INPUT) plan_input(p, i, k);
        plan_reading(p, i, k);
    }
    node->y_piece = works_in_place(m, node)
                        ? m->nodes[node->edges[0].from].y_piece
                        : new_piece(p, (size_t)node->samples * node->count * sizeof(float), i, i);
    if (!m->options.forward_only && needs_y(m, node))
        lives_at(p, node->y_piece, backward_time(m, i));
    if (node->layer->kind == TUTTI_KIND_SOFTMAX) /* the caller reads it */
        lives_at(p, node->y_piece, end_time(m));
}

static void plan_hops_back(planner *p, tutti_edge *edge, int now)
{
    for (int h = 0; h < edge->hop_count; h++) {
        tutti_hop *hop = &edge->hops[h];
        const size_t bytes = tutti_hop_floats(hop) * sizeof(float);
        hop->partial_piece = new_piece(p, (size_t)hop->root_count * bytes, now, now);
        if (hop->kind == TUTTI_HOP_MERGE)
            hop->ordered_piece = new_piece(p, (size_t)hop->root_count * bytes, now, now);
        if (hop->kind == TUTTI_HOP_ASSEMBLE) hop->stage_piece[1] = new_piece(p, bytes, now, now);
    }
}

/* From above: where the gradients by the node's inputs go. */
static void plan_gradients(planner *p, int i)
{
    tutti_model *m = p->model;
    const int now = backward_time(m, i);
    tutti_node *node = &m->nodes[i];
    if (node->late && node->dy_piece >= 0) lives_at(p, node->dy_piece, weights_time(m, i));
    for (int k = 0; k < node->layer->input_count; k++) {
        tutti_edge *edge = &node->edges[k];
        if (!edge->wants_dx) continue;
        plan_hops_back(p, edge, now);
        tutti_node *below = &m->nodes[edge->from];
        const size_t bytes = (size_t)below->samples * below->count * sizeof(float);
        edge->adds = below->dy_piece >= 0;
        if (edge->adds) {
            edge->dx_piece = new_piece(p, bytes, now, now);
            continue;
        }
        const bool alias = tutti_is_elementwise(node->layer) && consumers(m, edge->from) == 1;
        below->dy_piece = alias ? node->dy_piece : new_piece(p, bytes, now, now);
        lives_at(p, below->dy_piece, backward_time(m, edge->from));
        edge->dx_piece = below->dy_piece;
    }
}

static size_t scratch_bytes(const tutti_node *node)
{
    if (node->conv) return tutti_conv_scratch(node->conv);
    return node->fc ? tutti_fc_scratch(node->fc, node->samples) : 0;
}

static void plan_own(planner *p, int i)
{
    tutti_model *m = p->model;
    tutti_node *node = &m->nodes[i];
    const int later = backward_time(m, i), latest = weights_time(m, i);
    const size_t scratch = scratch_bytes(node);
    if (scratch) node->scratch_piece[TUTTI_PASS_FORWARD] = new_piece(p, scratch, i, i);
    if (m->options.forward_only) return;
    if (scratch) node->scratch_piece[TUTTI_PASS_WEIGHTS] = new_piece(p, scratch, latest, latest);
    node->scratch_piece[TUTTI_PASS_DATA] = scratch && node->late
                                               ? new_piece(p, scratch, later, later)
                                               : node->scratch_piece[TUTTI_PASS_WEIGHTS];
    if (node->layer->kind == TUTTI_KIND_MAXPOOL && node->edges[0].wants_dx)
        node->tap_piece =
            new_piece(p, tutti_max_pool_tap_bytes(&node->pool, node->samples), i, later);
}

static void *address(const planner *p, int piece)
{
    return piece < 0 ? NULL : p->model->arena + p->pieces[piece].offset;
}

static void set_hop_addresses(const planner *p, tutti_hop *hop)
{
    const size_t floats = tutti_hop_floats(hop);
    float *partial = address(p, hop->partial_piece), *ordered = address(p, hop->ordered_piece);
    hop->x = address(p, hop->x_piece);
    hop->stage[0] = address(p, hop->stage_piece[0]);
    hop->stage[1] = address(p, hop->stage_piece[1]);
    for (int r = 0; r < hop->root_count; r++) {
        hop->partial[r] = partial ? partial + (size_t)r * floats : NULL;
        hop->ordered[r] = ordered ? ordered + (size_t)r * floats : NULL;
    }
}

static void set_edge_addresses(const planner *p, tutti_edge *edge)
{
    tutti_model *m = p->model;
    edge->x = edge->from == TUTTI_NET_INPUT ? NULL : m->nodes[edge->from].y;
    edge->dx = edge->dx_below = address(p, edge->dx_piece);
    for (int h = 0; h < edge->hop_count; h++) {
        set_hop_addresses(p, &edge->hops[h]);
        edge->x = edge->hops[h].x;
        edge->dx = edge->hops[h].partial[0];
    }
    edge->mask = edge_ends_in_relu(m, edge) ? edge->x : NULL;
}

static void set_addresses(const planner *p)
{
    tutti_model *m = p->model;
    m->tight = address(p, m->tight_piece);
    m->blocked = address(p, m->blocked_piece);
    for (int i = 0; i < m->node_count; i++) {
        tutti_node *node = &m->nodes[i];
        node->y = address(p, node->y_piece);
        node->dy = address(p, node->dy_piece);
        node->tap = address(p, node->tap_piece);
        for (int pass = 0; pass < TUTTI_PASSES; pass++)
            node->scratch[pass] = address(p, node->scratch_piece[pass]);
        for (int k = 0; k < node->layer->input_count; k++) set_edge_addresses(p, &node->edges[k]);
    }
}

static int most_pieces(const tutti_model *m)
{
    int count = 2;
    for (int i = 0; i < m->node_count; i++) {
        count += 6 + m->nodes[i].layer->input_count;
        for (int k = 0; k < m->nodes[i].layer->input_count; k++)
            count += 5 * m->nodes[i].edges[k].hop_count;
    }
    return count;
}

tutti_status tutti_model_plan_memory(tutti_model *m)
{
    planner p = {.model = m};
    tutti_status s = TUTTI_OK;
    if ((s = tutti_alloc(&p.pieces, (size_t)most_pieces(m), sizeof *p.pieces))) goto out;
    for (int i = 0; i < m->node_count; i++) plan_output(&p, i);
    for (int i = 0; i < m->node_count; i++) plan_own(&p, i);
    for (int i = m->node_count - 1; i >= 0 && !m->options.forward_only; i--) plan_gradients(&p, i);
    if ((s = tutti_pack(p.pieces, p.count, &m->arena_bytes))) goto out;
    m->separate_bytes = 0;
    for (int i = 0; i < p.count; i++) m->separate_bytes += p.pieces[i].bytes;
    if (m->measure_only) goto out;
    if ((s = tutti_alloc(&m->arena, m->arena_bytes, 1))) goto out;
    set_addresses(&p);
out:
    tutti_free(p.pieces);
    return s;
}
