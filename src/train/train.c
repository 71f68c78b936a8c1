/* The loop: steps, and between them what people and files want to know. */
#include "train/trainer.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "format/file.h"
#include "train/signals.h"

/* What the loop keeps in mind between steps. */
typedef struct loop {
    double seconds[2]; /* of the last two steps, by the number's parity: news are late */
    tutti_rhythm evaluation, checkpoint;
    double smooth_loss, smooth_top1, smooth_rate;
    int64_t first_step;
    unsigned asked;
    bool stops;
} loop;

static double epoch_of(const tutti_trainer *t, int64_t step)
{
    return (double)(step * t->settings.pace.batch) / (double)t->settings.pace.samples;
}

/* The learning rate of step 'step', counted from 0. */
static float rate_of(const tutti_trainer *t, int64_t step)
{
    const tutti_settings *s = &t->settings;
    return (float)tutti_schedule_rate(&s->schedule, s->lr, step, &s->pace);
}

static double flops_per_sample(const tutti_trainer *t)
{
    return (double)tutti_net_total(t->net).train_flops;
}

/* A failure of one rank in the middle of a step: the others wait for it somewhere else. */
static tutti_status fatal(tutti_trainer *t, tutti_status status)
{
    if (status == TUTTI_OK || t->me.size == 1 || status == TUTTI_PEER) return status;
    tutti_error(&t->log, "%s", tutti_message());
    tutti_comm_abort(t->me.comm, status);
}

/* ---- one step ---- */

tutti_status tutti_trainer_step(tutti_trainer *t, tutti_news *news)
{
    tutti_batch batch;
    const double start = tutti_now();
    const int64_t step = tutti_session_steps(t->session);
    TUTTI_TRY(tutti_loader_next(t->loader, &batch));
    t->data_wait = tutti_now() - start;
    tutti_trace_span(t->trace, TUTTI_TRACE_DATA, "wait", NULL, step, -1, start,
                     start + t->data_wait);
    const tutti_samples samples = {batch.samples, batch.labels};
    const tutti_note mine = {tutti_signals_asked(), t->data_wait};
    TUTTI_TRY(tutti_session_step(t->session, &samples, rate_of(t, step), mine, news));
    t->stepping += tutti_now() - start;
    return TUTTI_OK;
}

static tutti_status one_step(tutti_trainer *t, loop *l, tutti_news *news)
{
    const double start = tutti_now();
    const tutti_status s = tutti_trainer_step(t, news);
    const double seconds = tutti_now() - start;
    const int64_t step = tutti_session_steps(t->session);
    l->seconds[step & 1] = seconds;
    if (step > l->first_step + 1) {
        t->steady += seconds;
        t->steady_data += t->data_wait;
        t->steady_steps++;
    }
    return s;
}

/* ---- what people and files want to know ---- */

static void smooth(double *value, double now)
{
    *value = isfinite(*value) ? 0.95 * *value + 0.05 * now : now;
}

static void show_step(tutti_trainer *t, loop *l, const tutti_news *news, double seconds)
{
    const double batch = t->settings.batch;
    smooth(&l->smooth_loss, news->loss);
    smooth(&l->smooth_top1, (double)news->hits / batch);
    smooth(&l->smooth_rate, batch / seconds);
    const tutti_progress_now now = {
        .step = news->step,
        .loss = l->smooth_loss,
        .top1 = l->smooth_top1,
        .lr = rate_of(t, news->step - 1),
        .step_seconds = seconds,
        .samples_per_s = l->smooth_rate,
        .percent_of_peak = t->peak > 0 ? 100 * l->smooth_rate * flops_per_sample(t) / t->peak : NAN,
        .data_wait = news->data_wait / seconds,
        .comm_exposed = t->me.size > 1 ? news->exposed / seconds : NAN,
    };
    tutti_progress_step(t->progress, &now);
}

static tutti_status write_step(tutti_trainer *t, const tutti_news *news, double seconds)
{
    if (!t->metrics) return TUTTI_OK;
    tutti_metrics_row row = tutti_metrics_row_empty(news->step, epoch_of(t, news->step), "train");
    row.loss = news->loss;
    row.top1 = (double)news->hits / t->settings.batch;
    row.lr = rate_of(t, news->step - 1);
    row.gradient_norm = news->norm;
    row.seconds = seconds;
    row.samples_per_s = t->settings.batch / seconds;
    row.data_wait_s = news->data_wait;
    row.comm_exposed_s = news->exposed;
    return tutti_metrics_write(t->metrics, &row);
}

