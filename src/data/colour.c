#include "data/colour.h"

#include <math.h>

#include "data/view.h"

/* ---- what to do ---- */

bool tutti_colour_is_varied(const double most[TUTTI_COLOURS])
{
    for (int i = 0; i < TUTTI_COLOURS; i++)
        if (most[i] > 0) return true;
    return false;
}

tutti_colour_changes tutti_colour_draw(const double most[TUTTI_COLOURS],
                                       const tutti_random_key *key)
{
    tutti_colour_changes changes;
    uint32_t by[4], order[4];
    tutti_random_block(by, key, TUTTI_DRAWS_COLOUR);
    tutti_random_block(order, key, TUTTI_DRAWS_COLOUR + 1);
    for (int i = 0; i < TUTTI_COLOURS; i++) {
        const double middle = i == TUTTI_COLOUR_HUE ? 0 : 1;
        const double least = fmax(middle - most[i], i == TUTTI_COLOUR_HUE ? -most[i] : 0);
        changes.by[i] = (float)(least + (middle + most[i] - least) * (by[i] * 0x1p-32));
        changes.order[i] = i;
    }
    for (int i = TUTTI_COLOURS - 1; i > 0; i--) {
        const int j = (int)((uint64_t)order[i] * (uint64_t)(i + 1) >> 32), kept = changes.order[i];
        changes.order[i] = changes.order[j];
        changes.order[j] = kept;
    }
    return changes;
}

/* ---- doing it ---- */

static float clamp(float value)
{
    return value < 0 ? 0 : value > 1 ? 1 : value;
}

static float grey_of(const float *rgb)
{
    return 0.2989f * rgb[0] + 0.587f * rgb[1] + 0.114f * rgb[2];
}

static void brighten(float factor, float *values, int pixels, int channels)
{
    for (int i = 0; i < pixels * channels; i++) values[i] = clamp(factor * values[i]);
}

/* Away from the mean grey, or towards it. */
static void contrast(float factor, float *values, int pixels, int channels)
{
    double sum = 0;
    for (int i = 0; i < pixels; i++)
        sum += (double)(channels == 3 ? grey_of(values + 3 * i) : values[i]);
    const float rest = (1 - factor) * (float)(sum / pixels);
    for (int i = 0; i < pixels * channels; i++) values[i] = clamp(factor * values[i] + rest);
}

static void saturate(float factor, float *values, int pixels, int channels)
{
    for (float *rgb = values; channels == 3 && rgb < values + 3 * pixels; rgb += 3) {
        const float rest = (1 - factor) * grey_of(rgb);
        for (int c = 0; c < 3; c++) rgb[c] = clamp(factor * rgb[c] + rest);
    }
}

/* Where on the circle of colours, 0 to 1: red, green and blue are a third apart. */
static float hue_of(const float *rgb, float most, float spread)
{
    const float r = (most - rgb[0]) / spread, g = (most - rgb[1]) / spread,
                b = (most - rgb[2]) / spread;
    const float sixths = most == rgb[0] ? b - g : most == rgb[1] ? 2 + r - b : 4 + g - r;
    return fmodf(sixths / 6 + 1, 1);
}

static void turn_pixel(float turn, float *rgb)
{
    static const uint8_t places[6][3] = {/* of v, t, q, p: which becomes red, green, blue */
                                         {0, 1, 3}, {2, 0, 3}, {3, 0, 1},
                                         {3, 2, 0}, {1, 3, 0}, {0, 3, 2}};
    const float v = fmaxf(fmaxf(rgb[0], rgb[1]), rgb[2]);
    const float spread = v - fminf(fminf(rgb[0], rgb[1]), rgb[2]);
    if (spread == 0) return;
    const float s = spread / v, moved = hue_of(rgb, v, spread) + turn;
    const float h = (moved - floorf(moved)) * 6, whole = floorf(h), part = h - whole;
    const float of[] = {v, clamp(v * (1 - s * (1 - part))), clamp(v * (1 - s * part)),
                        clamp(v * (1 - s))};
    for (int c = 0; c < 3; c++) rgb[c] = of[places[(int)whole % 6][c]];
}

static void turn_hue(float turn, float *values, int pixels, int channels)
{
    for (int i = 0; channels == 3 && i < pixels; i++) turn_pixel(turn, values + 3 * i);
}

void tutti_colour_change(const tutti_colour_changes *changes, float *values, int pixels,
                         int channels)
{
    static void (*const change[TUTTI_COLOURS])(float, float *, int, int) = {
        [TUTTI_COLOUR_BRIGHTNESS] = brighten,
        [TUTTI_COLOUR_CONTRAST] = contrast,
        [TUTTI_COLOUR_SATURATION] = saturate,
        [TUTTI_COLOUR_HUE] = turn_hue,
    };
    for (int i = 0; i < TUTTI_COLOURS; i++) {
        const int which = changes->order[i];
        if (changes->by[which] != (which == TUTTI_COLOUR_HUE ? 0 : 1))
            change[which](changes->by[which], values, pixels, channels);
    }
}
