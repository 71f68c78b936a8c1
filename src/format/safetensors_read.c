#define _GNU_SOURCE
#include "format/safetensors.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "format/file.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "numbers in files are little-endian");

/* Like other readers: a header of 100 MB is not a header. */
enum { LENGTH_BYTES = 8, LONGEST_HEADER = 100 * 1000 * 1000, CHUNK = 2048 };

struct tutti_safetensors {
    char *path;
    int fd;
    uint64_t bytes;      /* of the file */
    json_t *header;      /* owns the names */
    uint64_t data_begin; /* first byte after the header */
    tutti_tensor_info *tensors;
    int count;
};

/* ---- Types -------------------------------------------------------------------------------- */

/* Converts 'count' elements to floats; the bytes need not be aligned. */
typedef void convert_fn(float *to, const unsigned char *from, int count);

static void from_f32(float *to, const unsigned char *from, int count)
{
    memcpy(to, from, (size_t)count * sizeof *to);
}

static void from_f64(float *to, const unsigned char *from, int count)
{
    for (int i = 0; i < count; i++) {
        double value;
        memcpy(&value, from + 8 * i, sizeof value);
        to[i] = (float)value;
    }
}

static void from_i64(float *to, const unsigned char *from, int count)
{
    for (int i = 0; i < count; i++) {
        int64_t value;
        memcpy(&value, from + 8 * i, sizeof value);
        to[i] = (float)value;
    }
}

static void from_bf16(float *to, const unsigned char *from, int count)
{
    for (int i = 0; i < count; i++) {
        const uint32_t bits = (uint32_t)from[2 * i] << 16 | (uint32_t)from[2 * i + 1] << 24;
        memcpy(&to[i], &bits, sizeof bits);
    }
}

