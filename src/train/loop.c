/* The loop: steps, and between them what people and files want to know. */
#include "train/run.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "comm/launch.h"
#include "train/launcher.h"
#include "train/saving.h"
#include "train/signals.h"

enum { LAST_TRIES = 3 };

/* What the loop keeps in mind between steps. */
typedef struct loop {
    double seconds[2]; /* of the last two steps, by the number's parity: news are late */
    tutti_rhythm evaluation, checkpoint;
    double smooth_loss, smooth_top1, smooth_rate;
    int64_t first_step;
    int64_t evaluations; /* of this call */
    unsigned asked;
    tutti_launcher launcher;
    bool stops;
    tutti_saving saving;
} loop;

static double epoch_of(const tutti_run *run, int64_t step)
{
    return (double)(step * run->settings.pace.batch) / (double)run->settings.pace.samples;
}

/* ---- one step ---- */

/* What this rank was asked for, by signals or by the end of its launcher. */
static unsigned asked_here(const tutti_run *run, loop *l)
{
    const bool known = l->launcher.gone;
    const unsigned heard = tutti_signals_asked() | (run->ends_by_watch ? TUTTI_ASKED_WATCH : 0u);
    if (!tutti_launcher_is_gone(&l->launcher)) return heard;
    if (!known)
        tutti_warn(&run->log, "%s (pid %d), which started this rank, is gone: ending as by SIGTERM",
                   l->launcher.name, l->launcher.pid);
    return heard | TUTTI_ASKED_TERM;
}

static tutti_status step(tutti_run *run, loop *l, tutti_news *news)
{
    tutti_batch batch;
    const double start = tutti_now();
    const int64_t step = tutti_stepper_steps(run->stepper);
    TUTTI_TRY(tutti_loader_next(run->loader, &batch));
    run->times.data_wait = tutti_now() - start;
    tutti_trace_span(run->trace, TUTTI_TRACE_DATA, "wait", NULL, step, -1, start,
                     start + run->times.data_wait);
    tutti_samples samples = {.values = batch.samples,
                             .labels = batch.labels,
                             .others = batch.others,
                             .shares = batch.shares};
    memcpy(samples.goals.of, batch.targets, sizeof samples.goals.of);
    const tutti_note mine = {asked_here(run, l) | tutti_saving_bits(run), run->times.data_wait};
    TUTTI_TRY(tutti_stepper_step(run->stepper, &samples, tutti_run_rate(run, step), mine, news));
    run->times.stepping += tutti_now() - start;
    return TUTTI_OK;
}

static tutti_status one_step(tutti_run *run, loop *l, tutti_news *news)
{
    const double start = tutti_now();
    const tutti_status s = step(run, l, news);
    const double seconds = tutti_now() - start;
    const int64_t step = tutti_stepper_steps(run->stepper);
    l->seconds[step & 1] = seconds;
    if (step > l->first_step + 1) {
        run->times.steady += seconds;
        run->times.steady_data += run->times.data_wait;
        run->times.steady_steps++;
        if (run->options->run)
            tutti_saving_foresee(&l->saving, run, seconds, tutti_launch_grace(getenv));
    }
    return s;
}

/* ---- what people and files want to know ---- */

static void smooth(double *value, double now)
{
    *value = isfinite(*value) ? 0.95 * *value + 0.05 * now : now;
}

/* Of samples, or of pixels; NaN where outputs are values. */
static double share_right(const tutti_news *news)
{
    return news->judged ? (double)news->hits / (double)news->judged : NAN;
}

static void show_step(tutti_run *run, loop *l, const tutti_news *news, double seconds)
{
    const double batch = run->settings.batch;
    smooth(&l->smooth_loss, news->loss);
    smooth(&l->smooth_top1, share_right(news));
    smooth(&l->smooth_rate, batch / seconds);
    const tutti_progress_now now = {
        .step = news->step,
        .loss = l->smooth_loss,
        .top1 = l->smooth_top1,
        .right = tutti_run_judge_of_answer(run)->figures[0].name,
        .lr = tutti_run_rate(run, news->step - 1),
        .step_seconds = seconds,
        .samples_per_s = l->smooth_rate,
        .percent_of_peak = tutti_run_percent_of_peak(run, l->smooth_rate),
        .data_wait = news->data_wait / seconds,
        .comm_exposed = run->me.size > 1 ? news->exposed / seconds : NAN,
    };
    tutti_progress_step(run->progress, &now);
    const int why = tutti_progress_failure(run->progress);
    if (why)
        tutti_warn(&run->log, "what is shown cannot be written (%s); training goes on without it",
                   strerror(why));
}

