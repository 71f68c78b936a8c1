#include "step/stepper.h"

#include "base/clock.h"
#include "base/memory.h"
#include "step/parts.h"

/* ---- putting it together ---- */

/* Collective. Simulated ranks are one process, which a failure of one ends: messages would only
 * shift the moment at which each begins. */
static tutti_status agree(const tutti_stepper_options *o, tutti_status mine)
{
    return o->stand_in ? mine : tutti_comm_agree(o->comm, mine);
}

tutti_model_options tutti_stepper_model_options(tutti_stepper *s)
{
    const tutti_stepper_options *o = &s->options;
    return (tutti_model_options){
        .row = o->exec.row,
        .team = o->exec.team,
        .caches = o->caches,
        .batch = o->batch,
        .grains = o->grains,
        .micro_batch = o->micro_batch,
        .workers = s->size,
        .worker = s->rank,
        .forward_only = o->forward_only,
        .seed = o->seed,
        .smoothing = o->smoothing,
        .class_weights = o->class_weights,
        .groups = s->size > 1 ? o->groups : NULL,
        .late = o->late,
        .hooks = o->forward_only ? (tutti_model_hooks){0} : tutti_sync_hooks(s),
        .stand_in = o->stand_in,
    };
}

/* Ranks of one host that hold the same parameters hold them once, unless messages are asked for
 * by the name of an algorithm. */
static bool may_share(const tutti_stepper *s)
{
    const tutti_stepper_options *o = &s->options;
    if (o->forward_only || o->stand_in || o->part_reduce || o->part_broadcast) return false;
    for (int i = 0; o->groups && i < o->net->layer_count; i++)
        if (o->groups[i] && o->groups[i] != s->size) return false;
    return true;
}

/* Collective. */
static tutti_status share_memory(tutti_stepper *s)
{
    tutti_model_bytes bytes = {0};
    if (!may_share(s)) return TUTTI_OK;
    const tutti_model_options o = tutti_stepper_model_options(s);
    TUTTI_TRY(tutti_comm_agree(s->options.comm, tutti_model_measure(&bytes, s->options.net, &o)));
    return tutti_common_create(&s->common, s->options.comm, bytes.parameters, bytes.gradients);
}

static tutti_status create_model(tutti_stepper *s)
{
    tutti_model_options o = tutti_stepper_model_options(s);
    if (s->common) {
        o.parameters = tutti_common_whole(s->common);
        o.gradients = tutti_common_own(s->common);
    }
    return tutti_model_create(&s->model, s->options.net, &o);
}

/* In this order on all ranks: exchanges are known to the others by their number. */
static tutti_status create_exchanges(tutti_stepper *s)
{
    TUTTI_TRY(tutti_sync_create(s));
    TUTTI_TRY(tutti_moves_create(s));
    TUTTI_TRY(tutti_divisor_create(s));
    return tutti_pulse_create(s);
}

static tutti_status create_parts(tutti_stepper *s)
{
    TUTTI_TRY(share_memory(s));
    TUTTI_TRY(agree(&s->options, create_model(s)));
    if (s->options.forward_only) return TUTTI_OK;
    return agree(&s->options, create_exchanges(s));
}

tutti_status tutti_stepper_create(tutti_stepper **out, const tutti_stepper_options *options)
{
    tutti_stepper *stepper = NULL;
    TUTTI_TRY(agree(options, tutti_alloc(&stepper, 1, sizeof *stepper)));
    stepper->options = *options;
    stepper->rank = tutti_comm_rank(options->comm);
    stepper->size = tutti_comm_size(options->comm);
    const tutti_status s = create_parts(stepper);
    if (s == TUTTI_OK) *out = stepper;
    else tutti_stepper_destroy(&stepper);
    return s;
}

void tutti_stepper_destroy(tutti_stepper **stepper)
{
    tutti_stepper *s = *stepper;
    if (!s) return;
    tutti_pulse_destroy(&s->pulse);
    tutti_divisor_destroy(&s->divisor);
    tutti_moves_destroy(s);
    tutti_sync_destroy(s);
    tutti_model_destroy(&s->model);
    tutti_free(s);
    *stepper = NULL;
}

/* ---- steps ---- */

