#define _GNU_SOURCE
#include "checkpoint/beat.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/memory.h"
#include "checkpoint/files.h"
#include "format/file.h"

enum { SETTLE_MS = 300 };

struct tutti_beat {
    char path[TUTTI_PATH_BYTES];
    int fd; /* of our own file, whatever stands at 'path' by now */
    bool beats;
    pthread_t thread;
    pthread_mutex_t mutex;
    pthread_cond_t wakes;
    bool ends; /* under the mutex */
    atomic_bool lost;
};

/* ---- Young or old ------------------------------------------------------------------------- */

static double seconds(struct timespec t)
{
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* A name beside 'path' that no other process has. */
static tutti_status own_name(char out[TUTTI_PATH_BYTES], const char *path, const char *purpose)
{
    char host[128] = "host";
    if (gethostname(host, sizeof host - 1)) host[0] = 0;
    const int n =
        snprintf(out, TUTTI_PATH_BYTES, "%s.%s.%s.%d", path, purpose, host, (int)getpid());
    return n < TUTTI_PATH_BYTES
               ? TUTTI_OK
               : tutti_fail(TUTTI_ARGUMENT, "the path '%.100s...' is too long", path);
}

/* A new file with that text, and the moment it was written by the file system's clock. */
static tutti_status make_file(int *fd, double *moment, const char *path, const char *text)
{
    struct stat info;
    *fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (*fd < 0) return tutti_file_failure("create", path);
    tutti_status s = tutti_file_write_at(*fd, path, text, strlen(text), 0);
    if (s == TUTTI_OK && (fsync(*fd) || fstat(*fd, &info))) s = tutti_file_failure("write", path);
    if (s == TUTTI_OK) *moment = seconds(info.st_mtim);
    return s;
}

/* Opened anew: NFS asks the server then. A time in the future is no sign of life, nor is a file
 * without an owner's text: it was made to try whether there are locks. */
static bool is_young(const char *path, double now)
{
    struct stat info;
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return false;
    const bool has_owner = fstat(fd, &info) == 0 && info.st_size > 0;
    const double age = has_owner ? now - seconds(info.st_mtim) : TUTTI_BEAT_YOUNG;
    close(fd);
    return age > -TUTTI_BEAT_YOUNG && age < TUTTI_BEAT_YOUNG;
}

/* ---- Keeping it young --------------------------------------------------------------------- */

static bool is_ours(const tutti_beat *b)
{
    struct stat there, own;
    return stat(b->path, &there) == 0 && fstat(b->fd, &own) == 0 && there.st_ino == own.st_ino &&
           there.st_dev == own.st_dev;
}

static void *beat(void *argument)
{
    tutti_beat *b = argument;
    struct timespec until;
    pthread_mutex_lock(&b->mutex);
    while (!b->ends && !atomic_load(&b->lost)) {
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_sec += TUTTI_BEAT_SECONDS;
        pthread_cond_timedwait(&b->wakes, &b->mutex, &until);
        if (b->ends) break;
        const int failed = futimens(b->fd, NULL); /* NULL: the server's now */
        (void)failed;                             /* the next beat may do */
        if (!is_ours(b)) atomic_store(&b->lost, true);
    }
    pthread_mutex_unlock(&b->mutex);
    return NULL;
}

/* Ours takes the place of what is there. */
static tutti_status take(tutti_beat *b, const char *fresh)
{
    const struct timespec settle = {.tv_nsec = SETTLE_MS * 1000000L};
    if (rename(fresh, b->path)) return tutti_file_failure("create", b->path);
    nanosleep(&settle, NULL);
    return TUTTI_OK;
}

static tutti_status start(tutti_beat *b)
{
    if (pthread_create(&b->thread, NULL, beat, b))
        return tutti_fail(TUTTI_MEMORY, "cannot start a thread: %s", strerror(errno));
    b->beats = true;
    return TUTTI_OK;
}

static tutti_status claim(tutti_beat *b, bool *held, const char *text)
{
    char fresh[TUTTI_PATH_BYTES];
    double now = 0;
    TUTTI_TRY(own_name(fresh, b->path, "tmp"));
    tutti_status s = make_file(&b->fd, &now, fresh, text);
    *held = s == TUTTI_OK && is_young(b->path, now);
    if (s == TUTTI_OK && !*held) s = take(b, fresh);
    else unlink(fresh);
    if (s == TUTTI_OK && !*held) *held = !is_ours(b);
    return s == TUTTI_OK && !*held ? start(b) : s;
}

tutti_status tutti_beat_open(tutti_beat **out, bool *held, const char *path, const char *text)
{
    tutti_beat *b = NULL;
    TUTTI_TRY(tutti_alloc(&b, 1, sizeof *b));
    b->fd = -1;
    pthread_mutex_init(&b->mutex, NULL);
    pthread_cond_init(&b->wakes, NULL);
    snprintf(b->path, sizeof b->path, "%s", path);
    const tutti_status s = claim(b, held, text);
    if (s != TUTTI_OK || *held) tutti_beat_close(&b);
    *out = b;
    return s;
}

void tutti_beat_close(tutti_beat **beat)
{
    tutti_beat *b = *beat;
    if (!b) return;
    pthread_mutex_lock(&b->mutex);
    b->ends = true;
    pthread_cond_signal(&b->wakes);
    pthread_mutex_unlock(&b->mutex);
    if (b->beats) pthread_join(b->thread, NULL);
    pthread_cond_destroy(&b->wakes);
    pthread_mutex_destroy(&b->mutex);
    if (b->fd >= 0) close(b->fd);
    tutti_free(b);
    *beat = NULL;
}

bool tutti_beat_is_lost(const tutti_beat *beat)
{
    return beat && atomic_load(&beat->lost);
}
