#include "train/run.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/log.h"
#include "base/memory.h"
#include "format/file.h"
#include "machine/peak.h"
#include "step/ranks.h"

/* While a run opens all ranks see the same, and one mentions it. */
static void speak(tutti_run *run)
{
    if (run->me.size > 1) run->log.rank = run->me.rank;
    if (run->me.rank && run->log.level > TUTTI_LOG_ERROR) run->log.level = TUTTI_LOG_ERROR;
}

static tutti_status open_rank(tutti_run *run)
{
    tutti_comm_options o = tutti_comm_defaults();
    if (run->options->ranks) {
        run->me = run->options->ranks->me;
        speak(run);
        return TUTTI_OK;
    }
    o.log = run->log;
    o.core = run->options->comm_core;
    o.compute_threads = run->options->threads;
    o.stall_warn = run->options->stall_warn;
    o.stall_abort = run->options->stall_abort;
    TUTTI_TRY(tutti_rank_open(&run->me, &o));
    speak(run);
    return TUTTI_OK;
}

/* ---- the directory ---- */

static bool goes_on(const tutti_run *run)
{
    const char *resume = run->options->resume;
    return resume && (!strcmp(resume, "auto") || tutti_claim_has(run->claim, resume));
}

/* A directory that holds a run is for going on with it, or for --overwrite. */
static tutti_status check_claim(const tutti_run *run)
{
    char old[TUTTI_PATH_BYTES];
    const tutti_train_options *o = run->options;
    if (!tutti_claim_holds_run(run->claim)) return TUTTI_OK;
    if (goes_on(run))
        return o->overwrite ? tutti_fail(TUTTI_ARGUMENT,
                                         "--overwrite would move away what --resume "
                                         "%s goes on with: give another --run",
                                         o->resume)
                            : TUTTI_OK;
    if (o->overwrite) return TUTTI_OK;
    TUTTI_TRY(tutti_claim_old_name(old, run->claim));
    return tutti_fail(TUTTI_OTHER_RUN,
                      "'%s' holds another run: go on with it (--resume auto), give another --run, "
                      "or --overwrite, which moves it to '%s'",
                      o->run, old);
}

/* Only one rank writes names into the directory. */
static tutti_status claim_directory(tutti_run *run)
{
    if (run->options->tensorboard && !run->options->run)
        return tutti_fail(TUTTI_ARGUMENT,
                          "--tensorboard writes into the directory of --run: give one");
    if (!run->options->run || run->me.rank != 0) return TUTTI_OK;
    TUTTI_TRY(tutti_claim_open(&run->claim, run->options->run, &run->log));
    return check_claim(run);
}

/* ---- the net and the data ---- */

/* A model that tells how its samples were made needs none of them to be asked about files. */
static tutti_status open_manner(tutti_run *run)
{
    const tutti_about *about = run->about;
    const tutti_shape in = tutti_net_input(run->net);
    const tutti_sample_shape p = about->manner.picture;
    tutti_manner manner = about->manner;
    manner.shape = (tutti_sample_shape){in.c, in.h, in.w};
    if (!p.channels)
        return tutti_fail(TUTTI_ARGUMENT, "--weights %s: this net was not trained on pictures",
                          run->options->weights);
    if ((size_t)p.channels * (size_t)p.height * (size_t)p.width != tutti_shape_count(in))
        return tutti_fail(TUTTI_CHECKPOINT, "--weights %s: their pictures do not fit their net",
                          run->options->weights);
    return tutti_data_open_manner(&run->data, &manner, &about->normalise, about->classes,
                                  about->class_count, &run->log);
}

/* Samples of a model that tells how it was trained are made as it was told. */
static tutti_status open_samples(tutti_run *run, bool evaluates_only)
{
    const tutti_train_options *o = run->options;
    tutti_data_options d = tutti_data_defaults();
    tutti_bar reading = {.stream = run->me.rank == 0 ? o->show : NULL};
    const tutti_shape in = tutti_net_input(run->net);
    const bool is_told = evaluates_only && run->about;
    const bool asks_model =
        run->use == TUTTI_RUN_STEPS && run->about && o->own_data && !o->own_data->means;
    d.shape = (tutti_sample_shape){in.c, in.h, in.w};
    d.classes = tutti_net_classes(run->net);
    d.target_count = run->net->target_count, d.answer = tutti_net_answer(run->net);
    memcpy(d.targets, run->net->targets, sizeof d.targets);
    d.seed = (uint64_t)run->settings.seed;
    d.augment = run->settings.augment;
    d.skip_bad = run->settings.skip_bad;
    d.asks = run->use == TUTTI_RUN_ASKS;
    d.own = o->own_data;
    d.log = &run->log;
    d.bar = &reading;
    if (is_told || asks_model) d.normalise = run->about->normalise;
    TUTTI_TRY(tutti_data_open(&run->data, o->data, &d));
    if (!is_told) return TUTTI_OK;
    return tutti_data_is_labelled(run->data) ? tutti_run_match_classes(run) : TUTTI_OK;
}

