/* A model's file, message by message: what is counted is read at once, values when they are asked
 * for. Texts are kept once, behind one another, with a 0 after each. */
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "format/file.h"
#include "format/onnx.h"

enum { MOST_BYTES = INT32_MAX }; /* protocol buffers' own limit */

typedef struct fact {
    const char *key, *value;
} fact;

typedef struct tutti_onnx_store {
    tutti_onnx model;
    char *path, *bytes;
    char *texts; /* room as of the file: a text's field is longer than the text */
    size_t text_used, length;
    const char **names; /* by number */
    int name_room, node_room, constant_room, input_room, output_room, fact_room, link_room;
    int *slots; /* names by hash; slot_count is a power of two, more than names */
    int slot_count;
    int *links; /* inputs and outputs of all nodes */
    int link_count;
    fact *facts;
    int fact_count;
    bool has_graph;
} store;

tutti_status tutti_onnx_damaged(const char *path, const char *what)
{
    return tutti_fail(TUTTI_CHECKPOINT, "'%s' is no ONNX model, or it is damaged: %s", path, what);
}

static tutti_status damaged(const store *s, const char *what)
{
    return tutti_onnx_damaged(s->path, what);
}

/* ---- texts and names ---- */

static bool is_text(tutti_bytes b)
{
    for (size_t i = 0; i < b.length; i++)
        if (b.start[i] < 32 || b.start[i] == 127) return false;
    return true;
}

static const char *keep_text(store *s, tutti_bytes b)
{
    char *text = s->texts + s->text_used;
    if (!b.length) return "";
    TUTTI_ASSERT(s->text_used + b.length + 1 <= s->length);
    memcpy(text, b.start, b.length);
    text[b.length] = 0;
    s->text_used += b.length + 1;
    return text;
}

static uint32_t hash_of(tutti_bytes b)
{
    uint32_t hash = 2166136261u;
    for (size_t i = 0; i < b.length; i++) hash = (hash ^ b.start[i]) * 16777619u;
    return hash ^ hash >> 15;
}

/* The slot of the name, or the empty one where it belongs. */
static int *slot_of(const store *s, tutti_bytes b)
{
    for (uint32_t at = hash_of(b);; at++) {
        int *slot = &s->slots[at & (uint32_t)(s->slot_count - 1)];
        const char *name = *slot ? s->names[*slot] : NULL;
        if (!name || (strlen(name) == b.length && !memcmp(name, b.start, b.length))) return slot;
    }
}

static tutti_status widen(store *s)
{
    if (2 * s->model.name_count < s->slot_count) return TUTTI_OK;
    tutti_free(s->slots);
    s->slot_count = s->slot_count ? 2 * s->slot_count : 1024;
    TUTTI_TRY(tutti_alloc(&s->slots, (size_t)s->slot_count, sizeof *s->slots));
    for (int i = 1; i < s->model.name_count; i++)
        *slot_of(s, (tutti_bytes){(const unsigned char *)s->names[i], strlen(s->names[i])}) = i;
    return TUTTI_OK;
}

static tutti_status number_of(store *s, tutti_bytes b, int *out)
{
    if (!is_text(b)) return damaged(s, "a name has bytes that are no letters");
    *out = TUTTI_ONNX_NONE;
    if (!b.length) return TUTTI_OK;
    TUTTI_TRY(widen(s));
    int *slot = slot_of(s, b);
    if (!*slot) {
        TUTTI_TRY(tutti_grow(&s->names, &s->name_room, s->model.name_count, sizeof *s->names));
        *slot = s->model.name_count++;
        s->names[*slot] = keep_text(s, b);
    }
    *out = *slot;
    return TUTTI_OK;
}

/* ---- nodes ---- */

static tutti_status add_link(store *s, tutti_bytes name)
{
    TUTTI_TRY(tutti_grow(&s->links, &s->link_room, s->link_count, sizeof *s->links));
    return number_of(s, name, &s->links[s->link_count++]);
}

/* Inputs and outputs, each in its order. */
static tutti_status read_links(store *s, tutti_bytes message, int number, int *count)
{
    tutti_wire wire = {message, false};
    tutti_field f;
    for (*count = 0; tutti_wire_next(&wire, &f);)
        if (f.number == number && f.type == TUTTI_WIRE_BYTES) {
            TUTTI_TRY(add_link(s, f.bytes));
            ++*count;
        }
    return TUTTI_OK;
}

typedef struct entry {
    tutti_bytes key, value;
} entry;

static entry read_entry(tutti_bytes message)
{
    tutti_wire wire = {message, false};
    tutti_field f;
    entry e = {0};
    while (tutti_wire_next(&wire, &f)) {
        if (f.number == 1) e.key = f.bytes;
        if (f.number == 2) e.value = f.bytes;
    }
    return e;
}

