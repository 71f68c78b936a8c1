#include "nn/model.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/topology.h"
#include "kernel/ops.h"
#include "nn/unit.h"

/* ---- making one ---- */

int tutti_default_grains(const tutti_net *net, int batch)
{
    enum { FEW = 4, WHOLE_BLOCK = 32, USUAL_GRAINS = 8 };
    int grains = 1, samples = FEW;
    while (tutti_net_rounds(net) && samples < WHOLE_BLOCK && batch / (2 * samples) >= USUAL_GRAINS)
        samples *= 2;
    while (batch / (2 * grains) >= samples) grains *= 2;
    return grains;
}

tutti_status tutti_model_defaults(tutti_model_options *out, const tutti_net *net, int batch)
{
    tutti_topology *topology = NULL;
    *out = (tutti_model_options){
        .batch = batch, .grains = tutti_default_grains(net, batch), .workers = 1};
    TUTTI_TRY(tutti_kernels_choose(&out->row));
    TUTTI_TRY(tutti_topology_open(&topology));
    out->caches = tutti_caches_of_thread(topology, 1);
    tutti_topology_close(&topology);
    return TUTTI_OK;
}

tutti_status tutti_grains_suffice(int workers, int grains, int batch)
{
    int enough = 1;
    while (enough < workers) enough *= 2;
    if (workers <= grains) return TUTTI_OK;
    if (enough <= batch)
        return tutti_fail(TUTTI_ARGUMENT,
                          "%d ranks are more than the %d grains of a minibatch of %d: use at most "
                          "%d ranks, or --grains %d",
                          workers, grains, batch, grains, enough);
    return tutti_fail(TUTTI_ARGUMENT,
                      "%d ranks are more than the %d grains of a minibatch of %d: use at most %d "
                      "ranks, or a minibatch of %d samples and --grains %d",
                      workers, grains, batch, grains, enough, enough);
}

static tutti_status check_options(const tutti_model_options *o)
{
    if (o->batch < 1) return tutti_fail(TUTTI_ARGUMENT, "a batch size of %d", o->batch);
    if (o->grains < 1 || o->grains > o->batch || (o->grains & (o->grains - 1)))
        return tutti_fail(TUTTI_ARGUMENT,
                          "%d grains: must be a power of two and at most the batch size, %d",
                          o->grains, o->batch);
    TUTTI_TRY(tutti_grains_suffice(o->workers, o->grains, o->batch));
    TUTTI_ASSERT(o->workers >= 1 && o->worker >= 0 && o->worker < o->workers);
    return TUTTI_OK;
}

static bool trains(const tutti_model *m, const tutti_layer *layer)
{
    return tutti_layer_trains(m->net, layer);
}

static tutti_status init_edges(const tutti_model *m, tutti_unit *unit)
{
    const tutti_layer *layer = unit->layer;
    TUTTI_TRY(tutti_alloc(&unit->edges, (size_t)layer->input_count, sizeof *unit->edges));
    TUTTI_TRY(tutti_alloc(&unit->in, (size_t)layer->input_count, sizeof *unit->in));
    for (int k = 0; k < layer->input_count; k++) {
        tutti_edge *edge = &unit->edges[k];
        edge->from = layer->from[k];
        edge->dx_lease = -1;
        TUTTI_TRY(tutti_hops_init(m, unit, k));
        unit->in[k].shape = tutti_layer_input_shape(m->net, layer, k);
        if (edge->from == TUTTI_NET_INPUT) continue;
        const tutti_unit *below = &m->units[edge->from];
        if (!edge->hop_count) unit->in[k].shape.c = below->channels;
        edge->wants_dx = tutti_layer_flows_into(m->net, below->layer);
    }
    return TUTTI_OK;
}

/* Floats of the rows that a unit with 'channels' of its output features has of a parameter. */
static size_t held_floats(const tutti_unit *unit, const tutti_param *param)
{
    tutti_weight_shape held = param->layout;
    if (unit->members > 1) held.k = unit->channels;
    return tutti_weight_blocked_count(&held);
}

