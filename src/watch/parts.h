/* What a feed consists of. Inside the room only. */
#ifndef TUTTI_WATCH_PARTS_H
#define TUTTI_WATCH_PARTS_H

#include "watch/diary.h"
#include "watch/feed.h"
#include "watch/tail.h"

enum { TUTTI_MOST_EVALUATIONS = 2048, TUTTI_MOST_LAYERS = 2048, TUTTI_MOST_CHECKPOINTS = 256 };

typedef struct tutti_evaluated {
    int64_t step;
    double epoch, loss, top1, top5, seconds;
    char split[8];
} tutti_evaluated;

/* A layer as it was measured, seconds a step. */
typedef struct tutti_measured {
    char name[65];
    double forward, weights, data, comm, exposed, bytes;
} tutti_measured;

typedef struct tutti_saved {
    int64_t step;
    char hash[65]; /* of model.safetensors */
} tutti_saved;

struct tutti_feed {
    char *run;
    tutti_tail metrics, ranks_file, events_file;
    tutti_series series;
    tutti_ranks *ranks;
    tutti_diary events;
    tutti_evaluated evaluations[TUTTI_MOST_EVALUATIONS];
    int evaluation_count, evaluation_stride; /* of many every stride-th is kept */
    int64_t evaluations_seen;
    tutti_measured layers[TUTTI_MOST_LAYERS];
    int layer_count;
    double recent_s, recent_rate; /* a step of late */
    double loss, top1;            /* of late */
    double longest_evaluation;
};

/* Finds the checkpoints that are there now, in increasing order; gives their number. */
int tutti_feed_checkpoints(const tutti_feed *feed, tutti_saved out[TUTTI_MOST_CHECKPOINTS]);

/* Seconds since 1970. */
double tutti_feed_time(void);

#endif
