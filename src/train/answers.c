#include "train/answers.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "data/npy.h"
#include "format/file.h"
#include "format/json.h"

enum { DIGITS = 9 };

struct tutti_answers {
    const tutti_run *run;
    const tutti_question *question;
    bool is_archive;
    int columns;
    int64_t next; /* row */
    float *nothing;
    FILE *file; /* under a name of its own until it is whole */
    char path[TUTTI_PATH_BYTES];
};

/* ---- lines ---- */

/* The class after 'last' by probability; of equal ones by number. -1: there is none. */
static int next_best(const float *p, int classes, int last)
{
    int best = -1;
    for (int c = 0; c < classes; c++) {
        const bool is_left = last < 0 || p[c] < p[last] || (p[c] == p[last] && c > last);
        if (is_left && (best < 0 || p[c] > p[best])) best = c;
    }
    return best;
}

static void show_line(const tutti_answers *a, const char *name, const float *p)
{
    const int classes = tutti_run_classes(a->run);
    FILE *out = a->run->options->show;
    int last = -1;
    fprintf(out, "%s:", name);
    for (int i = 0; i < a->question->top && (last = next_best(p, classes, last)) >= 0; i++)
        fprintf(out, "%s %s %.1f %%", i ? "," : "", tutti_run_class_name(a->run, last),
                100 * (double)p[last]);
    fprintf(out, "\n");
}

static void begin_json(tutti_string *s, const char *name, int64_t id)
{
    tutti_string_append(s, "{", 1);
    if (name) tutti_json_field_string(s, "file", name);
    else tutti_json_field_int(s, "sample", id);
}

static tutti_status end_json(const tutti_answers *a, tutti_string *s)
{
    tutti_string_append(s, "}", 1);
    const tutti_status status = tutti_string_status(s);
    if (status == TUTTI_OK) fprintf(a->run->options->show, "%s\n", s->data);
    tutti_string_deinit(s);
    return status;
}

static tutti_status show_json(const tutti_answers *a, const char *name, int64_t id, const float *p)
{
    tutti_string s = {0};
    const int classes = tutti_run_classes(a->run);
    int last = -1;
    begin_json(&s, name, id);
    tutti_json_key(&s, "classes");
    tutti_string_append(&s, "[", 1);
    for (int i = 0; i < a->question->top && (last = next_best(p, classes, last)) >= 0; i++) {
        if (i) tutti_string_append(&s, ",", 1);
        tutti_string_append(&s, "{", 1);
        tutti_json_field_string(&s, "name", tutti_run_class_name(a->run, last));
        tutti_json_field_real(&s, "probability", (double)p[last], DIGITS);
        tutti_string_append(&s, "}", 1);
    }
    tutti_string_append(&s, "]", 1);
    return end_json(a, &s);
}

/* ---- files ---- */

static tutti_status put(tutti_answers *a, const void *bytes, size_t count)
{
    if (fwrite(bytes, 1, count, a->file) == count) return TUTTI_OK;
    return tutti_file_failure("write", a->path);
}

/* "KEY \0BFM \4ROWS\4COLUMNS", of each utterance; of other samples of one archive of all. */
static tutti_status put_head(tutti_answers *a, int64_t id)
{
    tutti_sequence of = {0};
    const int32_t columns = a->columns;
    if (!tutti_data_sequence(a->run->data, TUTTI_SPLIT_TEST, (uint32_t)id, &of)) return TUTTI_OK;
    TUTTI_TRY(put(a, of.key, strlen(of.key)));
    TUTTI_TRY(put(a, " \0BFM \4", 7));
    TUTTI_TRY(put(a, &(int32_t){of.length}, sizeof(int32_t)));
    TUTTI_TRY(put(a, "\4", 1));
    return put(a, &columns, sizeof columns);
}

