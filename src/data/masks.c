/* Pictures in a folder, and for each of them a mask in another: images:DIR,masks=DIR. Folders
 * inside are alike in both; a mask is called as its picture, but .png. Where the folder has a train
 * and beside it a val, test or valid, these are the splits; else a part is held out. */
#define _GNU_SOURCE
#include "data/images.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "data/mask_png.h"

enum { PATH = 4096 };

typedef struct masks_state {
    char *dir, *masks;
    tutti_items items[TUTTI_SPLITS];
} masks_state;

/* ---- the index ---- */

static tutti_status join(char out[PATH], const char *dir, const char *inside, const char *suffix)
{
    const char *dot = strrchr(inside, '.'), *slash = strrchr(inside, '/');
    const bool has_end = suffix && dot && (!slash || dot > slash);
    const size_t stem = has_end ? (size_t)(dot - inside) : strlen(inside);
    if (snprintf(out, PATH, "%s/%.*s%s", dir, (int)stem, inside, suffix ? suffix : "") < PATH)
        return TUTTI_OK;
    return tutti_fail(TUTTI_DATA, "the path '%.60s...' is too long", out);
}

static tutti_status add_picture(masks_state *state, tutti_split split, const char *path)
{
    char mask[PATH];
    const char *inside = path + strlen(state->dir) + 1;
    TUTTI_TRY(join(mask, state->masks, inside, ".png"));
    if (access(mask, R_OK))
        return tutti_fail(TUTTI_DATA, "'%s' has no mask: there is no '%s'", path, mask);
    return tutti_items_add(&state->items[split], inside, 0);
}

/* All pictures below DIR, or below DIR/folder. */
static tutti_status scan(masks_state *state, tutti_split split, const char *folder)
{
    char path[PATH];
    tutti_names pictures = {0};
    if (folder) TUTTI_TRY(join(path, state->dir, folder, NULL));
    tutti_status s = tutti_pictures_below(&pictures, folder ? path : state->dir);
    for (int i = 0; !s && i < pictures.count; i++) s = add_picture(state, split, pictures.name[i]);
    tutti_names_deinit(&pictures);
    return s;
}

static bool has_folder(const masks_state *state, const char *name)
{
    char path[PATH];
    return !join(path, state->dir, name, NULL) && tutti_path_is_dir(path);
}

/* Which folder each split has; none where there is no train beside others. */
static void find_folders(const tutti_data *data, const char *folder[TUTTI_SPLITS])
{
    static const char *const names[] = {"val", "test", "valid"};
    const masks_state *state = data->state;
    const char *val = data->val_place;
    if (!has_folder(state, "train")) return;
    if (val && has_folder(state, val)) folder[TUTTI_SPLIT_VAL] = val;
    for (int i = 0; i < 3 && !folder[TUTTI_SPLIT_TEST]; i++)
        if (has_folder(state, names[i]) && !(val && !strcmp(val, names[i])))
            folder[TUTTI_SPLIT_TEST] = names[i];
    if (folder[TUTTI_SPLIT_TEST] || folder[TUTTI_SPLIT_VAL]) folder[TUTTI_SPLIT_TRAIN] = "train";
}

static tutti_status read_index(tutti_data *data, tutti_spec *spec)
{
    masks_state *state = data->state;
    const char *folder[TUTTI_SPLITS] = {NULL};
    int holdout;
    find_folders(data, folder);
    TUTTI_TRY(tutti_spec_holdout(spec, folder[TUTTI_SPLIT_TEST], &holdout));
    if (!folder[TUTTI_SPLIT_TRAIN]) TUTTI_TRY(scan(state, TUTTI_SPLIT_TRAIN, NULL));
    for (int split = 0; split < TUTTI_SPLITS; split++)
        if (folder[split]) TUTTI_TRY(scan(state, (tutti_split)split, folder[split]));
    for (int split = 0; split < TUTTI_SPLITS; split++) {
        const tutti_items *items = &state->items[split];
        data->count[split] = items->count;
        tutti_data_digest(data, items->pool, items->used);
    }
    return folder[TUTTI_SPLIT_TRAIN] ? TUTTI_OK : tutti_data_hold_out(data, holdout);
}

