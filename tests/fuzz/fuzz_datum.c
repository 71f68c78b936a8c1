/* Any bytes as a record of Caffe's: what it says it holds is inside of them. */
#include <stdint.h>
#include <stdlib.h>

#include "data/datum.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    tutti_datum datum;
    if (tutti_datum_read(&datum, bytes, size)) {
        if (!*tutti_message()) abort();
        return 0;
    }
    if (datum.data && (datum.data < bytes || datum.bytes > size ||
                       (size_t)(datum.data - bytes) > size - datum.bytes))
        abort();
    if (datum.floats > size / sizeof(float)) abort();
    float *values = malloc(datum.floats * sizeof *values + 1);
    if (!values) abort();
    tutti_datum_floats(&datum, bytes, size, values);
    free(values);
    return 0;
}
