#include "format/wire.h"

#include <string.h>

enum { MOST_FIELD = (1 << 29) - 1 };

static bool damaged(tutti_wire *wire)
{
    wire->is_damaged = true;
    wire->rest.length = 0;
    return false;
}

static void skip(tutti_wire *wire, size_t count)
{
    wire->rest.start += count;
    wire->rest.length -= count;
}

/* ---- reading ---- */

bool tutti_wire_varint(tutti_wire *wire, uint64_t *value)
{
    *value = 0;
    if (!wire->rest.length) return false;
    for (size_t i = 0; i < 10 && i < wire->rest.length; i++) {
        const unsigned char byte = wire->rest.start[i];
        *value |= (uint64_t)(byte & 127) << (7 * i);
        if (byte & 128) continue;
        skip(wire, i + 1);
        return true;
    }
    return damaged(wire);
}

static bool read_fixed(tutti_wire *wire, size_t count, uint64_t *value)
{
    *value = 0;
    if (wire->rest.length < count) return damaged(wire);
    for (size_t i = 0; i < count; i++) *value |= (uint64_t)wire->rest.start[i] << (8 * i);
    skip(wire, count);
    return true;
}

static bool read_bytes(tutti_wire *wire, tutti_bytes *bytes)
{
    uint64_t count;
    if (!tutti_wire_varint(wire, &count) || count > wire->rest.length) return damaged(wire);
    *bytes = (tutti_bytes){wire->rest.start, (size_t)count};
    skip(wire, (size_t)count);
    return true;
}

bool tutti_wire_next(tutti_wire *wire, tutti_field *field)
{
    uint64_t key;
    *field = (tutti_field){0};
    if (!tutti_wire_varint(wire, &key)) return false;
    if (key >> 3 < 1 || key >> 3 > MOST_FIELD) return damaged(wire);
    field->number = (int)(key >> 3);
    field->type = (tutti_wire_type)(key & 7);
    switch (key & 7) {
    case TUTTI_WIRE_VARINT: return tutti_wire_varint(wire, &field->value) || damaged(wire);
    case TUTTI_WIRE_FIXED64: return read_fixed(wire, 8, &field->value);
    case TUTTI_WIRE_BYTES: return read_bytes(wire, &field->bytes);
    case TUTTI_WIRE_FIXED32: return read_fixed(wire, 4, &field->value);
    default: return damaged(wire);
    }
}

float tutti_wire_float(uint64_t bits)
{
    const uint32_t low = (uint32_t)bits;
    float value;
    memcpy(&value, &low, sizeof value);
    return value;
}

double tutti_wire_double(uint64_t bits)
{
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* ---- writing ---- */

static void put_varint(tutti_string *to, uint64_t value)
{
    char bytes[10];
    size_t n = 0;
    for (; value > 127; value >>= 7) bytes[n++] = (char)(unsigned char)(value | 128);
    bytes[n++] = (char)value;
    tutti_string_append(to, bytes, n);
}

static void put_key(tutti_string *to, int number, tutti_wire_type type)
{
    put_varint(to, (uint64_t)number << 3 | type);
}

void tutti_wire_put_int(tutti_string *to, int number, int64_t value)
{
    put_key(to, number, TUTTI_WIRE_VARINT);
    put_varint(to, (uint64_t)value);
}

void tutti_wire_put_float(tutti_string *to, int number, float value)
{
    char bytes[4];
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    for (int i = 0; i < 4; i++) bytes[i] = (char)(unsigned char)(bits >> (8 * i));
    put_key(to, number, TUTTI_WIRE_FIXED32);
    tutti_string_append(to, bytes, sizeof bytes);
}

void tutti_wire_put_head(tutti_string *to, int number, size_t count)
{
    put_key(to, number, TUTTI_WIRE_BYTES);
    put_varint(to, count);
}

void tutti_wire_put_bytes(tutti_string *to, int number, const void *bytes, size_t count)
{
    tutti_wire_put_head(to, number, count);
    if (count) tutti_string_append(to, bytes, count);
}

void tutti_wire_put_text(tutti_string *to, int number, const char *text)
{
    tutti_wire_put_bytes(to, number, text, strlen(text));
}

void tutti_wire_put_message(tutti_string *to, int number, tutti_string *message)
{
    if (message->status != TUTTI_OK) to->status = message->status;
    tutti_wire_put_bytes(to, number, message->data, message->length);
    tutti_string_deinit(message);
}
