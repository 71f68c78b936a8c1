/* Who was slow, and for how long: the rows of ranks.jsonl, a verdict, and a picture of bounded
 * size.
 *
 * A rank keeps the others waiting by computing or by reading its samples. In a row the *lag* is how
 * much longer the slowest rank was busy than the one in the middle. The slowest rank of a run is
 * the one whose lags add up to most. It is slow chronically if it is ahead of the middle by a
 * twentieth in at least a third of the steps; once, if half of its lag is in a twentieth of the
 * steps; else now and then. Where lags are less than a fiftieth of the time, ranks keep pace. */
#ifndef TUTTI_WATCH_RANKS_H
#define TUTTI_WATCH_RANKS_H

#include <stdint.h>

#include "format/json.h"

enum { TUTTI_RANK_QUANTITIES = 4 }; /* computing, exposed, waiting, reading */

typedef struct tutti_ranks tutti_ranks;

tutti_status tutti_ranks_create(tutti_ranks **out) TUTTI_MUST_CHECK;
void tutti_ranks_destroy(tutti_ranks **ranks);
void tutti_ranks_clear(tutti_ranks *ranks);

/* A line of ranks.jsonl, ending with a 0; what is beyond all bounds is left out. */
tutti_status tutti_ranks_add(tutti_ranks *ranks, int64_t step, const char *line) TUTTI_MUST_CHECK;

typedef enum tutti_pace_kind {
    TUTTI_PACE_EVEN,
    TUTTI_PACE_CHRONIC,
    TUTTI_PACE_ONCE,
    TUTTI_PACE_SOMETIMES
} tutti_pace_kind;

typedef struct tutti_verdict {
    tutti_pace_kind kind;
    int rank;     /* the slowest; -1: there are less than two */
    double cost;  /* of the time of all steps, what its lags are */
    double share; /* of the steps in which it was ahead of the middle by a twentieth */
    int64_t step; /* at which its lag was longest, and how long in seconds a step */
    double worst;
} tutti_verdict;

tutti_verdict tutti_ranks_judge(const tutti_ranks *ranks);
const char *tutti_pace_name(tutti_pace_kind kind); /* "chronic", "once", "sometimes", "even" */

int tutti_ranks_count(const tutti_ranks *ranks);           /* the most in a row */
double tutti_ranks_memory(const tutti_ranks *r, int rank); /* bytes; NaN: not known */

/* Appends an object for the page. */
void tutti_ranks_json(tutti_string *out, const tutti_ranks *ranks);

#endif
