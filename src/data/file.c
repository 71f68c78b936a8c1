#define _GNU_SOURCE
#include "data/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "base/memory.h"

enum { TEXT_LIMIT = 1 << 30, GZIP_READ = 1 << 16 };
static const uint64_t UNPACKED_LIMIT = UINT64_C(16) << 30;

tutti_status tutti_buffer_reserve(tutti_buffer *buffer, size_t bytes)
{
    if (bytes <= buffer->capacity) return TUTTI_OK;
    const size_t wanted = bytes + bytes / 4;
    tutti_buffer_deinit(buffer);
    TUTTI_TRY(tutti_alloc(&buffer->bytes, wanted, 1));
    buffer->capacity = wanted;
    return TUTTI_OK;
}

void tutti_buffer_deinit(tutti_buffer *buffer)
{
    tutti_free(buffer->bytes);
    *buffer = (tutti_buffer){0};
}

static tutti_status cannot(const char *verb, const char *path)
{
    const bool missing = errno == ENOENT || errno == ENOTDIR;
    return tutti_fail(missing ? TUTTI_DATA : TUTTI_IO, "cannot %s '%s': %s", verb, path,
                      strerror(errno));
}

static tutti_status plain_read(const tutti_file *file, uint64_t offset, void *out, size_t bytes)
{
    for (size_t done = 0; done < bytes;) {
        const ssize_t n = pread(file->fd, (char *)out + done, bytes - done, (off_t)(offset + done));
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return cannot("read", file->path);
        if (n == 0) return tutti_fail(TUTTI_DATA, "'%s' shrank while it was in use", file->path);
        done += (size_t)n;
    }
    return TUTTI_OK;
}

tutti_status tutti_file_read(const tutti_file *file, uint64_t offset, void *out, size_t bytes)
{
    if (offset > file->bytes || bytes > file->bytes - offset)
        return tutti_fail(
            TUTTI_DATA, "'%s' ends at byte %llu, but %zu bytes are needed at byte %llu", file->path,
            (unsigned long long)file->bytes, bytes, (unsigned long long)offset);
    if (!file->memory) return plain_read(file, offset, out, bytes);
    memcpy(out, file->memory + offset, bytes);
    return TUTTI_OK;
}

static tutti_status grow(void **block, size_t *capacity, size_t used, size_t hint)
{
    void *larger = NULL;
    const size_t wanted = *capacity ? 2 * *capacity : hint + 2 * (size_t)GZIP_READ;
    if (wanted > UNPACKED_LIMIT)
        return tutti_fail(TUTTI_DATA, "it unpacks to more than %llu bytes",
                          (unsigned long long)UNPACKED_LIMIT);
    TUTTI_TRY(tutti_alloc(&larger, wanted, 1));
    if (used) memcpy(larger, *block, used);
    tutti_free(*block);
    *block = larger;
    *capacity = wanted;
    return TUTTI_OK;
}

/* What the last four bytes say it unpacks to, where that is possible at all; only a hint, as they
 * may be damaged, or belong to one part of several. */
static size_t unpacked_hint(const tutti_file *file)
{
    enum { MOST_RATIO = 1032 };
    uint8_t b[4];
    if (file->bytes < 18 || plain_read(file, file->bytes - 4, b, 4)) return 0;
    const size_t bytes = b[0] | (size_t)b[1] << 8 | (size_t)b[2] << 16 | (size_t)b[3] << 24;
    return bytes / MOST_RATIO <= file->bytes ? bytes : 0;
}

static tutti_status unpack(gzFile stream, size_t hint, void **block, size_t *used)
{
    size_t capacity = 0;
    for (;;) {
        if (capacity - *used < GZIP_READ) TUTTI_TRY(grow(block, &capacity, *used, hint));
        const int n = gzread(stream, (char *)*block + *used, GZIP_READ);
        if (n > 0) *used += (size_t)n;
        if (n == GZIP_READ) continue;
        int code = Z_OK;
        const char *why = gzerror(stream, &code);
        if (n < 0 || code != Z_OK) return tutti_fail(TUTTI_DATA, "%s", why);
        if (n == 0) return TUTTI_OK;
    }
}

static tutti_status open_gzip(tutti_file *file)
{
    size_t used = 0;
    const size_t hint = unpacked_hint(file);
    gzFile stream = gzdopen(file->fd, "rb");
    if (!stream) return tutti_fail(TUTTI_MEMORY, "'%s': not enough memory for zlib", file->path);
    file->fd = -1; /* the stream's now */
    gzbuffer(stream, 1 << 17);
    tutti_status s = unpack(stream, hint, &file->owned, &used);
    if (s)
        s = tutti_fail(s, "'%s' cannot be unpacked after %zu bytes: %s", file->path, used,
                       tutti_message());
    gzclose(stream);
    file->memory = file->owned;
    file->bytes = used;
    return s;
}