/* Half precision: sign, 5 bits of exponent (bias 15), 10 of fraction. */
static float half(uint32_t h)
{
    const uint32_t sign = (h & 0x8000u) << 16, exponent = h >> 10 & 0x1f, fraction = h & 0x3ff;
    float value;
    uint32_t bits =
        exponent == 0x1f ? 0x7f800000u | fraction << 13 : (exponent + 112) << 23 | fraction << 13;
    if (exponent == 0) { /* zero or subnormal: fraction * 2^-24, exact in a float */
        value = (float)fraction * 0x1p-24f;
        memcpy(&bits, &value, sizeof bits);
    }
    bits |= sign;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static void from_f16(float *to, const unsigned char *from, int count)
{
    for (int i = 0; i < count; i++) to[i] = half(from[2 * i] | (uint32_t)from[2 * i + 1] << 8);
}

static const struct {
    const char *name;
    int bytes;
    convert_fn *convert; /* NULL: may be in a file, but is not a weight */
} types[] = {
#define X(name, bytes, convert) {#name, bytes, convert},
    TUTTI_DTYPE_MAP(X)
#undef X
};

/* ---- Header ------------------------------------------------------------------------------- */

static tutti_status bad_tensor(const tutti_safetensors *f, const char *name, const char *why)
{
    return tutti_fail(TUTTI_DATA, "'%s': tensor '%s': %s", f->path, name, why);
}

static tutti_status read_dtype(tutti_dtype *out, const tutti_safetensors *f, const char *name,
                               const json_t *entry)
{
    const char *text = json_string_value(json_object_get(entry, "dtype"));
    if (!text) return bad_tensor(f, name, "has no \"dtype\"");
    for (int i = 0; i < TUTTI_DTYPE_COUNT; i++)
        if (strcmp(types[i].name, text) == 0) {
            *out = (tutti_dtype)i;
            return TUTTI_OK;
        }
    return tutti_fail(TUTTI_DATA, "'%s': tensor '%s': unknown dtype '%s'", f->path, name, text);
}

static tutti_status read_shape(tutti_tensor_spec *spec, const tutti_safetensors *f,
                               const json_t *entry)
{
    const json_t *shape = json_object_get(entry, "shape");
    if (!json_is_array(shape)) return bad_tensor(f, spec->name, "has no \"shape\"");
    if (json_array_size(shape) > TUTTI_TENSOR_MAX_DIMS)
        return bad_tensor(f, spec->name, "has more than 8 dimensions");
    spec->dims = (int)json_array_size(shape);
    int64_t elements = 1;
    for (int d = 0; d < spec->dims; d++) {
        const json_t *extent = json_array_get(shape, (size_t)d);
        spec->shape[d] = json_integer_value(extent);
        if (!json_is_integer(extent) || spec->shape[d] < 0 ||
            (spec->shape[d] > 0 && elements > INT64_MAX / 8 / spec->shape[d]))
            return bad_tensor(f, spec->name, "its shape is not a list of possible sizes");
        elements *= spec->shape[d];
    }
    return TUTTI_OK;
}

static tutti_status read_offsets(tutti_tensor_info *t, const tutti_safetensors *f,
                                 const json_t *entry)
{
    const json_t *offsets = json_object_get(entry, "data_offsets");
    const json_t *begin = json_array_get(offsets, 0), *end = json_array_get(offsets, 1);
    if (json_array_size(offsets) != 2 || !json_is_integer(begin) || !json_is_integer(end))
        return bad_tensor(f, t->spec.name, "has no \"data_offsets\" of two numbers");

    const int64_t first = json_integer_value(begin), last = json_integer_value(end);
    const int64_t data_bytes = (int64_t)(f->bytes - f->data_begin);
    if (first < 0 || last < first || last > data_bytes)
        return tutti_fail(TUTTI_DATA,
                          "'%s': tensor '%s': bytes %" PRId64 " to %" PRId64
                          " are not in the file, which has %" PRId64 " bytes of data",
                          f->path, t->spec.name, first, last, data_bytes);
    const int64_t wanted = tutti_tensor_elements(&t->spec) * types[t->spec.dtype].bytes;
    if (last - first != wanted)
        return tutti_fail(TUTTI_DATA,
                          "'%s': tensor '%s': has %" PRId64 " bytes, but its shape needs %" PRId64,
                          f->path, t->spec.name, last - first, wanted);
    t->begin = f->data_begin + (uint64_t)first;
    t->end = f->data_begin + (uint64_t)last;
    return TUTTI_OK;
}

static tutti_status read_tensor(tutti_tensor_info *t, const tutti_safetensors *f, const char *name,
                                const json_t *entry)
{
    if (!*name) return bad_tensor(f, name, "a tensor needs a name");
    if (!json_is_object(entry)) return bad_tensor(f, name, "is not described by an object");
    t->spec.name = name;
    TUTTI_TRY(read_dtype(&t->spec.dtype, f, name, entry));
    TUTTI_TRY(read_shape(&t->spec, f, entry));
    return read_offsets(t, f, entry);
}

static int by_place(const void *a, const void *b)
{
    const tutti_tensor_info *x = a, *y = b;
    if (x->begin != y->begin) return x->begin < y->begin ? -1 : 1;
    if (x->end != y->end) return x->end < y->end ? -1 : 1;
    return strcmp(x->spec.name, y->spec.name);
}

/* Every byte of the data belongs to exactly one tensor. */
static tutti_status check_places(const tutti_safetensors *f)
{
    uint64_t at = f->data_begin;
    for (int i = 0; i < f->count; i++) {
        const tutti_tensor_info *t = &f->tensors[i];
        if (t->begin != at)
            return bad_tensor(f, t->spec.name,
                              t->begin < at ? "overlaps the tensor before it"
                                            : "leaves a gap after the tensor before it");
        at = t->end;
    }
    if (at != f->bytes)
        return tutti_fail(TUTTI_DATA, "'%s': %" PRIu64 " bytes at the end belong to no tensor",
                          f->path, f->bytes - at);
    return TUTTI_OK;
}

static tutti_status read_metadata(const tutti_safetensors *f, json_t *metadata)
{
    const char *key;
    json_t *value;
    if (!json_is_object(metadata))
        return tutti_fail(TUTTI_DATA, "'%s': its __metadata__ is not an object", f->path);
    json_object_foreach(metadata, key, value)
    {
        if (!json_is_string(value))
            return tutti_fail(TUTTI_DATA, "'%s': '%s' in its __metadata__ is not a text", f->path,
                              key);
    }
    return TUTTI_OK;
}

static tutti_status read_tensors(tutti_safetensors *f)
{
    const char *name;
    json_t *entry;
    TUTTI_TRY(tutti_alloc(&f->tensors, json_object_size(f->header), sizeof *f->tensors));
    json_object_foreach(f->header, name, entry)
    {
        if (strcmp(name, "__metadata__") == 0) TUTTI_TRY(read_metadata(f, entry));
        else TUTTI_TRY(read_tensor(&f->tensors[f->count++], f, name, entry));
    }
    if (f->count) qsort(f->tensors, (size_t)f->count, sizeof *f->tensors, by_place);
    return check_places(f);
}

static tutti_status parse_header(tutti_safetensors *f, const char *text, size_t length)
{
    json_error_t error;
    if (length == 0 || text[0] != '{')
        return tutti_fail(TUTTI_DATA, "'%s' is not a safetensors file: no header", f->path);
    f->header = json_loadb(text, length, JSON_REJECT_DUPLICATES, &error);
    if (!f->header)
        return tutti_fail(TUTTI_DATA, "'%s': header, column %d: %s", f->path, error.column,
                          error.text);
    return read_tensors(f);
}

static tutti_status read_header(tutti_safetensors *f)
{
    unsigned char prefix[LENGTH_BYTES];
    uint64_t length = 0;
    if (f->bytes < LENGTH_BYTES)
        return tutti_fail(TUTTI_DATA, "'%s' is not a safetensors file: it has %" PRIu64 " bytes",
                          f->path, f->bytes);
    TUTTI_TRY(tutti_file_read_at(f->fd, f->path, prefix, sizeof prefix, 0));
    for (int i = 0; i < LENGTH_BYTES; i++) length |= (uint64_t)prefix[i] << (8 * i);
    if (length > LONGEST_HEADER || length > f->bytes - LENGTH_BYTES)
        return tutti_fail(TUTTI_DATA,
                          "'%s' is not a safetensors file, or cut off: its header should have "
                          "%" PRIu64 " bytes, the file has %" PRIu64,
                          f->path, length, f->bytes);
    char *text = NULL;
    TUTTI_TRY(tutti_alloc(&text, (size_t)length + 1, 1));
    f->data_begin = LENGTH_BYTES + length;
    tutti_status s = tutti_file_read_at(f->fd, f->path, text, (size_t)length, LENGTH_BYTES);
    if (!s) s = parse_header(f, text, (size_t)length);
    tutti_free(text);
    return s;
}

/* ---- The file ----------------------------------------------------------------------------- */

static bool ends_in(const char *path, const char *end)
{
    const size_t length = strlen(path), tail = strlen(end);
    return length >= tail && !strcmp(path + length - tail, end);
}

/* What torch.save writes: a zip, or in old versions a pickle. Reading one can run anything. */
static tutti_status refuse_pickle(const tutti_safetensors *f)
{
    unsigned char first[LENGTH_BYTES + 1] = {0};
    const ssize_t have = pread(f->fd, first, sizeof first, 0);
    const bool is_header = have == (ssize_t)sizeof first && first[LENGTH_BYTES] == '{';
    const bool is_zip = !memcmp(first, "PK\3\4", 4), is_pickle = first[0] == 0x80 && first[1] <= 5;
    const bool is_called = ends_in(f->path, ".pth") || ends_in(f->path, ".pt");
    if (is_header || !(is_zip || is_pickle || is_called)) return TUTTI_OK;
    return tutti_fail(TUTTI_DATA,
                      "'%s' is a file of torch.save, which only Python can read; make safetensors "
                      "of it:\n"
                      "  import torch, safetensors.torch\n"
                      "  safetensors.torch.save_file(torch.load('%s', 'cpu', "
                      "weights_only=True), 'x.safetensors')",
                      f->path, f->path);
}

static tutti_status open_file(tutti_safetensors *f, const char *path)
{
    struct stat info;
    TUTTI_TRY(tutti_strdup(&f->path, path));
    f->fd = open(path, O_RDONLY | O_CLOEXEC);
    if (f->fd < 0 || fstat(f->fd, &info))
        return tutti_fail(TUTTI_IO, "cannot open '%s': %s", path, strerror(errno));
    if (!S_ISREG(info.st_mode)) return tutti_fail(TUTTI_IO, "'%s' is not a file", path);
    f->bytes = (uint64_t)info.st_size;
    TUTTI_TRY(refuse_pickle(f));
    return read_header(f);
}

tutti_status tutti_safetensors_open(tutti_safetensors **out, const char *path)
{
    tutti_safetensors *f = NULL;
    tutti_status s = tutti_alloc(&f, 1, sizeof *f);
    if (s) return s;
    f->fd = -1;
    if ((s = open_file(f, path))) tutti_safetensors_close(&f);
    else *out = f;
    return s;
}

void tutti_safetensors_close(tutti_safetensors **file)
{
    if (!*file) return;
    if ((*file)->fd >= 0) close((*file)->fd);
    json_decref((*file)->header);
    tutti_free((*file)->tensors);
    tutti_free((*file)->path);
    tutti_free(*file);
    *file = NULL;
}

int tutti_safetensors_count(const tutti_safetensors *file)
{
    return file->count;
}

const tutti_tensor_info *tutti_safetensors_tensor(const tutti_safetensors *file, int tensor)
{
    return &file->tensors[tensor];
}

int tutti_safetensors_find(const tutti_safetensors *file, const char *name)
{
    for (int i = 0; i < file->count; i++)
        if (strcmp(file->tensors[i].spec.name, name) == 0) return i;
    return -1;
}

const char *tutti_safetensors_metadata(const tutti_safetensors *file, const char *key)
{
    return json_string_value(json_object_get(json_object_get(file->header, "__metadata__"), key));
}

static tutti_status read_converted(const tutti_safetensors *file, const tutti_tensor_info *t,
                                   uint64_t offset, float *values, int64_t count)
{
    unsigned char chunk[CHUNK * 8];
    const int size = types[t->spec.dtype].bytes;
    while (count > 0) {
        const int n = count < CHUNK ? (int)count : CHUNK;
        TUTTI_TRY(tutti_file_read_at(file->fd, file->path, chunk, (size_t)(n * size), offset));
        types[t->spec.dtype].convert(values, chunk, n);
        values += n;
        count -= n;
        offset += (uint64_t)(n * size);
    }
    return TUTTI_OK;
}

tutti_status tutti_safetensors_read(const tutti_safetensors *file, int tensor, int64_t first,
                                    float *values, int64_t count)
{
    const tutti_tensor_info *t = &file->tensors[tensor];
    const int64_t elements = tutti_tensor_elements(&t->spec);
    if (first < 0 || count < 0 || first > elements || count > elements - first)
        return bad_tensor(file, t->spec.name, "is shorter than what was asked for");
    if (!types[t->spec.dtype].convert)
        return tutti_fail(TUTTI_DATA,
                          "'%s': tensor '%s': has type %s; weights have F32, F64, F16, BF16 or I64",
                          file->path, t->spec.name, types[t->spec.dtype].name);

    const uint64_t offset = t->begin + (uint64_t)first * (uint64_t)types[t->spec.dtype].bytes;
    if (t->spec.dtype == TUTTI_F32)
        return tutti_file_read_at(file->fd, file->path, values, (size_t)count * sizeof *values,
                                  offset);
    return read_converted(file, t, offset, values, count);
}
