/* Fetching one sample, and what becomes of damaged ones. */
#define _GNU_SOURCE
#include "data/source.h"

#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "base/random.h"
#include "data/mix.h"

enum { MOST_BAD_IN_A_ROW = 1000, BAD_LINES = 20 };

tutti_status tutti_reader_create(tutti_reader **out, tutti_data *data)
{
    tutti_reader *r = NULL;
    TUTTI_TRY(tutti_alloc(&r, 1, sizeof *r));
    r->data = data;
    const tutti_status s = tutti_decoder_create(&r->decoder);
    if (s) tutti_reader_destroy(&r);
    else *out = r;
    return s;
}

void tutti_reader_destroy(tutti_reader **reader)
{
    tutti_reader *r = *reader;
    if (!r) return;
    tutti_decoder_destroy(&r->decoder);
    tutti_image_deinit(&r->image);
    tutti_image_deinit(&r->mask);
    tutti_resampler_deinit(&r->resampler);
    tutti_buffer_deinit(&r->bytes);
    tutti_buffer_deinit(&r->values);
    tutti_buffer_deinit(&r->other);
    tutti_free(r);
    *reader = NULL;
}

/* Colours are changed between 0 and 1, before they are normalised. */
static tutti_status render_changed(tutti_reader *r, const tutti_view *view,
                                   const tutti_random_key *random, float *sample)
{
    static const float mean[3], std[3] = {1, 1, 1};
    const tutti_data *data = r->data;
    const int pixels = view->rows.size * view->columns.size, channels = r->image.channels;
    const tutti_colour_changes changes = tutti_colour_draw(data->augment.colour, random);
    TUTTI_TRY(tutti_view_render(&r->resampler, view, &r->image, mean, std, sample));
    tutti_colour_change(&changes, sample, pixels, channels);
    (void)tutti_data_normalise_values(data, sample, (size_t)pixels * (size_t)channels);
    return TUTTI_OK;
}

static tutti_status render(tutti_reader *r, const tutti_fit *fit, const tutti_view *view,
                           float *sample)
{
    const tutti_data *data = r->data;
    const tutti_augment *augment = &data->augment;
    if (fit->random && tutti_colour_is_varied(augment->colour))
        TUTTI_TRY(render_changed(r, view, fit->random, sample));
    else
        TUTTI_TRY(tutti_view_render(&r->resampler, view, &r->image, data->mean, data->std, sample));
    if (fit->random && augment->cutout)
        tutti_view_cut_out(augment->cutout, fit->random, fit->height, fit->width, r->image.channels,
                           sample);
    return TUTTI_OK;
}

/* ------------------------------------------------------------------------------ layout */

static size_t values_of(tutti_sample_shape s)
{
    return (size_t)s.channels * (size_t)s.height * (size_t)s.width;
}

/* Whether [height][width][channels] is another order than that of the sample. */
static bool is_reordered(tutti_sample_shape s)
{
    return s.channels > TUTTI_SAMPLE_BLOCK && (s.height > 1 || s.width > 1);
}

/* Zeros after the values of a sample that keeps their order. */
static void clear_tail(const tutti_data *data, float *sample)
{
    const size_t used = values_of(data->shape);
    memset(sample + used, 0, (tutti_data_stride(data) - used) * sizeof *sample);
}

/* values[pixels][channels] -> sample[channels/16][pixels][16] */
static void reorder(tutti_sample_shape s, const float *restrict values, float *restrict sample)
{
    const size_t pixels = (size_t)s.height * (size_t)s.width, channels = (size_t)s.channels;
    for (size_t first = 0; first < channels; first += TUTTI_SAMPLE_BLOCK) {
        const size_t left = channels - first;
        const size_t count = left < TUTTI_SAMPLE_BLOCK ? left : TUTTI_SAMPLE_BLOCK;
        for (size_t p = 0; p < pixels; p++, sample += TUTTI_SAMPLE_BLOCK) {
            memcpy(sample, values + p * channels + first, count * sizeof *sample);
            memset(sample + count, 0, (TUTTI_SAMPLE_BLOCK - count) * sizeof *sample);
        }
    }
}

bool tutti_data_normalise_values(const tutti_data *data, float *values, size_t count)
{
    const size_t frame = (size_t)data->frame;
    for (size_t i = 0; i < count; i++) {
        if (!isfinite(values[i])) return false;
        values[i] = (values[i] - data->mean[i % frame]) / data->std[i % frame];
    }
    return true;
}

/* [c][pixels] -> [pixels][c], in a buffer of the reader's, then to the channels that are wanted. */
tutti_status tutti_reader_planes(tutti_reader *r, tutti_sample_shape shape, const uint8_t *planes,
                                 bool reversed)
{
    const size_t channels = (size_t)shape.channels, count = values_of(shape);
    const size_t pixels = count / channels;
    TUTTI_TRY(tutti_buffer_reserve(&r->values, count));
    uint8_t *pixel = r->values.bytes;
    for (size_t c = 0; c < channels; c++) {
        const uint8_t *plane = planes + (reversed ? channels - 1 - c : c) * pixels;
        for (size_t i = 0; i < pixels; i++) pixel[i * channels + c] = plane[i];
    }
    TUTTI_TRY(tutti_image_reserve(&r->image, shape.height, shape.width, r->data->picture.channels));
    tutti_image_convert(&r->image, pixel, shape.channels);
    return TUTTI_OK;
}

