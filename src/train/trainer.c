#include "train/trainer.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/memory.h"
#include "machine/peak.h"

static tutti_status open_rank(tutti_trainer *t)
{
    tutti_comm_options o = tutti_comm_defaults();
    o.log = t->log;
    o.core = t->options->comm_core;
    o.compute_threads = t->options->threads;
    o.stall_warn = t->options->stall_warn;
    o.stall_abort = t->options->stall_abort;
    TUTTI_TRY(tutti_rank_open(&t->me, &o));
    if (t->me.size > 1) t->log.rank = t->me.rank;
    return TUTTI_OK;
}

/* ---- the net and the data ---- */

static uint64_t first_64_bits(const char *hex)
{
    char digits[17];
    snprintf(digits, sizeof digits, "%.16s", hex);
    return strtoull(digits, NULL, 16);
}

static tutti_status open_data(tutti_trainer *t)
{
    const tutti_train_options *o = t->options;
    tutti_data_options d = tutti_data_defaults();
    const tutti_shape in = tutti_net_input(t->net);
    d.shape = (tutti_sample_shape){in.c, in.h, in.w};
    d.classes = tutti_net_classes(t->net);
    d.seed = o->seed;
    d.augment = o->augment;
    d.skip_bad = o->skip_bad;
    d.log = &t->log;
    if (!o->data) return tutti_fail(TUTTI_ARGUMENT, "--data is missing: name a data set");
    TUTTI_TRY(tutti_data_open(&t->data, o->data, &d));
    TUTTI_ASSERT(tutti_data_stride(t->data) == tutti_net_input_floats(t->net));
    const int have = tutti_data_classes(t->data), can = tutti_net_classes(t->net);
    if (have > can)
        return tutti_fail(TUTTI_SHAPE, "%s has %d classes, but %s ends in %d outputs", o->data,
                          have, t->net->name, can);
    return TUTTI_OK;
}

static tutti_status open_net_and_data(tutti_trainer *t)
{
    if (!t->options->net) return tutti_fail(TUTTI_ARGUMENT, "name a net");
    TUTTI_TRY(tutti_net_load(&t->net, t->options->net));
    if (!t->options->dropout) tutti_net_still(t->net);
    TUTTI_TRY(tutti_net_hash(t->net, t->net_hash));
    TUTTI_TRY(open_data(t));
    return tutti_settings_resolve(&t->settings, t->options, t->net,
                                  tutti_data_count(t->data, TUTTI_SPLIT_TRAIN));
}

static tutti_status check_same_everywhere(tutti_trainer *t)
{
    TUTTI_TRY(tutti_comm_check_same(t->me.comm, "the net", first_64_bits(t->net_hash)));
    TUTTI_TRY(
        tutti_comm_check_same(t->me.comm, "the data set", first_64_bits(tutti_data_hash(t->data))));
    char hex[TUTTI_HASH_HEX];
    const tutti_settings *s = &t->settings;
    char text[512], optimizer[TUTTI_OPTIMIZER_TEXT];
    tutti_optimizer_text(&s->optimizer, optimizer);
    const int n = snprintf(text, sizeof text, "%d %d %.17g %s %.17g %d %.17g %s %s %lld %llu %d",
                           s->batch, s->grains, s->lr, optimizer, s->weight_decay, s->decay_all,
                           s->clip, s->lr_schedule, s->warmup, (long long)s->pace.steps,
                           (unsigned long long)t->options->seed, t->options->shuffle);
    TUTTI_TRY(tutti_hash_bytes(hex, text, (size_t)n));
    return tutti_comm_check_same(t->me.comm, "the options", first_64_bits(hex));
}

/* ---- the model ---- */

/* Collective. One that only evaluates needs none: its ranks exchange nothing. */
static tutti_status choose_plan(tutti_trainer *t)
{
    const tutti_train_options *o = t->options;
    const tutti_plan_question question = {
        .me = &t->me,
        .net = t->net,
        .name = o->plan,
        .batch = t->settings.batch,
        .optimizer = tutti_optimizer_cost_of(&t->settings.optimizer),
        .overlaps = o->overlap && t->settings.clip <= 0,
        .sends = o->part_reduce || o->part_broadcast,
        .peak = t->peak / t->me.size,
        .log = &t->log,
    };
    return tutti_forecast_init(&t->forecast, &question);
}

/* Collective. */
static tutti_status create_session(tutti_trainer *t, bool evaluates_only)
{
    const tutti_settings *s = &t->settings;
    const tutti_session_options o = {
        .comm = t->me.comm,
        .net = t->net,
        .exec = t->me.exec,
        .caches = t->me.caches,
        .batch = s->batch,
        .grains = s->grains,
        .groups = t->forecast.plan ? t->forecast.plan->groups : NULL,
        .late = t->forecast.plan ? t->forecast.plan->late : 0,
        .seed = t->options->seed,
        .optimizer = s->optimizer,
        .weight_decay = s->weight_decay,
        .decay_all = s->decay_all,
        .clip = s->clip,
        .overlap = t->options->overlap,
        .priority = t->options->priority,
        .part_reduce = t->options->part_reduce,
        .part_broadcast = t->options->part_broadcast,
        .trace = t->trace,
        .forward_only = evaluates_only,
    };
    return tutti_session_create(&t->session, &o);
}

