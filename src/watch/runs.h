/* Runs that are looked at together, with those that were in their directories before. */
#ifndef TUTTI_WATCH_RUNS_H
#define TUTTI_WATCH_RUNS_H

#include "watch/feed.h"

enum { TUTTI_MOST_RUNS = 16, TUTTI_MOST_EARLIER = 3 };

typedef struct tutti_runs {
    tutti_feed *feeds[TUTTI_MOST_RUNS];
    int count;
    tutti_feed *earlier[TUTTI_MOST_EARLIER]; /* RUN.old, RUN.old.2 ... of a run that is alone */
    int earlier_count;
} tutti_runs;

tutti_status tutti_runs_open(tutti_runs *out, const char *const *runs, int count) TUTTI_MUST_CHECK;
void tutti_runs_close(tutti_runs *runs); /* all zero is fine */

/* Of each file at most about 'most' bytes. */
tutti_status tutti_runs_read(tutti_runs *runs, size_t most, bool *changed) TUTTI_MUST_CHECK;

/* Appends what the page shows; 'generation': of a page that may ask for more, 0 for a file. */
void tutti_runs_json(const tutti_runs *runs, int64_t generation, tutti_string *out);

#endif
