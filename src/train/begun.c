/* What a run is: for people at its beginning, and in RUN/events.jsonl for those who look on. */
#include "train/run.h"

#include <stdio.h>
#include <string.h>

#include <tutti/tutti.h>
#include "base/memory.h"
#include "format/human.h"
#include "watch/net_json.h"

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
    char all[32], some[32], precision[64];
    int used = snprintf(out, size, "%s, %s parameters", net->name,
                        tutti_format_count(all, (int64_t)total.parameters));
    if (total.trained < total.parameters)
        used += snprintf(out + used, size - (size_t)used, ", of which %s are trained",
                         tutti_format_count(some, (int64_t)total.trained));
    tutti_net_describe_precision(net, precision);
    if (*precision) snprintf(out + used, size - (size_t)used, "; %s", precision);
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

/* The texts of all facts. */
typedef struct texts {
    char net[160], data[1024], ranks[160], plan[512], batch[256], optimizer[800], length[128];
    char predicted[256], judge[160];
} texts;

enum { FACTS = 11 };

static void describe_data(const tutti_run *run, char *out, size_t size)
{
    snprintf(out, size, "%s: %s", run->options->data, tutti_data_description(run->data));
}

static void describe_prediction(const tutti_run *run, char *out, size_t size)
{
    snprintf(out, size, "%.4g ms a step, %s",
             run->forecast.prediction ? run->forecast.prediction->step_s * 1e3 : 0,
             run->forecast.note);
}

static void describe_length(const tutti_run *run, char *out, size_t size)
{
    const tutti_pace *pace = &run->settings.pace;
    snprintf(out, size, "%lld steps, %.4g epochs, seed %llu%s", (long long)pace->steps,
             (double)(pace->steps * pace->batch) / (double)pace->samples,
             (unsigned long long)run->settings.seed,
             tutti_stepper_steps(run->stepper) ? ", resumed" : "");
}

static void gather_facts(const tutti_run *run, texts *t, tutti_progress_fact facts[FACTS])
{
    const tutti_settings *s = &run->settings;
    describe_net(run->net, t->net, sizeof t->net);
    describe_data(run, t->data, sizeof t->data);
    describe_ranks(run, t->ranks, sizeof t->ranks);
    describe_plan(run, t->plan, sizeof t->plan);
    describe_prediction(run, t->predicted, sizeof t->predicted);
    describe_batch(run, t->batch, sizeof t->batch);
    describe_optimizer(s, t->optimizer, sizeof t->optimizer);
    describe_judge(run, t->judge, sizeof t->judge);
    describe_length(run, t->length, sizeof t->length);
    const tutti_progress_fact all[FACTS] = {
        {"net", t->net},
        {"data", t->data},
        {"machine", t->ranks},
        {"plan", t->plan},
        {"predicted", run->forecast.prediction ? t->predicted : NULL},
        {"batch", t->batch},
        {"optimizer", t->optimizer},
        {"length", t->length},
        {"best", s->evaluates ? t->judge : NULL},
        {"run", run->options->run ? run->options->run : "nothing is kept (no --run)"},
        {NULL, NULL},
    };
    memcpy(facts, all, sizeof all);
}

/* ---- for those who look on ---- */

static void put_facts(tutti_string *s, const tutti_progress_fact *facts)
{
    tutti_json_key(s, "facts");
    tutti_string_append(s, "{", 1);
    for (const tutti_progress_fact *f = facts; f->name; f++)
        if (f->value) tutti_json_field_string(s, f->name, f->value);
    tutti_string_append(s, "}", 1);
}

static void put_hosts(tutti_string *s, const tutti_run *run)
{
    tutti_json_key(s, "hosts");
    tutti_string_append(s, "[", 1);
    for (int r = 0; r < run->me.size; r++) {
        if (r) tutti_string_append(s, ",", 1);
        tutti_json_string(s, tutti_comm_host(run->me.comm, r));
    }
    tutti_string_append(s, "]", 1);
}

static void put_run(tutti_string *s, const tutti_run *run)
{
    const tutti_pace *pace = &run->settings.pace;
    tutti_json_field_string(s, "version", tutti_version());
    tutti_json_field_string(s, "name", run->net->name);
    tutti_json_field_int(s, "steps", pace->steps);
    tutti_json_field_int(s, "batch", pace->batch);
    tutti_json_field_int(s, "samples", pace->samples);
    tutti_json_field_int(s, "ranks", run->me.size);
    tutti_json_field_real(s, "peak", run->peak, 6);
    tutti_json_field_real(s, "flops", tutti_net_made_flops(run->net), 9);
    if (run->forecast.prediction)
        tutti_json_field_real(s, "predicted_step_s", run->forecast.prediction->step_s, 6);
}

static void write_down(const tutti_run *run, const tutti_progress_fact *facts)
{
    tutti_string s = {0};
    const int64_t step = tutti_stepper_steps(run->stepper);
    put_run(&s, run);
    put_facts(&s, facts);
    put_hosts(&s, run);
    tutti_json_key(&s, "layers");
    tutti_net_json(&s, run->net, run->forecast.plan, run->forecast.prediction);
    if (!tutti_string_status(&s))
        tutti_chronicle_event(run->chronicle, step, "begun", step ? "resumed" : "a fresh run",
                              s.data);
    tutti_string_deinit(&s);
}

void tutti_run_begin(tutti_run *run)
{
    texts t;
    tutti_progress_fact facts[FACTS];
    if (run->me.rank != 0) return;
    gather_facts(run, &t, facts);
    if (run->progress) tutti_progress_facts(run->progress, "tutti train", facts);
    if (run->options->run) write_down(run, facts);
}
