/* The text of a platform: any bytes give a platform, which can be written again, or a sentence. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "plan/platform.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    tutti_platform *platform = NULL;
    char *text = malloc(size + 1), *written = NULL;
    memcpy(text, data, size);
    text[size] = 0;
    if (tutti_platform_parse(&platform, "fuzz", text) == TUTTI_OK) {
        if (tutti_platform_text(&written, platform, NULL) != TUTTI_OK) abort();
    } else if (!*tutti_message()) abort();
    tutti_platform_destroy(&platform);
    tutti_free(written);
    free(text);
    return 0;
}