static tutti_status init_model(tutti_trainer *t)
{
    const char *text = t->options->init ? t->options->init : "auto";
    const size_t length = strcspn(text, ":");
    char *end = NULL;
    const double std = text[length] ? strtod(text + length + 1, &end) : 0;
    for (int i = 0; tutti_init_words[i]; i++)
        if (strlen(tutti_init_words[i]) == length && !strncmp(tutti_init_words[i], text, length) &&
            (!end || (!*end && std > 0 && i == TUTTI_INIT_GAUSSIAN))) {
            tutti_model_init(tutti_session_model(t->session), t->options->seed, (tutti_init)i,
                             (float)std);
            return TUTTI_OK;
        }
    return tutti_fail(TUTTI_ARGUMENT, "--init '%s' is not he, xavier, gaussian or gaussian:STD",
                      text);
}

static tutti_status open_loader(tutti_trainer *t)
{
    const tutti_model *model = tutti_session_model(t->session);
    tutti_loader_options o = tutti_loader_defaults();
    if (t->settings.evaluates && tutti_data_count(t->data, TUTTI_SPLIT_TEST) < 1)
        return tutti_fail(TUTTI_DATA,
                          "%s has no samples to test on: give it some, or train with "
                          "--eval-every never",
                          t->options->data);
    o.batch = t->settings.batch;
    o.first = tutti_model_first_sample(model);
    o.end = o.first + tutti_model_samples(model);
    o.seed = t->options->seed;
    o.shuffle = t->options->shuffle;
    o.step = tutti_session_steps(t->session);
    o.threads = t->options->data_threads;
    return tutti_loader_create(&t->loader, t->data, &o);
}

static tutti_status open_keeper(tutti_trainer *t)
{
    const tutti_train_options *o = t->options;
    if (!o->run && !o->weights && !o->resume) return TUTTI_OK;
    return tutti_keeper_create(&t->keeper, t->me.comm, t->session, &t->log);
}

static tutti_status prepare_training(tutti_trainer *t)
{
    const tutti_train_options *o = t->options;
    TUTTI_TRY(tutti_comm_agree(t->me.comm, init_model(t)));
    if (o->weights) TUTTI_TRY(tutti_keeper_load_weights(t->keeper, o->weights, false));
    if (o->resume) TUTTI_TRY(tutti_trainer_resume(t));
    return tutti_comm_agree(t->me.comm, open_loader(t));
}

/* What the threads can do; measured before any other thread of ours is at work. */
static tutti_status measure_peak(tutti_trainer *t)
{
    double gflops;
    TUTTI_TRY(tutti_peak_measure(&gflops, t->me.exec, 0.03));
    t->peak = gflops * 1e9 * t->me.size;
    return TUTTI_OK;
}

static tutti_status open_trace(tutti_trainer *t)
{
    if (!t->options->trace) return TUTTI_OK;
    return tutti_trace_create(&t->trace, t->me.rank, 1 << 18);
}

static tutti_status open_parts(tutti_trainer *t, bool evaluates_only)
{
    TUTTI_TRY(open_rank(t));
    TUTTI_TRY(tutti_comm_agree(t->me.comm, open_net_and_data(t)));
    TUTTI_TRY(check_same_everywhere(t));
    TUTTI_TRY(tutti_comm_agree(t->me.comm, measure_peak(t)));
    TUTTI_TRY(tutti_grains_suffice(t->me.size, t->settings.grains, t->settings.batch));
    if (!evaluates_only) TUTTI_TRY(choose_plan(t));
    TUTTI_TRY(tutti_comm_agree(t->me.comm, open_trace(t)));
    TUTTI_TRY(create_session(t, evaluates_only));
    TUTTI_TRY(tutti_comm_agree(t->me.comm, open_keeper(t)));
    return evaluates_only ? TUTTI_OK : prepare_training(t);
}

tutti_status tutti_trainer_open(tutti_trainer *t, const tutti_train_options *options,
                                bool evaluates_only)
{
    *t = (tutti_trainer){.options = options,
                         .log = options->log,
                         .best_top1 = NAN,
                         .last_top1 = NAN,
                         .last_top5 = NAN,
                         .last_loss = NAN};
    const tutti_status s = open_parts(t, evaluates_only);
    if (s != TUTTI_OK) tutti_trainer_close(t);
    return s;
}

void tutti_trainer_close(tutti_trainer *t)
{
    tutti_progress_destroy(&t->progress);
    tutti_metrics_close(&t->metrics);
    tutti_loader_destroy(&t->loader);
    tutti_keeper_destroy(&t->keeper);
    tutti_session_destroy(&t->session);
    tutti_trace_destroy(&t->trace);
    tutti_forecast_deinit(&t->forecast);
    tutti_data_close(&t->data);
    tutti_net_destroy(&t->net);
    tutti_rank_close(&t->me);
}
