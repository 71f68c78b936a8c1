/* How a run is doing: the lock says whether its process lives, the events how it ended, the age of
 * its files whether it still goes on. */
#define _GNU_SOURCE
#include "watch/parts.h"

#include <math.h>
#include <string.h>
#include <time.h>

#include "checkpoint/claim.h"

static const double SHORTEST_SILENCE = 60; /* seconds; and this many steps or evaluations */
static const double STEPS_OF_SILENCE = 20, EVALUATIONS_OF_SILENCE = 3;

static const struct {
    const char *word;
    int code;
} states[] = {
#define X(name, word, code) {word, code},
    TUTTI_RUN_STATE_MAP(X)
#undef X
};

const char *tutti_run_state_word(tutti_run_state state)
{
    return states[state].word;
}

int tutti_run_state_exit_code(tutti_run_state state)
{
    return states[state].code;
}

double tutti_feed_time(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static double age_of(const tutti_tail *t, double now)
{
    return t->fd < 0
               ? INFINITY
               : now - (double)t->info.st_mtim.tv_sec - 1e-9 * (double)t->info.st_mtim.tv_nsec;
}

static double patience(const tutti_feed *f)
{
    double most = SHORTEST_SILENCE;
    if (isfinite(f->recent_s)) most = fmax(most, STEPS_OF_SILENCE * f->recent_s);
    /* an evaluation writes nothing, and how long the first takes is not known */
    if (f->events.evaluating > 0)
        most = fmax(most, f->longest_evaluation > 0 ? EVALUATIONS_OF_SILENCE * f->longest_evaluation
                                                    : 10 * SHORTEST_SILENCE);
    return most;
}

static const tutti_entry *last_event(const tutti_feed *f)
{
    return f->events.count ? &f->events.list[f->events.count - 1] : NULL;
}

static void judge_dead(const tutti_feed *f, tutti_outlook *s)
{
    const bool is_complete = s->steps > 0 ? s->step >= s->steps : f->layer_count > 0;
    s->state = is_complete ? TUTTI_RUN_DONE : TUTTI_RUN_FAILED;
    if (!is_complete) snprintf(s->why, sizeof s->why, "its process is gone, without a word");
}

static void judge(const tutti_feed *f, tutti_outlook *s)
{
    if (f->events.ended) {
        s->state = f->events.code == 0 ? TUTTI_RUN_DONE : TUTTI_RUN_FAILED;
        if (f->events.code) snprintf(s->why, sizeof s->why, "%s", last_event(f)->text);
        return;
    }
    if (!tutti_claim_is_held(f->run)) {
        judge_dead(f, s);
        return;
    }
    s->state = s->silent_s > patience(f) ? TUTTI_RUN_STALLED : TUTTI_RUN_RUNNING;
    if (s->state == TUTTI_RUN_STALLED)
        snprintf(s->why, sizeof s->why, "its process lives, but has written nothing for %.0f s",
                 s->silent_s);
    else if (f->events.evaluating > 0) snprintf(s->why, sizeof s->why, "evaluating");
}

static int64_t begun_number(const tutti_feed *f, const char *key)
{
    const int64_t value = json_integer_value(json_object_get(f->events.begun, key));
    return value > 0 ? value : 0;
}

/* As a run decides: by the share that is right, else by the loss. */
static void find_best(const tutti_feed *f, tutti_outlook *s)
{
    for (int i = 0; i < f->evaluation_count; i++) {
        const tutti_evaluated *e = &f->evaluations[i];
        const double top1 = e->figures[TUTTI_FIGURE_TOP1], iou = e->figures[TUTTI_FIGURE_MEAN_IOU];
        const bool is_share = isfinite(top1) || isfinite(iou);
        const double value = isfinite(top1) ? top1 : isfinite(iou) ? iou : e->loss;
        const bool is_better = is_share ? value > s->best : value < s->best;
        if (!isfinite(value) || (isfinite(s->best) && !is_better)) continue;
        s->best = value;
        s->best_is_share = is_share;
        s->best_figure = isfinite(top1) ? "top-1" : is_share ? "mean IoU" : "loss";
        memcpy(s->best_split, e->split, sizeof s->best_split);
        if (isfinite(top1)) s->best_top1 = top1;
    }
}

void tutti_feed_stand(const tutti_feed *f, tutti_outlook *s)
{
    const double now = tutti_feed_time();
    const int64_t batch = begun_number(f, "batch");
    *s = (tutti_outlook){.step = f->series.last,
                         .steps = begun_number(f, "steps"),
                         .loss = f->loss,
                         .top1 = f->top1,
                         .best_top1 = NAN,
                         .best = NAN,
                         .step_s = f->recent_s,
                         .samples_per_s = f->recent_rate,
                         .left_s = NAN,
                         .slow = tutti_ranks_judge(f->ranks)};
    s->silent_s = fmin(age_of(&f->metrics, now),
                       fmin(age_of(&f->ranks_file, now), age_of(&f->events_file, now)));
    if (!isfinite(s->silent_s)) s->silent_s = 0; /* it has only begun to open its data */
    if (batch) s->epoch_steps = begun_number(f, "samples") / batch;
    find_best(f, s);
    judge(f, s);
    if (s->state == TUTTI_RUN_RUNNING && s->steps >= s->step)
        s->left_s = (double)(s->steps - s->step) * s->step_s;
}
