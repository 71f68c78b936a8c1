/* The planner's answers: one row per number of nodes. */
#ifndef TUTTI_FORECAST_PLANNER_H
#define TUTTI_FORECAST_PLANNER_H

#include <tutti/plan.h>
#include "plan/predict.h"

enum { TUTTI_MOST_ROWS = 256 };

typedef struct tutti_planner_row {
    int nodes;
    tutti_plan *plan;
    tutti_prediction *prediction;
    double speedup, efficiency; /* against one node */
    double one_node_s;          /* what one node takes for the step */
    double paper_speedup;       /* NaN: the paper does not have this point */
    double epoch_s, hours, node_hours;
} tutti_planner_row;

typedef struct tutti_planner {
    const tutti_planner_options *options;
    tutti_net *net;
    tutti_platform *platform;
    int batch;
    tutti_optimizer_cost optimizer; /* that the net suggests */
    double epochs, samples;
    int count;
    tutti_planner_row rows[TUTTI_MOST_ROWS];
} tutti_planner;

/* Fills in what the options ask for: net, platform, a row for each number of nodes. */
tutti_status tutti_planner_open(tutti_planner **out,
                                const tutti_planner_options *options) TUTTI_MUST_CHECK;
void tutti_planner_close(tutti_planner **planner);

void tutti_planner_print(const tutti_planner *planner, FILE *out);
tutti_status tutti_planner_print_json(const tutti_planner *planner, FILE *out) TUTTI_MUST_CHECK;
tutti_status tutti_planner_plot(const tutti_planner *planner, const char *path) TUTTI_MUST_CHECK;

/* The speedup the paper reports for a net on a platform, NaN if it does not. */
double tutti_paper_speedup(const char *net, const char *platform, int nodes, int batch);

#endif