/* The answer to SIGUSR2, of every rank. */
static void say_where(const tutti_trainer *t, const tutti_news *news)
{
    tutti_info(
        &t->log,
        "step %lld of %lld, loss %.6g: computed %.1f s so far; waited in the last step %.3f s "
        "for data and %.3f s for communication; rank %d is the slowest",
        (long long)tutti_session_steps(t->session), (long long)t->settings.pace.steps, news->loss,
        tutti_session_computed(t->session), t->data_wait, tutti_session_exposed(t->session),
        news->slowest);
}

static tutti_status diverged(const tutti_trainer *t, const tutti_news *news)
{
    const tutti_nonfinite odd = news->nonfinite;
    const char *layer = odd.layer < 0 ? "" : t->net->layers[odd.layer].name;
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

static tutti_status take_news(tutti_trainer *t, loop *l, const tutti_news *news)
{
    if (!news->step) return TUTTI_OK;
    const double seconds = l->seconds[news->step & 1];
    l->asked |= news->asked;
    t->last_loss = news->loss;
    if (news->diverged_rank >= 0) return diverged(t, news);
    if (news->asked & TUTTI_ASKED_STATE) say_where(t, news);
    show_step(t, l, news, seconds);
    return fatal(t, write_step(t, news, seconds));
}

static tutti_status settle(tutti_trainer *t, loop *l)
{
    tutti_news news;
    TUTTI_TRY(tutti_session_settle(t->session, &news));
    return take_news(t, l, &news);
}

static tutti_status evaluate(tutti_trainer *t, loop *l, bool *best)
{
    tutti_evaluation e;
    const double start = tutti_now();
    const int64_t step = tutti_session_steps(t->session);
    TUTTI_TRY(settle(t, l));
    TUTTI_TRY(tutti_trainer_evaluate(t, &e, NULL));
    t->last_top1 = e.top1;
    t->last_top5 = e.top5;
    *best = !(e.top1 <= t->best_top1);
    if (*best) {
        t->best_top1 = e.top1;
        t->best_step = step;
    }
    const double seconds = tutti_now() - start;
    tutti_rhythm_mark(&l->evaluation, start + seconds);
    tutti_trace_span(t->trace, TUTTI_TRACE_COMPUTE, "evaluate", NULL, step, -1, start,
                     start + seconds);
    tutti_progress_say(t->progress, "epoch %.4g: test top-1 %.2f %%, top-5 %.2f %%, loss %.4f%s",
                       epoch_of(t, step), 100 * e.top1, 100 * e.top5, e.loss,
                       *best ? " (best so far)" : "");
    if (!t->metrics) return TUTTI_OK;
    tutti_metrics_row row = tutti_metrics_row_empty(step, epoch_of(t, step), "test");
    row.loss = e.loss;
    row.top1 = e.top1;
    row.top5 = e.top5;
    row.samples = (double)e.samples;
    row.seconds = seconds;
    row.samples_per_s = (double)e.samples / seconds;
    return fatal(t, tutti_metrics_write(t->metrics, &row));
}

static tutti_status save(tutti_trainer *t, loop *l, bool best)
{
    TUTTI_TRY(settle(t, l));
    TUTTI_TRY(tutti_trainer_save(t, best));
    tutti_rhythm_mark(&l->checkpoint, tutti_now());
    return TUTTI_OK;
}

/* Spans in seconds depend on the clock, and clocks differ: rank 0's decides. */
static tutti_status is_due(tutti_trainer *t, const tutti_rhythm *rhythm, bool *due)
{
    const int64_t step = tutti_session_steps(t->session);
    *due = tutti_rhythm_is_due(rhythm, &t->settings.pace, step, tutti_now());
    if (rhythm->every.unit != TUTTI_SPAN_SECONDS || t->me.size == 1) return TUTTI_OK;
    return tutti_comm_broadcast(t->me.comm, 0, due, sizeof *due);
}

/* Between two steps: evaluations, checkpoints, requests. */
static tutti_status between_steps(tutti_trainer *t, loop *l)
{
    bool due = false, best = false;
    const bool last = tutti_session_steps(t->session) == t->settings.pace.steps;
    l->stops = last || (l->asked & TUTTI_ASKED_STOP);
    if (t->settings.evaluates) {
        TUTTI_TRY(is_due(t, &l->evaluation, &due));
        if (due || last) TUTTI_TRY(evaluate(t, l, &best));
    }
    if (!t->options->run) return l->stops ? settle(t, l) : TUTTI_OK;
    TUTTI_TRY(is_due(t, &l->checkpoint, &due));
    if (due || best || l->stops || (l->asked & TUTTI_ASKED_CHECKPOINT)) TUTTI_TRY(save(t, l, best));
    l->asked &= TUTTI_ASKED_STOP;
    return TUTTI_OK;
}

static tutti_status run_steps(tutti_trainer *t, loop *l)
{
    tutti_news news;
    while (!l->stops && tutti_session_steps(t->session) < t->settings.pace.steps) {
        TUTTI_TRY(fatal(t, one_step(t, l, &news)));
        TUTTI_TRY(take_news(t, l, &news));
        TUTTI_TRY(between_steps(t, l));
    }
    return TUTTI_OK;
}

/* ---- the whole call ---- */

static tutti_status open_outputs(tutti_trainer *t)
{
    const tutti_train_options *o = t->options;
    const int64_t step = tutti_session_steps(t->session);
    if (t->me.rank != 0) return TUTTI_OK;
    if (o->show)
        TUTTI_TRY(tutti_progress_create(&t->progress, tutti_progress_defaults(o->show),
                                        &t->settings.pace, step,
                                        tutti_net_input(t->net).h > 1 ? "img" : "frames"));
    if (!o->run) return TUTTI_OK;
    TUTTI_TRY(tutti_file_make_directories(o->run));
    return tutti_metrics_open(&t->metrics, o->run, step);
}

/* A fresh run keeps its beginning, so that anyone can start from the same weights. */
static tutti_status save_beginning(tutti_trainer *t, loop *l)
{
    return tutti_session_steps(t->session) == 0 && t->options->run ? save(t, l, false) : TUTTI_OK;
}

static tutti_status train(tutti_trainer *t, tutti_train_result *result)
{
    tutti_news late;
    loop l = {.smooth_loss = NAN,
              .smooth_top1 = NAN,
              .smooth_rate = NAN,
              .evaluation.every = t->settings.eval_every,
              .checkpoint.every = t->settings.checkpoint_every,
              .first_step = tutti_session_steps(t->session)};
    TUTTI_TRY(tutti_comm_agree(t->me.comm, open_outputs(t)));
    tutti_trainer_show_header(t);
    TUTTI_TRY(save_beginning(t, &l));
    t->begun = tutti_now();
    tutti_rhythm_mark(&l.evaluation, t->begun);
    tutti_rhythm_mark(&l.checkpoint, t->begun);
    const tutti_status reason = run_steps(t, &l); /* the same on all ranks */
    TUTTI_TRY(tutti_session_settle(t->session, &late));
    TUTTI_TRY(reason);
    const double seconds = tutti_now() - t->begun;
    const int64_t done = tutti_session_steps(t->session), steps = done - l.first_step;
    *result = (tutti_train_result){
        .rank = t->me.rank,
        .ranks = t->me.size,
        .steps = done,
        .loss = t->last_loss,
        .top1 = t->last_top1,
        .top5 = t->last_top5,
        .seconds = seconds,
        .samples_per_s = t->stepping > 0 ? (double)(steps * t->settings.batch) / t->stepping : 0,
        .exit_code = tutti_signals_exit_code(l.asked),
    };
    TUTTI_TRY(tutti_trainer_report(t, seconds, steps));
    TUTTI_TRY(tutti_comm_agree(t->me.comm, tutti_trainer_account(t, steps)));
    if (done < t->settings.pace.steps)
        return tutti_fail(TUTTI_INTERRUPTED, "%s: stopped after step %lld%s%s",
                          tutti_signals_name(l.asked), (long long)done,
                          t->options->run ? "; go on with --resume " : "",
                          t->options->run ? t->options->run : "");
    return TUTTI_OK;
}

/* What all ranks return alike is said once, and before any of them can leave: the launcher ends
 * the others as soon as one exits with a failure. */
static void say_for_all(const tutti_trainer *t)
{
    if (t->me.size > 1 && t->me.rank == 0) tutti_error(&t->log, "%s", tutti_message());
}

tutti_status tutti_train(const tutti_train_options *options, tutti_train_result *result)
{
    tutti_trainer t;
    TUTTI_TRY(tutti_trainer_open(&t, options, false));
    *result = (tutti_train_result){.rank = t.me.rank, .ranks = t.me.size};
    tutti_status s = tutti_signals_open(t.me.rank == 0);
    if (s == TUTTI_OK) {
        s = train(&t, result);
        tutti_signals_close();
    }
    if (s == TUTTI_DIVERGED || s == TUTTI_INTERRUPTED) say_for_all(&t);
    tutti_trainer_close(&t);
    return s;
}
