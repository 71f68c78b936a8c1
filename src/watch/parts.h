/* What a feed consists of. Inside the room only. */
#ifndef TUTTI_WATCH_PARTS_H
#define TUTTI_WATCH_PARTS_H

#include "watch/diary.h"
#include "watch/feed.h"
#include "watch/tail.h"

enum { TUTTI_MOST_EVALUATIONS = 2048, TUTTI_MOST_LAYERS = 2048, TUTTI_MOST_CHECKPOINTS = 256 };

/* What losses find (train/judge.h), as columns of the metrics. */
typedef enum tutti_figure {
    TUTTI_FIGURE_TOP1,
    TUTTI_FIGURE_TOP5,
    TUTTI_FIGURE_MEAN_IOU,
    TUTTI_FIGURE_F1,
    TUTTI_FIGURE_RMSE,
    TUTTI_FIGURES
} tutti_figure;
extern const char *const tutti_figure_columns[TUTTI_FIGURES];

typedef struct tutti_evaluated {
    int64_t step;
    double epoch, loss, figures[TUTTI_FIGURES], seconds; /* NaN: it has none */
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
