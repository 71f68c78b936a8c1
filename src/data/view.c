/* Scaling is separable: first a row is made as a weighted sum of a few picture rows (a long vector
 * loop over bytes), then each output pixel as a weighted sum of a few pixels of that row. Weights
 * are computed once per picture and axis. The order of every sum is fixed by the view alone. */
#include "data/view.h"

#include <math.h>
#include <string.h>

/* The terms of one output coordinate: picture coordinates first .. first+count-1. */
typedef struct term {
    int first, count;
    const float *weight;
} term;

static double uniform(uint32_t random)
{
    return random * 0x1p-32;
}

/* ------------------------------------------------------------------- which part of a picture */

tutti_fit tutti_view_fit(const tutti_augment *augment, int height, int width,
                         const tutti_random_key *random)
{
    uint32_t place[4] = {0};
    if (random) tutti_random_block(place, random, TUTTI_DRAWS_PLACE);
    return (tutti_fit){.height = height,
                       .width = width,
                       .zoom = augment->zoom * (1 + augment->jitter * uniform(place[0])),
                       .range = random && augment->resizes ? &augment->range : NULL,
                       .random = random};
}

/* Where a crop of 'size' begins in 'length' pixels with 'pad' more on both sides. */
static int crop(int length, int size, int pad, const uint32_t *random)
{
    const int places = length + 2 * pad - size + 1;
    if (!random || places <= 1) return (int)floor((length - size) / 2.0);
    return (int)((uint64_t)*random * (uint64_t)places >> 32) - pad;
}

static int scaled(int length, double scale)
{
    return (int)fmin(floor(length * scale + 0.5), 1 << 30);
}

static tutti_view_axis whole_axis(int size, int length, double scale, int pad,
                                  const uint32_t *random)
{
    return (tutti_view_axis){.size = size,
                             .first = crop(scaled(length, scale), size, pad, random),
                             .scale = scale,
                             .end = length};
}

/* Of 'count' pixels from 'first' on, in a file's 'file' of which 'length' are here. */
static tutti_view_axis axis_of_part(int size, int first, int count, int file, int length)
{
    const double share = (double)length / file;
    const int end = (int)ceil((first + count) * share);
    return (tutti_view_axis){.size = size,
                             .scale = size / (count * share),
                             .origin = first * share,
                             .begin = (int)floor(first * share),
                             .end = end < length ? end : length};
}

tutti_view tutti_view_of(const tutti_augment *augment, const tutti_fit *fit,
                         const tutti_image *image)
{
    uint32_t place[4] = {0};
    if (fit->random) tutti_random_block(place, fit->random, TUTTI_DRAWS_PLACE);
    tutti_view view = {.flip = augment->flip && place[3] >> 31};
    if (fit->range) {
        const int height = image->file_height, width = image->file_width;
        const tutti_crop part = tutti_crop_draw(fit->range, fit->random, height, width);
        view.rows = axis_of_part(fit->height, part.top, part.height, height, image->height);
        view.columns = axis_of_part(fit->width, part.left, part.width, width, image->width);
        return view;
    }
    const double scale = tutti_fit_scale(fit, image->height, image->width);
    const uint32_t *random = fit->random ? place : NULL;
    view.rows =
        whole_axis(fit->height, image->height, scale, augment->pad, random ? &random[1] : NULL);
    view.columns =
        whole_axis(fit->width, image->width, scale, augment->pad, random ? &random[2] : NULL);
    return view;
}

/* -------------------------------------------------------------------------------- scaling it */

void tutti_resampler_deinit(tutti_resampler *resampler)
{
    tutti_buffer_deinit(&resampler->rows);
    tutti_buffer_deinit(&resampler->columns);
    tutti_buffer_deinit(&resampler->line);
}

/* The terms of the output coordinate whose centre is at 'centre', among pixels begin .. end-1. */
static term terms_at(double centre, double support, int begin, int end, float *weight)
{
    if (!(centre >= begin && centre < end)) return (term){0, 0, weight};
    int first = (int)ceil(centre - support - 0.5), last = (int)floor(centre + support - 0.5);
    if (first < begin) first = begin;
    if (last > end - 1) last = end - 1;
    while (first < last && centre - (first + 0.5) >= support) first++;
    while (last > first && (last + 0.5) - centre >= support) last--;
    double sum = 0;
    for (int i = first; i <= last; i++) sum += 1 - fabs(i + 0.5 - centre) / support;
    for (int i = first; i <= last; i++)
        weight[i - first] = (float)((1 - fabs(i + 0.5 - centre) / support) / sum);
    return (term){first, last - first + 1, weight};
}

