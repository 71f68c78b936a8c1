/* RUN/metrics.jsonl and RUN/metrics.csv: the course of a run for programs.
 *
 * A row has values that are the same for any number of ranks and threads (step, epoch, loss,
 * accuracy, learning rate: nine digits, enough to restore a float exactly) and values that depend
 * on the machine (times and rates). In JSON the latter are together under "time", so that
 * jq 'del(.time,.crc)' leaves lines that can be compared; in CSV they are the last columns.
 *
 *   {"step":100,"epoch":0.1,"phase":"train","loss":0.61,...,"time":{...},"crc":"0a1b2c3d"}
 *
 * "crc" is zlib's CRC-32 of the bytes of the line before ,"crc": so that a damaged line is noticed.
 *
 * Every line is written whole. A resumed run goes on in the same files: lines of steps later than
 * the one resumed from are left out first. Lines whose sum is wrong go to RUN/metrics.damaged;
 * those after them stay. metrics.csv is made anew from metrics.jsonl.
 *
 * A row is never a reason to end a run: what cannot be written, on a full disk, waits in memory and
 * is tried again with every later row. */
#ifndef TUTTI_FORMAT_METRICS_H
#define TUTTI_FORMAT_METRICS_H

#include <stdint.h>

#include <tutti/log.h>
#include "base/status.h"

/* name, group (SAME for any number of ranks, TIME of the machine) */
// clang-format off
#define TUTTI_METRICS_MAP(X)       \
    X(loss,            SAME)       \
    X(top1,            SAME)       \
    X(top5,            SAME)       \
    X(pixel_accuracy,  SAME)       \
    X(mean_iou,        SAME)       \
    X(mae,             SAME)       \
    X(rmse,            SAME)       \
    X(r2,              SAME)       \
    X(accuracy,        SAME)       \
    X(f1,              SAME)       \
    X(lr,              SAME)       \
    X(gradient_norm,   SAME)       \
    X(samples,         SAME)       \
    X(seconds,         TIME)       \
    X(samples_per_s,   TIME)       \
    X(percent_of_peak, TIME)       \
    X(data_wait_s,     TIME)       \
    X(comm_exposed_s,  TIME)
// clang-format on

typedef struct tutti_metrics_row {
    int64_t step;      /* steps done */
    double epoch;      /* 1.5: in the middle of the second */
    const char *phase; /* "train", "val", "test" */
#define X(name, group) double name;
    TUTTI_METRICS_MAP(X)
#undef X
} tutti_metrics_row;

/* A row whose values are all NaN, which means: missing. Fill in what is known. */
tutti_metrics_row tutti_metrics_row_empty(int64_t step, double epoch, const char *phase);

/* The value of a column by its name, which there is. */
double *tutti_metrics_column(tutti_metrics_row *row, const char *name);

typedef struct tutti_metrics tutti_metrics;

/* Opens both files in the directory 'run'. A new run (resumed_step 0) starts them afresh. 'log'
 * (borrowed) hears of damaged rows and, once, of rows that cannot be written. */
tutti_status tutti_metrics_open(tutti_metrics **out, const char *run, int64_t resumed_step,
                                const tutti_log *log) TUTTI_MUST_CHECK;
void tutti_metrics_close(tutti_metrics **metrics);

void tutti_metrics_write(tutti_metrics *metrics, const tutti_metrics_row *row);

/* A special line, in metrics.jsonl only (layers, ranks): 'fields' are JSON fields as text, such as
 * "\"layer\":\"fc6\",\"time\":{...}", put after step and phase. */
void tutti_metrics_write_json(tutti_metrics *metrics, int64_t step, const char *phase,
                              const char *fields);

/* Brings the rows that are written to the disk, so that a checkpoint never knows of steps that its
 * metrics have not got. Any thread may call it, also while rows are written. NULL does nothing. */
tutti_status tutti_metrics_sync(tutti_metrics *metrics) TUTTI_MUST_CHECK;

/* Tries once more to write what waits: TUTTI_DISK_FULL or TUTTI_IO as long as there are rows that
 * are not in the files. NULL does nothing. */
tutti_status tutti_metrics_flush(tutti_metrics *metrics) TUTTI_MUST_CHECK;

#endif
