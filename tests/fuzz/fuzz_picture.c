/* Any bytes as a JPEG or PNG file, decoded, scaled and cropped. */
#define _GNU_SOURCE
#include <math.h>
#include <stdlib.h>

#include "base/random.h"
#include "data/view.h"

enum { SIDE = 16 };

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static void render(tutti_image *image, const tutti_augment *augment, const tutti_fit *fit,
                   const uint32_t random[4])
{
    static const float mean[3] = {0.5f, 0.5f, 0.5f}, std[3] = {1, 1, 1};
    float out[SIDE * SIDE * 3];
    tutti_resampler resampler = {0};
    const tutti_view view = tutti_view_of(augment, fit, image, random);
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
    const tutti_augment augment = {
        .pad = (int)(size % 5), .flip = true, .zoom = size % 3 * 0.8, .jitter = 1};
    uint32_t random[4];
    tutti_random_block(random, &key, 0);
    const tutti_fit fit = tutti_view_fit(&augment, SIDE, SIDE, size % 7 ? random : NULL);
    if (tutti_decoder_create(&decoder)) abort();
    if (!tutti_decode(decoder, &image, size % 2 ? 3 : 1, &fit, "input", bytes, size))
        render(&image, &augment, &fit, size % 7 ? random : NULL);
    else if (!*tutti_message()) abort();
    tutti_image_deinit(&image);
    tutti_decoder_destroy(&decoder);
    return 0;
}
