/* What a server of the page answers, and whom. There are three things to ask for, no files: a path
 * is one of three words, and leads nowhere. */
#ifndef TUTTI_WATCH_ANSWER_H
#define TUTTI_WATCH_ANSWER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/hash.h"
#include "base/status.h"

typedef struct tutti_guard {
    bool asks;                  /* for a token */
    char token[TUTTI_HASH_HEX]; /* its hash */
} tutti_guard;

/* With a token NULL everybody is let in who comes by a name of this machine (a page from elsewhere
 * cannot, even if its name points here). */
tutti_status tutti_guard_init(tutti_guard *guard, const char *token) TUTTI_MUST_CHECK;

/* Texts as a client sent them; NULL where there was none. */
typedef struct tutti_request {
    const char *method, *path, *host; /* "GET", "/data.json", "localhost:8321" */
    const char *token, *since;        /* of the query */
} tutti_request;

typedef enum tutti_answer {
    TUTTI_ANSWER_PAGE,
    TUTTI_ANSWER_DATA,    /* JSON */
    TUTTI_ANSWER_METRICS, /* Prometheus' text */
    TUTTI_ANSWER_KINDS
} tutti_answer;

/* HTTP's status: 200 and *answer; 204, what there is has the generation that the client knows; 403,
 * 404, 405. How long it takes to refuse a token does not depend on what is wrong with it. */
int tutti_answer_find(tutti_answer *answer, const tutti_guard *guard, const tutti_request *request,
                      int64_t generation);

#endif
