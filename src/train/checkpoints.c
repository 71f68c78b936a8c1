/* A run's checkpoints: what stands in them beside the stepper, and what a run takes from one. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "train/run.h"
#include "train/signals.h"

enum { METRICS = 4 + TUTTI_MOST_FIGURES, NAME = 48 };

/* "best_top1" */
static const char *best_name(const tutti_run *run, char name[NAME])
{
    snprintf(name, NAME, "best_%s", tutti_judge_decider(tutti_run_judge_of_answer(run)));
    return name;
}

/* What stands in a state: "loss", the figures of the last evaluation, "best_top1", ... Returns how
 * many. */
static int metrics_of(const tutti_run *run, tutti_state_metric metrics[METRICS], char best[NAME])
{
    const tutti_judge *judge = tutti_run_judge_of_answer(run);
    int n = 0;
    metrics[n++] = (tutti_state_metric){"loss", run->score.loss};
    for (int i = 0; i < TUTTI_MOST_FIGURES && judge->figures[i].key; i++)
        metrics[n++] = (tutti_state_metric){judge->figures[i].key, run->score.last.figures[i]};
    metrics[n++] = (tutti_state_metric){best_name(run, best), run->score.best};
    metrics[n++] = (tutti_state_metric){"best_step", (double)run->score.best_step};
    metrics[n++] =
        (tutti_state_metric){"stale", run->settings.patience ? (double)run->score.stale : NAN};
    return n;
}

/* Where the run stands. */
static tutti_state state_of(const tutti_run *run, tutti_state_metric metrics[METRICS],
                            char best[NAME])
{
    const tutti_pace *pace = &run->settings.pace;
    const int64_t step = tutti_stepper_steps(run->stepper), seen = step * pace->batch;
    const int count = metrics_of(run, metrics, best);
    return (tutti_state){
        .step = step,
        .epoch = seen / pace->samples,
        .epoch_sample = seen % pace->samples,
        .seed = run->settings.seed,
        .batch_size = run->settings.batch,
        .grains = run->settings.grains,
        .net = run->net->name,
        .net_sha256 = run->net_hash,
        .options = run->kept.list + run->kept.first,
        .option_count = run->kept.count - run->kept.first,
        .metrics = metrics,
        .metric_count = count,
    };
}

static void take_state(tutti_run *run, const tutti_state *state)
{
    char best[NAME];
    const tutti_judge *judge = tutti_run_judge_of_answer(run);
    run->score.loss = tutti_state_metric_value(state, "loss");
    for (int i = 0; i < TUTTI_MOST_FIGURES && judge->figures[i].key; i++)
        run->score.last.figures[i] = tutti_state_metric_value(state, judge->figures[i].key);
    run->score.best = tutti_state_metric_value(state, best_name(run, best));
    const double best_step = tutti_state_metric_value(state, "best_step");
    run->score.best_step = isfinite(best_step) ? (int64_t)best_step : 0;
    const double stale = tutti_state_metric_value(state, "stale");
    run->score.stale = isfinite(stale) ? (int64_t)stale : 0;
}

bool tutti_run_is_stale(const tutti_run *run)
{
    return run->settings.patience && run->score.stale >= run->settings.patience;
}

int64_t tutti_run_best_step(const tutti_run *run)
{
    return isfinite(run->score.best) ? run->score.best_step : -1;
}

/* A reader who sees a checkpoint finds the rows that lead to it. */
static tutti_status sync_metrics(void *metrics)
{
    return tutti_metrics_sync(metrics);
}

tutti_status tutti_run_save(tutti_run *run)
{
    tutti_state_metric metrics[METRICS];
    char best[NAME];
    const tutti_state state = state_of(run, metrics, best);
    const tutti_save save = {
        .run = run->options->run,
        .state = &state,
        .sync = run->options->checkpoint_sync,
        .finish = {.best_step = tutti_run_best_step(run),
                   .keep = run->settings.keep,
                   .alone = run->claim != NULL,
                   .before = sync_metrics,
                   .user = run->metrics,
                   .after = tutti_signals_keep,
                   .log = &run->log},
    };
    return tutti_keeper_save(run->keeper, &save);
}

/* ---- going on ---- */

static tutti_status take_options(tutti_run *run)
{
    return run->was ? tutti_options_take(&run->filled, tutti_state_of(run->was), run->begins_at)
                    : TUTTI_OK;
}

tutti_status tutti_run_find(tutti_run *run)
{
    const tutti_train_options *o = run->options;
    if (!o->resume) return TUTTI_OK;
    const bool automatic = !strcmp(o->resume, "auto");
    if (automatic && !o->run)
        return tutti_fail(TUTTI_ARGUMENT, "--resume auto needs --run, the run to go on with");
    TUTTI_TRY(tutti_resume_find(run->me.comm, automatic ? o->run : o->resume, !automatic,
                                run->begins_at, &run->was));
    return tutti_comm_agree(run->me.comm, take_options(run));
}

tutti_status tutti_run_compare_options(tutti_run *run)
{
    char changes[400];
    if (!run->was) return TUTTI_OK;
    const tutti_state *was = tutti_state_of(run->was);
    if (strcmp(was->net_sha256, run->net_hash))
        return tutti_fail(TUTTI_OTHER_RUN, "%s is a checkpoint of another net (%s) than %s",
                          run->begins_at, was->net, run->net->name);
    TUTTI_TRY(tutti_kept_compare(&run->kept, was, run->begins_at, changes, sizeof changes));
    if (*changes && !run->me.rank)
        tutti_info(&run->log, "resumed at step %lld; %s", (long long)was->step, changes);
    return TUTTI_OK;
}

tutti_status tutti_run_resume(tutti_run *run)
{
    if (!run->was) return TUTTI_OK;
    const tutti_state *was = tutti_state_of(run->was);
    TUTTI_TRY(tutti_keeper_restore(run->keeper, run->begins_at, was->step));
    take_state(run, was);
    return TUTTI_OK;
}

tutti_status tutti_run_load_weights(tutti_run *run)
{
    if (!run->options->weights)
        return tutti_fail(TUTTI_ARGUMENT, "--weights is missing: name a run or a safetensors file");
    return tutti_keeper_load_weights(run->keeper, run->options->weights, run->options->rename,
                                     true);
}