static bool bytes_are(tutti_bytes b, const char *text)
{
    return b.length == strlen(text) && (!b.length || !memcmp(b.start, text, b.length));
}

static tutti_status read_node(store *s, tutti_bytes message)
{
    tutti_onnx *m = &s->model;
    tutti_wire wire = {message, false};
    tutti_field f;
    tutti_bytes texts[4] = {{0}}; /* name, operator, domain, scopes */
    if (m->node_count == TUTTI_ONNX_MAX_NODES)
        return tutti_fail(TUTTI_UNSUPPORTED, "'%s' has more than %d nodes", s->path,
                          TUTTI_ONNX_MAX_NODES);
    TUTTI_TRY(tutti_grow(&m->nodes, &s->node_room, m->node_count, sizeof *m->nodes));
    tutti_onnx_node *node = &m->nodes[m->node_count++];
    node->message = message;
    while (tutti_wire_next(&wire, &f)) {
        if (f.type != TUTTI_WIRE_BYTES) continue;
        if (f.number == 3 || f.number == 4) texts[f.number - 3] = f.bytes;
        if (f.number == 7) texts[2] = f.bytes;
        const entry e = f.number == 9 ? read_entry(f.bytes) : (entry){{0}, {0}};
        if (bytes_are(e.key, "pkg.torch.onnx.name_scopes")) texts[3] = e.value;
    }
    for (int i = 0; i < 4; i++)
        if (wire.is_damaged || !is_text(texts[i])) return damaged(s, "a node cannot be read");
    node->name = keep_text(s, texts[0]);
    node->op = keep_text(s, texts[1]);
    node->domain = bytes_are(texts[2], "ai.onnx") ? "" : keep_text(s, texts[2]);
    node->scopes = keep_text(s, texts[3]);
    TUTTI_TRY(read_links(s, message, 1, &node->input_count));
    return read_links(s, message, 2, &node->output_count);
}

/* The links do not move any more. */
static void place_links(store *s)
{
    const int *at = s->links;
    for (int i = 0; i < s->model.node_count; i++) {
        tutti_onnx_node *node = &s->model.nodes[i];
        node->inputs = at;
        node->outputs = at + node->input_count;
        at += node->input_count + node->output_count;
    }
}

/* ---- inputs, outputs, constants ---- */

static tutti_status add_size(const store *s, tutti_bytes message, tutti_onnx_port *port)
{
    tutti_wire wire = {message, false};
    tutti_field f;
    int64_t size = TUTTI_ONNX_UNKNOWN;
    while (tutti_wire_next(&wire, &f))
        if (f.number == 1 && f.type == TUTTI_WIRE_VARINT) size = (int64_t)f.value;
    if (port->dims == TUTTI_ONNX_MAX_DIMS) return damaged(s, "an input of too many dimensions");
    port->shape[port->dims++] = size > 0 && !wire.is_damaged ? size : TUTTI_ONNX_UNKNOWN;
    return TUTTI_OK;
}

/* The field of that number in the message, bytes; empty: there is none. */
static tutti_bytes inside(tutti_bytes message, int number)
{
    tutti_wire wire = {message, false};
    tutti_field f;
    tutti_bytes found = {0};
    while (tutti_wire_next(&wire, &f))
        if (f.number == number && f.type == TUTTI_WIRE_BYTES) found = f.bytes;
    return found;
}

static tutti_status read_port(store *s, tutti_bytes message, tutti_onnx_port **ports, int *room,
                              int *count)
{
    TUTTI_TRY(tutti_grow(ports, room, *count, sizeof **ports));
    tutti_onnx_port *port = &(*ports)[(*count)++];
    TUTTI_TRY(number_of(s, inside(message, 1), &port->name));
    const tutti_bytes shape = inside(inside(inside(message, 2), 1), 2);
    tutti_wire wire = {shape, false};
    tutti_field f;
    while (tutti_wire_next(&wire, &f))
        if (f.number == 1 && f.type == TUTTI_WIRE_BYTES) TUTTI_TRY(add_size(s, f.bytes, port));
    return wire.is_damaged ? damaged(s, "an input or output cannot be read") : TUTTI_OK;
}

static tutti_status read_constant(store *s, tutti_bytes message)
{
    tutti_onnx *m = &s->model;
    TUTTI_TRY(
        tutti_grow(&m->constants, &s->constant_room, m->constant_count, sizeof *m->constants));
    tutti_onnx_tensor *constant = &m->constants[m->constant_count++];
    TUTTI_TRY(tutti_onnx_read_tensor(m, message, constant));
    return number_of(s, inside(message, 8), &constant->name);
}

