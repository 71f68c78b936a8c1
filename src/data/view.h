/* From a picture to a sample: scale, crop, flip, normalise, in one pass; then what else may be done
 * to it. */
#ifndef TUTTI_DATA_VIEW_H
#define TUTTI_DATA_VIEW_H

#include <stdbool.h>
#include "data/colour.h"
#include "data/image.h"

/* How training samples are varied, and how large pictures are when they are cropped. */
typedef struct tutti_augment {
    int pad;       /* black pixels added on all sides before a random crop */
    bool flip;     /* half of the samples mirrored left to right */
    double zoom;   /* as in tutti_fit: 0 keeps the size, 8/7 crops 224 out of 256 */
    double jitter; /* pictures are scaled by a further 1 .. 1+jitter */
    bool resizes;  /* training samples are parts of pictures, in 'range', whatever pad, zoom and */
                   /* jitter say */
    tutti_crop_range range;
    double colour[TUTTI_COLOURS]; /* how far colours may be off */
    int cutout;   /* the side of a square that is made 0 (DeVries and Taylor, 2017); 0: none */
    double mixup; /* the alpha of mix.h; 0: samples are not mixed */
} tutti_augment;

/* Which blocks of a sample's random numbers (base/random.h) are for what. */
enum {
    TUTTI_DRAWS_PLACE, /* scale, top, left, flip */
    TUTTI_DRAWS_CROP,
    TUTTI_DRAWS_COLOUR = 16,
    TUTTI_DRAWS_CUTOUT = 20
};

/* One axis of a view: place i of the sample is at origin + (i + first + 0.5) / scale, and black
 * unless that lies among the picture's pixels begin .. end-1. */
typedef struct tutti_view_axis {
    int size; /* of the sample */
    int first;
    double scale, origin;
    int begin, end;
} tutti_view_axis;

/* The part of a picture that becomes the sample. */
typedef struct tutti_view {
    tutti_view_axis rows, columns;
    bool flip;
} tutti_view;

/* Random numbers vary a training sample; without, NULL, it is the centre. Both are borrowed by the
 * fit. */
tutti_fit tutti_view_fit(const tutti_augment *augment, int height, int width,
                         const tutti_random_key *random);
tutti_view tutti_view_of(const tutti_augment *augment, const tutti_fit *fit,
                         const tutti_image *image);

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

/* Makes a square of the sample 0: 'side' pixels around a random one, as far as they are in it. */
void tutti_view_cut_out(int side, const tutti_random_key *random, int height, int width,
                        int channels, float *sample);

#endif
