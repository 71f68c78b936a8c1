/* A run people like to watch. On a terminal one line that is rewritten,
 *
 *   step 250/1000 epoch 3/10 [=====>     ] loss 0.3127 | top-1 88.61 % | 9120 img/s | ETA 00:41
 *
 * as wide as the terminal is just then: where there is little room, first the bar goes, then what
 * stands at the end;
 * elsewhere a line every so often that logs keep well:
 *
 *   step 1200/9370 | epoch 1.28 | loss 0.312700 | top-1 88.61 % | lr 1.0e-02 | 7.0 ms | 9120 img/s
 *
 * Everything goes to the stream it was given, or nowhere. */
#ifndef TUTTI_TRAIN_PROGRESS_H
#define TUTTI_TRAIN_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include "base/status.h"
#include "train/span.h"

typedef struct tutti_progress_options {
    FILE *stream;  /* borrowed; NULL: silence */
    bool terminal; /* rewrite one line */
    bool colour;   /* of the bar */
    int columns;   /* of the terminal, as long as it does not say otherwise */
    double every;  /* seconds between two lines off a terminal (two rewrites on one: 0.1) */
} tutti_progress_options;

/* As the stream deserves: a terminal if it is one that has a width; in colour, unless NO_COLOR is
 * set or TERM is dumb. */
tutti_progress_options tutti_progress_defaults(FILE *stream);

/* Where a run stands. NaN: not known, not shown. */
typedef struct tutti_progress_now {
    int64_t step;      /* done */
    double loss, top1; /* top1 in 0..1; both smoothed as the caller likes */
    double lr;
    double step_seconds; /* of a recent step */
    double samples_per_s;
    double percent_of_peak; /* of the FMA peak */
    double data_wait;       /* fraction of the time spent waiting for data, 0..1 */
    double comm_exposed;    /* ... for communication */
    const char *right;      /* what top1 is called; NULL: "top-1" */
} tutti_progress_now;

typedef struct tutti_progress tutti_progress;

/* 'pace' is copied. 'done' steps were done before (a resume). 'unit' is "img" or "frames". */
tutti_status tutti_progress_create(tutti_progress **out, tutti_progress_options options,
                                   const tutti_pace *pace, int64_t done,
                                   const char *unit) TUTTI_MUST_CHECK;
void tutti_progress_destroy(tutti_progress **progress); /* leaves the cursor on a new line */

/* After every step; decides by itself whether to print. NULL does nothing, here and below. */
void tutti_progress_step(tutti_progress *progress, const tutti_progress_now *now);

/* Would the next tutti_progress_step print? So that numbers need not be gathered for nothing. */
bool tutti_progress_due(const tutti_progress *progress, int64_t step);

/* Something else that takes long, 'what' ("testing"), has come from 0 to 'done' of 'total', which
 * ends it. On a terminal it has a bar of its own, elsewhere a line every so often. */
void tutti_progress_task(tutti_progress *progress, const char *what, int64_t done, int64_t total);

/* A whole line that stays, above the bar: evaluations, checkpoints, warnings. */
void tutti_progress_say(tutti_progress *progress, const char *format, ...) TUTTI_PRINTF(2, 3);

/* The bar has said its last: it stays where it is, and what is said comes below it. */
void tutti_progress_end(tutti_progress *progress);

/* Why the stream could not be written to (errno), once; 0: it could. Of a stream that is gone (a
 * pipe without a reader) nothing more is asked. */
int tutti_progress_failure(tutti_progress *progress);

/* The header: lines "  net        lenet, 431,080 parameters", aligned; names until NULL. A
 * fact without a value is left out. */
typedef struct tutti_progress_fact {
    const char *name, *value;
} tutti_progress_fact;
void tutti_progress_facts(tutti_progress *progress, const char *title,
                          const tutti_progress_fact *facts);

/* The most classes whose confusions are counted: they take 8 bytes a pair. */
enum { TUTTI_CONFUSION_MOST = 2048 };

/* The table of an evaluation: counts[truth * classes + answer]. With up to 'widest' classes the
 * whole table, but for classes that no sample is of or was taken for, else the pairs most often
 * confused; without counts a line that says why. 'names' may be NULL. */
void tutti_confusion_print(FILE *stream, const int64_t *counts, int classes,
                           const char *const *names, int widest);

#endif
