/* What a net says about samples: lines for people, lines of JSON, an array, an archive, a folder of
 * masks. */
#ifndef TUTTI_TRAIN_ANSWERS_H
#define TUTTI_TRAIN_ANSWERS_H

#include "train/run.h"

typedef struct tutti_answers tutti_answers;

/* 'rows' samples will be answered; of a file only 'output' is looked at. Fails for an output that
 * is none of the kinds, or that cannot be written. The run and the question are borrowed. */
tutti_status tutti_answers_create(tutti_answers **out, const tutti_run *run,
                                  const tutti_question *question, int64_t rows) TUTTI_MUST_CHECK;

/* The next sample's answer, as outputs lie. 'name' is a file's; NULL: it is sample 'id'. */
tutti_status tutti_answers_add(tutti_answers *answers, const char *name, int64_t id,
                               const float *answer) TUTTI_MUST_CHECK;

/* The next sample could not be read; tutti_message() says why. */
tutti_status tutti_answers_miss(tutti_answers *answers, const char *name,
                                int64_t id) TUTTI_MUST_CHECK;

/* The file is complete under its name, if 'whole'; else nothing is left of it. */
tutti_status tutti_answers_close(tutti_answers **answers, bool whole) TUTTI_MUST_CHECK;

#endif
