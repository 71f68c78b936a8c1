/* Pictures in memory, 8 bits per channel, and how JPEG and PNG files become pictures. */
#ifndef TUTTI_DATA_IMAGE_H
#define TUTTI_DATA_IMAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/status.h"
#include "data/crop.h"
#include "data/file.h"

typedef struct tutti_image {
    int height, width, channels; /* channels: 1 grey, 3 red green blue */
    int file_height, file_width; /* of the file, which may be decoded to less */
    uint8_t *pixels;             /* [height][width][channels], in 'buffer' */
    bool clipped;                /* greys of 16 bits beyond 255 became white */
    tutti_buffer buffer;
} tutti_image;

/* Makes room, with undefined pixels; fails for sizes that no photograph has. */
tutti_status tutti_image_reserve(tutti_image *image, int height, int width,
                                 int channels) TUTTI_MUST_CHECK;
void tutti_image_deinit(tutti_image *image);

/* Copies an image of 'from' channels (1 or 3) into one of image->channels, of the same size:
 * grey is repeated, colours are mixed to grey by BT.601, rounded as PIL does. */
void tutti_image_convert(tutti_image *image, const uint8_t *pixels, int from);

/* What will be cut out of a picture: height x width after scaling it by
 * zoom * max(height / its height, width / its width). With zoom 0 it keeps its size. With a range
 * a part of it is drawn instead, and scaled to height x width. */
typedef struct tutti_fit {
    int height, width;
    double zoom;
    const tutti_crop_range *range; /* or NULL */
    const tutti_random_key *random;
} tutti_fit;

double tutti_fit_scale(const tutti_fit *fit, int height, int width);

/* A decoder serves one thread. */
typedef struct tutti_decoder tutti_decoder;
tutti_status tutti_decoder_create(tutti_decoder **out) TUTTI_MUST_CHECK;
void tutti_decoder_destroy(tutti_decoder **decoder);

/* Decodes the bytes of a JPEG or PNG file, told apart by their first bytes, to 'channels'
 * channels. A JPEG is decoded at half, a quarter or an eighth of its size where that is still no
 * smaller than 'fit' needs, which saves most of the work. Pixels are those of PIL's
 * Image.open(file).convert("RGB"), or ("L"): image_png.c says what that means for PNG; a JPEG's
 * orientation (EXIF) is ignored. 'name' is for messages. */
tutti_status tutti_decode(tutti_decoder *decoder, tutti_image *image, int channels,
                          const tutti_fit *fit, const char *name, const void *bytes,
                          size_t size) TUTTI_MUST_CHECK;

/* The same for PNG alone; 'scratch' holds rows that are not pixels yet. */
tutti_status tutti_decode_png(tutti_image *image, int channels, tutti_buffer *scratch,
                              const char *name, const void *bytes, size_t size) TUTTI_MUST_CHECK;

#endif