static tutti_status read_graph_field(store *s, const tutti_field *f)
{
    tutti_onnx *m = &s->model;
    if (f->type != TUTTI_WIRE_BYTES) return TUTTI_OK;
    switch (f->number) {
    case 1: return read_node(s, f->bytes);
    case 5: return read_constant(s, f->bytes);
    case 11: return read_port(s, f->bytes, &m->inputs, &s->input_room, &m->input_count);
    case 12: return read_port(s, f->bytes, &m->outputs, &s->output_room, &m->output_count);
    case 15:
        return tutti_fail(TUTTI_UNSUPPORTED, "'%s' has sparse constants: Tutti reads dense ones",
                          s->path);
    default: return TUTTI_OK;
    }
}

static tutti_status read_graph(store *s, tutti_bytes message)
{
    tutti_wire wire = {message, false};
    tutti_field f;
    s->has_graph = true;
    while (tutti_wire_next(&wire, &f)) TUTTI_TRY(read_graph_field(s, &f));
    return wire.is_damaged ? damaged(s, "its graph ends in the middle of something") : TUTTI_OK;
}

/* ---- the model ---- */

static void read_opset(store *s, tutti_bytes message)
{
    const tutti_bytes domain = inside(message, 1);
    tutti_wire wire = {message, false};
    tutti_field f;
    if (!bytes_are(domain, "") && !bytes_are(domain, "ai.onnx")) return;
    while (tutti_wire_next(&wire, &f))
        if (f.number == 2 && f.type == TUTTI_WIRE_VARINT) s->model.opset = (int64_t)f.value;
}

static tutti_status read_fact(store *s, tutti_bytes message)
{
    const entry e = read_entry(message);
    if (!is_text(e.key)) return damaged(s, "a name has bytes that are no letters");
    if (e.value.length && memchr(e.value.start, 0, e.value.length)) return TUTTI_OK;
    TUTTI_TRY(tutti_grow(&s->facts, &s->fact_room, s->fact_count, sizeof *s->facts));
    const char *key = keep_text(s, e.key);
    s->facts[s->fact_count++] = (fact){key, keep_text(s, e.value)};
    return TUTTI_OK;
}

static tutti_status read_model_field(store *s, const tutti_field *f)
{
    if (f->type != TUTTI_WIRE_BYTES) return TUTTI_OK;
    switch (f->number) {
    case 2:
        if (is_text(f->bytes)) s->model.producer = keep_text(s, f->bytes);
        return TUTTI_OK;
    case 7: return s->has_graph ? damaged(s, "it has two graphs") : read_graph(s, f->bytes);
    case 8: read_opset(s, f->bytes); return TUTTI_OK;
    case 14: return read_fact(s, f->bytes);
    default: return TUTTI_OK;
    }
}

static tutti_status read_model(store *s)
{
    tutti_wire wire = {{(const unsigned char *)s->bytes, s->length}, false};
    tutti_field f;
    s->model.producer = "";
    s->model.name_count = 1; /* number 0 is no name */
    TUTTI_TRY(tutti_grow(&s->names, &s->name_room, 0, sizeof *s->names));
    s->names[0] = "";
    while (tutti_wire_next(&wire, &f)) TUTTI_TRY(read_model_field(s, &f));
    if (wire.is_damaged) return damaged(s, "it ends in the middle of something");
    if (!s->has_graph) return damaged(s, "it has no graph");
    place_links(s);
    return TUTTI_OK;
}

tutti_status tutti_onnx_open(tutti_onnx **out, const char *path)
{
    store *s = NULL;
    TUTTI_TRY(tutti_alloc(&s, 1, sizeof *s));
    s->model.store = s;
    tutti_onnx *model = &s->model;
    tutti_status status = tutti_strdup(&s->path, path);
    model->path = s->path;
    if (status == TUTTI_OK) status = tutti_file_load(&s->bytes, &s->length, path, MOST_BYTES);
    if (status == TUTTI_OK) status = tutti_alloc(&s->texts, s->length + 1, 1);
    if (status == TUTTI_OK) status = read_model(s);
    if (status == TUTTI_OK) *out = model;
    else tutti_onnx_close(&model);
    return status;
}

void tutti_onnx_close(tutti_onnx **model)
{
    store *s = *model ? (*model)->store : NULL;
    if (!s) return;
    tutti_free(s->model.nodes);
    tutti_free(s->model.constants);
    tutti_free(s->model.inputs);
    tutti_free(s->model.outputs);
    tutti_free(s->path);
    tutti_free(s->bytes);
    tutti_free(s->texts);
    tutti_free(s->names);
    tutti_free(s->slots);
    tutti_free(s->links);
    tutti_free(s->facts);
    tutti_free(s);
    *model = NULL;
}

const char *tutti_onnx_name(const tutti_onnx *model, int name)
{
    return model->store->names[name];
}

const char *tutti_onnx_metadata(const tutti_onnx *model, const char *key)
{
    for (int i = 0; i < model->store->fact_count; i++)
        if (!strcmp(model->store->facts[i].key, key)) return model->store->facts[i].value;
    return NULL;
}
