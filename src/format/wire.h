/* The wire format of protocol buffers, https://protobuf.dev/programming-guides/encoding: a message
 * is a row of fields, each a number and a value. Reading borrows the bytes and never looks behind
 * their end; a message inside a message is a field's bytes, read as a message when somebody wants
 * it, so nothing here calls itself, however deep a file is. */
#ifndef TUTTI_FORMAT_WIRE_H
#define TUTTI_FORMAT_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "format/json.h"

typedef struct tutti_bytes {
    const unsigned char *start;
    size_t length;
} tutti_bytes;

/* Where a reader is in a message; begin with the message's bytes. */
typedef struct tutti_wire {
    tutti_bytes rest;
    bool is_damaged;
} tutti_wire;

typedef enum tutti_wire_type {
    TUTTI_WIRE_VARINT = 0,
    TUTTI_WIRE_FIXED64 = 1,
    TUTTI_WIRE_BYTES = 2,
    TUTTI_WIRE_FIXED32 = 5
} tutti_wire_type;

typedef struct tutti_field {
    int number;
    tutti_wire_type type;
    uint64_t value;    /* but of bytes */
    tutti_bytes bytes; /* of text, messages and packed numbers */
} tutti_field;

/* Goes to the next field; false at the end and, with is_damaged set, where the bytes are none. */
bool tutti_wire_next(tutti_wire *wire, tutti_field *field);

/* The next number of a packed list of varints; likewise. */
bool tutti_wire_varint(tutti_wire *wire, uint64_t *value);

/* The bits of a fixed value as what they mean. */
float tutti_wire_float(uint64_t bits);
double tutti_wire_double(uint64_t bits);

/* ---- writing: a message is a growing string ---- */

void tutti_wire_put_int(tutti_string *to, int number, int64_t value);
void tutti_wire_put_float(tutti_string *to, int number, float value);
void tutti_wire_put_bytes(tutti_string *to, int number, const void *bytes, size_t count);
void tutti_wire_put_text(tutti_string *to, int number, const char *text);

/* A message made before, as a field of another; it is emptied. */
void tutti_wire_put_message(tutti_string *to, int number, tutti_string *message);

/* The beginning of a field of 'count' bytes that are written elsewhere. */
void tutti_wire_put_head(tutti_string *to, int number, size_t count);

#endif