/* ------------------------------------------------------------------------------- fetch */

static tutti_status fetch_numbers(tutti_reader *r, tutti_split split, uint32_t id,
                                  const tutti_random_key *random, float *sample, int *label)
{
    const tutti_data *data = r->data;
    const tutti_source *source = data->source;
    uint32_t block[4];
    if (random) tutti_random_block(block, random, TUTTI_DRAWS_PLACE);
    const uint32_t *four = random ? block : NULL;
    if (!is_reordered(data->shape)) {
        clear_tail(data, sample);
        return source->numbers(r, split, id, four, sample, label);
    }
    TUTTI_TRY(tutti_buffer_reserve(&r->values, values_of(data->shape) * sizeof *sample));
    TUTTI_TRY(source->numbers(r, split, id, four, r->values.bytes, label));
    reorder(data->shape, r->values.bytes, sample);
    return TUTTI_OK;
}

static tutti_status fetch(tutti_reader *r, tutti_split split, uint32_t epoch, uint32_t id,
                          const tutti_sample_room *room)
{
    const tutti_data *data = r->data;
    const tutti_random_key key = {
        .seed = data->options.seed, .purpose = TUTTI_RANDOM_AUGMENT, .when = epoch, .sample = id};
    const tutti_random_key *random =
        split == TUTTI_SPLIT_TRAIN && data->options.augment ? &key : NULL;
    id = tutti_data_stored_id(data, split, id);
    if (data->part[split] || data->unlabelled) split = TUTTI_SPLIT_TRAIN; /* as stored */
    if (data->source->numbers) {
        TUTTI_TRY(fetch_numbers(r, split, id, random, room->sample, room->label));
        return tutti_goals_fetch(r, split, id, NULL, room);
    }
    const tutti_fit fit =
        tutti_view_fit(&data->augment, data->picture.height, data->picture.width, random);
    TUTTI_TRY(data->source->pixels(r, split, id, &fit, room->label));
    clear_tail(data, room->sample);
    const tutti_view view = tutti_view_of(&data->augment, &fit, &r->image);
    TUTTI_TRY(render(r, &fit, &view, room->sample));
    return tutti_goals_fetch(r, split, id, &view, room);
}

/* Marks a sample as damaged; the first time it says so. */
static void note_bad(tutti_data *data, tutti_split split, uint32_t id)
{
    const unsigned bit = 1u << id % 32;
    if (atomic_fetch_or(&data->bad[split][id / 32], bit) & bit) return;
    const int count = atomic_fetch_add(&data->bad_count, 1);
    if (count < BAD_LINES) tutti_warn(data->options.log, "skipped: %s", tutti_message());
    else if (count == BAD_LINES)
        tutti_warn(data->options.log, "further damaged samples are skipped without naming them");
}

/* Nothing of it is counted. */
static void put_nothing(const tutti_data *data, const tutti_sample_room *room)
{
    const tutti_data_options *o = &data->options;
    memset(room->sample, 0, tutti_data_stride(data) * sizeof *room->sample);
    for (int t = 0; t < o->target_count; t++)
        if (room->targets[t])
            memset(room->targets[t], 0, tutti_target_words(&o->targets[t]) * sizeof(int32_t));
    *room->label = TUTTI_LABEL_NONE;
}

tutti_status tutti_reader_fetch_all(tutti_reader *r, tutti_split split, uint32_t epoch, uint32_t id,
                                    const tutti_sample_room *room)
{
    tutti_data *data = r->data;
    const uint32_t count = (uint32_t)data->count[split];
    TUTTI_ASSERT(id < count);
    for (int tries = 0; tries < MOST_BAD_IN_A_ROW; tries++) {
        const tutti_status s = fetch(r, split, epoch, id, room);
        if (s != TUTTI_DATA) return s;
        if (!data->options.skip_bad)
            return tutti_fail(s, "%s (--skip-bad does without damaged samples)", tutti_message());
        note_bad(data, split, id);
        if (split != TUTTI_SPLIT_TRAIN) {
            put_nothing(data, room);
            return TUTTI_OK;
        }
        id = (id + 1) % count;
    }
    return tutti_fail(TUTTI_DATA, "%d damaged samples in a row; the last: %s",
                      (int)MOST_BAD_IN_A_ROW, tutti_message());
}

tutti_status tutti_reader_fetch(tutti_reader *r, tutti_split split, uint32_t epoch, uint32_t id,
                                float *sample, int *label)
{
    return tutti_reader_fetch_all(r, split, epoch, id,
                                  &(tutti_sample_room){.sample = sample, .label = label});
}

bool tutti_data_mixes(const tutti_data *data)
{
    return data->augment.mixup > 0;
}

