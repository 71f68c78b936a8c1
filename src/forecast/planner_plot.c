#include <stdio.h>

#include "forecast/planner.h"
#include "forecast/plot.h"

tutti_status tutti_planner_plot(const tutti_planner *p, const char *path)
{
    tutti_curve curves[] = {
        {"predicted", "#0072b2", "#005a8c", TUTTI_CURVE_LINE, .count = p->count},
        {"measured in the paper", "#d1450a", "#b03a08", TUTTI_CURVE_POINTS, .count = p->count}};
    char title[200];
    for (int i = 0; i < p->count; i++) {
        curves[0].nodes[i] = curves[1].nodes[i] = p->rows[i].nodes;
        curves[0].speedup[i] = p->rows[i].speedup;
        curves[1].speedup[i] = p->rows[i].paper_speedup;
    }
    snprintf(title, sizeof title, "%.60s, minibatch %d, %.60s", p->net->name, p->batch,
             p->platform->name);
    return tutti_plot_save(path, title, curves, 2);
}
