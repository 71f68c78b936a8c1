#include "data/npy.h"

#include <stdio.h>
#include <string.h>

enum { HEADER_LIMIT = 1 << 16, PRELUDE = 12 };
static const int64_t MOST_ITEMS = INT32_MAX, MOST_IN_ITEM = 1 << 28;

/* ------------------------------------------------------------------------------ numbers */

/* A half: one bit of sign, five of exponent, ten of fraction. */
static float float_of_half(uint16_t half)
{
    const uint32_t sign = (uint32_t)(half >> 15) << 31, exponent = half >> 10 & 31;
    const uint32_t fraction = half & 1023;
    if (!exponent) return (sign ? -1.0f : 1.0f) * (float)fraction * 0x1p-24f;
    const uint32_t bits = sign | (exponent == 31 ? 255 : exponent + 112) << 23 | fraction << 13;
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* NUMBERS(i2, int16_t) makes i2_to_floats and i2_to_whole. */
#define NUMBERS(name, type)                                                     \
    static void name##_to_floats(const void *numbers, size_t count, float *out) \
    {                                                                           \
        const type *from = numbers;                                             \
        for (size_t i = 0; i < count; i++) out[i] = (float)from[i];             \
    }
#define WHOLE_NUMBERS(name, type)                      \
    NUMBERS(name, type)                                \
    static int64_t name##_to_whole(const void *number) \
    {                                                  \
        type value;                                    \
        memcpy(&value, number, sizeof value);          \
        return (int64_t)value;                         \
    }

WHOLE_NUMBERS(b1, uint8_t)
WHOLE_NUMBERS(u1, uint8_t)
WHOLE_NUMBERS(i1, int8_t)
WHOLE_NUMBERS(u2, uint16_t)
WHOLE_NUMBERS(i2, int16_t)
WHOLE_NUMBERS(u4, uint32_t)
WHOLE_NUMBERS(i4, int32_t)
WHOLE_NUMBERS(u8, uint64_t)
WHOLE_NUMBERS(i8, int64_t)
NUMBERS(f4, float)
NUMBERS(f8, double)

static void f2_to_floats(const void *numbers, size_t count, float *out)
{
    const uint16_t *from = numbers;
    for (size_t i = 0; i < count; i++) out[i] = float_of_half(from[i]);
}

#define WHOLE(name, bytes)                                    \
    {                                                         \
#name, bytes, true, name##_to_floats, name##_to_whole \
    }
#define REAL(name, bytes)                           \
    {                                               \
#name, bytes, false, name##_to_floats, NULL \
    }
static const tutti_npy_type types[] = {
    WHOLE(b1, 1), WHOLE(u1, 1), WHOLE(i1, 1), WHOLE(u2, 2), WHOLE(i2, 2), WHOLE(u4, 4),
    WHOLE(i4, 4), WHOLE(u8, 8), WHOLE(i8, 8), REAL(f2, 2),  REAL(f4, 4),  REAL(f8, 8),
};

/* ------------------------------------------------------------------------- the dictionary */

/* What is left of the header's text. */
typedef struct cursor {
    const char *at;
} cursor;

static void skip_blanks(cursor *c)
{
    c->at += strspn(c->at, " \t\n");
}

static bool take(cursor *c, const char *what)
{
    skip_blanks(c);
    const size_t length = strlen(what);
    if (strncmp(c->at, what, length)) return false;
    c->at += length;
    return true;
}

/* 'text' or "text" into 'out'. */
static bool take_text(cursor *c, char *out, size_t size)
{
    skip_blanks(c);
    const char quote[2] = {*c->at, 0};
    if (*quote != '\'' && *quote != '"') return false;
    const size_t length = strcspn(++c->at, quote);
    if (length >= size || !c->at[length]) return false;
    memcpy(out, c->at, length);
    out[length] = 0;
    c->at += length + 1;
    return true;
}

/* A whole number; what would be too large for an array's size becomes MOST_ITEMS + 1. */
static bool take_size(cursor *c, int64_t *out)
{
    skip_blanks(c);
    if (*c->at < '0' || *c->at > '9') return false;
    for (*out = 0; *c->at >= '0' && *c->at <= '9'; c->at++)
        *out = *out > MOST_ITEMS ? MOST_ITEMS + 1 : 10 * *out + (*c->at - '0');
    (void)take(c, "L"); /* of Python 2 */
    return true;
}

/* "(60000, 28)", "(3,)", "()" */
static bool take_shape(cursor *c, tutti_npy *npy)
{
    if (!take(c, "(")) return false;
    for (npy->dims = 0; !take(c, ")"); npy->dims++) {
        int64_t size;
        if (!take_size(c, &size)) return false;
        if (npy->dims < TUTTI_NPY_DIMS) npy->size[npy->dims] = size;
        if (!take(c, ",")) {
            npy->dims++;
            return take(c, ")");
        }
    }
    return true;
}

typedef struct words {
    char descr[32];
    bool fortran, has_descr, has_order, has_shape;
} words;

static bool take_order(cursor *c, bool *fortran)
{
    *fortran = take(c, "True");
    return *fortran || take(c, "False");
}

static bool take_pair(cursor *c, tutti_npy *npy, words *w)
{
    char key[32];
    if (!take_text(c, key, sizeof key) || !take(c, ":")) return false;
    if (!strcmp(key, "descr")) return w->has_descr = take_text(c, w->descr, sizeof w->descr);
    if (!strcmp(key, "fortran_order")) return w->has_order = take_order(c, &w->fortran);
    return !strcmp(key, "shape") && (w->has_shape = take_shape(c, npy));
}

static bool take_dictionary(cursor *c, tutti_npy *npy, words *w)
{
    if (!take(c, "{")) return false;
    while (!take(c, "}")) {
        if (!take_pair(c, npy, w)) return false;
        if (!take(c, ",") && *c->at != '}') return false;
    }
    return w->has_descr && w->has_order && w->has_shape;
}

/* --------------------------------------------------------------------------- the header */

static tutti_status find_type(tutti_npy *npy, const tutti_file *file, const char *descr)
{
    const char *name = descr + strspn(descr, "<>|=");
    const bool swapped = *descr == '>';
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (!strcmp(types[i].name, name)) npy->type = &types[i];
    if (!npy->type)
        return tutti_fail(TUTTI_DATA,
                          "'%s' holds numbers of type '%s'; whole numbers, booleans and floats are "
                          "read: save it as X.astype('float32')",
                          file->path, descr);
    if (swapped && npy->type->bytes > 1)
        return tutti_fail(TUTTI_DATA,
                          "'%s' holds big-endian numbers ('%s'): save it as X.astype('<%s')",
                          file->path, descr, name);
    return TUTTI_OK;
}

static tutti_status check_sizes(tutti_npy *npy, const tutti_file *file)
{
    int64_t item = 1;
    if (npy->dims < 1 || npy->dims > TUTTI_NPY_DIMS)
        return tutti_fail(TUTTI_DATA, "'%s' has %d dimensions; 1 to %d are read", file->path,
                          npy->dims, (int)TUTTI_NPY_DIMS);
    if (npy->size[0] > MOST_ITEMS)
        return tutti_fail(TUTTI_DATA, "'%s' has more than %lld items", file->path,
                          (long long)MOST_ITEMS);
    for (int i = 1; i < npy->dims; i++) {
        if (npy->size[i] < 1 || item * npy->size[i] > MOST_IN_ITEM)
            return tutti_fail(TUTTI_DATA, "'%s': dimension %d of %d is %lld", file->path, i + 1,
                              npy->dims, (long long)npy->size[i]);
        item *= npy->size[i];
    }
    npy->item = (size_t)item;
    return TUTTI_OK;
}

/* Where the text begins and how long it is. */
static tutti_status read_prelude(const tutti_file *file, uint64_t *begin, size_t *length)
{
    uint8_t b[PRELUDE] = {0};
    const size_t known = file->bytes < sizeof b ? (size_t)file->bytes : sizeof b;
    TUTTI_TRY(tutti_file_read(file, 0, b, known));
    if (known < 10 || memcmp(b, "\x93NUMPY", 6) || b[6] < 1 || b[6] > 3)
        return tutti_fail(TUTTI_DATA, "'%s' is not a .npy file: np.save writes such", file->path);
    *begin = b[6] == 1 ? 10 : 12;
    *length = b[8] | (size_t)b[9] << 8;
    if (b[6] > 1) *length |= (size_t)b[10] << 16 | (size_t)b[11] << 24;
    if (*length >= HEADER_LIMIT)
        return tutti_fail(TUTTI_DATA, "'%s' has a header of %zu bytes; at most %d are expected",
                          file->path, *length, (int)HEADER_LIMIT);
    return TUTTI_OK;
}

tutti_status tutti_npy_read(tutti_npy *npy, const tutti_file *file)
{
    tutti_buffer text = {0};
    words w = {0};
    uint64_t begin = 0;
    size_t length = 0;
    *npy = (tutti_npy){0};
    TUTTI_TRY(read_prelude(file, &begin, &length));
    TUTTI_TRY(tutti_buffer_reserve(&text, length + 1));
    tutti_status s = tutti_file_read(file, begin, text.bytes, length);
    ((char *)text.bytes)[length] = 0;
    npy->header = begin + length;
    cursor c = {text.bytes};
    if (!s && !take_dictionary(&c, npy, &w))
        s = tutti_fail(TUTTI_DATA, "'%s': its header is damaged at '%.20s'", file->path, c.at);
    if (!s) s = find_type(npy, file, w.descr);
    if (!s && w.fortran && npy->dims > 1)
        s = tutti_fail(TUTTI_DATA,
                       "'%s' is in Fortran's order: save it as numpy.ascontiguousarray(X)",
                       file->path);
    tutti_buffer_deinit(&text);
    return s ? s : check_sizes(npy, file);
}

int64_t tutti_npy_items(const tutti_npy *npy, const tutti_file *file)
{
    const uint64_t item = (uint64_t)npy->item * (uint64_t)npy->type->bytes;
    const uint64_t held = (file->bytes - npy->header) / item;
    return held < (uint64_t)npy->size[0] ? (int64_t)held : npy->size[0];
}

tutti_status tutti_npy_items_read(const tutti_npy *npy, const tutti_file *file, int64_t first,
                                  int64_t count, tutti_buffer *out)
{
    const size_t item = npy->item * (size_t)npy->type->bytes, bytes = (size_t)count * item;
    TUTTI_TRY(tutti_buffer_reserve(out, bytes));
    return tutti_file_read(file, npy->header + (uint64_t)first * item, out->bytes, bytes);
}

/* Filled up with blanks to a multiple of 64, so that the numbers are aligned. */
size_t tutti_npy_header_of(uint8_t out[TUTTI_NPY_HEADER], const char *type, int dims,
                           const int64_t sizes[TUTTI_NPY_DIMS])
{
    enum { BEGIN = 10, MULTIPLE = 64 };
    char text[TUTTI_NPY_HEADER], shape[64] = "";
    size_t length = 0;
    for (int i = 0; i < dims; i++)
        length += (size_t)snprintf(shape + length, sizeof shape - length, i ? ", %lld" : "%lld",
                                   (long long)sizes[i]);
    const int used = snprintf(
        text, sizeof text, "{'descr': '%s', 'fortran_order': False, 'shape': (%s), }", type, shape);
    const size_t size = ((size_t)(BEGIN + used) / MULTIPLE + 1) * MULTIPLE;
    memset(out, ' ', size);
    memcpy(out, "\x93NUMPY\1\0", 8);
    out[8] = (uint8_t)(size - BEGIN);
    out[9] = 0;
    memcpy(out + BEGIN, text, (size_t)used);
    out[size - 1] = '\n';
    return size;
}

size_t tutti_npy_header(uint8_t out[TUTTI_NPY_HEADER], int64_t rows, int64_t columns)
{
    return tutti_npy_header_of(out, "<f4", 2, (const int64_t[TUTTI_NPY_DIMS]){rows, columns});
}
