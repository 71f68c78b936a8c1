/* Backwards through the net: for each layer the weight gradient first, so that it can travel
 * while backward-data and the layers below are computed; in split layers the other way round. Late
 * weight gradients (nn/model.h) come at the end, the first layer's first. */
#include "base/clock.h"
#include "base/memory.h"
#include "kernel/ops.h"
#include "nn/unit.h"

/* What a kind's function gets. */
typedef struct call {
    tutti_model *m;
    tutti_unit *unit;
    const tutti_pass *pass;
    tutti_exec exec;
    int n;
    size_t count;         /* floats of the output, all samples */
    const tutti_edge *in; /* the first input */
    float *dx;            /* its gradient's place */
} call;

static tutti_extent extent_of(const call *c)
{
    return (tutti_extent){c->n, c->unit->channels, c->unit->pixels};
}

/* ---- gradients by weights ---- */

/* One partial gradient for each subtree of grains that is all ours. */
static void weight_gradient(const call *c)
{
    const tutti_unit *unit = c->unit;
    const float *x = tutti_unit_x(c->m, unit, 0, c->pass);
    for (int r = 0; r < unit->root_count; r++) {
        const tutti_subtree root = unit->roots[r];
        const int first = (root.index << root.level) - unit->first_grain;
        const tutti_grains grains = {.count = 1 << root.level, .begin = unit->grain_begin + first};
        float *dw = unit->gradient + (size_t)r * unit->region.count;
        float *db = unit->bias ? dw + unit->region.weight_count : NULL;
        const tutti_task task = {.team = c->exec.team,
                                 .scratch = unit->scratch[TUTTI_PASS_WEIGHTS],
                                 .grains = &grains,
                                 .outputs = unit->channels};
        if (unit->conv) tutti_conv_backward_weights(unit->conv, &task, x, unit->dy, dw, db);
        else tutti_fc_backward_weights(unit->fc, &task, x, unit->dy, dw, db);
    }
}

/* ---- gradients by inputs: one function a kind ---- */

static tutti_task data_task(const call *c)
{
    return (tutti_task){.team = c->exec.team,
                        .scratch = c->unit->scratch[TUTTI_PASS_DATA],
                        .n = c->n,
                        .outputs = c->unit->channels};
}

static void backward_conv(const call *c)
{
    const tutti_task task = data_task(c);
    tutti_conv_backward_data(c->unit->conv, &task, c->unit->dy, c->unit->weight, c->in->mask,
                             c->dx);
}

static void backward_fc(const call *c)
{
    const tutti_unit *unit = c->unit;
    const tutti_task task = data_task(c);
    if (unit->members > 1)
        tutti_fc_backward_data_roots(unit->fc, &task, unit->first_leaf, unit->end_leaf, unit->dy,
                                     unit->weight, c->in->hops[c->in->hop_count - 1].partial);
    else tutti_fc_backward_data(unit->fc, &task, unit->dy, unit->weight, c->in->mask, c->dx);
}

static void backward_maxpool(const call *c)
{
    tutti_max_pool_backward(c->exec, &c->unit->pool, c->n, c->unit->dy, c->unit->tap,
                            c->in->mask ? c->unit->y : NULL, c->dx);
}

static void backward_avgpool(const call *c)
{
    tutti_average_pool_backward(c->exec, &c->unit->pool, c->n, c->unit->dy, c->in->mask, c->dx);
}

/* dx = dy where mask > 0 (NULL: everywhere); nothing to do where both are one and the same. */
static void pass_on(const call *c, const float *mask, float *dx)
{
    if (mask) tutti_relu_backward(c->exec, c->count, c->unit->dy, mask, dx);
    else if (dx != c->unit->dy) tutti_scale(c->exec, c->count, 1, c->unit->dy, dx);
}

static void backward_relu(const call *c)
{
    pass_on(c, NULL, c->dx); /* the readers of y have masked dy */
}