static void tell_step(tutti_run *run, loop *l, const tutti_news *news, double seconds)
{
    const tutti_judge *judge = tutti_run_judge_of_answer(run);
    tutti_metrics_row row = tutti_metrics_row_empty(news->step, epoch_of(run, news->step), "train");
    row.loss = news->loss;
    if (judge->step_figure) *tutti_metrics_column(&row, judge->step_figure) = share_right(news);
    row.lr = tutti_run_rate(run, news->step - 1);
    row.gradient_norm = news->norm;
    row.seconds = seconds;
    row.samples_per_s = run->settings.batch / seconds;
    row.data_wait_s = news->data_wait;
    row.comm_exposed_s = news->exposed;
    l->asked |= tutti_tell(run, &row);
}

/* The answer to SIGUSR2, of every rank. */
static void say_where(const tutti_run *run, const tutti_news *news)
{
    tutti_info(
        &run->log,
        "step %lld of %lld, loss %.6g: computed %.1f s so far; waited in the last step %.3f s "
        "for data and %.3f s for communication; rank %d is the slowest",
        (long long)tutti_stepper_steps(run->stepper), (long long)run->settings.pace.steps,
        news->loss, tutti_stepper_computed(run->stepper), run->times.data_wait,
        tutti_stepper_exposed(run->stepper), news->slowest);
}

static tutti_status take_news(tutti_run *run, loop *l, const tutti_news *news)
{
    if (!news->step) return TUTTI_OK;
    const double seconds = l->seconds[news->step & 1];
    l->asked |= news->asked & TUTTI_ASKED_ANY;
    run->score.loss = news->loss;
    TUTTI_TRY(tutti_run_check_loss(run, news));
    if (news->asked & TUTTI_ASKED_STATE) say_where(run, news);
    show_step(run, l, news, seconds);
    tell_step(run, l, news, seconds);
    tutti_chronicle_hear(run->chronicle, news, seconds);
    return tutti_saving_hear(&l->saving, run, news);
}

static tutti_status settle(tutti_run *run, loop *l)
{
    tutti_news news;
    TUTTI_TRY(tutti_stepper_settle(run->stepper, &news));
    return take_news(run, l, &news);
}

static bool is_best(tutti_run *run, tutti_split split, const tutti_evaluation *e)
{
    if (split != tutti_run_judge(run)) return false;
    run->score.stale++;
    const int answer = tutti_net_answer(run->net);
    const tutti_judge *judge = tutti_run_judge_of_answer(run);
    const double value = tutti_judge_value(judge, &e->findings[answer]);
    if (!e->samples || !tutti_judge_prefers(judge, value, run->score.best)) return false;
    run->score.best = value;
    run->score.best_step = tutti_stepper_steps(run->stepper);
    run->score.stale = 0;
    return true;
}

/* The average of the weights, where one is kept, unless told otherwise. */
static tutti_status evaluate_weights(tutti_run *run, tutti_split split, tutti_evaluation *e,
                                     const tutti_tables *tables)
{
    const bool is_average =
        tutti_stepper_has_average(run->stepper) && !strcmp(run->settings.eval_weights, "ema");
    if (is_average) TUTTI_TRY(tutti_stepper_swap_average(run->stepper));
    TUTTI_TRY(tutti_run_evaluate(run, split, e, tables));
    return is_average ? tutti_stepper_swap_average(run->stepper) : TUTTI_OK;
}

static tutti_status evaluate(tutti_run *run, loop *l, tutti_split split, const tutti_tables *tables,
                             bool *best)
{
    static const char *const phases[TUTTI_SPLITS] = {"train", "test", "val"};
    tutti_evaluation e;
    const double start = tutti_now();
    const int64_t step = tutti_stepper_steps(run->stepper);
    TUTTI_TRY(settle(run, l));
    tutti_chronicle_event(run->chronicle, step, "evaluating", phases[split], NULL);
    TUTTI_TRY(evaluate_weights(run, split, &e, tables));
    run->score.last = e.findings[tutti_net_answer(run->net)];
    *best = is_best(run, split, &e);
    const double seconds = tutti_now() - start;
    tutti_rhythm_mark(&l->evaluation, start + seconds);
    tutti_trace_span(run->trace, TUTTI_TRACE_COMPUTE, "evaluate", NULL, step, -1, start,
                     start + seconds);
    l->asked |= tutti_run_tell(run, split, &e, *best, seconds);
    if (!tables) return TUTTI_OK;
    tutti_run_write_confusion(run, phases[split], tables);
    tutti_run_write_worst(run, split, phases[split], tables->worst);
    return TUTTI_OK;
}

