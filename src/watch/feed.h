/* A run as it can be seen from outside, by its files alone: metrics.jsonl, ranks.jsonl,
 * events.jsonl, the checkpoints, the lock. It grows with them, in bounded memory, and nothing in
 * them can do more harm than be missing from the page.
 *
 *   tail.c       files that grow, line by line
 *   scan.c       numbers out of their lines
 *   series.c     any number of steps in 2,048 buckets
 *   ranks.c      who was slow
 *   diary.c      what happened when
 *   feed.c       all of it together, and how the run is doing
 *   feed_json.c  for the page
 *   status.c     for the terminal
 *   page.c       the page: its frame, and data in it
 *   report.c     as a file
 *   answer.c     what a server answers, and whom; serve.c: the server; prometheus.c
 *   net_json.c   a net as the page draws it */
#ifndef TUTTI_WATCH_FEED_H
#define TUTTI_WATCH_FEED_H

#include <stdbool.h>
#include <stdint.h>

#include <tutti/watch.h>
#include "format/json.h"
#include "watch/ranks.h"
#include "watch/series.h"

typedef struct tutti_feed tutti_feed;

/* TUTTI_IO where 'run' is no directory, TUTTI_DATA where there is no run in it. Reads nothing yet
 * but what that takes. */
tutti_status tutti_feed_open(tutti_feed **out, const char *run) TUTTI_MUST_CHECK;
void tutti_feed_close(tutti_feed **feed);

/* Reads what was added to its files, at most about 'most' bytes of each; *changed: there was
 * something. Again, and there may be more. */
tutti_status tutti_feed_read(tutti_feed *feed, size_t most, bool *changed) TUTTI_MUST_CHECK;

/* How it is doing just now. */
typedef struct tutti_outlook {
    tutti_run_state state;
    char why[512]; /* a sentence: "rank 1 ...", "SIGTERM: stopped at step 12, ..."; may be empty */
    int64_t step, steps; /* done, and of the whole run; steps 0: not known */
    int64_t epoch_steps; /* of an epoch; 0: not known */
    double loss, top1;   /* of the last steps; NaN: not known, like all that follow */
    double best_top1;    /* of evaluations */
    double best;         /* likewise, of what decides: "top-1", "mean IoU", "loss" */
    const char *best_figure;
    bool best_is_share; /* of 1 */
    char best_split[8];
    double step_s, samples_per_s, left_s, silent_s; /* silent: since its files have changed */
    tutti_verdict slow;
} tutti_outlook;

void tutti_feed_stand(const tutti_feed *feed, tutti_outlook *standing);

/* Its name: the directory as it was given. */
const char *tutti_feed_name(const tutti_feed *feed);
const tutti_series *tutti_feed_series(const tutti_feed *feed);
const tutti_ranks *tutti_feed_ranks(const tutti_feed *feed);

/* Appends the run as an object for the page; 'brief': its curves only, as they stand behind those
 * of a later run. */
void tutti_feed_json(const tutti_feed *feed, bool brief, tutti_string *out);

#endif
