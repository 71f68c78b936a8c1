/* Colours that are off a little: torchvision's ColorJitter, as it treats tensors of floats. */
#ifndef TUTTI_DATA_COLOUR_H
#define TUTTI_DATA_COLOUR_H

#include <stdbool.h>
#include "base/random.h"

/* What is varied, as ColorJitter's arguments come: three factors between 1 - x (or 0) and 1 + x,
 * and a turn of the hue between -x and x of the circle. */
enum {
    TUTTI_COLOUR_BRIGHTNESS,
    TUTTI_COLOUR_CONTRAST,
    TUTTI_COLOUR_SATURATION,
    TUTTI_COLOUR_HUE,
    TUTTI_COLOURS
};

bool tutti_colour_is_varied(const double most[TUTTI_COLOURS]);

typedef struct tutti_colour_changes {
    float by[TUTTI_COLOURS]; /* factors, and the turn */
    int order[TUTTI_COLOURS];
} tutti_colour_changes;

/* In a random order, each; 'most' 0 draws nothing but 1 (a turn of 0). */
tutti_colour_changes tutti_colour_draw(const double most[TUTTI_COLOURS],
                                       const tutti_random_key *key);

/* values[pixels][channels], 0 to 1, of 1 or 3 channels; grey has neither saturation nor hue. */
void tutti_colour_change(const tutti_colour_changes *changes, float *values, int pixels,
                         int channels);

#endif
