#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "kernel/layout.h"
#include "kernel/ops.h"
#include "nn/unit.h"

/* ---- the input ---- */

/* Images one after another, without the space that rounds them up. */
static void make_tight(tutti_model *m, const tutti_pass *pass)
{
    const size_t from = tutti_net_input_floats(m->net), to = tutti_shape_count(m->net->input);
    for (int i = 0; i < pass->n; i++)
        memcpy(m->tight + (size_t)i * to, pass->samples + (size_t)i * from, to * sizeof(float));
}

/* [h][w][c] -> [h][w][16] */
static void make_blocked(tutti_model *m, const tutti_pass *pass)
{
    const size_t stride = tutti_net_input_floats(m->net), c = (size_t)m->net->input.c;
    const size_t pixels = (size_t)m->net->input.h * (size_t)m->net->input.w;
    for (size_t i = 0; i < (size_t)pass->n; i++)
        for (size_t p = 0; p < pixels; p++) {
            float *to = m->blocked + (i * pixels + p) * TUTTI_BLOCK;
            memcpy(to, pass->samples + i * stride + p * c, c * sizeof(float));
            memset(to + c, 0, (TUTTI_BLOCK - c) * sizeof(float));
        }
}

void tutti_prepare_input(tutti_model *m, const tutti_pass *pass)
{
    if (m->options.stand_in) return;
    if (m->tight) make_tight(m, pass);
    if (m->blocked) make_blocked(m, pass);
}

const float *tutti_input_form(const tutti_model *m, const tutti_unit *unit, int edge,
                              const tutti_pass *pass)
{
    if (tutti_edge_wants_tight(m, unit, edge)) return m->tight;
    return tutti_edge_wants_blocked(m, unit, edge) ? m->blocked : pass->samples;
}

const float *tutti_unit_x(const tutti_model *m, const tutti_unit *unit, int edge,
                          const tutti_pass *pass)
{
    const float *x = unit->edges[edge].x;
    return x ? x : tutti_input_form(m, unit, edge, pass);
}

tutti_dropout tutti_unit_dropout(const tutti_model *m, const tutti_unit *unit, uint32_t step)
{
    return (tutti_dropout){.rate = unit->layer->rate,
                           .key = {.seed = m->options.seed,
                                   .purpose = TUTTI_RANDOM_DROPOUT,
                                   .layer = (uint32_t)(unit - m->units),
                                   .when = step,
                                   .sample = (uint32_t)unit->first_sample},
                           .first_block = unit->first_channel / TUTTI_BLOCK};
}

/* ---- one function a kind ---- */

/* What a kind's function gets. */
typedef struct call {
    tutti_model *m;
    tutti_unit *unit;
    const tutti_pass *pass;
    tutti_exec exec;
    int n;
    size_t count; /* floats of the output, all samples */
    const float *x;
    bool relu;
} call;

static tutti_extent extent_of(const call *c)
{
    return (tutti_extent){c->n, c->unit->channels, c->unit->pixels};
}

static tutti_task task_of(const call *c)
{
    return (tutti_task){.team = c->exec.team,
                        .scratch = c->unit->scratch[TUTTI_PASS_FORWARD],
                        .n = c->n,
                        .outputs = c->unit->channels};
}

static void forward_conv(const call *c)
{
    const tutti_task task = task_of(c);
    tutti_conv_forward(c->unit->conv, &task, c->x, c->unit->weight, c->unit->bias, c->relu,
                       c->unit->y);
}

static void forward_fc(const call *c)
{
    const tutti_task task = task_of(c);
    tutti_fc_forward(c->unit->fc, &task, c->x, c->unit->weight, c->unit->bias, c->relu, c->unit->y);
}

static void forward_maxpool(const call *c)
{
    tutti_max_pool_forward(c->exec, &c->unit->pool, c->n, c->x, c->unit->y,
                           c->pass->training ? c->unit->tap : NULL);
}

static void forward_avgpool(const call *c)
{
    tutti_average_pool_forward(c->exec, &c->unit->pool, c->n, c->x, c->unit->y);
}

static void forward_relu(const call *c)
{
    tutti_relu(c->exec, c->count, c->x, c->unit->y);
}

static void forward_sigmoid(const call *c)
{
    tutti_sigmoid(c->exec, extent_of(c), c->x, c->unit->y);
}

static void forward_tanh(const call *c)
{
    tutti_tanh(c->exec, c->count, c->x, c->unit->y);
}

