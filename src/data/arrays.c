/* Arrays of samples and of labels as NumPy saves them, read item by item where they are, so that
 * they may be larger than memory. Bytes with one or three channels are pictures, and everything
 * that is done to pictures can be done to them; all other arrays are numbers. Bytes count from 0 to
 * 1, as those of pictures do.
 *
 * Items are vectors, [h][w] with one channel, [h][w][c] or [c][h][w]. Where sizes do not tell the
 * last two apart, layout= does. */
#define _GNU_SOURCE
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "data/arrays.h"

static bool is_bytes(const tutti_array *a)
{
    return !strcmp(a->npy.type->name, "u1");
}

/* -------------------------------------------------------------------------------- files */

static tutti_status check_whole(const tutti_data *data, const tutti_array *a)
{
    const long long said = a->npy.size[0], held = tutti_npy_items(&a->npy, &a->file);
    if (held == said) return TUTTI_OK;
    if (!data->options.skip_bad)
        return tutti_fail(TUTTI_DATA,
                          "'%s' is cut off: it should have %lld items and has %lld; --skip-bad "
                          "does without the others",
                          a->file.path, said, held);
    tutti_warn(data->options.log, "'%s' is cut off: the last %lld of %lld items are skipped",
               a->file.path, said - held, said);
    return TUTTI_OK;
}

tutti_status tutti_array_open(tutti_data *data, tutti_array *a, const char *path)
{
    TUTTI_TRY(tutti_file_open(&a->file, path));
    TUTTI_TRY(tutti_npy_read(&a->npy, &a->file));
    tutti_data_digest_text(data, a->npy.type->name);
    tutti_data_digest(data, a->npy.size, sizeof a->npy.size);
    return check_whole(data, a);
}

static tutti_status take_label(tutti_data *data, const tutti_array *a, int64_t value, int64_t place,
                               int *label)
{
    if (value < 0 || value >= TUTTI_MAX_CLASSES)
        return tutti_fail(TUTTI_DATA, "'%s': label %lld is %lld; labels count from 0 to %d",
                          a->file.path, (long long)place, (long long)value,
                          (int)TUTTI_MAX_CLASSES - 1);
    *label = (int)value;
    if (*label >= data->classes) data->classes = *label + 1;
    return TUTTI_OK;
}

static tutti_status copy_labels(tutti_data *data, const tutti_array *a, int *labels)
{
    enum { PIECE = 1 << 16 };
    tutti_buffer piece = {0};
    const tutti_npy *npy = &a->npy;
    tutti_status s = TUTTI_OK;
    for (int64_t at = 0; !s && at < npy->size[0]; at += PIECE) {
        const int64_t n = npy->size[0] - at < PIECE ? npy->size[0] - at : PIECE;
        s = tutti_npy_items_read(npy, &a->file, at, n, &piece);
        for (int64_t i = 0; !s && i < n; i++) {
            const char *number = (const char *)piece.bytes + i * npy->type->bytes;
            s = take_label(data, a, npy->type->to_whole(number), at + i, &labels[at + i]);
        }
    }
    tutti_buffer_deinit(&piece);
    return s;
}

static tutti_status check_labels(const tutti_array *a, const tutti_array *samples)
{
    if (!a->npy.type->is_whole)
        return tutti_fail(TUTTI_DATA,
                          "'%s' holds floats; labels are whole numbers: save it as "
                          "Y.astype('int64')",
                          a->file.path);
    if (a->npy.item != 1)
        return tutti_fail(TUTTI_DATA, "'%s' has %zu numbers for each sample; a label is one",
                          a->file.path, a->npy.item);
    if (a->npy.size[0] != samples->npy.size[0])
        return tutti_fail(TUTTI_DATA, "'%s' has %lld labels, '%s' %lld samples", a->file.path,
                          (long long)a->npy.size[0], samples->file.path,
                          (long long)samples->npy.size[0]);
    return TUTTI_OK;
}

static tutti_status read_labels(tutti_data *data, tutti_split split, const char *path)
{
    tutti_npy_set *state = data->state;
    tutti_array a = {0};
    tutti_status s = tutti_array_open(data, &a, path);
    if (!s) s = check_labels(&a, &state->samples[split]);
    const size_t count = s ? 0 : (size_t)a.npy.size[0];
    if (!s) s = tutti_alloc(&state->labels[split], count, sizeof(int));
    if (!s) s = copy_labels(data, &a, state->labels[split]);
    if (!s) tutti_data_digest(data, state->labels[split], count * sizeof(int));
    tutti_file_close(&a.file);
    return s;
}