/* ... and tells those who look on at a run that is kept which class is taken for which, and what
 * the worst samples are. */
static tutti_status evaluate_shown(tutti_run *run, loop *l, tutti_split split, bool *best)
{
    tutti_tables tables;
    if (!run->options->run) return evaluate(run, l, split, NULL, best);
    tutti_status s = tutti_comm_agree(run->me.comm, tutti_tables_create(&tables, run));
    if (s == TUTTI_OK) s = evaluate(run, l, split, &tables, best);
    tutti_tables_destroy(&tables);
    return s;
}

/* Where validation decides, the test set is looked at once, when nothing more can be chosen. */
static tutti_status test_at_the_end(tutti_run *run, loop *l)
{
    bool best;
    if (tutti_run_judge(run) == TUTTI_SPLIT_TEST || !tutti_data_count(run->data, TUTTI_SPLIT_TEST))
        return TUTTI_OK;
    TUTTI_TRY(evaluate_shown(run, l, TUTTI_SPLIT_TEST, &best));
    run->score.test = run->score.last;
    return TUTTI_OK;
}

static tutti_status save(tutti_run *run, loop *l)
{
    TUTTI_TRY(settle(run, l));
    TUTTI_TRY(tutti_saving_start(&l->saving, run));
    tutti_rhythm_mark(&l->checkpoint, tutti_now());
    return TUTTI_OK;
}

static tutti_status save_last(tutti_run *run, loop *l)
{
    const tutti_score score = run->score; /* a try that fails takes the best out of it */
    TUTTI_TRY(save(run, l));
    TUTTI_TRY(tutti_saving_end(&l->saving, run));
    for (int i = 1; i < LAST_TRIES && l->saving.owes; i++) {
        sleep(1);
        run->score = score;
        TUTTI_TRY(save(run, l));
        TUTTI_TRY(tutti_saving_end(&l->saving, run));
    }
    return TUTTI_OK;
}

/* Spans in seconds depend on the clock, and clocks differ: rank 0's decides. */
static tutti_status is_due(tutti_run *run, const tutti_rhythm *rhythm, bool *due)
{
    const int64_t step = tutti_stepper_steps(run->stepper);
    *due = tutti_rhythm_is_due(rhythm, &run->settings.pace, step, tutti_now());
    if (rhythm->every.unit != TUTTI_SPAN_SECONDS || run->me.size == 1) return TUTTI_OK;
    return tutti_comm_broadcast(run->me.comm, 0, due, sizeof *due);
}

static void say_stale(const tutti_run *run)
{
    if (run->me.rank == 0)
        tutti_info(&run->log,
                   "%lld evaluations since step %lld have found nothing better: the run ends here "
                   "(a larger --patience goes on)",
                   (long long)run->score.stale, (long long)run->score.best_step);
}

/* The first, the second, the fourth, the eighth evaluation ... and the last: what they leave behind
 * does not grow much with their number. */
static bool is_shown(int64_t evaluations, bool last)
{
    return last || (evaluations & (evaluations - 1)) == 0;
}

/* Evaluates where that is due. The run ends with its last step or its patience. */
static tutti_status look(tutti_run *run, loop *l, bool last, bool *best)
{
    bool due = false;
    const tutti_split split = tutti_run_judge(run);
    TUTTI_TRY(is_due(run, &l->evaluation, &due));
    if (last || due) l->evaluations++;
    if ((last || due) && is_shown(l->evaluations, last))
        TUTTI_TRY(evaluate_shown(run, l, split, best));
    else if (due) TUTTI_TRY(evaluate(run, l, split, NULL, best));
    const bool stale = !last && tutti_run_is_stale(run);
    if (stale) say_stale(run);
    l->stops = l->stops || stale || (l->asked & TUTTI_ASKED_STOP);
    return last || stale ? test_at_the_end(run, l) : TUTTI_OK;
}

