/* A tensor's values: bytes as they are in memory, numbers in a list, or a range of a file beside
 * the model. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "format/file.h"
#include "format/onnx.h"

enum { LONGEST_PATH = 4096 };

/* A type, the bytes of an element, and the field that lists its numbers. */
typedef struct type_row {
    int type, bytes, list;
    bool is_real;
} type_row;

enum { FLOATS = 4, INT32S = 5, INT64S = 7, DOUBLES = 10 };

static const type_row types[] = {
    {TUTTI_ONNX_FLOAT, 4, FLOATS, true},   {TUTTI_ONNX_DOUBLE, 8, DOUBLES, true},
    {TUTTI_ONNX_FLOAT16, 2, INT32S, true}, {TUTTI_ONNX_BFLOAT16, 2, INT32S, true},
    {TUTTI_ONNX_INT64, 8, INT64S, false},  {TUTTI_ONNX_INT32, 4, INT32S, false},
    {TUTTI_ONNX_INT8, 1, INT32S, false},   {TUTTI_ONNX_UINT8, 1, INT32S, false},
    {TUTTI_ONNX_BOOL, 1, INT32S, false},   {0, 0, 0, false},
};

static const type_row *row_of(const tutti_onnx_tensor *t)
{
    const type_row *row = types;
    while (row->type && row->type != t->type) row++;
    return row;
}

/* ---- what it is ---- */

static tutti_status add_dim(const tutti_onnx *m, tutti_onnx_tensor *t, uint64_t size)
{
    if (t->dims == TUTTI_ONNX_MAX_DIMS)
        return tutti_onnx_damaged(m->path, "a tensor has too many dimensions");
    t->shape[t->dims++] = (int64_t)size;
    return TUTTI_OK;
}

tutti_status tutti_onnx_read_tensor(const tutti_onnx *model, tutti_bytes message,
                                    tutti_onnx_tensor *t)
{
    tutti_wire wire = {message, false};
    tutti_field f;
    uint64_t size;
    t->message = message;
    while (tutti_wire_next(&wire, &f)) {
        tutti_wire packed = {f.bytes, false};
        if (f.number == 2 && f.type == TUTTI_WIRE_VARINT) t->type = (int)(f.value & 255);
        if (f.number == 1 && f.type == TUTTI_WIRE_VARINT) TUTTI_TRY(add_dim(model, t, f.value));
        while (f.number == 1 && f.type == TUTTI_WIRE_BYTES && tutti_wire_varint(&packed, &size))
            TUTTI_TRY(add_dim(model, t, size));
    }
    return wire.is_damaged ? tutti_onnx_damaged(model->path, "a tensor cannot be read") : TUTTI_OK;
}

bool tutti_onnx_is_real(const tutti_onnx_tensor *tensor)
{
    return row_of(tensor)->is_real;
}

int64_t tutti_onnx_elements(const tutti_onnx_tensor *t)
{
    int64_t count = 1;
    for (int i = 0; i < t->dims; i++) {
        if (t->shape[i] < 0 || t->shape[i] > INT32_MAX) return -1;
        count *= t->shape[i];
        if (count > INT32_MAX) return -1;
    }
    return count;
}

/* ---- where its values are ---- */

typedef struct place {
    tutti_bytes raw; /* as in memory */
    bool is_external;
    char location[LONGEST_PATH];
    int64_t offset, length; /* of the file; -1: not said */
} place;

static tutti_status damaged(const tutti_onnx *m, const tutti_onnx_tensor *t, const char *what)
{
    return tutti_fail(TUTTI_CHECKPOINT, "'%s': the constant '%s' %s", m->path,
                      tutti_onnx_name(m, t->name), what);
}

/* A number in a text. */
static int64_t number_in(tutti_bytes b)
{
    char text[32] = "", *end;
    if (b.length >= sizeof text || !b.length) return -2;
    memcpy(text, b.start, b.length);
    errno = 0;
    const long long value = strtoll(text, &end, 10);
    return *end || errno || value < 0 ? -2 : value;
}

static void read_external(tutti_bytes message, place *p)
{
    tutti_wire wire = {message, false};
    tutti_field f;
    tutti_bytes key = {0}, value = {0};
    while (tutti_wire_next(&wire, &f)) {
        if (f.number == 1) key = f.bytes;
        if (f.number == 2) value = f.bytes;
    }
    if (key.length == 8 && !memcmp(key.start, "location", 8) && value.length < LONGEST_PATH)
        snprintf(p->location, LONGEST_PATH, "%.*s", (int)value.length, (const char *)value.start);
    if (key.length == 6 && !memcmp(key.start, "offset", 6)) p->offset = number_in(value);
    if (key.length == 6 && !memcmp(key.start, "length", 6)) p->length = number_in(value);
}