static tutti_status open_split(tutti_data *data, tutti_split split, const char *samples,
                               const char *labels)
{
    tutti_npy_set *state = data->state;
    if (!samples) return TUTTI_OK;
    TUTTI_TRY(tutti_array_open(data, &state->samples[split], samples));
    data->count[split] = (int)state->samples[split].npy.size[0];
    return labels ? read_labels(data, split, labels) : TUTTI_OK;
}

/* ------------------------------------------------------------------------------- shapes */

static const char *const layouts[] = {"hwc", "chw", NULL};
enum { UNTOLD = -1, HWC, CHW };

static tutti_status read_layout(tutti_spec *spec, int *layout)
{
    const char *text = tutti_spec_value(spec, "layout");
    *layout = UNTOLD;
    if (!text) return TUTTI_OK;
    for (int i = 0; layouts[i]; i++)
        if (!strcmp(layouts[i], text)) *layout = i;
    if (*layout == UNTOLD)
        return tutti_fail(TUTTI_ARGUMENT, "--data npy: layout=%s must be hwc or chw", text);
    return TUTTI_OK;
}

/* The shape of an item; one of two dimensions has one channel, unless the layout is told. */
static tutti_sample_shape item_shape(const tutti_npy *npy, int layout)
{
    const int a = npy->dims > 1 ? (int)npy->size[1] : 1, b = (int)npy->size[2];
    const int c = (int)npy->size[3];
    if (npy->dims <= 2) return (tutti_sample_shape){a, 1, 1};
    if (npy->dims == 3 && layout == UNTOLD) return (tutti_sample_shape){1, a, b};
    if (npy->dims == 3)
        return layout == CHW ? (tutti_sample_shape){a, b, 1} : (tutti_sample_shape){b, a, 1};
    return layout == CHW ? (tutti_sample_shape){a, b, c} : (tutti_sample_shape){c, a, b};
}

static bool is_same(tutti_sample_shape a, tutti_sample_shape b)
{
    return a.channels == b.channels && a.height == b.height && a.width == b.width;
}

/* Of [h][w][c] and [c][h][w] the one whose channels, else whose whole shape, are the net's. */
static tutti_status choose_layout(const tutti_data *data, const tutti_array *a, int *layout)
{
    const tutti_sample_shape want = data->options.shape;
    const tutti_sample_shape hwc = item_shape(&a->npy, HWC), chw = item_shape(&a->npy, CHW);
    if (*layout != UNTOLD || a->npy.dims < 4) return TUTTI_OK;
    *layout = HWC;
    if (!want.channels || a->npy.item == 1) return TUTTI_OK;
    bool fits[2] = {hwc.channels == want.channels, chw.channels == want.channels};
    if (fits[HWC] && fits[CHW]) fits[HWC] = is_same(hwc, want), fits[CHW] = is_same(chw, want);
    if (fits[HWC] == fits[CHW])
        return tutti_fail(TUTTI_ARGUMENT,
                          "'%s' is %lldx%lldx%lldx%lld and the net takes %d channels of %dx%d: say "
                          "where the channels are, layout=hwc or layout=chw",
                          a->file.path, (long long)a->npy.size[0], (long long)a->npy.size[1],
                          (long long)a->npy.size[2], (long long)a->npy.size[3], want.channels,
                          want.height, want.width);
    *layout = fits[CHW] ? CHW : HWC;
    return TUTTI_OK;
}

bool tutti_shapes_fit(tutti_sample_shape have, tutti_sample_shape want)
{
    const int from[] = {have.height, have.width, have.channels};
    const int to[] = {want.height, want.width, want.channels};
    int64_t count[2] = {1, 1};
    int a = 0, b = 0;
    for (int i = 0; i < 3; i++) count[0] *= from[i], count[1] *= to[i];
    if (count[0] != count[1]) return false;
    if (have.height * have.width == 1 || want.height * want.width == 1) return true;
    for (; a < 3 || b < 3; a++, b++) {
        while (a < 3 && from[a] == 1) a++;
        while (b < 3 && to[b] == 1) b++;
        if ((a < 3 ? from[a] : 1) != (b < 3 ? to[b] : 1)) return false;
    }
    return true;
}

