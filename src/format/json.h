/* A growing string, and JSON written into it.
 *
 * What is written depends on the values alone: no locale, no hash order, numbers with as many
 * digits as were asked for. So files made from it can be compared byte for byte.
 *
 * A string remembers its first failure (memory) instead of returning one from every call:
 * write everything, then ask tutti_string_status once. */
#ifndef TUTTI_FORMAT_JSON_H
#define TUTTI_FORMAT_JSON_H

#include <stddef.h>
#include <stdint.h>
#include "base/status.h"

typedef struct tutti_string {
    char *data; /* ends with a 0 byte; NULL while empty */
    size_t length, capacity;
    tutti_status status;
} tutti_string; /* {0} is an empty string */

void tutti_string_deinit(tutti_string *s);
void tutti_string_clear(tutti_string *s); /* keeps the memory for the next use */
tutti_status tutti_string_status(const tutti_string *s) TUTTI_MUST_CHECK;

void tutti_string_append(tutti_string *s, const char *bytes, size_t count);
void tutti_string_printf(tutti_string *s, const char *format, ...) TUTTI_PRINTF(2, 3);

/* The text as UTF-8: bytes that are none are taken for Latin-1. */
void tutti_string_utf8(tutti_string *s, const char *text);

/* JSON values. Texts are written as UTF-8, see above. A real is written with 'digits' significant
 * digits (9 restore a float exactly, 17 a double); NaN and infinities, which JSON does not have,
 * become null. */
void tutti_json_string(tutti_string *s, const char *value);
void tutti_json_real(tutti_string *s, double value, int digits);

/* Bytes as a string in base64. */
void tutti_json_base64(tutti_string *s, const void *bytes, size_t count);

/* Fields of an object, each with its comma unless it is the object's first:
 * tutti_json_key(t, "loss") writes  "loss":  or  ,"loss":  */
void tutti_json_key(tutti_string *s, const char *key);
void tutti_json_field_string(tutti_string *s, const char *key, const char *value);
void tutti_json_field_int(tutti_string *s, const char *key, int64_t value);
void tutti_json_field_real(tutti_string *s, const char *key, double value, int digits);

#endif
