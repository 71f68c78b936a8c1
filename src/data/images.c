#define _GNU_SOURCE
#include "data/images.h"

#include <stdio.h>
#include <string.h>

#include "base/memory.h"

typedef struct images_state {
    char *dir;
    tutti_items items[TUTTI_SPLITS];
} images_state;

/* ------------------------------------------------------------------------- the items */

static tutti_status grow(void *out, size_t used, size_t wanted, size_t size)
{
    void *old, *larger = NULL;
    memcpy(&old, out, sizeof old);
    TUTTI_TRY(tutti_alloc(&larger, wanted, size));
    if (used) memcpy(larger, old, used * size);
    tutti_free(old);
    memcpy(out, &larger, sizeof larger);
    return TUTTI_OK;
}

tutti_status tutti_items_add(tutti_items *items, const char *path, int label)
{
    const size_t bytes = strlen(path) + 1;
    if (items->used + bytes > items->room) {
        const size_t room = 2 * items->room + bytes + 4096;
        TUTTI_TRY(grow(&items->pool, items->used, room, 1));
        items->room = room;
    }
    if (items->count == items->capacity) {
        const int capacity = 2 * items->capacity + 256;
        const size_t count = (size_t)items->count, wanted = (size_t)capacity;
        TUTTI_TRY(grow(&items->path, count, wanted, sizeof *items->path));
        TUTTI_TRY(grow(&items->label, count, wanted, sizeof *items->label));
        items->capacity = capacity;
    }
    memcpy(items->pool + items->used, path, bytes);
    items->path[items->count] = items->used;
    items->label[items->count++] = label;
    items->used += bytes;
    return TUTTI_OK;
}

void tutti_items_deinit(tutti_items *items)
{
    tutti_free(items->pool);
    tutti_free(items->path);
    tutti_free(items->label);
    *items = (tutti_items){0};
}

/* --------------------------------------------------------------------------- folders */

static bool is_picture(const char *name)
{
    const char *dot = strrchr(name, '.');
    return dot &&
           (!strcasecmp(dot, ".jpg") || !strcasecmp(dot, ".jpeg") || !strcasecmp(dot, ".png"));
}

static tutti_status scan_folder(tutti_items *items, const char *root, const char *prefix,
                                const char *folder, int label)
{
    char *path = NULL;
    tutti_names names = {0};
    TUTTI_TRY(tutti_path_join(&path, root, folder));
    tutti_status s = tutti_names_of_dir(&names, path);
    for (int i = 0; !s && i < names.count; i++) {
        char *relative = NULL;
        if (!is_picture(names.name[i])) continue;
        if (asprintf(&relative, "%s%s/%s", prefix, folder, names.name[i]) < 0)
            s = tutti_fail(TUTTI_MEMORY, "no memory for the path of '%s'", names.name[i]);
        else s = tutti_items_add(items, relative, label);
        tutti_free(relative);
    }
    tutti_names_deinit(&names);
    tutti_free(path);
    return s;
}

tutti_status tutti_items_scan(tutti_items *items, const char *root, const char *prefix,
                              const tutti_names *classes)
{
    for (int label = 0; label < classes->count; label++)
        TUTTI_TRY(scan_folder(items, root, prefix, classes->name[label], label));
    return TUTTI_OK;
}

tutti_status tutti_folders_of_dir(tutti_names *folders, const char *dir)
{
    tutti_names all;
    *folders = (tutti_names){0};
    TUTTI_TRY(tutti_names_of_dir(&all, dir));
    tutti_status s = TUTTI_OK;
    for (int i = 0; !s && i < all.count; i++) {
        char *path = NULL;
        s = tutti_path_join(&path, dir, all.name[i]);
        if (!s && tutti_path_is_dir(path)) s = tutti_names_add(folders, all.name[i]);
        tutti_free(path);
    }
    tutti_names_deinit(&all);
    return s;
}

