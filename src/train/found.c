/* What an evaluation found, told to people and to files. */
#include "format/json.h"
#include "train/run.h"

static double epoch_now(const tutti_run *run)
{
    const tutti_pace *pace = &run->settings.pace;
    return (double)(tutti_stepper_steps(run->stepper) * pace->batch) / (double)pace->samples;
}

static unsigned tell_evaluation(tutti_run *run, const char *phase, const tutti_evaluation *e,
                                double seconds)
{
    const int64_t step = tutti_stepper_steps(run->stepper);
    const tutti_judge *judge = tutti_run_judge_of_answer(run);
    const tutti_found *found = &e->findings[tutti_net_answer(run->net)];
    tutti_metrics_row row = tutti_metrics_row_empty(step, epoch_now(run), phase);
    row.loss = e->loss;
    for (int i = 0; i < TUTTI_MOST_FIGURES && judge->figures[i].key; i++)
        *tutti_metrics_column(&row, judge->figures[i].key) = found->figures[i];
    row.samples = (double)e->samples;
    row.seconds = seconds;
    row.samples_per_s = (double)e->samples / seconds;
    return tutti_tell(run, &row);
}

/* Targets beside the net's answer, each in a line of its own. */
static void write_others(tutti_run *run, const char *phase, const tutti_evaluation *e)
{
    const tutti_net *net = run->net;
    for (int t = 0; run->metrics && t < net->target_count; t++) {
        const tutti_judge *judge = tutti_judge_of(&net->targets[t]);
        const tutti_found *found = &e->findings[t];
        tutti_string fields = {0};
        if (t == tutti_net_answer(net)) continue;
        tutti_json_field_string(&fields, "judge", net->layers[net->judges[t]].name);
        tutti_json_field_real(&fields, "loss", found->loss, 9);
        for (int i = 0; i < TUTTI_MOST_FIGURES && judge->figures[i].key; i++)
            tutti_json_field_real(&fields, judge->figures[i].key, found->figures[i], 9);
        if (tutti_string_status(&fields) == TUTTI_OK)
            tutti_metrics_write_json(run->metrics, tutti_stepper_steps(run->stepper), phase,
                                     fields.data);
        tutti_string_deinit(&fields);
    }
}

static void say_evaluation(const tutti_run *run, tutti_split split, const tutti_evaluation *e,
                           bool best)
{
    static const char *const names[TUTTI_SPLITS] = {"train", "test", "val"};
    const tutti_net *net = run->net;
    char text[TUTTI_FINDING_TEXT];
    for (int t = 0; t < net->target_count; t++) {
        const bool answers = t == tutti_net_answer(net);
        (void)tutti_judge_text(text, tutti_judge_of(&net->targets[t]), &e->findings[t]);
        tutti_progress_say(
            run->progress, "epoch %.4g: %s %s%s%s%s", epoch_now(run), names[split],
            answers ? "" : net->layers[net->judges[t]].name, answers ? "" : " ", text,
            !answers                        ? ""
            : best                          ? " (best so far)"
            : split == tutti_run_judge(run) ? ""
                                            : " (the only test, of the final weights)");
    }
}

unsigned tutti_run_tell(tutti_run *run, tutti_split split, const tutti_evaluation *e, bool best,
                        double seconds)
{
    static const char *const phases[TUTTI_SPLITS] = {"train", "test", "val"};
    if (e->samples) say_evaluation(run, split, e, best);
    write_others(run, phases[split], e);
    return tell_evaluation(run, phases[split], e, seconds);
}
