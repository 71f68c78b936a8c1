/* The format is the JSON of chrome://tracing, which ui.perfetto.dev reads, too: an array of
 * events; ph X is a span with a start and a duration in microseconds, ph M names a process or
 * a thread. A piece is that array without its brackets. */
#define _GNU_SOURCE
#include "format/trace.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "format/file.h"
#include "format/json.h"

enum { PATH_BYTES = 4096, COPY_BYTES = 1 << 16, FLUSH_BYTES = 1 << 16 };

typedef struct event {
    const char *what, *name;
    int64_t step, bytes;
    double start, end;
} event;

typedef struct lane {
    event *events;
    int64_t recorded; /* including those there was no room for */
} lane;

struct tutti_trace {
    int rank, room;
    lane lanes[TUTTI_TRACE_LANES];
};

static const char *const lane_names[TUTTI_TRACE_LANES] = {"computing", "communication", "data"};

tutti_status tutti_trace_create(tutti_trace **out, int rank, int events)
{
    tutti_trace *t = NULL;
    tutti_status s = tutti_alloc(&t, 1, sizeof *t);
    if (s) return s;
    t->rank = rank;
    t->room = events;
    for (int i = 0; i < TUTTI_TRACE_LANES && !s; i++)
        s = tutti_alloc(&t->lanes[i].events, (size_t)events, sizeof(event));
    if (s) tutti_trace_destroy(&t);
    else *out = t;
    return s;
}

void tutti_trace_destroy(tutti_trace **trace)
{
    if (!*trace) return;
    for (int i = 0; i < TUTTI_TRACE_LANES; i++) tutti_free((*trace)->lanes[i].events);
    tutti_free(*trace);
    *trace = NULL;
}

void tutti_trace_span(tutti_trace *trace, tutti_trace_lane lane_index, const char *what,
                      const char *name, int64_t step, int64_t bytes, double start, double end)
{
    if (!trace) return;
    lane *l = &trace->lanes[lane_index];
    if (l->recorded < trace->room)
        l->events[l->recorded] = (event){what, name, step, bytes, start, end};
    l->recorded++;
}

/* ---- The piece of a rank ------------------------------------------------------------------ */

static tutti_status piece_path(char out[PATH_BYTES], const char *path, int rank)
{
    if (snprintf(out, PATH_BYTES, "%s.rank%05d", path, rank) >= PATH_BYTES)
        return tutti_fail(TUTTI_ARGUMENT, "the path '%.100s...' is too long", path);
    return TUTTI_OK;
}

/* {"name":"process_name","ph":"M","pid":3,"tid":0,"args":{"name":"rank 3"}} */
static void put_name(tutti_string *s, const char *what, int pid, int tid, const char *name)
{
    tutti_string_printf(s, "{\"name\":\"%s\",\"ph\":\"M\",\"pid\":%d,\"tid\":%d,\"args\":{", what,
                        pid, tid);
    tutti_json_field_string(s, "name", name);
    tutti_string_printf(s, "}}");
}

static void put_order(tutti_string *s, const char *what, int pid, int tid, int index)
{
    tutti_string_printf(s,
                        ",\n{\"name\":\"%s\",\"ph\":\"M\",\"pid\":%d,\"tid\":%d,"
                        "\"args\":{\"sort_index\":%d}}",
                        what, pid, tid, index);
}

static void put_event(tutti_string *s, const event *e, int pid, int tid, double origin)
{
    char name[256];
    snprintf(name, sizeof name, "%s%s%s", e->what, e->name ? " " : "", e->name ? e->name : "");
    tutti_string_printf(s, ",\n{");
    tutti_json_field_string(s, "name", name);
    tutti_json_field_string(s, "cat", e->what);
    tutti_string_printf(s,
                        ",\"ph\":\"X\",\"pid\":%d,\"tid\":%d,\"ts\":%.3f,\"dur\":%.3f,"
                        "\"args\":{\"step\":%lld",
                        pid, tid, (e->start - origin) * 1e6, (e->end - e->start) * 1e6,
                        (long long)e->step);
    if (e->bytes >= 0) tutti_json_field_int(s, "bytes", e->bytes);
    tutti_string_printf(s, "}}");
}

