#define _GNU_SOURCE
#include "data/utterances.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

typedef struct labelled {
    const char *key;
    int64_t label;
    int labels;
} labelled;

typedef struct opening {
    tutti_utterances *u;
    tutti_data *data;
    const tutti_names *words;
    char *text;    /* of the labels; keys point into it */
    labelled *key; /* [keys] sorted */
    int keys, capacity;
} opening;

static tutti_status grow(void *out, int64_t used, int64_t *capacity, size_t size)
{
    if (used < *capacity) return TUTTI_OK;
    void *old, *larger = NULL;
    memcpy(&old, out, sizeof old);
    const int64_t wanted = 2 * *capacity + 256;
    TUTTI_TRY(tutti_alloc(&larger, (size_t)wanted, size));
    if (used) memcpy(larger, old, (size_t)used * size);
    tutti_free(old);
    memcpy(out, &larger, sizeof larger);
    *capacity = wanted;
    return TUTTI_OK;
}

/* ------------------------------------------------------------------------------ labels */

static tutti_status label_of(const opening *o, const char *word, int *label)
{
    char *end = NULL;
    const long value = strtol(word, &end, 10);
    if (end != word && !*end && value >= 0 && value < TUTTI_MAX_CLASSES) {
        *label = (int)value;
        return TUTTI_OK;
    }
    for (int i = 0; o->words && i < o->words->count; i++)
        if (!strcmp(o->words->name[i], word)) {
            *label = i;
            return TUTTI_OK;
        }
    return tutti_fail(TUTTI_DATA, "'%s' is not a label: a number, or a word of names=FILE", word);
}

static tutti_status read_label_line(opening *o, char *line)
{
    tutti_utterances *u = o->u;
    labelled entry = {.key = tutti_next_word(&line), .label = u->label_count};
    int64_t capacity = o->capacity;
    if (!entry.key) return TUTTI_OK;
    for (char *word; (word = tutti_next_word(&line)); entry.labels++) {
        TUTTI_TRY(grow(&u->label, u->label_count, &u->label_capacity, sizeof *u->label));
        TUTTI_TRY(label_of(o, word, &u->label[u->label_count]));
        if (u->label[u->label_count] >= o->data->classes)
            o->data->classes = u->label[u->label_count] + 1;
        u->label_count++;
    }
    if (!entry.labels) return tutti_fail(TUTTI_DATA, "'%s' has no label", entry.key);
    if (entry.labels > 1) u->by_frame = true;
    TUTTI_TRY(grow(&o->key, o->keys, &capacity, sizeof *o->key));
    o->capacity = (int)capacity;
    o->key[o->keys++] = entry;
    return TUTTI_OK;
}

static int by_key(const void *a, const void *b)
{
    return strcmp(((const labelled *)a)->key, ((const labelled *)b)->key);
}

static tutti_status read_labels(opening *o, const char *path)
{
    char *line = NULL;
    int number = 0;
    TUTTI_TRY(tutti_file_text(&o->text, path));
    for (char *at = o->text; tutti_next_line(&at, &line);) {
        number++;
        const tutti_status s = read_label_line(o, line);
        if (s) return tutti_fail(s, "%s:%d: %s", path, number, tutti_message());
    }
    if (!o->keys) return tutti_fail(TUTTI_DATA, "'%s' has no labels", path);
    qsort(o->key, (size_t)o->keys, sizeof *o->key, by_key);
    for (int i = 1; i < o->keys; i++)
        if (!by_key(&o->key[i - 1], &o->key[i]))
            return tutti_fail(TUTTI_DATA, "'%s' lists '%s' twice", path, o->key[i].key);
    return TUTTI_OK;
}

/* ---------------------------------------------------------------------------- features */

static tutti_status check_utterance(const opening *o, const char *key, const tutti_utterance *it)
{
    const tutti_utterances *u = o->u;
    if (u->columns && it->matrix.columns != u->columns)
        return tutti_fail(TUTTI_DATA,
                          "'%s': '%s' has %d numbers per frame, those before it have %d",
                          it->matrix.file->path, key, it->matrix.columns, u->columns);
    if (it->labels > 1 && it->labels != it->matrix.rows)
        return tutti_fail(TUTTI_DATA, "'%s': '%s' has %d frames, but %d labels",
                          it->matrix.file->path, key, it->matrix.rows, it->labels);
    return TUTTI_OK;
}

static tutti_status add_utterance(void *user, const char *key, const tutti_ark_matrix *matrix)
{
    opening *o = user;
    tutti_utterances *u = o->u;
    static const labelled nothing = {.labels = 1};
    const labelled wanted = {.key = key};
    const labelled *at =
        o->text ? bsearch(&wanted, o->key, (size_t)o->keys, sizeof wanted, by_key) : &nothing;
    if (!at) {
        u->unlabelled++;
        return TUTTI_OK;
    }
    const tutti_utterance it = {*matrix, at->label, at->labels, 0, u->keys.count};
    const tutti_status s = check_utterance(o, key, &it);
    if (s == TUTTI_DATA && o->data->options.skip_bad) {
        tutti_warn(o->data->options.log, "skipped: %s", tutti_message());
        return TUTTI_OK;
    }
    if (s) return s;
    int64_t capacity = u->capacity;
    TUTTI_TRY(grow(&u->item, u->count, &capacity, sizeof *u->item));
    u->capacity = (int)capacity;
    u->item[u->count++] = it;
    u->columns = matrix->columns;
    if (o->data->options.asks) TUTTI_TRY(tutti_names_add(&u->keys, key));
    tutti_data_digest_text(o->data, key);
    tutti_data_digest_int(o->data, matrix->rows);
    return TUTTI_OK;
}

