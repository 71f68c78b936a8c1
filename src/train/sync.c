/* Keeping parameters the same everywhere, behind the computing.
 *
 * Each layer's region of parameters has its holders: the ranks that hold the same features, all
 * ranks for a layer that is not split. When the model says that a layer's gradient is complete,
 * the layer's exchange starts: part-reduce over the holders, SGD on the strip this rank owns (its
 * momentum exists only there), part-broadcast of the new parameters. The gate keeps update and
 * broadcast back until backward-data has read the old parameters; the next forward pass waits,
 * layer by layer, for the new ones. A rank that holds a region alone updates it at once, with all
 * its threads; where all ranks of a host hold all regions they hold them once, and the exchange
 * is an update in place (comm/common_exchange.c).
 *
 * Clipping needs the norm of the whole gradient before the first update: then the sums travel
 * behind the computing, update and broadcast come after it. */
#include "train/trainer.h"

#include <math.h>

#include "base/clock.h"
#include "base/memory.h"

static const double SHORTEST_SPAN = 1e-6; /* seconds; a trace leaves shorter ones out */

/* ---- the update ---- */

static void update_strip(void *user, const float *a, const float *b, size_t begin, size_t end)
{
    tutti_sync *s = user;
    tutti_trainer *t = s->trainer;
    if (t->stand_in) {
        t->stand_in->update(t->stand_in->user, end - begin, true);
        return;
    }
    float *w = tutti_model_parameters(t->model) + s->region.offset;
    const tutti_update update = {
        .count = end - begin,
        .a = a,
        .b = b,
        .w = w + begin,
        .state = {s->momentum ? s->momentum + (begin - s->begin) : NULL},
    };
    tutti_sgd_step((tutti_exec){t->me.exec.row, NULL}, &s->sgd, &update);
}

static void update_alone(tutti_sync *s)
{
    tutti_trainer *t = s->trainer;
    if (t->stand_in) {
        t->stand_in->update(t->stand_in->user, s->end - s->begin, false);
        return;
    }
    float *w = tutti_model_parameters(t->model) + s->region.offset;
    const float *gradient = tutti_model_gradient(t->model, s->layer, 0);
    const tutti_update update = {
        .count = s->end - s->begin,
        .a = gradient + s->begin,
        .w = w + s->begin,
        .state = {s->momentum},
    };
    tutti_sgd_step(t->me.exec, &s->sgd, &update);
}

/* ---- hooks ---- */

static tutti_sync *sync_of(tutti_trainer *t, int layer)
{
    return t->sync_of[layer] < 0 ? NULL : &t->syncs[t->sync_of[layer]];
}

static bool is_overlapped(const tutti_trainer *t)
{
    return t->options->overlap && t->settings.clip <= 0;
}

/* The exchange whose end means: the parameters are the new ones. */
static tutti_exchange *last_exchange(const tutti_sync *s)
{
    return s->exchange ? s->exchange : s->broadcast;
}

/* Once for each run of the exchange, however often it is waited for. */
static void record_exchange(tutti_trainer *t, const tutti_exchange *e, int layer, double *recorded)
{
    if (!t->trace) return;
    const tutti_exchange_stats stats = tutti_exchange_statistics(e);
    if (!stats.runs || stats.submitted == *recorded) return;
    *recorded = stats.submitted;
    tutti_trace_span(t->trace, TUTTI_TRACE_COMM, "exchange", t->net->layers[layer].name, t->step,
                     (int64_t)(stats.bytes_sent / stats.runs), stats.begun, stats.done);
}

static tutti_status wait_timed(tutti_trainer *t, tutti_exchange *e, int layer, double *exposed)
{
    const double start = tutti_now(), before = tutti_exchange_statistics(e).waited;
    const tutti_status status = tutti_exchange_wait(e);
    const double waited = tutti_exchange_statistics(e).waited - before;
    *exposed += waited;
    t->step_exposed += waited;
    if (waited > SHORTEST_SPAN)
        tutti_trace_span(t->trace, TUTTI_TRACE_COMPUTE, "wait", t->net->layers[layer].name, t->step,
                         -1, start, start + waited);
    return status;
}

static tutti_status wait_for_layer(tutti_sync *s, tutti_exchange *e)
{
    const tutti_status status = wait_timed(s->trainer, e, s->layer, &s->exposed);
    record_exchange(s->trainer, e, s->layer, &s->recorded);
    return status;
}

static tutti_status before_forward(void *user, int layer)
{
    tutti_sync *s = sync_of(user, layer);
    return s && last_exchange(s) ? wait_for_layer(s, last_exchange(s)) : TUTTI_OK;
}

static tutti_status gradient_ready(void *user, int layer)
{
    tutti_trainer *t = user;
    tutti_sync *s = sync_of(t, layer);
    s->sgd = t->sgd;
    if (s->reduce) tutti_exchange_start(s->reduce);
    else if (s->exchange && is_overlapped(t)) tutti_exchange_start(s->exchange);
    return TUTTI_OK;
}

