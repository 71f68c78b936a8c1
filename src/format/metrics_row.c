#include "format/metrics_row.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>
#include <zlib.h>

#include "base/memory.h"

enum { DIGITS = 9, CRC_DIGITS = 8 };

/* What stands around the sum at the end of a line. */
static const char before_crc[] = ",\"crc\":\"", after_crc[] = "\"}\n";
enum { SEAL_BYTES = sizeof before_crc - 1 + CRC_DIGITS + sizeof after_crc - 1 };

enum group { SAME, TIME };

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

double *tutti_metrics_column(tutti_metrics_row *row, const char *name)
{
    int i = 0;
    while (i < COLUMNS && strcmp(columns[i].name, name)) i++;
    TUTTI_ASSERT(i < COLUMNS);
    return (double *)((char *)row + columns[i].offset);
}

static double value_of(const tutti_metrics_row *row, const struct column *column)
{
    double value;
    memcpy(&value, (const char *)row + column->offset, sizeof value);
    return value;
}

/* ---- Out ---------------------------------------------------------------------------------- */

static unsigned long sum_of(const char *bytes, size_t count)
{
    return crc32_z(0, (const unsigned char *)bytes, count);
}

/* Ends the object that began at 'start'. */
static void seal(tutti_string *line, size_t start)
{
    if (tutti_string_status(line)) return;
    tutti_string_printf(line, "%s%0*lx%s", before_crc, CRC_DIGITS,
                        sum_of(line->data + start, line->length - start), after_crc);
}

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
    tutti_string_append(line, "{", 1);
    tutti_json_field_int(line, "step", step);
}

void tutti_metrics_row_json(tutti_string *line, const tutti_metrics_row *row)
{
    const size_t start = line->length;
    begin_object(line, row->step);
    tutti_json_field_real(line, "epoch", row->epoch, DIGITS);
    tutti_json_field_string(line, "phase", row->phase);
    put_fields(line, row, SAME);
    tutti_json_key(line, "time");
    tutti_string_append(line, "{", 1);
    put_fields(line, row, TIME);
    tutti_string_append(line, "}", 1);
    seal(line, start);
}

void tutti_metrics_fields_json(tutti_string *line, int64_t step, const char *phase,
                               const char *fields)
{
    const size_t start = line->length;
    begin_object(line, step);
    tutti_json_field_string(line, "phase", phase);
    tutti_string_printf(line, ",%s", fields);
    seal(line, start);
}

void tutti_metrics_title_csv(tutti_string *line)
{
    tutti_string_printf(line, "step,epoch,phase");
    for (int g = SAME; g <= TIME; g++)
        for (int i = 0; i < COLUMNS; i++)
            if (columns[i].group == (enum group)g)
                tutti_string_printf(line, ",%s", columns[i].name);
    tutti_string_append(line, "\n", 1);
}

void tutti_metrics_row_csv(tutti_string *line, const tutti_metrics_row *row)
{
    tutti_string_printf(line, "%" PRId64 ",%.*g,%s", row->step, DIGITS, row->epoch, row->phase);
    for (int g = SAME; g <= TIME; g++)
        for (int i = 0; i < COLUMNS; i++) {
            if (columns[i].group != (enum group)g) continue;
            const double value = value_of(row, &columns[i]);
            tutti_string_append(line, ",", 1);
            if (isfinite(value)) tutti_string_printf(line, "%.*g", DIGITS, value);
        }
    tutti_string_append(line, "\n", 1);
}

/* ---- In ----------------------------------------------------------------------------------- */

bool tutti_metrics_line_is_whole(const char *line, size_t length, int64_t *step)
{
    static const char before_step[] = "{\"step\":";
    char wanted[SEAL_BYTES + 1], *end = NULL;
    if (length < SEAL_BYTES + sizeof before_step) return false;
    const size_t body = length - SEAL_BYTES;
    snprintf(wanted, sizeof wanted, "%s%0*lx%s", before_crc, CRC_DIGITS, sum_of(line, body),
             after_crc);
    if (memcmp(line + body, wanted, SEAL_BYTES) != 0) return false;
    if (strncmp(line, before_step, sizeof before_step - 1) != 0) return false;
    *step = strtoll(line + sizeof before_step - 1, &end, 10);
    return end && *end == ',';
}

/* Numbers that are missing, or were not finite, stay NaN. */
static void take_fields(tutti_metrics_row *row, const json_t *object, enum group group)
{
    for (int i = 0; i < COLUMNS; i++) {
        const json_t *field = json_object_get(object, columns[i].name);
        const double value = json_number_value(field);
        if (columns[i].group == group && json_is_number(field))
            memcpy((char *)row + columns[i].offset, &value, sizeof value);
    }
}

void tutti_metrics_line_csv(tutti_string *out, const char *line, size_t length)
{
    json_t *object = json_loadb(line, length, 0, NULL);
    const json_t *epoch = json_object_get(object, "epoch");
    const char *phase = json_string_value(json_object_get(object, "phase"));
    if (json_is_number(epoch) && phase) {
        tutti_metrics_row row = tutti_metrics_row_empty(
            json_integer_value(json_object_get(object, "step")), json_number_value(epoch), phase);
        take_fields(&row, object, SAME);
        take_fields(&row, json_object_get(object, "time"), TIME);
        tutti_metrics_row_csv(out, &row);
    }
    json_decref(object);
}
