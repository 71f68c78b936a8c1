/* Split lists of picture files: the forms in use (Caffe's "path label", bare names as in TrashNet,
 * plain paths) differ in whether paths have folders and lines have labels; both are seen from the
 * first line and must then hold for all. */
#define _GNU_SOURCE
#include "data/images.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

enum { UNLABELLED = -1 };

typedef struct place {
    const char *base, *path;
} place;

typedef struct lists {
    const char *dir;
    tutti_names folders;
    tutti_items found; /* every picture in the folders; scanned when bare names ask for it */
    place *by_base;    /* [found.count] sorted by file name */
    bool scanned;
} lists;

static int by_base(const void *a, const void *b)
{
    return strcmp(((const place *)a)->base, ((const place *)b)->base);
}

static tutti_status scan(lists *l)
{
    l->scanned = true;
    TUTTI_TRY(tutti_items_scan(&l->found, l->dir, "", &l->folders));
    const size_t count = (size_t)l->found.count;
    TUTTI_TRY(tutti_alloc(&l->by_base, count, sizeof *l->by_base));
    for (int i = 0; i < l->found.count; i++) {
        const char *path = tutti_items_path(&l->found, i);
        l->by_base[i] = (place){tutti_path_base(path), path};
    }
    qsort(l->by_base, count, sizeof *l->by_base, by_base);
    return TUTTI_OK;
}

/* The path in the data set's folder of a path in a list. */
static tutti_status resolve(lists *l, const char *given, const char **path)
{
    *path = given;
    if (strchr(given, '/')) return TUTTI_OK;
    if (!l->scanned) TUTTI_TRY(scan(l));
    const place key = {given, NULL}, *end = l->by_base + l->found.count;
    const place *at = bsearch(&key, l->by_base, (size_t)l->found.count, sizeof key, by_base);
    if (!at) return tutti_fail(TUTTI_DATA, "'%s' is in no folder of '%s'", given, l->dir);
    if ((at + 1 < end && !by_base(at, at + 1)) || (at > l->by_base && !by_base(at, at - 1)))
        return tutti_fail(TUTTI_DATA, "'%s' is in several folders of '%s'", given, l->dir);
    *path = at->path;
    return TUTTI_OK;
}

static tutti_status parse_label(const char *word, int *label)
{
    char *end = NULL;
    if (!word) return TUTTI_OK;
    const long value = strtol(word, &end, 10);
    if (end == word || *end || value < 0 || value > TUTTI_MAX_CLASSES)
        return tutti_fail(TUTTI_DATA, "'%s' is not a label", word);
    *label = (int)value;
    return TUTTI_OK;
}

/* The label is the last word of a line that has two or more: paths may have blanks. */
static char *cut_label(char *line)
{
    char *end = line + strlen(line);
    while (end > line && (end[-1] == ' ' || end[-1] == '\t')) *--end = 0;
    char *word = end;
    while (word > line && word[-1] != ' ' && word[-1] != '\t') word--;
    if (word == line || strchr(word, '.') || strchr(word, '/')) return NULL;
    for (char *blank = word; blank > line && (blank[-1] == ' ' || blank[-1] == '\t');) *--blank = 0;
    return word;
}

/* Looking for every file would take long; the first one reveals a wrong folder. */
static tutti_status check_first(const char *dir, const char *path)
{
    char *full = NULL;
    TUTTI_TRY(tutti_path_join(&full, dir, path));
    const bool there = tutti_path_is_file(full);
    tutti_free(full);
    return there ? TUTTI_OK : tutti_fail(TUTTI_DATA, "'%s' is not in '%s'", path, dir);
}

static tutti_status read_line(lists *l, tutti_items *items, char *line)
{
    int label = UNLABELLED;
    const char *path = NULL;
    TUTTI_TRY(parse_label(cut_label(line), &label));
    TUTTI_TRY(resolve(l, line, &path));
    if (items->count && (label < 0) != (items->label[0] < 0))
        return tutti_fail(TUTTI_DATA, "some lines have labels, others do not");
    if (!items->count) TUTTI_TRY(check_first(l->dir, path));
    return tutti_items_add(items, path, label);
}

static tutti_status read_list(lists *l, tutti_items *items, const char *path)
{
    char *text = NULL, *line = NULL;
    int number = 0;
    TUTTI_TRY(tutti_file_text(&text, path));
    tutti_status s = TUTTI_OK;
    for (char *at = text; !s && tutti_next_line(&at, &line);) {
        number++;
        if (*line && *line != '#') s = read_line(l, items, line);
    }
    if (s) s = tutti_fail(s, "%s:%d: %s", path, number, tutti_message());
    else if (!items->count) s = tutti_fail(TUTTI_DATA, "'%s' lists no files", path);
    tutti_free(text);
    return s;
}

/* ------------------------------------------------------------------------------ classes */

static size_t folder_length(const char *path)
{
    const char *base = tutti_path_base(path);
    return base > path ? (size_t)(base - path) - 1 : 0;
}

