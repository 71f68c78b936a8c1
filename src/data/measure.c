/* The mean and deviation of training samples, for normalising them: of all, or of as many as have
 * MOST numbers in each channel, evenly chosen, so that no data set is too large to begin with. */
#define _GNU_SOURCE
#include "data/source.h"

#include <math.h>

#include "base/memory.h"

static const char measuring[] = "measuring mean and deviation";

static const int64_t MOST = 1 << 28;

static int chosen_of(const tutti_data *data, int64_t pixels)
{
    const int64_t most = MOST / pixels, count = data->count[TUTTI_SPLIT_TRAIN];
    return (int)(count <= most ? count : most ? most : 1);
}

/* The id, as stored, of number i of the chosen ones. */
static uint32_t id_of(const tutti_data *data, int chosen, int i)
{
    const int64_t at = (int64_t)i * data->count[TUTTI_SPLIT_TRAIN] / chosen;
    return tutti_data_stored_id(data, TUTTI_SPLIT_TRAIN, (uint32_t)at);
}

/* ------------------------------------------------------------------------------ pictures */

/* Exact: a sum of whole numbers does not depend on the order. */
static void add_row(const uint8_t *row, size_t width, size_t channels, uint64_t sum[3],
                    uint64_t square[3])
{
    for (size_t c = 0; c < channels; c++) {
        uint32_t total = 0, squares = 0; /* enough for 66,000 pixels */
        for (size_t i = c; i < width * channels; i += channels) {
            total += row[i];
            squares += (uint32_t)row[i] * row[i];
        }
        sum[c] += total;
        square[c] += squares;
    }
}

static void add_up(const tutti_image *image, uint64_t sum[3], uint64_t square[3])
{
    const size_t width = (size_t)image->width, channels = (size_t)image->channels;
    for (size_t y = 0; y < (size_t)image->height; y++)
        add_row(image->pixels + y * width * channels, width, channels, sum, square);
}

tutti_status tutti_measure_pictures(tutti_data *data)
{
    uint64_t sum[3] = {0}, square[3] = {0}, count = 0;
    const tutti_fit as_stored = {.height = data->native.height, .width = data->native.width};
    const int chosen = chosen_of(data, (int64_t)data->native.height * data->native.width);
    tutti_reader *reader = NULL;
    tutti_status s = tutti_reader_create(&reader, data);
    for (int i = 0; !s && i < chosen; i++) {
        int label;
        tutti_data_tell(data, measuring, i, chosen);
        s = data->source->pixels(reader, TUTTI_SPLIT_TRAIN, id_of(data, chosen, i), &as_stored,
                                 &label);
        if (!s) {
            add_up(&reader->image, sum, square);
            count += (uint64_t)reader->image.height * (uint64_t)reader->image.width;
        } else if (s == TUTTI_DATA && data->options.skip_bad) s = TUTTI_OK;
    }
    tutti_data_tell(data, measuring, 1, 1);
    tutti_reader_destroy(&reader);
    for (int c = 0; !s && c < data->frame; c++) {
        const double n = 255.0 * (double)(count ? count : 1), mean = (double)sum[c] / n;
        const double variance = (double)square[c] / (n * 255.0) - mean * mean;
        data->mean[c] = (float)mean;
        data->std[c] = variance > 1e-8 ? (float)sqrt(variance) : 1;
    }
    return s;
}

/* ------------------------------------------------------------------------------- numbers */

void tutti_moments_add(tutti_moments *of, double value)
{
    of->count++;
    of->sum += value;
    of->square += value * value;
}

void tutti_moments_finish(const tutti_moments of[], tutti_data *data)
{
    for (int c = 0; c < data->frame; c++) {
        const double count = fmax(of[c].count, 1), mean = of[c].sum / count;
        const double variance = of[c].square / count - mean * mean;
        data->mean[c] = (float)mean;
        data->std[c] = variance > 1e-10 ? (float)sqrt(variance) : 1;
    }
}

static tutti_status add_samples(tutti_data *data, tutti_reader *reader, float *values, size_t count,
                                tutti_moments *of)
{
    const size_t frame = (size_t)data->frame;
    const int chosen = chosen_of(data, (int64_t)(count / frame));
    for (int i = 0; i < chosen; i++) {
        int label;
        tutti_data_tell(data, measuring, i, chosen);
        const tutti_status s = data->source->numbers(reader, TUTTI_SPLIT_TRAIN,
                                                     id_of(data, chosen, i), NULL, values, &label);
        if (s == TUTTI_DATA && data->options.skip_bad) continue;
        if (s != TUTTI_OK) return s;
        for (size_t k = 0; k < count; k++) tutti_moments_add(&of[k % frame], values[k]);
    }
    return TUTTI_OK;
}

/* What a source gives is normalised; with mean 0 and deviation 1 it is as stored. */
tutti_status tutti_measure_numbers(tutti_data *data)
{
    const tutti_sample_shape n = data->shape;
    const size_t count = (size_t)n.channels * (size_t)n.height * (size_t)n.width;
    tutti_moments *of = NULL;
    float *values = NULL;
    tutti_reader *reader = NULL;
    for (int c = 0; c < data->frame; c++) data->mean[c] = 0, data->std[c] = 1;
    tutti_status s = tutti_alloc(&of, (size_t)data->frame, sizeof *of);
    if (!s) s = tutti_alloc(&values, count, sizeof *values);
    if (!s) s = tutti_reader_create(&reader, data);
    if (!s) s = add_samples(data, reader, values, count, of);
    tutti_data_tell(data, measuring, 1, 1);
    if (!s) tutti_moments_finish(of, data);
    tutti_reader_destroy(&reader);
    tutti_free(values);
    tutti_free(of);
    return s;
}
