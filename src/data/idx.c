#define _GNU_SOURCE
#include "data/idx.h"

#include <string.h>

#include "base/memory.h"
#include "data/source.h"

enum { TYPE_BYTE = 0x08, MAX_SIZE = 1 << 30, MAX_ITEM = 1 << 26 };

typedef struct idx_state {
    tutti_file images[TUTTI_STORED];
    tutti_idx index[TUTTI_STORED];
    uint8_t *labels[TUTTI_STORED];
} idx_state;

tutti_status tutti_idx_read(tutti_idx *idx, const tutti_file *file)
{
    uint8_t magic[4], size[4];
    *idx = (tutti_idx){.header = 4, .item = 1};
    TUTTI_TRY(tutti_file_read(file, 0, magic, 4));
    idx->dims = magic[3];
    if (magic[0] || magic[1] || idx->dims < 1 || idx->dims > TUTTI_IDX_DIMS)
        return tutti_fail(TUTTI_DATA, "'%s' is not an idx file: it begins with %02x%02x%02x%02x",
                          file->path, magic[0], magic[1], magic[2], magic[3]);
    if (magic[2] != TYPE_BYTE)
        return tutti_fail(TUTTI_DATA, "'%s' holds numbers of type %02x; only bytes (08) are read",
                          file->path, magic[2]);
    for (int i = 0; i < idx->dims; i++, idx->header += 4) {
        TUTTI_TRY(tutti_file_read(file, idx->header, size, 4));
        const uint32_t n = (uint32_t)size[0] << 24 | size[1] << 16 | size[2] << 8 | size[3];
        if (n < 1 || n > MAX_SIZE || (i && idx->item * n > MAX_ITEM))
            return tutti_fail(TUTTI_DATA, "'%s': dimension %d of %d is %u", file->path, i + 1,
                              idx->dims, n);
        idx->size[i] = (int)n;
        if (i) idx->item *= n;
    }
    return TUTTI_OK;
}

int tutti_idx_items(const tutti_idx *idx, const tutti_file *file)
{
    const uint64_t held = (file->bytes - idx->header) / idx->item;
    return held < (uint64_t)idx->size[0] ? (int)held : idx->size[0];
}

/* ------------------------------------------------------------------------- the source */

/* Finds the file whose name holds 'part' and 'what'; a plain one before its .gz. */
static tutti_status find_file(char **out, const char *dir, const tutti_names *names,
                              const char *const parts[2], const char *what)
{
    const char *found = NULL;
    for (int i = 0; i < names->count; i++) { /* sorted: NAME before NAME.gz */
        const char *name = names->name[i];
        if (!(strstr(name, parts[0]) || strstr(name, parts[1])) || !strstr(name, what)) continue;
        if (found && strncmp(name, found, strlen(found)))
            return tutti_fail(TUTTI_DATA,
                              "'%s' has both '%s' and '%s': keep one data set per folder", dir,
                              found, name);
        if (!found) found = name;
    }
    if (!found)
        return tutti_fail(TUTTI_DATA, "'%s' has no file named like '%s-%s-idx?-ubyte[.gz]'", dir,
                          parts[0], what);
    return tutti_path_join(out, dir, found);
}

static tutti_status check_whole(const tutti_data *data, const tutti_idx *idx,
                                const tutti_file *file)
{
    const int held = tutti_idx_items(idx, file);
    if (held == idx->size[0]) return TUTTI_OK;
    if (!data->options.skip_bad)
        return tutti_fail(TUTTI_DATA,
                          "'%s' is cut off: it should have %d items and has %d; --skip-bad does "
                          "without the others",
                          file->path, idx->size[0], held);
    tutti_warn(data->options.log, "'%s' is cut off: the last %d of %d items are skipped",
               file->path, idx->size[0] - held, idx->size[0]);
    return TUTTI_OK;
}

static tutti_status read_labels(tutti_data *data, uint8_t **out, int count, const char *path)
{
    tutti_file file;
    tutti_idx idx;
    TUTTI_TRY(tutti_file_open(&file, path));
    tutti_status s = tutti_idx_read(&idx, &file);
    if (!s && (idx.dims != 1 || idx.size[0] != count))
        s = tutti_fail(TUTTI_DATA, "'%s' has %d labels in %d dimensions for %d images", path,
                       idx.size[0], idx.dims, count);
    if (!s && tutti_idx_items(&idx, &file) < count)
        s = tutti_fail(TUTTI_DATA, "'%s' is cut off: it should have %d labels and has %d", path,
                       count, tutti_idx_items(&idx, &file));
    if (!s) s = tutti_alloc(out, (size_t)count, 1);
    if (!s) s = tutti_file_read(&file, idx.header, *out, (size_t)count);
    tutti_file_close(&file);
    for (int i = 0; !s && i < count; i++)
        if ((*out)[i] >= data->classes) data->classes = (*out)[i] + 1;
    if (!s) tutti_data_digest(data, *out, (size_t)count);
    return s;
}