static tutti_status regroup(tutti_run *run)
{
    const char *text = run->settings.bn_group;
    char *end = NULL;
    const long samples = strtol(text, &end, 10);
    if (!strcmp(text, "net")) return TUTTI_OK;
    const bool is_number = end != text && !*end && samples >= 1 && samples <= TUTTI_MOST_GROUP;
    if (!is_number && strcmp(text, "all") != 0)
        return tutti_fail(TUTTI_ARGUMENT,
                          "--bn-group %s is neither a number of samples, 1 to %d, nor all", text,
                          TUTTI_MOST_GROUP);
    tutti_net_regroup(run->net, is_number ? (int)samples : 0);
    return TUTTI_OK;
}

static tutti_status open_data(tutti_run *run, bool evaluates_only)
{
    const char *name = run->options->data;
    if (!name && run->options->own_data) name = run->filled.data = TUTTI_OWN_KIND;
    if (name) TUTTI_TRY(open_samples(run, evaluates_only));
    else if (evaluates_only && run->about) TUTTI_TRY(open_manner(run));
    else return tutti_fail(TUTTI_ARGUMENT, "--data is missing: name a data set");
    TUTTI_ASSERT(tutti_data_stride(run->data) == tutti_net_input_floats(run->net));
    const int have = tutti_data_classes(run->data), can = tutti_net_classes(run->net);
    if (have <= can) return TUTTI_OK;
    return tutti_fail(TUTTI_SHAPE, "%s has %d classes, but %s ends in %d outputs",
                      name ? name : run->options->weights, have, run->net->name, can);
}

static tutti_status take_loss(tutti_run *run)
{
    const char *weights = run->options->class_weights;
    if (run->settings.label_smoothing > 0 || (weights && strcmp(weights, "none")))
        return tutti_fail(TUTTI_ARGUMENT, "--label-smoothing and --class-weights are not for a "
                                          "loss of the program's own, which does that itself");
    return tutti_net_take_loss(run->net, run->options->own_loss);
}

static tutti_status open_net(tutti_run *run, bool evaluates_only)
{
    TUTTI_TRY(tutti_run_open_net(run, evaluates_only));
    TUTTI_TRY(tutti_settings_resolve(&run->settings, run->options, run->net));
    if (!run->settings.dropout) tutti_net_still(run->net);
    if (run->options->own_loss) TUTTI_TRY(take_loss(run));
    TUTTI_TRY(regroup(run));
    TUTTI_TRY(tutti_net_hash(run->net, run->net_hash));
    tutti_run_convolve(run, evaluates_only);
    TUTTI_TRY(tutti_run_round(run, evaluates_only));
    TUTTI_TRY(tutti_settings_divide(&run->settings, run->options, run->net));
    if (evaluates_only) return TUTTI_OK;
    TUTTI_TRY(tutti_net_scale_lr(run->net, run->settings.lr_scale));
    return tutti_net_freeze(run->net, run->settings.freeze);
}

/* Without a data set it is what the caller says; nobody who did not is told a schedule's rate. */
static int64_t samples_of_epoch(const tutti_run *run)
{
    const int64_t samples = tutti_data_count(run->data, TUTTI_SPLIT_TRAIN);
    if (samples || run->use != TUTTI_RUN_STEPS) return samples;
    return run->options->epoch_samples > 0 ? run->options->epoch_samples : run->settings.batch;
}

static tutti_status open_net_and_data(tutti_run *run, bool evaluates_only)
{
    TUTTI_TRY(tutti_run_read_about(run, run->use != TUTTI_RUN_TRAINS));
    TUTTI_TRY(open_net(run, evaluates_only));
    TUTTI_TRY(tutti_run_check_kind_of_loss(run));
    TUTTI_TRY(open_data(run, evaluates_only));
    if (!evaluates_only)
        TUTTI_TRY(tutti_settings_pace(&run->settings, run->options, samples_of_epoch(run)));
    if (!evaluates_only)
        TUTTI_TRY(tutti_class_weights_init(&run->class_weights, run->options->class_weights,
                                           run->data, tutti_net_classes(run->net)));
    const tutti_contents contents = {tutti_data_hash(run->data), run->class_weights.hash};
    TUTTI_TRY(tutti_kept_init(&run->kept, run->options, &run->settings, &contents));
    return tutti_run_compare_options(run);
}

