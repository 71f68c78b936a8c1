/* What is served: made from the runs' files when somebody asks, at most once a second, and for a
 * bounded time; a run that nobody looks at costs nothing. */
#ifndef TUTTI_WATCH_SHOWING_H
#define TUTTI_WATCH_SHOWING_H

#include "watch/answer.h"
#include "watch/runs.h"

typedef struct tutti_showing tutti_showing;

tutti_status tutti_showing_create(tutti_showing **out, const char *const *runs,
                                  int count) TUTTI_MUST_CHECK;
void tutti_showing_destroy(tutti_showing **showing);

/* Reads all that there is now, however long it takes. */
tutti_status tutti_showing_read_all(tutti_showing *showing) TUTTI_MUST_CHECK;

/* Looks whether there is more; the generation rises when there was, and every ten seconds. */
tutti_status tutti_showing_refresh(tutti_showing *showing) TUTTI_MUST_CHECK;
int64_t tutti_showing_generation(const tutti_showing *showing);

/* Appends the answer as it is now. */
tutti_status tutti_showing_write(const tutti_showing *showing, tutti_answer answer,
                                 tutti_string *out) TUTTI_MUST_CHECK;

#endif
