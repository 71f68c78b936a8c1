/* Backwards through the net: for each layer the weight gradient first, so that it can travel
 * while backward-data and the layers below are computed; in split layers the other way round. Late
 * weight gradients (nn/model.h) come at the end, the first layer's first. */
#include "base/clock.h"
#include "base/memory.h"
#include "kernel/ops.h"
#include "nn/node.h"

/* What a kind's function gets. */
typedef struct call {
    tutti_model *m;
    tutti_node *node;
    const tutti_pass *pass;
    const tutti_kernels *row;
    tutti_team *team;
    int n;
    size_t count;         /* floats of the output, all samples */
    const tutti_edge *in; /* the first input */
    float *dx;            /* its gradient's place */
} call;

/* ---- gradients by weights ---- */

/* One partial gradient for each subtree of grains that is all ours. */
static void weight_gradient(const call *c)
{
    const tutti_node *node = c->node;
    const float *x = tutti_node_x(c->m, node, 0, c->pass);
    for (int r = 0; r < node->root_count; r++) {
        const tutti_subtree root = node->roots[r];
        const int first = (root.index << root.level) - node->first_grain;
        const tutti_grains grains = {.count = 1 << root.level, .begin = node->grain_begin + first};
        float *dw = node->gradient + (size_t)r * node->region.count;
        float *db = node->bias ? dw + node->region.weight_count : NULL;
        if (node->conv)
            tutti_conv_backward_weights(node->conv, c->team, node->scratch[TUTTI_PASS_WEIGHTS],
                                        &grains, x, node->dy, dw, db);
        else
            tutti_fc_backward_weights(node->fc, c->team, node->scratch[TUTTI_PASS_WEIGHTS], &grains,
                                      node->channels, x, node->dy, dw, db);
    }
}

/* ---- gradients by inputs: one function a kind ---- */

static void backward_conv(const call *c)
{
    tutti_conv_backward_data(c->node->conv, c->team, c->node->scratch[TUTTI_PASS_DATA], c->n,
                             c->node->dy, c->node->weight, c->in->mask, c->dx);
}

static void backward_fc(const call *c)
{
    const tutti_node *node = c->node;
    if (node->members > 1)
        tutti_fc_backward_data_roots(node->fc, c->team, node->scratch[TUTTI_PASS_DATA], c->n,
                                     node->first_leaf, node->end_leaf, node->dy, node->weight,
                                     c->in->hops[c->in->hop_count - 1].partial);
    else
        tutti_fc_backward_data(node->fc, c->team, node->scratch[TUTTI_PASS_DATA], c->n,
                               node->channels, node->dy, node->weight, c->in->mask, c->dx);
}

static void backward_maxpool(const call *c)
{
    tutti_max_pool_backward(c->row, c->team, &c->node->pool, c->n, c->node->dy, c->node->tap,
                            c->in->mask ? c->node->y : NULL, c->dx);
}

static void backward_avgpool(const call *c)
{
    tutti_average_pool_backward(c->row, c->team, &c->node->pool, c->n, c->node->dy, c->in->mask,
                                c->dx);
}

/* dx = dy where mask > 0 (NULL: everywhere); nothing to do where both are one and the same. */
static void pass_on(const call *c, const float *mask, float *dx)
{
    if (mask) tutti_relu_backward(c->row, c->team, c->count, c->node->dy, mask, dx);
    else if (dx != c->node->dy) tutti_scale(c->row, c->team, c->count, 1, c->node->dy, dx);
}

static void backward_relu(const call *c)
{
    pass_on(c, NULL, c->dx); /* the readers of y have masked dy */
}

static void backward_sigmoid(const call *c)
{
    tutti_sigmoid_backward(c->row, c->team, c->count, c->node->dy, c->node->y, c->in->mask, c->dx);
}

static void backward_tanh(const call *c)
{
    tutti_tanh_backward(c->row, c->team, c->count, c->node->dy, c->node->y, c->in->mask, c->dx);
}

