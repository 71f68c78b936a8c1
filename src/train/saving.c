#include "train/saving.h"

#include <stdio.h>

#include "base/clock.h"
#include "base/log.h"
#include "train/signals.h"

/* Bits of notes that are no requests. */
enum { WRITES = TUTTI_ASKED_ANY + 1, FAILED = WRITES << 1 };
enum { RETRY_SECONDS = 30 };

static const double LONG_WAIT = 1; /* seconds of waiting for a checkpoint, worth a line */

void tutti_saving_init(tutti_saving *saving, const tutti_run *run)
{
    *saving = (tutti_saving){.retry.every = {RETRY_SECONDS, TUTTI_SPAN_SECONDS},
                             .kept_best = run->score.best,
                             .kept_step = run->score.best_step};
    if (tutti_stepper_steps(run->stepper)) tutti_signals_keep(tutti_stepper_steps(run->stepper));
}

unsigned tutti_saving_bits(const tutti_run *run)
{
    if (!run->options->run) return 0;
    return (tutti_keeper_writes(run->keeper) ? WRITES : 0u) |
           (tutti_keeper_has_failed(run->keeper) ? FAILED : 0u);
}

/* ---- what becomes of it ---- */

static void take_success(tutti_saving *saving, const tutti_run *run)
{
    if (saving->owes && run->me.rank == 0) tutti_info(&run->log, "checkpoints are written again");
    saving->owes = false;
    tutti_chronicle_event(run->chronicle, saving->sent, "checkpoint", "written", NULL);
    if (saving->sent == 0) saving->took = tutti_now() - saving->began; /* which was waited for */
    saving->kept_best = saving->sent_best;
    saving->kept_step = saving->sent_step;
}

/* What is not on the disk cannot be the best; an evaluation since then may have found a better. */
static void go_without(tutti_saving *saving, tutti_run *run)
{
    if (!saving->owes && run->me.rank == 0)
        tutti_warn(&run->log, "%s; training goes on, and the checkpoint is tried again",
                   tutti_message());
    saving->owes = true;
    snprintf(saving->why, sizeof saving->why, "%s", tutti_message());
    tutti_rhythm_mark(&saving->retry, tutti_now());
    if (run->score.best_step != saving->sent_step) return;
    run->score.best = saving->kept_best;
    run->score.best_step = saving->kept_step;
}

/* Whoever clears up a full disk has the next checkpoint. */
static tutti_status take_outcome(tutti_saving *saving, tutti_run *run, tutti_status s)
{
    if (s == TUTTI_OK) take_success(saving, run);
    else if (tutti_comm_failure(run->me.comm) == TUTTI_DISK_FULL) go_without(saving, run);
    else return s;
    return TUTTI_OK;
}

tutti_status tutti_saving_end(tutti_saving *saving, tutti_run *run)
{
    if (!tutti_keeper_has_one(run->keeper)) return TUTTI_OK;
    return take_outcome(saving, run, tutti_keeper_wait(run->keeper));
}

tutti_status tutti_saving_hear(tutti_saving *saving, tutti_run *run, const tutti_news *news)
{
    if (!run->options->run || !tutti_keeper_is_certain(run->keeper, news->step,
                                                       news->asked & WRITES, news->asked & FAILED))
        return TUTTI_OK;
    return tutti_saving_end(saving, run);
}

/* ---- the next one ---- */

static tutti_status wait_for_the_last(tutti_saving *saving, tutti_run *run)
{
    const double start = tutti_now();
    TUTTI_TRY(tutti_saving_end(saving, run));
    const double waited = tutti_now() - start;
    if (waited < LONG_WAIT || saving->said || run->me.rank) return TUTTI_OK;
    saving->said = true;
    tutti_info(&run->log,
               "training waited %.1f s for the last checkpoint to be written, because the next was "
               "due: a longer --checkpoint-every would not have to",
               waited);
    return TUTTI_OK;
}

tutti_status tutti_saving_start(tutti_saving *saving, tutti_run *run)
{
    TUTTI_TRY(wait_for_the_last(saving, run));
    saving->sent_best = run->score.best;
    saving->sent_step = run->score.best_step;
    saving->sent = tutti_stepper_steps(run->stepper);
    saving->began = tutti_now();
    tutti_rhythm_mark(&saving->retry, tutti_now());
    const tutti_status s = tutti_run_save(run);
    return s == TUTTI_OK ? TUTTI_OK : take_outcome(saving, run, s);
}

/* A signal is heard of at the end of the step, by all ranks at the end of the next. */
void tutti_saving_foresee(tutti_saving *saving, const tutti_run *run, double step, double grace)
{
    const double needs = 2 * step + saving->took;
    if (grace <= 0 || needs <= grace || saving->warned || run->me.rank) return;
    saving->warned = true;
    tutti_warn(
        &run->log,
        "a step takes %.1f s, and mpirun kills its processes %g s after Ctrl-C or SIGTERM: "
        "too early for a last checkpoint; start it with --mca odls_base_sigkill_timeout %.0f",
        step, grace, 60 + needs);
}
