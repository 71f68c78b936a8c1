#define _GNU_SOURCE
#include "format/metrics.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/memory.h"
#include "format/file.h"
#include "format/metrics_row.h"

enum { PATH_BYTES = 4096, MOST_WAITING = 64 << 20 };

enum kind { JSONL, CSV, KINDS };

static const char *const names[KINDS] = {"metrics.jsonl", "metrics.csv"};

typedef struct output {
    char path[PATH_BYTES];
    int fd;
    tutti_string waits; /* for room on the disk */
    int64_t lost;       /* rows that not even memory had room for */
} output;

struct tutti_metrics {
    output outputs[KINDS];
    const tutti_log *log;
    bool fails; /* to write, and has said so */
};

static tutti_status set_path(char out[PATH_BYTES], const char *run, const char *name)
{
    if (snprintf(out, PATH_BYTES, "%s/%s", run, name) >= PATH_BYTES)
        return tutti_fail(TUTTI_ARGUMENT, "the path '%.100s...' is too long", run);
    return TUTTI_OK;
}

/* ---- Going on ----------------------------------------------------------------------------- */

/* The lines of an earlier part of the run, sorted by what becomes of them. */
typedef struct sorting {
    FILE *from, *to[KINDS], *aside;
    char path[KINDS][PATH_BYTES], aside_path[PATH_BYTES]; /* of 'to' and 'aside' */
    tutti_string record;
    int64_t lines, damaged, first_damaged;
    int64_t step, missing, first_missing; /* the last one's; steps without a row */
} sorting;

static tutti_status open_sorting(sorting *s, const tutti_metrics *m, const char *run)
{
    static const char *const fresh[KINDS] = {"metrics.jsonl.tmp", "metrics.csv.tmp"};
    const char *old = m->outputs[JSONL].path;
    if (!(s->from = fopen(old, "re")) && errno != ENOENT) return tutti_file_failure("open", old);
    for (int k = 0; k < KINDS; k++) {
        TUTTI_TRY(set_path(s->path[k], run, fresh[k]));
        if (!(s->to[k] = fopen(s->path[k], "we"))) return tutti_file_failure("create", s->path[k]);
    }
    return set_path(s->aside_path, run, "metrics.damaged");
}

static void close_sorting(sorting *s)
{
    FILE *const files[] = {s->from, s->to[JSONL], s->to[CSV], s->aside};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        if (files[i]) fclose(files[i]);
    tutti_string_deinit(&s->record);
}

static tutti_status put(FILE *to, const char *path, const char *bytes, size_t count)
{
    if (count && fwrite(bytes, count, 1, to) != 1) return tutti_file_failure("write", path);
    return TUTTI_OK;
}

static tutti_status put_record(sorting *s)
{
    TUTTI_TRY(tutti_string_status(&s->record));
    TUTTI_TRY(put(s->to[CSV], s->path[CSV], s->record.data, s->record.length));
    tutti_string_clear(&s->record);
    return TUTTI_OK;
}

static tutti_status keep_line(sorting *s, const char *line, size_t length)
{
    TUTTI_TRY(put(s->to[JSONL], s->path[JSONL], line, length));
    tutti_metrics_line_csv(&s->record, line, length);
    return put_record(s);
}

static tutti_status set_aside(sorting *s, const char *line, size_t length)
{
    if (!s->damaged++) s->first_damaged = s->lines;
    if (!s->aside && !(s->aside = fopen(s->aside_path, "ae")))
        return tutti_file_failure("open", s->aside_path);
    TUTTI_TRY(put(s->aside, s->aside_path, line, length));
    return line[length - 1] == '\n' ? TUTTI_OK : put(s->aside, s->aside_path, "\n", 1);
}

/* Whole lines can be gone, too: every step has its row, from the first one's on. */
static void go_to(sorting *s, int64_t step)
{
    const int64_t gap = s->step ? step - s->step - 1 : 0;
    if (gap > 0 && !s->missing) s->first_missing = s->step + 1;
    if (gap > 0) s->missing += gap;
    s->step = step;
}

static tutti_status sort_line(sorting *s, const char *line, size_t length, int64_t last)
{
    int64_t step = 0;
    s->lines++;
    if (!tutti_metrics_line_is_whole(line, length, &step)) return set_aside(s, line, length);
    if (step > last) return TUTTI_OK;
    go_to(s, step);
    return keep_line(s, line, length);
}

static tutti_status sort_lines(sorting *s, int64_t last)
{
    tutti_status status = TUTTI_OK;
    char *line = NULL;
    size_t room = 0;
    tutti_metrics_title_csv(&s->record);
    TUTTI_TRY(put_record(s));
    for (ssize_t n; s->from && !status && (n = getline(&line, &room, s->from)) > 0;)
        status = sort_line(s, line, (size_t)n, last);
    free(line);
    if (s->step) go_to(s, last + 1);
    return status;
}

/* The new files take the place of the old ones. */
static tutti_status take_place(sorting *s, const tutti_metrics *m)
{
    if (s->aside && (fflush(s->aside) || fsync(fileno(s->aside))))
        return tutti_file_failure("write", s->aside_path);
    for (int k = 0; k < KINDS; k++) {
        if (fflush(s->to[k]) || fsync(fileno(s->to[k])))
            return tutti_file_failure("write", s->path[k]);
        if (rename(s->path[k], m->outputs[k].path))
            return tutti_file_failure("replace", m->outputs[k].path);
    }
    return TUTTI_OK;
}

static void complain(const sorting *s, const tutti_metrics *m)
{
    const char *path = m->outputs[JSONL].path;
    if (s->damaged)
        tutti_warn(m->log, "'%s': line %lld%s damaged and left out; see '%s'", path,
                   (long long)s->first_damaged, s->damaged > 1 ? " and others are" : " is",
                   s->aside_path);
    else if (s->missing)
        tutti_warn(m->log, "'%s': the rows of %lld step%s are missing, from step %lld on", path,
                   (long long)s->missing, s->missing > 1 ? "s" : "", (long long)s->first_missing);
}

