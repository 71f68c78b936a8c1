/* The prediction held to account: what each layer and the step were said to take against what they
 * took on this rank, on average. A step is counted without the time it waited for data, which no
 * plan can know; the first step of a run, which warms up, is left out. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "format/file.h"
#include "format/json.h"
#include "train/run.h"

typedef struct pair {
    double predicted, measured; /* seconds */
} pair;

static double error_of(pair p)
{
    return p.measured > 0 ? 100 * (p.predicted / p.measured - 1) : NAN;
}

/* ---- what is compared ---- */

static pair step_of(const tutti_run *run)
{
    const double waited = run->times.steady_data, steps = (double)run->times.steady_steps;
    return (pair){run->forecast.prediction->step_s, (run->times.steady - waited) / steps};
}

static pair computing_of(const tutti_run *run, int layer, double steps)
{
    const tutti_layer_times m = tutti_run_layer(run, layer).times;
    return (pair){run->forecast.prediction->layer[layer].elapsed,
                  (m.forward + m.backward_weights + m.backward_data) / steps};
}

static pair waiting_of(const tutti_run *run, int layer, double steps)
{
    return (pair){run->forecast.prediction->layer[layer].exposed,
                  tutti_run_layer(run, layer).traffic.exposed / steps};
}

/* What a step takes outside its layers: input, updates of whole layers, bookkeeping. */
static pair rest_of(const tutti_run *run, double steps)
{
    pair rest = step_of(run);
    for (int i = 0; i < run->net->layer_count; i++) {
        const pair c = computing_of(run, i, steps), w = waiting_of(run, i, steps);
        rest.predicted -= c.predicted + w.predicted;
        rest.measured -= c.measured + w.measured;
    }
    return rest;
}

/* ---- for people ---- */

static void say(const tutti_run *run, const char *name, pair computing, pair waiting)
{
    tutti_progress_say(run->progress, "  %-*s %9.2f %9.2f %+7.1f %%  %9.2f %9.2f",
                       tutti_net_name_width(run->net, 12), name, computing.predicted * 1e3,
                       computing.measured * 1e3, error_of(computing), waiting.predicted * 1e3,
                       waiting.measured * 1e3);
}

static void say_all(const tutti_run *run, double steps)
{
    const pair step = step_of(run);
    tutti_progress_say(run->progress, "  %-*s %9s %9s %9s  %9s %9s",
                       tutti_net_name_width(run->net, 12), "ms a step", "predicted", "measured",
                       "error", "exposed:", "measured");
    for (int i = 0; i < run->net->layer_count; i++) {
        const pair c = computing_of(run, i, steps), w = waiting_of(run, i, steps);
        if (fmax(c.predicted + w.predicted, c.measured + w.measured) < 5e-3 * step.measured)
            continue;
        say(run, run->net->layers[i].name, c, w);
    }
    say(run, "(no layer)", rest_of(run, steps), (pair){0, 0});
    tutti_progress_say(run->progress, "a step: predicted %.2f ms %s, measured %.2f ms (%+.1f %%)",
                       step.predicted * 1e3, run->forecast.note, step.measured * 1e3,
                       error_of(step));
}

/* ---- for programs ---- */

static void field_pair(tutti_string *s, const char *what, pair p)
{
    char key[64];
    snprintf(key, sizeof key, "predicted%s_s", what);
    tutti_json_field_real(s, key, p.predicted, 9);
    snprintf(key, sizeof key, "measured%s_s", what);
    tutti_json_field_real(s, key, p.measured, 9);
}

static void write_layer(tutti_string *s, const tutti_run *run, int i, double steps)
{
    const pair computing = computing_of(run, i, steps);
    tutti_string_printf(s, i ? ",\n  {" : "\n  {");
    tutti_json_field_string(s, "name", run->net->layers[i].name);
    tutti_json_field_string(s, "split", tutti_plan_split(run->forecast.plan, i));
    tutti_json_field_int(s, "groups", run->forecast.plan->groups[i]);
    field_pair(s, "", computing);
    tutti_json_field_real(s, "error_percent", error_of(computing), 4);
    field_pair(s, "_exposed", waiting_of(run, i, steps));
    tutti_string_printf(s, "}");
}

static tutti_status write_json(const tutti_run *run, double steps)
{
    char path[4096];
    tutti_string s = {0};
    const pair step = step_of(run);
    snprintf(path, sizeof path, "%s/plan.json", run->options->run);
    tutti_string_printf(&s, "{");
    tutti_json_field_string(&s, "net", run->net->name);
    tutti_json_field_int(&s, "nodes", run->me.size);
    tutti_json_field_int(&s, "threads", tutti_team_size(run->me.exec.team));
    tutti_json_field_int(&s, "batch", run->settings.batch);
    tutti_json_field_string(&s, "prediction", run->forecast.note);
    tutti_json_field_int(&s, "steps", run->times.steady_steps);
    field_pair(&s, "_step", step);
    tutti_json_field_real(&s, "error_percent", error_of(step), 4);
    field_pair(&s, "_outside_layers", rest_of(run, steps));
    tutti_json_key(&s, "layers");
    tutti_string_printf(&s, "[");
    for (int i = 0; i < run->net->layer_count; i++) write_layer(&s, run, i, steps);
    tutti_string_printf(&s, "]}\n");
    tutti_status status = tutti_string_status(&s);
    if (status == TUTTI_OK) status = tutti_file_save(path, s.data, s.length);
    tutti_string_deinit(&s);
    return status;
}

tutti_status tutti_run_compare(tutti_run *run, int64_t steps)
{
    if (!run->forecast.prediction || !run->forecast.is_accountable || run->times.steady_steps < 1)
        return TUTTI_OK;
    say_all(run, (double)steps);
    return run->options->run ? write_json(run, (double)steps) : TUTTI_OK;
}
