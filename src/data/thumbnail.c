#define _GNU_SOURCE
#include "data/thumbnail.h"

#include <math.h>

#include <turbojpeg.h>

#include "base/memory.h"
#include "data/source.h"

enum { QUALITY = 88 };

bool tutti_data_can_be_seen(const tutti_data *data)
{
    const tutti_sample_shape s = data->shape;
    return (s.channels == 1 || s.channels == 3) && s.height > 1 && s.width > 1;
}

const char *tutti_data_place(const tutti_data *data, tutti_split split, uint32_t id)
{
    if (!data->source->place) return NULL;
    id = tutti_data_stored_id(data, split, id);
    return data->source->place(data, data->part[split] ? TUTTI_SPLIT_TRAIN : split, id);
}

/* What becomes black and what white: pictures know, other numbers take their least and greatest. */
typedef struct range {
    float least, most;
} range;

/* Back to values as they were before they were normalised. */
static range restore(const tutti_data *data, float *values, size_t count)
{
    const size_t frame = (size_t)data->frame;
    range r = {INFINITY, -INFINITY};
    for (size_t i = 0; i < count; i++) {
        values[i] = values[i] * data->std[i % frame] + data->mean[i % frame];
        r.least = fminf(r.least, values[i]);
        r.most = fmaxf(r.most, values[i]);
    }
    return data->source->pixels ? (range){0, 1} : r;
}

typedef struct block {
    int top, left, size;
} block;

static uint8_t shade(const float *values, tutti_sample_shape s, block at, int channel, range r)
{
    double sum = 0;
    for (int y = at.top; y < at.top + at.size; y++)
        for (int x = at.left; x < at.left + at.size; x++)
            sum += (double)values[((size_t)y * (size_t)s.width + (size_t)x) * (size_t)s.channels +
                                  (size_t)channel];
    const double value = (sum / at.size / at.size - (double)r.least) / (double)(r.most - r.least);
    return (uint8_t)lrint(255 * fmin(fmax(value, 0), 1)); /* a constant sample is black */
}

/* Means of squares of size x size values; what is left over at the edges is cut off. */
static tutti_sample_shape shrink(const float *values, tutti_sample_shape s, int size, range r,
                                 uint8_t *pixels)
{
    const tutti_sample_shape out = {s.channels, s.height / size, s.width / size};
    for (int y = 0; y < out.height; y++)
        for (int x = 0; x < out.width; x++)
            for (int c = 0; c < s.channels; c++)
                *pixels++ = shade(values, s, (block){y * size, x * size, size}, c, r);
    return out;
}

static tutti_status compress(const uint8_t *pixels, tutti_sample_shape s, tutti_buffer *file,
                             size_t *bytes)
{
    const int grey = s.channels == 1;
    const int sampling = grey ? TJSAMP_GRAY : TJSAMP_444;
    unsigned long size = tjBufSize(s.width, s.height, sampling);
    TUTTI_TRY(tutti_buffer_reserve(file, size));
    unsigned char *out = file->bytes;
    tjhandle jpeg = tjInitCompress();
    const bool done =
        jpeg && !tjCompress2(jpeg, pixels, s.width, 0, s.height, grey ? TJPF_GRAY : TJPF_RGB, &out,
                             &size, sampling, QUALITY, TJFLAG_NOREALLOC);
    if (jpeg) tjDestroy(jpeg);
    *bytes = size;
    return done ? TUTTI_OK : tutti_fail(TUTTI_MEMORY, "a picture of a sample cannot be made");
}

static tutti_status draw(tutti_reader *r, tutti_split split, uint32_t id, int side, float *sample,
                         tutti_buffer *file, size_t *bytes)
{
    const tutti_sample_shape s = tutti_data_shape(r->data);
    const size_t count = (size_t)s.channels * (size_t)s.height * (size_t)s.width;
    const int longer = s.height > s.width ? s.height : s.width;
    const int size = tutti_ceil_div(longer, side);
    int label;
    TUTTI_TRY(tutti_reader_fetch(r, split, 0, id, sample, &label));
    if (s.height < size || s.width < size)
        return tutti_fail(TUTTI_SHAPE, "samples of %dx%d are too narrow to be shown", s.height,
                          s.width);
    TUTTI_TRY(tutti_buffer_reserve(&r->values, count));
    const range between = restore(r->data, sample, count);
    return compress(r->values.bytes, shrink(sample, s, size, between, r->values.bytes), file,
                    bytes);
}

tutti_status tutti_reader_thumbnail(tutti_reader *r, tutti_split split, uint32_t id, int side,
                                    tutti_buffer *file, size_t *bytes)
{
    float *sample = NULL;
    TUTTI_TRY(tutti_alloc(&sample, tutti_data_stride(r->data), sizeof *sample));
    const tutti_status s = draw(r, split, id, side, sample, file, bytes);
    tutti_free(sample);
    return s;
}
