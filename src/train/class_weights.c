#include "train/class_weights.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "data/file.h"

static const double LEAST = 1e-6, MOST = 1e6;

static tutti_status balance(float *values, tutti_data *data)
{
    const int classes = tutti_data_classes(data);
    int64_t *counts = NULL;
    int present = 0;
    TUTTI_TRY(tutti_alloc(&counts, (size_t)classes, sizeof *counts));
    const tutti_status s = tutti_data_count_labels(data, counts);
    double samples = 0; /* or pixels */
    for (int c = 0; c < classes; c++) present += counts[c] > 0;
    for (int c = 0; c < classes; c++) samples += (double)counts[c];
    for (int c = 0; !s && c < classes; c++)
        if (counts[c]) values[c] = (float)(samples / ((double)present * (double)counts[c]));
    tutti_free(counts);
    return s;
}

/* ---- files ---- */

typedef struct reading {
    const char *path;
    int line;
    const tutti_data *data;
    float *values;
    int next;      /* class of the next line without a name */
    bool is_named; /* lines have names */
} reading;

static tutti_status bad(const reading *r, const char *what, const char *word)
{
    return tutti_fail(TUTTI_PARSE, "--class-weights %s:%d: %s '%.40s'", r->path, r->line, what,
                      word);
}

static tutti_status find_class(const reading *r, const char *name, int *class)
{
    const int classes = tutti_data_classes(r->data);
    for (*class = 0; *class < classes; ++*class)
        if (!strcmp(tutti_data_class_name(r->data, *class), name)) return TUTTI_OK;
    return bad(r, "the data have no class", name);
}

/* Cuts the last word off; *rest is what is before it, without blanks at its end. */
static char *last_word(char *line)
{
    size_t end = strlen(line);
    while (end && strchr(" \t", line[end - 1])) line[--end] = 0;
    char *word = line + end;
    while (word > line && !strchr(" \t", word[-1])) word--;
    for (char *gap = word; gap > line && strchr(" \t", gap[-1]);) *--gap = 0;
    return word;
}

static tutti_status read_line(reading *r, char *line)
{
    char *number = last_word(line), *end = NULL;
    const bool is_named = number > line;
    const double value = strtod(number, &end);
    int class = r->next;
    if (end == number || *end || !(value >= LEAST && value <= MOST))
        return bad(r, "a weight is a number from 1e-6 to 1e6, not", number);
    if (r->next + r->is_named && is_named != r->is_named)
        return bad(r, "all lines have a name, or none has:", line);
    r->is_named = is_named;
    if (is_named) TUTTI_TRY(find_class(r, line, &class));
    else if (r->next++ == tutti_data_classes(r->data))
        return bad(r, "there are more weights than classes:", number);
    if (r->values[class] > 0) return bad(r, "a second weight for", line);
    r->values[class] = (float)value;
    return TUTTI_OK;
}

static tutti_status check_all(const reading *r)
{
    for (int c = 0; c < tutti_data_classes(r->data); c++)
        if (!(r->values[c] > 0))
            return tutti_fail(TUTTI_PARSE, "--class-weights %s has no weight for class %d, '%s'",
                              r->path, c, tutti_data_class_name(r->data, c));
    return TUTTI_OK;
}

static tutti_status read_file(float *values, const char *path, const tutti_data *data)
{
    reading r = {.path = path, .data = data, .values = values};
    char *text = NULL, *line;
    if (tutti_file_text(&text, path))
        return tutti_fail(TUTTI_ARGUMENT, "--class-weights is auto, none or a file: %s",
                          tutti_message());
    tutti_status s = TUTTI_OK;
    for (char *cursor = text; !s && tutti_next_line(&cursor, &line);) {
        r.line++;
        line[strcspn(line, "#")] = 0;
        line += strspn(line, " \t");
        if (*line) s = read_line(&r, line);
    }
    tutti_free(text);
    return s ? s : check_all(&r);
}

/* ---- both ---- */

tutti_status tutti_class_weights_init(tutti_class_weights *out, const char *text, tutti_data *data,
                                      int outputs)
{
    *out = (tutti_class_weights){.hash = "none"};
    if (!text || !*text || !strcmp(text, "none")) return TUTTI_OK;
    TUTTI_TRY(tutti_alloc(&out->values, (size_t)outputs, sizeof *out->values));
    tutti_status s =
        strcmp(text, "auto") ? read_file(out->values, text, data) : balance(out->values, data);
    if (!s) s = tutti_hash_bytes(out->hash, out->values, (size_t)outputs * sizeof *out->values);
    if (s) tutti_class_weights_deinit(out);
    return s;
}

void tutti_class_weights_deinit(tutti_class_weights *weights)
{
    tutti_free(weights->values);
    *weights = (tutti_class_weights){0};
}
