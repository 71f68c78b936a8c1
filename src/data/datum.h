/* A record of Caffe's databases: a protocol buffer
 *
 *     message Datum {
 *         int32 channels = 1;  int32 height = 2;  int32 width = 3;
 *         bytes data = 4;                  // [c][h][w], or a JPEG or PNG file
 *         int32 label = 5;
 *         repeated float float_data = 6;   // [c][h][w], instead of data
 *         bool encoded = 7;                // data is a file
 *     } */
#ifndef TUTTI_DATA_DATUM_H
#define TUTTI_DATA_DATUM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/status.h"

enum { TUTTI_DATUM_SIDE = 1 << 16 };

/* Points into the bytes it was read from. */
typedef struct tutti_datum {
    int channels, height, width; /* 0 to TUTTI_DATUM_SIDE; 0: it does not say */
    const uint8_t *data;
    size_t bytes;  /* of data */
    size_t floats; /* numbers in float_data */
    int64_t label;
    bool encoded;
} tutti_datum;

/* TUTTI_DATA, with what is wrong with it, for bytes that are none. Fields of other numbers are
 * passed over. */
tutti_status tutti_datum_read(tutti_datum *out, const void *bytes, size_t size) TUTTI_MUST_CHECK;

/* Copies float_data of the same bytes: out[floats]. */
void tutti_datum_floats(const tutti_datum *datum, const void *bytes, size_t size, float *out);

#endif
