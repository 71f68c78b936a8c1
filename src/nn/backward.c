/* Backwards through the net: for each layer the weight gradient first, so that it can travel
 * while backward-data and the layers below are computed; in split layers the other way round. Late
 * weight gradients (nn/model.h) come at the end, the first layer's first. */
#include "base/clock.h"
#include "base/memory.h"
#include "kernel/ops.h"
#include "nn/unit.h"

/* A unit on its way back. */
typedef struct job {
    tutti_model *m;
    tutti_unit *unit;
    const tutti_pass *pass;
} job;

/* ---- gradients by parameters ---- */

static float *place_of(const tutti_unit *unit, int slot)
{
    return slot == TUTTI_PARTIALS_SPARE ? unit->spare
                                        : unit->gradient + (size_t)slot * unit->region.trained;
}

static void add_partials(const job *j, const tutti_partials_sum *sums, int count)
{
    const tutti_unit *unit = j->unit;
    for (int i = 0; i < count; i++) {
        float *to = place_of(unit, sums[i].to);
        tutti_add((tutti_exec){j->m->options.row, j->m->options.team}, unit->region.trained, to,
                  place_of(unit, sums[i].from), false, to);
    }
}

static void point_at_gradient(const job *j, float *gradient)
{
    const tutti_unit *unit = j->unit;
    for (int i = 0; i < unit->layer->param_count; i++) {
        const bool is_kept = j->m->net->params[unit->layer->first_param + i].role == TUTTI_KEPT;
        unit->to[i] = is_kept ? NULL : gradient + (unit->param[i] - unit->param[0]);
    }
}

/* One partial gradient for each subtree of the run's grains. */
static void compute_run(const job *j, int number, tutti_call *call)
{
    tutti_unit *unit = j->unit;
    tutti_subtree roots[TUTTI_TREE_MAX_ROOTS];
    const tutti_grain_run run = tutti_unit_run(j->m, unit, j->pass, number);
    const int count = tutti_tree_roots(roots, j->m->options.grains, run.first_grain, run.end_grain);
    for (int g = run.first_grain; g <= run.end_grain; g++)
        unit->grain_begin[g - run.first_grain] =
            run.at + tutti_sharing_sample(&j->m->sharing, g) - run.first_sample;
    for (int r = 0; r < count; r++) {
        tutti_partials_sum sums[TUTTI_TREE_LEVELS];
        int sum_count;
        const int first = (roots[r].index << roots[r].level) - run.first_grain;
        const tutti_grains grains = {1 << roots[r].level, unit->grain_begin + first};
        const int slot = tutti_partials_push(&unit->partials, number, roots[r], sums, &sum_count);
        point_at_gradient(j, place_of(unit, slot));
        call->grains = &grains;
        call->gradient = unit->to;
        unit->layer->kind->backward_parameters(call);
        add_partials(j, sums, sum_count);
    }
}

static bool is_last(const job *j)
{
    return j->pass->number == j->m->passes.count - 1;
}

static void compute_parameters(const job *j)
{
    tutti_unit *unit = j->unit;
    tutti_call call = tutti_unit_call(j->m, unit, j->pass, TUTTI_PASS_WEIGHTS);
    for (int r = 0; r < unit->run_count; r++) compute_run(j, r, &call);
    if (is_last(j)) add_partials(j, unit->partials.last, unit->partials.last_count);
}

/* ---- gradients by inputs ---- */

/* Where the layer below ends in a ReLU and the kind does not mask by it. */
static void mask(const job *j)
{
    const tutti_unit *unit = j->unit;
    if (unit->layer->kind->takes_gate) return;
    for (int k = 0; k < unit->layer->input_count; k++) {
        const tutti_input *in = &unit->in[k];
        if (!in->dx || !in->gate) continue;
        const size_t n = (size_t)tutti_unit_samples(unit, j->pass->n);
        tutti_relu_backward((tutti_exec){j->m->options.row, j->m->options.team},
                            n * tutti_shape_floats(in->shape), in->dx, in->gate, in->dx);
    }
}

static void compute_data(const job *j)
{
    const tutti_call call = tutti_unit_call(j->m, j->unit, j->pass, TUTTI_PASS_DATA);
    tutti_unit_apply(j->m, j->unit, j->pass, &call, j->unit->layer->kind->backward_data);
    mask(j);
}

/* An activation after the layer's own sum: dy becomes the gradient by that sum. */
static void deactivate(const job *j)
{
    const tutti_kind *activation = j->unit->layer->activation;
    const double start = tutti_now();
    tutti_input in;
    if (!activation || activation->is_gate) return; /* readers of y have masked dy */
    const tutti_call call = tutti_unit_call(j->m, j->unit, j->pass, TUTTI_PASS_WEIGHTS);
    const tutti_call after = tutti_activation_call(j->unit, &call, &in);
    activation->backward_data(&after);
    tutti_unit_computed(j->m, j->unit, TUTTI_PASS_WEIGHTS, start);
}

