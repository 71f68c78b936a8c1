/* A part of a picture, of random size and shape: torchvision's RandomResizedCrop. */
#ifndef TUTTI_DATA_CROP_H
#define TUTTI_DATA_CROP_H

#include "base/random.h"

typedef struct tutti_between {
    double least, most;
} tutti_between;

typedef struct tutti_crop_range {
    tutti_between area;   /* of the picture's, 0 to 1 */
    tutti_between aspect; /* width to height, drawn as evenly in its logarithm */
} tutti_crop_range;

typedef struct tutti_crop {
    int top, left, height, width;
} tutti_crop;

/* Ten tries to find one that lies inside; then the largest of an allowed shape, in the middle. */
tutti_crop tutti_crop_draw(const tutti_crop_range *range, const tutti_random_key *key, int height,
                           int width);

#endif