static void backward_dropout(const call *c)
{
    const tutti_dropout dropout = tutti_node_dropout(c->m, c->node, c->pass->step);
    tutti_dropout_backward(c->row, c->team, &dropout, c->n, c->node->channels, c->node->pixels,
                           c->node->dy, c->in->mask, c->dx);
}

static void backward_lrn(const call *c)
{
    tutti_lrn_backward(c->row, c->team, &c->node->layer->lrn, c->n, c->node->channels,
                       c->node->pixels, tutti_node_x(c->m, c->node, 0, c->pass), c->node->dy,
                       c->in->mask, c->dx);
}

static void backward_add(const call *c)
{
    for (int k = 0; k < c->node->layer->input_count; k++)
        if (c->node->edges[k].wants_dx) pass_on(c, c->node->edges[k].mask, c->node->edges[k].dx);
}

static void backward_concat(const call *c)
{
    const tutti_layer *layer = c->node->layer;
    const float *mask[TUTTI_MAX_INPUTS];
    float *dx[TUTTI_MAX_INPUTS];
    int channels[TUTTI_MAX_INPUTS];
    for (int k = 0; k < layer->input_count; k++) {
        const tutti_edge *edge = &c->node->edges[k];
        mask[k] = edge->mask;
        dx[k] = edge->wants_dx ? edge->dx : NULL;
        channels[k] =
            edge->from == TUTTI_NET_INPUT ? c->m->net->input.c : c->m->nodes[edge->from].channels;
    }
    tutti_concat_backward(c->row, c->team, c->n, layer->input_count, channels, c->node->pixels,
                          c->node->dy, mask, dx);
}

static void backward_softmax(const call *c)
{
    tutti_softmax_backward(c->row, c->team, c->n, c->node->channels, c->node->y, c->pass->labels,
                           1.0f / (float)c->m->options.batch, c->dx);
    if (c->in->mask) tutti_relu_backward(c->row, c->team, c->count, c->dx, c->in->mask, c->dx);
}

static void (*const backward_table[TUTTI_KIND_COUNT])(const call *) = {
    [TUTTI_KIND_CONV] = backward_conv,       [TUTTI_KIND_FC] = backward_fc,
    [TUTTI_KIND_MAXPOOL] = backward_maxpool, [TUTTI_KIND_AVGPOOL] = backward_avgpool,
    [TUTTI_KIND_RELU] = backward_relu,       [TUTTI_KIND_SIGMOID] = backward_sigmoid,
    [TUTTI_KIND_TANH] = backward_tanh,       [TUTTI_KIND_DROPOUT] = backward_dropout,
    [TUTTI_KIND_LRN] = backward_lrn,         [TUTTI_KIND_ADD] = backward_add,
    [TUTTI_KIND_CONCAT] = backward_concat,   [TUTTI_KIND_SOFTMAX] = backward_softmax,
};

/* Sigmoid and tanh behind a layer's own sum: dy becomes the gradient by that sum. */
static void deactivate(const call *c)
{
    tutti_node *node = c->node;
    const double start = tutti_now();
    if (node->layer->activation != TUTTI_ACT_SIGMOID && node->layer->activation != TUTTI_ACT_TANH)
        return;
    if (node->layer->activation == TUTTI_ACT_SIGMOID)
        tutti_sigmoid_backward(c->row, c->team, c->count, node->dy, node->y, NULL, node->dy);
    if (node->layer->activation == TUTTI_ACT_TANH)
        tutti_tanh_backward(c->row, c->team, c->count, node->dy, node->y, NULL, node->dy);
    tutti_node_computed(c->m, node, TUTTI_PASS_WEIGHTS, start);
}

/* Where an input has several readers their gradients are added, the last reader's first. */
static void add_to_others(const call *c)
{
    for (int k = 0; k < c->node->layer->input_count; k++) {
        const tutti_edge *edge = &c->node->edges[k];
        if (!edge->wants_dx || !edge->adds || c->m->options.stand_in) continue;
        const tutti_node *below = &c->m->nodes[edge->from];
        tutti_add(c->row, c->team, (size_t)below->samples * below->count, below->dy, edge->dx_below,
                  false, below->dy);
    }
}

