#include "train/settings.h"

#include <stdio.h>
#include <string.h>

#include "data/data.h"
#include "kernel/conv.h"
#include "nn/model.h"

enum { MOST_STEPS = 1 << 30 };

const char *tutti_train_data_kind(int index)
{
    return tutti_data_known(index);
}

tutti_train_options tutti_train_defaults(void)
{
    return (tutti_train_options){
        .lr = -1,
        .momentum = -1,
        .nesterov = -1,
        .weight_decay = -1,
        .decay_all = -1,
        .clip = -1,
        .label_smoothing = -1,
        .ema = -1,
        .seed = -1,
        .shuffle = -1,
        .augment = -1,
        .dropout = -1,
        .skip_bad = -1,
        .overlap = true,
        .priority = true,
        .comm_core = -1,
        .stall_warn = 60,
        .stall_abort = 600,
        .keep = -1,
        .patience = -1,
    };
}

static void take_suggested(tutti_settings *out, const tutti_suggested *s)
{
    out->batch = s->batch;
    out->epochs = out->usual_epochs = s->epochs;
    out->lr = s->lr;
    out->optimizer = s->optimizer;
    out->weight_decay = s->weight_decay;
    out->decay_all = s->decay_all;
    out->clip = s->clip;
    out->label_smoothing = s->label_smoothing;
    out->ema = s->ema;
    snprintf(out->precision, sizeof out->precision, "%s", tutti_precision_words[1 + s->precision]);
    snprintf(out->lr_schedule, sizeof out->lr_schedule, "%s", s->lr_schedule);
    snprintf(out->warmup, sizeof out->warmup, "%s", s->warmup);
}

static tutti_status set_own(tutti_settings *out, const char *name, double value)
{
    if (tutti_optimizer_set(&out->optimizer, name, value)) return TUTTI_OK;
    return tutti_fail(TUTTI_ARGUMENT, "--%s: %s has no %s", name, out->optimizer.is->name, name);
}

/* Another optimizer than the net suggests comes with its own usual numbers. */
static tutti_status choose_optimizer(tutti_settings *out, const tutti_train_options *o)
{
    const tutti_optimizer *suggested = out->optimizer.is;
    if (o->optimizer)
        TUTTI_TRY(
            tutti_optimizer_parse(&out->optimizer, o->optimizer, "--optimizer", tutti_optimizers));
    if (out->optimizer.is != suggested) {
        out->lr = out->optimizer.is->usual_lr;
        out->weight_decay = out->optimizer.is->usual_decay;
    }
    if (o->momentum >= 0) TUTTI_TRY(set_own(out, "momentum", o->momentum));
    if (o->nesterov > 0) TUTTI_TRY(set_own(out, "nesterov", 1));
    if (!o->nesterov) tutti_optimizer_set(&out->optimizer, "nesterov", 0);
    tutti_optimizer_text(&out->optimizer, out->optimizer_text);
    return TUTTI_OK;
}

static tutti_status take_text(char *out, size_t size, const char *text, const char *option)
{
    if (!text) return TUTTI_OK;
    if (snprintf(out, size, "%s", text) < (int)size) return TUTTI_OK;
    return tutti_fail(TUTTI_ARGUMENT, "%s %.40s... is longer than %zu characters", option, text,
                      size - 1);
}

/* 'auto' is what it means today: a run that goes on keeps it. */
static tutti_status take_algorithm(tutti_settings *out, const char *text)
{
    int i = 0;
    while (tutti_conv_algorithm_words[i] && text && strcmp(tutti_conv_algorithm_words[i], text))
        i++;
    if (!tutti_conv_algorithm_words[i])
        return tutti_fail(TUTTI_ARGUMENT,
                          "--conv is direct, winograd-2x2, winograd-4x4 or auto, not '%.20s'",
                          text);
    if (i == TUTTI_CONV_AUTO) i = TUTTI_CONV_USUAL;
    snprintf(out->conv, sizeof out->conv, "%s", tutti_conv_algorithm_words[i]);
    return TUTTI_OK;
}

static tutti_status take_precision(tutti_settings *out, const char *text)
{
    tutti_precision precision;
    if (!text) return TUTTI_OK;
    TUTTI_TRY(tutti_precision_named(text, "--precision", &precision));
    return take_text(out->precision, sizeof out->precision, text, "--precision");
}

