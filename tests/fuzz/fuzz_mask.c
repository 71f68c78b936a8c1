/* Any bytes as a mask: a PNG whose pixels are classes. */
#include <stdlib.h>

#include "data/mask_png.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    tutti_image mask = {0};
    unsigned sum = 0;
    if (tutti_decode_mask(&mask, "input", bytes, size)) {
        if (!*tutti_message()) abort();
    } else
        for (int i = 0; i < mask.height * mask.width; i++) sum += mask.pixels[i];
    if (sum && mask.channels != 1) abort();
    tutti_image_deinit(&mask);
    return 0;
}
