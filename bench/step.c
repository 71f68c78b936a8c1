/* step: a full training step on synthetic data, on one rank or under mpirun, against the machine's
 * limit and against PyTorch (one process, or DDP with gloo for several ranks) or TensorFlow, whose
 * steps alternate with ours so that the machine's moods affect both alike. */
#define _GNU_SOURCE
#include <jansson.h>
#include <math.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"
#include "cli.h"
#include "data/loader.h"
#include "machine/peak.h"
#include "opponent.h"
#include "step/stepper.h"
#include "train/plan_choice.h"

typedef struct step_options {
    const char *net, *plan, *trace;
    int batch_size, micro_batch, threads, grains, steps, precision, against, against_precision,
        overlap;
    bool json;
} step_options;

// clang-format off
#define AT(field) offsetof(step_options, field)
static const cli_option options[] = {
    {"NET",          CLI_TEXT,   AT(net), .required = true, .help = "a known net, or FILE.net"},
    {"batch-size|b", CLI_INT,    AT(batch_size), 1, 1e6, "32", .help = "samples per step, all ranks together"},
    {"micro-batch",  CLI_INT,    AT(micro_batch), 0, 1e6, "0", .help = "samples of a rank in memory at a time; 0: all"},
    {"threads|t",    CLI_INT,    AT(threads), 0, 4096, "0", .help = "threads of each rank; 0 means one per core"},
    {"grains",       CLI_INT,    AT(grains), 0, 1e6, "0", .help = "leaves of the sum over samples; 0: by the batch size"},
    {"plan",         CLI_TEXT,   AT(plan), .fallback = "auto", .help = "data, model, auto or a file"},
    {"overlap",      CLI_CHOICE, AT(overlap), .choices = "off|on", .fallback = "on", .help = "communicate while computing"},
    {"steps",        CLI_INT,    AT(steps), 1, 1e6, "5", .help = "steps to time, after one to warm up"},
    {"precision",    CLI_CHOICE, AT(precision), .choices = OPPONENT_PRECISIONS, .fallback = "fp32", .help = "what our layers multiply in"},
    {"against",      CLI_CHOICE, AT(against), .choices = OPPONENTS, .fallback = "none", .help = "measure an opponent, too"},
    {"against-precision", CLI_CHOICE, AT(against_precision), .choices = OPPONENT_PRECISIONS, .unset = -1, .otherwise = "ours", .help = "what the opponent computes in"},
    {"trace",        CLI_TEXT,   AT(trace), .value = "FILE", .help = "write a Chrome/Perfetto trace"},
    {"json",         CLI_FLAG,   AT(json), .help = "print JSON"},
    {.name = NULL},
};
// clang-format on

typedef struct subject {
    tutti_rank me;
    tutti_net *net;
    tutti_data *data;
    tutti_forecast forecast;
    tutti_trace *trace;
    tutti_stepper *stepper;
    tutti_loader *loader;
} subject;

typedef struct outcome {
    double best, peak;
    opponent opponent;
} outcome;

static tutti_status some_steps(subject *t, int count)
{
    tutti_news news;
    tutti_batch batch;
    for (int i = 0; i < count; i++) {
        TUTTI_TRY(tutti_loader_next(t->loader, &batch));
        tutti_samples samples = {.values = batch.samples, .labels = batch.labels};
        memcpy(samples.goals.of, batch.targets, sizeof samples.goals.of);
        TUTTI_TRY(tutti_stepper_step(t->stepper, &samples, 0, (tutti_note){0}, &news));
    }
    return TUTTI_OK;
}

/* The slowest rank's seconds per step, for steps that follow each other without a barrier, as in
 * training. Several ranks end a step's exchanges within the next one: the first timed step ends
 * those of the one before it, and those of the last are not waited for. */