static tutti_status add_below(tutti_names *pictures, const char *path, int depth)
{
    enum { DEEPEST = 64 };
    tutti_names names;
    TUTTI_TRY(tutti_names_of_dir(&names, path));
    tutti_status s = TUTTI_OK;
    for (int i = 0; !s && i < names.count; i++) {
        char *inside = NULL;
        s = tutti_path_join(&inside, path, names.name[i]);
        if (!s && tutti_path_is_dir(inside)) {
            if (depth < DEEPEST) s = add_below(pictures, inside, depth + 1);
        } else if (!s && is_picture(names.name[i])) s = tutti_names_add(pictures, inside);
        tutti_free(inside);
    }
    tutti_names_deinit(&names);
    return s;
}

tutti_status tutti_pictures_below(tutti_names *pictures, const char *path)
{
    const int before = pictures->count;
    if (!tutti_path_is_dir(path)) return tutti_names_add(pictures, path);
    TUTTI_TRY(add_below(pictures, path, 0));
    return pictures->count > before ? TUTTI_OK
                                    : tutti_fail(TUTTI_DATA, "'%s' has no JPEG or PNG files", path);
}

static tutti_status class_of(const tutti_names *classes, const char *name, const char *dir,
                             int *label)
{
    for (*label = 0; *label < classes->count; ++*label)
        if (!strcmp(classes->name[*label], name)) return TUTTI_OK;
    return tutti_fail(TUTTI_DATA, "the class '%s' of '%s' is not in the training set", name, dir);
}

/* Said once for all ranks. */
static void say_left_out(const tutti_data *data, const char *root, const tutti_names *folders)
{
    enum { NAMED = 5 };
    const tutti_log *log = data->options.log;
    char names[400] = "";
    size_t used = 0;
    if (!folders->count || !log || log->rank > 0) return;
    for (int i = 0; i < folders->count && i < NAMED; i++)
        used += (size_t)snprintf(names + used, sizeof names - used, "%s%.64s", i ? ", " : "",
                                 folders->name[i]);
    tutti_warn(log, "'%s': left out %d folder%s without JPEG or PNG files: %s%s", root,
               folders->count, folders->count > 1 ? "s" : "", names,
               folders->count > NAMED ? ", ..." : "");
}

/* The folders that hold pictures are the classes. */
static tutti_status scan_training(tutti_data *data, tutti_items *items, const char *root,
                                  const char *prefix)
{
    tutti_names folders = {0}, empty = {0};
    tutti_status s = tutti_folders_of_dir(&folders, root);
    for (int i = 0; !s && i < folders.count; i++) {
        const int before = items->count;
        tutti_data_tell(data, "looking for pictures", i, folders.count);
        s = scan_folder(items, root, prefix, folders.name[i], data->names.count);
        if (!s) s = tutti_names_add(items->count > before ? &data->names : &empty, folders.name[i]);
    }
    tutti_data_tell(data, "looking for pictures", 1, 1);
    if (!s) say_left_out(data, root, &empty);
    tutti_names_deinit(&folders);
    tutti_names_deinit(&empty);
    return s;
}

/* The folders of a test tree, which may lack some of the classes. */
static tutti_status scan_tests(tutti_items *items, const char *root, const char *prefix,
                               const tutti_names *classes)
{
    tutti_names folders = {0};
    tutti_status s = tutti_folders_of_dir(&folders, root);
    for (int i = 0, label = 0; !s && i < folders.count; i++) {
        int at = items->count;
        s = scan_folder(items, root, prefix, folders.name[i], 0);
        if (!s && at < items->count) s = class_of(classes, folders.name[i], root, &label);
        while (at < items->count) items->label[at++] = label;
    }
    tutti_names_deinit(&folders);
    return s;
}