static tutti_status check_same_everywhere(tutti_run *run)
{
    tutti_comm *comm = run->me.comm;
    char text[TUTTI_HASH_HEX] = "";
    const tutti_status s = tutti_hash_bytes(text, run->net->text, strlen(run->net->text));
    TUTTI_TRY(tutti_comm_agree(comm, s));
    TUTTI_TRY(tutti_comm_check_same_text(comm, "the net", run->net_hash));
    TUTTI_TRY(tutti_comm_check_same_text(comm, "the net's text", text));
    return tutti_kept_check_same(&run->kept, run->options, comm);
}

/* ---- the model ---- */

static tutti_plan_question plan_question(const tutti_run *run, int micro_batch)
{
    const tutti_train_options *o = run->options;
    return (tutti_plan_question){
        .me = &run->me,
        .net = run->net,
        .name = o->plan,
        .batch = run->settings.batch,
        .grains = run->settings.grains,
        .micro_batch = micro_batch,
        .optimizer = tutti_optimizer_cost_of(&run->settings.optimizer),
        .overlaps = o->overlap && run->settings.clip <= 0,
        .sends = o->part_reduce || o->part_broadcast,
        .peak = run->peak / run->me.size,
        .log = &run->log,
    };
}

/* Collective. One that only evaluates needs none: its ranks exchange nothing. */
static tutti_status choose_plan(tutti_run *run)
{
    const tutti_plan_question question = plan_question(run, run->options->micro_batch);
    return tutti_forecast_init(&run->forecast, &question);
}

/* Collective. Whether a step takes several passes is known when its plan is. */
static tutti_status choose_micro_batch(tutti_run *run)
{
    const tutti_stepper_options o = tutti_run_stepper_options(run, false);
    TUTTI_TRY(tutti_run_choose_micro_batch(run, &o));
    if (run->micro_batch == o.micro_batch) return TUTTI_OK;
    const tutti_plan_question question = plan_question(run, run->micro_batch);
    return tutti_forecast_again(&run->forecast, &question);
}

tutti_stepper_options tutti_run_stepper_options(const tutti_run *run, bool evaluates_only)
{
    const tutti_settings *s = &run->settings;
    return (tutti_stepper_options){
        .comm = run->me.comm,
        .net = run->net,
        .exec = run->me.exec,
        .caches = run->me.caches,
        .batch = s->batch,
        .grains = s->grains,
        .micro_batch = evaluates_only ? 0 : run->options->micro_batch,
        .groups = run->forecast.plan ? run->forecast.plan->groups : NULL,
        .late = run->forecast.plan ? run->forecast.plan->late : 0,
        .seed = (uint64_t)s->seed,
        .smoothing = s->label_smoothing,
        .ema = s->ema,
        .class_weights = run->class_weights.values,
        .optimizer = s->optimizer,
        .weight_decay = s->weight_decay,
        .decay_all = s->decay_all,
        .clip = s->clip,
        .overlap = run->options->overlap,
        .priority = run->options->priority,
        .part_reduce = run->options->part_reduce,
        .part_broadcast = run->options->part_broadcast,
        .trace = run->trace,
        .forward_only = evaluates_only,
    };
}

/* Collective. */
static tutti_status create_stepper(tutti_run *run, bool evaluates_only)
{
    if (!evaluates_only) TUTTI_TRY(choose_micro_batch(run));
    tutti_stepper_options o = tutti_run_stepper_options(run, evaluates_only);
    o.micro_batch = run->micro_batch;
    return tutti_stepper_create(&run->stepper, &o);
}

static tutti_status init_model(tutti_run *run)
{
    const char *text = run->settings.init;
    const size_t length = strcspn(text, ":");
    char *end = NULL;
    const double std = text[length] ? strtod(text + length + 1, &end) : 0;
    for (int i = 0; tutti_init_words[i]; i++)
        if (strlen(tutti_init_words[i]) == length && !strncmp(tutti_init_words[i], text, length) &&
            (!end || (!*end && std > 0 && i == TUTTI_INIT_GAUSSIAN))) {
            tutti_model_init(tutti_stepper_model(run->stepper), (uint64_t)run->settings.seed,
                             (tutti_init)i, (float)std);
            return TUTTI_OK;
        }
    return tutti_fail(TUTTI_ARGUMENT, "--init '%s' is not he, xavier, gaussian or gaussian:STD",
                      text);
}

