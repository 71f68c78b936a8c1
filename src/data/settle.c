/* Settles what a data set's samples look like, from what it has, what the net takes and what the
 * user says. */
#define _GNU_SOURCE
#include "data/source.h"

#include <math.h>
#include <string.h>

#include "base/memory.h"

enum { NATIVE_SLACK = 8 }; /* pixels by which a picture may be cropped or padded, not scaled */

static int numbers_of(tutti_sample_shape s)
{
    return s.channels * s.height * s.width;
}

/* Pictures as the net wants them. A net that takes a vector of the right length gets the numbers
 * of the picture in their order. */
static tutti_status settle_shape(tutti_data *data)
{
    const tutti_sample_shape want = data->options.shape, native = data->native;
    data->shape = data->picture = native;
    if (!want.channels) return TUTTI_OK;
    data->shape = want;
    if (want.height == 1 && want.width == 1 && want.channels == numbers_of(native)) return TUTTI_OK;
    data->picture = want;
    if (want.channels != 1 && want.channels != 3)
        return tutti_fail(
            TUTTI_SHAPE, "the net takes %dx%dx%d, but pictures have 1 or 3 channels (%dx%dx%d)",
            want.height, want.width, want.channels, native.height, native.width, native.channels);
    return TUTTI_OK;
}

static tutti_status check_size(const tutti_data *data)
{
    const tutti_sample_shape p = data->picture, n = data->native;
    const int smaller = p.height < p.width ? p.height : p.width;
    if (data->augment.zoom > 0) return TUTTI_OK;
    if (p.height > n.height + NATIVE_SLACK || p.width > n.width + NATIVE_SLACK ||
        p.height < n.height - NATIVE_SLACK || p.width < n.width - NATIVE_SLACK)
        return tutti_fail(TUTTI_SHAPE,
                          "the net takes pictures of %dx%d, these have %dx%d: add ',resize=%d' to "
                          "--data to scale them",
                          p.height, p.width, n.height, n.width, smaller);
    return TUTTI_OK;
}

/* "LEAST/MOST", or LEAST alone. */
static tutti_status read_between(tutti_spec *spec, const char *key, tutti_between *out,
                                 double smallest, double largest)
{
    float given[2] = {0, (float)out->most};
    int count = 0;
    TUTTI_TRY(tutti_spec_reals(spec, key, given, &count, 2));
    if (!count) return TUTTI_OK;
    if (!((double)given[0] >= smallest && given[0] <= given[1] && (double)given[1] <= largest))
        return tutti_fail(TUTTI_ARGUMENT,
                          "--data %s: %s= must be LEAST/MOST, numbers from %g to %g", spec->kind,
                          key, smallest, largest);
    *out = (tutti_between){(double)given[0], (double)given[1]};
    return TUTTI_OK;
}

/* torchvision's RandomResizedCrop, with its defaults. */
static tutti_status read_crop(tutti_augment *a, tutti_spec *spec)
{
    const char *area = tutti_spec_value(spec, "random-resized-crop");
    a->range = (tutti_crop_range){{0.08, 1}, {3.0 / 4, 4.0 / 3}};
    a->resizes = area && strcmp(area, "off") != 0;
    if (a->resizes && strcmp(area, "on") != 0)
        TUTTI_TRY(read_between(spec, "random-resized-crop", &a->range.area, 1e-4, 1));
    TUTTI_TRY(read_between(spec, "aspect", &a->range.aspect, 0.01, 100));
    if (!a->resizes) return TUTTI_OK;
    for (int i = 0; i < spec->pairs; i++)
        if (!strcmp(spec->pair[i].key, "jitter") || !strcmp(spec->pair[i].key, "pad"))
            return tutti_fail(TUTTI_ARGUMENT,
                              "--data %s: %s= and random-resized-crop= are two ways to crop: give "
                              "only one of them",
                              spec->kind, spec->pair[i].key);
    a->jitter = 0, a->pad = 0;
    return TUTTI_OK;
}

/* torchvision's ColorJitter; one number is for all but the hue. */
static tutti_status read_colours(tutti_augment *a, tutti_spec *spec)
{
    float given[TUTTI_COLOURS] = {0};
    int count = 0;
    TUTTI_TRY(tutti_spec_reals(spec, "color-jitter", given, &count, TUTTI_COLOURS));
    if (count == 1) given[1] = given[2] = given[0];
    for (int i = 0; i < TUTTI_COLOURS; i++) {
        const double most = i == TUTTI_COLOUR_HUE ? 0.5 : 10;
        a->colour[i] = (double)given[i];
        if (!(a->colour[i] >= 0 && a->colour[i] <= most))
            return tutti_fail(
                TUTTI_ARGUMENT,
                "--data %s: color-jitter= must be BRIGHTNESS/CONTRAST/SATURATION/HUE, "
                "from 0, hue up to 0.5",
                spec->kind);
    }
    return TUTTI_OK;
}

