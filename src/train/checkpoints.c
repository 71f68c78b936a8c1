/* A run's checkpoints: what stands in them beside the session, and what a run takes from one. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "train/trainer.h"

enum { OPTIONS = 16, OPTION_BYTES = TUTTI_OPTIMIZER_TEXT, METRICS = 5 };

/* What must be equal for two runs to be equal. */
static int state_options(const tutti_trainer *t, tutti_state_option *list,
                         char text[OPTIONS][OPTION_BYTES])
{
    const tutti_settings *s = &t->settings;
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
    OPTION("shuffle", "%s", t->options->shuffle ? "yes" : "no");
    OPTION("augment", "%s", t->options->augment ? "yes" : "no");
    OPTION("data-hash", "%s", tutti_data_hash(t->data));
#undef OPTION
    return n;
}

typedef struct state_memory {
    char text[OPTIONS][OPTION_BYTES];
    tutti_state_option options[OPTIONS];
    tutti_state_metric metrics[METRICS];
} state_memory;

/* Where the run stands; 'memory' is that of its lists. */
static tutti_state state_of(const tutti_trainer *t, state_memory *memory)
{
    const tutti_pace *pace = &t->settings.pace;
    const int64_t step = tutti_session_steps(t->session), seen = step * pace->batch;
    const tutti_state_metric metrics[METRICS] = {
        {"loss", t->last_loss},
        {"top1", t->last_top1},
        {"top5", t->last_top5},
        {"best_top1", t->best_top1},
        {"best_step", (double)t->best_step},
    };
    memcpy(memory->metrics, metrics, sizeof metrics);
    return (tutti_state){
        .step = step,
        .epoch = seen / pace->samples,
        .epoch_sample = seen % pace->samples,
        .seed = (int64_t)t->options->seed,
        .batch_size = t->settings.batch,
        .grains = t->settings.grains,
        .net = t->net->name,
        .net_sha256 = t->net_hash,
        .options = memory->options,
        .option_count = state_options(t, memory->options, memory->text),
        .metrics = memory->metrics,
        .metric_count = METRICS,
    };
}

static void take_state(tutti_trainer *t, const tutti_state *state)
{
    t->last_loss = tutti_state_metric_value(state, "loss");
    t->last_top1 = tutti_state_metric_value(state, "top1");
    t->last_top5 = tutti_state_metric_value(state, "top5");
    t->best_top1 = tutti_state_metric_value(state, "best_top1");
    const double best_step = tutti_state_metric_value(state, "best_step");
    t->best_step = isfinite(best_step) ? (int64_t)best_step : 0;
}

tutti_status tutti_trainer_save(tutti_trainer *t, bool best)
{
    state_memory memory;
    const tutti_state state = state_of(t, &memory);
    const tutti_checkpoint_finish_options o = {.best = best, .keep = t->options->keep};
    return tutti_keeper_save(t->keeper, t->options->run, &state, o);
}

tutti_status tutti_trainer_resume(tutti_trainer *t)
{
    state_memory memory;
    tutti_state_file *found = NULL;
    const tutti_train_options *o = t->options;
    const bool automatic = !strcmp(o->resume, "auto");
    if (automatic && !o->run)
        return tutti_fail(TUTTI_ARGUMENT, "--resume auto needs --run, the run to go on with");
    const tutti_state now = state_of(t, &memory);
    TUTTI_TRY(
        tutti_keeper_resume(t->keeper, automatic ? o->run : o->resume, !automatic, &now, &found));
    if (found) take_state(t, tutti_state_of(found));
    tutti_state_close(&found);
    return TUTTI_OK;
}