static tutti_status open_loader(tutti_run *run)
{
    const tutti_model *model = tutti_stepper_model(run->stepper);
    tutti_loader_options o = tutti_loader_defaults();
    if (run->settings.evaluates && tutti_data_count(run->data, tutti_run_judge(run)) < 1)
        return tutti_fail(TUTTI_DATA,
                          "%s has no samples to test on: give it some (doc/DATA.md: test=, "
                          "holdout=), or train with --eval-every never",
                          run->options->data);
    o.batch = run->settings.batch;
    o.first = tutti_model_first_sample(model);
    o.end = o.first + tutti_model_samples(model);
    o.seed = (uint64_t)run->settings.seed;
    o.shuffle = run->settings.shuffle;
    o.step = tutti_stepper_steps(run->stepper);
    o.threads = run->options->data_threads;
    return tutti_loader_create(&run->loader, run->data, &o);
}

/* What its weights will tell about themselves. */
static tutti_status describe(tutti_run *run)
{
    tutti_about_texts texts;
    TUTTI_TRY(tutti_about_texts_init(&texts, run->net, &run->settings, run->data));
    const tutti_status s = tutti_keeper_describe(run->keeper, texts.list, texts.count);
    tutti_about_texts_deinit(&texts);
    return s;
}

static tutti_status open_keeper(tutti_run *run, bool evaluates_only)
{
    const tutti_train_options *o = run->options;
    if (!o->run && !o->weights && !o->resume) return TUTTI_OK;
    const tutti_log *log = run->me.rank ? NULL : &run->log; /* all would say the same */
    TUTTI_TRY(tutti_keeper_create(&run->keeper, &run->me, run->stepper, log));
    return evaluates_only ? TUTTI_OK : describe(run);
}

static tutti_status prepare_training(tutti_run *run)
{
    const tutti_train_options *o = run->options;
    tutti_run_mention_spare_outputs(run);
    TUTTI_TRY(tutti_comm_agree(run->me.comm, init_model(run)));
    if (o->weights) TUTTI_TRY(tutti_keeper_load_weights(run->keeper, o->weights, o->rename, false));
    tutti_stepper_begin_average(run->stepper);
    TUTTI_TRY(tutti_run_resume(run));
    if (!tutti_data_count(run->data, TUTTI_SPLIT_TRAIN)) return TUTTI_OK;
    return tutti_comm_agree(run->me.comm, open_loader(run));
}

/* What the threads can do; measured before any other thread of ours is at work. */
static tutti_status measure_peak(tutti_run *run)
{
    double gflops;
    TUTTI_TRY(tutti_peak_measure(&gflops, run->me.exec, 0.12));
    run->peak = gflops * 1e9 * tutti_peak_share(&run->me) * run->me.size;
    return TUTTI_OK;
}

/* tutti calibrate took more time for it. */
static void believe_measurement(tutti_run *run)
{
    run->peak = fmax(run->peak, run->forecast.peak * tutti_peak_share(&run->me) * run->me.size);
}

double tutti_run_percent_of_peak(tutti_run *run, double samples_per_s)
{
    const double speed = samples_per_s * tutti_net_made_flops(run->net);
    if (!(run->peak > 0)) return NAN;
    run->peak = fmax(run->peak, speed);
    return 100 * speed / run->peak;
}

static tutti_status open_trace(tutti_run *run)
{
    if (!run->options->trace) return TUTTI_OK;
    TUTTI_TRY(tutti_file_check_place(run->options->trace));
    return tutti_trace_create(&run->trace, run->me.rank, 1 << 18);
}

static tutti_status open_parts(tutti_run *run, bool evaluates_only)
{
    TUTTI_TRY(open_rank(run));
    if (!evaluates_only) TUTTI_TRY(tutti_comm_agree(run->me.comm, claim_directory(run)));
    TUTTI_TRY(tutti_run_find(run));
    TUTTI_TRY(tutti_comm_agree(run->me.comm, open_net_and_data(run, evaluates_only)));
    TUTTI_TRY(check_same_everywhere(run));
    TUTTI_TRY(tutti_comm_agree(run->me.comm, measure_peak(run)));
    TUTTI_TRY(tutti_grains_suffice(run->me.size, run->settings.grains, run->settings.batch));
    if (!evaluates_only) TUTTI_TRY(choose_plan(run));
    believe_measurement(run);
    TUTTI_TRY(tutti_comm_agree(run->me.comm, open_trace(run)));
    TUTTI_TRY(create_stepper(run, evaluates_only));
    TUTTI_TRY(tutti_comm_agree(run->me.comm, open_keeper(run, evaluates_only)));
    return evaluates_only ? TUTTI_OK : prepare_training(run);
}