static tutti_status take_texts(tutti_settings *out, const tutti_train_options *o)
{
    TUTTI_TRY(
        take_text(out->lr_schedule, sizeof out->lr_schedule, o->lr_schedule, "--lr-schedule"));
    TUTTI_TRY(take_text(out->warmup, sizeof out->warmup, o->warmup, "--warmup"));
    TUTTI_TRY(take_text(out->bn_group, sizeof out->bn_group, o->bn_group ? o->bn_group : "net",
                        "--bn-group"));
    TUTTI_TRY(take_algorithm(out, o->conv));
    TUTTI_TRY(take_precision(out, o->precision));
    TUTTI_TRY(take_text(out->freeze, sizeof out->freeze, o->freeze, "--freeze"));
    TUTTI_TRY(take_text(out->lr_scale, sizeof out->lr_scale, o->lr_scale, "--lr-scale"));
    const char *which = o->eval_weights ? o->eval_weights : "ema";
    if (strcmp(which, "ema") && strcmp(which, "model"))
        return tutti_fail(TUTTI_ARGUMENT, "--eval-weights is ema or model, not '%.20s'", which);
    snprintf(out->eval_weights, sizeof out->eval_weights, "%s", which);
    return take_text(out->init, sizeof out->init, o->init ? o->init : "auto", "--init");
}

static void take_switches(tutti_settings *out, const tutti_train_options *o)
{
    if (o->decay_all >= 0) out->decay_all = o->decay_all;
    out->shuffle = o->shuffle != 0;
    out->augment = o->augment != 0;
    out->dropout = o->dropout != 0;
    out->skip_bad = o->skip_bad > 0;
}

static void take_numbers(tutti_settings *out, const tutti_train_options *o)
{
    enum { USUAL_KEEP = 3 };
    if (o->batch_size) out->batch = o->batch_size;
    if (o->epochs > 0) out->epochs = o->epochs;
    if (o->lr >= 0) out->lr = o->lr;
    if (o->weight_decay >= 0) out->weight_decay = o->weight_decay;
    if (o->clip >= 0) out->clip = o->clip;
    if (o->label_smoothing >= 0) out->label_smoothing = o->label_smoothing;
    if (o->ema >= 0) out->ema = o->ema;
    out->seed = o->seed > 0 ? o->seed : 0;
    out->keep = o->keep < 0 ? USUAL_KEEP : o->keep;
    out->patience = o->patience < 0 ? 0 : o->patience;
}

tutti_status tutti_settings_divide(tutti_settings *s, const tutti_train_options *options,
                                   const tutti_net *net)
{
    s->grains = options->grains ? options->grains : tutti_default_grains(net, s->batch);
    if (s->grains < 1 || s->grains & (s->grains - 1))
        return tutti_fail(TUTTI_ARGUMENT, "--grains %d is not a power of two", s->grains);
    if (s->grains > s->batch)
        return tutti_fail(TUTTI_ARGUMENT, "--grains %d is more than the %d samples of a minibatch",
                          s->grains, s->batch);
    return TUTTI_OK;
}

static tutti_status set_pace(tutti_settings *out, const tutti_train_options *o, int64_t samples)
{
    if (samples < 1) return tutti_fail(TUTTI_DATA, "%s: there are no training samples", o->data);
    out->pace = (tutti_pace){.samples = samples, .batch = out->batch};
    out->pace.steps = o->steps > 0 ? o->steps : tutti_pace_steps(&out->pace, out->epochs);
    if (out->pace.steps > MOST_STEPS)
        return tutti_fail(TUTTI_ARGUMENT, "%lld steps are more than %d", (long long)out->pace.steps,
                          MOST_STEPS);
    return TUTTI_OK;
}

/* A warm-up that the run is too short for. What a net suggests was made for the net's own length
 * and takes the same part of a shorter run; what was asked for is not ours to change. */
