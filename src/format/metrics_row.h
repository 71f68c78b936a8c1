/* A row of metrics as text, in and out. For metrics.c only. */
#ifndef TUTTI_FORMAT_METRICS_ROW_H
#define TUTTI_FORMAT_METRICS_ROW_H

#include <stdbool.h>
#include <stddef.h>

#include "format/json.h"
#include "format/metrics.h"

/* The line of metrics.jsonl, of a row or of special fields; the line of metrics.csv, and its
 * first. They are appended to 'line' with their newline. */
void tutti_metrics_row_json(tutti_string *line, const tutti_metrics_row *row);
void tutti_metrics_fields_json(tutti_string *line, int64_t step, const char *phase,
                               const char *fields);
void tutti_metrics_row_csv(tutti_string *line, const tutti_metrics_row *row);
void tutti_metrics_title_csv(tutti_string *line);

/* Is it, with its newline, a line of metrics.jsonl as it was written? Gives its step. */
bool tutti_metrics_line_is_whole(const char *line, size_t length, int64_t *step);

/* Appends the line of metrics.csv that goes with a whole line; nothing for a special one. */
void tutti_metrics_line_csv(tutti_string *out, const char *line, size_t length);

#endif
