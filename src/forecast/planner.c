#include "forecast/planner.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "forecast/page.h"
#include "forecast/plot.h"
#include "format/file.h"

tutti_planner_options tutti_planner_defaults(void)
{
    return (tutti_planner_options){.platform = "cori-phase1",
                                   .nodes = "64",
                                   .plan = "auto",
                                   .overlap = true,
                                   .priority = true};
}

const char *tutti_plan_platform(int index)
{
    return tutti_platform_known(index);
}

/* Das et al. 2016, abstract; the Ethernet ones as their authors reported them. */
static const struct {
    const char *net, *platform;
    int nodes, batch;
    double speedup;
} paper[] = {
    {"vgg-a", "cori-phase1", 128, 512, 90},
    {"vgg-a", "cori-phase1", 64, 256, 53},
    {"overfeat-fast", "cori-phase1", 64, 256, 42},
    {"cd-dnn", "endeavor-fdr", 16, 1024, 6.5},
    {"vgg-a", "aws-c4", 16, 256, 14.2},
    {"overfeat-fast", "aws-c4", 16, 256, 11.9},
};

double tutti_paper_speedup(const char *net, const char *platform, int nodes, int batch)
{
    for (size_t i = 0; i < sizeof paper / sizeof *paper; i++)
        if (!strcmp(paper[i].net, net) && !strcmp(paper[i].platform, platform) &&
            paper[i].nodes == nodes && paper[i].batch == batch)
            return paper[i].speedup;
    return NAN;
}

/* ---- which numbers of nodes ---- */

static tutti_status add_row(tutti_planner *p, long nodes, const char *text)
{
    if (nodes < 1 || nodes > 1 << 20)
        return tutti_fail(TUTTI_ARGUMENT, "--nodes %s: a number of nodes is from 1 to 1048576",
                          text);
    if (p->count == TUTTI_MOST_ROWS)
        return tutti_fail(TUTTI_ARGUMENT, "--nodes %s: more than %d numbers", text,
                          TUTTI_MOST_ROWS);
    p->rows[p->count++].nodes = (int)nodes;
    return TUTTI_OK;
}

/* "64", "1,2,4", "1..1024": the ends and the powers of two between them. */
static tutti_status read_nodes(tutti_planner *p, const char *text)
{
    for (const char *at = text; *at;) {
        char *end;
        const long first = strtol(at, &end, 10);
        if (end == at)
            return tutti_fail(TUTTI_ARGUMENT, "--nodes '%s': give 64, 1,2,4 or 1..1024", text);
        TUTTI_TRY(add_row(p, first, text));
        if (end[0] == '.' && end[1] == '.') {
            at = end + 2;
            const long last = strtol(at, &end, 10);
            if (end == at || last < first)
                return tutti_fail(TUTTI_ARGUMENT, "--nodes '%s': a range is FIRST..LAST", text);
            long n = 1;
            while (n <= first) n *= 2;
            for (; n < last; n *= 2) TUTTI_TRY(add_row(p, n, text));
            if (last > first) TUTTI_TRY(add_row(p, last, text));
        }
        if (*end && *end != ',')
            return tutti_fail(TUTTI_ARGUMENT, "--nodes '%s': give 64, 1,2,4 or 1..1024", text);
        at = *end ? end + 1 : end;
    }
    return p->count ? TUTTI_OK : tutti_fail(TUTTI_ARGUMENT, "--nodes is empty");
}

/* ---- one number of nodes ---- */

static tutti_status make_plan(const tutti_planner *p, int nodes, tutti_plan **out)
{
    const tutti_planner_options *o = p->options;
    const tutti_predict_options how = {p->batch,     o->overlap,     o->priority,
                                       p->optimizer, o->micro_batch, 0};
    const char *plan = o->plan ? o->plan : "auto";
    if (!strcmp(plan, "auto")) return tutti_plan_search(out, p->net, p->platform, nodes, &how);
    return tutti_plan_named(out, p->net, nodes, plan);
}

static tutti_status one_node_seconds(const tutti_planner *p, double *seconds)
{
    const tutti_predict_options how = {p->batch, true, true, p->optimizer, p->options->micro_batch,
                                       0};
    tutti_plan *plan = NULL;
    tutti_prediction *prediction = NULL;
    TUTTI_TRY(tutti_plan_create(&plan, p->net, 1));
    const tutti_status s = tutti_predict_step(&prediction, p->net, p->platform, plan, &how);
    if (s == TUTTI_OK) *seconds = prediction->step_s;
    tutti_prediction_destroy(&prediction);
    tutti_plan_destroy(&plan);
    return s;
}

