/* What a run is, and afterwards: what happened in it. */
#include "train/trainer.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include "base/clock.h"
#include "base/memory.h"
#include "format/human.h"

/* ---- before ---- */

static void describe_ranks(const tutti_trainer *t, char *out, size_t size)
{
    const int threads = tutti_team_size(t->me.exec.team);
    if (t->me.size == 1)
        snprintf(out, size, "1 rank, %d thread%s, %s kernels", threads, threads > 1 ? "s" : "",
                 t->me.exec.row->name);
    else
        snprintf(out, size, "%d ranks x %d thread%s, %s kernels, %s%s", t->me.size, threads,
                 threads > 1 ? "s" : "", t->me.exec.row->name, tutti_comm_library(),
                 tutti_session_shares_memory(t->session) ? ", parameters in common memory" : "");
}

static void describe_plan(const tutti_trainer *t, char *out, size_t size)
{
    size_t used = 0;
    *out = 0;
    for (int i = 0; i < t->forecast.plan->layers && used + 64 < size; i++)
        if (t->forecast.plan->groups[i] != t->me.size)
            used += (size_t)snprintf(out + used, size - used, "%s%s %s (G=%d)", used ? ", " : "",
                                     t->net->layers[i].name, tutti_plan_split(t->forecast.plan, i),
                                     t->forecast.plan->groups[i]);
    snprintf(out + used, size - used, "%s", used ? ", the rest data parallel" : "data parallel");
}

static void describe_optimizer(const tutti_settings *s, char *out, size_t size)
{
    char optimizer[TUTTI_OPTIMIZER_TEXT];
    tutti_optimizer_show(&s->optimizer, optimizer);
    snprintf(out, size, "%s, lr %g %s%s%s, weight decay %g%s", optimizer, s->lr, s->lr_schedule,
             *s->warmup ? ", warm-up " : "", s->warmup, s->weight_decay,
             s->decay_all || s->weight_decay == 0 ? "" : " but for biases and normalisation");
}

void tutti_trainer_show_header(tutti_trainer *t)
{
    if (!t->progress) return;
    char net[160], data[256], ranks[160], plan[512], batch[160], optimizer[384], length[128], n[32];
    char predicted[256];
    const tutti_settings *s = &t->settings;
    snprintf(net, sizeof net, "%s, %s parameters", t->net->name,
             tutti_format_count(n, (int64_t)tutti_net_total(t->net).parameters));
    snprintf(data, sizeof data, "%s: %s", t->options->data, tutti_data_description(t->data));
    describe_ranks(t, ranks, sizeof ranks);
    describe_plan(t, plan, sizeof plan);
    snprintf(predicted, sizeof predicted, "%.4g ms a step, %s",
             t->forecast.prediction ? t->forecast.prediction->step_s * 1e3 : 0, t->forecast.note);
    snprintf(batch, sizeof batch, "%d in all, %d on this rank, %d grains", s->batch,
             tutti_model_samples(tutti_session_model(t->session)), s->grains);
    describe_optimizer(s, optimizer, sizeof optimizer);
    snprintf(
        length, sizeof length, "%lld steps, %.4g epochs, seed %llu%s", (long long)s->pace.steps,
        (double)(s->pace.steps * s->pace.batch) / (double)s->pace.samples,
        (unsigned long long)t->options->seed, tutti_session_steps(t->session) ? ", resumed" : "");
    const tutti_progress_fact facts[] = {
        {"net", net},
        {"data", data},
        {"machine", ranks},
        {"plan", plan},
        {"predicted", t->forecast.prediction ? predicted : NULL},
        {"batch", batch},
        {"optimizer", optimizer},
        {"length", length},
        {"run", t->options->run ? t->options->run : "nothing is kept (no --run)"},
        {NULL, NULL},
    };
    tutti_progress_facts(t->progress, "tutti train", facts);
}

/* ---- after ---- */

tutti_layer_report tutti_trainer_layer(const tutti_trainer *t, int layer)
{
    tutti_layer_report r = {.times = tutti_model_times(tutti_session_model(t->session), layer),
                            .traffic = tutti_session_traffic(t->session, layer)};
    r.traffic.exposed += r.times.move;
    return r;
}