static void find_place(const tutti_onnx_tensor *t, place *p)
{
    tutti_wire wire = {t->message, false};
    tutti_field f;
    *p = (place){.length = -1};
    while (tutti_wire_next(&wire, &f)) {
        if (f.number == 9 && f.type == TUTTI_WIRE_BYTES) p->raw = f.bytes;
        if (f.number == 13 && f.type == TUTTI_WIRE_BYTES) read_external(f.bytes, p);
        if (f.number == 14 && f.type == TUTTI_WIRE_VARINT) p->is_external = f.value == 1;
    }
}

/* How many numbers the tensor lists. */
static uint64_t listed(const tutti_onnx_tensor *t, const type_row *row)
{
    tutti_wire wire = {t->message, false};
    tutti_field f;
    uint64_t count = 0, value;
    while (tutti_wire_next(&wire, &f)) {
        tutti_wire packed = {f.bytes, false};
        if (f.number != row->list) continue;
        if (f.type != TUTTI_WIRE_BYTES) count++;
        else if (row->list == FLOATS) count += f.bytes.length / 4;
        else if (row->list == DOUBLES) count += f.bytes.length / 8;
        else
            while (tutti_wire_varint(&packed, &value)) count++;
    }
    return count;
}

/* ---- a file beside the model ---- */

/* Beside the model or below it: no way up, no way out. */
static bool is_inside(const char *location)
{
    if (!*location || *location == '/' || strchr(location, '\\')) return false;
    for (const char *at = location; at; at = strchr(at, '/')) {
        at += *at == '/';
        if (!strncmp(at, "..", 2) && (!at[2] || at[2] == '/')) return false;
    }
    return true;
}

static tutti_status open_external(const tutti_onnx *m, const tutti_onnx_tensor *t, const place *p,
                                  char path[2 * LONGEST_PATH], int *fd)
{
    const char *slash = strrchr(m->path, '/');
    struct stat about;
    if (!is_inside(p->location))
        return tutti_fail(TUTTI_CHECKPOINT,
                          "'%s': the constant '%s' is said to be in '%s': only files beside the "
                          "model are read",
                          m->path, tutti_onnx_name(m, t->name), p->location);
    snprintf(path, 2 * LONGEST_PATH, "%.*s%s", slash ? (int)(slash - m->path + 1) : 0, m->path,
             p->location);
    *fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (*fd >= 0 && !fstat(*fd, &about) && S_ISREG(about.st_mode)) return TUTTI_OK;
    if (*fd >= 0) close(*fd);
    return tutti_fail(TUTTI_IO,
                      "cannot read '%s', where '%s' keeps the constant '%s': both files belong "
                      "together",
                      path, m->path, tutti_onnx_name(m, t->name));
}

/* Reads 'count' bytes, or with out NULL only looks whether they are there. */
static tutti_status read_external_bytes(const tutti_onnx *m, const tutti_onnx_tensor *t,
                                        const place *p, uint64_t count, void *out)
{
    char path[2 * LONGEST_PATH];
    struct stat about = {0};
    int fd = -1;
    if (p->offset < 0 || p->length < -1 || (p->length >= 0 && (uint64_t)p->length != count))
        return damaged(m, t, "has another length in its file than its shape says");
    TUTTI_TRY(open_external(m, t, p, path, &fd));
    tutti_status s = TUTTI_OK;
    if (fstat(fd, &about) || about.st_size < p->offset ||
        (uint64_t)(about.st_size - p->offset) < count)
        s = tutti_fail(TUTTI_CHECKPOINT, "'%s' is too short for the constant '%s' of '%s'", path,
                       tutti_onnx_name(m, t->name), m->path);
    if (s == TUTTI_OK && out)
        s = tutti_file_read_at(fd, path, out, (size_t)count, (uint64_t)p->offset);
    close(fd);
    return s;
}

/* ---- values ---- */

tutti_status tutti_onnx_check_size(const tutti_onnx *m, const tutti_onnx_tensor *t)
{
    const type_row *row = row_of(t);
    const int64_t count = tutti_onnx_elements(t);
    place p;
    find_place(t, &p);
    if (!row->type)
        return tutti_fail(TUTTI_UNSUPPORTED,
                          "'%s': the constant '%s' has numbers of a type (%d) that Tutti does not "
                          "read",
                          m->path, tutti_onnx_name(m, t->name), t->type);
    if (count < 0) return damaged(m, t, "has an impossible shape");
    const uint64_t bytes = (uint64_t)count * (uint64_t)row->bytes;
    if (p.is_external) return read_external_bytes(m, t, &p, bytes, NULL);
    if (p.raw.start ? p.raw.length != bytes : listed(t, row) != (uint64_t)count)
        return damaged(m, t, "has not as many values as its shape says");
    return TUTTI_OK;
}