static void forward_dropout(const call *c)
{
    const tutti_dropout dropout = tutti_unit_dropout(c->m, c->unit, c->pass->step);
    if (c->pass->training) tutti_dropout_forward(c->exec, &dropout, extent_of(c), c->x, c->unit->y);
    else if (c->unit->y != c->x) tutti_scale(c->exec, c->count, 1, c->x, c->unit->y);
}

static void forward_lrn(const call *c)
{
    tutti_lrn_forward(c->exec, &c->unit->layer->lrn, extent_of(c), c->x, c->unit->y);
}

static void forward_add(const call *c)
{
    const int last = c->unit->layer->input_count - 1;
    const float *sum = c->x;
    for (int k = 1; k <= last; k++) {
        tutti_add(c->exec, c->count, sum, tutti_unit_x(c->m, c->unit, k, c->pass),
                  c->relu && k == last, c->unit->y);
        sum = c->unit->y;
    }
}

static void forward_concat(const call *c)
{
    const tutti_layer *layer = c->unit->layer;
    const float *x[TUTTI_MAX_INPUTS];
    int channels[TUTTI_MAX_INPUTS];
    for (int k = 0; k < layer->input_count; k++) {
        const int from = c->unit->edges[k].from;
        x[k] = tutti_unit_x(c->m, c->unit, k, c->pass);
        channels[k] = from == TUTTI_NET_INPUT ? c->m->net->input.c : c->m->units[from].channels;
    }
    const tutti_concat_shape shape = {c->n, c->unit->pixels, layer->input_count, channels};
    tutti_concat(c->exec, &shape, x, c->unit->y);
    if (c->relu) tutti_relu(c->exec, c->count, c->unit->y, c->unit->y);
}

static void forward_softmax(const call *c)
{
    tutti_softmax(c->exec, extent_of(c), c->x, c->pass->labels, c->unit->y,
                  c->pass->labels ? c->m->losses : NULL);
    if (c->pass->labels)
        tutti_label_rank(c->exec.team, extent_of(c), c->x, c->pass->labels, c->m->ranks);
}

static void (*const forward_table[TUTTI_KIND_COUNT])(const call *) = {
    [TUTTI_KIND_CONV] = forward_conv,       [TUTTI_KIND_FC] = forward_fc,
    [TUTTI_KIND_MAXPOOL] = forward_maxpool, [TUTTI_KIND_AVGPOOL] = forward_avgpool,
    [TUTTI_KIND_RELU] = forward_relu,       [TUTTI_KIND_SIGMOID] = forward_sigmoid,
    [TUTTI_KIND_TANH] = forward_tanh,       [TUTTI_KIND_DROPOUT] = forward_dropout,
    [TUTTI_KIND_LRN] = forward_lrn,         [TUTTI_KIND_ADD] = forward_add,
    [TUTTI_KIND_CONCAT] = forward_concat,   [TUTTI_KIND_SOFTMAX] = forward_softmax,
};

/* Sigmoid and tanh behind a layer's own sum, in place; a ReLU has been applied by the kernel. */
static void activate(const call *c)
{
    tutti_unit *unit = c->unit;
    if (unit->layer->activation == TUTTI_ACT_SIGMOID)
        tutti_sigmoid(c->exec, extent_of(c), unit->y, unit->y);
    if (unit->layer->activation == TUTTI_ACT_TANH) tutti_tanh(c->exec, c->count, unit->y, unit->y);
}

tutti_status tutti_unit_forward(tutti_model *m, tutti_unit *unit, const tutti_pass *pass)
{
    const tutti_model_hooks *hooks = &m->options.hooks;
    if (unit->region.count && hooks->before_forward)
        TUTTI_TRY(hooks->before_forward(hooks->user, (int)(unit - m->units)));
    for (int k = 0; k < unit->layer->input_count; k++)
        TUTTI_TRY(tutti_hops_forward(m, unit, k, pass));
    const double start = tutti_now();
    const int n = tutti_unit_samples(unit, pass->n);
    const call c = {.m = m,
                    .unit = unit,
                    .pass = pass,
                    .exec = {m->options.row, m->options.team},
                    .n = n,
                    .count = (size_t)n * unit->count,
                    .x = tutti_unit_x(m, unit, 0, pass),
                    .relu = unit->layer->activation == TUTTI_ACT_RELU};
    if (!tutti_unit_stand_in(m, unit, TUTTI_PASS_FORWARD)) {
        forward_table[unit->layer->kind](&c);
        activate(&c);
    }
    if (pass->training) tutti_unit_computed(m, unit, TUTTI_PASS_FORWARD, start);
    return TUTTI_OK;
}
