#define _GNU_SOURCE
#include "format/file.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"

tutti_status tutti_file_failure(const char *verb, const char *path)
{
    const int why = errno;
    const tutti_status s = why == ENOSPC || why == EDQUOT ? TUTTI_DISK_FULL : TUTTI_IO;
    return tutti_fail(s, "cannot %s '%s': %s", verb, path, strerror(why));
}

tutti_status tutti_file_read_at(int fd, const char *path, void *bytes, size_t count,
                                uint64_t offset)
{
    for (char *at = bytes; count;) {
        const ssize_t got = pread(fd, at, count, (off_t)offset);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return tutti_file_failure("read", path);
        if (got == 0) return tutti_fail(TUTTI_IO, "'%s' ends %zu bytes too early", path, count);
        at += got;
        count -= (size_t)got;
        offset += (uint64_t)got;
    }
    return TUTTI_OK;
}

tutti_status tutti_file_write_at(int fd, const char *path, const void *bytes, size_t count,
                                 uint64_t offset)
{
    for (const char *at = bytes; count;) {
        const ssize_t put = pwrite(fd, at, count, (off_t)offset);
        if (put < 0 && errno == EINTR) continue;
        if (put < 0) return tutti_file_failure("write", path);
        at += put;
        count -= (size_t)put;
        offset += (uint64_t)put;
    }
    return TUTTI_OK;
}

static tutti_status load_open_file(char **out, size_t *length, const char *path, int fd,
                                   size_t limit)
{
    struct stat info;
    if (fstat(fd, &info)) return tutti_file_failure("read", path);
    if (!S_ISREG(info.st_mode)) return tutti_fail(TUTTI_IO, "'%s' is not a file", path);
    if ((uint64_t)info.st_size > limit)
        return tutti_fail(TUTTI_DATA, "'%s' has %lld bytes, more than the %zu it may have", path,
                          (long long)info.st_size, limit);
    char *bytes = NULL;
    TUTTI_TRY(tutti_alloc(&bytes, (size_t)info.st_size + 1, 1));
    const tutti_status s = tutti_file_read_at(fd, path, bytes, (size_t)info.st_size, 0);
    if (s) {
        tutti_free(bytes);
        return s;
    }
    *out = bytes;
    *length = (size_t)info.st_size;
    return TUTTI_OK;
}

tutti_status tutti_file_load(char **out, size_t *length, const char *path, size_t limit)
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return tutti_file_failure("open", path);
    const tutti_status s = load_open_file(out, length, path, fd, limit);
    close(fd);
    return s;
}

static tutti_status sync_and_close(int fd, const char *path, tutti_status s)
{
    if (!s && fsync(fd)) s = tutti_file_failure("write to the disk", path);
    if (close(fd) && !s) s = tutti_file_failure("close", path);
    return s;
}

tutti_status tutti_file_save(const char *path, const char *bytes, size_t count)
{
    const int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (fd < 0) return tutti_file_failure("create", path);
    return sync_and_close(fd, path, tutti_file_write_at(fd, path, bytes, count, 0));
}

tutti_status tutti_file_check_place(const char *path)
{
    struct stat info;
    if (!path) return TUTTI_OK;
    if (stat(path, &info) == 0) {
        if (S_ISDIR(info.st_mode)) return tutti_fail(TUTTI_IO, "'%s' is a directory", path);
        return access(path, W_OK) ? tutti_file_failure("write", path) : TUTTI_OK;
    }
    const char *slash = strrchr(path, '/');
    char *folder = NULL;
    TUTTI_TRY(tutti_strdup(&folder, slash ? path : "."));
    if (slash) folder[slash == path ? 1 : slash - path] = 0;
    const tutti_status s =
        access(folder, W_OK | X_OK) ? tutti_file_failure("create", path) : TUTTI_OK;
    tutti_free(folder);
    return s;
}

tutti_status tutti_file_sync_directory(const char *path)
{
    const int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) return tutti_file_failure("open", path);
    return sync_and_close(fd, path, TUTTI_OK);
}

/* A new file beside 'path', under a name that nobody else has. */
static tutti_status create_beside(int *fd, char **name, const char *path)
{
    const size_t room = strlen(path) + 32;
    TUTTI_TRY(tutti_alloc(name, room, 1));
    for (int tries = 0; tries < 100; tries++) {
        uint64_t odd = 0;
        if (getrandom(&odd, sizeof odd, 0) != sizeof odd) break;
        snprintf(*name, room, "%s.%016llx.tmp", path, (unsigned long long)odd);
        *fd = open(*name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (*fd >= 0) return TUTTI_OK;
        if (errno != EEXIST) break;
    }
    return tutti_file_failure("create", *name);
}

static tutti_status sync_directory_of(const char *path)
{
    char *copy = NULL;
    TUTTI_TRY(tutti_strdup(&copy, path));
    const tutti_status s = tutti_file_sync_directory(dirname(copy));
    tutti_free(copy);
    return s;
}

tutti_status tutti_file_replace(const char *path, const char *bytes, size_t count)
{
    char *name = NULL;
    int fd = -1;
    tutti_status s = create_beside(&fd, &name, path);
    if (!s) {
        s = sync_and_close(fd, name, tutti_file_write_at(fd, name, bytes, count, 0));
        if (!s && rename(name, path)) s = tutti_file_failure("replace", path);
        if (s) unlink(name);
    }
    tutti_free(name);
    return s ? s : sync_directory_of(path);
}

static tutti_status make_directory(const char *path)
{
    struct stat info;
    if (mkdir(path, 0777) == 0) return TUTTI_OK;
    if (errno == EEXIST && stat(path, &info) == 0 && S_ISDIR(info.st_mode)) return TUTTI_OK;
    return tutti_file_failure("create the directory", path);
}

tutti_status tutti_file_make_directories(const char *path)
{
    char *part = NULL;
    tutti_status s = tutti_strdup(&part, path);
    if (s) return s;
    for (char *slash = strchr(part + 1, '/'); slash && !s; slash = strchr(slash + 1, '/')) {
        *slash = 0;
        s = make_directory(part);
        *slash = '/';
    }
    if (!s) s = make_directory(part);
    tutti_free(part);
    return s;
}