/* Where an input has several readers, their gradients are added, the last reader's first. */
static void add_to_others(const job *j)
{
    for (int k = 0; k < j->unit->layer->input_count; k++) {
        const tutti_edge *edge = &j->unit->edges[k];
        if (!edge->wants_dx || !edge->adds || j->m->options.stand_in) continue;
        const tutti_unit *below = &j->m->units[edge->from];
        const size_t n = (size_t)tutti_unit_samples(below, j->pass->n);
        tutti_add((tutti_exec){j->m->options.row, j->m->options.team}, n * below->count, below->dy,
                  edge->dx_below, false, below->dy);
    }
}

static bool wants_input_gradients(const tutti_unit *unit)
{
    for (int k = 0; k < unit->layer->input_count; k++)
        if (unit->edges[k].wants_dx) return true;
    return false;
}

/* Computes them, and lets those that must move begin. */
static tutti_status input_gradients(const job *j)
{
    const double start = tutti_now();
    if (!tutti_unit_stand_in(j->m, j->unit, j->pass, TUTTI_PASS_DATA)) compute_data(j);
    tutti_unit_computed(j->m, j->unit, TUTTI_PASS_DATA, start);
    for (int k = 0; k < j->unit->layer->input_count; k++)
        if (j->unit->edges[k].wants_dx) TUTTI_TRY(tutti_hops_start_back(j->m, j->unit, k));
    return TUTTI_OK;
}

static tutti_status deliver_input_gradients(const job *j)
{
    for (int k = 0; k < j->unit->layer->input_count; k++)
        if (j->unit->edges[k].wants_dx) TUTTI_TRY(tutti_hops_backward(j->m, j->unit, k));
    add_to_others(j);
    return TUTTI_OK;
}

static tutti_status parameter_gradients(const job *j)
{
    const tutti_model_hooks *hooks = &j->m->options.hooks;
    tutti_unit *unit = j->unit;
    if (!unit->region.trained) return TUTTI_OK;
    if (j->pass->number == 0) tutti_partials_begin(&unit->partials);
    const double start = tutti_now();
    if (!tutti_unit_stand_in(j->m, unit, j->pass, TUTTI_PASS_WEIGHTS)) compute_parameters(j);
    tutti_unit_computed(j->m, unit, TUTTI_PASS_WEIGHTS, start);
    return is_last(j) && hooks->gradient_ready
               ? hooks->gradient_ready(hooks->user, (int)(unit - j->m->units))
               : TUTTI_OK;
}

static tutti_status release_weights(const job *j)
{
    const tutti_model_hooks *hooks = &j->m->options.hooks;
    return is_last(j) && j->unit->region.trained && hooks->weights_released
               ? hooks->weights_released(hooks->user, (int)(j->unit - j->m->units))
               : TUTTI_OK;
}

/* The weight gradient comes first, so that it can travel as long as possible. Only where the
 * gradient by the input must travel, too, and everybody waits for it, does that one come first;
 * the weight gradient is computed while it travels. */
static tutti_status unit_backward(const job *j)
{
    const tutti_unit *unit = j->unit;
    const bool has_inputs = wants_input_gradients(unit);
    const bool inputs_first = has_inputs && unit->members > 1;
    if (!tutti_unit_rests(j->m, unit, j->pass)) deactivate(j);
    TUTTI_TRY(tutti_measure_back(j->m, j->unit, j->pass, has_inputs));
    if (inputs_first) TUTTI_TRY(input_gradients(j));
    if (!unit->late) TUTTI_TRY(parameter_gradients(j));
    if (has_inputs) TUTTI_TRY(tutti_measure_arrive(j->m, j->unit));
    if (has_inputs && !inputs_first) TUTTI_TRY(input_gradients(j));
    if (has_inputs) TUTTI_TRY(deliver_input_gradients(j));
    return unit->late ? TUTTI_OK : release_weights(j);
}

static tutti_status late_backward(const job *j)
{
    TUTTI_TRY(parameter_gradients(j));
    return release_weights(j);
}

tutti_status tutti_backward(tutti_model *m, const tutti_pass *pass)
{
    for (int i = m->unit_count - 1; i >= 0; i--) {
        tutti_unit *unit = &m->units[i];
        if (unit->dy || unit->layer->kind->is_loss) TUTTI_TRY(unit_backward(&(job){m, unit, pass}));
    }
    for (int i = 0; i < m->unit_count; i++) {
        tutti_unit *unit = &m->units[i];
        if (unit->dy && unit->late) TUTTI_TRY(late_backward(&(job){m, unit, pass}));
    }
    return TUTTI_OK;
}