tutti_status tutti_reader_fetch_mixed(tutti_reader *r, uint32_t epoch, uint32_t id, float *sample,
                                      tutti_mixed *mixed)
{
    const tutti_data *data = r->data;
    const size_t stride = tutti_data_stride(data);
    const uint32_t count = (uint32_t)data->count[TUTTI_SPLIT_TRAIN];
    const tutti_partner partner =
        tutti_mix_partner(data->augment.mixup, data->options.seed, epoch, id, count);
    mixed->share = partner.share;
    TUTTI_TRY(tutti_buffer_reserve(&r->other, stride * sizeof *sample));
    TUTTI_TRY(tutti_reader_fetch(r, TUTTI_SPLIT_TRAIN, epoch, id, sample, &mixed->label));
    TUTTI_TRY(
        tutti_reader_fetch(r, TUTTI_SPLIT_TRAIN, epoch, partner.id, r->other.bytes, &mixed->other));
    tutti_mix_values(sample, r->other.bytes, partner.share, stride);
    return TUTTI_OK;
}

/* PIL's white greys are rarely meant: once for all pictures it is said. */
static void mention_clipped(tutti_data *data, const char *path)
{
    if (atomic_exchange(&data->said_clipped, true)) return;
    tutti_warn(data->options.log,
               "'%s' has greys of 16 bits; those above 255 are white, as in PIL: convert such "
               "pictures to 8 bits",
               path);
}

tutti_status tutti_reader_decode(tutti_reader *r, const char *path, int channels,
                                 const tutti_fit *fit)
{
    tutti_file file;
    TUTTI_TRY(tutti_file_open(&file, path));
    tutti_status s = TUTTI_OK;
    if (file.bytes > TUTTI_MAX_PICTURE_BYTES)
        s = tutti_fail(TUTTI_DATA, "'%s' has %llu bytes; pictures have at most %d", path,
                       (unsigned long long)file.bytes, (int)TUTTI_MAX_PICTURE_BYTES);
    if (!s) s = tutti_buffer_reserve(&r->bytes, (size_t)file.bytes);
    if (!s) s = tutti_file_read(&file, 0, r->bytes.bytes, (size_t)file.bytes);
    if (!s)
        s = tutti_decode(r->decoder, &r->image, channels, fit, path, r->bytes.bytes,
                         (size_t)file.bytes);
    tutti_file_close(&file);
    if (!s && r->image.clipped) mention_clipped(r->data, path);
    return s;
}

/* ------------------------------------------------------------------------------- own */

bool tutti_data_is_own(const tutti_data *data)
{
    return data->options.own != NULL;
}

bool tutti_data_own_is_ready(const tutti_data *data)
{
    const tutti_own_data *own = data->options.own;
    const size_t values = values_of(data->shape);
    bool plain = true;
    if (own->layout == TUTTI_BLOCKED) return true;
    for (int i = 0; i < data->frame; i++) plain = plain && data->mean[i] == 0 && data->std[i] == 1;
    const bool in_place =
        !is_reordered(data->shape) && (own->layout == TUTTI_HWC || data->native.channels == 1 ||
                                       values == (size_t)data->native.channels);
    return own->number == TUTTI_FLOAT && plain && in_place && tutti_data_stride(data) == values;
}

size_t tutti_data_own_bytes(const tutti_data *data)
{
    const tutti_own_data *own = data->options.own;
    if (own->layout == TUTTI_BLOCKED) return tutti_data_stride(data) * sizeof(float);
    return values_of(data->native) * (own->number == TUTTI_BYTE ? 1 : sizeof(float));
}

tutti_status tutti_reader_take(tutti_reader *r, const void *stored, float *sample)
{
    const tutti_data *data = r->data;
    if (data->source->pixels) {
        const tutti_fit fit =
            tutti_view_fit(&data->augment, data->picture.height, data->picture.width, NULL);
        TUTTI_TRY(tutti_own_pixels(r, stored));
        clear_tail(data, sample);
        const tutti_view view = tutti_view_of(&data->augment, &fit, &r->image);
        return render(r, &fit, &view, sample);
    }
    if (!is_reordered(data->shape)) {
        clear_tail(data, sample);
        return tutti_own_numbers(data, stored, sample);
    }
    TUTTI_TRY(tutti_buffer_reserve(&r->values, values_of(data->shape) * sizeof *sample));
    TUTTI_TRY(tutti_own_numbers(data, stored, r->values.bytes));
    reorder(data->shape, r->values.bytes, sample);
    return TUTTI_OK;
}

tutti_status tutti_reader_fetch_file(tutti_reader *r, const char *path, float *sample)
{
    const tutti_data *data = r->data;
    if (!data->source->pixels)
        return tutti_fail(TUTTI_ARGUMENT, "'%s' data are not pictures", data->source->kind);
    tutti_augment whole = {.zoom = data->augment.zoom > 0 ? data->augment.zoom : 1};
    const tutti_fit fit = tutti_view_fit(&whole, data->picture.height, data->picture.width, NULL);
    TUTTI_TRY(tutti_reader_decode(r, path, data->picture.channels, &fit));
    clear_tail(data, sample);
    const tutti_view view = tutti_view_of(&data->augment, &fit, &r->image);
    return render(r, &fit, &view, sample);
}