static tutti_status steady_steps(subject *t, int count, double *seconds)
{
    double *all = NULL;
    tutti_news news;
    TUTTI_TRY(tutti_alloc(&all, (size_t)t->me.size, sizeof *all));
    tutti_status s = tutti_comm_barrier(t->me.comm);
    if (s == TUTTI_OK && t->me.size > 1) s = some_steps(t, 1);
    const double start = tutti_now();
    if (s == TUTTI_OK) s = some_steps(t, count);
    *seconds = (tutti_now() - start) / count;
    if (s == TUTTI_OK) s = tutti_stepper_settle(t->stepper, &news);
    if (s == TUTTI_OK) s = tutti_comm_allgather(t->me.comm, seconds, sizeof *seconds, all);
    for (int r = 0; s == TUTTI_OK && r < t->me.size; r++) *seconds = fmax(*seconds, all[r]);
    tutti_free(all);
    return s;
}

/* A rank that waits for another polls, and would take a core from the opponent: the others sleep
 * for about as long as its steps took last time. The first try is lost, the best one counts. */
static tutti_status let_opponent_step(subject *t, opponent *o, int count)
{
    double seconds = isfinite(o->best) ? o->best * count : 0;
    TUTTI_TRY(tutti_comm_broadcast(t->me.comm, 0, &seconds, sizeof seconds));
    if (t->me.rank) usleep((useconds_t)(seconds * 1e6));
    else TUTTI_TRY(opponent_steps(o, count));
    return TUTTI_OK;
}

/* Steps that are timed together, on both sides. */
static int steps_in_a_row(const subject *t)
{
    return t->me.size > 1 ? 2 : 1;
}

/* Since the one to warm up. */
static int steps_done(const subject *t, const step_options *s)
{
    return s->steps * (steps_in_a_row(t) + (t->me.size > 1));
}

static tutti_status measure(subject *t, const step_options *s, outcome *out)
{
    const int row = steps_in_a_row(t);
    double seconds, peak;
    TUTTI_TRY(steady_steps(t, 1, &seconds));
    tutti_model_reset_times(tutti_stepper_model(t->stepper));
    for (int i = 0; i < s->steps; i++) {
        TUTTI_TRY(tutti_peak_measure(&peak, t->me.exec, 0.01));
        out->peak = fmax(out->peak, peak);
        if (s->against) TUTTI_TRY(let_opponent_step(t, &out->opponent, row));
        TUTTI_TRY(steady_steps(t, row, &seconds));
        out->best = fmin(out->best, seconds);
    }
    return TUTTI_OK;
}

/* ---- printing ---- */

static double max_rss(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return 1024.0 * (double)usage.ru_maxrss;
}

static void print_json(const subject *t, const step_options *s, const outcome *o, double percent)
{
    const double per_step = 1.0 / steps_done(t, s);
    json_t *layers = json_array();
    for (int i = 0; i < t->net->layer_count; i++) {
        const tutti_layer_times l = tutti_model_times(tutti_stepper_model(t->stepper), i);
        json_array_append_new(layers,
                              json_pack("{s:s,s:f,s:f,s:f,s:f}", "name", t->net->layers[i].name,
                                        "forward_s", l.forward * per_step, "backward_weights_s",
                                        l.backward_weights * per_step, "backward_data_s",
                                        l.backward_data * per_step, "move_s", l.move * per_step));
    }
    json_t *j =
        json_pack("{s:s,s:i,s:i,s:i,s:i,s:f,s:f,s:f,s:f,s:o}", "net", s->net, "batch",
                  s->batch_size, "passes", tutti_model_passes(tutti_stepper_model(t->stepper)),
                  "ranks", t->me.size, "threads", tutti_team_size(t->me.exec.team), "step_s",
                  o->best, "samples_per_s", s->batch_size / o->best, "percent_of_peak", percent,
                  "max_rss_bytes", max_rss(), "layers", layers);
    if (s->against) {
        json_object_set_new(j, "against", json_string(o->opponent.name));
        json_object_set_new(j, "against_samples_per_s",
                            json_real(s->batch_size / o->opponent.best));
        json_object_set_new(j, "ratio", json_real(o->opponent.best / o->best));
        json_object_set_new(j, "against_max_rss_bytes", json_real(o->opponent.rss));
    }
    json_dumpf(j, stdout, JSON_INDENT(1));
    printf("\n");
    json_decref(j);
}

