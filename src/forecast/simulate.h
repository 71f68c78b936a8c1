/* The simulation's answers, beside the planner's. */
#ifndef TUTTI_FORECAST_SIMULATE_H
#define TUTTI_FORECAST_SIMULATE_H

#include <tutti/simulate.h>
#include "forecast/planner.h"

/* What came out for one number of nodes. */
typedef struct tutti_simulated {
    double step_s;
    double exposed_s;  /* waiting for communication, the mean of all nodes */
    double bytes_sent; /* in a step, by the node that sends most */
    double busiest;    /* share of its bandwidth that the busiest link carried */
    char busiest_link[64];
    double speedup, efficiency;
} tutti_simulated;

typedef struct tutti_simulation {
    const tutti_simulate_options *options;
    tutti_planner *planner;
    tutti_simulated rows[TUTTI_MOST_ROWS]; /* as the planner's */
} tutti_simulation;

/* ---- simulate_run.c ---- */

/* Simulates row 'row' with the program at 'program'; its files are made in 'folder'. */
tutti_status tutti_simulation_run(tutti_simulation *simulation, int row, const char *program,
                                  const char *folder) TUTTI_MUST_CHECK;

/* ---- simulate_print.c ---- */

void tutti_simulation_print(const tutti_simulation *simulation, FILE *out);
tutti_status tutti_simulation_print_json(const tutti_simulation *simulation,
                                         FILE *out) TUTTI_MUST_CHECK;
tutti_status tutti_simulation_plot(const tutti_simulation *simulation,
                                   const char *path) TUTTI_MUST_CHECK;

#endif
