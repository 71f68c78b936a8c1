#include <math.h>
#include <stdio.h>

#include "format/human.h"
#include "format/json.h"
#include "forecast/plot.h"
#include "forecast/simulate.h"

/* ---- text ---- */

void tutti_simulation_print(const tutti_simulation *s, FILE *out)
{
    const tutti_planner *p = s->planner;
    const tutti_simulate_options *o = s->options;
    fprintf(out, "%s, minibatch %d, on %s (%s)\n", p->net->name, p->batch,
            *p->platform->title ? p->platform->title : p->platform->name, p->platform->topology);
    fprintf(out, "plan %s, overlap %s, priority %s", o->plan ? o->plan : "auto",
            o->overlap ? "on" : "off", o->priority ? "on" : "off");
    if (o->jitter > 0) fprintf(out, ", jitter %g %%", 100 * o->jitter);
    if (o->straggler > 1) fprintf(out, ", one node %g times slower", o->straggler);
    fprintf(out, "\n\n%6s %11s %11s %9s %7s %10s %10s %22s %9s %7s\n", "nodes", "step", "samples/s",
            "speedup", "effic.", "exposed", "sent", "busiest link", "predicted", "paper");
    for (int i = 0; i < p->count; i++) {
        const tutti_simulated *r = &s->rows[i];
        char sent[32], reported[32] = "-";
        if (isfinite(p->rows[i].paper_speedup))
            snprintf(reported, sizeof reported, "%.3gx", p->rows[i].paper_speedup);
        fprintf(out,
                "%6d %8.2f ms %11.1f %8.1fx %6.1f%% %7.2f ms %10s %16.16s %4.0f%% %8.1fx %7s\n",
                p->rows[i].nodes, r->step_s * 1e3, p->batch / r->step_s, r->speedup,
                100 * r->efficiency, r->exposed_s * 1e3, tutti_format_bytes(sent, r->bytes_sent),
                r->busiest_link, 100 * r->busiest, p->rows[i].speedup, reported);
    }
    fprintf(out,
            "\nexposed is the mean of all nodes; predicted is tutti plan's. Not simulated: reading "
            "of data, other jobs in\nthe network, noise of the operating system%s.\n",
            o->jitter > 0 ? "" : " (try --jitter 2%)");
}

/* ---- JSON ---- */

static void json_row(const tutti_simulation *s, int i, tutti_string *out)
{
    const tutti_planner_row *planned = &s->planner->rows[i];
    const tutti_simulated *r = &s->rows[i];
    tutti_json_field_int(out, "nodes", planned->nodes);
    tutti_json_field_real(out, "step_s", r->step_s, 9);
    tutti_json_field_real(out, "samples_per_s", s->planner->batch / r->step_s, 9);
    tutti_json_field_real(out, "speedup", r->speedup, 9);
    tutti_json_field_real(out, "efficiency", r->efficiency, 9);
    tutti_json_field_real(out, "exposed_s", r->exposed_s, 9);
    tutti_json_field_real(out, "bytes_sent", r->bytes_sent, 12);
    tutti_json_field_string(out, "busiest_link", r->busiest_link);
    tutti_json_field_real(out, "busiest_share", r->busiest, 6);
    tutti_json_field_real(out, "predicted_step_s", planned->prediction->step_s, 9);
    tutti_json_field_real(out, "predicted_speedup", planned->speedup, 9);
    tutti_json_field_real(out, "paper_speedup", planned->paper_speedup, 9);
}

tutti_status tutti_simulation_print_json(const tutti_simulation *s, FILE *out)
{
    const tutti_planner *p = s->planner;
    tutti_string text = {0};
    tutti_string_printf(&text, "{");
    tutti_json_field_string(&text, "net", p->net->name);
    tutti_json_field_string(&text, "platform", p->platform->name);
    tutti_json_field_string(&text, "topology", p->platform->topology);
    tutti_json_field_int(&text, "batch", p->batch);
    tutti_json_key(&text, "rows");
    tutti_string_printf(&text, "[");
    for (int i = 0; i < p->count; i++) {
        tutti_string_printf(&text, i ? ",\n  {" : "\n  {");
        json_row(s, i, &text);
        tutti_string_printf(&text, "}");
    }
    tutti_string_printf(&text, "]}\n");
    const tutti_status status = tutti_string_status(&text);
    if (status == TUTTI_OK) fputs(text.data, out);
    tutti_string_deinit(&text);
    return status;
}

/* ---- a picture ---- */

tutti_status tutti_simulation_plot(const tutti_simulation *s, const char *path)
{
    const tutti_planner *p = s->planner;
    tutti_curve curves[] = {
        {"predicted", "#f4c66a", "#8a5a00", TUTTI_CURVE_BAND, .count = p->count},
        {"simulated", "#0072b2", "#005a8c", TUTTI_CURVE_LINE, .count = p->count},
        {"measured in the paper", "#d1450a", "#b03a08", TUTTI_CURVE_POINTS, .count = p->count}};
    char title[200];
    for (int i = 0; i < p->count; i++) {
        for (int c = 0; c < 3; c++) curves[c].nodes[i] = p->rows[i].nodes;
        curves[0].speedup[i] = p->rows[i].speedup;
        curves[1].speedup[i] = s->rows[i].speedup;
        curves[2].speedup[i] = p->rows[i].paper_speedup;
    }
    snprintf(title, sizeof title, "%.60s, minibatch %d, %.60s", p->net->name, p->batch,
             p->platform->name);
    return tutti_plot_save(path, title, curves, 3);
}
