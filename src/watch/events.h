/* What happened in a run, from events.jsonl. Bounded: of many checkpoints every other one is
 * forgotten, of many others the oldest. */
#ifndef TUTTI_WATCH_EVENTS_H
#define TUTTI_WATCH_EVENTS_H

#include <stdbool.h>
#include <stdint.h>

#include <jansson.h>

#include "format/json.h"

enum { TUTTI_MOST_EVENTS = 512 };

typedef struct tutti_event {
    double at; /* seconds since 1970 */
    int64_t step;
    char kind[16];
    char text[512];
} tutti_event;

typedef struct tutti_events {
    tutti_event list[TUTTI_MOST_EVENTS];
    int count;
    json_t *begun;     /* the last one's fields; NULL: it is not known what the run is */
    json_t *confusion; /* the last table; NULL: there is none */
    bool ended;        /* the last thing that happened */
    int code;          /* then: of its end */
    double evaluating; /* when an evaluation began, if nothing has happened since; else 0 */
} tutti_events;

void tutti_events_clear(tutti_events *events);

/* A line of events.jsonl. */
void tutti_events_add(tutti_events *events, int64_t step, const char *line, size_t length);

void tutti_events_json(tutti_string *out, const tutti_events *events);

#endif