static tutti_status settle_numbers(tutti_data *data, const tutti_array *a)
{
    const tutti_sample_shape want = data->options.shape, have = data->native;
    data->frame = have.channels;
    data->shape = want.channels ? want : have;
    if (!want.channels || tutti_shapes_fit(have, want)) return TUTTI_OK;
    return tutti_fail(TUTTI_SHAPE,
                      "the net takes %d channels of %dx%d, a sample of '%s' is %d of %dx%d",
                      want.channels, want.height, want.width, a->file.path, have.channels,
                      have.height, have.width);
}

static tutti_status check_alike(const tutti_data *data)
{
    const tutti_npy_set *state = data->state;
    const tutti_array *train = &state->samples[TUTTI_SPLIT_TRAIN];
    for (int split = 1; split < TUTTI_SPLITS; split++) {
        const tutti_array *other = &state->samples[split];
        if (!other->file.path) continue;
        if (other->npy.dims != train->npy.dims || other->npy.type != train->npy.type ||
            memcmp(other->npy.size + 1, train->npy.size + 1,
                   (TUTTI_NPY_DIMS - 1) * sizeof *train->npy.size))
            return tutti_fail(TUTTI_DATA,
                              "'%s' and '%s' differ in type or in the shape of a sample",
                              train->file.path, other->file.path);
    }
    return TUTTI_OK;
}

static const tutti_source pictures;

static tutti_status settle_shape(tutti_data *data, tutti_spec *spec)
{
    tutti_npy_set *state = data->state;
    const tutti_array *a = &state->samples[TUTTI_SPLIT_TRAIN];
    int layout;
    TUTTI_TRY(read_layout(spec, &layout));
    TUTTI_TRY(check_alike(data));
    if (a->npy.dims > 4)
        return tutti_fail(TUTTI_DATA, "'%s' has %d dimensions; samples have at most three",
                          a->file.path, a->npy.dims);
    TUTTI_TRY(choose_layout(data, a, &layout));
    data->native = item_shape(&a->npy, layout);
    state->planar = layout == CHW;
    tutti_data_digest_int(data, layout);
    const int channels = data->native.channels;
    if (!is_bytes(a) || a->npy.dims < 3 || (channels != 1 && channels != 3))
        return settle_numbers(data, a);
    data->source = &pictures;
    return TUTTI_OK;
}

/* ------------------------------------------------------------------------------- opening */

/* Places are the samples and each target's. */
static tutti_status check_places(const tutti_data *data, const tutti_spec *spec, bool test,
                                 bool test_labels, bool val_labels)
{
    const int wanted = tutti_data_has_goals(data) ? 1 + data->options.target_count : 2;
    if (data->unlabelled && spec->places == 1 && !test && !test_labels && !data->val_place)
        return TUTTI_OK;
    if (spec->places == wanted && test == test_labels && !data->val_place == !val_labels)
        return TUTTI_OK;
    if (wanted > 2)
        return tutti_fail(
            TUTTI_ARGUMENT,
            "--data npy: the net has %d targets: give npy:X.npy and an array for each "
            "of them (test-labels=, test-labels2= and so on for test=)",
            wanted - 1);
    return tutti_fail(
        TUTTI_ARGUMENT,
        "--data npy needs npy:X.npy,Y.npy[,test=X.npy,test-labels=Y.npy][,val=PERCENT "
        "or val=X.npy,val-labels=Y.npy]");
}

static tutti_status arrays_open(tutti_data *data, tutti_spec *spec)
{
    const char *test = tutti_spec_value(spec, "test");
    const char *test_labels = tutti_spec_value(spec, "test-labels");
    const char *val_labels = tutti_spec_value(spec, "val-labels");
    const char *names = tutti_spec_value(spec, "names");
    int holdout;
    TUTTI_TRY(tutti_spec_holdout(spec, test, &holdout));
    data->unlabelled = data->options.asks && spec->places == 1;
    TUTTI_TRY(check_places(data, spec, test, test_labels, val_labels));
    TUTTI_TRY(tutti_alloc(&data->state, 1, sizeof(tutti_npy_set)));
    if (names) TUTTI_TRY(tutti_data_read_names(data, names));
    const bool goals = tutti_data_has_goals(data);
    TUTTI_TRY(open_split(data, TUTTI_SPLIT_TRAIN, spec->place[0], goals ? NULL : spec->place[1]));
    TUTTI_TRY(open_split(data, TUTTI_SPLIT_TEST, test, goals ? NULL : test_labels));
    TUTTI_TRY(open_split(data, TUTTI_SPLIT_VAL, data->val_place, goals ? NULL : val_labels));
    TUTTI_TRY(settle_shape(data, spec));
    if (goals) TUTTI_TRY(tutti_array_goals_open(data, spec));
    return test || data->unlabelled ? TUTTI_OK : tutti_data_hold_out(data, holdout);
}

