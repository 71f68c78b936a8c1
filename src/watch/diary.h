/* What happened in a run, from events.jsonl. Bounded: of many checkpoints every other one is
 * forgotten, of many others the oldest. */
#ifndef TUTTI_WATCH_DIARY_H
#define TUTTI_WATCH_DIARY_H

#include <stdbool.h>
#include <stdint.h>

#include <jansson.h>

#include "format/json.h"

enum { TUTTI_MOST_ENTRIES = 512 };

typedef struct tutti_entry {
    double at; /* seconds since 1970 */
    int64_t step;
    char kind[16];
    char text[512];
} tutti_entry;

typedef struct tutti_diary {
    tutti_entry list[TUTTI_MOST_ENTRIES];
    int count;
    json_t *begun;     /* the last one's fields; NULL: it is not known what the run is */
    json_t *confusion; /* the last table; NULL: there is none */
    json_t *worst;     /* the last worst samples, likewise */
    bool ended;        /* the last thing that happened */
    int code;          /* then: of its end */
    double evaluating; /* when an evaluation began, if nothing has happened since; else 0 */
} tutti_diary;

void tutti_diary_clear(tutti_diary *events);

/* A line of events.jsonl. */
void tutti_diary_add(tutti_diary *events, int64_t step, const char *line, size_t length);

void tutti_diary_json(tutti_string *out, const tutti_diary *events);

#endif
