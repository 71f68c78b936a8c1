/* One status type for the whole library, made from one list.
 *
 * Every function that can fail returns a tutti_status; the sentence that explains the last
 * failure of the calling thread is tutti_message(). */
#ifndef TUTTI_STATUS_H
#define TUTTI_STATUS_H

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define TUTTI_API        __attribute__((visibility("default")))
#define TUTTI_MUST_CHECK __attribute__((warn_unused_result))
#else
#define TUTTI_API
#define TUTTI_MUST_CHECK
#endif

/* name, what it means, exit code of the program that ends with it (see tutti(1)) */
// clang-format off
#define TUTTI_STATUS_MAP(X)                                              \
    X(OK,          "success",                                        0)  \
    X(ARGUMENT,    "an argument is out of range",                    2)  \
    X(PARSE,       "a text does not follow its grammar",             1)  \
    X(SHAPE,       "shapes do not fit together",                     1)  \
    X(MEMORY,      "not enough memory",                              1)  \
    X(IO,          "a file could not be read or written",            1)  \
    X(DATA,        "the data are damaged or not what was expected",  1)  \
    X(UNSUPPORTED, "this build or machine cannot do it",             1)  \
    X(COMM,        "communication failed",                           1)  \
    X(PEER,        "another rank failed",                            1)  \
    X(DIVERGED,    "training diverged (NaN or infinity)",            3)  \
    X(STALL,       "a rank did not arrive in time",                  4)  \
    X(MISMATCH,    "the ranks do not agree",                         5)  \
    X(CHECKPOINT,  "a checkpoint is damaged",                        6)  \
    X(OTHER_RUN,   "this is another run",                            2)  \
    X(IN_USE,      "another process is at work there",               7)  \
    X(DISK_FULL,   "the disk is full",                               8)  \
    X(INTERRUPTED, "stopped by a signal after a checkpoint",        75)
// clang-format on

typedef enum tutti_status {
#define X(name, text, code) TUTTI_##name,
    TUTTI_STATUS_MAP(X)
#undef X
        TUTTI_STATUS_COUNT
} tutti_status;

/* "SHAPE", "shapes do not fit together", 1. Never NULL, not even for numbers off the list. The exit
 * code of PEER is that of the rank that failed, as the thread's last failure of that kind knew it:
 * the ranks of a job end alike. */
TUTTI_API const char *tutti_status_name(tutti_status status);
TUTTI_API const char *tutti_status_text(tutti_status status);
TUTTI_API int tutti_status_exit_code(tutti_status status);

/* The sentence of the last failure in this thread; "" when there was none. Valid until the
 * thread's next failure. */
TUTTI_API const char *tutti_message(void);

#ifdef __cplusplus
}
#endif
#endif
