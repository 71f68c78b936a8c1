#define _GNU_SOURCE
#include "format/journal.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/log.h"
#include "base/memory.h"
#include "format/file.h"
#include "format/metrics_row.h"

enum { PATH_BYTES = 4096 };

struct tutti_journal {
    char path[PATH_BYTES];
    int fd;
    pthread_mutex_t mutex;
    tutti_string line;
    const tutti_log *log;
    bool complained;
};

static bool set_path(char out[PATH_BYTES], const char *run, const char *name, const char *suffix)
{
    return snprintf(out, PATH_BYTES, "%s/%s%s", run, name, suffix) < PATH_BYTES;
}

/* A line that was cut off when its writer was killed would take the next one with it. */
static void end_line(int fd)
{
    char last = '\n';
    const off_t end = lseek(fd, 0, SEEK_END);
    if (end > 0 && pread(fd, &last, 1, end - 1) == 1 && last != '\n' && write(fd, "\n", 1) != 1)
        return; /* then the disk is full, and the next line fails, too */
}

tutti_status tutti_journal_open(tutti_journal **out, const char *run, const char *name,
                                const tutti_log *log)
{
    tutti_journal *j = NULL;
    TUTTI_TRY(tutti_alloc(&j, 1, sizeof *j));
    pthread_mutex_init(&j->mutex, NULL);
    j->log = log;
    j->fd = -1;
    if (set_path(j->path, run, name, ""))
        j->fd = open(j->path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    if (j->fd >= 0) end_line(j->fd);
    *out = j;
    return TUTTI_OK;
}

void tutti_journal_close(tutti_journal **journal)
{
    tutti_journal *j = *journal;
    if (!j) return;
    if (j->fd >= 0) close(j->fd);
    pthread_mutex_destroy(&j->mutex);
    tutti_string_deinit(&j->line);
    tutti_free(j);
    *journal = NULL;
}

/* All of it, or nothing. */
static bool append(const tutti_journal *j)
{
    const off_t end = lseek(j->fd, 0, SEEK_END);
    ssize_t n = 0;
    for (size_t done = 0; done < j->line.length; done += (size_t)n) {
        n = write(j->fd, j->line.data + done, j->line.length - done);
        if (n < 0 && errno == EINTR) n = 0;
        else if (n <= 0) {
            const int why = errno;
            if (done && ftruncate(j->fd, end)) end_line(j->fd);
            errno = why;
            return false;
        }
    }
    return true;
}

void tutti_journal_write(tutti_journal *j, int64_t step, const char *phase, const char *fields)
{
    if (!j) return;
    bool complains = false;
    pthread_mutex_lock(&j->mutex);
    tutti_string_clear(&j->line);
    tutti_metrics_fields_json(&j->line, step, phase, fields);
    if (tutti_string_status(&j->line) || j->fd < 0 || !append(j)) {
        complains = !j->complained;
        j->complained = true;
    }
    pthread_mutex_unlock(&j->mutex);
    if (complains)
        tutti_info(j->log, "'%s' cannot be written: its page will lack what is missing there",
                   j->path);
}

/* ---- cutting ---- */

static int64_t keep_lines(FILE *from, FILE *to, int64_t last)
{
    char *line = NULL;
    size_t room = 0;
    int64_t kept = 0, step = 0;
    bool writes = true;
    for (ssize_t n; writes && (n = getline(&line, &room, from)) > 0;) {
        if (!tutti_metrics_line_is_whole(line, (size_t)n, &step) || step > last) continue;
        writes = fwrite(line, (size_t)n, 1, to) == 1;
        kept++;
    }
    free(line);
    return writes ? kept : -1;
}

int64_t tutti_journal_cut(const char *run, const char *name, int64_t last)
{
    char path[PATH_BYTES], fresh[PATH_BYTES];
    if (!set_path(path, run, name, "") || !set_path(fresh, run, name, ".tmp")) return 0;
    FILE *from = fopen(path, "re");
    if (!from) return 0;
    FILE *to = fopen(fresh, "we");
    int64_t kept = to ? keep_lines(from, to, last) : -1;
    fclose(from);
    if (to && fclose(to)) kept = -1;
    if (kept < 0 || rename(fresh, path)) {
        unlink(fresh);
        return 0;
    }
    return kept;
}