static void print_text(const subject *t, const step_options *s, const outcome *o, double percent)
{
    const double ms = 1e3 / steps_done(t, s);
    printf("%-12s %10s %10s %10s   ms, mean\n", "layer", "forward", "weights", "data");
    for (int i = 0; i < t->net->layer_count; i++) {
        const tutti_layer_times l = tutti_model_times(tutti_stepper_model(t->stepper), i);
        printf("%-12s %10.2f %10.2f %10.2f\n", t->net->layers[i].name, l.forward * ms,
               l.backward_weights * ms, l.backward_data * ms);
    }
    const int passes = tutti_model_passes(tutti_stepper_model(t->stepper));
    printf("%s batch %d in %d pass(es), %d rank(s) x %d thread(s): %.2f samples/s, %.1f %% of the "
           "FMA peak (%.0f "
           "GFLOP/s), %.2f GB resident\n",
           s->net, s->batch_size, passes, t->me.size, tutti_team_size(t->me.exec.team),
           s->batch_size / o->best, percent, o->peak * t->me.size, max_rss() * 1e-9);
    if (s->against)
        printf("%s%s: %.2f samples/s, %.2f GB resident; ratio %.2f\n", o->opponent.name,
               t->me.size > 1 ? ", DDP (gloo)" : "", s->batch_size / o->opponent.best,
               o->opponent.rss * 1e-9, o->opponent.best / o->best);
}

/* ---- putting it together ---- */

static tutti_status open_data(subject *t)
{
    const tutti_shape in = tutti_net_input(t->net);
    tutti_data_options o = tutti_data_defaults();
    o.shape = (tutti_sample_shape){in.c, in.h, in.w};
    o.classes = tutti_net_classes(t->net);
    o.target_count = t->net->target_count;
    memcpy(o.targets, t->net->targets, sizeof o.targets);
    o.answer = tutti_net_answer(t->net);
    return tutti_data_open(&t->data, "synthetic", &o);
}

static tutti_status open_loader(subject *t, const step_options *s)
{
    const tutti_model *model = tutti_stepper_model(t->stepper);
    tutti_loader_options o = tutti_loader_defaults();
    o.batch = s->batch_size;
    o.first = tutti_model_first_sample(model);
    o.end = o.first + tutti_model_samples(model);
    return tutti_loader_create(&t->loader, t->data, &o);
}

/* Collective. The net's own optimizer, so that an update costs what it does in training. */
static tutti_status create_stepper(subject *t, const step_options *s)
{
    tutti_suggested suggested;
    TUTTI_TRY(tutti_comm_agree(t->me.comm, tutti_net_suggested(&suggested, t->net)));
    const tutti_stepper_options o = {
        .comm = t->me.comm,
        .net = t->net,
        .exec = t->me.exec,
        .caches = t->me.caches,
        .batch = s->batch_size,
        .grains = s->grains ? s->grains : tutti_default_grains(t->net, s->batch_size),
        .micro_batch = s->micro_batch,
        .groups = t->forecast.plan->groups,
        .late = t->forecast.plan->late,
        .optimizer = suggested.optimizer,
        .weight_decay = suggested.weight_decay,
        .decay_all = true,
        .clip = suggested.clip,
        .overlap = s->overlap,
        .priority = true,
        .trace = t->trace,
    };
    TUTTI_TRY(tutti_stepper_create(&t->stepper, &o));
    tutti_model_init(tutti_stepper_model(t->stepper), 0, TUTTI_INIT_AUTO, 0);
    return TUTTI_OK;
}

