/* Scaling curves as SVG: speedup, both axes logarithmic, and beside it efficiency; the ideal is
 * dashed. The axis of speedups begins at 1, or at the power of two below the least of them. */
#ifndef TUTTI_FORECAST_PLOT_H
#define TUTTI_FORECAST_PLOT_H

#include <stdbool.h>

#include "base/status.h"

enum { TUTTI_MOST_POINTS = 256 };

typedef enum tutti_curve_style {
    TUTTI_CURVE_LINE,
    TUTTI_CURVE_BAND,  /* broad: what is drawn upon it leaves its edges to be seen */
    TUTTI_CURVE_POINTS /* no line between them */
} tutti_curve_style;

/* Drawn in the order of the array, each upon those before it; up to eight. */
typedef struct tutti_curve {
    const char *name;
    const char *color, *ink; /* of the curve, and of letters, which must be darker */
    tutti_curve_style style;
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
