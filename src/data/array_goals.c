/* Targets from arrays: values of any type, classes of pixels, several arrays. */
#define _GNU_SOURCE
#include "data/arrays.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "data/mask_png.h"

static const tutti_target *target_of(const tutti_data *data, int target)
{
    return &data->options.targets[target];
}

/* ---- opening ---- */

/* Does an item have these sizes, but for those of one? */
static bool has_sizes(const tutti_npy *npy, int a, int b, int c)
{
    const int want[3] = {a, b, c};
    int next = 0;
    for (int i = 1; i < npy->dims; i++) {
        if (npy->size[i] == 1) continue;
        while (next < 3 && want[next] == 1) next++;
        if (next == 3 || npy->size[i] != want[next]) return false;
        next++;
    }
    while (next < 3 && want[next] == 1) next++;
    return next == 3;
}

static tutti_status wrong_shape(const tutti_array *a, const tutti_target *t)
{
    char has[96] = "one number";
    size_t used = 0;
    for (int i = 1; i < a->npy.dims && used < sizeof has; i++)
        used += (size_t)snprintf(has + used, sizeof has - used, "%s%lld", i > 1 ? "x" : "",
                                 (long long)a->npy.size[i]);
    if (t->form == TUTTI_TARGET_PIXELS)
        return tutti_fail(TUTTI_SHAPE,
                          "'%s' has %s for each sample; the net's loss wants a class for each of "
                          "%dx%d pixels",
                          a->file.path, has, t->h, t->w);
    if (t->form == TUTTI_TARGET_CLASS)
        return tutti_fail(TUTTI_SHAPE, "'%s' has %s for each sample; a label is one number",
                          a->file.path, has);
    return tutti_fail(TUTTI_SHAPE, "'%s' has %s for each sample; the net's outputs are %d of %dx%d",
                      a->file.path, has, t->c, t->h, t->w);
}

static tutti_status check_whole_numbers(const tutti_array *a, const tutti_target *t)
{
    if (tutti_target_is_values(t) || a->npy.type->is_whole) return TUTTI_OK;
    return tutti_fail(TUTTI_DATA,
                      "'%s' holds floats; classes are whole numbers: save it as Y.astype('uint8')",
                      a->file.path);
}

/* Where both orders fit, it is that of the samples. */
static tutti_status check_shape(tutti_npy_set *state, const tutti_array *a, const tutti_target *t,
                                int target)
{
    const int c = tutti_target_is_values(t) ? t->c : 1;
    const bool one = t->form == TUTTI_TARGET_CLASS;
    const bool chw = has_sizes(&a->npy, c, one ? 1 : t->h, one ? 1 : t->w);
    const bool hwc = has_sizes(&a->npy, one ? 1 : t->h, one ? 1 : t->w, c);
    state->goal_is_planar[target] = chw && hwc ? state->planar : chw;
    return chw || hwc ? TUTTI_OK : wrong_shape(a, t);
}

static tutti_status open_goal(tutti_data *data, tutti_split split, int target, const char *path)
{
    tutti_npy_set *state = data->state;
    tutti_array *a = &state->goals[split][target];
    const tutti_array *samples = &state->samples[split];
    TUTTI_TRY(tutti_array_open(data, a, path));
    if (a->npy.size[0] != samples->npy.size[0])
        return tutti_fail(TUTTI_DATA, "'%s' has %lld targets, '%s' %lld samples", a->file.path,
                          (long long)a->npy.size[0], samples->file.path,
                          (long long)samples->npy.size[0]);
    TUTTI_TRY(check_whole_numbers(a, target_of(data, target)));
    return check_shape(state, a, target_of(data, target), target);
}

/* test-labels=, test-labels2=, ... */
static const char *const keys[TUTTI_SPLITS][TUTTI_MOST_TARGETS] = {
    [TUTTI_SPLIT_TEST] = {"test-labels", "test-labels2", "test-labels3", "test-labels4"},
    [TUTTI_SPLIT_VAL] = {"val-labels", "val-labels2", "val-labels3", "val-labels4"},
};

static tutti_status open_goals(tutti_data *data, tutti_spec *spec, int target)
{
    const tutti_npy_set *state = data->state;
    TUTTI_TRY(open_goal(data, TUTTI_SPLIT_TRAIN, target, spec->place[1 + target]));
    for (int split = TUTTI_SPLIT_TEST; split < TUTTI_SPLITS; split++) {
        const char *path = tutti_spec_value(spec, keys[split][target]);
        if (!state->samples[split].file.path) continue;
        if (!path)
            return tutti_fail(TUTTI_ARGUMENT, "--data npy: %s= is missing", keys[split][target]);
        TUTTI_TRY(open_goal(data, (tutti_split)split, target, path));
    }
    return TUTTI_OK;
}

tutti_status tutti_array_goals_open(tutti_data *data, tutti_spec *spec)
{
    for (int t = 0; t < data->options.target_count; t++) TUTTI_TRY(open_goals(data, spec, t));
    data->classes = target_of(data, data->options.answer)->c;
    if (data->names.count <= data->classes) return TUTTI_OK;
    return tutti_fail(TUTTI_ARGUMENT, "--data npy: names= has %d names for %d outputs",
                      data->names.count, data->classes);
}

