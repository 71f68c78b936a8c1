/* Targets of the tests' minibatches, made of a sample's place, the target's number and where in the
 * target one is: models and the reference are given the same. */
#ifndef TUTTI_TESTS_MADE_TARGETS_H
#define TUTTI_TESTS_MADE_TARGETS_H

/* The class of pixel p; of pixels every fifth or so is ignored: -1. */
static inline int made_class(int place, int target, int pixel, int classes, int pixels)
{
    if (pixels > 1 && (place + 2 * pixel) % 5 == 0) return -1;
    return (place + 3 * target + 7 * pixel) % classes;
}

/* From -2 to 2, on a grid that floats have. */
static inline double made_value(int place, int target, int channel, int pixel)
{
    return ((place * 37 + target * 11 + channel * 23 + pixel * 5) % 65 - 32) / 16.0;
}

/* 0, 1 or something between. */
static inline double made_share(int place, int target, int channel, int pixel)
{
    const int k = (place * 37 + target * 11 + channel * 23 + pixel * 5) % 8;
    return k < 3 ? 0 : k < 6 ? 1 : k / 8.0;
}

#endif
