/* Where the library's words go. The library prints nothing by itself: it hands each line to the
 * sink it was given. */
#ifndef TUTTI_LOG_H
#define TUTTI_LOG_H

#include <tutti/status.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum tutti_log_level {
    TUTTI_LOG_ERROR,
    TUTTI_LOG_WARNING,
    TUTTI_LOG_INFO,
    TUTTI_LOG_DEBUG
} tutti_log_level;

/* Receives one line without its newline. May be called from any thread of the library, also from
 * several at once. */
typedef void tutti_log_sink(void *user, tutti_log_level level, const char *line);

/* A log is a plain value: copy it, keep it on the stack. A NULL log or a NULL sink is silence.
 * With rank >= 0 every line starts with "[rank] ". */
typedef struct tutti_log {
    tutti_log_sink *sink;
    void *user;
    tutti_log_level level; /* the most talkative level that passes */
    int rank;
} tutti_log;

/* Lines on standard error; errors and warnings are marked as such. */
TUTTI_API tutti_log tutti_log_stderr(tutti_log_level level);

#ifdef __cplusplus
}
#endif
#endif