tutti_status tutti_stepper_step(tutti_stepper *s, const tutti_samples *samples, double lr,
                                tutti_note mine, tutti_news *news)
{
    const double start = tutti_now();
    s->exposed = 0;
    tutti_update_prepare(s, lr);
    tutti_divisor_start(s, samples);
    tutti_model_mix(s->model, samples->others, samples->shares);
    tutti_model_aim(s->model, &samples->goals);
    TUTTI_TRY(tutti_model_train(s->model, (uint32_t)s->step, samples->values, samples->labels));
    tutti_model_aim(s->model, NULL);
    TUTTI_TRY(tutti_sync_finish(s));
    s->computed += tutti_now() - start - s->exposed;
    s->step++;
    return tutti_pulse_beat(s, mine, news);
}

tutti_status tutti_stepper_settle(tutti_stepper *s, tutti_news *news)
{
    TUTTI_TRY(tutti_sync_settle(s));
    return tutti_pulse_flush(s, news);
}

tutti_status tutti_stepper_hear(tutti_stepper *s, tutti_news *news)
{
    return tutti_pulse_flush(s, news);
}

tutti_status tutti_stepper_release(tutti_stepper *s)
{
    return tutti_common_release(s->common);
}

/* ---- questions ---- */

tutti_model *tutti_stepper_model(tutti_stepper *stepper)
{
    return stepper->model;
}

const tutti_chosen_optimizer *tutti_stepper_optimizer(const tutti_stepper *stepper)
{
    return &stepper->options.optimizer;
}

bool tutti_stepper_shares_memory(const tutti_stepper *stepper)
{
    return stepper->common != NULL;
}

int64_t tutti_stepper_steps(const tutti_stepper *stepper)
{
    return stepper->step;
}

void tutti_stepper_begin_at(tutti_stepper *stepper, int64_t step)
{
    stepper->step = step;
}

double tutti_stepper_exposed(const tutti_stepper *stepper)
{
    return stepper->exposed;
}

double tutti_stepper_computed(const tutti_stepper *stepper)
{
    return stepper->computed;
}

static void add_exchange(tutti_traffic *t, const tutti_exchange *e)
{
    if (!e) return;
    const tutti_exchange_stats s = tutti_exchange_statistics(e);
    t->busy += s.total_busy;
    t->bytes += s.bytes_sent;
}

tutti_traffic tutti_stepper_traffic(const tutti_stepper *s, int layer)
{
    tutti_traffic t = {0};
    for (int i = 0; i < s->sync_count; i++) {
        const tutti_sync *sync = &s->syncs[i];
        if (layer >= 0 && sync->layer != layer) continue;
        add_exchange(&t, sync->exchange);
        add_exchange(&t, sync->reduce);
        add_exchange(&t, sync->broadcast);
        t.exposed += sync->exposed;
    }
    for (int i = 0; s->moves.exchanges && s->moves.exchanges[i]; i++)
        if (layer < 0 || tutti_model_move(s->model, i)->layer == layer)
            add_exchange(&t, s->moves.exchanges[i]);
    return t;
}

/* Of a layer that exchanges nothing: without parameters, or frozen, then no strip and no states. */
static tutti_holding unsynced_holding(const tutti_stepper *s, int layer)
{
    if (!tutti_model_region(s->model, layer).count) return (tutti_holding){0};
    const int groups = s->options.groups ? s->options.groups[layer] : 0;
    const int holders = groups ? groups : s->size;
    return (tutti_holding){.region = tutti_model_region(s->model, layer),
                           .holders = holders,
                           .place = s->rank / (s->size / holders)};
}

tutti_holding tutti_stepper_holding(const tutti_stepper *s, int layer)
{
    if (!s->sync_of) return (tutti_holding){0};
    if (s->sync_of[layer] < 0) return unsynced_holding(s, layer);
    const tutti_sync *sync = &s->syncs[s->sync_of[layer]];
    return (tutti_holding){
        .region = sync->region,
        .across = sync->across,
        .holders = sync->holders,
        .place = s->rank / (s->size / sync->holders),
        .begin = sync->begin,
        .end = sync->end,
        .state = {sync->state[0], sync->state[1]},
        .average = sync->average,
    };
}
