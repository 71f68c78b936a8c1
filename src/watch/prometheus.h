#ifndef TUTTI_WATCH_PROMETHEUS_H
#define TUTTI_WATCH_PROMETHEUS_H

#include "watch/runs.h"

/* Appends how the runs are doing in Prometheus' text format, a label "run" for each. */
void tutti_prometheus(const tutti_runs *runs, tutti_string *out);

#endif
