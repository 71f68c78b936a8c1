/* Looking at runs, live and afterwards, by their files alone. */
#ifndef TUTTI_WATCH_H
#define TUTTI_WATCH_H

#include <stdbool.h>
#include <stdio.h>

#include <tutti/log.h>
#include <tutti/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/* How a run is doing: name, word, exit code of tutti status. Stalled: its process lives, but its
 * files have not changed for a minute, and for twenty of its steps. Failed: it has ended, or its
 * process has, before its last step. */
// clang-format off
#define TUTTI_RUN_STATE_MAP(X)       \
    X(DONE,    "done",     0)        \
    X(RUNNING, "running", 10)        \
    X(STALLED, "stalled", 11)        \
    X(FAILED,  "failed",  12)
// clang-format on

typedef enum tutti_run_state {
#define X(name, word, code) TUTTI_RUN_##name,
    TUTTI_RUN_STATE_MAP(X)
#undef X
} tutti_run_state;

TUTTI_API const char *tutti_run_state_word(tutti_run_state state);
TUTTI_API int tutti_run_state_exit_code(tutti_run_state state);

/* Prints one line about the run in the directory 'run', or with 'json' one JSON object; 'spark':
 * with the course of the loss in block characters. */
TUTTI_API tutti_status tutti_run_status(const char *run, bool json, bool spark, FILE *out,
                                        tutti_run_state *state) TUTTI_MUST_CHECK;

/* Writes the page of one or more runs as a file. */
TUTTI_API tutti_status tutti_report_write(const char *const *runs, int count,
                                          const char *path) TUTTI_MUST_CHECK;

typedef struct tutti_watch_options {
    const char *const *runs; /* directories */
    int count;
    int port;          /* 0: any that is free */
    const char *bind;  /* an address of this machine; NULL: 127.0.0.1 */
    const char *token; /* that a request must have; NULL: made up on other addresses than 127.0.0.1
                          and ::1, none there */
    FILE *show;        /* where the page is, and how to get there from elsewhere */
    tutti_log log;
} tutti_watch_options;

/* Serves that page, and keeps it up to date, until the process gets SIGINT or SIGTERM. Only reads.
 * TUTTI_UNSUPPORTED in a build without libmicrohttpd. */
TUTTI_API tutti_status tutti_watch(const tutti_watch_options *options) TUTTI_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