static tutti_status check_net(const tutti_data *data)
{
    const tutti_data_options *o = &data->options;
    if (o->target_count == 1 && o->targets[0].form == TUTTI_TARGET_PIXELS) return TUTTI_OK;
    return tutti_fail(TUTTI_ARGUMENT,
                      "--data images: masks= has a class for each pixel, but that is not what the "
                      "net's loss wants: end the net in pixelsoftmax, or leave masks= out");
}

static tutti_status masks_open(tutti_data *data, tutti_spec *spec)
{
    const char *names = tutti_spec_value(spec, "names");
    masks_state *state = NULL;
    TUTTI_TRY(check_net(data));
    TUTTI_TRY(tutti_alloc(&state, 1, sizeof *state));
    data->state = state;
    TUTTI_TRY(tutti_strdup(&state->dir, spec->place[0]));
    TUTTI_TRY(tutti_strdup(&state->masks, tutti_spec_value(spec, "masks")));
    data->native = (tutti_sample_shape){3, 224, 224};
    data->augment = (tutti_augment){.flip = true, .zoom = 1};
    if (names) TUTTI_TRY(tutti_data_read_names(data, names));
    data->classes = data->options.targets[0].c;
    if (data->names.count > data->classes)
        return tutti_fail(TUTTI_ARGUMENT, "--data images: '%s' names %d classes, the net tells %d",
                          names, data->names.count, data->classes);
    return read_index(data, spec);
}

static void masks_close(tutti_data *data)
{
    masks_state *state = data->state;
    if (!state) return;
    for (int split = 0; split < TUTTI_SPLITS; split++) tutti_items_deinit(&state->items[split]);
    tutti_free(state->dir);
    tutti_free(state->masks);
    tutti_free(state);
}

/* ---- samples ---- */

static tutti_status masks_pixels(tutti_reader *r, tutti_split split, uint32_t id,
                                 const tutti_fit *fit, int *label)
{
    const masks_state *state = r->data->state;
    char path[PATH];
    *label = 0;
    TUTTI_TRY(join(path, state->dir, tutti_items_path(&state->items[split], (int)id), NULL));
    return tutti_reader_decode(r, path, r->data->picture.channels, fit);
}

/* A JPEG may have been decoded at a half, a quarter or an eighth of its size. */
static bool belongs(int mask, int picture)
{
    for (int part = 1; part <= 8; part *= 2)
        if (tutti_ceil_div(mask, part) == picture) return true;
    return false;
}

static tutti_status read_mask(tutti_reader *r, const char *path)
{
    tutti_file file;
    TUTTI_TRY(tutti_file_open(&file, path));
    tutti_status s = TUTTI_OK;
    if (file.bytes > TUTTI_MAX_PICTURE_BYTES)
        s = tutti_fail(TUTTI_DATA, "'%s' is too large for a mask", path);
    if (!s) s = tutti_buffer_reserve(&r->bytes, (size_t)file.bytes);
    if (!s) s = tutti_file_read(&file, 0, r->bytes.bytes, (size_t)file.bytes);
    if (!s) s = tutti_decode_mask(&r->mask, path, r->bytes.bytes, (size_t)file.bytes);
    tutti_file_close(&file);
    return s;
}

static tutti_status masks_mask(tutti_reader *r, tutti_split split, uint32_t id)
{
    const masks_state *state = r->data->state;
    char path[PATH];
    TUTTI_TRY(join(path, state->masks, tutti_items_path(&state->items[split], (int)id), ".png"));
    TUTTI_TRY(read_mask(r, path));
    if (belongs(r->mask.height, r->image.height) && belongs(r->mask.width, r->image.width))
        return TUTTI_OK;
    return tutti_fail(TUTTI_DATA, "'%s' has %dx%d pixels, its picture has others (%dx%d)", path,
                      r->mask.height, r->mask.width, r->image.height, r->image.width);
}

static const char *masks_place(const tutti_data *data, tutti_split split, uint32_t id)
{
    return tutti_items_path(&((const masks_state *)data->state)->items[split], (int)id);
}

const tutti_source tutti_source_masks = {
    .kind = "images",
    .open = masks_open,
    .close = masks_close,
    .pixels = masks_pixels,
    .mask = masks_mask,
    .place = masks_place,
};