static tutti_status take_shape(tutti_data *data, const tutti_idx *idx, const char *path)
{
    const tutti_sample_shape shape = {
        .channels = idx->dims == 4 ? idx->size[3] : 1,
        .height = idx->size[1],
        .width = idx->size[2],
    };
    if (idx->dims < 3 || (shape.channels != 1 && shape.channels != 3) || idx->item > 65536 * 3)
        return tutti_fail(TUTTI_DATA, "'%s' does not hold small grey or colour images", path);
    if (data->native.channels && memcmp(&data->native, &shape, sizeof shape))
        return tutti_fail(TUTTI_DATA, "'%s': %dx%dx%d, but the training images are %dx%dx%d", path,
                          shape.height, shape.width, shape.channels, data->native.height,
                          data->native.width, data->native.channels);
    data->native = shape;
    return TUTTI_OK;
}

static tutti_status open_split(tutti_data *data, const char *dir, const tutti_names *names,
                               tutti_split split)
{
    static const char *const parts[TUTTI_STORED][2] = {{"train", "train"}, {"t10k", "test"}};
    idx_state *state = data->state;
    tutti_idx *idx = &state->index[split];
    char *images = NULL, *labels = NULL;
    tutti_status s = find_file(&images, dir, names, parts[split], "images");
    if (!s) s = find_file(&labels, dir, names, parts[split], "labels");
    if (!s) s = tutti_file_open(&state->images[split], images);
    if (!s) s = tutti_idx_read(idx, &state->images[split]);
    if (!s) s = take_shape(data, idx, images);
    if (!s) s = check_whole(data, idx, &state->images[split]);
    if (!s) s = read_labels(data, &state->labels[split], idx->size[0], labels);
    if (!s) {
        data->count[split] = idx->size[0];
        tutti_data_digest_int(data, (int64_t)state->images[split].bytes);
        tutti_data_digest(data, idx->size, sizeof idx->size);
    }
    tutti_free(images);
    tutti_free(labels);
    return s;
}

static tutti_status open_dir(tutti_data *data, const char *dir)
{
    tutti_names names;
    TUTTI_TRY(tutti_alloc(&data->state, 1, sizeof(idx_state)));
    TUTTI_TRY(tutti_names_of_dir(&names, dir));
    tutti_status s = open_split(data, dir, &names, TUTTI_SPLIT_TRAIN);
    if (!s) s = open_split(data, dir, &names, TUTTI_SPLIT_TEST);
    tutti_names_deinit(&names);
    return s;
}

static tutti_status idx_open(tutti_data *data, tutti_spec *spec)
{
    if (spec->places != 1) return tutti_fail(TUTTI_ARGUMENT, "--data idx needs a folder: idx:DIR");
    return open_dir(data, spec->place[0]);
}

static tutti_status fashion_open(tutti_data *data, tutti_spec *spec)
{
    static const char *const names[] = {"T-shirt/top", "Trouser",   "Pullover", "Dress",
                                        "Coat",        "Sandal",    "Shirt",    "Sneaker",
                                        "Bag",         "Ankle boot"};
    const char *dir = spec->places ? spec->place[0] : "/usr/share/datasets/fashion-mnist";
    if (!tutti_path_is_dir(dir))
        return tutti_fail(TUTTI_DATA,
                          "'%s' does not exist: install Debian's package dataset-fashion-mnist, or "
                          "give the place of its four files: fashion-mnist:DIR",
                          dir);
    TUTTI_TRY(open_dir(data, dir));
    data->augment.flip = true;
    for (int i = 0; i < 10; i++) TUTTI_TRY(tutti_names_add(&data->names, names[i]));
    return TUTTI_OK;
}

static void idx_close(tutti_data *data)
{
    idx_state *state = data->state;
    if (!state) return;
    for (int split = 0; split < TUTTI_STORED; split++) {
        tutti_file_close(&state->images[split]);
        tutti_free(state->labels[split]);
    }
    tutti_free(state);
}

static tutti_status idx_pixels(tutti_reader *r, tutti_split split, uint32_t id,
                               const tutti_fit *fit, int *label)
{
    (void)fit;
    const tutti_data *data = r->data;
    const idx_state *state = data->state;
    const tutti_idx *idx = &state->index[split];
    TUTTI_TRY(tutti_buffer_reserve(&r->bytes, idx->item));
    if (tutti_file_read(&state->images[split], idx->header + (uint64_t)id * idx->item,
                        r->bytes.bytes, idx->item))
        return tutti_fail(TUTTI_DATA, "image %u: %s", id, tutti_message());
    TUTTI_TRY(tutti_image_reserve(&r->image, idx->size[1], idx->size[2], data->picture.channels));
    tutti_image_convert(&r->image, r->bytes.bytes, data->native.channels);
    *label = state->labels[split][id];
    return TUTTI_OK;
}

static int idx_label(const tutti_data *data, uint32_t id)
{
    return ((const idx_state *)data->state)->labels[TUTTI_SPLIT_TRAIN][id];
}

const tutti_source tutti_source_idx = {
    .kind = "idx",
    .open = idx_open,
    .close = idx_close,
    .pixels = idx_pixels,
    .label = idx_label,
    .measure = tutti_measure_pictures,
};

const tutti_source tutti_source_fashion = {
    .kind = "fashion-mnist",
    .open = fashion_open,
    .close = idx_close,
    .pixels = idx_pixels,
    .label = idx_label,
    .measure = tutti_measure_pictures,
};
