#include <string.h>

#include "base/clock.h"
#include "nn/unit.h"

/* ---- the input ---- */

/* Images one after another, without the filling between them. */
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

const float *tutti_input_form(const tutti_model *m, const tutti_unit *unit, const tutti_pass *pass)
{
    if (tutti_unit_wants_tight(m, unit)) return m->tight;
    return tutti_unit_wants_blocked(m, unit) ? m->blocked : pass->samples;
}

/* ---- what a kind gets ---- */

/* The samples come from the caller, pass by pass; everything else has a fixed place. */
static void point_at_samples(const tutti_model *m, tutti_unit *unit, const tutti_pass *pass)
{
    for (int k = 0; k < unit->layer->input_count; k++)
        if (unit->edges[k].from == TUTTI_NET_INPUT && !unit->edges[k].hop_count)
            unit->in[k].x = tutti_input_form(m, unit, pass);
}

/* Of its first run, or its only one. */
static int first_sample(const tutti_model *m, const tutti_unit *unit, const tutti_pass *pass)
{
    return unit->members > 1 ? tutti_unit_run(m, unit, pass, 0).first_sample : pass->first_sample;
}

static bool aims_at_values(const tutti_model *m, const tutti_layer *layer)
{
    return tutti_target_is_values(&m->net->targets[layer->target]);
}

/* Of a loss of classes: its target's, or else the labels that all share. */
static const int32_t *labels_of(const tutti_model *m, const tutti_layer *layer,
                                const tutti_pass *pass, size_t done)
{
    if (!layer->kind->is_loss || aims_at_values(m, layer)) return NULL;
    const int32_t *own = m->goals.of[layer->target], *labels = own ? own : pass->labels;
    return labels ? labels + done * tutti_target_words(&m->net->targets[layer->target]) : NULL;
}

static const float *values_of(const tutti_model *m, const tutti_layer *layer, size_t done)
{
    if (!layer->kind->is_loss || !aims_at_values(m, layer)) return NULL;
    const float *own = m->goals.of[layer->target];
    return own ? own + done * tutti_target_words(&m->net->targets[layer->target]) : NULL;
}

/* Its own, or the sum's that it does. */
static bool applies_gate(const tutti_model *m, const tutti_unit *unit)
{
    const tutti_unit *last = unit->does_sum < 0 ? unit : &m->units[unit->does_sum];
    const tutti_kind *activation = last->layer->activation;
    return activation && activation->is_gate && unit->layer->kind->fuses_gate;
}

tutti_call tutti_unit_call(const tutti_model *m, tutti_unit *unit, const tutti_pass *pass,
                           tutti_layer_pass which)
{
    const int n = tutti_unit_samples(unit, pass->n);
    const size_t done = (size_t)(pass->first_sample - m->first_sample);
    const size_t verdict = (size_t)unit->layer->target * (size_t)m->samples + done;
    point_at_samples(m, unit, pass);
    return (tutti_call){.exec = {m->options.row, m->options.team},
                        .layer = unit->layer,
                        .options = unit->layer->options,
                        .own = unit->own,
                        .saved = unit->saved,
                        .scratch = unit->scratch[which],
                        .out = {n, unit->channels, unit->pixels},
                        .count = (size_t)n * unit->count,
                        .first_channel = unit->first_channel,
                        .first_sample = first_sample(m, unit, pass),
                        .batch = m->options.batch,
                        .number = (int)(unit - m->units),
                        .seed = m->options.seed,
                        .step = pass->step,
                        .training = pass->training,
                        .relu = applies_gate(m, unit),
                        .plus = unit->plus,
                        .in = unit->in,
                        .y = unit->y,
                        .dy = unit->dy,
                        .statistics = unit->statistics ? unit->statistics[pass->number] : NULL,
                        .sums = unit->sums[which != TUTTI_PASS_FORWARD],
                        .param = unit->param,
                        .labels = labels_of(m, unit->layer, pass, done),
                        .values = values_of(m, unit->layer, done),
                        .judging = &m->judging,
                        .losses = m->losses + verdict,
                        .beaten_by = m->beaten_by + verdict,
                        .counted = m->counted + verdict};
}

tutti_call tutti_activation_call(const tutti_unit *unit, const tutti_call *call, tutti_input *in)
{
    tutti_call own = *call;
    const float *x = unit->sum ? unit->sum : unit->y;
    *in = (tutti_input){.x = x, .shape = call->layer->out, .dx = call->dy};
    own.options = call->layer->activation->defaults;
    own.in = in;
    return own;
}

/* ---- running ---- */

/* What a layer draws for a sample depends on the sample's place in the minibatch: where a pass has
 * several runs of them, they are taken one by one. A layer that follows has one input. */
static tutti_call call_of_run(const tutti_unit *unit, const tutti_call *call,
                              const tutti_grain_run *run, tutti_input *in)
{
    tutti_call own = *call;
    const size_t at = (size_t)run->at * unit->count;
    *in = *call->in;
    in->x += at;
    if (in->gate) in->gate += at;
    if (in->dx) in->dx += at;
    if (own.dy) own.dy += at;
    own.y += at;
    own.in = in;
    own.out.n = run->samples;
    own.count = (size_t)run->samples * unit->count;
    own.first_sample = run->first_sample;
    return own;
}

void tutti_unit_apply(const tutti_model *m, const tutti_unit *unit, const tutti_pass *pass,
                      const tutti_call *call, void (*way)(const tutti_call *))
{
    if (unit->run_count == 1 || !pass->training || !unit->layer->kind->follows) {
        way(call);
        return;
    }
    for (int r = 0; r < unit->run_count; r++) {
        const tutti_grain_run run = tutti_unit_run(m, unit, pass, r);
        tutti_input in;
        const tutti_call own = call_of_run(unit, call, &run, &in);
        if (run.samples) way(&own);
    }
}

static void compute(const tutti_model *m, const tutti_unit *unit, const tutti_pass *pass,
                    const tutti_call *call)
{
    const tutti_kind *activation = call->layer->activation;
    tutti_call own = *call;
    tutti_input in;
    if (unit->sum_done_by >= 0) return;
    if (unit->sum) own.y = unit->sum;
    tutti_unit_apply(m, unit, pass, &own, call->layer->kind->forward);
    if (!activation || call->relu) return;
    const tutti_call after = tutti_activation_call(unit, call, &in);
    activation->forward(&after);
}

tutti_status tutti_unit_forward(tutti_model *m, tutti_unit *unit, const tutti_pass *pass)
{
    const tutti_model_hooks *hooks = &m->options.hooks;
    if (unit->region.count && hooks->before_forward)
        TUTTI_TRY(hooks->before_forward(hooks->user, (int)(unit - m->units)));
    for (int k = 0; k < unit->layer->input_count; k++)
        TUTTI_TRY(tutti_hops_forward(m, unit, k, pass));
    TUTTI_TRY(tutti_measure_forward(m, unit, pass));
    const double start = tutti_now();
    const tutti_call call = tutti_unit_call(m, unit, pass, TUTTI_PASS_FORWARD);
    if (!tutti_unit_stand_in(m, unit, pass, TUTTI_PASS_FORWARD)) compute(m, unit, pass, &call);
    if (pass->training) tutti_unit_computed(m, unit, TUTTI_PASS_FORWARD, start);
    return TUTTI_OK;
}