static int compare_folder(const void *path, const void *folder)
{
    const char *name = *(char *const *)folder;
    const size_t length = strcspn(path, "/");
    const int order = strncmp(path, name, length);
    return order ? order : -(name[length] != 0);
}

/* The class is the first folder of the path. */
static tutti_status label_by_folder(lists *l, tutti_items *items)
{
    for (int i = 0; i < items->count; i++) {
        const char *path = tutti_items_path(items, i);
        char **at =
            bsearch(path, l->folders.name, (size_t)l->folders.count, sizeof *at, compare_folder);
        if (!at || !strchr(path, '/'))
            return tutti_fail(TUTTI_DATA, "'%s' is in no folder of '%s'", path, l->dir);
        items->label[i] = (int)(at - l->folders.name);
    }
    return TUTTI_OK;
}

/* Leaves out the folders no list refers to. */
static tutti_status name_by_folder(lists *l, tutti_items items[TUTTI_SPLITS], tutti_names *names)
{
    int *number = NULL;
    TUTTI_TRY(tutti_alloc(&number, (size_t)l->folders.count + 1, sizeof *number));
    for (int s = 0; s < TUTTI_SPLITS; s++)
        for (int i = 0; i < items[s].count; i++) number[items[s].label[i]] = 1;
    tutti_status status = TUTTI_OK;
    for (int f = 0; !status && f < l->folders.count; f++)
        if (number[f]) {
            number[f] = names->count;
            status = tutti_names_add(names, l->folders.name[f]);
        }
    for (int s = 0; s < TUTTI_SPLITS; s++)
        for (int i = 0; i < items[s].count; i++) items[s].label[i] = number[items[s].label[i]];
    tutti_free(number);
    return status;
}

/* A class is named by the folder of its training files where they share one that no other class
 * has, else by its number. */
static tutti_status name_by_label(const tutti_items *items, int classes, tutti_names *names)
{
    const char **example = NULL;
    bool *mixed = NULL;
    tutti_status s = tutti_alloc(&example, (size_t)classes, sizeof *example);
    if (!s) s = tutti_alloc(&mixed, (size_t)classes, sizeof *mixed);
    for (int i = 0; !s && i < items->count; i++) {
        const int label = items->label[i];
        const char *path = tutti_items_path(items, i), *before = example[label];
        const size_t length = folder_length(path);
        if (!length ||
            (before && (folder_length(before) != length || strncmp(path, before, length))))
            mixed[label] = true;
        example[label] = path;
    }
    for (int c = 0; !s && c < classes; c++) {
        char name[256];
        if (example[c] && !mixed[c])
            snprintf(name, sizeof name, "%.*s", (int)folder_length(example[c]), example[c]);
        else snprintf(name, sizeof name, "%d", c);
        s = tutti_names_add(names, tutti_path_base(name));
    }
    tutti_free(example);
    tutti_free(mixed);
    return s;
}

static tutti_status classes_by_label(tutti_items items[TUTTI_SPLITS], tutti_names *names)
{
    int least = TUTTI_MAX_CLASSES, most = 0;
    for (int s = 0; s < TUTTI_SPLITS; s++)
        for (int i = 0; i < items[s].count; i++) {
            const int label = items[s].label[i];
            if (label < least) least = label;
            if (label > most) most = label;
        }
    const int base = least > 0;
    for (int s = 0; s < TUTTI_SPLITS; s++)
        for (int i = 0; i < items[s].count; i++) items[s].label[i] -= base;
    return name_by_label(&items[TUTTI_SPLIT_TRAIN], most - base + 1, names);
}

static tutti_status read_all(lists *l, tutti_items items[TUTTI_SPLITS], tutti_names *names,
                             const char *const list[TUTTI_SPLITS])
{
    TUTTI_TRY(tutti_folders_of_dir(&l->folders, l->dir));
    for (int s = 0; s < TUTTI_SPLITS; s++)
        if (list[s]) TUTTI_TRY(read_list(l, &items[s], list[s]));
    if (!items[0].count) return tutti_fail(TUTTI_ARGUMENT, "--data images: test= needs train=");
    const bool labelled = items[0].label[0] >= 0;
    for (int s = 1; s < TUTTI_SPLITS; s++)
        if (items[s].count && (items[s].label[0] >= 0) != labelled)
            return tutti_fail(TUTTI_DATA, "only one of '%s' and '%s' has labels", list[0], list[s]);
    if (labelled) return classes_by_label(items, names);
    for (int s = 0; s < TUTTI_SPLITS; s++) TUTTI_TRY(label_by_folder(l, &items[s]));
    return name_by_folder(l, items, names);
}

tutti_status tutti_items_from_lists(tutti_items items[TUTTI_SPLITS], tutti_names *names,
                                    const char *dir, const char *const list[TUTTI_SPLITS])
{
    lists l = {.dir = dir};
    const tutti_status s = read_all(&l, items, names, list);
    tutti_names_deinit(&l.folders);
    tutti_items_deinit(&l.found);
    tutti_free(l.by_base);
    return s;
}
