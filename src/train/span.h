/* Lengths of time of a run, as people write them: "1000steps", "1epoch", "600s". */
#ifndef TUTTI_TRAIN_SPAN_H
#define TUTTI_TRAIN_SPAN_H

#include <stdbool.h>
#include <stdint.h>
#include "base/status.h"

/* How steps and epochs of a run relate. The stream of samples is endless: an epoch need not be a
 * whole number of steps, and step s has begun in epoch s*batch/samples. */
typedef struct tutti_pace {
    int64_t samples; /* of an epoch */
    int64_t batch;   /* samples of a step, all ranks together */
    int64_t steps;   /* of the whole run */
} tutti_pace;

int64_t tutti_pace_epoch(const tutti_pace *pace, int64_t step); /* complete epochs before 'step' */

/* The first step at which 'epochs' epochs are complete. */
int64_t tutti_pace_steps(const tutti_pace *pace, double epochs);

typedef enum tutti_span_unit {
    TUTTI_SPAN_STEPS,
    TUTTI_SPAN_EPOCHS,
    TUTTI_SPAN_SECONDS
} tutti_span_unit;

typedef struct tutti_span {
    double count; /* whole for steps */
    tutti_span_unit unit;
} tutti_span;

/* Parses "1000steps", "1epoch", "0.5epochs", "600s", "10min", "2h"; a bare number has the unit
 * 'bare'. 'what' names the option in the sentence of a failure (TUTTI_PARSE). */
tutti_status tutti_span_parse(tutti_span *out, const char *text, tutti_span_unit bare,
                              const char *what) TUTTI_MUST_CHECK;

/* The span as such a text: equal spans, equal texts. */
enum { TUTTI_SPAN_TEXT = 40 };
void tutti_span_text(const tutti_span *span, char text[TUTTI_SPAN_TEXT]);

/* The span in steps (not for seconds). */
int64_t tutti_span_steps(const tutti_span *span, const tutti_pace *pace);

/* Something that happens again and again in a run, and when it last did: for spans in seconds each
 * has a clock of its own. */
typedef struct tutti_rhythm {
    tutti_span every; /* 0: never */
    double last;      /* by the clock that the caller reads */
} tutti_rhythm;

/* Is it due, now that 'step' steps are done? For steps and epochs a function of 'step' alone; for
 * seconds by 'now', so that ranks may differ. */
bool tutti_rhythm_is_due(const tutti_rhythm *rhythm, const tutti_pace *pace, int64_t step,
                         double now);

/* It has happened, or the run begins. */
void tutti_rhythm_mark(tutti_rhythm *rhythm, double now);

#endif
