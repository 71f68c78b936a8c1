/* Scaling curves as SVG: both axes logarithmic, the ideal as a thin line. The axis of speedups
 * begins at 1, or at the power of two below the least of them. */
#ifndef TUTTI_FORECAST_PLOT_H
#define TUTTI_FORECAST_PLOT_H

#include <stdbool.h>

#include "base/status.h"

enum { TUTTI_MOST_POINTS = 256 };

typedef struct tutti_curve {
    const char *name, *color;
    bool is_points; /* no line between them */
    int count;
    double nodes[TUTTI_MOST_POINTS];
    double speedup[TUTTI_MOST_POINTS]; /* NaN: no point */
} tutti_curve;

/* Before anything is computed for it: TUTTI_ARGUMENT unless the name ends in ".svg" (NULL is
 * fine: nothing is drawn). */
tutti_status tutti_plot_check(const char *path) TUTTI_MUST_CHECK;

tutti_status tutti_plot_save(const char *path, const char *title, const tutti_curve *curves,
                             int count) TUTTI_MUST_CHECK;

#endif
