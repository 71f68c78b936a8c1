/* A run's checkpoints: what stands in them beside the session, and what a run takes from one. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "train/run.h"

enum { OPTIONS = 16, OPTION_BYTES = TUTTI_OPTIMIZER_TEXT, METRICS = 5 };

/* What must be equal for two runs to be equal. */
static int state_options(const tutti_run *run, tutti_state_option *list,
                         char text[OPTIONS][OPTION_BYTES])
{
    const tutti_settings *s = &run->settings;
    char optimizer[TUTTI_OPTIMIZER_TEXT];
    int n = 0;
#define OPTION(key, format, value)                      \
    do {                                                \
        snprintf(text[n], OPTION_BYTES, format, value); \
        list[n] = (tutti_state_option){key, text[n]};   \
        n++;                                            \
    } while (0)
    OPTION("lr", "%.17g", s->lr);
    tutti_optimizer_text(&s->optimizer, optimizer);
    OPTION("optimizer", "%s", optimizer);
    OPTION("weight-decay", "%.17g", s->weight_decay);
    OPTION("decay-all", "%s", s->decay_all ? "yes" : "no");
    OPTION("lr-schedule", "%s", s->lr_schedule);
    OPTION("warmup", "%s", s->warmup);
    OPTION("clip", "%.17g", s->clip);
    OPTION("steps", "%lld", (long long)s->pace.steps);
    OPTION("shuffle", "%s", run->options->shuffle ? "yes" : "no");
    OPTION("augment", "%s", run->options->augment ? "yes" : "no");
    OPTION("data-hash", "%s", tutti_data_hash(run->data));
#undef OPTION
    return n;
}

typedef struct state_memory {
    char text[OPTIONS][OPTION_BYTES];
    tutti_state_option options[OPTIONS];
    tutti_state_metric metrics[METRICS];
} state_memory;

/* Where the run stands; 'memory' is that of its lists. */
static tutti_state state_of(const tutti_run *run, state_memory *memory)
{
    const tutti_pace *pace = &run->settings.pace;
    const int64_t step = tutti_session_steps(run->session), seen = step * pace->batch;
    const tutti_state_metric metrics[METRICS] = {
        {"loss", run->score.loss},
        {"top1", run->score.top1},
        {"top5", run->score.top5},
        {"best_top1", run->score.best_top1},
        {"best_step", (double)run->score.best_step},
    };
    memcpy(memory->metrics, metrics, sizeof metrics);
    return (tutti_state){
        .step = step,
        .epoch = seen / pace->samples,
        .epoch_sample = seen % pace->samples,
        .seed = (int64_t)run->options->seed,
        .batch_size = run->settings.batch,
        .grains = run->settings.grains,
        .net = run->net->name,
        .net_sha256 = run->net_hash,
        .options = memory->options,
        .option_count = state_options(run, memory->options, memory->text),
        .metrics = memory->metrics,
        .metric_count = METRICS,
    };
}

static void take_state(tutti_run *run, const tutti_state *state)
{
    run->score.loss = tutti_state_metric_value(state, "loss");
    run->score.top1 = tutti_state_metric_value(state, "top1");
    run->score.top5 = tutti_state_metric_value(state, "top5");
    run->score.best_top1 = tutti_state_metric_value(state, "best_top1");
    const double best_step = tutti_state_metric_value(state, "best_step");
    run->score.best_step = isfinite(best_step) ? (int64_t)best_step : 0;
}

int64_t tutti_run_best_step(const tutti_run *run)
{
    return isfinite(run->score.best_top1) ? run->score.best_step : -1;
}

tutti_status tutti_run_save(tutti_run *run)
{
    state_memory memory;
    const tutti_state state = state_of(run, &memory);
    const tutti_checkpoint_finish_options o = {
        .best_step = tutti_run_best_step(run), .keep = run->options->keep, .log = &run->log};
    return tutti_keeper_save(run->keeper, run->options->run, &state, o);
}

tutti_status tutti_run_resume(tutti_run *run)
{
    state_memory memory;
    tutti_state_file *found = NULL;
    const tutti_train_options *o = run->options;
    const bool automatic = !strcmp(o->resume, "auto");
    if (automatic && !o->run)
        return tutti_fail(TUTTI_ARGUMENT, "--resume auto needs --run, the run to go on with");
    const tutti_state now = state_of(run, &memory);
    TUTTI_TRY(
        tutti_keeper_resume(run->keeper, automatic ? o->run : o->resume, !automatic, &now, &found));
    if (found) take_state(run, tutti_state_of(found));
    tutti_state_close(&found);
    return TUTTI_OK;
}

tutti_status tutti_run_load_weights(tutti_run *run)
{
    if (!run->options->weights)
        return tutti_fail(TUTTI_ARGUMENT, "--weights is missing: name a run or a safetensors file");
    return tutti_keeper_load_weights(run->keeper, run->options->weights, true);
}