static tutti_status fit_warmup(tutti_settings *out, bool was_asked_for)
{
    tutti_span *warmup = &out->schedule.warmup;
    const int64_t steps = tutti_span_steps(warmup, &out->pace), run = out->pace.steps;
    const int64_t usual = tutti_pace_steps(&out->pace, out->usual_epochs);
    if (!steps || steps < run) return TUTTI_OK;
    if (was_asked_for || steps >= usual)
        return tutti_fail(TUTTI_ARGUMENT,
                          "the warm-up of %s takes %lld steps, but the run has only %lld: give a "
                          "shorter --warmup (0steps: none) or a longer run",
                          out->warmup, (long long)steps, (long long)run);
    const double part = (double)steps / (double)usual;
    const int64_t shorter = (int64_t)(part * (double)run);
    snprintf(out->note, sizeof out->note,
             "the net's warm-up of %s is as long as this run: it takes %lld of the %lld steps, as "
             "in the net's %g epochs",
             out->warmup, (long long)shorter, (long long)run, out->usual_epochs);
    *warmup = (tutti_span){(double)shorter, TUTTI_SPAN_STEPS};
    tutti_span_text(warmup, out->warmup);
    return TUTTI_OK;
}

static tutti_status set_schedule(tutti_settings *out, bool was_asked_for)
{
    tutti_span warmup = {0, TUTTI_SPAN_STEPS};
    TUTTI_TRY(tutti_schedule_parse(&out->schedule, out->lr_schedule));
    if (*out->warmup)
        TUTTI_TRY(tutti_span_parse(&warmup, out->warmup, TUTTI_SPAN_STEPS, "--warmup"));
    if (warmup.unit == TUTTI_SPAN_SECONDS && warmup.count > 0)
        return tutti_fail(TUTTI_ARGUMENT,
                          "--warmup %s: seconds differ from machine to machine; "
                          "give steps or epochs",
                          out->warmup);
    if (warmup.count > 0 && tutti_schedule_warms_up(&out->schedule)) {
        if (was_asked_for)
            return tutti_fail(TUTTI_ARGUMENT,
                              "--warmup %s: --lr-schedule %s raises the rate itself; leave one out",
                              out->warmup, out->lr_schedule);
        warmup.count = 0; /* the net's was made for another schedule */
    }
    if (warmup.count == 0) warmup.unit = TUTTI_SPAN_STEPS;
    out->schedule.warmup = warmup;
    tutti_span_text(&warmup, out->warmup);
    return fit_warmup(out, was_asked_for);
}

static tutti_status set_rhythm(tutti_settings *out, const tutti_train_options *o)
{
    const char *every = o->checkpoint_every ? o->checkpoint_every : "1epoch";
    TUTTI_TRY(
        tutti_span_parse(&out->checkpoint_every, every, TUTTI_SPAN_STEPS, "--checkpoint-every"));
    tutti_span_text(&out->checkpoint_every, out->checkpoint_text);
    every = o->eval_every ? o->eval_every : "1epoch";
    out->evaluates = strcmp(every, "never") != 0;
    snprintf(out->eval_text, sizeof out->eval_text, "never");
    if (!out->evaluates && out->patience)
        return tutti_fail(TUTTI_ARGUMENT,
                          "--patience %d counts evaluations, but --eval-every never makes none",
                          out->patience);
    if (!out->evaluates) return TUTTI_OK;
    TUTTI_TRY(tutti_span_parse(&out->eval_every, every, TUTTI_SPAN_STEPS, "--eval-every"));
    tutti_span_text(&out->eval_every, out->eval_text);
    return TUTTI_OK;
}

tutti_status tutti_settings_resolve(tutti_settings *out, const tutti_train_options *options,
                                    const tutti_net *net)
{
    tutti_suggested suggested;
    *out = (tutti_settings){0};
    TUTTI_TRY(tutti_net_suggested(&suggested, net));
    take_suggested(out, &suggested);
    TUTTI_TRY(choose_optimizer(out, options));
    take_numbers(out, options);
    take_switches(out, options);
    return take_texts(out, options);
}

tutti_status tutti_settings_pace(tutti_settings *out, const tutti_train_options *options,
                                 int64_t samples)
{
    TUTTI_TRY(set_pace(out, options, samples));
    TUTTI_TRY(set_rhythm(out, options));
    return set_schedule(out, options->warmup != NULL);
}
