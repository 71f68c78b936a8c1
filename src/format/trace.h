/* A trace of what every rank did when, for ui.perfetto.dev and chrome://tracing.
 *
 * Each thread of a rank records into a lane of its own, without locks; a full lane drops
 * further events and says so in the trace. At the end each rank writes its piece beside the
 * final file, and one rank joins the pieces: a process per rank, a track per lane. */
#ifndef TUTTI_FORMAT_TRACE_H
#define TUTTI_FORMAT_TRACE_H

#include <stdint.h>
#include "base/status.h"

typedef enum tutti_trace_lane {
    TUTTI_TRACE_COMPUTE,
    TUTTI_TRACE_COMM,
    TUTTI_TRACE_DATA,
    TUTTI_TRACE_LANES
} tutti_trace_lane;

typedef struct tutti_trace tutti_trace;

/* Room for 'events' events in each lane. */
tutti_status tutti_trace_create(tutti_trace **out, int rank, int events) TUTTI_MUST_CHECK;
void tutti_trace_destroy(tutti_trace **trace);

/* Records [start, end] (seconds of tutti_now). 'what' ("forward", "wait") and 'name' (the layer;
 * may be NULL) must outlive the trace; 'step' and, where not negative, 'bytes' become arguments.
 * From one thread per lane at a time. A NULL trace records nothing. */
void tutti_trace_span(tutti_trace *trace, tutti_trace_lane lane, const char *what, const char *name,
                      int64_t step, int64_t bytes, double start, double end);

/* Writes this rank's piece of 'path'. 'origin' is the moment, by this rank's tutti_now, that is
 * time 0 of the trace for all ranks (the caller aligns the clocks). */
tutti_status tutti_trace_write(const tutti_trace *trace, const char *path,
                               double origin) TUTTI_MUST_CHECK;

/* Joins the pieces of 'ranks' ranks into 'path' and removes them. For one rank, after a barrier. */
tutti_status tutti_trace_join(const char *path, int ranks) TUTTI_MUST_CHECK;

#endif