static void backward_sigmoid(const call *c)
{
    tutti_sigmoid_backward(c->exec, c->count, c->unit->dy, c->unit->y, c->in->mask, c->dx);
}

static void backward_tanh(const call *c)
{
    tutti_tanh_backward(c->exec, c->count, c->unit->dy, c->unit->y, c->in->mask, c->dx);
}

static void backward_dropout(const call *c)
{
    const tutti_dropout dropout = tutti_unit_dropout(c->m, c->unit, c->pass->step);
    tutti_dropout_backward(c->exec, &dropout, extent_of(c), c->unit->dy, c->in->mask, c->dx);
}

static void backward_lrn(const call *c)
{
    tutti_lrn_backward(c->exec, &c->unit->layer->lrn, extent_of(c),
                       tutti_unit_x(c->m, c->unit, 0, c->pass), c->unit->dy, c->in->mask, c->dx);
}

static void backward_add(const call *c)
{
    for (int k = 0; k < c->unit->layer->input_count; k++)
        if (c->unit->edges[k].wants_dx) pass_on(c, c->unit->edges[k].mask, c->unit->edges[k].dx);
}

static void backward_concat(const call *c)
{
    const tutti_layer *layer = c->unit->layer;
    const float *mask[TUTTI_MAX_INPUTS];
    float *dx[TUTTI_MAX_INPUTS];
    int channels[TUTTI_MAX_INPUTS];
    for (int k = 0; k < layer->input_count; k++) {
        const tutti_edge *edge = &c->unit->edges[k];
        mask[k] = edge->mask;
        dx[k] = edge->wants_dx ? edge->dx : NULL;
        channels[k] =
            edge->from == TUTTI_NET_INPUT ? c->m->net->input.c : c->m->units[edge->from].channels;
    }
    const tutti_concat_shape shape = {c->n, c->unit->pixels, layer->input_count, channels};
    tutti_concat_backward(c->exec, &shape, c->unit->dy, mask, dx);
}

static void backward_softmax(const call *c)
{
    tutti_softmax_backward(c->exec, extent_of(c), c->unit->y, c->pass->labels,
                           1.0f / (float)c->m->options.batch, c->dx);
    if (c->in->mask) tutti_relu_backward(c->exec, c->count, c->dx, c->in->mask, c->dx);
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
    tutti_unit *unit = c->unit;
    const double start = tutti_now();
    if (unit->layer->activation != TUTTI_ACT_SIGMOID && unit->layer->activation != TUTTI_ACT_TANH)
        return;
    if (unit->layer->activation == TUTTI_ACT_SIGMOID)
        tutti_sigmoid_backward(c->exec, c->count, unit->dy, unit->y, NULL, unit->dy);
    if (unit->layer->activation == TUTTI_ACT_TANH)
        tutti_tanh_backward(c->exec, c->count, unit->dy, unit->y, NULL, unit->dy);
    tutti_unit_computed(c->m, unit, TUTTI_PASS_WEIGHTS, start);
}

/* Where an input has several readers their gradients are added, the last reader's first. */
static void add_to_others(const call *c)
{
    for (int k = 0; k < c->unit->layer->input_count; k++) {
        const tutti_edge *edge = &c->unit->edges[k];
        if (!edge->wants_dx || !edge->adds || c->m->options.stand_in) continue;
        const tutti_unit *below = &c->m->units[edge->from];
        tutti_add(c->exec, (size_t)below->samples * below->count, below->dy, edge->dx_below, false,
                  below->dy);
    }
}

static bool wants_input_gradients(const tutti_unit *unit)
{
    for (int k = 0; k < unit->layer->input_count; k++)
        if (unit->edges[k].wants_dx) return true;
    return false;
}