static tutti_status report_layer(tutti_trainer *t, int layer, double steps)
{
    const tutti_layer_report r = tutti_trainer_layer(t, layer);
    const double ms = 1e3 / steps;
    const tutti_layer_times *c = &r.times;
    const tutti_traffic *w = &r.traffic;
    const double sum = c->forward + c->backward_weights + c->backward_data;
    if (sum * ms < 0.005 && !w->bytes) return TUTTI_OK;
    char bytes[32];
    tutti_progress_say(t->progress, "  %-12s %9.2f %9.2f %9.2f %9.2f %9.2f  %s",
                       t->net->layers[layer].name, c->forward * ms, c->backward_weights * ms,
                       c->backward_data * ms, w->busy * ms, w->exposed * ms,
                       w->bytes ? tutti_format_bytes(bytes, (double)w->bytes / steps) : "");
    if (!t->metrics) return TUTTI_OK;
    char fields[512];
    snprintf(fields, sizeof fields,
             "\"layer\":\"%.64s\",\"time\":{\"forward_s\":%.6g,\"backward_weights_s\":%.6g,"
             "\"backward_data_s\":%.6g,\"comm_s\":%.6g,\"exposed_s\":%.6g,\"bytes\":%.0f}",
             t->net->layers[layer].name, c->forward / steps, c->backward_weights / steps,
             c->backward_data / steps, w->busy / steps, w->exposed / steps,
             (double)w->bytes / steps);
    return tutti_metrics_write_json(t->metrics, tutti_session_steps(t->session), "layer", fields);
}

typedef struct rank_report {
    double compute, waiting;
} rank_report;

static tutti_status report_ranks(tutti_trainer *t, double steps)
{
    const double computed = tutti_session_computed(t->session);
    rank_report mine = {computed, t->stepping - computed}, *all = NULL;
    if (t->me.size == 1) return TUTTI_OK;
    TUTTI_TRY(tutti_alloc(&all, (size_t)t->me.size, sizeof *all));
    tutti_status s = tutti_comm_allgather(t->me.comm, &mine, sizeof mine, all);
    int slowest = 0;
    for (int r = 1; s == TUTTI_OK && r < t->me.size; r++)
        if (all[r].compute > all[slowest].compute) slowest = r;
    for (int r = 0; s == TUTTI_OK && r < t->me.size && r < 16; r++)
        tutti_progress_say(
            t->progress, "  rank %-4d %-16s computing %8.2f ms, waiting %7.2f ms a step%s", r,
            tutti_comm_host(t->me.comm, r), all[r].compute / steps * 1e3,
            all[r].waiting / steps * 1e3, r == slowest ? "  <- computes longest" : "");
    tutti_free(all);
    return s;
}

static void say_summary(tutti_trainer *t, double seconds, int64_t steps)
{
    char time[32], memory[32];
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    const double rate = (double)(steps * t->settings.batch) / t->stepping;
    tutti_progress_say(
        t->progress,
        "done: %lld steps in %s with evaluation and checkpoints, %.1f samples/s and %.1f %% of the "
        "FMA peak without, %s at most",
        (long long)steps, tutti_format_time(time, seconds), rate,
        t->peak > 0 ? 100 * rate * (double)tutti_net_total(t->net).train_flops / t->peak : NAN,
        tutti_format_bytes(memory, 1024.0 * (double)usage.ru_maxrss));
}

tutti_status tutti_trainer_report(tutti_trainer *t, double seconds, int64_t steps)
{
    if (steps > 0) {
        tutti_progress_say(t->progress, "  %-12s %9s %9s %9s %9s %9s  %s", "ms a step", "forward",
                           "weights", "data", "comm", "exposed", "sent");
        for (int i = 0; i < t->net->layer_count; i++) TUTTI_TRY(report_layer(t, i, (double)steps));
        TUTTI_TRY(report_ranks(t, (double)steps));
        say_summary(t, seconds, steps);
    }
    if (!t->options->trace) return TUTTI_OK;
    return tutti_rank_write_trace(&t->me, t->trace, t->options->trace, t->begun);
}