/* Slots for the partial gradients that are kept from pass to pass. */
static tutti_status init_gradients(tutti_model *m, tutti_unit *unit)
{
    const tutti_model_options *o = &m->options;
    TUTTI_TRY(tutti_partials_init(&unit->partials, o->grains, unit->run_count, unit->run_cuts,
                                  m->passes.count));
    TUTTI_TRY(tutti_alloc(&unit->grain_begin, (size_t)o->grains + 1, sizeof *unit->grain_begin));
    if (!o->forward_only)
        m->gradient_floats += unit->region.trained * (size_t)tutti_partials_slots(&unit->partials);
    return TUTTI_OK;
}

static tutti_status init_parameters(tutti_model *m, tutti_unit *unit)
{
    const tutti_layer *layer = unit->layer;
    if (!layer->param_count) return TUTTI_OK;
    unit->region.offset = m->parameter_floats;
    for (int i = 0; i < layer->param_count; i++) {
        const tutti_param *param = &m->net->params[layer->first_param + i];
        const size_t floats = held_floats(unit, param);
        unit->region.count += floats;
        if (param->role != TUTTI_KEPT) unit->region.trained += floats;
    }
    m->parameter_floats += unit->region.count;
    const size_t pointers = (size_t)layer->param_count;
    TUTTI_TRY(tutti_alloc(&unit->param, pointers, sizeof *unit->param));
    TUTTI_TRY(tutti_alloc(&unit->to, pointers, sizeof *unit->to));
    return init_gradients(m, unit);
}

static tutti_status create_own(const tutti_model *m, tutti_unit *unit)
{
    const tutti_model_options *o = &m->options;
    const tutti_setup setup = {o->row, &o->caches, unit->samples, tutti_team_size(o->team)};
    const tutti_kind *kind = unit->layer->kind;
    return kind->create && !o->stand_in ? kind->create(&unit->own, unit->layer, &setup) : TUTTI_OK;
}

static tutti_status init_unit(tutti_model *m, int i)
{
    tutti_unit *unit = &m->units[i];
    unit->layer = &m->net->layers[i];
    unit->y_lease = unit->sum_lease = unit->dy_lease = unit->saved_lease = unit->spare_lease = -1;
    for (int pass = 0; pass < TUTTI_PASSES; pass++) unit->scratch_lease[pass] = -1;
    unit->pixels = unit->layer->out.h * unit->layer->out.w;
    TUTTI_TRY(tutti_unit_place(m, unit));
    unit->late = i < m->options.late && trains(m, unit->layer) && unit->members == 1;
    TUTTI_TRY(init_edges(m, unit));
    TUTTI_TRY(init_parameters(m, unit));
    TUTTI_TRY(tutti_measures_init(m, unit));
    return create_own(m, unit);
}

static void set_parameters(const tutti_model *m, tutti_unit *unit)
{
    const float *at = m->parameters + unit->region.offset;
    for (int i = 0; i < unit->layer->param_count; i++) {
        unit->param[i] = at;
        at += held_floats(unit, &m->net->params[unit->layer->first_param + i]);
    }
}

static tutti_status take_parameters(tutti_model *m)
{
    m->parameters = m->options.parameters;
    m->gradients = m->options.gradients;
    if (!m->parameters) TUTTI_TRY(tutti_alloc_floats(&m->parameters, m->parameter_floats));
    if (!m->gradients && !m->options.forward_only)
        TUTTI_TRY(tutti_alloc_floats(&m->gradients, m->gradient_floats));
    float *gradient = m->gradients;
    for (int i = 0; i < m->unit_count; i++) {
        tutti_unit *unit = &m->units[i];
        set_parameters(m, unit);
        if (!gradient || !unit->region.trained) continue;
        unit->gradient = gradient;
        gradient += unit->region.trained * (size_t)tutti_partials_slots(&unit->partials);
    }
    return tutti_verdicts_init(m);
}

static tutti_status make(tutti_model **out, const tutti_net *net,
                         const tutti_model_options *options, bool measure_only)
{
    tutti_model *m = NULL;
    tutti_status s = TUTTI_OK;
    TUTTI_TRY(check_options(options));
    if ((s = tutti_alloc(&m, 1, sizeof *m))) goto out;
    m->net = net;
    m->options = *options;
    m->measure_only = measure_only;
    m->tight_lease = m->blocked_lease = -1;
    m->unit_count = net->layer_count;
    if ((s = tutti_model_share(m))) goto out;
    if ((s = tutti_alloc(&m->units, (size_t)m->unit_count, sizeof *m->units))) goto out;
    for (int i = 0; i < m->unit_count; i++)
        if ((s = init_unit(m, i))) goto out;
    tutti_model_fuse(m);
    if ((s = tutti_model_plan_memory(m))) goto out;
    if (!measure_only && (s = take_parameters(m))) goto out;
    if (!measure_only && (s = tutti_moves_init(m))) goto out;
    *out = m;
    m = NULL;
out:
    tutti_model_destroy(&m);
    return s;
}

