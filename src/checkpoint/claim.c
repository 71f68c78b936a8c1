#define _GNU_SOURCE
#include "checkpoint/claim.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"
#include "base/memory.h"
#include "checkpoint/beat.h"
#include "checkpoint/names.h"
#include "format/file.h"

enum { TEXT_BYTES = 512, TRIES = 100 };

struct tutti_claim {
    char run[TUTTI_PATH_BYTES];  /* without links in it */
    char path[TUTTI_PATH_BYTES]; /* RUN/lock */
    int fd;
    tutti_beat *beat; /* where there are no locks */
    bool made;        /* the directory */
    const tutti_log *log;
};

/* ---- The lock ----------------------------------------------------------------------------- */

enum outcome { TAKEN, HELD, NO_LOCKS, FAILED };

/* Locks of open files, not of processes: the latter go when any descriptor of the file is closed.
 * Systems that only have the latter say EINVAL. */
static enum outcome lock(int fd)
{
    static const int kinds[] = {F_OFD_SETLK, F_SETLK};
    static const int absent[] = {ENOLCK, ENOTSUP, EOPNOTSUPP, ENOSYS, EINVAL};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
        if (fcntl(fd, kinds[i], &whole) == 0) return TAKEN;
        if (errno != EINVAL) break;
    }
    if (errno == EAGAIN || errno == EACCES) return HELD;
    for (size_t i = 0; i < sizeof absent / sizeof *absent; i++)
        if (errno == absent[i]) return NO_LOCKS;
    return FAILED;
}

static void describe(char out[TEXT_BYTES])
{
    char host[256] = "", since[32];
    const time_t now = time(NULL);
    struct tm utc;
    gmtime_r(&now, &utc);
    strftime(since, sizeof since, "%Y-%m-%dT%H:%M:%SZ", &utc);
    if (gethostname(host, sizeof host - 1)) snprintf(host, sizeof host, "?");
    snprintf(out, TEXT_BYTES, "host %s\npid %d\nsince %s\n", host, (int)getpid(), since);
}

static tutti_status in_use(const tutti_claim *c)
{
    char text[TEXT_BYTES] = "", host[256], since[32];
    int pid = 0;
    const int fd = open(c->path, O_RDONLY | O_CLOEXEC);
    const ssize_t n = fd < 0 ? 0 : pread(fd, text, sizeof text - 1, 0);
    if (fd >= 0) close(fd);
    text[n > 0 ? n : 0] = 0;
    if (sscanf(text, "host %255s pid %d since %31s", host, &pid, since) != 3)
        return tutti_fail(TUTTI_IN_USE,
                          "'%s' is in use by another process: wait for it, or give "
                          "another --run",
                          c->run);
    return tutti_fail(TUTTI_IN_USE,
                      "'%s' is in use by process %d on host %s, since %s: wait for it, stop it, or "
                      "give another --run",
                      c->run, pid, host, since);
}

/* Whoever ends removes the file: what was opened before that is no longer it. */
static bool is_there(const tutti_claim *c)
{
    struct stat own, there;
    return fstat(c->fd, &own) == 0 && stat(c->path, &there) == 0 && own.st_ino == there.st_ino &&
           own.st_dev == there.st_dev;
}

static tutti_status take_without_locks(tutti_claim *c)
{
    char text[TEXT_BYTES];
    bool held = false;
    describe(text);
    close(c->fd);
    c->fd = -1;
    TUTTI_TRY(tutti_beat_open(&c->beat, &held, c->path, text));
    if (held) {
        const tutti_status s = in_use(c);
        return tutti_fail(s, "%s; if it was killed, it is free in %d s", tutti_message(),
                          TUTTI_BEAT_YOUNG);
    }
    tutti_warn(c->log,
               "the file system of '%s' has no locks: a second process there is noticed "
               "by the age of '%s' only",
               c->run, c->path);
    return TUTTI_OK;
}

/* The text helps whoever is refused; a disk too full for it is no reason to fail. */
static void sign(const tutti_claim *c)
{
    char text[TEXT_BYTES];
    describe(text);
    if (ftruncate(c->fd, 0) || tutti_file_write_at(c->fd, c->path, text, strlen(text), 0) ||
        fdatasync(c->fd))
        tutti_debug(c->log, "'%s' does not say whose it is", c->path);
}

