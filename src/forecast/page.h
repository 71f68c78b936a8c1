/* The planner's and the simulator's answers as the page of tutti watch. */
#ifndef TUTTI_FORECAST_PAGE_H
#define TUTTI_FORECAST_PAGE_H

#include "forecast/simulate.h"

/* Before anything is computed for it: TUTTI_ARGUMENT unless the name ends in ".html" or ".htm", and
 * TUTTI_IO where it cannot be written. NULL is fine: nothing will be. */
tutti_status tutti_forecast_page_check(const char *path) TUTTI_MUST_CHECK;

/* 'simulation' may be NULL; else its rows are the planner's. */
tutti_status tutti_forecast_page_save(const tutti_planner *planner,
                                      const tutti_simulation *simulation,
                                      const char *path) TUTTI_MUST_CHECK;

#endif
