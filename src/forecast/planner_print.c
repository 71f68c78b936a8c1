#include <math.h>
#include <stdio.h>
#include <string.h>

#include "format/human.h"
#include "format/json.h"
#include "plan/balance.h"
#include "plan/volumes.h"
#include "forecast/planner.h"

/* ---- text ---- */

/* Why a layer is split as it is: what the two pure ways would send. */
static void why(const tutti_planner *p, const tutti_planner_row *row, int layer, char *out,
                size_t size)
{
    const tutti_layer *l = &p->net->layers[layer];
    const tutti_balance_layer b = tutti_balance_of(p->net, l);
    char data[32], model[32];
    *out = 0;
    if (l->frozen) snprintf(out, size, "frozen");
    if (!tutti_layer_trains(p->net, l) || row->nodes == 1) return;
    tutti_format_bytes(data, tutti_balance_data_bytes(&b, p->platform->overlap));
    tutti_format_bytes(model, tutti_balance_model_bytes(&b, p->batch));
    snprintf(out, size, "weights %s, activations %s", data, model);
}

static void print_layers(const tutti_planner *p, const tutti_planner_row *row, FILE *out)
{
    const int width = tutti_net_name_width(p->net, 10);
    fprintf(out, "%-*s %-7s %5s %10s %10s %10s %10s  %s\n", width, "layer", "split", "G", "sent",
            "compute", "comm", "exposed", "why");
    for (int i = 0; i < p->net->layer_count; i++) {
        const tutti_layer_prediction *l = &row->prediction->layer[i];
        const double compute = l->compute.forward + l->compute.weights + l->compute.data;
        char bytes[32], reason[96];
        if (!tutti_layer_learns(p->net, &p->net->layers[i]) && l->bytes <= 0) continue;
        why(p, row, i, reason, sizeof reason);
        fprintf(out, "%-*s %-7s %5d %10s %7.2f ms %7.2f ms %7.2f ms  %s\n", width,
                p->net->layers[i].name, tutti_plan_split(row->plan, i), row->plan->groups[i],
                tutti_format_bytes(bytes, l->bytes), compute * 1e3, l->comm * 1e3, l->exposed * 1e3,
                reason);
    }
}

static void print_curve(const tutti_planner *p, FILE *out)
{
    enum { BAR = 40 };
    fprintf(out, "%6s %11s %11s %9s %7s %9s %9s %11s\n", "nodes", "step", "samples/s", "speedup",
            "effic.", "exposed", "epoch", "node-hours");
    for (int i = 0; i < p->count; i++) {
        const tutti_planner_row *r = &p->rows[i];
        char epoch[32], bar[BAR + 1], reported[48] = "";
        const int length = (int)(r->efficiency * BAR + 0.5);
        memset(bar, '#', sizeof bar);
        bar[length < 0 ? 0 : length > BAR ? BAR : length] = 0;
        if (isfinite(r->paper_speedup))
            snprintf(reported, sizeof reported, "  (the paper: %.3gx)", r->paper_speedup);
        fprintf(out, "%6d %8.2f ms %11.1f %8.1fx %6.1f%% %6.2f ms %9s %11.1f  %s%s\n", r->nodes,
                r->prediction->step_s * 1e3, p->batch / r->prediction->step_s, r->speedup,
                100 * r->efficiency, r->prediction->exposed_s * 1e3,
                tutti_format_time(epoch, r->epoch_s), r->node_hours, bar, reported);
    }
}

/* The largest number of nodes asked for that is at least this efficient. */
static int knee(const tutti_planner *p, double efficiency)
{
    int nodes = 0;
    for (int i = 0; i < p->count; i++)
        if (p->rows[i].efficiency >= efficiency && p->rows[i].nodes > nodes)
            nodes = p->rows[i].nodes;
    return nodes;
}

/* The cheapest row within the deadline, or the fastest within the budget. */
static const tutti_planner_row *best_row(const tutti_planner *p)
{
    const tutti_planner_options *o = p->options;
    const tutti_planner_row *best = NULL;
    for (int i = 0; i < p->count; i++) {
        const tutti_planner_row *r = &p->rows[i];
        if (o->deadline > 0 && r->hours > o->deadline) continue;
        if (o->node_hours > 0 && r->node_hours > o->node_hours) continue;
        const bool cheaper = best && r->node_hours < best->node_hours;
        const bool faster = best && r->hours < best->hours;
        if (!best || (o->deadline > 0 ? cheaper : faster)) best = r;
    }
    return best;
}

/* What the prediction leaves out, and by how much it missed what the paper measured. */
static void print_doubts(const tutti_planner *p, FILE *out)
{
    for (int i = 0; i < p->count; i++) {
        const tutti_planner_row *r = &p->rows[i];
        if (isfinite(r->paper_speedup))
            fprintf(out,
                    "On %d nodes the paper measured %.3gx, this predicts %.3gx (%+.0f %%): a real "
                    "node with few samples computes less efficiently, and ranks wait for the "
                    "slowest.\n",
                    r->nodes, r->paper_speedup, r->speedup,
                    100 * (r->speedup / r->paper_speedup - 1));
    }
    fprintf(out,
            *p->platform->machine
                ? "The prediction stands on what tutti calibrate measured; it knows nothing of "
                  "contention inside a larger network and of reading data.\n"
                : "The model knows computing, volume, latency and overlap; it knows nothing of "
                  "jitter, contention inside the network, and reading of data.\n");
}

