#include "data/ark.h"

#include <string.h>

enum { MAX_KEY = 255, MAX_ROWS = 1 << 24, MAX_COLUMNS = 1 << 16, GLOBAL_HEAD = 16 };

/* The forms: how a matrix is announced and how its numbers are stored. */
typedef struct form {
    const char *token;
    int bytes;       /* of a number */
    bool compressed; /* low, range, rows, columns come first */
    bool by_column;  /* four percentiles for each column, then the numbers column by column */
} form;

static const form forms[] = {
    {"FM ", 4, false, false}, {"DM ", 8, false, false}, {"CM ", 1, true, true},
    {"CM2 ", 2, true, false}, {"CM3 ", 1, true, false},
};
enum { FORMS = sizeof forms / sizeof *forms, COLUMN_HEAD = 8 };

static int32_t little_int(const uint8_t *b)
{
    return (int32_t)((uint32_t)b[0] | (uint32_t)b[1] << 8 | (uint32_t)b[2] << 16 |
                     (uint32_t)b[3] << 24);
}

static uint16_t little_short(const uint8_t *b)
{
    return (uint16_t)(b[0] | b[1] << 8);
}

static float little_float(const uint8_t *b)
{
    const int32_t bits = little_int(b);
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static double little_double(const uint8_t *b)
{
    const uint64_t bits = (uint32_t)little_int(b) | (uint64_t)(uint32_t)little_int(b + 4) << 32;
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static tutti_status damaged(const tutti_file *file, uint64_t offset, const char *what)
{
    return tutti_fail(TUTTI_DATA, "'%s' byte %llu: %s", file->path, (unsigned long long)offset,
                      what);
}

/* Up to 'bytes' bytes at 'offset', the rest zero: heads near the end of a file. */
static tutti_status peek(const tutti_file *file, uint64_t offset, uint8_t *out, size_t bytes)
{
    const uint64_t left = offset < file->bytes ? file->bytes - offset : 0;
    memset(out, 0, bytes);
    return tutti_file_read(file, offset, out, left < bytes ? (size_t)left : bytes);
}

static uint64_t numbers_bytes(const tutti_ark_matrix *m)
{
    const form *f = &forms[m->form];
    const uint64_t columns = (uint64_t)m->columns;
    return (uint64_t)m->rows * columns * (uint64_t)f->bytes + f->by_column * COLUMN_HEAD * columns;
}

/* Rows and columns: after two floats, or each announced by a byte 4 (its size). */
static bool read_sizes(tutti_ark_matrix *m, const form *f, const uint8_t *head, size_t *bytes)
{
    if (f->compressed) {
        m->low = little_float(head);
        m->range = little_float(head + 4);
        m->rows = little_int(head + 8);
        m->columns = little_int(head + 12);
        *bytes = GLOBAL_HEAD;
        return true;
    }
    m->rows = little_int(head + 1);
    m->columns = little_int(head + 6);
    *bytes = 10;
    return head[0] == 4 && head[5] == 4;
}

tutti_status tutti_ark_head(tutti_ark_matrix *m, const tutti_file *file, uint64_t offset,
                            uint64_t *end)
{
    uint8_t head[2 + 4 + GLOBAL_HEAD];
    size_t sizes = 0;
    *m = (tutti_ark_matrix){.file = file};
    TUTTI_TRY(peek(file, offset, head, sizeof head));
    if (head[0] != 0 || head[1] != 'B')
        return damaged(file, offset,
                       "not a binary matrix (convert text with 'copy-feats ark,t:... ark:...')");
    while (m->form < FORMS && memcmp(head + 2, forms[m->form].token, strlen(forms[m->form].token)))
        m->form++;
    if (m->form == FORMS) return damaged(file, offset, "not a matrix of form FM, DM, CM, CM2, CM3");
    const form *f = &forms[m->form];
    const size_t token = 2 + strlen(f->token);
    if (!read_sizes(m, f, head + token, &sizes) || m->rows < 1 || m->columns < 1 ||
        m->rows > MAX_ROWS || m->columns > MAX_COLUMNS)
        return tutti_fail(TUTTI_DATA, "'%s' byte %llu: a matrix of %d x %d", file->path,
                          (unsigned long long)offset, m->rows, m->columns);
    m->data = offset + token + sizes;
    *end = m->data + numbers_bytes(m);
    if (*end > file->bytes)
        return tutti_fail(TUTTI_DATA, "'%s' is cut off in the %d x %d matrix at byte %llu",
                          file->path, m->rows, m->columns, (unsigned long long)offset);
    return TUTTI_OK;
}

tutti_status tutti_ark_scan(const tutti_file *file, tutti_ark_visit *visit, void *user)
{
    for (uint64_t at = 0; at < file->bytes;) {
        char key[MAX_KEY + 2];
        tutti_ark_matrix matrix;
        uint64_t end;
        TUTTI_TRY(peek(file, at, (uint8_t *)key, sizeof key));
        char *blank = memchr(key, ' ', sizeof key);
        if (!blank || blank == key || memchr(key, 0, (size_t)(blank - key)))
            return damaged(file, at, "no key where the next matrix should begin");
        *blank = 0;
        TUTTI_TRY(tutti_ark_head(&matrix, file, at + (uint64_t)(blank - key) + 1, &end));
        TUTTI_TRY(visit(user, key, &matrix));
        at = end;
    }
    return TUTTI_OK;
}

/* ----------------------------------------------------------------------------- numbers */

static float number_at(const tutti_ark_matrix *m, const uint8_t *at)
{
    static const float short_step = 1.0f / 65535, byte_step = 1.0f / 255;
    switch (forms[m->form].bytes) {
    case 8: return (float)little_double(at);
    case 4: return little_float(at);
    case 2: return m->low + m->range * short_step * (float)little_short(at);
    default: return m->low + m->range * byte_step * (float)*at;
    }
}

static tutti_status rows_in_order(const tutti_ark_matrix *m, int first, int count,
                                  tutti_buffer *scratch, float *out)
{
    const size_t bytes = (size_t)forms[m->form].bytes, columns = (size_t)m->columns;
    const size_t numbers = (size_t)count * columns;
    const uint64_t before = (uint64_t)first * columns * bytes;
    TUTTI_TRY(tutti_buffer_reserve(scratch, numbers * bytes));
    const uint8_t *from = scratch->bytes;
    TUTTI_TRY(tutti_file_read(m->file, m->data + before, scratch->bytes, numbers * bytes));
    for (size_t i = 0; i < numbers; i++) out[i] = number_at(m, from + i * bytes);
    return TUTTI_OK;
}

/* CM: a byte is a place between the column's minimum, quartiles and maximum. */
static float between_percentiles(const float p[4], uint8_t byte)
{
    if (byte <= 64) return p[0] + (p[1] - p[0]) * (float)byte * (1 / 64.0f);
    if (byte <= 192) return p[1] + (p[2] - p[1]) * (float)(byte - 64) * (1 / 128.0f);
    return p[2] + (p[3] - p[2]) * (float)(byte - 192) * (1 / 63.0f);
}

static tutti_status rows_by_column(const tutti_ark_matrix *m, int first, int count,
                                   tutti_buffer *scratch, float *out)
{
    const size_t columns = (size_t)m->columns, rows = (size_t)m->rows;
    TUTTI_TRY(tutti_buffer_reserve(scratch, (size_t)numbers_bytes(m)));
    const uint8_t *heads = scratch->bytes, *bytes = heads + columns * COLUMN_HEAD;
    TUTTI_TRY(tutti_file_read(m->file, m->data, scratch->bytes, (size_t)numbers_bytes(m)));
    for (size_t c = 0; c < columns; c++) {
        float p[4];
        for (size_t i = 0; i < 4; i++)
            p[i] = m->low +
                   m->range * (1.0f / 65535) * (float)little_short(heads + c * COLUMN_HEAD + 2 * i);
        for (size_t r = 0; r < (size_t)count; r++)
            out[r * columns + c] = between_percentiles(p, bytes[c * rows + (size_t)first + r]);
    }
    return TUTTI_OK;
}

tutti_status tutti_ark_rows(const tutti_ark_matrix *m, int first, int count, tutti_buffer *scratch,
                            float *out)
{
    TUTTI_ASSERT(first >= 0 && count >= 1 && count <= m->rows - first);
    return forms[m->form].by_column ? rows_by_column(m, first, count, scratch, out)
                                    : rows_in_order(m, first, count, scratch, out);
}
