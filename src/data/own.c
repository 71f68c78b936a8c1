/* Samples of a program that uses the library: described by its tutti_own_data, read by its function
 * or handed over one by one. What is done to them is what arrays of NumPy get (arrays.c). */
#define _GNU_SOURCE
#include "data/source.h"

#include <string.h>

#include "base/memory.h"

tutti_status tutti_own_data_fail(tutti_status status, const char *sentence)
{
    return tutti_fail(status, "%s", sentence ? sentence : "");
}

tutti_status tutti_arrays_read(void *user, tutti_split split, int64_t index, void *sample,
                               int32_t *label)
{
    const tutti_arrays *a = user;
    memcpy(sample, (const char *)a->samples[split] + (uint64_t)index * a->bytes, a->bytes);
    *label = a->labels[split] ? a->labels[split][index] : 0;
    return TUTTI_OK;
}

/* ------------------------------------------------------------------------------- opening */

static size_t values_of(const tutti_data *data)
{
    const tutti_sample_shape s = data->native;
    return (size_t)s.channels * (size_t)s.height * (size_t)s.width;
}

static size_t bytes_of(const tutti_data *data)
{
    return values_of(data) * (data->options.own->number == TUTTI_BYTE ? 1 : sizeof(float));
}

static tutti_status check(const tutti_own_data *own)
{
    if (own->number != TUTTI_FLOAT && own->number != TUTTI_BYTE)
        return tutti_fail(TUTTI_ARGUMENT, "own data: %d is no kind of number", (int)own->number);
    if (own->layout != TUTTI_CHW && own->layout != TUTTI_HWC && own->layout != TUTTI_BLOCKED)
        return tutti_fail(TUTTI_ARGUMENT, "own data: %d is no layout", (int)own->layout);
    if (own->layout == TUTTI_BLOCKED && (own->number != TUTTI_FLOAT || own->means || own->read))
        return tutti_fail(TUTTI_ARGUMENT,
                          "own data: blocked samples are floats, finished and handed over: no "
                          "bytes, no mean, no function that reads them");
    if (own->means < 0 || (own->means && (!own->mean || !own->std)))
        return tutti_fail(TUTTI_ARGUMENT, "own data: mean and std belong together");
    for (int s = 0; s < TUTTI_SPLITS; s++)
        if (own->count[s] < 0)
            return tutti_fail(TUTTI_ARGUMENT, "own data: a count of %d samples", own->count[s]);
    return TUTTI_OK;
}

/* The net's shape, or another with the same numbers in the same order; pictures are cut to it. */
static tutti_status settle_shape(tutti_data *data)
{
    const tutti_own_data *own = data->options.own;
    const tutti_sample_shape want = data->options.shape;
    const tutti_shape given = own->shape;
    data->native = given.c ? (tutti_sample_shape){given.c, given.h, given.w} : want;
    const tutti_sample_shape n = data->native;
    if (n.channels < 1 || n.height < 1 || n.width < 1)
        return tutti_fail(TUTTI_ARGUMENT, "own data: samples of %dx%dx%d", n.channels, n.height,
                          n.width);
    data->shape = want.channels ? want : n;
    data->frame = n.channels;
    return TUTTI_OK;
}

static bool are_pictures(const tutti_data *data)
{
    const tutti_sample_shape n = data->native;
    return data->options.own->number == TUTTI_BYTE && (n.height > 1 || n.width > 1) &&
           (n.channels == 1 || n.channels == 3);
}

static tutti_status check_fit(const tutti_data *data)
{
    const tutti_sample_shape have = data->native, want = data->shape;
    if (tutti_shapes_fit(have, want)) return TUTTI_OK;
    return tutti_fail(TUTTI_SHAPE,
                      "the net takes %d channels of %dx%d, a sample of the program's own data is "
                      "%d of %dx%d",
                      want.channels, want.height, want.width, have.channels, have.height,
                      have.width);
}

static void digest(tutti_data *data)
{
    const tutti_own_data *own = data->options.own;
    const tutti_sample_shape n = data->native;
    const int64_t facts[] = {own->number, n.channels, n.height, n.width, data->classes};
    for (size_t i = 0; i < sizeof facts / sizeof *facts; i++) tutti_data_digest_int(data, facts[i]);
    for (int s = 0; s < TUTTI_SPLITS; s++) tutti_data_digest_int(data, own->count[s]);
    tutti_data_digest_text(data, own->identity ? own->identity : "");
}

static const tutti_source pictures;

static tutti_status own_open(tutti_data *data, tutti_spec *spec)
{
    const tutti_own_data *own = data->options.own;
    const char *tests = own->count[TUTTI_SPLIT_TEST] ? "the program's" : NULL;
    int holdout;
    TUTTI_TRY(check(own));
    TUTTI_TRY(tutti_spec_holdout(spec, tests, &holdout));
    TUTTI_TRY(settle_shape(data));
    if (are_pictures(data)) data->source = &pictures;
    else TUTTI_TRY(check_fit(data));
    data->classes = own->classes ? own->classes : data->options.classes;
    for (int i = 0; own->class_names && i < data->classes; i++)
        TUTTI_TRY(tutti_names_add(&data->names, own->class_names[i]));
    if (own->read) memcpy(data->count, own->count, sizeof data->count);
    digest(data);
    return own->read && !tests ? tutti_data_hold_out(data, holdout) : TUTTI_OK;
}