/* Collective. */
static tutti_status choose_plan(subject *t, const step_options *s)
{
    const tutti_log log = tutti_log_stderr(TUTTI_LOG_INFO);
    tutti_suggested suggested;
    double gflops;
    TUTTI_TRY(tutti_comm_agree(t->me.comm, tutti_net_suggested(&suggested, t->net)));
    TUTTI_TRY(tutti_comm_agree(t->me.comm, tutti_peak_measure(&gflops, t->me.exec, 0.03)));
    const tutti_plan_question question = {
        .me = &t->me,
        .net = t->net,
        .name = s->plan,
        .batch = s->batch_size,
        .grains = s->grains,
        .micro_batch = s->micro_batch,
        .optimizer = tutti_optimizer_cost_of(&suggested.optimizer),
        .overlaps = s->overlap,
        .peak = gflops * 1e9,
        .log = &log,
    };
    return tutti_forecast_init(&t->forecast, &question);
}

static tutti_status open_subject(subject *t, const step_options *s)
{
    tutti_comm_options o = tutti_comm_defaults();
    o.compute_threads = s->threads;
    o.log = tutti_log_stderr(TUTTI_LOG_INFO);
    TUTTI_TRY(tutti_rank_open(&t->me, &o));
    TUTTI_TRY(tutti_comm_agree(t->me.comm, tutti_net_load(&t->net, s->net)));
    tutti_net_round(t->net, (tutti_precision)s->precision);
    TUTTI_TRY(tutti_comm_agree(t->me.comm, open_data(t)));
    TUTTI_TRY(choose_plan(t, s));
    if (s->trace) TUTTI_TRY(tutti_trace_create(&t->trace, t->me.rank, 1 << 18));
    TUTTI_TRY(create_stepper(t, s));
    return tutti_comm_agree(t->me.comm, open_loader(t, s));
}

static void close_subject(subject *t)
{
    tutti_loader_destroy(&t->loader);
    tutti_stepper_destroy(&t->stepper);
    tutti_trace_destroy(&t->trace);
    tutti_forecast_deinit(&t->forecast);
    tutti_data_close(&t->data);
    tutti_net_destroy(&t->net);
    tutti_rank_close(&t->me);
}

static tutti_status run(subject *t, const step_options *s, const cpu_set_t *cores)
{
    outcome o = {.best = INFINITY, .opponent.best = INFINITY};
    const opponent_question q = {.net = t->net,
                                 .opponent = s->against,
                                 .precision =
                                     s->against_precision < 0 ? s->precision : s->against_precision,
                                 .batch = s->batch_size,
                                 .threads = tutti_team_size(t->me.exec.team),
                                 .ranks = t->me.size,
                                 .cores = *cores};
    if (s->against && t->me.rank == 0) TUTTI_TRY(opponent_open(&o.opponent, &q));
    const double begun = tutti_now();
    const tutti_status status = measure(t, s, &o);
    opponent_close(&o.opponent);
    if (status != TUTTI_OK) return status;
    if (s->trace) TUTTI_TRY(tutti_rank_write_trace(&t->me, t->trace, s->trace, begun));
    const double flops = (double)tutti_net_total(t->net).train_flops * s->batch_size;
    const double percent = 100 * flops / o.best / (o.peak * t->me.size * 1e9);
    if (t->me.rank == 0) (s->json ? print_json : print_text)(t, s, &o, percent);
    return TUTTI_OK;
}

static int step(const cli_call *call)
{
    const step_options *s = call->values;
    subject t = {0};
    cpu_set_t cores;
    signal(SIGPIPE, SIG_IGN);
    sched_getaffinity(0, sizeof cores, &cores);
    tutti_status status = open_subject(&t, s);
    const bool opened = status == TUTTI_OK;
    if (opened) status = run(&t, s, &cores);
    if (status != TUTTI_OK) fprintf(stderr, "step: %s\n", tutti_message());
    if (opened && status != TUTTI_OK && t.me.size > 1) tutti_comm_abort(t.me.comm, status);
    close_subject(&t);
    return tutti_status_exit_code(status);
}

int main(int argc, char **argv)
{
    const cli_verb verb = {.name = "step",
                           .summary = "a full training step",
                           .options = options,
                           .values_size = sizeof(step_options),
                           .run = step};
    step_options values;
    return cli_run_alone(&verb, &values, argc, argv);
}