tutti_status tutti_run_open(tutti_run *run, const tutti_train_options *options, tutti_run_use use)
{
    const tutti_found nothing = {.loss = NAN, .figures = {NAN, NAN, NAN}};
    *run = (tutti_run){.use = use,
                       .options = &run->filled,
                       .filled = *options,
                       .score = {.last = nothing, .best = NAN, .test = nothing, .loss = NAN}};
    TUTTI_TRY(tutti_chronicle_create(&run->chronicle, options->log));
    run->log = tutti_chronicle_log(run->chronicle);
    const tutti_status s =
        tutti_run_conclude(run, open_parts(run, use != TUTTI_RUN_TRAINS && use != TUTTI_RUN_STEPS));
    run->log.level = options->log.level;
    if (s != TUTTI_OK) tutti_run_close(run);
    return s;
}

tutti_status tutti_run_conclude(tutti_run *run, tutti_status status)
{
    if (status == TUTTI_OK || status == TUTTI_COMM || status == TUTTI_STALL) return status;
    status = tutti_run_advise_memory(run, status);
    if (!run->me.comm || run->me.size == 1) return status;
    status = tutti_comm_survive(run->me.comm, status);
    if (run->me.rank == 0) tutti_error(&run->log, "%s", tutti_message());
    run->was_said = true;
    const tutti_status known = tutti_comm_failure(run->me.comm);
    return status == TUTTI_PEER && known != TUTTI_OK ? known : status;
}

tutti_status tutti_run_fatal(tutti_run *run, tutti_status status)
{
    if (status == TUTTI_OK || run->me.size == 1 || status == TUTTI_PEER) return status;
    tutti_error(&run->log, "%s", tutti_message());
    tutti_comm_abort(run->me.comm, status);
}

float tutti_run_rate(const tutti_run *run, int64_t step)
{
    const tutti_settings *s = &run->settings;
    return (float)tutti_schedule_rate(&s->schedule, s->lr, step, &s->pace);
}

tutti_status tutti_run_check_loss(const tutti_run *run, const tutti_news *news)
{
    if (news->diverged_rank < 0) return TUTTI_OK;
    const tutti_nonfinite odd = news->nonfinite;
    const char *layer = odd.layer < 0 ? "" : run->net->layers[odd.layer].name;
    const char *advice = "lower --lr, add --warmup or --clip";
    char where[160];
    switch (odd.kind) {
    case TUTTI_NONFINITE_SAMPLE:
        snprintf(where, sizeof where, "sample %d of the minibatch is not finite", odd.sample);
        advice = "look at the data";
        break;
    case TUTTI_NONFINITE_PARAMETERS:
        snprintf(where, sizeof where, "the parameters of layer '%s' are not finite", layer);
        break;
    case TUTTI_NONFINITE_OUTPUT:
        snprintf(where, sizeof where, "first seen in the output of layer '%s'", layer);
        break;
    default: snprintf(where, sizeof where, "every layer's output is finite");
    }
    return tutti_fail(TUTTI_DIVERGED,
                      "step %lld, rank %d: the loss is not a finite number (%s); %s; the last "
                      "good checkpoint is kept",
                      (long long)news->step, news->diverged_rank, where, advice);
}

void tutti_run_close(tutti_run *run)
{
    tutti_progress_destroy(&run->progress);
    tutti_keeper_destroy(&run->keeper); /* its thread looks after the metrics */
    tutti_metrics_close(&run->metrics);
    tutti_events_close(&run->events);
    tutti_chronicle_close(run->chronicle);
    tutti_loader_destroy(&run->loader);
    tutti_stepper_destroy(&run->stepper);
    tutti_trace_destroy(&run->trace);
    tutti_forecast_deinit(&run->forecast);
    tutti_data_close(&run->data);
    tutti_net_destroy(&run->net);
    tutti_class_weights_deinit(&run->class_weights);
    tutti_claim_close(&run->claim);
    tutti_free(run->outputs);
    tutti_about_close(&run->about);
    tutti_kept_deinit(&run->kept);
    tutti_state_close(&run->was);
    if (!run->options || !run->options->ranks) tutti_rank_close(&run->me);
    run->me = (tutti_rank){0};
    tutti_chronicle_destroy(&run->chronicle); /* everybody above may have logged */
}