tutti_status tutti_model_create(tutti_model **out, const tutti_net *net,
                                const tutti_model_options *options)
{
    return make(out, net, options, false);
}

static size_t followed_floats(const tutti_model *m)
{
    size_t floats = 0;
    for (int i = 0; i < m->unit_count; i++) floats += m->units[i].region.trained;
    return floats;
}

tutti_status tutti_model_measure(tutti_model_bytes *bytes, const tutti_net *net,
                                 const tutti_model_options *options)
{
    tutti_model *m = NULL;
    TUTTI_TRY(make(&m, net, options, true));
    *bytes = (tutti_model_bytes){.parameters = m->parameter_floats * sizeof(float),
                                 .gradients = m->gradient_floats * sizeof(float),
                                 .followed = followed_floats(m) * sizeof(float),
                                 .arena = m->arena_bytes,
                                 .separate = m->separate_bytes,
                                 .samples = m->samples,
                                 .passes = m->passes.count};
    tutti_model_destroy(&m);
    return TUTTI_OK;
}

static void deinit_unit(tutti_unit *unit)
{
    if (unit->own) unit->layer->kind->destroy(unit->own);
    for (int k = 0; unit->edges && k < unit->layer->input_count; k++) tutti_hops_deinit(unit, k);
    tutti_measures_deinit(unit);
    tutti_free(unit->edges);
    tutti_free(unit->in);
    tutti_partials_deinit(&unit->partials);
    tutti_unit_displace(unit);
    tutti_free(unit->param);
    tutti_free(unit->to);
    tutti_free(unit->grain_begin);
}

void tutti_model_destroy(tutti_model **model)
{
    tutti_model *m = *model;
    if (!m) return;
    for (int i = 0; m->units && i < m->unit_count; i++) deinit_unit(&m->units[i]);
    tutti_free(m->units);
    if (!m->options.parameters) tutti_free(m->parameters);
    if (!m->options.gradients) tutti_free(m->gradients);
    tutti_passes_deinit(&m->passes);
    tutti_free(m->arena);
    tutti_free(m->moves);
    tutti_free(m->losses);
    tutti_free(m->beaten_by);
    tutti_free(m->counted);
    tutti_free(m->grain_losses);
    tutti_free(m);
    *model = NULL;
}

/* ---- running ---- */

static tutti_status forward(tutti_model *m, const tutti_pass *pass)
{
    tutti_prepare_input(m, pass);
    for (int i = 0; i < m->unit_count; i++)
        if (pass->training || !m->units[i].layer->only_trains)
            TUTTI_TRY(tutti_unit_forward(m, &m->units[i], pass));
    return TUTTI_OK;
}

static tutti_status train_pass(tutti_model *m, const tutti_pass *pass, const int cuts[2])
{
    TUTTI_TRY(forward(m, pass));
    if (!tutti_verdicts_sum(m, cuts)) tutti_model_find_nonfinite(m, pass);
    if (m->options.hooks.divide)
        TUTTI_TRY(m->options.hooks.divide(m->options.hooks.user, m->judging.divisors));
    return tutti_backward(m, pass);
}

void tutti_model_mix(tutti_model *m, const int32_t *others, const float *shares)
{
    m->judging.targets.others = others;
    m->judging.targets.shares = shares;
}