static tutti_status weights_released(void *user, int layer)
{
    tutti_trainer *t = user;
    tutti_sync *s = sync_of(t, layer);
    if (s->exchange && is_overlapped(t)) tutti_exchange_open_gate(s->exchange);
    else if (s->holders == 1 && t->settings.clip <= 0) update_alone(s);
    return TUTTI_OK;
}

static tutti_status carry_out_move(void *user, int index)
{
    tutti_trainer *t = user;
    tutti_exchange *e = t->moves[index];
    if (t->move_begun != index + 1) tutti_exchange_start(e);
    else t->move_begun = 0;
    double exposed = 0, recorded = 0;
    const int layer = tutti_model_move(t->model, index)->layer;
    TUTTI_TRY(wait_timed(t, e, layer, &exposed));
    record_exchange(t, e, layer, &recorded);
    return TUTTI_OK;
}

static void computed(void *user, int layer, tutti_layer_pass pass, double begin, double end)
{
    static const char *const names[TUTTI_PASSES] = {"forward", "backward-weights", "backward-data"};
    const tutti_trainer *t = user;
    if (end - begin > SHORTEST_SPAN)
        tutti_trace_span(t->trace, TUTTI_TRACE_COMPUTE, names[pass], t->net->layers[layer].name,
                         t->step, -1, begin, end);
}

static tutti_status start_move(void *user, int index)
{
    tutti_trainer *t = user;
    if (!t->options->overlap || t->move_begun) return TUTTI_OK;
    tutti_exchange_start(t->moves[index]);
    t->move_begun = index + 1;
    return TUTTI_OK;
}

tutti_model_hooks tutti_sync_hooks(tutti_trainer *trainer)
{
    return (tutti_model_hooks){.user = trainer,
                               .before_forward = before_forward,
                               .gradient_ready = gradient_ready,
                               .weights_released = weights_released,
                               .move = carry_out_move,
                               .start_move = start_move,
                               .computed = computed};
}

/* ---- after the pass ---- */

static tutti_status exchange_now(tutti_trainer *t)
{
    for (int i = t->sync_count - 1; i >= 0; i--) {
        tutti_sync *s = &t->syncs[i];
        if (!s->exchange) continue;
        tutti_exchange_start(s->exchange);
        tutti_exchange_open_gate(s->exchange);
        TUTTI_TRY(wait_for_layer(s, s->exchange));
    }
    return TUTTI_OK;
}

static tutti_status clip_and_update(tutti_trainer *t, double *norm)
{
    for (int i = t->sync_count - 1; i >= 0; i--)
        if (t->syncs[i].reduce) TUTTI_TRY(wait_for_layer(&t->syncs[i], t->syncs[i].reduce));
    TUTTI_TRY(tutti_gradient_norm(t, norm));
    t->sgd.gradient_scale = *norm > t->settings.clip ? (float)(t->settings.clip / *norm) : 1.0f;
    for (int i = 0; i < t->sync_count; i++) {
        t->syncs[i].sgd = t->sgd;
        update_alone(&t->syncs[i]);
        if (t->syncs[i].broadcast) tutti_exchange_start(t->syncs[i].broadcast);
    }
    return TUTTI_OK;
}

tutti_status tutti_sync_finish(tutti_trainer *t, double *norm)
{
    *norm = NAN;
    if (t->settings.clip > 0) return clip_and_update(t, norm);
    return is_overlapped(t) ? TUTTI_OK : exchange_now(t);
}

tutti_status tutti_sync_settle(tutti_trainer *t)
{
    for (int i = 0; i < t->sync_count; i++)
        if (last_exchange(&t->syncs[i]))
            TUTTI_TRY(wait_for_layer(&t->syncs[i], last_exchange(&t->syncs[i])));
    return TUTTI_OK;
}

/* ---- putting it together ---- */

static tutti_status create_exchanges(tutti_trainer *t, tutti_sync *s)
{
    tutti_subtree roots[TUTTI_TREE_MAX_ROOTS];
    float *partials[TUTTI_TREE_MAX_ROOTS];
    const int count = tutti_model_roots(t->model, s->layer, roots);
    for (int i = 0; i < count; i++) partials[i] = tutti_model_gradient(t->model, s->layer, i);
    float *parameters = tutti_model_parameters(t->model) + s->region.offset;
    const bool clips = t->settings.clip > 0;

    tutti_exchange_spec spec = {
        .name = t->net->layers[s->layer].name,
        .priority = t->options->priority ? s->layer : 0,
        .group = s->across,
        .count = s->region.count,
        .leaves = t->settings.grains,
        .partials = partials,
        .common = t->common,
        .team = t->me.exec.team,
        .reduce_by = t->options->part_reduce,
        .broadcast_by = t->options->part_broadcast,
    };
    if (clips) {
        TUTTI_TRY(tutti_exchange_create(&s->reduce, t->me.comm, &spec));
        spec.leaves = 0;
        spec.partials = NULL;
        spec.whole = parameters;
        TUTTI_TRY(tutti_exchange_create(&s->broadcast, t->me.comm, &spec));
    } else {
        spec.update = update_strip;
        spec.user = s;
        spec.whole = parameters;
        spec.gated = true;
        TUTTI_TRY(tutti_exchange_create(&s->exchange, t->me.comm, &spec));
    }
    const tutti_exchange_spec collect = {
        .name = spec.name, .group = s->across, .count = s->region.count, .whole = t->collected};
    TUTTI_TRY(tutti_exchange_create(&s->collect, t->me.comm, &collect));
    tutti_exchange_strip(s->collect, &s->begin, &s->end);
    return TUTTI_OK;
}