static tutti_status open_any(tutti_file *file)
{
    struct stat about;
    uint8_t magic[2] = {0};
    file->fd = open(file->path, O_RDONLY | O_CLOEXEC);
    if (file->fd < 0) return cannot("open", file->path);
    if (fstat(file->fd, &about)) return cannot("read", file->path);
    if (!S_ISREG(about.st_mode)) return tutti_fail(TUTTI_DATA, "'%s' is not a file", file->path);
    file->bytes = (uint64_t)about.st_size;
    if (file->bytes >= 2) TUTTI_TRY(plain_read(file, 0, magic, 2));
    return magic[0] == 0x1f && magic[1] == 0x8b ? open_gzip(file) : TUTTI_OK;
}

tutti_status tutti_file_open(tutti_file *file, const char *path)
{
    *file = (tutti_file){.fd = -1};
    TUTTI_TRY(tutti_strdup(&file->path, path));
    const tutti_status s = open_any(file);
    if (s) tutti_file_close(file);
    return s;
}

tutti_status tutti_file_wrap(tutti_file *file, const char *name, const void *memory, size_t bytes)
{
    *file = (tutti_file){.fd = -1, .memory = memory, .bytes = bytes};
    return tutti_strdup(&file->path, name);
}

void tutti_file_close(tutti_file *file)
{
    if (file->path && file->fd >= 0) close(file->fd);
    tutti_free(file->owned);
    tutti_free(file->path);
    *file = (tutti_file){0};
}

tutti_status tutti_file_text(char **out, const char *path)
{
    tutti_file file;
    TUTTI_TRY(tutti_file_open(&file, path));
    tutti_status s = TUTTI_OK;
    char *text = NULL;
    if (file.bytes > TEXT_LIMIT)
        s = tutti_fail(TUTTI_DATA, "'%s' has %llu bytes; a list of at most %d is expected", path,
                       (unsigned long long)file.bytes, (int)TEXT_LIMIT);
    if (!s) s = tutti_alloc(&text, (size_t)file.bytes + 1, 1);
    if (!s) s = tutti_file_read(&file, 0, text, (size_t)file.bytes);
    tutti_file_close(&file);
    if (s) tutti_free(text);
    else *out = text;
    return s;
}

bool tutti_next_line(char **cursor, char **line)
{
    if (!**cursor) return false;
    *line = *cursor;
    char *end = *cursor + strcspn(*cursor, "\n");
    *cursor = *end ? end + 1 : end;
    if (end > *line && end[-1] == '\r') end--;
    *end = 0;
    return true;
}

char *tutti_next_word(char **cursor)
{
    char *word = *cursor + strspn(*cursor, " \t");
    if (!*word) return NULL;
    char *end = word + strcspn(word, " \t");
    *cursor = *end ? end + 1 : end;
    *end = 0;
    return word;
}

tutti_status tutti_path_join(char **out, const char *dir, const char *name)
{
    if (name[0] == '/') return tutti_strdup(out, name);
    const size_t length = strlen(dir);
    TUTTI_TRY(tutti_alloc(out, length + strlen(name) + 2, 1));
    stpcpy(stpcpy(stpcpy(*out, dir), length && dir[length - 1] == '/' ? "" : "/"), name);
    return TUTTI_OK;
}

const char *tutti_path_base(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

bool tutti_path_is_file(const char *path)
{
    struct stat about;
    return !stat(path, &about) && S_ISREG(about.st_mode);
}

bool tutti_path_is_dir(const char *path)
{
    struct stat about;
    return !stat(path, &about) && S_ISDIR(about.st_mode);
}

static tutti_status make_room(tutti_names *names)
{
    if (names->count < names->capacity) return TUTTI_OK;
    char **larger = NULL;
    const int capacity = names->capacity ? 2 * names->capacity : 64;
    TUTTI_TRY(tutti_alloc(&larger, (size_t)capacity, sizeof *larger));
    if (names->count) memcpy(larger, names->name, (size_t)names->count * sizeof *larger);
    tutti_free(names->name);
    names->name = larger;
    names->capacity = capacity;
    return TUTTI_OK;
}

tutti_status tutti_names_add(tutti_names *names, const char *name)
{
    TUTTI_TRY(make_room(names));
    TUTTI_TRY(tutti_strdup(&names->name[names->count], name));
    names->count++;
    return TUTTI_OK;
}

static int by_bytes(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

tutti_status tutti_names_of_dir(tutti_names *names, const char *dir)
{
    *names = (tutti_names){0};
    DIR *stream = opendir(dir);
    if (!stream) return cannot("open the folder", dir);
    tutti_status s = TUTTI_OK;
    for (struct dirent *entry; !s && (entry = readdir(stream));)
        if (entry->d_name[0] != '.') s = tutti_names_add(names, entry->d_name);
    closedir(stream);
    if (s) tutti_names_deinit(names);
    else if (names->count) qsort(names->name, (size_t)names->count, sizeof *names->name, by_bytes);
    return s;
}

void tutti_names_deinit(tutti_names *names)
{
    for (int i = 0; i < names->count; i++) tutti_free(names->name[i]);
    tutti_free(names->name);
    *names = (tutti_names){0};
}