/* Between two steps: evaluations, checkpoints, requests. */
static tutti_status between_steps(tutti_run *run, loop *l)
{
    bool due = false, best = false;
    const bool last = tutti_stepper_steps(run->stepper) == run->settings.pace.steps;
    l->stops = last || (l->asked & TUTTI_ASKED_STOP);
    if (run->settings.evaluates) TUTTI_TRY(look(run, l, last, &best));
    if (!run->options->run) return l->stops ? settle(run, l) : TUTTI_OK;
    if (l->stops) return save_last(run, l);
    TUTTI_TRY(is_due(run, &l->checkpoint, &due));
    if (l->saving.owes && !due) TUTTI_TRY(is_due(run, &l->saving.retry, &due));
    if (due || best || (l->asked & TUTTI_ASKED_CHECKPOINT)) TUTTI_TRY(save(run, l));
    l->asked &= TUTTI_ASKED_STOP;
    return TUTTI_OK;
}

static tutti_status run_steps(tutti_run *run, loop *l)
{
    tutti_news news;
    l->stops = tutti_run_is_stale(run);
    if (l->stops) say_stale(run);
    while (!l->stops && tutti_stepper_steps(run->stepper) < run->settings.pace.steps) {
        TUTTI_TRY(tutti_run_fatal(run, one_step(run, l, &news)));
        TUTTI_TRY(tutti_run_fatal(run, tutti_claim_check(run->claim)));
        TUTTI_TRY(take_news(run, l, &news));
        TUTTI_TRY(between_steps(run, l));
    }
    return TUTTI_OK;
}

/* ---- the whole call ---- */

/* As late as possible: everything that could refuse to begin has been asked. */
static tutti_status move_away(tutti_run *run)
{
    char old[TUTTI_PATH_BYTES];
    if (!tutti_claim_holds_run(run->claim)) return TUTTI_OK;
    TUTTI_TRY(tutti_claim_old_name(old, run->claim));
    TUTTI_TRY(tutti_claim_clear(run->claim));
    tutti_info(&run->log, "the run that was in '%s' is in '%s' now", run->options->run, old);
    return TUTTI_OK;
}

static tutti_status open_outputs(tutti_run *run)
{
    const tutti_train_options *o = run->options;
    const int64_t step = tutti_stepper_steps(run->stepper);
    if (run->me.rank != 0) return TUTTI_OK;
    if (o->show)
        TUTTI_TRY(tutti_progress_create(&run->progress, tutti_progress_defaults(o->show),
                                        &run->settings.pace, step,
                                        tutti_net_input(run->net).h > 1 ? "img" : "frames"));
    if (!o->run) return TUTTI_OK;
    if (o->overwrite) TUTTI_TRY(move_away(run));
    TUTTI_TRY(tutti_checkpoint_mend_best(o->run, tutti_run_best_step(run)));
    return tutti_telling_open(run);
}

/* A fresh run keeps its beginning, so that anyone can start from the same weights. It is waited
 * for: who cannot write says so before the first step. */
static tutti_status save_beginning(tutti_run *run, loop *l)
{
    tutti_saving_init(&l->saving, run);
    if (tutti_stepper_steps(run->stepper) || !run->options->run) return TUTTI_OK;
    TUTTI_TRY(tutti_saving_start(&l->saving, run));
    TUTTI_TRY(tutti_saving_end(&l->saving, run));
    if (!l->saving.owes) return TUTTI_OK;
    return tutti_fail(TUTTI_DISK_FULL, "%s", l->saving.why);
}

static tutti_status flush_rows(tutti_run *run, int tries)
{
    tutti_status s = tutti_metrics_flush(run->metrics);
    for (int i = 1; i < tries && s == TUTTI_DISK_FULL; i++) {
        sleep(1);
        s = tutti_metrics_flush(run->metrics);
    }
    return s;
}