static bool wants_input_gradients(const tutti_node *node)
{
    for (int k = 0; k < node->layer->input_count; k++)
        if (node->edges[k].wants_dx) return true;
    return false;
}

/* Computes them, and lets those that must move begin. */
static tutti_status input_gradients(const call *c)
{
    const double start = tutti_now();
    if (!tutti_node_stand_in(c->m, c->node, TUTTI_PASS_DATA))
        backward_table[c->node->layer->kind](c);
    tutti_node_computed(c->m, c->node, TUTTI_PASS_DATA, start);
    for (int k = 0; k < c->node->layer->input_count; k++)
        if (c->node->edges[k].wants_dx) TUTTI_TRY(tutti_hops_start_back(c->m, c->node, k));
    return TUTTI_OK;
}

static tutti_status deliver_input_gradients(const call *c)
{
    for (int k = 0; k < c->node->layer->input_count; k++)
        if (c->node->edges[k].wants_dx) TUTTI_TRY(tutti_hops_backward(c->m, c->node, k));
    add_to_others(c);
    return TUTTI_OK;
}

static tutti_status parameter_gradients(const call *c)
{
    const tutti_model_hooks *hooks = &c->m->options.hooks;
    tutti_node *node = c->node;
    if (!node->region.count) return TUTTI_OK;
    const double start = tutti_now();
    if (!tutti_node_stand_in(c->m, node, TUTTI_PASS_WEIGHTS)) weight_gradient(c);
    tutti_node_computed(c->m, node, TUTTI_PASS_WEIGHTS, start);
    return hooks->gradient_ready ? hooks->gradient_ready(hooks->user, (int)(node - c->m->nodes))
                                 : TUTTI_OK;
}

static call call_of(tutti_model *m, tutti_node *node, const tutti_pass *pass)
{
    const int n = tutti_node_samples(node, pass->n);
    return (call){.m = m,
                  .node = node,
                  .pass = pass,
                  .row = m->options.row,
                  .team = m->options.team,
                  .n = n,
                  .count = (size_t)n * node->count,
                  .in = &node->edges[0],
                  .dx = node->edges[0].dx};
}

static tutti_status release_weights(const call *c)
{
    const tutti_model_hooks *hooks = &c->m->options.hooks;
    return c->node->region.count && hooks->weights_released
               ? hooks->weights_released(hooks->user, (int)(c->node - c->m->nodes))
               : TUTTI_OK;
}

/* The weight gradient comes first, so that it can travel as long as possible. Only where the
 * gradient by the input must travel too, and everybody waits for that, it comes second, and the
 * weight gradient is computed meanwhile. */
static tutti_status node_backward(tutti_model *m, tutti_node *node, const tutti_pass *pass)
{
    const call c = call_of(m, node, pass);
    const bool has_inputs = wants_input_gradients(node);
    const bool inputs_first = has_inputs && node->members > 1;
    if (!m->options.stand_in) deactivate(&c);
    if (inputs_first) TUTTI_TRY(input_gradients(&c));
    if (!node->late) TUTTI_TRY(parameter_gradients(&c));
    if (has_inputs && !inputs_first) TUTTI_TRY(input_gradients(&c));
    if (has_inputs) TUTTI_TRY(deliver_input_gradients(&c));
    return node->late ? TUTTI_OK : release_weights(&c);
}

static tutti_status late_backward(tutti_model *m, tutti_node *node, const tutti_pass *pass)
{
    const call c = call_of(m, node, pass);
    TUTTI_TRY(parameter_gradients(&c));
    return release_weights(&c);
}

tutti_status tutti_backward(tutti_model *m, const tutti_pass *pass)
{
    for (int i = m->node_count - 1; i >= 0; i--) {
        tutti_node *node = &m->nodes[i];
        if (node->dy || node->layer->kind == TUTTI_KIND_SOFTMAX)
            TUTTI_TRY(node_backward(m, node, pass));
    }
    for (int i = 0; i < m->node_count; i++) {
        tutti_node *node = &m->nodes[i];
        if (node->dy && node->late) TUTTI_TRY(late_backward(m, node, pass));
    }
    return TUTTI_OK;
}
