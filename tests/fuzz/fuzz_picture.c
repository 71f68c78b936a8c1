/* Any bytes as a JPEG or PNG file, decoded, scaled and cropped. */
#define _GNU_SOURCE
#include <math.h>
#include <stdlib.h>

#include "base/random.h"
#include "data/view.h"

enum { SIDE = 16 };

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static void render(tutti_image *image, const tutti_augment *augment, const tutti_fit *fit)
{
    static const float mean[3] = {0.5f, 0.5f, 0.5f}, std[3] = {1, 1, 1};
    float out[SIDE * SIDE * 3];
    tutti_resampler resampler = {0};
    const tutti_view view = tutti_view_of(augment, fit, image);
    if (tutti_view_render(&resampler, &view, image, mean, std, out)) abort();
    for (int i = 0; i < SIDE * SIDE * image->channels; i++)
        if (!(fabsf(out[i]) <= 0.5001f)) abort();
    tutti_resampler_deinit(&resampler);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    tutti_decoder *decoder = NULL;
    tutti_image image = {0};
    const tutti_random_key key = {.sample = (uint32_t)size};
    const tutti_augment augment = {.pad = (int)(size % 5),
                                   .flip = true,
                                   .zoom = size % 3 * 0.8,
                                   .jitter = 1,
                                   .resizes = size % 11 < 4,
                                   .range = {{0.01 + size % 13 * 0.07, 1}, {0.75, 4.0 / 3}}};
    const tutti_fit fit = tutti_view_fit(&augment, SIDE, SIDE, size % 7 ? &key : NULL);
    if (tutti_decoder_create(&decoder)) abort();
    if (!tutti_decode(decoder, &image, size % 2 ? 3 : 1, &fit, "input", bytes, size))
        render(&image, &augment, &fit);
    else if (!*tutti_message()) abort();
    tutti_image_deinit(&image);
    tutti_decoder_destroy(&decoder);
    return 0;
}
