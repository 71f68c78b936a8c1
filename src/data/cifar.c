/* CIFAR's binary version: records of one label byte (CIFAR-100: a coarse and a fine one) and 1024
 * bytes each of red, green and blue. */
#define _GNU_SOURCE
#include "data/source.h"

#include <stdio.h>
#include <string.h>

#include "base/memory.h"

enum { SIDE = 32, PLANE = SIDE * SIDE, MAX_FILES = 5 };

typedef struct cifar_kind {
    int label_bytes, classes, files[TUTTI_STORED];
    const char *pattern[TUTTI_STORED];
    const char *names;
} cifar_kind;

static const cifar_kind cifar10 = {
    1, 10, {5, 1}, {"data_batch_%d.bin", "test_batch.bin"}, "batches.meta.txt"};
static const cifar_kind cifar100 = {
    2, 100, {1, 1}, {"train.bin", "test.bin"}, "fine_label_names.txt"};

typedef struct cifar_state {
    const cifar_kind *kind;
    size_t record;
    tutti_file file[TUTTI_STORED][MAX_FILES];
    int end[TUTTI_STORED][MAX_FILES]; /* ids below this are in this file or an earlier one */
} cifar_state;

static tutti_status count_records(const tutti_data *data, const tutti_file *file, size_t record,
                                  int *count)
{
    const uint64_t records = file->bytes / record, rest = file->bytes % record;
    if (records < 1 || records > 1 << 26)
        return tutti_fail(TUTTI_DATA, "'%s' has %llu bytes, not a multiple of its records of %zu",
                          file->path, (unsigned long long)file->bytes, record);
    if (rest && !data->options.skip_bad)
        return tutti_fail(TUTTI_DATA,
                          "'%s' is cut off in record %llu (byte %llu); --skip-bad does without it",
                          file->path, (unsigned long long)records, (unsigned long long)file->bytes);
    if (rest)
        tutti_warn(data->options.log, "'%s' is cut off: its last %llu bytes are skipped",
                   file->path, (unsigned long long)rest);
    *count = (int)records;
    return TUTTI_OK;
}

static tutti_status open_file(tutti_data *data, const char *dir, int split, int index)
{
    cifar_state *state = data->state;
    const char *pattern = state->kind->pattern[split], *percent = strstr(pattern, "%d");
    char name[64], *path = NULL;
    if (percent)
        snprintf(name, sizeof name, "%.*s%d%s", (int)(percent - pattern), pattern, index + 1,
                 percent + 2);
    else snprintf(name, sizeof name, "%s", pattern);
    tutti_file *file = &state->file[split][index];
    int count = 0;
    TUTTI_TRY(tutti_path_join(&path, dir, name));
    tutti_status s = tutti_file_open(file, path);
    tutti_free(path);
    if (!s) s = count_records(data, file, state->record, &count);
    if (s) return s;
    data->count[split] += count;
    state->end[split][index] = data->count[split];
    tutti_data_digest_text(data, name);
    tutti_data_digest_int(data, (int64_t)file->bytes);
    return TUTTI_OK;
}

static tutti_status read_names(tutti_data *data, const char *dir, const char *name)
{
    char *path = NULL, *text = NULL, *line = NULL;
    TUTTI_TRY(tutti_path_join(&path, dir, name));
    tutti_status s = TUTTI_OK;
    if (tutti_path_is_file(path)) {
        s = tutti_file_text(&text, path);
        for (char *at = text;
             !s && data->names.count < data->classes && tutti_next_line(&at, &line);)
            if (*line) s = tutti_names_add(&data->names, line);
    }
    tutti_free(path);
    tutti_free(text);
    return s;
}

static tutti_status cifar_open(tutti_data *data, tutti_spec *spec, const cifar_kind *kind)
{
    if (spec->places != 1)
        return tutti_fail(TUTTI_ARGUMENT, "--data %s needs a folder: %s:DIR", spec->kind,
                          spec->kind);
    cifar_state *state = NULL;
    TUTTI_TRY(tutti_alloc(&state, 1, sizeof *state));
    data->state = state;
    state->kind = kind;
    state->record = (size_t)kind->label_bytes + 3 * PLANE;
    data->classes = kind->classes;
    data->native = (tutti_sample_shape){3, SIDE, SIDE};
    data->augment = (tutti_augment){.pad = 4, .flip = true};
    for (int split = 0; split < TUTTI_STORED; split++)
        for (int i = 0; i < kind->files[split]; i++)
            TUTTI_TRY(open_file(data, spec->place[0], split, i));
    return read_names(data, spec->place[0], kind->names);
}

static tutti_status cifar10_open(tutti_data *data, tutti_spec *spec)
{
    return cifar_open(data, spec, &cifar10);
}

static tutti_status cifar100_open(tutti_data *data, tutti_spec *spec)
{
    return cifar_open(data, spec, &cifar100);
}

static void cifar_close(tutti_data *data)
{
    cifar_state *state = data->state;
    for (int split = 0; state && split < TUTTI_STORED; split++)
        for (int i = 0; i < MAX_FILES; i++) tutti_file_close(&state->file[split][i]);
    tutti_free(state);
}

static void interleave(uint8_t *restrict out, const uint8_t *restrict planes)
{
    for (int i = 0; i < PLANE; i++)
        for (int c = 0; c < 3; c++) out[3 * i + c] = planes[c * PLANE + i];
}

static tutti_status cifar_pixels(tutti_reader *r, tutti_split split, uint32_t id,
                                 const tutti_fit *fit, int *label)
{
    (void)fit;
    const cifar_state *state = r->data->state;
    const size_t labels = (size_t)state->kind->label_bytes, record = state->record;
    int f = 0;
    while ((int)id >= state->end[split][f]) f++;
    const tutti_file *file = &state->file[split][f];
    const uint32_t at = id - (uint32_t)(f ? state->end[split][f - 1] : 0);

    TUTTI_TRY(tutti_buffer_reserve(&r->bytes, record + 3 * PLANE));
    uint8_t *bytes = r->bytes.bytes, *colours = bytes + record;
    TUTTI_TRY(tutti_file_read(file, (uint64_t)at * record, bytes, record));
    *label = bytes[labels - 1];
    if (*label >= state->kind->classes)
        return tutti_fail(TUTTI_DATA, "'%s' record %u (byte %llu): label %d of %d classes",
                          file->path, at, (unsigned long long)at * record, *label,
                          state->kind->classes);
    TUTTI_TRY(tutti_image_reserve(&r->image, SIDE, SIDE, r->data->picture.channels));
    interleave(colours, bytes + labels);
    tutti_image_convert(&r->image, colours, 3);
    return TUTTI_OK;
}

const tutti_source tutti_source_cifar10 = {
    .kind = "cifar10",
    .open = cifar10_open,
    .close = cifar_close,
    .pixels = cifar_pixels,
    .measure = tutti_measure_pictures,
};

const tutti_source tutti_source_cifar100 = {
    .kind = "cifar100",
    .open = cifar100_open,
    .close = cifar_close,
    .pixels = cifar_pixels,
    .measure = tutti_measure_pictures,
};