/* Computes them, and lets those that must move begin. */
static tutti_status input_gradients(const call *c)
{
    const double start = tutti_now();
    if (!tutti_unit_stand_in(c->m, c->unit, TUTTI_PASS_DATA))
        backward_table[c->unit->layer->kind](c);
    tutti_unit_computed(c->m, c->unit, TUTTI_PASS_DATA, start);
    for (int k = 0; k < c->unit->layer->input_count; k++)
        if (c->unit->edges[k].wants_dx) TUTTI_TRY(tutti_hops_start_back(c->m, c->unit, k));
    return TUTTI_OK;
}

static tutti_status deliver_input_gradients(const call *c)
{
    for (int k = 0; k < c->unit->layer->input_count; k++)
        if (c->unit->edges[k].wants_dx) TUTTI_TRY(tutti_hops_backward(c->m, c->unit, k));
    add_to_others(c);
    return TUTTI_OK;
}

static tutti_status parameter_gradients(const call *c)
{
    const tutti_model_hooks *hooks = &c->m->options.hooks;
    tutti_unit *unit = c->unit;
    if (!unit->region.count) return TUTTI_OK;
    const double start = tutti_now();
    if (!tutti_unit_stand_in(c->m, unit, TUTTI_PASS_WEIGHTS)) weight_gradient(c);
    tutti_unit_computed(c->m, unit, TUTTI_PASS_WEIGHTS, start);
    return hooks->gradient_ready ? hooks->gradient_ready(hooks->user, (int)(unit - c->m->units))
                                 : TUTTI_OK;
}

static call call_of(tutti_model *m, tutti_unit *unit, const tutti_pass *pass)
{
    const int n = tutti_unit_samples(unit, pass->n);
    return (call){.m = m,
                  .unit = unit,
                  .pass = pass,
                  .exec = {m->options.row, m->options.team},
                  .n = n,
                  .count = (size_t)n * unit->count,
                  .in = &unit->edges[0],
                  .dx = unit->edges[0].dx};
}

static tutti_status release_weights(const call *c)
{
    const tutti_model_hooks *hooks = &c->m->options.hooks;
    return c->unit->region.count && hooks->weights_released
               ? hooks->weights_released(hooks->user, (int)(c->unit - c->m->units))
               : TUTTI_OK;
}

/* The weight gradient comes first, so that it can travel as long as possible. Only where the
 * gradient by the input must travel too, and everybody waits for that, it comes second, and the
 * weight gradient is computed meanwhile. */
static tutti_status unit_backward(tutti_model *m, tutti_unit *unit, const tutti_pass *pass)
{
    const call c = call_of(m, unit, pass);
    const bool has_inputs = wants_input_gradients(unit);
    const bool inputs_first = has_inputs && unit->members > 1;
    if (!m->options.stand_in) deactivate(&c);
    if (inputs_first) TUTTI_TRY(input_gradients(&c));
    if (!unit->late) TUTTI_TRY(parameter_gradients(&c));
    if (has_inputs && !inputs_first) TUTTI_TRY(input_gradients(&c));
    if (has_inputs) TUTTI_TRY(deliver_input_gradients(&c));
    return unit->late ? TUTTI_OK : release_weights(&c);
}

static tutti_status late_backward(tutti_model *m, tutti_unit *unit, const tutti_pass *pass)
{
    const call c = call_of(m, unit, pass);
    TUTTI_TRY(parameter_gradients(&c));
    return release_weights(&c);
}

tutti_status tutti_backward(tutti_model *m, const tutti_pass *pass)
{
    for (int i = m->unit_count - 1; i >= 0; i--) {
        tutti_unit *unit = &m->units[i];
        if (unit->dy || unit->layer->kind == TUTTI_KIND_SOFTMAX)
            TUTTI_TRY(unit_backward(m, unit, pass));
    }
    for (int i = 0; i < m->unit_count; i++) {
        tutti_unit *unit = &m->units[i];
        if (unit->dy && unit->late) TUTTI_TRY(late_backward(m, unit, pass));
    }
    return TUTTI_OK;
}