tutti_status tutti_model_train(tutti_model *m, uint32_t step, const float *samples,
                               const int32_t *labels)
{
    const int *cuts = tutti_passes_of(&m->passes, m->options.worker);
    TUTTI_ASSERT(!m->options.forward_only);
    for (int p = 0; p < m->passes.count; p++) {
        const int first = tutti_sharing_sample(&m->sharing, cuts[p]);
        const int end = tutti_sharing_sample(&m->sharing, cuts[p + 1]);
        const size_t done = (size_t)(first - m->first_sample);
        const tutti_pass pass = {
            .n = end - first,
            .training = true,
            .step = step,
            .samples = samples + done * tutti_net_input_floats(m->net),
            .labels = labels,
            .number = p,
            .first_sample = first,
        };
        TUTTI_TRY(train_pass(m, &pass, cuts + p));
    }
    return TUTTI_OK;
}

tutti_status tutti_model_evaluate(tutti_model *m, int n, const float *samples,
                                  const int32_t *labels)
{
    TUTTI_ASSERT(n <= m->most);
    return forward(
        m, &(tutti_pass){
               .n = n, .samples = samples, .labels = labels, .first_sample = m->first_sample});
}

void tutti_unit_computed(const tutti_model *m, tutti_unit *unit, tutti_layer_pass pass,
                         double begin)
{
    const tutti_model_hooks *hooks = &m->options.hooks;
    const double end = tutti_now();
    double *const seconds[TUTTI_PASSES] = {&unit->times.forward, &unit->times.backward_weights,
                                           &unit->times.backward_data};
    *seconds[pass] += end - begin;
    if (hooks->computed) hooks->computed(hooks->user, (int)(unit - m->units), pass, begin, end);
}

/* ---- looking ---- */

tutti_nonfinite tutti_model_nonfinite(const tutti_model *m)
{
    return m->nonfinite;
}

const tutti_net *tutti_model_net(const tutti_model *m)
{
    return m->net;
}

int tutti_model_first_sample(const tutti_model *m)
{
    return m->first_sample;
}

int tutti_model_samples(const tutti_model *m)
{
    return m->samples;
}

int tutti_model_most_samples(const tutti_model *m)
{
    return m->most;
}

int tutti_model_passes(const tutti_model *m)
{
    return m->passes.count;
}

float *tutti_model_parameters(tutti_model *m)
{
    return m->parameters;
}

size_t tutti_model_parameter_floats(const tutti_model *m)
{
    return m->parameter_floats;
}

tutti_slice tutti_model_slice(const tutti_model *m, int param)
{
    const tutti_param *p = &m->net->params[param];
    const tutti_unit *unit = &m->units[p->layer];
    const int at = param - unit->layer->first_param;
    const int first = unit->members > 1 ? unit->first_channel : 0;
    const int rows = unit->members > 1 ? unit->channels : p->dims[0];
    const size_t block = p->stored / (size_t)tutti_ceil_div(p->dims[0], TUTTI_BLOCK);
    size_t offset = unit->region.offset;
    for (int i = 0; i < at; i++)
        offset += held_floats(unit, &m->net->params[unit->layer->first_param + i]);
    return (tutti_slice){.offset = offset,
                         .count = held_floats(unit, p),
                         .whole_at = p->offset - tutti_layer_offset(m->net, p->layer) +
                                     (size_t)(first / TUTTI_BLOCK) * block,
                         .rows = {first, first + rows}};
}

tutti_region tutti_model_region(const tutti_model *m, int layer)
{
    return m->units[layer].region;
}

int tutti_model_roots(const tutti_model *m, int layer, tutti_subtree roots[TUTTI_TREE_MAX_ROOTS])
{
    const tutti_unit *unit = &m->units[layer];
    memcpy(roots, unit->partials.roots, sizeof unit->partials.roots);
    return unit->partials.root_count;
}

float *tutti_model_gradient(tutti_model *m, int layer, int root)
{
    const tutti_unit *unit = &m->units[layer];
    return unit->gradient + (size_t)unit->partials.slots[root] * unit->region.trained;
}

const float *tutti_model_probabilities(const tutti_model *m)
{
    return m->units[m->unit_count - 1].y;
}

tutti_layer_times tutti_model_times(const tutti_model *m, int layer)
{
    return m->units[layer].times;
}

void tutti_model_reset_times(tutti_model *m)
{
    for (int i = 0; i < m->unit_count; i++) m->units[i].times = (tutti_layer_times){0};
}

int tutti_model_move_count(const tutti_model *m)
{
    return m->move_count;
}

const tutti_move *tutti_model_move(const tutti_model *m, int index)
{
    return &m->moves[index].move;
}
