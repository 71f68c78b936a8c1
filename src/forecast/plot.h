/* Scaling curves as SVG: both axes logarithmic, the ideal as a thin line. */
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

tutti_status tutti_plot_save(const char *path, const char *title, const tutti_curve *curves,
                             int count) TUTTI_MUST_CHECK;

#endif
