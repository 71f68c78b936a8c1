/* Keeping parameters the same everywhere, behind the computing.
 *
 * Each layer's region of parameters has its holders: the ranks that hold the same features, all
 * ranks for a layer that is not split. When the model says that a layer's gradient is complete,
 * the layer's exchange starts: part-reduce over the holders, update of the strip this rank owns,
 * part-broadcast of the new parameters. The gate keeps update and
 * broadcast back until backward-data has read the old parameters; the next forward pass waits,
 * layer by layer, for the new ones. A rank that holds a region alone updates it at once, with all
 * its threads; where all ranks of a host hold all regions they hold them once, and the exchange
 * is an update in place (comm/common_exchange.c).
 *
 * Clipping needs the norm of the whole gradient before the first update: then the sums travel
 * behind the computing, update and broadcast come after it. */
#include <math.h>

#include "base/clock.h"
#include "base/memory.h"
#include "step/parts.h"

static const double SHORTEST_SPAN = 1e-6; /* seconds; a trace leaves shorter ones out */

/* ---- waiting ---- */

static void record(const tutti_stepper *s, tutti_trace_lane lane, const char *what, int layer,
                   int64_t bytes, double begin, double end)
{
    tutti_trace_span(s->options.trace, lane, what, s->options.net->layers[layer].name, s->step,
                     bytes, begin, end);
}

static void record_exchange(const tutti_stepper *s, const tutti_exchange *e, int layer,
                            double *recorded)
{
    if (!s->options.trace) return;
    const tutti_exchange_stats stats = tutti_exchange_statistics(e);
    if (!stats.runs || stats.submitted == *recorded) return;
    *recorded = stats.submitted;
    record(s, TUTTI_TRACE_COMM, "exchange", layer, (int64_t)(stats.bytes_sent / stats.runs),
           stats.begun, stats.done);
}

tutti_status tutti_sync_wait(tutti_stepper *s, tutti_exchange *e, int layer, double *exposed,
                             double *recorded)
{
    const double start = tutti_now(), before = tutti_exchange_statistics(e).waited;
    const tutti_status status = tutti_exchange_wait(e);
    const double waited = tutti_exchange_statistics(e).waited - before;
    *exposed += waited;
    s->exposed += waited;
    if (waited > SHORTEST_SPAN)
        record(s, TUTTI_TRACE_COMPUTE, "wait", layer, -1, start, start + waited);
    if (status == TUTTI_OK) record_exchange(s, e, layer, recorded);
    return status;
}

static tutti_status wait_for(tutti_sync *sync, tutti_exchange *e)
{
    return tutti_sync_wait(sync->stepper, e, sync->layer, &sync->exposed, &sync->recorded);
}

/* ---- hooks ---- */

static tutti_sync *sync_of(tutti_stepper *s, int layer)
{
    return s->sync_of[layer] < 0 ? NULL : &s->syncs[s->sync_of[layer]];
}

static bool is_overlapped(const tutti_stepper *s)
{
    return s->options.overlap && s->options.clip <= 0;
}

/* The exchange whose end means: the parameters are the new ones. */
static tutti_exchange *last_exchange(const tutti_sync *sync)
{
    return sync->exchange ? sync->exchange : sync->broadcast;
}

static tutti_status before_forward(void *user, int layer)
{
    tutti_sync *sync = sync_of(user, layer);
    return sync && last_exchange(sync) ? wait_for(sync, last_exchange(sync)) : TUTTI_OK;
}

/* The update runs beside the next step, whose numbers are other ones: each sync keeps its own. */
static tutti_status gradient_ready(void *user, int layer)
{
    tutti_stepper *s = user;
    tutti_sync *sync = sync_of(s, layer);
    sync->how = s->how;
    if (sync->reduce) tutti_exchange_start(sync->reduce);
    else if (sync->exchange && is_overlapped(s)) tutti_exchange_start(sync->exchange);
    return TUTTI_OK;
}

static tutti_status weights_released(void *user, int layer)
{
    tutti_stepper *s = user;
    tutti_sync *sync = sync_of(s, layer);
    if (sync->exchange && is_overlapped(s)) tutti_exchange_open_gate(sync->exchange);
    else if (sync->holders == 1 && s->options.clip <= 0) tutti_update_strip(sync);
    return TUTTI_OK;
}

static void computed(void *user, int layer, tutti_layer_pass pass, double begin, double end)
{
    static const char *const names[TUTTI_PASSES] = {"forward", "backward-weights", "backward-data"};
    if (end - begin > SHORTEST_SPAN)
        record(user, TUTTI_TRACE_COMPUTE, names[pass], layer, -1, begin, end);
}

tutti_model_hooks tutti_sync_hooks(tutti_stepper *stepper)
{
    return (tutti_model_hooks){.user = stepper,
                               .before_forward = before_forward,
                               .gradient_ready = gradient_ready,
                               .weights_released = weights_released,
                               .move = tutti_moves_carry_out,
                               .start_move = tutti_moves_start,
                               .divide = tutti_divisor_wait,
                               .computed = computed};
}

/* ---- after the pass ---- */

static tutti_status exchange_now(tutti_stepper *s)
{
    for (int i = s->sync_count - 1; i >= 0; i--) {
        tutti_sync *sync = &s->syncs[i];
        if (!sync->exchange) continue;
        tutti_exchange_start(sync->exchange);
        tutti_exchange_open_gate(sync->exchange);
        TUTTI_TRY(wait_for(sync, sync->exchange));
    }
    return TUTTI_OK;
}

