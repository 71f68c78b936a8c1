/* What a node says besides its inputs. Lists are looked up in the file each time: they are short,
 * and read once. */
#include <string.h>

#include "format/onnx.h"

static bool bytes_are(tutti_bytes b, const char *text)
{
    return b.length == strlen(text) && (!b.length || !memcmp(b.start, text, b.length));
}

/* The attribute of that name. */
static tutti_onnx_attribute find(const tutti_onnx_node *node, const char *name)
{
    tutti_wire wire = {node->message, false};
    tutti_field f, g;
    while (tutti_wire_next(&wire, &f)) {
        if (f.number != 5 || f.type != TUTTI_WIRE_BYTES) continue;
        tutti_wire inner = {f.bytes, false};
        tutti_onnx_attribute found = {.message = f.bytes};
        bool is_it = false;
        while (tutti_wire_next(&inner, &g)) {
            if (g.number == 1 && g.type == TUTTI_WIRE_BYTES) is_it = bytes_are(g.bytes, name);
            if (g.number == 20 && g.type == TUTTI_WIRE_VARINT) found.type = (int)(g.value & 255);
        }
        if (is_it && !inner.is_damaged) return found;
    }
    return (tutti_onnx_attribute){{0}, 0};
}

/* The last field of that number and type. */
static bool find_field(tutti_bytes message, int number, tutti_wire_type type, tutti_field *out)
{
    tutti_wire wire = {message, false};
    tutti_field f;
    bool is_there = false;
    while (tutti_wire_next(&wire, &f))
        if (f.number == number && f.type == type) *out = f, is_there = true;
    return is_there;
}

bool tutti_onnx_has(const tutti_onnx_node *node, const char *attribute)
{
    return find(node, attribute).message.start;
}

int64_t tutti_onnx_int(const tutti_onnx_node *node, const char *attribute, int64_t fallback)
{
    tutti_field f;
    const tutti_onnx_attribute a = find(node, attribute);
    return find_field(a.message, 3, TUTTI_WIRE_VARINT, &f) ? (int64_t)f.value : fallback;
}

double tutti_onnx_float(const tutti_onnx_node *node, const char *attribute, double fallback)
{
    tutti_field f;
    const tutti_onnx_attribute a = find(node, attribute);
    return find_field(a.message, 2, TUTTI_WIRE_FIXED32, &f) ? (double)tutti_wire_float(f.value)
                                                            : fallback;
}

bool tutti_onnx_text_is(const tutti_onnx_node *node, const char *attribute, const char *text)
{
    tutti_field f;
    const tutti_onnx_attribute a = find(node, attribute);
    return find_field(a.message, 4, TUTTI_WIRE_BYTES, &f) && bytes_are(f.bytes, text);
}

int tutti_onnx_ints(const tutti_onnx_node *node, const char *attribute, int64_t *out, int room)
{
    tutti_wire wire = {find(node, attribute).message, false};
    tutti_field f;
    uint64_t value;
    int count = 0;
    while (tutti_wire_next(&wire, &f)) {
        tutti_wire packed = {f.bytes, false};
        if (f.number != 8) continue;
        if (f.type == TUTTI_WIRE_VARINT && count++ < room) out[count - 1] = (int64_t)f.value;
        while (f.type == TUTTI_WIRE_BYTES && tutti_wire_varint(&packed, &value))
            if (count++ < room) out[count - 1] = (int64_t)value;
    }
    return count;
}

int tutti_onnx_floats(const tutti_onnx_node *node, const char *attribute, float *out, int room)
{
    tutti_wire wire = {find(node, attribute).message, false};
    tutti_field f;
    int count = 0;
    while (tutti_wire_next(&wire, &f)) {
        if (f.number != 7) continue;
        if (f.type == TUTTI_WIRE_FIXED32 && count++ < room)
            out[count - 1] = tutti_wire_float(f.value);
        for (size_t i = 0; f.type == TUTTI_WIRE_BYTES && i + 4 <= f.bytes.length; i += 4)
            if (count++ < room) memcpy(&out[count - 1], f.bytes.start + i, 4);
    }
    return count;
}

tutti_status tutti_onnx_attribute_tensor(const tutti_onnx *model, const tutti_onnx_node *node,
                                         const char *attribute, tutti_onnx_tensor *out)
{
    tutti_field f;
    const tutti_onnx_attribute a = find(node, attribute);
    if (!find_field(a.message, 5, TUTTI_WIRE_BYTES, &f))
        return tutti_onnx_damaged(model->path, "an attribute that should be a tensor is none");
    *out = (tutti_onnx_tensor){0};
    return tutti_onnx_read_tensor(model, f.bytes, out);
}