static tutti_status go_on(const tutti_metrics *m, const char *run, int64_t last)
{
    sorting s = {0};
    tutti_status status = open_sorting(&s, m, run);
    if (!status) status = sort_lines(&s, last);
    if (!status) status = take_place(&s, m);
    if (!status) complain(&s, m);
    close_sorting(&s);
    return status;
}

/* ---- Opening ------------------------------------------------------------------------------ */

static tutti_status open_one(output *o, bool fresh)
{
    const int flags = O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | (fresh ? O_TRUNC : 0);
    o->fd = open(o->path, flags, 0666);
    return o->fd < 0 ? tutti_file_failure("open", o->path) : TUTTI_OK;
}

static tutti_status open_both(tutti_metrics *m, const char *run, int64_t resumed_step)
{
    for (int k = 0; k < KINDS; k++) TUTTI_TRY(set_path(m->outputs[k].path, run, names[k]));
    if (resumed_step > 0) TUTTI_TRY(go_on(m, run, resumed_step));
    for (int k = 0; k < KINDS; k++) TUTTI_TRY(open_one(&m->outputs[k], resumed_step == 0));
    if (resumed_step == 0) tutti_metrics_title_csv(&m->outputs[CSV].waits);
    return tutti_metrics_flush(m);
}

tutti_status tutti_metrics_open(tutti_metrics **out, const char *run, int64_t resumed_step,
                                const tutti_log *log)
{
    tutti_metrics *m = NULL;
    TUTTI_TRY(tutti_alloc(&m, 1, sizeof *m));
    m->log = log;
    for (int k = 0; k < KINDS; k++) m->outputs[k].fd = -1;
    const tutti_status s = open_both(m, run, resumed_step);
    if (s) tutti_metrics_close(&m);
    else *out = m;
    return s;
}

void tutti_metrics_close(tutti_metrics **metrics)
{
    if (!*metrics) return;
    for (int k = 0; k < KINDS; k++) {
        output *o = &(*metrics)->outputs[k];
        if (o->fd >= 0) close(o->fd);
        tutti_string_deinit(&o->waits);
    }
    tutti_free(*metrics);
    *metrics = NULL;
}

/* ---- Writing ------------------------------------------------------------------------------ */

/* Takes the beginning of a line back from the end of the file, of 'done' bytes just written:
 * readers see whole lines. Gives how many stay. */
static size_t cut_to_lines(const output *o, size_t done)
{
    size_t whole = done;
    while (whole > 0 && o->waits.data[whole - 1] != '\n') whole--;
    const off_t end = lseek(o->fd, 0, SEEK_END);
    return ftruncate(o->fd, end - (off_t)(done - whole)) ? done : whole;
}

/* Writes as much of what waits as the disk takes. */
static tutti_status flush(output *o)
{
    size_t done = 0;
    ssize_t n = 0;
    TUTTI_TRY(tutti_string_status(&o->waits));
    while (done < o->waits.length) {
        n = write(o->fd, o->waits.data + done, o->waits.length - done);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) break;
        done += (size_t)n;
    }
    const tutti_status s = n < 0 ? tutti_file_failure("write", o->path) : TUTTI_OK;
    if (s != TUTTI_OK && done) done = cut_to_lines(o, done);
    o->waits.length -= done;
    if (done) memmove(o->waits.data, o->waits.data + done, o->waits.length + 1);
    return s;
}

tutti_status tutti_metrics_flush(tutti_metrics *metrics)
{
    if (!metrics) return TUTTI_OK;
    for (int k = 0; k < KINDS; k++) TUTTI_TRY(flush(&metrics->outputs[k]));
    const output *o = &metrics->outputs[JSONL];
    if (o->lost)
        return tutti_fail(TUTTI_DISK_FULL, "%lld rows of '%s' are lost: the disk was full",
                          (long long)o->lost, o->path);
    return TUTTI_OK;
}

/* After a line was put behind what waits. */
static void try_to_write(tutti_metrics *m)
{
    const bool failed = m->fails;
    m->fails = tutti_metrics_flush(m) != TUTTI_OK;
    if (m->fails && !failed)
        tutti_warn(m->log,
                   "%s; training goes on, and rows wait in memory until they can be written",
                   tutti_message());
    if (!m->fails && failed) tutti_info(m->log, "metrics are written again");
}

static bool has_room(output *o)
{
    const bool fits = o->waits.length < MOST_WAITING;
    if (!fits) o->lost++;
    return fits;
}

void tutti_metrics_write(tutti_metrics *metrics, const tutti_metrics_row *row)
{
    output *jsonl = &metrics->outputs[JSONL], *csv = &metrics->outputs[CSV];
    if (has_room(jsonl)) tutti_metrics_row_json(&jsonl->waits, row);
    if (has_room(csv)) tutti_metrics_row_csv(&csv->waits, row);
    try_to_write(metrics);
}

void tutti_metrics_write_json(tutti_metrics *metrics, int64_t step, const char *phase,
                              const char *fields)
{
    output *o = &metrics->outputs[JSONL];
    if (has_room(o)) tutti_metrics_fields_json(&o->waits, step, phase, fields);
    try_to_write(metrics);
}

tutti_status tutti_metrics_sync(tutti_metrics *metrics)
{
    if (!metrics) return TUTTI_OK;
    const output *o = &metrics->outputs[JSONL]; /* the other is made from it */
    return fdatasync(o->fd) ? tutti_file_failure("write to the disk", o->path) : TUTTI_OK;
}