/* DIR/train/CLASS/... and, where they are named, DIR/TEST/CLASS/... and DIR/VAL/CLASS/... */
static tutti_status scan_trees(tutti_data *data, const char *const tree[TUTTI_SPLITS])
{
    images_state *state = data->state;
    tutti_status s = TUTTI_OK;
    for (int split = 0; !s && split < TUTTI_SPLITS; split++) {
        char *root = NULL, *prefix = NULL;
        if (!tree[split]) continue;
        s = tutti_path_join(&root, state->dir, tree[split]);
        if (!s && asprintf(&prefix, "%s/", tree[split]) < 0)
            s = tutti_fail(TUTTI_MEMORY, "no memory for the path of '%s'", tree[split]);
        tutti_items *items = &state->items[split];
        if (!s && split == TUTTI_SPLIT_TRAIN) s = scan_training(data, items, root, prefix);
        else if (!s) s = scan_tests(items, root, prefix, &data->names);
        tutti_free(root);
        tutti_free(prefix);
    }
    return s;
}

/* DIR/CLASS/...: a part of each class is held out for testing. */
static tutti_status scan_classes(tutti_data *data, int percent)
{
    images_state *state = data->state;
    tutti_items all = {0};
    tutti_status s = scan_training(data, &all, state->dir, "");
    for (int i = 0, place = 0; !s && i < all.count; i++) {
        place = i && all.label[i] == all.label[i - 1] ? place + 1 : 0;
        s = tutti_items_add(&state->items[tutti_held_out(place, percent)],
                            tutti_items_path(&all, i), all.label[i]);
    }
    snprintf(data->note, sizeof data->note, "%d %% of each class held out", percent);
    tutti_items_deinit(&all);
    return s;
}

static bool is_tree(const char *dir, const char *name)
{
    char path[4096];
    return snprintf(path, sizeof path, "%s/%s", dir, name) < (int)sizeof path &&
           tutti_path_is_dir(path);
}

/* The trees beside DIR/train: for validation the one that val= names, for testing the first other
 * one. All are NULL where there are none. */
static void find_trees(const char *dir, const char *val, const char *tree[TUTTI_SPLITS])
{
    static const char *const names[] = {"val", "test", "valid", NULL};
    if (!is_tree(dir, "train")) return;
    if (val && is_tree(dir, val)) tree[TUTTI_SPLIT_VAL] = val;
    for (int i = 0; names[i] && !tree[TUTTI_SPLIT_TEST]; i++)
        if (is_tree(dir, names[i]) && !(val && !strcmp(val, names[i])))
            tree[TUTTI_SPLIT_TEST] = names[i];
    if (tree[TUTTI_SPLIT_TEST] || tree[TUTTI_SPLIT_VAL]) tree[TUTTI_SPLIT_TRAIN] = "train";
}

/* A list is a path of its own, or relative to the data set's folder. */
static tutti_status list_path(char **out, const char *dir, const char *list)
{
    if (tutti_path_is_file(list)) return tutti_strdup(out, list);
    return tutti_path_join(out, dir, list);
}

static tutti_status read_lists(tutti_data *data, const char *const given[TUTTI_SPLITS])
{
    images_state *state = data->state;
    char *path[TUTTI_SPLITS] = {NULL};
    tutti_status s = TUTTI_OK;
    for (int split = 0; !s && split < TUTTI_SPLITS; split++)
        if (given[split]) s = list_path(&path[split], state->dir, given[split]);
    const char *const lists[TUTTI_SPLITS] = {path[0], path[1], path[2]};
    if (!s) s = tutti_items_from_lists(state->items, &data->names, state->dir, lists);
    for (int split = 0; split < TUTTI_SPLITS; split++) tutti_free(path[split]);
    return s;
}

/* ------------------------------------------------------------------------- the source */

static void digest_items(tutti_data *data, const tutti_items *items)
{
    tutti_data_digest(data, items->pool, items->used);
    for (int i = 0; i < items->count; i++) tutti_data_digest_int(data, items->label[i]);
}