/* All terms of one axis: [size] of them, followed by their weights. */
static tutti_status terms_of_axis(tutti_buffer *buffer, term **out, const tutti_view_axis *axis,
                                  bool mirror)
{
    const double support = axis->scale < 1 ? 1 / axis->scale : 1;
    const size_t most = (size_t)(2 * support) + 3;
    const size_t n = (size_t)axis->size;
    TUTTI_TRY(tutti_buffer_reserve(buffer, n * (sizeof(term) + most * sizeof(float))));
    term *terms = buffer->bytes;
    float *weights = (float *)(terms + n);
    for (int i = 0; i < axis->size; i++) {
        const int at = mirror ? axis->size - 1 - i : i;
        terms[i] = terms_at(axis->origin + (at + axis->first + 0.5) / axis->scale, support,
                            axis->begin, axis->end, weights + (size_t)i * most);
    }
    *out = terms;
    return TUTTI_OK;
}

static void blend_rows(float *restrict line, const tutti_image *image, const term *row, int begin,
                       int end)
{
    const size_t pitch = (size_t)image->width * (size_t)image->channels;
    memset(line + begin, 0, (size_t)(end - begin) * sizeof *line);
    for (int k = 0; k < row->count; k++) {
        const uint8_t *restrict pixels = image->pixels + (size_t)(row->first + k) * pitch;
        const float weight = row->weight[k];
        for (int i = begin; i < end; i++) line[i] += weight * (float)pixels[i];
    }
}

static inline __attribute__((always_inline)) void blend_columns(float *restrict out,
                                                                const float *restrict line,
                                                                const term *columns, int width,
                                                                const float *gain,
                                                                const float *shift, int channels)
{
    for (int x = 0; x < width; x++, out += channels) {
        const float *from = line + columns[x].first * channels;
        float sum[3] = {0};
        for (int k = 0; k < columns[x].count; k++)
            for (int c = 0; c < channels; c++)
                sum[c] += columns[x].weight[k] * from[k * channels + c];
        for (int c = 0; c < channels; c++) out[c] = sum[c] * gain[c] + shift[c];
    }
}

static void columns_used(const term *columns, int width, int *begin, int *end)
{
    *begin = columns[0].first, *end = 0;
    for (int x = 0; x < width; x++) {
        if (!columns[x].count) continue;
        const int last = columns[x].first + columns[x].count;
        if (columns[x].first < *begin || !*end) *begin = columns[x].first;
        if (last > *end) *end = last;
    }
}

tutti_status tutti_view_render(tutti_resampler *resampler, const tutti_view *view,
                               const tutti_image *image, const float *mean, const float *std,
                               float *out)
{
    const int channels = image->channels;
    term *rows = NULL, *columns = NULL;
    TUTTI_TRY(terms_of_axis(&resampler->rows, &rows, &view->rows, false));
    TUTTI_TRY(terms_of_axis(&resampler->columns, &columns, &view->columns, view->flip));
    TUTTI_TRY(tutti_buffer_reserve(&resampler->line,
                                   (size_t)image->width * (size_t)channels * sizeof(float)));
    float *line = resampler->line.bytes, gain[3], shift[3];
    for (int c = 0; c < channels; c++) {
        gain[c] = 1 / (255 * std[c]);
        shift[c] = -mean[c] / std[c];
    }
    int begin = 0, end = 0;
    columns_used(columns, view->columns.size, &begin, &end);
    for (int y = 0; y < view->rows.size; y++, out += view->columns.size * channels) {
        if (begin < end) blend_rows(line, image, &rows[y], begin * channels, end * channels);
        if (channels == 3) blend_columns(out, line, columns, view->columns.size, gain, shift, 3);
        else blend_columns(out, line, columns, view->columns.size, gain, shift, 1);
    }
    return TUTTI_OK;
}

void tutti_view_cut_out(int side, const tutti_random_key *random, int height, int width,
                        int channels, float *sample)
{
    uint32_t place[4];
    tutti_random_block(place, random, TUTTI_DRAWS_CUTOUT);
    const int top = (int)((uint64_t)place[0] * (uint64_t)height >> 32) - side / 2;
    const int left = (int)((uint64_t)place[1] * (uint64_t)width >> 32) - side / 2;
    for (int y = top < 0 ? 0 : top; y < top + side && y < height; y++)
        for (int x = left < 0 ? 0 : left; x < left + side && x < width; x++)
            for (int c = 0; c < channels; c++) sample[(y * width + x) * channels + c] = 0;
}
