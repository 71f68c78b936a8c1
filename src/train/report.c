/* What a run is, and afterwards: what happened in it. */
#include "train/run.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include "base/clock.h"
#include "base/memory.h"
#include "format/human.h"

/* ---- before ---- */

static void describe_ranks(const tutti_run *run, char *out, size_t size)
{
    const int threads = tutti_team_size(run->me.exec.team);
    if (run->me.size == 1)
        snprintf(out, size, "1 rank, %d thread%s, %s kernels", threads, threads > 1 ? "s" : "",
                 run->me.exec.row->name);
    else
        snprintf(out, size, "%d ranks x %d thread%s, %s kernels, %s%s", run->me.size, threads,
                 threads > 1 ? "s" : "", run->me.exec.row->name, tutti_comm_library(),
                 tutti_stepper_shares_memory(run->stepper) ? ", parameters in common memory" : "");
}

static void describe_plan(const tutti_run *run, char *out, size_t size)
{
    size_t used = 0;
    *out = 0;
    for (int i = 0; i < run->forecast.plan->layers && used + 64 < size; i++)
        if (run->forecast.plan->groups[i] != run->me.size)
            used +=
                (size_t)snprintf(out + used, size - used, "%s%s %s (G=%d)", used ? ", " : "",
                                 run->net->layers[i].name, tutti_plan_split(run->forecast.plan, i),
                                 run->forecast.plan->groups[i]);
    snprintf(out + used, size - used, "%s", used ? ", the rest data parallel" : "data parallel");
}

static void describe_batch(const tutti_run *run, char *out, size_t size)
{
    const tutti_model *model = tutti_stepper_model(run->stepper);
    const bool is_told = *run->micro_note;
    char passes[64] = "";
    if (tutti_model_passes(model) > 1)
        snprintf(passes, sizeof passes, " in %d passes of up to %d", tutti_model_passes(model),
                 tutti_model_most_samples(model));
    snprintf(out, size, "%d in all, %d on this rank%s%s%s%s, %d grains", run->settings.batch,
             tutti_model_samples(model), passes, is_told ? " (" : "", run->micro_note,
             is_told ? ")" : "", run->settings.grains);
}

static void describe_optimizer(const tutti_settings *s, char *out, size_t size)
{
    const bool warms_up = s->schedule.warmup.count > 0;
    snprintf(out, size, "%s, lr %g %s%s%s, weight decay %g%s", s->optimizer_text, s->lr,
             s->lr_schedule, warms_up ? ", warm-up " : "", warms_up ? s->warmup : "",
             s->weight_decay,
             s->decay_all || s->weight_decay == 0 ? "" : " but for biases and normalisation");
}

static void describe_net(const tutti_net *net, char *out, size_t size)
{
    const tutti_layer_info total = tutti_net_total(net);
    char all[32], some[32];
    int used = snprintf(out, size, "%s, %s parameters", net->name,
                        tutti_format_count(all, (int64_t)total.parameters));
    if (total.trained < total.parameters)
        snprintf(out + used, size - (size_t)used, ", of which %s are trained",
                 tutti_format_count(some, (int64_t)total.trained));
}

static void describe_judge(const tutti_run *run, char *out, size_t size)
{
    const int val = tutti_data_count(run->data, TUTTI_SPLIT_VAL);
    const int test = tutti_data_count(run->data, TUTTI_SPLIT_TEST);
    if (!val)
        snprintf(out, size, "chosen on the test set, which flatters it: see val= in doc/DATA.md");
    else if (test)
        snprintf(out, size,
                 "chosen on %d validation samples; %d test samples are for the end, and the final "
                 "weights",
                 val, test);
    else snprintf(out, size, "chosen on %d validation samples; there are none to test on", val);
}

void tutti_run_show_header(tutti_run *run)
{
    if (!run->progress) return;
    char net[160], data[1024], ranks[160], plan[512], batch[256], optimizer[800], length[128];
    char predicted[256], judge[160];
    const tutti_settings *s = &run->settings;
    describe_net(run->net, net, sizeof net);
    snprintf(data, sizeof data, "%s: %s", run->options->data, tutti_data_description(run->data));
    describe_ranks(run, ranks, sizeof ranks);
    describe_plan(run, plan, sizeof plan);
    snprintf(predicted, sizeof predicted, "%.4g ms a step, %s",
             run->forecast.prediction ? run->forecast.prediction->step_s * 1e3 : 0,
             run->forecast.note);
    describe_batch(run, batch, sizeof batch);
    describe_optimizer(s, optimizer, sizeof optimizer);
    describe_judge(run, judge, sizeof judge);
    snprintf(length, sizeof length, "%lld steps, %.4g epochs, seed %llu%s",
             (long long)s->pace.steps,
             (double)(s->pace.steps * s->pace.batch) / (double)s->pace.samples,
             (unsigned long long)s->seed, tutti_stepper_steps(run->stepper) ? ", resumed" : "");
    const tutti_progress_fact facts[] = {
        {"net", net},
        {"data", data},
        {"machine", ranks},
        {"plan", plan},
        {"predicted", run->forecast.prediction ? predicted : NULL},
        {"batch", batch},
        {"optimizer", optimizer},
        {"length", length},
        {"best", s->evaluates ? judge : NULL},
        {"run", run->options->run ? run->options->run : "nothing is kept (no --run)"},
        {NULL, NULL},
    };
    tutti_progress_facts(run->progress, "tutti train", facts);
}

/* ---- after ---- */

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

static void say_best(const tutti_run *run)
{
    const tutti_score *score = &run->score;
    const bool validates = tutti_run_judge(run) == TUTTI_SPLIT_VAL;
    char test[96] = "";
    if (isnan(score->best_top1)) return;
    if (!isnan(score->test_top1))
        snprintf(test, sizeof test, "; test top-1 %.2f %% with the final weights",
                 100 * score->test_top1);
    tutti_progress_say(run->progress,
                       "best: %s top-1 %.2f %% after step %lld, chosen on the %s set%s",
                       validates ? "val" : "test", 100 * score->best_top1,
                       (long long)score->best_step, validates ? "validation" : "test", test);
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