static void own_close(tutti_data *data)
{
    (void)data;
}

/* ------------------------------------------------------------------------------- normalising */

static tutti_status given_measure(tutti_data *data)
{
    const tutti_own_data *own = data->options.own;
    if (own->means > 1 && own->means != data->frame)
        return tutti_fail(TUTTI_ARGUMENT, "own data: %d means for %d channels", own->means,
                          data->frame);
    for (int i = 0; i < data->frame; i++) {
        const int from = own->means > 1 ? i : 0;
        data->mean[i] = own->means ? own->mean[from] : 0;
        data->std[i] = own->means ? own->std[from] : 1;
    }
    return tutti_data_check_normalisation(data, "own");
}

static tutti_status own_measure(tutti_data *data)
{
    const tutti_own_data *own = data->options.own;
    if (own->means || !own->read) return given_measure(data);
    return data->source->pixels ? tutti_measure_pictures(data) : tutti_measure_numbers(data);
}

/* ------------------------------------------------------------------------------- samples */

/* stored[c][pixels], or [pixels][c], of either type -> values[pixels][c] */
static void to_values(const tutti_data *data, const void *stored, float *restrict values)
{
    const tutti_own_data *own = data->options.own;
    const size_t count = values_of(data), channels = (size_t)data->native.channels;
    const size_t pixels = count / channels;
    const bool planar = own->layout == TUTTI_CHW && channels > 1 && pixels > 1;
    const size_t inner = planar ? pixels : count, step = planar ? channels : 1;
    const uint8_t *bytes = stored;
    const float *floats = stored;
    for (size_t first = 0; first < count / inner; first++)
        for (size_t i = 0; i < inner; i++) {
            const size_t from = first * inner + i;
            values[first + i * step] =
                own->number == TUTTI_BYTE ? (float)bytes[from] / 255.0f : floats[from];
        }
}

tutti_status tutti_own_numbers(const tutti_data *data, const void *stored, float *values)
{
    to_values(data, stored, values);
    if (tutti_data_normalise_values(data, values, values_of(data))) return TUTTI_OK;
    return tutti_fail(TUTTI_DATA, "a sample has a value that is not a number");
}

tutti_status tutti_own_pixels(tutti_reader *r, const void *stored)
{
    const tutti_data *data = r->data;
    const tutti_sample_shape n = data->native;
    if (data->options.own->layout == TUTTI_CHW) return tutti_reader_planes(r, n, stored, false);
    TUTTI_TRY(tutti_image_reserve(&r->image, n.height, n.width, data->picture.channels));
    tutti_image_convert(&r->image, stored, n.channels);
    return TUTTI_OK;
}

static tutti_status read_own(tutti_reader *r, tutti_split split, uint32_t id, int *label)
{
    const tutti_data *data = r->data;
    const tutti_own_data *own = data->options.own;
    int32_t said = -1;
    TUTTI_TRY(tutti_buffer_reserve(&r->bytes, bytes_of(data)));
    TUTTI_TRY(own->read(own->user, split, id, r->bytes.bytes, &said));
    if (said < 0 || said >= data->classes)
        return tutti_fail(TUTTI_DATA,
                          "sample %u of the program's own data has label %d; labels "
                          "are 0 to %d",
                          id, said, data->classes - 1);
    *label = said;
    return TUTTI_OK;
}

static tutti_status own_numbers(tutti_reader *r, tutti_split split, uint32_t id,
                                const uint32_t random[4], float *values, int *label)
{
    (void)random;
    TUTTI_TRY(read_own(r, split, id, label));
    if (tutti_own_numbers(r->data, r->bytes.bytes, values) == TUTTI_OK) return TUTTI_OK;
    return tutti_fail(TUTTI_DATA,
                      "sample %u of the program's own data has a value that is not a "
                      "number",
                      id);
}

static tutti_status own_pixels(tutti_reader *r, tutti_split split, uint32_t id,
                               const tutti_fit *fit, int *label)
{
    (void)fit;
    TUTTI_TRY(read_own(r, split, id, label));
    return tutti_own_pixels(r, r->bytes.bytes);
}

const tutti_source tutti_source_own = {
    .kind = TUTTI_OWN_KIND,
    .open = own_open,
    .close = own_close,
    .numbers = own_numbers,
    .measure = own_measure,
    .takes_mean = true,
};

static const tutti_source pictures = {
    .kind = TUTTI_OWN_KIND,
    .open = own_open,
    .close = own_close,
    .pixels = own_pixels,
    .measure = own_measure,
};
