#include "base/status.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MESSAGE_BYTES = 1024 };

static _Thread_local char message[MESSAGE_BYTES];
static _Thread_local tutti_status peer = TUTTI_PEER; /* what the last TUTTI_PEER was over there */

static const struct {
    const char *name, *text;
    int exit_code;
} known[] = {
#define X(name, text, code) {#name, text, code},
    TUTTI_STATUS_MAP(X)
#undef X
};

const char *tutti_status_name(tutti_status status)
{
    return (unsigned)status < TUTTI_STATUS_COUNT ? known[status].name : "UNKNOWN";
}

const char *tutti_status_text(tutti_status status)
{
    return (unsigned)status < TUTTI_STATUS_COUNT ? known[status].text : "unknown status";
}

int tutti_status_exit_code(tutti_status status)
{
    if (status == TUTTI_PEER) status = peer;
    return (unsigned)status < TUTTI_STATUS_COUNT ? known[status].exit_code : 1;
}

const char *tutti_message(void)
{
    return message;
}

static void keep(const char *format, va_list args)
{
    char next[MESSAGE_BYTES]; /* the arguments may point into 'message' */
    vsnprintf(next, sizeof next, format, args);
    memcpy(message, next, sizeof next);
}

tutti_status tutti_fail(tutti_status status, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    keep(format, args);
    va_end(args);
    return status;
}

tutti_status tutti_fail_peer(tutti_status there, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    keep(format, args);
    va_end(args);
    peer = there;
    return TUTTI_PEER;
}

void tutti_assert_failed(const char *condition, const char *file, int line)
{
    fprintf(stderr, "tutti: %s:%d: broken promise: %s\n", file, line, condition);
    abort();
}
