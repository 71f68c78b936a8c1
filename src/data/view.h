/* From a picture to a sample: scale, crop, flip, normalise, in one pass. */
#ifndef TUTTI_DATA_VIEW_H
#define TUTTI_DATA_VIEW_H

#include <stdbool.h>
#include "data/image.h"

/* How training samples are varied, and how large pictures are when they are cropped. */
typedef struct tutti_augment {
    int pad;       /* black pixels added on all sides before a random crop */
    bool flip;     /* half of the samples mirrored left to right */
    double zoom;   /* as in tutti_fit: 0 keeps the size, 8/7 crops 224 out of 256 */
    double jitter; /* pictures are scaled by a further 1 .. 1+jitter */
} tutti_augment;

/* The part of a picture that becomes the sample: from (top, left) to the right and down, after
 * scaling. Black beyond the borders. */
typedef struct tutti_view {
    int height, width;
    double scale;
    int top, left;
    bool flip;
} tutti_view;

/* Four random numbers vary a training sample; NULL is the centre, unvaried. */
tutti_fit tutti_view_fit(const tutti_augment *augment, int height, int width,
                         const uint32_t random[4]);
tutti_view tutti_view_of(const tutti_augment *augment, const tutti_fit *fit,
                         const tutti_image *image, const uint32_t random[4]);

/* Scratch of one thread. */
typedef struct tutti_resampler {
    tutti_buffer rows, columns, line;
} tutti_resampler;
void tutti_resampler_deinit(tutti_resampler *resampler);

/* out[y][x][c] = (value / 255 - mean[c]) / std[c] for the view's pixels. Scaling is linear
 * interpolation, over a support widened by the reduction when pictures shrink, so that fine
 * texture is averaged, not sampled; at scale 1 it copies. */
tutti_status tutti_view_render(tutti_resampler *resampler, const tutti_view *view,
                               const tutti_image *image, const float *mean, const float *std,
                               float *out) TUTTI_MUST_CHECK;

#endif
