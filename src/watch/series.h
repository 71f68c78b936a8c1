/* The course of a run in bounded memory: any number of steps in at most 2,048 buckets, each with
 * the mean, least and greatest of what its steps had. A bucket is as many steps wide, a power of
 * two, as it takes; when a step comes that has no bucket, neighbours are joined. */
#ifndef TUTTI_WATCH_SERIES_H
#define TUTTI_WATCH_SERIES_H

#include <stdint.h>

#include "format/json.h"

enum { TUTTI_BUCKETS = 2048 };

/* name in metrics.jsonl and on the page, and whether the extremes are shown, too */
#define TUTTI_SERIES_MAP(X) \
    X(loss, 1)              \
    X(top1, 1)              \
    X(lr, 0)                \
    X(samples_per_s, 1)     \
    X(seconds, 0)           \
    X(data_wait_s, 0)       \
    X(comm_exposed_s, 0)    \
    X(gradient_norm, 0)

typedef enum tutti_quantity {
#define X(name, extremes) TUTTI_SERIES_##name,
    TUTTI_SERIES_MAP(X)
#undef X
        TUTTI_QUANTITIES
} tutti_quantity;

typedef struct tutti_bucket {
    int64_t count[TUTTI_QUANTITIES];
    double sum[TUTTI_QUANTITIES], least[TUTTI_QUANTITIES], most[TUTTI_QUANTITIES];
} tutti_bucket;

typedef struct tutti_series {
    int64_t width; /* steps of a bucket */
    int64_t last;  /* the greatest step */
    int64_t odd;   /* losses that were no numbers, and the first step with one */
    int64_t first_odd;
    tutti_bucket bucket[TUTTI_BUCKETS]; /* the first has steps 1 .. width */
} tutti_series;

void tutti_series_clear(tutti_series *series);

/* A line of metrics.jsonl of phase "train", ending with a 0. */
void tutti_series_add(tutti_series *series, int64_t step, const char *line);

/* The mean of a bucket, NaN where it has nothing. */
double tutti_series_mean(const tutti_series *series, int bucket, tutti_quantity quantity);

/* Appends an object: "width", "step" (the last of each bucket that has any), and for each quantity
 * its means, and "NAME_least", "NAME_most". */
void tutti_series_json(tutti_string *out, const tutti_series *series);

#endif
