/* What happened in a run. */
#include "train/run.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include "base/clock.h"
#include "base/memory.h"
#include "format/human.h"

tutti_layer_report tutti_run_layer(const tutti_run *run, int layer)
{
    tutti_layer_report r = {.times = tutti_model_times(tutti_stepper_model(run->stepper), layer),
                            .traffic = tutti_stepper_traffic(run->stepper, layer)};
    r.traffic.exposed += r.times.move;
    return r;
}

static void report_layer(tutti_run *run, int layer, double steps)
{
    const tutti_layer_report r = tutti_run_layer(run, layer);
    const double ms = 1e3 / steps;
    const tutti_layer_times *c = &r.times;
    const tutti_traffic *w = &r.traffic;
    const double sum = c->forward + c->backward_weights + c->backward_data;
    if (sum * ms < 0.005 && !w->bytes) return;
    char bytes[32];
    tutti_progress_say(run->progress, "  %-*s %9.2f %9.2f %9.2f %9.2f %9.2f  %s",
                       tutti_net_name_width(run->net, 12), run->net->layers[layer].name,
                       c->forward * ms, c->backward_weights * ms, c->backward_data * ms,
                       w->busy * ms, w->exposed * ms,
                       w->bytes ? tutti_format_bytes(bytes, (double)w->bytes / steps) : "");
    if (!run->metrics) return;
    char fields[512];
    snprintf(fields, sizeof fields,
             "\"layer\":\"%.64s\",\"time\":{\"forward_s\":%.6g,\"backward_weights_s\":%.6g,"
             "\"backward_data_s\":%.6g,\"comm_s\":%.6g,\"exposed_s\":%.6g,\"bytes\":%.0f}",
             run->net->layers[layer].name, c->forward / steps, c->backward_weights / steps,
             c->backward_data / steps, w->busy / steps, w->exposed / steps,
             (double)w->bytes / steps);
    tutti_metrics_write_json(run->metrics, tutti_stepper_steps(run->stepper), "layer", fields);
}

typedef struct rank_report {
    double compute, waiting;
} rank_report;

static tutti_status report_ranks(tutti_run *run, double steps)
{
    const double computed = tutti_stepper_computed(run->stepper);
    rank_report mine = {computed, run->times.stepping - computed}, *all = NULL;
    if (run->me.size == 1) return TUTTI_OK;
    TUTTI_TRY(tutti_alloc(&all, (size_t)run->me.size, sizeof *all));
    tutti_status s = tutti_comm_allgather(run->me.comm, &mine, sizeof mine, all);
    int slowest = 0;
    for (int r = 1; s == TUTTI_OK && r < run->me.size; r++)
        if (all[r].compute > all[slowest].compute) slowest = r;
    for (int r = 0; s == TUTTI_OK && r < run->me.size && r < 16; r++)
        tutti_progress_say(
            run->progress, "  rank %-4d %-16s computing %8.2f ms, waiting %7.2f ms a step%s", r,
            tutti_comm_host(run->me.comm, r), all[r].compute / steps * 1e3,
            all[r].waiting / steps * 1e3, r == slowest ? "  <- computes longest" : "");
    tutti_free(all);
    return s;
}

static void say_summary(tutti_run *run, double seconds, int64_t steps)
{
    char time[32], memory[32];
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    const double rate = (double)(steps * run->settings.batch) / run->times.stepping;
    const int64_t done = tutti_stepper_steps(run->stepper), all = run->settings.pace.steps;
    char how[64] = "done";
    if (done < all)
        snprintf(how, sizeof how, "stopped at step %lld of %lld", (long long)done, (long long)all);
    tutti_progress_say(
        run->progress,
        "%s: %lld steps in %s with evaluation and checkpoints, %.1f samples/s and %.1f %% of the "
        "FMA peak without, %s at most",
        how, (long long)steps, tutti_format_time(time, seconds), rate,
        tutti_run_percent_of_peak(run, rate),
        tutti_format_bytes(memory, 1024.0 * (double)usage.ru_maxrss));
}

/* "top-1 88.61 %", "loss 0.0312": what decides. */
static void name_best(const tutti_judge *judge, double value, char *out, size_t size)
{
    if (judge->decides == TUTTI_DECIDES_LOSS) snprintf(out, size, "loss %.6g", value);
    else snprintf(out, size, "%s %.2f %%", judge->figures[judge->decides].name, 100 * value);
}

static void say_best(const tutti_run *run)
{
    const tutti_score *score = &run->score;
    const tutti_judge *judge = tutti_run_judge_of_answer(run);
    const bool validates = tutti_run_judge(run) == TUTTI_SPLIT_VAL;
    const double tested = tutti_judge_value(judge, &score->test);
    char best[64], last[64], test[128] = "";
    if (isnan(score->best)) return;
    name_best(judge, score->best, best, sizeof best);
    name_best(judge, tested, last, sizeof last);
    if (!isnan(tested)) snprintf(test, sizeof test, "; test %s with the final weights", last);
    tutti_progress_say(run->progress, "best: %s %s after step %lld, chosen on the %s set%s",
                       validates ? "val" : "test", best, (long long)score->best_step,
                       validates ? "validation" : "test", test);
}

tutti_status tutti_run_report(tutti_run *run, double seconds, int64_t steps)
{
    tutti_progress_end(run->progress);
    if (!steps && !tutti_run_is_stale(run))
        tutti_progress_say(run->progress,
                           "already done: %lld steps; give more --steps or --epochs to go on",
                           (long long)tutti_stepper_steps(run->stepper));
    if (steps) {
        tutti_progress_say(run->progress, "  %-*s %9s %9s %9s %9s %9s  %s",
                           tutti_net_name_width(run->net, 12), "ms a step", "forward", "weights",
                           "data", "comm", "exposed", "sent");
        for (int i = 0; i < run->net->layer_count; i++) report_layer(run, i, (double)steps);
        TUTTI_TRY(report_ranks(run, (double)steps));
        say_summary(run, seconds, steps);
        say_best(run);
    }
    if (!run->options->trace) return TUTTI_OK;
    return tutti_rank_write_trace(&run->me, run->trace, run->options->trace, run->times.begun);
}