/* ---- samples ---- */

static tutti_status read_item(tutti_reader *r, const tutti_array *a, uint32_t id)
{
    if (!tutti_npy_items_read(&a->npy, &a->file, id, 1, &r->bytes)) return TUTTI_OK;
    return tutti_fail(TUTTI_DATA, "sample %u: %s", id, tutti_message());
}

static tutti_status bad_value(const tutti_array *a, uint32_t id, double value, bool share)
{
    if (share && isfinite(value))
        return tutti_fail(TUTTI_DATA,
                          "'%s': sample %u has the target %g; sigmoid cross-entropy (bce) wants 0 "
                          "to 1",
                          a->file.path, id, value);
    return tutti_fail(TUTTI_DATA, "'%s': sample %u has a target that is not a number", a->file.path,
                      id);
}

static tutti_status put_values(tutti_reader *r, const tutti_array *a, const tutti_target *t,
                               bool planar, uint32_t id, float *words)
{
    const size_t pixels = (size_t)t->h * (size_t)t->w, channels = (size_t)t->c;
    const bool share = t->form == TUTTI_TARGET_SHARES;
    const tutti_npy_type *type = a->npy.type;
    memset(words, 0, tutti_target_words(t) * sizeof *words);
    for (size_t c = 0; c < channels; c++)
        for (size_t p = 0; p < pixels; p++) {
            const size_t at = planar ? c * pixels + p : p * channels + c;
            float value;
            type->to_floats((const char *)r->bytes.bytes + at * (size_t)type->bytes, 1, &value);
            if (!isfinite(value) || (share && !(value >= 0 && value <= 1)))
                return bad_value(a, id, (double)value, share);
            words[(c / TUTTI_SAMPLE_BLOCK * pixels + p) * TUTTI_SAMPLE_BLOCK +
                  c % TUTTI_SAMPLE_BLOCK] = value;
        }
    return TUTTI_OK;
}

/* 255 is nothing of a class, as in masks, unless there are so many; neither are negative ones. */
static bool is_ignored(int64_t class, const tutti_target *t)
{
    return t->form == TUTTI_TARGET_PIXELS &&
           (class < 0 || (class == TUTTI_MASK_NONE && t->c <= TUTTI_MASK_NONE));
}

static tutti_status put_classes(tutti_reader *r, const tutti_array *a, const tutti_target *t,
                                uint32_t id, int32_t *words)
{
    const tutti_npy_type *type = a->npy.type;
    for (size_t i = 0; i < tutti_target_words(t); i++) {
        const int64_t class =
            type->to_whole((const char *)r->bytes.bytes + i * (size_t)type->bytes);
        if (!is_ignored(class, t) && (class < 0 || class >= t->c))
            return tutti_fail(TUTTI_DATA,
                              "'%s': sample %u has class %lld, but the net tells %d classes apart",
                              a->file.path, id, (long long)class, t->c);
        words[i] = is_ignored(class, t) ? TUTTI_IGNORED : (int32_t) class;
    }
    return TUTTI_OK;
}

/* Classes of pixels move with the picture; they are put into the reader's mask. */
static tutti_status put_mask(tutti_reader *r, const tutti_array *a, const tutti_target *t,
                             uint32_t id, const tutti_view *view, int32_t *words)
{
    TUTTI_TRY(put_classes(r, a, t, id, words));
    TUTTI_TRY(tutti_image_reserve(&r->mask, t->h, t->w, 1));
    for (size_t i = 0; i < tutti_target_words(t); i++)
        r->mask.pixels[i] = words[i] == TUTTI_IGNORED ? TUTTI_MASK_NONE : (uint8_t)words[i];
    return tutti_goals_render(r, view, t, words);
}

static bool is_whole_axis(const tutti_view_axis *axis, int picture)
{
    return axis->scale == 1 && !axis->first && axis->origin == 0 && axis->size == picture;
}

/* Is the whole picture taken as it is? */
static bool is_whole(const tutti_reader *r, const tutti_view *view)
{
    return !view->flip && is_whole_axis(&view->rows, r->image.height) &&
           is_whole_axis(&view->columns, r->image.width);
}

tutti_status tutti_array_goal(tutti_reader *r, tutti_split split, uint32_t id, int target,
                              const tutti_view *view, void *words)
{
    const tutti_npy_set *state = r->data->state;
    const tutti_target *t = target_of(r->data, target);
    const tutti_array *a = &state->goals[split][target];
    const bool moves = view && t->h * t->w > 1 && !is_whole(r, view);
    TUTTI_TRY(read_item(r, a, id));
    if (t->form == TUTTI_TARGET_PIXELS && moves && t->c <= TUTTI_MASK_NONE)
        return put_mask(r, a, t, id, view, words);
    if (t->form != TUTTI_TARGET_CLASS && moves)
        return tutti_fail(TUTTI_ARGUMENT,
                          "--data npy: pictures that are cut, scaled or flipped need targets that "
                          "are moved alike, and '%s' cannot be: leave flip=, pad=, resize= out",
                          a->file.path);
    if (tutti_target_is_values(t))
        return put_values(r, a, t, state->goal_is_planar[target], id, words);
    return put_classes(r, a, t, id, words);
}