static tutti_status clip_and_update(tutti_stepper *s)
{
    const double most = s->options.clip;
    for (int i = s->sync_count - 1; i >= 0; i--)
        if (s->syncs[i].reduce) TUTTI_TRY(wait_for(&s->syncs[i], s->syncs[i].reduce));
    TUTTI_TRY(tutti_gradient_norm(s, &s->norm));
    s->how.scale = s->norm > most ? (float)(most / s->norm) : 1.0f;
    for (int i = 0; i < s->sync_count; i++) {
        s->syncs[i].how = s->how;
        tutti_update_strip(&s->syncs[i]);
        if (s->syncs[i].broadcast) tutti_exchange_start(s->syncs[i].broadcast);
    }
    return TUTTI_OK;
}

tutti_status tutti_sync_finish(tutti_stepper *s)
{
    s->norm = NAN;
    if (s->options.clip > 0) return clip_and_update(s);
    return is_overlapped(s) ? TUTTI_OK : exchange_now(s);
}

tutti_status tutti_sync_settle(tutti_stepper *s)
{
    for (int i = 0; i < s->sync_count; i++)
        if (last_exchange(&s->syncs[i]))
            TUTTI_TRY(wait_for(&s->syncs[i], last_exchange(&s->syncs[i])));
    return TUTTI_OK;
}

/* ---- putting it together ---- */

/* Like the exchange, but nothing is added up and nothing updated. */
static tutti_status create_swap(tutti_stepper *s, tutti_sync *sync, tutti_exchange_spec spec)
{
    if (!tutti_stepper_has_average(s)) return TUTTI_OK;
    spec.leaves = 0;
    spec.partials = NULL;
    spec.update = NULL;
    spec.user = NULL;
    spec.gated = false;
    return tutti_exchange_create(&sync->swap, s->options.comm, &spec);
}

static tutti_status create_exchanges(tutti_stepper *s, tutti_sync *sync)
{
    tutti_subtree roots[TUTTI_TREE_MAX_ROOTS];
    float *partials[TUTTI_TREE_MAX_ROOTS];
    const tutti_stepper_options *o = &s->options;
    const int count = tutti_model_roots(s->model, sync->layer, roots);
    for (int i = 0; i < count; i++) partials[i] = tutti_model_gradient(s->model, sync->layer, i);
    float *parameters = tutti_model_parameters(s->model) + sync->region.offset;

    tutti_exchange_spec spec = {
        .name = o->net->layers[sync->layer].name,
        .priority = o->priority ? sync->layer : 0,
        .group = sync->across,
        .count = sync->region.trained,
        .leaves = o->grains,
        .partials = partials,
        .common = s->common,
        .team = o->exec.team,
        .reduce_by = o->part_reduce,
        .broadcast_by = o->part_broadcast,
    };
    if (o->clip > 0) {
        TUTTI_TRY(tutti_exchange_create(&sync->reduce, o->comm, &spec));
        spec.leaves = 0;
        spec.partials = NULL;
        spec.whole = parameters;
        TUTTI_TRY(tutti_exchange_create(&sync->broadcast, o->comm, &spec));
    } else {
        spec.update = tutti_update_piece;
        spec.user = sync;
        spec.whole = parameters;
        spec.gated = true;
        TUTTI_TRY(tutti_exchange_create(&sync->exchange, o->comm, &spec));
        TUTTI_TRY(create_swap(s, sync, spec));
    }
    tutti_exchange_strip(last_exchange(sync), &sync->begin, &sync->end);
    return TUTTI_OK;
}

static tutti_status create_sync(tutti_stepper *s, tutti_sync *sync, int layer)
{
    const int groups = s->options.groups ? s->options.groups[layer] : 0;
    *sync = (tutti_sync){.stepper = s,
                         .layer = layer,
                         .holders = groups ? groups : s->size,
                         .region = tutti_model_region(s->model, layer)};
    sync->end = sync->region.trained;
    if (sync->holders > 1 && sync->holders < s->size)
        TUTTI_TRY(tutti_group_create_across(&sync->across, s->options.comm, sync->holders));
    if (sync->holders > 1) TUTTI_TRY(create_exchanges(s, sync));
    return tutti_update_create(sync);
}

tutti_status tutti_sync_create(tutti_stepper *s)
{
    const size_t layers = (size_t)s->options.net->layer_count;
    TUTTI_TRY(tutti_exchange_check_names(s->options.part_reduce, s->options.part_broadcast));
    TUTTI_TRY(tutti_alloc(&s->sync_of, layers, sizeof *s->sync_of));
    TUTTI_TRY(tutti_alloc(&s->syncs, layers, sizeof *s->syncs));
    for (int i = 0; i < s->options.net->layer_count; i++) {
        s->sync_of[i] = -1;
        if (!tutti_model_region(s->model, i).trained) continue;
        s->sync_of[i] = s->sync_count++;
        TUTTI_TRY(create_sync(s, &s->syncs[s->sync_of[i]], i));
    }
    return TUTTI_OK;
}

void tutti_sync_destroy(tutti_stepper *s)
{
    for (int i = 0; i < s->sync_count; i++) {
        tutti_sync *sync = &s->syncs[i];
        tutti_exchange_destroy(&sync->exchange);
        tutti_exchange_destroy(&sync->reduce);
        tutti_exchange_destroy(&sync->broadcast);
        tutti_exchange_destroy(&sync->swap);
        tutti_group_destroy(&sync->across);
        tutti_update_destroy(sync);
    }
    tutti_free(s->syncs);
    tutti_free(s->sync_of);
}