static tutti_status open_file(tutti_utterances *u, const char *path, const tutti_file **out)
{
    for (int i = 0; i < u->files; i++)
        if (!strcmp(u->file[i]->path, path)) {
            *out = u->file[i];
            return TUTTI_OK;
        }
    tutti_file **larger = NULL, *file = NULL;
    TUTTI_TRY(tutti_alloc(&larger, (size_t)u->files + 1, sizeof *larger));
    if (u->files) memcpy(larger, u->file, (size_t)u->files * sizeof *larger);
    tutti_free(u->file);
    u->file = larger;
    TUTTI_TRY(tutti_alloc(&file, 1, sizeof *file));
    const tutti_status s = tutti_file_open(file, path);
    if (s) {
        tutti_free(file);
        return s;
    }
    u->file[u->files++] = file;
    *out = file;
    return TUTTI_OK;
}

/* A damaged archive ends where its damage begins: nothing marks the start of the next matrix. */
static tutti_status read_archive(opening *o, const char *path)
{
    const tutti_file *file = NULL;
    TUTTI_TRY(open_file(o->u, path, &file));
    const tutti_status s = tutti_ark_scan(file, add_utterance, o);
    if (s != TUTTI_DATA || !o->data->options.skip_bad) return s;
    tutti_warn(o->data->options.log, "the rest is skipped: %s", tutti_message());
    return TUTTI_OK;
}

/* "key path:offset"; a path is relative to the working directory, as in Kaldi, or else to the
 * folder of the script. */
static tutti_status read_script_line(opening *o, const char *script, char *line)
{
    const char *key = tutti_next_word(&line);
    if (!key) return TUTTI_OK;
    char *path = line + strspn(line, " \t"), *colon = strrchr(path, ':'), *beside = NULL;
    if (!colon || strchr(path, '|') || strchr(path, '['))
        return tutti_fail(TUTTI_DATA, "'%s' is not FILE:OFFSET (commands and ranges are not read)",
                          path);
    const uint64_t offset = strtoull(colon + 1, NULL, 10);
    *colon = 0;
    if (!tutti_path_is_file(path)) {
        const size_t folder = (size_t)(tutti_path_base(script) - script);
        TUTTI_TRY(tutti_alloc(&beside, folder + strlen(path) + 1, 1));
        strcpy(mempcpy(beside, script, folder), path);
        path = beside;
    }
    const tutti_file *file = NULL;
    tutti_ark_matrix matrix;
    uint64_t end;
    tutti_status s = open_file(o->u, path, &file);
    if (!s) s = tutti_ark_head(&matrix, file, offset, &end);
    if (!s) s = add_utterance(o, key, &matrix);
    tutti_free(beside);
    return s;
}

static tutti_status read_script(opening *o, const char *path)
{
    char *text = NULL, *line = NULL;
    int number = 0;
    TUTTI_TRY(tutti_file_text(&text, path));
    tutti_status s = TUTTI_OK;
    for (char *at = text; !s && tutti_next_line(&at, &line);) {
        number++;
        s = read_script_line(o, path, line);
        if (s) s = tutti_fail(s, "%s:%d: %s", path, number, tutti_message());
        if (s == TUTTI_DATA && o->data->options.skip_bad) {
            tutti_warn(o->data->options.log, "skipped: %s", tutti_message());
            s = TUTTI_OK;
        }
    }
    tutti_free(text);
    return s;
}

tutti_status tutti_utterances_open(tutti_utterances *u, tutti_data *data, const char *features,
                                   const char *labels, const tutti_names *words)
{
    opening o = {.u = u, .data = data, .words = words};
    const size_t length = strlen(features);
    const bool is_script = length > 4 && !strcmp(features + length - 4, ".scp");
    tutti_status s = labels ? read_labels(&o, labels) : TUTTI_OK;
    if (!s) s = is_script ? read_script(&o, features) : read_archive(&o, features);
    tutti_data_digest(data, u->label, (size_t)u->label_count * sizeof *u->label);
    tutti_free(o.text);
    tutti_free(o.key);
    if (!s && !u->count && !labels) s = tutti_fail(TUTTI_DATA, "'%s' has no utterances", features);
    if (!s && !u->count)
        s = tutti_fail(TUTTI_DATA, "no utterance of '%s' has a label in '%s'", features, labels);
    if (!s && u->unlabelled)
        tutti_warn(data->options.log, "%d utterances of '%s' have no label and are left out",
                   u->unlabelled, features);
    return s;
}

void tutti_utterances_close(tutti_utterances *u)
{
    for (int i = 0; i < u->files; i++) {
        tutti_file_close(u->file[i]);
        tutti_free(u->file[i]);
    }
    tutti_free(u->file);
    tutti_free(u->item);
    tutti_free(u->label);
    tutti_names_deinit(&u->keys);
    *u = (tutti_utterances){0};
}