static tutti_status fill_row(tutti_planner *p, tutti_planner_row *row, double one_node)
{
    const tutti_predict_options how = {p->batch,     p->options->overlap,     p->options->priority,
                                       p->optimizer, p->options->micro_batch, 0};
    if (row->nodes > p->batch)
        return tutti_fail(TUTTI_ARGUMENT, "%d nodes are more than the %d samples of a minibatch",
                          row->nodes, p->batch);
    TUTTI_TRY(make_plan(p, row->nodes, &row->plan));
    TUTTI_TRY(tutti_predict_step(&row->prediction, p->net, p->platform, row->plan, &how));
    const double step = row->prediction->step_s;
    row->one_node_s = one_node;
    row->speedup = one_node / step;
    row->efficiency = row->speedup / row->nodes;
    row->paper_speedup = tutti_paper_speedup(p->net->name, p->platform->name, row->nodes, p->batch);
    row->epoch_s = step * p->samples / p->batch;
    row->hours = row->epoch_s * p->epochs / 3600;
    row->node_hours = row->hours * row->nodes;
    return TUTTI_OK;
}

static tutti_status fill(tutti_planner *p)
{
    const tutti_planner_options *o = p->options;
    tutti_suggested suggested;
    double one_node;
    if (!o->net) return tutti_fail(TUTTI_ARGUMENT, "name a net");
    TUTTI_TRY(tutti_net_load(&p->net, o->net));
    TUTTI_TRY(tutti_net_freeze(p->net, o->freeze));
    TUTTI_TRY(tutti_net_set_precision(p->net, o->precision));
    TUTTI_TRY(tutti_platform_load(&p->platform, o->platform));
    TUTTI_TRY(tutti_net_suggested(&suggested, p->net));
    p->batch = o->batch_size ? o->batch_size : suggested.batch;
    p->optimizer = tutti_optimizer_cost_of(&suggested.optimizer);
    p->epochs = o->epochs > 0 ? o->epochs : suggested.epochs;
    p->samples = o->samples > 0 ? o->samples : 1281167;
    TUTTI_TRY(read_nodes(p, o->nodes));
    TUTTI_TRY(one_node_seconds(p, &one_node));
    for (int i = 0; i < p->count; i++) TUTTI_TRY(fill_row(p, &p->rows[i], one_node));
    return TUTTI_OK;
}

static tutti_status save_plan(const tutti_planner *p)
{
    char *text = NULL;
    TUTTI_TRY(tutti_plan_text(&text, p->rows[p->count - 1].plan, p->net));
    const tutti_status s = tutti_file_save(p->options->save, text, strlen(text));
    tutti_free(text);
    return s;
}

void tutti_planner_close(tutti_planner **planner)
{
    tutti_planner *p = *planner;
    if (!p) return;
    for (int i = 0; i < p->count; i++) {
        tutti_plan_destroy(&p->rows[i].plan);
        tutti_prediction_destroy(&p->rows[i].prediction);
    }
    tutti_net_destroy(&p->net);
    tutti_platform_destroy(&p->platform);
    tutti_free(p);
    *planner = NULL;
}

tutti_status tutti_planner_open(tutti_planner **out, const tutti_planner_options *options)
{
    tutti_planner *p = NULL;
    TUTTI_TRY(tutti_alloc(&p, 1, sizeof *p));
    p->options = options;
    const tutti_status s = fill(p);
    if (s != TUTTI_OK) tutti_planner_close(&p);
    *out = p;
    return s;
}

static tutti_status answer(tutti_planner *p)
{
    const tutti_planner_options *o = p->options;
    if (o->show && o->json) TUTTI_TRY(tutti_planner_print_json(p, o->show));
    if (o->show && !o->json) tutti_planner_print(p, o->show);
    if (o->plot) TUTTI_TRY(tutti_planner_plot(p, o->plot));
    if (o->html) TUTTI_TRY(tutti_forecast_page_save(p, NULL, o->html));
    return o->save ? save_plan(p) : TUTTI_OK;
}

tutti_status tutti_plan_show(const tutti_planner_options *options)
{
    tutti_planner *p = NULL;
    TUTTI_TRY(tutti_plot_check(options->plot));
    TUTTI_TRY(tutti_forecast_page_check(options->html));
    TUTTI_TRY(tutti_file_check_place(options->save));
    TUTTI_TRY(tutti_planner_open(&p, options));
    const tutti_status s = answer(p);
    tutti_planner_close(&p);
    return s;
}
