/* Learning rates over time. One table; the rate is a function of the step alone, so it is the same
 * on every rank and after every resume, and it uses no function of the C library whose last bit
 * differs between processors.
 *
 *   fixed                        lr
 *   step:30:0.1                  lr * 0.1^floor(t / 30)             every 30 epochs
 *   multistep:30,60,80:0.1       lr * 0.1^(milestones passed)
 *   exp:0.95                     lr * 0.95^epoch                    by whole epochs
 *   poly:0.9                     lr * (1 - t/T)^0.9                 T: the run without warm-up
 *   cosine[:MIN]                 from lr to MIN*lr in half a cosine wave over T
 *   onecycle[:UP[:DIV[:LAST]]]   PyTorch's OneCycleLR(lr, pct_start=UP, div_factor=DIV,
 *                                final_div_factor=LAST): half a wave up from lr/DIV in the first
 *                                UP of all steps, then half a wave down to lr/DIV/LAST. 0.3, 25
 *                                and 1e4; momentum stays (cycle_momentum=False)
 *
 * Times are epochs unless written as "5000steps". With a warm-up of W steps the rate of step s < W
 * is what the schedule gives at W, times (s+1)/W; a run is longer than its warm-up
 * (train/settings.c sees to it). */
#ifndef TUTTI_TRAIN_SCHEDULE_H
#define TUTTI_TRAIN_SCHEDULE_H

#include <stdint.h>
#include "base/status.h"
#include "train/span.h"

enum { TUTTI_SCHEDULE_MILESTONES = 16, TUTTI_SCHEDULE_FACTORS = 3 };

typedef struct tutti_schedule_kind tutti_schedule_kind;

typedef struct tutti_schedule {
    const tutti_schedule_kind *kind;
    tutti_span times[TUTTI_SCHEDULE_MILESTONES]; /* the period, or the milestones */
    int time_count;
    double factors[TUTTI_SCHEDULE_FACTORS]; /* gamma, power, last fraction, ... */
    tutti_span warmup;                      /* steps or epochs; 0: none */
} tutti_schedule;

/* Parses the text of --lr-schedule. The warm-up is none. TUTTI_PARSE says what would fit. */
tutti_status tutti_schedule_parse(tutti_schedule *out, const char *text) TUTTI_MUST_CHECK;

/* Does it raise the rate itself, and take no warm-up? */
bool tutti_schedule_warms_up(const tutti_schedule *schedule);

/* The learning rate of step 'step' (0-based) for a base rate of 'lr'. */
double tutti_schedule_rate(const tutti_schedule *schedule, double lr, int64_t step,
                           const tutti_pace *pace);

/* The kinds with a line of help each, for --help: kind 0, 1, ... until NULL. */
const char *tutti_schedule_help(int kind);

#endif