static tutti_status read_augment(tutti_data *data, tutti_spec *spec)
{
    tutti_augment *a = &data->augment;
    const tutti_sample_shape p = data->picture;
    const int smaller = p.height < p.width ? p.height : p.width;
    int resize = 0;
    TUTTI_TRY(tutti_spec_int(spec, "pad", &a->pad, 0, 4096));
    TUTTI_TRY(tutti_spec_flag(spec, "flip", &a->flip));
    TUTTI_TRY(tutti_spec_int(spec, "resize", &resize, 0, 4096));
    if (resize && resize < smaller)
        return tutti_fail(TUTTI_ARGUMENT, "--data %s: resize=%d is less than the net's %dx%d",
                          spec->kind, resize, p.height, p.width);
    if (resize) a->zoom = (double)resize / smaller;
    TUTTI_TRY(tutti_spec_real(spec, "jitter", &a->jitter, 0, 3));
    TUTTI_TRY(read_crop(a, spec));
    if (a->jitter > 0 && !(a->zoom > 0))
        return tutti_fail(TUTTI_ARGUMENT, "--data %s: jitter= needs resize=", spec->kind);
    TUTTI_TRY(read_colours(a, spec));
    TUTTI_TRY(tutti_spec_int(spec, "cutout", &a->cutout, 0, 4096));
    return check_size(data);
}

tutti_status tutti_data_check_normalisation(const tutti_data *data, const char *kind)
{
    for (int i = 0; i < data->frame; i++)
        if (!(data->std[i] > 0) || !isfinite(data->std[i]) || !isfinite(data->mean[i]))
            return tutti_fail(TUTTI_ARGUMENT, "--data %s: std must be positive", kind);
    return TUTTI_OK;
}

/* One number stands for all channels. */
static bool can_spread(int count, int frame)
{
    return count == 1 || count == frame;
}

static void spread(const float *given, int count, float *out, int frame)
{
    for (int i = 0; i < frame; i++) out[i] = given[count > 1 ? i : 0];
}

/* Were numbers given, and not these? */
static bool is_other(const float *given, int count, const float *wanted, int wanted_count)
{
    if (count && !can_spread(count, wanted_count)) return true;
    for (int i = 0; count && i < wanted_count; i++)
        if (given[count > 1 ? i : 0] != wanted[i]) return true;
    return false;
}

/* From the trained model, else from the keys mean= and std=, which pictures and arrays have: one
 * number for each channel, or one for all of them. *given says whether either gave one. */
static tutti_status given_normalisation(tutti_data *data, tutti_spec *spec, bool *given)
{
    const tutti_normalisation *model = &data->options.normalise;
    enum { MOST = 64 };
    float values[2][MOST];
    int count[2] = {0, 0};
    if (data->source->pixels || data->source->takes_mean) {
        TUTTI_TRY(tutti_spec_reals(spec, "mean", values[0], &count[0], MOST));
        TUTTI_TRY(tutti_spec_reals(spec, "std", values[1], &count[1], MOST));
    }
    const size_t bytes = (size_t)data->frame * sizeof(float);
    *given = count[0] || count[1] || model->count;
    if (model->count && model->count != data->frame)
        return tutti_fail(TUTTI_SHAPE, "the model's mean has %d numbers, the data's %d",
                          model->count, data->frame);
    if (model->count && (is_other(values[0], count[0], model->mean, model->count) ||
                         is_other(values[1], count[1], model->std, model->count)))
        return tutti_fail(TUTTI_ARGUMENT,
                          "--data %s: mean= and std= are not what the weights were trained with: "
                          "leave them out",
                          spec->kind);
    if (model->count) {
        memcpy(data->mean, model->mean, bytes);
        memcpy(data->std, model->std, bytes);
    } else if (*given) {
        if (!can_spread(count[0], data->frame) || !can_spread(count[1], data->frame))
            return tutti_fail(TUTTI_ARGUMENT, "--data %s: mean= and std= must both have %d numbers",
                              spec->kind, data->frame);
        spread(values[0], count[0], data->mean, data->frame);
        spread(values[1], count[1], data->std, data->frame);
    }
    return *given ? tutti_data_check_normalisation(data, spec->kind) : TUTTI_OK;
}

void tutti_data_normalise_usually(tutti_data *data)
{
    static const float mean[2][3] = {{0.449f}, {0.485f, 0.456f, 0.406f}};
    static const float std[2][3] = {{0.226f}, {0.229f, 0.224f, 0.225f}};
    const int colour = data->frame == 3;
    for (int i = 0; i < data->frame; i++) {
        data->mean[i] = data->source->pixels ? mean[colour][i] : 0;
        data->std[i] = data->source->pixels ? std[colour][i] : 1;
    }
}

tutti_status tutti_data_settle(tutti_data *data, tutti_spec *spec)
{
    bool given = false;
    if (data->source->pixels) {
        TUTTI_TRY(settle_shape(data));
        TUTTI_TRY(read_augment(data, spec));
        data->frame = data->picture.channels;
    }
    TUTTI_TRY(tutti_spec_real(spec, "mixup", &data->augment.mixup, 0, 100));
    if (data->augment.mixup > 0 && !data->count[TUTTI_SPLIT_TRAIN])
        return tutti_fail(TUTTI_ARGUMENT,
                          "--data %s: mixup= needs samples that can be read, to mix with",
                          spec->kind);
    if (!data->options.augment) data->augment = (tutti_augment){.zoom = data->augment.zoom};
    TUTTI_TRY(tutti_alloc(&data->mean, (size_t)data->frame, sizeof(float)));
    TUTTI_TRY(tutti_alloc(&data->std, (size_t)data->frame, sizeof(float)));
    TUTTI_TRY(given_normalisation(data, spec, &given));
    TUTTI_TRY(tutti_spec_finish(spec));
    if (given) return TUTTI_OK;
    if (data->unlabelled)
        return tutti_fail(TUTTI_ARGUMENT,
                          "--data %s: the weights do not tell how their samples were normalised: "
                          "add mean= and std=",
                          spec->kind);
    if (data->source->measure) return data->source->measure(data);
    tutti_data_normalise_usually(data);
    return TUTTI_OK;
}