static tutti_status create_sync(tutti_trainer *t, tutti_sync *s, int layer)
{
    const int groups = t->plan->groups[layer];
    *s = (tutti_sync){.trainer = t,
                      .layer = layer,
                      .holders = groups,
                      .region = tutti_model_region(t->model, layer)};
    s->end = s->region.count;
    if (groups > 1 && groups < t->me.size)
        TUTTI_TRY(tutti_group_create_across(&s->across, t->me.comm, groups));
    if (groups > 1) TUTTI_TRY(create_exchanges(t, s));
    if (t->settings.momentum > 0) TUTTI_TRY(tutti_alloc_floats(&s->momentum, s->end - s->begin));
    return TUTTI_OK;
}

static tutti_status inside_group(tutti_trainer *t, int groups, tutti_group **out)
{
    *out = NULL;
    if (groups == 1) return TUTTI_OK; /* all ranks */
    for (int i = 0; i < t->inside_count; i++)
        if (t->inside_groups[i] == groups) {
            *out = t->inside[i];
            return TUTTI_OK;
        }
    TUTTI_ASSERT(t->inside_count < (int)(sizeof t->inside / sizeof *t->inside));
    TUTTI_TRY(tutti_group_create_inside(out, t->me.comm, groups));
    t->inside[t->inside_count] = *out;
    t->inside_groups[t->inside_count++] = groups;
    return TUTTI_OK;
}

static tutti_status create_move(tutti_trainer *t, const tutti_move *m, tutti_exchange **out)
{
    tutti_group *group;
    TUTTI_TRY(inside_group(t, m->groups, &group));
    if (m->kind == TUTTI_MOVE_ALLTOALL) {
        const tutti_alltoall_spec spec = {m->name,      -1,         group,           m->send,
                                          m->send_cuts, m->receive, m->receive_cuts, true};
        return tutti_exchange_create_alltoall(out, t->me.comm, &spec);
    }
    const bool reduces = m->kind == TUTTI_MOVE_REDUCE;
    const tutti_exchange_spec spec = {
        .name = m->name,
        .priority = -1,
        .exclusive = true,
        .group = group,
        .count = m->cuts[m->members],
        .cuts = m->cuts,
        .leaves = reduces ? m->leaves : 0,
        .partials = reduces ? m->partials : NULL,
        .whole = reduces ? NULL : m->whole,
    };
    return tutti_exchange_create(out, t->me.comm, &spec);
}

tutti_status tutti_sync_create(tutti_trainer *t)
{
    size_t largest = 0;
    TUTTI_TRY(tutti_alloc(&t->sync_of, (size_t)t->net->layer_count, sizeof *t->sync_of));
    TUTTI_TRY(tutti_alloc(&t->syncs, (size_t)t->net->layer_count, sizeof *t->syncs));
    for (int i = 0; i < t->net->layer_count; i++) {
        const size_t count = tutti_model_region(t->model, i).count;
        if (count > largest) largest = count;
    }
    if (t->me.size > 1) TUTTI_TRY(tutti_alloc_floats(&t->collected, largest));
    for (int i = 0; i < t->net->layer_count; i++) {
        t->sync_of[i] = -1;
        if (!tutti_model_region(t->model, i).count) continue;
        t->sync_of[i] = t->sync_count++;
        TUTTI_TRY(create_sync(t, &t->syncs[t->sync_of[i]], i));
    }
    const int moves = tutti_model_move_count(t->model);
    TUTTI_TRY(tutti_alloc(&t->moves, (size_t)moves + 1, sizeof *t->moves));
    for (int i = 0; i < moves; i++)
        TUTTI_TRY(create_move(t, tutti_model_move(t->model, i), &t->moves[i]));
    return TUTTI_OK;
}

void tutti_sync_destroy(tutti_trainer *t)
{
    for (int i = 0; t->moves && t->moves[i]; i++) tutti_exchange_destroy(&t->moves[i]);
    for (int i = 0; i < t->sync_count; i++) {
        tutti_sync *s = &t->syncs[i];
        tutti_exchange_destroy(&s->exchange);
        tutti_exchange_destroy(&s->reduce);
        tutti_exchange_destroy(&s->broadcast);
        tutti_exchange_destroy(&s->collect);
        tutti_group_destroy(&s->across);
        tutti_free(s->momentum);
    }
    for (int i = 0; i < t->inside_count; i++) tutti_group_destroy(&t->inside[i]);
    tutti_free(t->moves);
    tutti_free(t->syncs);
    tutti_free(t->sync_of);
    tutti_free(t->collected);
}
