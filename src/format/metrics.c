#define _GNU_SOURCE
#include "format/metrics.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "format/json.h"

enum { DIGITS = 9, PATH_BYTES = 4096 };

enum group { SAME, TIME };
enum kind { JSONL, CSV, KINDS };

/* The values of a row in the order of the columns: those of SAME, then those of TIME. */
static const struct column {
    const char *name;
    enum group group;
    size_t offset;
} columns[] = {
#define X(name, group) {#name, group, offsetof(tutti_metrics_row, name)},
    TUTTI_METRICS_MAP(X)
#undef X
};
enum { COLUMNS = sizeof columns / sizeof *columns };

/* How a line of each file begins, up to its step. */
static const struct {
    const char *name, *before_step;
} files[KINDS] = {{"metrics.jsonl", "{\"step\":"}, {"metrics.csv", ""}};

struct tutti_metrics {
    char path[KINDS][PATH_BYTES];
    int fd[KINDS];
    tutti_string line;
};

tutti_metrics_row tutti_metrics_row_empty(int64_t step, double epoch, const char *phase)
{
    return (tutti_metrics_row){.step = step,
                               .epoch = epoch,
                               .phase = phase,
#define X(name, group) .name = NAN,
                               TUTTI_METRICS_MAP(X)
#undef X
    };
}

static double value_of(const tutti_metrics_row *row, const struct column *column)
{
    double value;
    memcpy(&value, (const char *)row + column->offset, sizeof value);
    return value;
}

/* ---- Opening ------------------------------------------------------------------------------ */

/* Is it a whole line of a step up to 'last', or the head of a table? */
static bool stays(const char *line, ssize_t length, enum kind kind, int64_t last)
{
    const char *before = files[kind].before_step;
    char *end = NULL;
    if (length < 1 || line[length - 1] != '\n') return false;
    if (kind == CSV && strncmp(line, "step,", 5) == 0) return true;
    if (strncmp(line, before, strlen(before)) != 0) return false;
    const char *digits = line + strlen(before);
    const long long step = strtoll(digits, &end, 10);
    return end != digits && *end == ',' && step <= last;
}

/* Cuts a file off at the first line that does not stay. A missing file stays missing. */
static tutti_status cut_off(const char *path, enum kind kind, int64_t last)
{
    FILE *f = fopen(path, "r");
    if (!f && errno == ENOENT) return TUTTI_OK;
    if (!f) return tutti_fail(TUTTI_IO, "cannot open '%s': %s", path, strerror(errno));
    char *line = NULL;
    size_t room = 0;
    off_t keep = 0;
    for (ssize_t n; (n = getline(&line, &room, f)) > 0 && stays(line, n, kind, last);) keep += n;
    free(line);
    fclose(f);
    if (truncate(path, keep))
        return tutti_fail(TUTTI_IO, "cannot cut off '%s': %s", path, strerror(errno));
    return TUTTI_OK;
}

static tutti_status append_line(tutti_metrics *m, enum kind kind)
{
    TUTTI_TRY(tutti_string_status(&m->line));
    const ssize_t n = write(m->fd[kind], m->line.data, m->line.length);
    if (n != (ssize_t)m->line.length)
        return tutti_fail(TUTTI_IO, "cannot write to '%s': %s", m->path[kind],
                          n < 0 ? strerror(errno) : "the disk is full");
    return TUTTI_OK;
}

static void write_title(tutti_string *line)
{
    tutti_string_clear(line);
    tutti_string_printf(line, "step,epoch,phase");
    for (int g = SAME; g <= TIME; g++)
        for (int i = 0; i < COLUMNS; i++)
            if (columns[i].group == (enum group)g)
                tutti_string_printf(line, ",%s", columns[i].name);
    tutti_string_append(line, "\n", 1);
}