static void print_advice(const tutti_planner *p, FILE *out)
{
    const tutti_planner_options *o = p->options;
    if (p->count > 1)
        fprintf(out,
                "efficiency stays above 80 %% up to %d nodes, above 50 %% up to %d (of those "
                "asked for)\n",
                knee(p, 0.8), knee(p, 0.5));
    if (o->deadline > 0 || o->node_hours > 0) {
        const tutti_planner_row *r = best_row(p);
        if (r)
            fprintf(out, "take %d nodes: %.4g epochs in %.2f hours, %.1f node-hours\n", r->nodes,
                    p->epochs, r->hours, r->node_hours);
        else fprintf(out, "none of these numbers of nodes keeps the deadline and the budget\n");
    }
    print_doubts(p, out);
}

static void print_memory(const tutti_planner *p, const tutti_planner_row *r, FILE *out)
{
    char need[32], have[32];
    tutti_format_bytes(need, r->prediction->memory);
    if (p->platform->memory > 0 && r->prediction->memory > p->platform->memory)
        fprintf(out,
                "warning: a node needs %s but has %s: take more nodes, a smaller batch or "
                "--micro-batch\n",
                need, tutti_format_bytes(have, p->platform->memory));
    else fprintf(out, "memory: %s a node\n", need);
}

/* The order of the passes, where it is not the usual one. */
static void print_order(const tutti_planner *p, const tutti_planner_row *r, FILE *out)
{
    const char *first = NULL, *last = NULL;
    for (int i = 0; i < r->prediction->late; i++) {
        if (!tutti_layer_trains(p->net, &p->net->layers[i])) continue;
        last = p->net->layers[i].name;
        if (!first) first = last;
    }
    if (!first) return;
    fprintf(out,
            "order: the weight gradient%s of %s%s%s last, so that a node late for a moment "
            "delays nobody\n",
            first == last ? "" : "s", first, first == last ? "" : " to ",
            first == last ? "" : last);
}

void tutti_planner_print(const tutti_planner *p, FILE *out)
{
    const tutti_planner_row *last = &p->rows[p->count - 1];
    fprintf(out, "%s, minibatch %d, on %s\n\n", p->net->name, p->batch,
            *p->platform->title ? p->platform->title : p->platform->name);
    fprintf(out, "%d node%s", last->nodes, last->nodes > 1 ? "s" : "");
    if (last->prediction->passes > 1) fprintf(out, " in %d passes", last->prediction->passes);
    fprintf(out, ":\n");
    print_layers(p, last, out);
    print_memory(p, last, out);
    print_order(p, last, out);
    fprintf(out, "\n");
    print_curve(p, out);
    print_advice(p, out);
}

/* ---- JSON ---- */

static void json_layers(const tutti_planner *p, const tutti_planner_row *row, tutti_string *s)
{
    tutti_json_key(s, "layers");
    tutti_string_printf(s, "[");
    for (int i = 0, written = 0; i < p->net->layer_count; i++) {
        const tutti_layer_prediction *l = &row->prediction->layer[i];
        if (!tutti_layer_learns(p->net, &p->net->layers[i])) continue;
        tutti_string_printf(s, written++ ? ",\n  {" : "\n  {");
        tutti_json_field_string(s, "name", p->net->layers[i].name);
        tutti_json_field_string(s, "split", tutti_plan_split(row->plan, i));
        tutti_json_field_int(s, "groups", row->plan->groups[i]);
        tutti_json_field_real(s, "bytes", l->bytes, 9);
        tutti_json_field_real(s, "compute_s",
                              l->compute.forward + l->compute.weights + l->compute.data, 9);
        tutti_json_field_real(s, "comm_s", l->comm, 9);
        tutti_json_field_real(s, "exposed_s", l->exposed, 9);
        tutti_json_key(s, "late");
        tutti_string_printf(s, i < row->prediction->late ? "true" : "false");
        tutti_string_printf(s, "}");
    }
    tutti_string_printf(s, "]");
}

static void json_row(const tutti_planner *p, const tutti_planner_row *r, tutti_string *s)
{
    tutti_json_field_int(s, "nodes", r->nodes);
    tutti_json_field_real(s, "step_s", r->prediction->step_s, 9);
    tutti_json_field_real(s, "samples_per_s", p->batch / r->prediction->step_s, 9);
    tutti_json_field_real(s, "speedup", r->speedup, 9);
    tutti_json_field_real(s, "efficiency", r->efficiency, 9);
    tutti_json_field_real(s, "compute_s", r->prediction->compute_s, 9);
    tutti_json_field_real(s, "exposed_s", r->prediction->exposed_s, 9);
    tutti_json_field_real(s, "paper_speedup", r->paper_speedup, 9);
    tutti_json_field_real(s, "epoch_s", r->epoch_s, 9);
    tutti_json_field_real(s, "node_hours", r->node_hours, 9);
    tutti_json_field_real(s, "memory_bytes", r->prediction->memory, 9);
    tutti_json_field_int(s, "passes", r->prediction->passes);
}

tutti_status tutti_planner_print_json(const tutti_planner *p, FILE *out)
{
    tutti_string s = {0};
    const tutti_planner_row *last = &p->rows[p->count - 1];
    tutti_string_printf(&s, "{");
    tutti_json_field_string(&s, "net", p->net->name);
    tutti_json_field_string(&s, "platform", p->platform->name);
    tutti_json_field_int(&s, "batch", p->batch);
    json_row(p, last, &s);
    json_layers(p, last, &s);
    tutti_json_key(&s, "rows");
    tutti_string_printf(&s, "[");
    for (int i = 0; i < p->count; i++) {
        tutti_string_printf(&s, i ? ",\n  {" : "\n  {");
        json_row(p, &p->rows[i], &s);
        tutti_string_printf(&s, "}");
    }
    tutti_string_printf(&s, "]}\n");
    const tutti_status status = tutti_string_status(&s);
    if (status == TUTTI_OK) fputs(s.data, out);
    tutti_string_deinit(&s);
    return status;
}
