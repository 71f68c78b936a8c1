#define _GNU_SOURCE
#include "watch/tail.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "format/metrics_row.h"

enum { PIECE = 1 << 16 };

tutti_status tutti_tail_open(tutti_tail *t, const char *run, const char *name)
{
    const size_t room = strlen(run) + strlen(name) + 2;
    *t = (tutti_tail){.fd = -1};
    TUTTI_TRY(tutti_alloc(&t->path, room, 1));
    snprintf(t->path, room, "%s/%s", run, name);
    return TUTTI_OK;
}

/* A line ends with a 0 as long as it is looked at: none reads on in the next. */
static void cut_behind(tutti_tail *t)
{
    t->behind = t->rest.data[t->given];
    t->rest.data[t->given] = 0;
    t->cut = true;
}

static void join_again(tutti_tail *t)
{
    if (t->cut) t->rest.data[t->given] = t->behind;
    t->cut = false;
}

static void let_go(tutti_tail *t)
{
    if (t->fd >= 0) close(t->fd);
    t->fd = -1;
    t->at = 0;
    t->given = 0;
    t->cut = false;
    t->skips = false;
    t->lines = t->damaged = 0;
    tutti_string_clear(&t->rest);
}

void tutti_tail_close(tutti_tail *t)
{
    if (!t->path) return;
    let_go(t);
    tutti_string_deinit(&t->rest);
    tutti_free(t->path);
    *t = (tutti_tail){.fd = -1};
}

/* Is what is open still what the name means? A pipe or a device under it is nobody's file. */
static bool is_there(tutti_tail *t, bool *anew)
{
    struct stat now;
    *anew = false;
    if (stat(t->path, &now)) return t->fd >= 0;
    if (!S_ISREG(now.st_mode)) return false;
    const bool is_same = t->fd >= 0 && now.st_ino == t->info.st_ino &&
                         now.st_dev == t->info.st_dev && now.st_size >= t->at;
    if (!is_same) {
        *anew = t->fd >= 0;
        let_go(t);
        t->fd = open(t->path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    }
    t->info = now;
    return t->fd >= 0;
}

static void forget_given(tutti_tail *t)
{
    if (!t->given) return;
    memmove(t->rest.data, t->rest.data + t->given, t->rest.length - t->given + 1);
    t->rest.length -= t->given;
    t->given = 0;
}

bool tutti_tail_read(tutti_tail *t, size_t most, bool *anew)
{
    join_again(t);
    if (!is_there(t, anew)) return false;
    forget_given(t);
    char piece[PIECE];
    size_t got = 0;
    while (got < most) {
        const ssize_t n = pread(t->fd, piece, PIECE, t->at);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) break;
        tutti_string_append(&t->rest, piece, (size_t)n);
        if (tutti_string_status(&t->rest)) break;
        t->at += n;
        got += (size_t)n;
    }
    return got > 0;
}

/* Drops a line that has no end and is too long to wait for it. */
static void give_up_line(tutti_tail *t)
{
    if (t->rest.length - t->given < TUTTI_LONGEST_LINE) return;
    t->given = t->rest.length;
    t->damaged += !t->skips;
    t->skips = true;
}

const char *tutti_tail_next(tutti_tail *t, size_t *length, int64_t *step)
{
    join_again(t);
    while (t->given < t->rest.length) {
        char *line = t->rest.data + t->given;
        char *end = memchr(line, '\n', t->rest.length - t->given);
        if (!end) break;
        const bool was_skipped = t->skips;
        *length = (size_t)(end + 1 - line);
        t->given += *length;
        t->skips = false;
        if (was_skipped) continue;
        t->lines++;
        if (tutti_metrics_line_is_whole(line, *length, step)) {
            cut_behind(t);
            return line;
        }
        t->damaged++;
    }
    give_up_line(t);
    return NULL;
}
