/* A lock for file systems that have none: a file that its owner touches every second. Whoever
 * finds it young leaves it alone; whoever finds it old takes its place by a rename, and waits a
 * moment to see whether somebody else did so at the same time.
 *
 * Young and old are told by the file system's own clock, which also stamps a file that is made to
 * ask for the time: clocks of hosts are never compared. Inside the room only. */
#ifndef TUTTI_CHECKPOINT_BEAT_H
#define TUTTI_CHECKPOINT_BEAT_H

#include <stdbool.h>

#include "base/status.h"

enum {
    TUTTI_BEAT_SECONDS = 1,
    TUTTI_BEAT_YOUNG = 20 /* seconds after the last beat */
};

typedef struct tutti_beat tutti_beat;

/* *held: the file at 'path' is another's and young. Else it is this process's now, with 'text' in
 * it, and is kept young until close. */
tutti_status tutti_beat_open(tutti_beat **out, bool *held, const char *path,
                             const char *text) TUTTI_MUST_CHECK;

/* Stops; the file stays. */
void tutti_beat_close(tutti_beat **beat);

/* Has another process taken its place? */
bool tutti_beat_is_lost(const tutti_beat *beat);

#endif
