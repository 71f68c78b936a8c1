#include "train/answers.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "data/mask_png.h"
#include "data/npy.h"
#include "format/file.h"
#include "format/json.h"

enum { DIGITS = 9 };

struct tutti_answers {
    const tutti_run *run;
    const tutti_question *question;
    const tutti_target *target; /* what an answer is */
    bool is_archive, is_folder; /* of what 'output' names */
    int columns;                /* values of an answer */
    float *nothing;
    float *values;    /* an answer as others have it: [c][h][w] */
    uint8_t *classes; /* [h][w] of pixels */
    int64_t *counts;  /* of them, class by class */
    FILE *file;       /* under a name of its own until it is whole */
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

/* ---- values ---- */

static void show_values(const tutti_answers *a, const char *name, const float *v)
{
    FILE *out = a->run->options->show;
    fprintf(out, "%s:", name);
    for (int c = 0; c < a->columns; c++)
        fprintf(out, "%s %s %.6g", c ? "," : "", tutti_run_class_name(a->run, c), (double)v[c]);
    fprintf(out, "\n");
}

static tutti_status show_json_values(const tutti_answers *a, const char *name, int64_t id,
                                     const float *v)
{
    tutti_string s = {0};
    begin_json(&s, name, id);
    tutti_json_key(&s, "values");
    tutti_string_append(&s, "[", 1);
    for (int i = 0; i < a->columns; i++) {
        if (i) tutti_string_append(&s, ",", 1);
        tutti_json_real(&s, (double)v[i], DIGITS);
    }
    tutti_string_append(&s, "]", 1);
    return end_json(a, &s);
}

/* ---- pixels ---- */

/* Each pixel's best class, and how many have it. */
static void find_classes(tutti_answers *a)
{
    const int pixels = a->target->h * a->target->w;
    memset(a->counts, 0, (size_t)a->target->c * sizeof *a->counts);
    for (int p = 0; p < pixels; p++) {
        int best = 0;
        for (int c = 1; c < a->target->c; c++)
            if (a->values[c * pixels + p] > a->values[best * pixels + p]) best = c;
        a->classes[p] = (uint8_t)best;
        a->counts[best]++;
    }
}

/* The class with most pixels after 'last'; -1: none is left that has any. */
static int next_most(const tutti_answers *a, int last)
{
    int best = -1;
    for (int c = 0; c < a->target->c; c++) {
        const int64_t n = a->counts[c], before = last < 0 ? INT64_MAX : a->counts[last];
        const bool is_left = n && (n < before || (n == before && c > last));
        if (is_left && (best < 0 || n > a->counts[best])) best = c;
    }
    return best;
}

static double share_of(const tutti_answers *a, int class)
{
    return (double)a->counts[class] / ((double)a->target->h * (double)a->target->w);
}

static void show_pixels(const tutti_answers *a, const char *name, const char *mask)
{
    FILE *out = a->run->options->show;
    int last = -1;
    fprintf(out, "%s:", name);
    for (int i = 0; i < a->question->top && (last = next_most(a, last)) >= 0; i++)
        fprintf(out, "%s %s %.1f %%", i ? "," : "", tutti_run_class_name(a->run, last),
                100 * share_of(a, last));
    if (mask) fprintf(out, " -> %s", mask);
    fprintf(out, "\n");
}

static tutti_status show_json_pixels(const tutti_answers *a, const char *name, int64_t id,
                                     const char *mask)
{
    tutti_string s = {0};
    int last = -1;
    begin_json(&s, name, id);
    if (mask) tutti_json_field_string(&s, "mask", mask);
    tutti_json_key(&s, "classes");
    tutti_string_append(&s, "[", 1);
    for (int i = 0; i < a->question->top && (last = next_most(a, last)) >= 0; i++) {
        tutti_string_append(&s, i ? ",{" : "{", i ? 2 : 1);
        tutti_json_field_string(&s, "name", tutti_run_class_name(a->run, last));
        tutti_json_field_real(&s, "share", share_of(a, last), DIGITS);
        tutti_string_append(&s, "}", 1);
    }
    tutti_string_append(&s, "]", 1);
    return end_json(a, &s);
}

/* OUTPUT/picture.png, or the sample's number. */
static tutti_status write_mask(const tutti_answers *a, const char *name, int64_t id, char *path,
                               size_t size)
{
    const char *slash = name ? strrchr(name, '/') : NULL, *base = slash ? slash + 1 : name;
    const char *dot = base ? strrchr(base, '.') : NULL;
    const int stem = dot ? (int)(dot - base) : base ? (int)strlen(base) : 0;
    const int length =
        name ? snprintf(path, size, "%s/%.*s.png", a->question->output, stem, base)
             : snprintf(path, size, "%s/%08lld.png", a->question->output, (long long)id);
    if (length >= (int)size)
        return tutti_fail(TUTTI_ARGUMENT, "--output %s: the name is too long", a->question->output);
    return tutti_write_mask(path, a->target->h, a->target->w, a->classes);
}

static tutti_status add_pixels(tutti_answers *a, const char *name, int64_t id)
{
    char path[TUTTI_PATH_BYTES], number[32];
    const char *mask = a->is_folder ? path : NULL;
    find_classes(a);
    if (a->is_folder) TUTTI_TRY(write_mask(a, name, id, path, sizeof path));
    if (a->question->json) return show_json_pixels(a, name, id, mask);
    snprintf(number, sizeof number, "sample %lld", (long long)id);
    show_pixels(a, name ? name : number, mask);
    return TUTTI_OK;
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

/* Of pixels their classes, 255 where there is nothing to say. */
static tutti_status put_classes(tutti_answers *a, const float *p)
{
    const size_t pixels = (size_t)a->target->h * (size_t)a->target->w;
    if (p == a->nothing) memset(a->classes, TUTTI_MASK_NONE, pixels);
    else find_classes(a);
    return put(a, a->classes, pixels);
}

static tutti_status put_row(tutti_answers *a, int64_t id, const float *p)
{
    if (a->target->form == TUTTI_TARGET_PIXELS) return put_classes(a, p);
    if (a->is_archive) TUTTI_TRY(put_head(a, id));
    return put(a, p, (size_t)a->columns * sizeof *p);
}

static bool ends_in(const char *text, const char *end)
{
    const size_t length = strlen(text), tail = strlen(end);
    return length > tail && !strcmp(text + length - tail, end);
}

/* Masks go into a folder, which may be there. */
static tutti_status open_folder(tutti_answers *a, const char *output)
{
    a->is_folder = true;
    if (!mkdir(output, 0777) || errno == EEXIST) return TUTTI_OK;
    return tutti_file_failure("make", output);
}

static size_t make_header(const tutti_answers *a, uint8_t header[TUTTI_NPY_HEADER], int64_t rows)
{
    const tutti_target *t = a->target;
    const int64_t classes[TUTTI_NPY_DIMS] = {rows, t->h, t->w};
    const int64_t images[TUTTI_NPY_DIMS] = {rows, t->c, t->h, t->w};
    if (t->form == TUTTI_TARGET_PIXELS) return tutti_npy_header_of(header, "|u1", 3, classes);
    if (t->h * t->w > 1) return tutti_npy_header_of(header, "<f4", 4, images);
    return tutti_npy_header(header, rows, a->columns);
}

static tutti_status open_output(tutti_answers *a, const char *output, int64_t rows)
{
    uint8_t header[TUTTI_NPY_HEADER];
    tutti_sequence first;
    if (a->target->form == TUTTI_TARGET_PIXELS && !ends_in(output, ".npy"))
        return open_folder(a, output);
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
    return a->is_archive ? TUTTI_OK : put(a, header, make_header(a, header, rows));
}

/* ---- all of them ---- */

static tutti_status take_room(tutti_answers *a)
{
    const size_t values = (size_t)a->columns, pixels = (size_t)a->target->h * (size_t)a->target->w;
    TUTTI_TRY(tutti_alloc(&a->nothing, values, sizeof *a->nothing));
    TUTTI_TRY(tutti_alloc(&a->values, values, sizeof *a->values));
    TUTTI_TRY(tutti_alloc(&a->classes, pixels, sizeof *a->classes));
    return tutti_alloc(&a->counts, (size_t)a->target->c, sizeof *a->counts);
}

/* Masks have a byte a pixel, and lines are for people. */
static tutti_status check_answer(const tutti_answers *a)
{
    const tutti_target *t = a->target;
    const bool masks = t->form == TUTTI_TARGET_PIXELS;
    if (masks && t->c > TUTTI_MASK_NONE)
        return tutti_fail(TUTTI_ARGUMENT, "%d classes of pixels: masks have at most %d", t->c,
                          (int)TUTTI_MASK_NONE);
    if (masks || t->h * t->w == 1 || a->question->output) return TUTTI_OK;
    return tutti_fail(TUTTI_ARGUMENT,
                      "an answer has %dx%dx%d values, too many for lines: ask about the samples of "
                      "--data and write them with --output X.npy",
                      t->c, t->h, t->w);
}

tutti_status tutti_answers_create(tutti_answers **out, const tutti_run *run,
                                  const tutti_question *question, int64_t rows)
{
    tutti_answers *a = NULL;
    TUTTI_TRY(tutti_alloc(&a, 1, sizeof *a));
    *out = a;
    a->run = run;
    a->question = question;
    a->target = tutti_run_target(run);
    a->columns = a->target->c * a->target->h * a->target->w;
    TUTTI_TRY(check_answer(a));
    TUTTI_TRY(take_room(a));
    for (int i = 0; i < a->columns; i++) a->nothing[i] = NAN;
    return question->output ? open_output(a, question->output, rows) : TUTTI_OK;
}

/* [c/16][h][w][16] -> [c][h][w] */
static const float *in_order(tutti_answers *a, const float *answer)
{
    const int pixels = a->target->h * a->target->w;
    for (int c = 0; c < a->target->c; c++)
        for (int p = 0; p < pixels; p++)
            a->values[c * pixels + p] =
                answer[(c / TUTTI_BLOCK * pixels + p) * TUTTI_BLOCK + c % TUTTI_BLOCK];
    return a->values;
}

tutti_status tutti_answers_add(tutti_answers *a, const char *name, int64_t id, const float *answer)
{
    char number[32];
    const float *p = in_order(a, answer);
    const bool values = a->target->form == TUTTI_TARGET_VALUES;
    if (a->file) return put_row(a, id, p);
    if (a->target->form == TUTTI_TARGET_PIXELS) return add_pixels(a, name, id);
    if (a->question->json)
        return values ? show_json_values(a, name, id, p) : show_json(a, name, id, p);
    snprintf(number, sizeof number, "sample %lld", (long long)id);
    if (values) show_values(a, name ? name : number, p);
    else show_line(a, name ? name : number, p);
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
    tutti_free(a->values);
    tutti_free(a->classes);
    tutti_free(a->counts);
    tutti_free(a);
    *answers = NULL;
    return s;
}
