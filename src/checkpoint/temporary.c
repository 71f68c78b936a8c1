#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "checkpoint/names.h"

enum { HOST_BYTES = 65 };

static void host_name(char out[HOST_BYTES])
{
    if (gethostname(out, HOST_BYTES)) snprintf(out, HOST_BYTES, "host");
    out[HOST_BYTES - 1] = 0;
}

static uint32_t chance(void)
{
    uint32_t number = 0;
    struct timespec now;
    if (getrandom(&number, sizeof number, 0) == (ssize_t)sizeof number) return number;
    clock_gettime(CLOCK_REALTIME, &now);
    return (uint32_t)now.tv_nsec;
}

void tutti_temporary_name(char out[TUTTI_TEMPORARY_BYTES], const char *what)
{
    char host[HOST_BYTES];
    host_name(host);
    snprintf(out, TUTTI_TEMPORARY_BYTES, "%.*s.%s-%d-%08x.tmp", TUTTI_STEP_NAME_BYTES, what, host,
             (int)getpid(), chance());
}

/* ---- what is left of others ---- */

/* The part before the first dot: "latest", or the name of a step. */
static bool is_of_a_run(const char *entry, size_t length)
{
    char name[TUTTI_STEP_NAME_BYTES];
    if (length >= sizeof name) return false;
    memcpy(name, entry, length);
    name[length] = 0;
    return !strcmp(name, "latest") || !strcmp(name, "best") || tutti_checkpoint_step_of(name) >= 0;
}

/* 'maker' is "HOST-PID-CHANCE", with 'length' characters. Is it a process of this host that is
 * gone, or this process itself? */
static bool is_gone(const char *maker, size_t length)
{
    char text[TUTTI_TEMPORARY_BYTES], host[HOST_BYTES];
    snprintf(text, sizeof text, "%.*s", (int)length, maker);
    char *last = strrchr(text, '-');
    if (!last) return true; /* not a maker's: an earlier version's */
    *last = 0;
    char *pid_text = strrchr(text, '-');
    if (!pid_text) return true;
    *pid_text++ = 0;
    host_name(host);
    const int pid = atoi(pid_text);
    return !strcmp(text, host) && pid > 0 &&
           (pid == (int)getpid() || (kill(pid, 0) && errno == ESRCH));
}

bool tutti_temporary_is_left(const char *entry, bool alone)
{
    static const char *const ends[] = {".tmp", ".replaced"};
    const size_t first = strcspn(entry, "."), length = strlen(entry);
    if (!is_of_a_run(entry, first)) return false;
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        const size_t end = strlen(ends[i]);
        if (length < first + end || strcmp(entry + length - end, ends[i])) continue;
        if (length == first + end) return true; /* an earlier version's */
        return alone || is_gone(entry + first + 1, length - end - first - 1);
    }
    return false;
}