static tutti_status take(tutti_claim *c)
{
    for (int i = 0; i < TRIES; i++) {
        c->fd = open(c->path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
        if (c->fd < 0) return tutti_file_failure("open", c->path);
        const enum outcome outcome = lock(c->fd);
        if (outcome == NO_LOCKS) return take_without_locks(c);
        if (outcome == FAILED) return tutti_file_failure("lock", c->path);
        if (outcome == TAKEN && is_there(c)) {
            sign(c);
            return TUTTI_OK;
        }
        close(c->fd);
        c->fd = -1;
        if (outcome == HELD) return in_use(c);
    }
    return tutti_fail(TUTTI_IN_USE, "'%s' is made and removed all the time", c->path);
}

/* Without locks the file is left to whoever took it. */
static void give_back(tutti_claim *c, const char *path)
{
    const bool mine = c->fd >= 0 || (c->beat && !tutti_beat_is_lost(c->beat));
    tutti_beat_close(&c->beat);
    if (mine) unlink(path);
    if (c->fd >= 0) close(c->fd);
    c->fd = -1;
}

/* ---- The directory ------------------------------------------------------------------------ */

static bool resolve(char out[TUTTI_PATH_BYTES], const char *path)
{
    char *real = realpath(path, NULL);
    const bool fits = real && snprintf(out, TUTTI_PATH_BYTES, "%s", real) < TUTTI_PATH_BYTES;
    free(real);
    return fits;
}

static tutti_status open_directory(tutti_claim *c, const char *run)
{
    struct stat info;
    c->made = stat(run, &info) != 0;
    TUTTI_TRY(tutti_file_make_directories(run));
    if (!resolve(c->run, run)) return tutti_file_failure("open", run);
    TUTTI_TRY(tutti_checkpoint_path(c->path, c->run, "lock", ""));
    return take(c);
}

tutti_status tutti_claim_open(tutti_claim **out, const char *run, const tutti_log *log)
{
    tutti_claim *c = NULL;
    TUTTI_TRY(tutti_alloc(&c, 1, sizeof *c));
    *c = (tutti_claim){.fd = -1, .log = log};
    const tutti_status s = open_directory(c, run);
    if (s != TUTTI_OK) tutti_claim_close(&c);
    *out = c;
    return s;
}

void tutti_claim_close(tutti_claim **claim)
{
    tutti_claim *c = *claim;
    if (!c) return;
    give_back(c, c->path);
    if (c->made) rmdir(c->run); /* if it is empty */
    tutti_free(c);
    *claim = NULL;
}

tutti_status tutti_claim_check(const tutti_claim *claim)
{
    if (!claim || !tutti_beat_is_lost(claim->beat)) return TUTTI_OK;
    const tutti_status s = in_use(claim);
    return tutti_fail(s,
                      "%s (it took the run over because this process had not touched '%s' for "
                      "%d s, or it is gone)",
                      tutti_message(), claim->path, TUTTI_BEAT_YOUNG);
}

/* Asks for the lock of an open file; -1: this file system has none. */
static int is_locked(int fd)
{
    static const int kinds[] = {F_OFD_GETLK, F_GETLK};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
        if (fcntl(fd, kinds[i], &whole) == 0) return whole.l_type != F_UNLCK;
        if (errno != EINVAL) break;
    }
    return -1;
}

bool tutti_claim_is_held(const char *run)
{
    char path[TUTTI_PATH_BYTES];
    struct stat info;
    if (tutti_checkpoint_path(path, run, "lock", "") != TUTTI_OK) return false;
    const int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0) return false;
    const int locked = is_locked(fd);
    const bool young = fstat(fd, &info) == 0 && info.st_size > 0 &&
                       llabs((long long)(time(NULL) - info.st_mtime)) < TUTTI_BEAT_YOUNG;
    close(fd);
    return locked < 0 ? young : locked;
}

/* ---- What it holds ------------------------------------------------------------------------ */

static bool has_bytes(const char *run, const char *name)
{
    char path[TUTTI_PATH_BYTES];
    struct stat info;
    return tutti_checkpoint_path(path, run, name, "") == TUTTI_OK && stat(path, &info) == 0 &&
           info.st_size > 0;
}

bool tutti_claim_holds_run(const tutti_claim *claim)
{
    int64_t *steps = NULL;
    int count = 0;
    if (tutti_checkpoint_steps(&steps, &count, claim->run)) count = 0;
    tutti_free(steps);
    return count > 0 || tutti_checkpoint_link(claim->run, "latest") >= 0 ||
           has_bytes(claim->run, "metrics.jsonl") || has_bytes(claim->run, "state.json");
}

bool tutti_claim_has(const tutti_claim *claim, const char *where)
{
    char real[TUTTI_PATH_BYTES];
    const size_t length = strlen(claim->run);
    if (!resolve(real, where) || strncmp(real, claim->run, length) != 0) return false;
    return !real[length] || (real[length] == '/' && !strchr(real + length + 1, '/'));
}

tutti_status tutti_claim_old_name(char out[TUTTI_PATH_BYTES], const tutti_claim *claim)
{
    struct stat info;
    for (int i = 1;; i++) {
        char number[16] = "";
        if (i > 1) snprintf(number, sizeof number, ".%d", i);
        if (snprintf(out, TUTTI_PATH_BYTES, "%s.old%s", claim->run, number) >= TUTTI_PATH_BYTES)
            return tutti_fail(TUTTI_ARGUMENT, "the path '%.100s...' is too long", claim->run);
        if (lstat(out, &info) != 0 && errno == ENOENT) return TUTTI_OK;
    }
}

/* The old lock is held until the new one is. */
tutti_status tutti_claim_clear(tutti_claim *claim)
{
    char old[TUTTI_PATH_BYTES], old_lock[TUTTI_PATH_BYTES];
    TUTTI_TRY(tutti_claim_old_name(old, claim));
    TUTTI_TRY(tutti_checkpoint_path(old_lock, old, "lock", ""));
    if (rename(claim->run, old)) return tutti_file_failure("move away", claim->run);
    tutti_claim before = *claim;
    claim->fd = -1;
    claim->beat = NULL;
    tutti_status s = tutti_file_make_directories(claim->run);
    if (s == TUTTI_OK) s = take(claim);
    give_back(&before, old_lock);
    return s;
}
