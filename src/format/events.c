#define _GNU_SOURCE
#include "format/events.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"
#include "base/memory.h"
#include "format/file.h"
#include "format/json.h"

enum { PATH_BYTES = 4096, MOST_WAITING = 16 << 20 };

struct tutti_events {
    char path[PATH_BYTES];
    int fd;
    tutti_string waits;  /* whole records, but for those bytes of the first that are in the file */
    tutti_string record; /* being made */
    tutti_string value;  /* likewise, a message in it */
    const tutti_log *log;
    bool fails; /* to write, and has said so */
};

/* ---- records ---- */

static uint32_t crc32c(const uint8_t *bytes, size_t count)
{
    uint32_t crc = ~0u;
    for (size_t i = 0; i < count; i++) {
        crc ^= bytes[i];
        for (int bit = 0; bit < 8; bit++) crc = crc >> 1 ^ (crc & 1 ? 0x82f63b78u : 0);
    }
    return ~crc;
}

uint32_t tutti_masked_crc32c(const void *bytes, size_t count)
{
    const uint32_t crc = crc32c(bytes, count);
    return (crc >> 15 | crc << 17) + 0xa282ead8u;
}

static void put_little(tutti_string *s, uint64_t value, int bytes)
{
    for (int i = 0; i < bytes; i++) {
        const char byte = (char)(value >> 8 * i);
        tutti_string_append(s, &byte, 1);
    }
}

/* Moves what was made to what waits. */
static void end_record(tutti_events *e)
{
    tutti_string *r = &e->record, *to = &e->waits;
    uint8_t length[8];
    for (int i = 0; i < 8; i++) length[i] = (uint8_t)((uint64_t)r->length >> 8 * i);
    if (tutti_string_status(r) == TUTTI_OK && to->length < MOST_WAITING) {
        tutti_string_append(to, (const char *)length, sizeof length);
        put_little(to, tutti_masked_crc32c(length, sizeof length), 4);
        tutti_string_append(to, r->data, r->length);
        put_little(to, tutti_masked_crc32c(r->data, r->length), 4);
    }
    tutti_string_clear(r);
}

/* ---- protobuf ---- */

enum wire { VARINT, EIGHT_BYTES, DELIMITED, FOUR_BYTES = 5 };

static void put_varint(tutti_string *s, uint64_t value)
{
    for (; value > 0x7f; value >>= 7) put_little(s, (value & 0x7f) | 0x80, 1);
    put_little(s, value, 1);
}

static void put_tag(tutti_string *s, unsigned field, enum wire wire)
{
    put_varint(s, field << 3 | wire);
}

static void put_bytes(tutti_string *s, unsigned field, const char *bytes, size_t count)
{
    put_tag(s, field, DELIMITED);
    put_varint(s, count);
    tutti_string_append(s, bytes, count);
}

static void put_float(tutti_string *s, unsigned field, float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    put_tag(s, field, FOUR_BYTES);
    put_little(s, bits, 4);
}

/* The two fields that all events have. */
static void begin_event(tutti_events *e, int64_t step)
{
    struct timespec now;
    uint64_t bits;
    clock_gettime(CLOCK_REALTIME, &now);
    const double seconds = (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
    memcpy(&bits, &seconds, sizeof bits);
    put_tag(&e->record, 1, EIGHT_BYTES);
    put_little(&e->record, bits, 8);
    if (!step) return;
    put_tag(&e->record, 2, VARINT);
    put_varint(&e->record, (uint64_t)step);
}

void tutti_events_scalar(tutti_events *e, int64_t step, const char *tag, double value)
{
    char summary[256];
    if (isnan(value)) return;
    tutti_string *v = &e->value;
    tutti_string_clear(v);
    put_bytes(v, 1, tag, strlen(tag));
    put_float(v, 2, (float)value);
    if (tutti_string_status(v) || v->length + 8 > sizeof summary) return;
    const size_t length = v->length;
    memcpy(summary, v->data, length);
    tutti_string_clear(v);
    put_bytes(v, 1, summary, length);
    begin_event(e, step);
    put_bytes(&e->record, 5, v->data, v->length);
    end_record(e);
}

/* ---- the file ---- */

static void put_beginning(tutti_events *e, int64_t done)
{
    static const char version[] = "brain.Event:2", start[] = {1 << 3 | VARINT, 1};
    begin_event(e, 0);
    put_bytes(&e->record, 3, version, sizeof version - 1);
    end_record(e);
    if (!done) return;
    begin_event(e, done + 1);
    put_bytes(&e->record, 7, start, sizeof start);
    end_record(e);
}

/* TensorBoard reads files in the order of their names. */
static tutti_status set_path(tutti_events *e, const char *run, int64_t done)
{
    char host[64] = "host";
    gethostname(host, sizeof host - 1);
    const int n = snprintf(e->path, PATH_BYTES, "%s/events.out.tfevents.%010lld.%.63s.%d.%lld", run,
                           (long long)time(NULL), host, (int)getpid(), (long long)done);
    if (n >= PATH_BYTES) return tutti_fail(TUTTI_ARGUMENT, "the path '%.100s...' is too long", run);
    return TUTTI_OK;
}

static tutti_status write_waiting(tutti_events *e)
{
    tutti_string *w = &e->waits;
    TUTTI_TRY(tutti_string_status(w));
    while (w->length) {
        const ssize_t n = write(e->fd, w->data, w->length);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return tutti_file_failure("write", e->path);
        w->length -= (size_t)n;
        memmove(w->data, w->data + n, w->length + 1);
    }
    return TUTTI_OK;
}

void tutti_events_flush(tutti_events *e)
{
    const bool failed = e->fails;
    e->fails = write_waiting(e) != TUTTI_OK;
    if (e->fails && !failed)
        tutti_warn(e->log, "%s; training goes on, and TensorBoard's events wait in memory",
                   tutti_message());
}

tutti_status tutti_events_open(tutti_events **out, const char *run, int64_t done,
                               const tutti_log *log)
{
    tutti_events *e = NULL;
    TUTTI_TRY(tutti_alloc(&e, 1, sizeof *e));
    e->log = log;
    e->fd = -1;
    tutti_status s = set_path(e, run, done);
    if (s == TUTTI_OK && (e->fd = open(e->path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666)) < 0)
        s = tutti_file_failure("create", e->path);
    if (s == TUTTI_OK) {
        put_beginning(e, done);
        tutti_events_flush(e);
        *out = e;
    } else tutti_events_close(&e);
    return s;
}

void tutti_events_close(tutti_events **events)
{
    tutti_events *e = *events;
    if (!e) return;
    if (e->fd >= 0) tutti_events_flush(e);
    if (e->fd >= 0) close(e->fd);
    tutti_string_deinit(&e->waits);
    tutti_string_deinit(&e->record);
    tutti_string_deinit(&e->value);
    tutti_free(e);
    *events = NULL;
}