/* A mark where a lane was full, so that an empty track is not taken for idleness. */
static void put_dropped(tutti_string *s, const tutti_trace *t, int tid, double origin)
{
    const lane *l = &t->lanes[tid];
    if (l->recorded <= t->room || t->room == 0) return;
    tutti_string_printf(s,
                        ",\n{\"name\":\"%lld later events dropped\",\"ph\":\"i\",\"s\":\"t\","
                        "\"pid\":%d,\"tid\":%d,\"ts\":%.3f}",
                        (long long)(l->recorded - t->room), t->rank, tid,
                        (l->events[t->room - 1].end - origin) * 1e6);
}

static tutti_status flush(tutti_string *s, FILE *f, const char *path)
{
    TUTTI_TRY(tutti_string_status(s));
    if (s->length && fwrite(s->data, s->length, 1, f) != 1)
        return tutti_file_failure("write", path);
    tutti_string_clear(s);
    return TUTTI_OK;
}

static tutti_status write_lane(const tutti_trace *t, int tid, double origin, tutti_string *s,
                               FILE *f, const char *path)
{
    const lane *l = &t->lanes[tid];
    tutti_string_append(s, ",\n", 2);
    put_name(s, "thread_name", t->rank, tid, lane_names[tid]);
    put_order(s, "thread_sort_index", t->rank, tid, tid);
    for (int64_t i = 0; i < l->recorded && i < t->room; i++) {
        put_event(s, &l->events[i], t->rank, tid, origin);
        if (s->length > FLUSH_BYTES) TUTTI_TRY(flush(s, f, path));
    }
    put_dropped(s, t, tid, origin);
    return flush(s, f, path);
}

static tutti_status close_written(FILE *f, const char *path, tutti_status s)
{
    if (fclose(f) && !s) return tutti_file_failure("write", path);
    return s;
}

tutti_status tutti_trace_write(const tutti_trace *trace, const char *path, double origin)
{
    char piece[PATH_BYTES], name[32];
    tutti_string text = {0};
    TUTTI_TRY(piece_path(piece, path, trace->rank));
    FILE *f = fopen(piece, "wb");
    if (!f) return tutti_file_failure("create", piece);
    snprintf(name, sizeof name, "rank %d", trace->rank);
    put_name(&text, "process_name", trace->rank, 0, name);
    put_order(&text, "process_sort_index", trace->rank, 0, trace->rank);
    tutti_status s = TUTTI_OK;
    for (int tid = 0; tid < TUTTI_TRACE_LANES && !s; tid++)
        s = write_lane(trace, tid, origin, &text, f, piece);
    tutti_string_deinit(&text);
    return close_written(f, piece, s);
}

/* ---- All together ------------------------------------------------------------------------- */

static tutti_status copy_piece(FILE *to, const char *to_path, const char *piece)
{
    char bytes[COPY_BYTES];
    FILE *from = fopen(piece, "rb");
    if (!from)
        return tutti_fail(TUTTI_IO, "cannot open '%s', the trace of a rank: %s", piece,
                          strerror(errno));
    tutti_status s = TUTTI_OK;
    for (size_t n; !s && (n = fread(bytes, 1, sizeof bytes, from)) > 0;)
        if (fwrite(bytes, 1, n, to) != n) s = tutti_file_failure("write", to_path);
    if (!s && ferror(from)) s = tutti_fail(TUTTI_IO, "cannot read '%s'", piece);
    fclose(from);
    return s;
}

tutti_status tutti_trace_join(const char *path, int ranks)
{
    char piece[PATH_BYTES];
    FILE *f = fopen(path, "wb");
    if (!f) return tutti_file_failure("create", path);
    tutti_status s = TUTTI_OK;
    fputs("{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n", f);
    for (int r = 0; r < ranks && !s; r++) {
        if (r > 0) fputs(",\n", f);
        s = piece_path(piece, path, r);
        if (!s) s = copy_piece(f, path, piece);
    }
    fputs("\n]}\n", f);
    s = close_written(f, path, s);
    for (int r = 0; r < ranks && !s; r++) {
        s = piece_path(piece, path, r);
        if (!s && remove(piece)) s = tutti_fail(TUTTI_IO, "cannot remove '%s'", piece);
    }
    return s;
}
