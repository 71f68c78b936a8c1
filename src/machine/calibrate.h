/* Measuring a platform: nets layer by layer, and what joins the ranks.
 *
 *   calibrate.c            the whole call: machine, order of things, the file
 *   calibrate_rounds.c     which nets with how many samples, in the time there is
 *   calibrate_net.c        a net's layers with one number of samples
 *   calibrate_common.c     the update where all ranks have their gradients in common memory
 *   calibrate_exchange.c   part-reduce and part-broadcast against ranks and bytes; what the
 *                          communication thread takes from the computing
 *
 * All ranks measure at the same time, because in training they compute at the same time and share
 * memory, caches and clocks. A time is the median of several tries, because training meets the
 * machine in its usual mood and not in its best, from the first rank's start to the last one's end:
 * the others would wait. */
#ifndef TUTTI_MACHINE_CALIBRATE_H
#define TUTTI_MACHINE_CALIBRATE_H

#include <tutti/plan.h>
#include "base/bar.h"
#include "nn/model.h"
#include "plan/platform.h"
#include "step/rank.h"

typedef struct tutti_calibration {
    const tutti_calibrate_options *options;
    tutti_rank me;
    double begun;
    tutti_bar *shown;         /* how much of the time is over */
    double clock;             /* what this rank's clock is behind rank 0's, seconds */
    double memory_free;       /* of this rank, bytes */
    size_t updated;           /* parameters of the update that 'platform.update' is of */
    tutti_platform *platform; /* what is known so far: the same on all ranks */
} tutti_calibration;

/* Collective. The largest of all ranks' values, one by one, in place. */
tutti_status tutti_calibration_slowest(tutti_calibration *c, double *values,
                                       int count) TUTTI_MUST_CHECK;

/* Collective. *seconds is what all ranks together took for what each did from its 'start' to its
 * 'end', from the first start to the last end: where cores are scarce ranks take turns, and each
 * one's own time leaves out its waiting for the first. */
tutti_status tutti_calibration_span(tutti_calibration *c, double start, double end,
                                    double *seconds) TUTTI_MUST_CHECK;

/* Shows how much of the time is over, on rank 0. */
void tutti_calibration_tick(const tutti_calibration *c);

/* A line for people, on rank 0. */
void tutti_calibration_say(const tutti_calibration *c, const char *format, ...) TUTTI_PRINTF(2, 3);

/* A net with a number of samples on each rank. */
enum { TUTTI_POINT_STEPS = 128 };
typedef struct tutti_point {
    const tutti_net *net;
    int samples;
    double setup;                      /* what measuring it takes before the first step */
    int steps;                         /* measured so far, */
    double seconds[TUTTI_POINT_STEPS]; /* the last of them, of all ranks */
    double best;                       /* the shortest, and its parts on the slowest rank: */
    tutti_pass_seconds *layers;
    double rest, update; /* beyond the layers; of one parameter */
    size_t updated;      /* parameters */
} tutti_point;

void tutti_point_destroy(tutti_point *point);

/* Collective. Measures a point once more, for about 'seconds' or one step. */
tutti_status tutti_calibrate_point(tutti_calibration *c, tutti_point *point,
                                   double seconds) TUTTI_MUST_CHECK;

/* Collective. What was measured becomes part of the platform. */
tutti_status tutti_calibration_keep(tutti_calibration *c,
                                    const tutti_point *point) TUTTI_MUST_CHECK;

/* The middle one of the values, of an even number the lesser of two; sorts them. */
double tutti_calibration_median(double *values, int count);

/* Collective. Measures the nets that were asked for, in about 'seconds'. */
tutti_status tutti_calibrate_rounds(tutti_calibration *c, double seconds) TUTTI_MUST_CHECK;

/* Collective. Where ranks share no memory there is nothing to do. */
tutti_status tutti_calibrate_common(tutti_calibration *c) TUTTI_MUST_CHECK;

/* Collective. With one rank there is nothing to do. */
tutti_status tutti_calibrate_exchanges(tutti_calibration *c, double seconds) TUTTI_MUST_CHECK;

#endif