static tutti_status read_index(tutti_data *data, tutti_spec *spec)
{
    const images_state *state = data->state;
    const char *const lists[] = {tutti_spec_value(spec, "train"), tutti_spec_value(spec, "test"),
                                 data->val_place};
    const bool listed = lists[TUTTI_SPLIT_TRAIN] || lists[TUTTI_SPLIT_TEST];
    const char *tree[TUTTI_SPLITS] = {NULL};
    int holdout;
    if (!listed) find_trees(state->dir, data->val_place, tree);
    TUTTI_TRY(tutti_spec_holdout(
        spec, listed ? "the list that test= names" : tree[TUTTI_SPLIT_TEST], &holdout));
    if (data->val_place && !listed && !tree[TUTTI_SPLIT_VAL])
        return tutti_fail(
            TUTTI_ARGUMENT,
            "--data images: val=%s is neither a percentage, nor a list beside train=, "
            "nor a folder beside '%s/train'",
            data->val_place, state->dir);
    if (listed) return read_lists(data, lists);
    return tree[TUTTI_SPLIT_TRAIN] ? scan_trees(data, tree) : scan_classes(data, holdout);
}

static tutti_status images_open(tutti_data *data, tutti_spec *spec)
{
    if (spec->places != 1)
        return tutti_fail(TUTTI_ARGUMENT, "--data images needs a folder: images:DIR");
    if (tutti_spec_value(spec, "masks")) {
        data->source = &tutti_source_masks;
        return data->source->open(data, spec);
    }
    images_state *state = NULL;
    TUTTI_TRY(tutti_alloc(&state, 1, sizeof *state));
    data->state = state;
    TUTTI_TRY(tutti_strdup(&state->dir, spec->place[0]));
    data->native = (tutti_sample_shape){3, 224, 224};
    data->augment = (tutti_augment){.flip = true, .zoom = 8.0 / 7, .jitter = 0.25};

    TUTTI_TRY(read_index(data, spec));
    if (!state->items[0].count)
        return tutti_fail(TUTTI_DATA, "'%s' has no folder with JPEG or PNG files to train on",
                          state->dir);
    data->classes = data->names.count;
    for (int split = 0; split < TUTTI_SPLITS; split++) {
        data->count[split] = state->items[split].count;
        digest_items(data, &state->items[split]);
    }
    return TUTTI_OK;
}

static void images_close(tutti_data *data)
{
    images_state *state = data->state;
    if (!state) return;
    for (int split = 0; split < TUTTI_SPLITS; split++) tutti_items_deinit(&state->items[split]);
    tutti_free(state->dir);
    tutti_free(state);
}

static tutti_status images_pixels(tutti_reader *r, tutti_split split, uint32_t id,
                                  const tutti_fit *fit, int *label)
{
    const images_state *state = r->data->state;
    const tutti_items *items = &state->items[split];
    const char *item = tutti_items_path(items, (int)id);
    char path[4096];
    *label = items->label[id];
    const int length = item[0] == '/' ? snprintf(path, sizeof path, "%s", item)
                                      : snprintf(path, sizeof path, "%s/%s", state->dir, item);
    if (length >= (int)sizeof path)
        return tutti_fail(TUTTI_DATA, "the path '%.60s...' is too long", path);
    return tutti_reader_decode(r, path, r->data->picture.channels, fit);
}

static int images_label(const tutti_data *data, uint32_t id)
{
    return ((const images_state *)data->state)->items[TUTTI_SPLIT_TRAIN].label[id];
}

static const char *images_place(const tutti_data *data, tutti_split split, uint32_t id)
{
    return tutti_items_path(&((const images_state *)data->state)->items[split], (int)id);
}

const tutti_source tutti_source_images = {
    .kind = "images",
    .open = images_open,
    .close = images_close,
    .pixels = images_pixels,
    .label = images_label,
    .place = images_place,
};