static tutti_status open_one(tutti_metrics *m, enum kind kind, const char *run,
                             int64_t resumed_step)
{
    char *path = m->path[kind];
    if (snprintf(path, PATH_BYTES, "%s/%s", run, files[kind].name) >= PATH_BYTES)
        return tutti_fail(TUTTI_ARGUMENT, "the path '%.100s...' is too long", run);
    if (resumed_step > 0) TUTTI_TRY(cut_off(path, kind, resumed_step));
    const int fresh = resumed_step > 0 ? 0 : O_TRUNC;
    m->fd[kind] = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | fresh, 0666);
    if (m->fd[kind] < 0) return tutti_fail(TUTTI_IO, "cannot open '%s': %s", path, strerror(errno));
    if (kind == JSONL || lseek(m->fd[kind], 0, SEEK_END) > 0) return TUTTI_OK;
    write_title(&m->line);
    return append_line(m, kind);
}

tutti_status tutti_metrics_open(tutti_metrics **out, const char *run, int64_t resumed_step)
{
    tutti_metrics *m = NULL;
    tutti_status s = tutti_alloc(&m, 1, sizeof *m);
    if (s) return s;
    for (int k = 0; k < KINDS; k++) m->fd[k] = -1;
    for (int k = 0; k < KINDS && !s; k++) s = open_one(m, (enum kind)k, run, resumed_step);
    if (s) tutti_metrics_close(&m);
    else *out = m;
    return s;
}

void tutti_metrics_close(tutti_metrics **metrics)
{
    if (!*metrics) return;
    for (int k = 0; k < KINDS; k++)
        if ((*metrics)->fd[k] >= 0) close((*metrics)->fd[k]);
    tutti_string_deinit(&(*metrics)->line);
    tutti_free(*metrics);
    *metrics = NULL;
}

tutti_status tutti_metrics_sync(tutti_metrics *metrics)
{
    for (int k = 0; k < KINDS; k++)
        if (fdatasync(metrics->fd[k]))
            return tutti_fail(TUTTI_IO, "cannot write '%s' to the disk: %s", metrics->path[k],
                              strerror(errno));
    return TUTTI_OK;
}

/* ---- Writing ------------------------------------------------------------------------------ */

static void put_fields(tutti_string *line, const tutti_metrics_row *row, enum group group)
{
    for (int i = 0; i < COLUMNS; i++) {
        const double value = value_of(row, &columns[i]);
        if (columns[i].group == group && !isnan(value))
            tutti_json_field_real(line, columns[i].name, value, DIGITS);
    }
}

static void begin_object(tutti_string *line, int64_t step)
{
    tutti_string_clear(line);
    tutti_string_append(line, "{", 1);
    tutti_json_field_int(line, "step", step);
}

static void write_object(tutti_string *line, const tutti_metrics_row *row)
{
    begin_object(line, row->step);
    tutti_json_field_real(line, "epoch", row->epoch, DIGITS);
    tutti_json_field_string(line, "phase", row->phase);
    put_fields(line, row, SAME);
    tutti_json_key(line, "time");
    tutti_string_append(line, "{", 1);
    put_fields(line, row, TIME);
    tutti_string_append(line, "}}\n", 3);
}

static void write_record(tutti_string *line, const tutti_metrics_row *row)
{
    tutti_string_clear(line);
    tutti_string_printf(line, "%lld,%.*g,%s", (long long)row->step, DIGITS, row->epoch, row->phase);
    for (int g = SAME; g <= TIME; g++)
        for (int i = 0; i < COLUMNS; i++) {
            if (columns[i].group != (enum group)g) continue;
            const double value = value_of(row, &columns[i]);
            tutti_string_append(line, ",", 1);
            if (!isnan(value)) tutti_string_printf(line, "%.*g", DIGITS, value);
        }
    tutti_string_append(line, "\n", 1);
}

tutti_status tutti_metrics_write(tutti_metrics *metrics, const tutti_metrics_row *row)
{
    write_object(&metrics->line, row);
    TUTTI_TRY(append_line(metrics, JSONL));
    write_record(&metrics->line, row);
    return append_line(metrics, CSV);
}

tutti_status tutti_metrics_write_json(tutti_metrics *metrics, int64_t step, const char *phase,
                                      const char *fields)
{
    begin_object(&metrics->line, step);
    tutti_json_field_string(&metrics->line, "phase", phase);
    tutti_string_printf(&metrics->line, ",%s}\n", fields);
    return append_line(metrics, JSONL);
}
