#include "data/datum.h"

#include <string.h>

enum { VARINT = 0, EIGHT_BYTES = 1, LENGTH = 2, FOUR_BYTES = 5 };
enum { CHANNELS = 1, HEIGHT, WIDTH, DATA, LABEL, FLOATS, ENCODED };

typedef struct field {
    int number, wire;
    uint64_t value;       /* of a varint */
    const uint8_t *bytes; /* of all others */
    size_t size;
} field;

typedef struct cursor {
    const uint8_t *at, *end;
} cursor;

static bool take_varint(cursor *c, uint64_t *out)
{
    *out = 0;
    for (int shift = 0; shift < 64 && c->at < c->end; shift += 7) {
        const uint8_t byte = *c->at++;
        *out |= (uint64_t)(byte & 127) << shift;
        if (byte < 128) return true;
    }
    return false;
}

static bool take_bytes(cursor *c, uint64_t size, field *f)
{
    if (size > (uint64_t)(c->end - c->at)) return false;
    f->bytes = c->at;
    f->size = (size_t)size;
    c->at += size;
    return true;
}

static bool take_field(cursor *c, field *f)
{
    uint64_t tag, size;
    *f = (field){0};
    if (!take_varint(c, &tag) || tag >> 3 > INT32_MAX) return false;
    f->number = (int)(tag >> 3);
    f->wire = (int)(tag & 7);
    switch (f->wire) {
    case VARINT: return take_varint(c, &f->value);
    case EIGHT_BYTES: return take_bytes(c, 8, f);
    case FOUR_BYTES: return take_bytes(c, 4, f);
    case LENGTH: return take_varint(c, &size) && take_bytes(c, size, f);
    default: return false;
    }
}

/* The wire that a field must come on; floats come one by one or packed. */
static bool is_on_its_wire(const field *f)
{
    if (f->number == DATA) return f->wire == LENGTH;
    if (f->number == FLOATS)
        return f->wire == FOUR_BYTES || (f->wire == LENGTH && f->size % 4 == 0);
    return f->number > ENCODED || f->wire == VARINT;
}

static tutti_status take_side(int *side, uint64_t value)
{
    if (value > TUTTI_DATUM_SIDE)
        return tutti_fail(TUTTI_DATA, "a side of %llu", (unsigned long long)value);
    *side = (int)value;
    return TUTTI_OK;
}

static tutti_status keep(tutti_datum *d, const field *f)
{
    switch (f->number) {
    case CHANNELS: return take_side(&d->channels, f->value);
    case HEIGHT: return take_side(&d->height, f->value);
    case WIDTH: return take_side(&d->width, f->value);
    case DATA: d->data = f->bytes, d->bytes = f->size; break;
    case LABEL: d->label = (int64_t)f->value; break;
    case FLOATS: d->floats += f->size / sizeof(float); break;
    case ENCODED: d->encoded = f->value != 0; break;
    default: break;
    }
    return TUTTI_OK;
}

tutti_status tutti_datum_read(tutti_datum *out, const void *bytes, size_t size)
{
    cursor c = {bytes, (const uint8_t *)bytes + size};
    field f;
    *out = (tutti_datum){0};
    while (c.at < c.end) {
        if (!take_field(&c, &f) || !is_on_its_wire(&f))
            return tutti_fail(TUTTI_DATA, "it is not a Datum of Caffe's");
        TUTTI_TRY(keep(out, &f));
    }
    return TUTTI_OK;
}

void tutti_datum_floats(const tutti_datum *datum, const void *bytes, size_t size, float *out)
{
    cursor c = {bytes, (const uint8_t *)bytes + size};
    field f;
    size_t done = 0;
    while (done < datum->floats && take_field(&c, &f)) {
        if (f.number != FLOATS) continue;
        memcpy(out + done, f.bytes, f.size);
        done += f.size / sizeof *out;
    }
}