static float half(uint32_t bits)
{
    const uint32_t sign = (bits & 0x8000) << 16, exponent = bits >> 10 & 31, rest = bits & 1023;
    if (exponent == 31) return tutti_wire_float(sign | 0x7f800000 | rest << 13);
    if (exponent) return tutti_wire_float(sign | (exponent + 112) << 23 | rest << 13);
    const float value = (float)rest * 0x1p-24f;
    return sign ? -value : value;
}

/* An element from its bits. */
static double real_of(int type, uint64_t bits)
{
    switch (type) {
    case TUTTI_ONNX_DOUBLE: return tutti_wire_double(bits);
    case TUTTI_ONNX_FLOAT16: return (double)half((uint32_t)bits & 0xffff);
    case TUTTI_ONNX_BFLOAT16: return (double)tutti_wire_float((bits & 0xffff) << 16);
    default: return (double)tutti_wire_float(bits);
    }
}

static int64_t integer_of(int type, uint64_t bits)
{
    switch (type) {
    case TUTTI_ONNX_INT32: return (int32_t)(uint32_t)bits;
    case TUTTI_ONNX_INT8: return (int8_t)(uint8_t)bits;
    case TUTTI_ONNX_UINT8: return (uint8_t)bits;
    case TUTTI_ONNX_BOOL: return (bits & 255) != 0;
    default: return (int64_t)bits;
    }
}

/* Where values go: one of the two. */
typedef struct sink {
    float *reals;
    int64_t *integers;
    int type;
    int64_t at, room;
} sink;

static void put(sink *to, uint64_t bits)
{
    if (to->at == to->room) return;
    if (to->reals) to->reals[to->at++] = (float)real_of(to->type, bits);
    else to->integers[to->at++] = integer_of(to->type, bits);
}

static void put_raw(sink *to, const unsigned char *bytes, size_t count, int size)
{
    if (to->reals && to->type == TUTTI_ONNX_FLOAT && to->at == 0 &&
        count == 4 * (uint64_t)to->room) {
        if (count) memcpy(to->reals, bytes, count); /* all of them, as they are */
        to->at = to->room;
        return;
    }
    for (size_t i = 0; i + (size_t)size <= count; i += (size_t)size) {
        uint64_t bits = 0;
        memcpy(&bits, bytes + i, (size_t)size);
        put(to, bits);
    }
}

static void put_listed(sink *to, const tutti_onnx_tensor *t, const type_row *row)
{
    tutti_wire wire = {t->message, false};
    tutti_field f;
    uint64_t value;
    while (tutti_wire_next(&wire, &f)) {
        tutti_wire packed = {f.bytes, false};
        if (f.number != row->list) continue;
        if (f.type != TUTTI_WIRE_BYTES) put(to, f.value);
        else if (row->list == FLOATS) put_raw(to, f.bytes.start, f.bytes.length, 4);
        else if (row->list == DOUBLES) put_raw(to, f.bytes.start, f.bytes.length, 8);
        else
            while (tutti_wire_varint(&packed, &value)) put(to, value);
    }
}

static tutti_status put_external(sink *to, const tutti_onnx *m, const tutti_onnx_tensor *t,
                                 const place *p, const type_row *row)
{
    const uint64_t bytes = (uint64_t)to->room * (uint64_t)row->bytes;
    unsigned char *raw = NULL;
    TUTTI_TRY(tutti_alloc(&raw, (size_t)bytes, 1));
    const tutti_status s = read_external_bytes(m, t, p, bytes, raw);
    if (s == TUTTI_OK) put_raw(to, raw, (size_t)bytes, row->bytes);
    tutti_free(raw);
    return s;
}

static tutti_status read_values(const tutti_onnx *m, const tutti_onnx_tensor *t, sink to)
{
    const type_row *row = row_of(t);
    place p;
    TUTTI_TRY(tutti_onnx_check_size(m, t));
    TUTTI_ASSERT(row->is_real == !!to.reals || !tutti_onnx_elements(t));
    find_place(t, &p);
    to.type = t->type;
    to.room = tutti_onnx_elements(t);
    if (p.is_external) return put_external(&to, m, t, &p, row);
    if (p.raw.start) put_raw(&to, p.raw.start, p.raw.length, row->bytes);
    else put_listed(&to, t, row);
    return TUTTI_OK;
}

tutti_status tutti_onnx_reals(const tutti_onnx *model, const tutti_onnx_tensor *tensor, float *out)
{
    return read_values(model, tensor, (sink){.reals = out});
}

tutti_status tutti_onnx_integers(const tutti_onnx *model, const tutti_onnx_tensor *tensor,
                                 int64_t *out)
{
    return read_values(model, tensor, (sink){.integers = out});
}
