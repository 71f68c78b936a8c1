/* A disk that fails, for programs started with LD_PRELOAD. Calls on files below FAULTS_UNDER are
 * counted, from 1; the one that has number FAULTS_AT, and FAULTS_MANY - 1 after it (0: all), fare
 * as FAULTS_HOW says:
 *
 *   EIO, ENOSPC, EDQUOT   fail so; a write that meets a full disk puts half of its bytes there
 *   exit                  the process is gone before the call
 *   cut                   likewise, and what was written since a file's last fsync is gone, too
 *
 * FAULTS_RANK: only in the process of this rank. FAULTS_LOG: a file that gets a line for each
 * call that counts. What stdio does inside the C library is not seen. */
#define _GNU_SOURCE
#undef _FILE_OFFSET_BITS /* open and open64 are two names here, not one */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define SEEN __attribute__((visibility("default")))

enum { DIRTY = 256, GONE = 86 }; /* GONE: the exit code of 'exit' and 'cut' */
enum how { FAIL, EXIT, CUT };

static struct {
    const char *under;
    size_t under_length;
    long at, many;
    enum how how;
    int error, log;
} plan;

static atomic_long calls;

/* Files that were written, and how much of each a power cut leaves. */
static struct dirty {
    atomic_int fd; /* a duplicate + 1; never closed, for closing gives up a process's locks */
    dev_t device;
    ino_t number;
    _Atomic off_t synced;
} dirty[DIRTY];

/* ---- the plan ---- */

static long number(const char *name, long otherwise)
{
    const char *text = getenv(name);
    return text && *text ? strtol(text, NULL, 10) : otherwise;
}

static bool is_my_rank(void)
{
    const long wanted = number("FAULTS_RANK", -1);
    return wanted < 0 || number("OMPI_COMM_WORLD_RANK", number("PMI_RANK", -1)) == wanted;
}

static void set_how(const char *how)
{
    static const struct {
        const char *name;
        int error;
    } errors[] = {{"EIO", EIO}, {"ENOSPC", ENOSPC}, {"EDQUOT", EDQUOT}};
    plan.how = !strcmp(how, "exit") ? EXIT : !strcmp(how, "cut") ? CUT : FAIL;
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++)
        if (!strcmp(how, errors[i].name)) plan.error = errors[i].error;
    if (plan.how == FAIL && !plan.error) {
        fprintf(stderr, "FAULTS_HOW=%s is not EIO, ENOSPC, EDQUOT, exit or cut\n", how);
        _exit(2);
    }
}

__attribute__((constructor)) static void read_plan(void)
{
    const char *under = getenv("FAULTS_UNDER"), *log = getenv("FAULTS_LOG");
    if (!under || !is_my_rank()) return;
    plan.at = number("FAULTS_AT", 0);
    plan.many = number("FAULTS_MANY", 1);
    plan.log = log ? (int)syscall(SYS_openat, AT_FDCWD, log,
                                  O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666)
                   : -1;
    if (plan.at) set_how(getenv("FAULTS_HOW") ? getenv("FAULTS_HOW") : "");
    plan.under_length = strlen(under);
    plan.under = under;
}

static bool is_below(const char *path)
{
    if (!plan.under || strncmp(path, plan.under, plan.under_length)) return false;
    return path[plan.under_length] == '/' || !path[plan.under_length];
}

static bool path_of(int fd, char path[PATH_MAX])
{
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    const ssize_t n = readlink(link, path, PATH_MAX - 1);
    path[n > 0 ? n : 0] = 0;
    return n > 0;
}

/* ---- what a power cut takes away ---- */

static struct dirty *find_dirty(const struct stat *info)
{
    for (int i = 0; i < DIRTY && dirty[i].fd; i++)
        if (dirty[i].device == info->st_dev && dirty[i].number == info->st_ino) return &dirty[i];
    return NULL;
}

static void before_write(int fd)
{
    struct stat info;
    if (!plan.at || plan.how != CUT || fstat(fd, &info) || find_dirty(&info)) return;
    for (int i = 0; i < DIRTY; i++) {
        int none = 0;
        if (!atomic_compare_exchange_strong(&dirty[i].fd, &none, -1)) continue;
        dirty[i].device = info.st_dev;
        dirty[i].number = info.st_ino;
        dirty[i].synced = info.st_size;
        dirty[i].fd = fcntl(fd, F_DUPFD_CLOEXEC, 100) + 1;
        return;
    }
}

static void after_sync(int fd)
{
    struct stat info;
    if (fstat(fd, &info)) return;
    struct dirty *d = find_dirty(&info);
    if (d) d->synced = info.st_size;
}

static void cut(void)
{
    for (int i = 0; i < DIRTY; i++) {
        struct stat info;
        const int fd = dirty[i].fd - 1;
        if (fd >= 0 && !fstat(fd, &info) && info.st_size > dirty[i].synced)
            syscall(SYS_ftruncate, fd, (long)dirty[i].synced);
    }
}

/* ---- counting ---- */