static tutti_status put_row(tutti_answers *a, int64_t id, const float *p)
{
    if (a->is_archive) TUTTI_TRY(put_head(a, id));
    return put(a, p, (size_t)a->columns * sizeof *p);
}

static bool ends_in(const char *text, const char *end)
{
    const size_t length = strlen(text), tail = strlen(end);
    return length > tail && !strcmp(text + length - tail, end);
}

static tutti_status open_output(tutti_answers *a, const char *output, int64_t rows)
{
    uint8_t header[TUTTI_NPY_HEADER];
    tutti_sequence first;
    a->is_archive = ends_in(output, ".ark");
    if (!a->is_archive && !ends_in(output, ".npy"))
        return tutti_fail(
            TUTTI_ARGUMENT,
            "--output %s: the name must end in .npy, an array, or .ark, an archive of "
            "Kaldi's",
            output);
    if (a->is_archive && !tutti_data_sequence(a->run->data, TUTTI_SPLIT_TEST, 0, &first))
        return tutti_fail(TUTTI_ARGUMENT,
                          "--output %s: only utterances (--data kaldi:) make an archive: take .npy",
                          output);
    if (snprintf(a->path, sizeof a->path, "%s.partial", output) >= (int)sizeof a->path)
        return tutti_fail(TUTTI_ARGUMENT, "--output %s: the name is too long", output);
    a->file = fopen(a->path, "wb");
    if (!a->file) return tutti_file_failure("write", a->path);
    return a->is_archive ? TUTTI_OK : put(a, header, tutti_npy_header(header, rows, a->columns));
}

/* ---- all of them ---- */

tutti_status tutti_answers_create(tutti_answers **out, const tutti_run *run,
                                  const tutti_question *question, int64_t rows)
{
    tutti_answers *a = NULL;
    TUTTI_TRY(tutti_alloc(&a, 1, sizeof *a));
    *out = a;
    a->run = run;
    a->question = question;
    a->columns = tutti_net_classes(run->net);
    TUTTI_TRY(tutti_alloc(&a->nothing, (size_t)a->columns, sizeof *a->nothing));
    for (int i = 0; i < a->columns; i++) a->nothing[i] = NAN;
    return question->output ? open_output(a, question->output, rows) : TUTTI_OK;
}

tutti_status tutti_answers_add(tutti_answers *a, const char *name, int64_t id, const float *p)
{
    char number[32];
    if (a->file) return put_row(a, id, p);
    if (a->question->json) return show_json(a, name, id, p);
    snprintf(number, sizeof number, "sample %lld", (long long)id);
    show_line(a, name ? name : number, p);
    return TUTTI_OK;
}

tutti_status tutti_answers_miss(tutti_answers *a, const char *name, int64_t id)
{
    tutti_string s = {0};
    if (a->file) return put_row(a, id, a->nothing);
    if (!a->question->json) return TUTTI_OK;
    begin_json(&s, name, id);
    tutti_json_field_string(&s, "error", name ? tutti_message() : "it is damaged");
    return end_json(a, &s);
}

static tutti_status finish(tutti_answers *a, bool whole)
{
    if (!a->file) return TUTTI_OK;
    const bool written = !ferror(a->file) && !fflush(a->file) && !fsync(fileno(a->file));
    const tutti_status s = whole && !written ? tutti_file_failure("write", a->path) : TUTTI_OK;
    const bool closed = !fclose(a->file);
    if (whole && s == TUTTI_OK && closed && !rename(a->path, a->question->output)) return TUTTI_OK;
    const tutti_status why =
        whole && s == TUTTI_OK ? tutti_file_failure("write", a->question->output) : s;
    (void)unlink(a->path);
    return why;
}

tutti_status tutti_answers_close(tutti_answers **answers, bool whole)
{
    tutti_answers *a = *answers;
    if (!a) return TUTTI_OK;
    const tutti_status s = finish(a, whole);
    tutti_free(a->nothing);
    tutti_free(a);
    *answers = NULL;
    return s;
}
