/* What a run tells of a step and of an evaluation, to whoever wants to know: the files of metrics,
 * the events of TensorBoard, the caller's watch function. */
#include <math.h>
#include <stdio.h>

#include "train/run.h"
#include "train/signals.h"

tutti_status tutti_telling_open(tutti_run *run)
{
    const tutti_train_options *o = run->options;
    const int64_t step = tutti_stepper_steps(run->stepper);
    if (o->tensorboard) TUTTI_TRY(tutti_events_open(&run->events, o->run, step, &run->log));
    TUTTI_TRY(tutti_metrics_open(&run->metrics, o->run, step, &run->log));
    return tutti_chronicle_open(run->chronicle, o->run, step, run->settings.pace.steps,
                                run->me.size);
}

static void tell_events(tutti_events *events, const tutti_metrics_row *row)
{
    const struct {
        const char *name;
        double value;
    } curves[] = {{"loss", row->loss},
                  {"accuracy", row->top1},
                  {"top5", row->top5},
                  {"pixel_accuracy", row->pixel_accuracy},
                  {"mean_iou", row->mean_iou},
                  {"mae", row->mae},
                  {"rmse", row->rmse},
                  {"r2", row->r2},
                  {"right", row->accuracy},
                  {"f1", row->f1},
                  {"lr", row->lr},
                  {"gradient_norm", row->gradient_norm},
                  {"samples_per_s", row->samples_per_s}};
    for (size_t i = 0; i < sizeof curves / sizeof *curves; i++) {
        char tag[64];
        snprintf(tag, sizeof tag, "%s/%s", row->phase, curves[i].name);
        tutti_events_scalar(events, row->step, tag, curves[i].value);
    }
    tutti_events_flush(events);
}

static bool ask_watcher(const tutti_run *run, const tutti_metrics_row *row)
{
    const tutti_train_news news = {.step = row->step,
                                   .steps = run->settings.pace.steps,
                                   .epoch = row->epoch,
                                   .phase = row->phase,
                                   .loss = row->loss,
                                   .top1 = row->top1,
                                   .top5 = row->top5,
                                   .lr = row->lr,
                                   .gradient_norm = row->gradient_norm,
                                   .seconds = row->seconds,
                                   .samples_per_s = row->samples_per_s};
    return run->options->watch(run->options->user, &news);
}

unsigned tutti_tell(tutti_run *run, const tutti_metrics_row *row)
{
    if (run->metrics) tutti_metrics_write(run->metrics, row);
    if (run->events) tell_events(run->events, row);
    if (run->options->watch && !ask_watcher(run, row)) run->ends_by_watch = true;
    return run->ends_by_watch && run->me.size == 1 ? TUTTI_ASKED_WATCH : 0;
}
