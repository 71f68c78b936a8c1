/* How the rooms fail: one statement, one sentence. */
#ifndef TUTTI_BASE_STATUS_H
#define TUTTI_BASE_STATUS_H

#include <tutti/status.h>

#define TUTTI_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))

/* Keeps the sentence for tutti_message() and returns 'status'. The arguments may refer to the
 * current message ("%s: %s", where, tutti_message()). */
tutti_status tutti_fail(tutti_status status, const char *format, ...) TUTTI_PRINTF(2, 3);

/* The same for what failed on another rank with the status 'there'; returns TUTTI_PEER. */
tutti_status tutti_fail_peer(tutti_status there, const char *format, ...) TUTTI_PRINTF(2, 3);

#define TUTTI_TRY(call)                                  \
    do {                                                 \
        const tutti_status try_status_ = (call);         \
        if (try_status_ != TUTTI_OK) return try_status_; \
    } while (0)

/* For the programmer's mistakes only, never for the user's: always on, ends the process. */
#define TUTTI_ASSERT(condition) \
    ((condition) ? (void)0 : tutti_assert_failed(#condition, __FILE__, __LINE__))
_Noreturn void tutti_assert_failed(const char *condition, const char *file, int line);

#endif
