/* What a run tells of itself to those who look on, beside its metrics. Rank 0 writes
 *
 *   RUN/events.jsonl   what happened when: begun (with what the run is), checkpoint, evaluating,
 *                      warning, ended; in the order in which it happened, also over resumes
 *   RUN/ranks.jsonl    what each rank did with its time: at most 2,000 rows of steps gathered
 *
 * Nothing here is ever a reason to end a run, and nothing of a run depends on it. The other ranks
 * have a chronicle that writes nothing. */
#ifndef TUTTI_TRAIN_CHRONICLE_H
#define TUTTI_TRAIN_CHRONICLE_H

#include <stdint.h>

#include <tutti/log.h>
#include "step/stepper.h"

enum { TUTTI_CHRONICLE_ROWS = 2000 }; /* of ranks.jsonl, over all resumes of a run */

typedef struct tutti_chronicle tutti_chronicle;

/* 'log' hears everything as ever. */
tutti_status tutti_chronicle_create(tutti_chronicle **out, tutti_log log) TUTTI_MUST_CHECK;
void tutti_chronicle_destroy(tutti_chronicle **chronicle);

/* A log that passes on to the one it was created with, and writes warnings and errors down. */
tutti_log tutti_chronicle_log(tutti_chronicle *chronicle);

/* Goes on in the directory 'run' behind step 'done' of 'steps', with so many ranks. */
tutti_status tutti_chronicle_open(tutti_chronicle *chronicle, const char *run, int64_t done,
                                  int64_t steps, int ranks) TUTTI_MUST_CHECK;

/* Writes what is gathered; later calls do nothing. */
void tutti_chronicle_close(tutti_chronicle *chronicle);

/* Something happened after 'step' steps. 'fields' are more JSON fields as text, or NULL. */
void tutti_chronicle_event(tutti_chronicle *chronicle, int64_t step, const char *event,
                           const char *text, const char *fields);

/* The ranks' times of a step that took rank 0 so many seconds. */
void tutti_chronicle_hear(tutti_chronicle *chronicle, const tutti_news *news, double seconds);

#endif
