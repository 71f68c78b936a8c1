/* Masks: PNG files whose pixels are classes, numbers of a palette or greys, of 1 to 8 bits. */
#ifndef TUTTI_DATA_MASK_PNG_H
#define TUTTI_DATA_MASK_PNG_H

#include "data/image.h"

/* What a pixel without a class has. */
enum { TUTTI_MASK_NONE = 255 };

/* Fills 'mask' (one channel) with the numbers that the file has, not with what they look like.
 * Colours and 16 bits are refused. 'name' is for messages. */
tutti_status tutti_decode_mask(tutti_image *mask, const char *name, const void *bytes,
                               size_t size) TUTTI_MUST_CHECK;

/* Writes such a file: a palette with a colour for each class (those of PASCAL VOC), so that it can
 * be looked at. */
tutti_status tutti_write_mask(const char *path, int height, int width,
                              const uint8_t *classes) TUTTI_MUST_CHECK;

#endif