static void arrays_close(tutti_data *data)
{
    tutti_npy_set *state = data->state;
    if (!state) return;
    for (int split = 0; split < TUTTI_SPLITS; split++) {
        tutti_file_close(&state->samples[split].file);
        tutti_free(state->labels[split]);
        for (int t = 0; t < TUTTI_MOST_TARGETS; t++) tutti_file_close(&state->goals[split][t].file);
    }
    tutti_free(state);
}

/* ------------------------------------------------------------------------------- samples */

static int label_of(const tutti_npy_set *state, tutti_split split, uint32_t id)
{
    return state->labels[split] ? state->labels[split][id] : 0;
}

static tutti_status read_item(tutti_reader *r, tutti_split split, uint32_t id, int *label)
{
    const tutti_npy_set *state = r->data->state;
    const tutti_array *a = &state->samples[split];
    *label = label_of(state, split, id);
    if (tutti_npy_items_read(&a->npy, &a->file, id, 1, &r->bytes))
        return tutti_fail(TUTTI_DATA, "sample %u: %s", id, tutti_message());
    return TUTTI_OK;
}

/* [c][pixels] of any type -> values[pixels][c] */
static void interleave(const tutti_npy_type *type, const char *stored, size_t channels,
                       size_t pixels, float *values)
{
    enum { PIECE = 256 };
    float piece[PIECE];
    for (size_t c = 0; c < channels; c++)
        for (size_t at = 0; at < pixels; at += PIECE) {
            const size_t n = pixels - at < PIECE ? pixels - at : PIECE;
            type->to_floats(stored + (c * pixels + at) * (size_t)type->bytes, n, piece);
            for (size_t i = 0; i < n; i++) values[(at + i) * channels + c] = piece[i];
        }
}

static tutti_status arrays_numbers(tutti_reader *r, tutti_split split, uint32_t id,
                                   const uint32_t random[4], float *values, int *label)
{
    (void)random;
    const tutti_data *data = r->data;
    const tutti_npy_set *state = data->state;
    const tutti_array *a = &state->samples[split];
    const size_t channels = (size_t)data->native.channels;
    TUTTI_TRY(read_item(r, split, id, label));
    if (state->planar)
        interleave(a->npy.type, r->bytes.bytes, channels, a->npy.item / channels, values);
    else a->npy.type->to_floats(r->bytes.bytes, a->npy.item, values);
    if (is_bytes(a))
        for (size_t i = 0; i < a->npy.item; i++) values[i] /= 255.0f;
    if (tutti_data_normalise_values(data, values, a->npy.item)) return TUTTI_OK;
    return tutti_fail(TUTTI_DATA, "'%s': sample %u has a value that is not a number", a->file.path,
                      id);
}

static tutti_status arrays_pixels(tutti_reader *r, tutti_split split, uint32_t id,
                                  const tutti_fit *fit, int *label)
{
    (void)fit;
    const tutti_data *data = r->data;
    const tutti_npy_set *state = data->state;
    const tutti_sample_shape n = data->native;
    TUTTI_TRY(read_item(r, split, id, label));
    if (state->planar) return tutti_reader_planes(r, n, r->bytes.bytes, false);
    TUTTI_TRY(tutti_image_reserve(&r->image, n.height, n.width, data->picture.channels));
    tutti_image_convert(&r->image, r->bytes.bytes, n.channels);
    return TUTTI_OK;
}

const tutti_source tutti_source_npy = {
    .kind = "npy",
    .open = arrays_open,
    .close = arrays_close,
    .numbers = arrays_numbers,
    .goal = tutti_array_goal,
    .measure = tutti_measure_numbers,
    .takes_mean = true,
};

static const tutti_source pictures = {
    .kind = "npy",
    .open = arrays_open,
    .close = arrays_close,
    .pixels = arrays_pixels,
    .goal = tutti_array_goal,
    .measure = tutti_measure_pictures,
};
