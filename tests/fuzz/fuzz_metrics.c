/* A line of metrics.jsonl: any bytes are a line as it was written, or they are not; and whatever
 * stands in one with a right sum gives one line of a table, or none. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "format/metrics_row.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const char *line, size_t length, bool must_be_whole)
{
    tutti_string record = {0};
    int64_t step = 0;
    const bool whole = tutti_metrics_line_is_whole(line, length, &step);
    if (must_be_whole && !whole) abort();
    if (whole) tutti_metrics_line_csv(&record, line, length);
    if (record.length && record.data[record.length - 1] != '\n') abort();
    tutti_string_deinit(&record);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    tutti_string line = {0};
    char *text = malloc(size + 1);
    memcpy(text, data, size);
    text[size] = 0;
    check(text, size, false);
    tutti_metrics_fields_json(&line, 7, "fuzz", text);
    check(line.data, line.length, true);
    tutti_string_deinit(&line);
    free(text);
    return 0;
}