/* Counts a call; whether it must fail, with errno set. */
static bool fails(const char *call, const char *path)
{
    char line[PATH_MAX + 64];
    if (!is_below(path)) return false;
    const long n = atomic_fetch_add(&calls, 1) + 1;
    const bool hit = plan.at && n >= plan.at && (!plan.many || n < plan.at + plan.many);
    if (plan.log >= 0) {
        const int length = snprintf(line, sizeof line, "%ld %s %s%s\n", n, call,
                                    path + plan.under_length, hit ? " !" : "");
        syscall(SYS_write, plan.log, line, (size_t)length);
    }
    if (!hit) return false;
    if (plan.how == CUT) cut();
    if (plan.how != FAIL) _exit(GONE);
    errno = plan.error;
    return true;
}

static bool fails_on(const char *call, int fd)
{
    char path[PATH_MAX];
    return plan.under && path_of(fd, path) && fails(call, path);
}

/* ---- the calls ---- */

#define REAL(name) (__extension__(__typeof__(&name)) dlsym(RTLD_NEXT, #name))

#define BY_PATH(name, parameters, path, ...)                      \
    SEEN int name parameters;                                     \
    SEEN int name parameters                                      \
    {                                                             \
        return fails(#name, path) ? -1 : REAL(name)(__VA_ARGS__); \
    }

BY_PATH(mkdir, (const char *path, mode_t mode), path, path, mode)
BY_PATH(rmdir, (const char *path), path, path)
BY_PATH(unlink, (const char *path), path, path)
BY_PATH(rename, (const char *from, const char *to), to, from, to)
BY_PATH(renameat2, (int a, const char *from, int b, const char *to, unsigned flags), to, a, from, b,
        to, flags)
BY_PATH(symlink, (const char *target, const char *path), path, target, path)
BY_PATH(link, (const char *from, const char *to), to, from, to)
BY_PATH(truncate, (const char *path, off_t size), path, path, size)
BY_PATH(truncate64, (const char *path, off64_t size), path, path, size)

#define OPEN(name)                                                      \
    SEEN int name(const char *path, int flags, ...);                    \
    SEEN int name(const char *path, int flags, ...)                     \
    {                                                                   \
        va_list rest;                                                   \
        va_start(rest, flags);                                          \
        const mode_t mode = flags & O_CREAT ? va_arg(rest, mode_t) : 0; \
        va_end(rest);                                                   \
        return fails(#name, path) ? -1 : REAL(name)(path, flags, mode); \
    }

OPEN(open)
OPEN(open64)

#define SYNC(name)                          \
    SEEN int name(int fd);                  \
    SEEN int name(int fd)                   \
    {                                       \
        if (fails_on(#name, fd)) return -1; \
        const int result = REAL(name)(fd);  \
        if (result == 0) after_sync(fd);    \
        return result;                      \
    }

SYNC(fsync)
SYNC(fdatasync)

SEEN int ftruncate(int fd, off_t size)
{
    return fails_on("ftruncate", fd) ? -1 : REAL(ftruncate)(fd, size);
}

SEEN int ftruncate64(int fd, off64_t size)
{
    return fails_on("ftruncate64", fd) ? -1 : REAL(ftruncate64)(fd, size);
}

/* A file is closed even if that fails. */
SEEN int close(int fd)
{
    const bool failed = fails_on("close", fd);
    const int error = errno, result = REAL(close)(fd);
    if (!failed) return result;
    errno = error;
    return -1;
}

/* Of a full disk the rest is used up first. */
static size_t share(size_t count)
{
    return errno == ENOSPC || errno == EDQUOT ? count / 2 : 0;
}

SEEN ssize_t write(int fd, const void *bytes, size_t count)
{
    if (plan.under) before_write(fd);
    if (!fails_on("write", fd)) return REAL(write)(fd, bytes, count);
    const int error = errno;
    const size_t part = share(count);
    if (part) return REAL(write)(fd, bytes, part);
    errno = error;
    return -1;
}

#define PWRITE(name, offset_t)                                              \
    SEEN ssize_t name(int fd, const void *bytes, size_t count, offset_t at) \
    {                                                                       \
        if (plan.under) before_write(fd);                                   \
        if (!fails_on(#name, fd)) return REAL(name)(fd, bytes, count, at);  \
        const int error = errno;                                            \
        const size_t part = share(count);                                   \
        if (part) return REAL(name)(fd, bytes, part, at);                   \
        errno = error;                                                      \
        return -1;                                                          \
    }

PWRITE(pwrite, off_t)
PWRITE(pwrite64, off64_t)

#define PREAD(name, offset_t)                                               \
    SEEN ssize_t name(int fd, void *bytes, size_t count, offset_t at)       \
    {                                                                       \
        return fails_on(#name, fd) ? -1 : REAL(name)(fd, bytes, count, at); \
    }

PREAD(pread, off_t)
PREAD(pread64, off64_t)

SEEN ssize_t read(int fd, void *bytes, size_t count)
{
    return fails_on("read", fd) ? -1 : REAL(read)(fd, bytes, count);
}