/* How the run ended, once all is written that can be. */
static tutti_status conclude(tutti_run *run, const loop *l)
{
    const int64_t done = tutti_stepper_steps(run->stepper);
    const char *folder = run->options->run;
    const tutti_status rows =
        tutti_comm_agree(run->me.comm, flush_rows(run, l->saving.owes ? 1 : LAST_TRIES));
    if (l->saving.owes)
        return tutti_fail(TUTTI_DISK_FULL,
                          "step %lld has no checkpoint: %s; make room and go on with --resume %s",
                          (long long)done, l->saving.why, folder);
    if (rows != TUTTI_OK || done >= run->settings.pace.steps || tutti_run_is_stale(run))
        return rows;
    if (!(l->asked & TUTTI_ASKED_SIGNAL)) return TUTTI_OK; /* the caller wanted it so */
    if (!folder)
        return tutti_fail(TUTTI_INTERRUPTED, "%s: stopped at step %lld; nothing is kept (no --run)",
                          tutti_signals_name(l->asked), (long long)done);
    return tutti_fail(TUTTI_INTERRUPTED,
                      "%s: stopped at step %lld, checkpoint %s/step_%08lld; go on with --resume %s",
                      tutti_signals_name(l->asked), (long long)done, folder, (long long)done,
                      folder);
}

/* Collective where the reason is the same on all ranks: what is being written is waited for. */
static tutti_status end_steps(tutti_run *run, loop *l, tutti_status reason)
{
    char sentence[1024];
    tutti_news late;
    snprintf(sentence, sizeof sentence, "%s", tutti_message());
    TUTTI_TRY(tutti_stepper_settle(run->stepper, &late));
    if (run->options->run && (reason == TUTTI_OK || reason == TUTTI_DIVERGED))
        TUTTI_TRY(tutti_saving_end(&l->saving, run));
    return reason == TUTTI_OK ? TUTTI_OK : tutti_fail(reason, "%s", sentence);
}

static tutti_status train(tutti_run *run, tutti_train_result *result)
{
    loop l = {.smooth_loss = NAN,
              .smooth_top1 = NAN,
              .smooth_rate = NAN,
              .evaluation.every = run->settings.eval_every,
              .checkpoint.every = run->settings.checkpoint_every,
              .launcher = tutti_launcher_find(),
              .first_step = tutti_stepper_steps(run->stepper)};
    TUTTI_TRY(tutti_comm_agree(run->me.comm, open_outputs(run)));
    tutti_run_begin(run);
    if (run->me.rank == 0 && *run->settings.note) tutti_info(&run->log, "%s", run->settings.note);
    TUTTI_TRY(save_beginning(run, &l));
    run->times.begun = tutti_now();
    tutti_rhythm_mark(&l.evaluation, run->times.begun);
    tutti_rhythm_mark(&l.checkpoint, run->times.begun);
    TUTTI_TRY(end_steps(run, &l, run_steps(run, &l)));
    const double seconds = tutti_now() - run->times.begun;
    const int64_t done = tutti_stepper_steps(run->stepper), steps = done - l.first_step;
    const bool tells_classes = tutti_run_target(run)->form == TUTTI_TARGET_CLASS;
    *result = (tutti_train_result){
        .rank = run->me.rank,
        .ranks = run->me.size,
        .steps = done,
        .loss = run->score.loss,
        .top1 = tells_classes ? run->score.last.figures[0] : NAN,
        .top5 = tells_classes ? run->score.last.figures[1] : NAN,
        .seconds = seconds,
        .samples_per_s = run->times.stepping > 0
                             ? (double)(steps * run->settings.batch) / run->times.stepping
                             : 0,
        .exit_code = tutti_signals_exit_code(l.asked),
    };
    TUTTI_TRY(tutti_run_report(run, seconds, steps));
    TUTTI_TRY(tutti_comm_agree(run->me.comm, tutti_run_compare(run, steps)));
    return conclude(run, &l);
}

tutti_status tutti_train(const tutti_train_options *options, tutti_train_result *result)
{
    tutti_run run;
    tutti_status s = tutti_run_open(&run, options, TUTTI_RUN_TRAINS);
    *result =
        (tutti_train_result){.rank = run.me.rank, .ranks = run.me.size, .was_said = run.was_said};
    if (s != TUTTI_OK) return s;
    s = tutti_signals_open(run.me.rank == 0);
    if (s == TUTTI_OK) {
        s = train(&run, result);
        tutti_signals_close();
    }
    s = tutti_run_conclude(&run, s);
    tutti_run_write_end(&run, s);
    result->was_said = run.was_said;
    tutti_run_close(&run);
    return s;
}
