/* Nets from text. The grammar, one statement per line; '#' starts a comment:
 *
 *     tutti net 1             the version of this grammar        first of all, or left out
 *     input C H W             or: input FEATURES                 before any layer
 *     default KEY VALUE       a hyperparameter 'tutti train' uses unless told otherwise
 *     NAME KIND [ARGUMENT ...] [key=value ...] [flag ...]        a layer
 *
 * A layer's input is the layer before it, or from=NAME; add and concat name theirs as arguments.
 * What a kind takes is in its record (kinds/kind.h): its table of options is the parser, the
 * checker and the advice. */
#include "nn/parse.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"

enum {
    VERSION = 1,
    MAX_NAME = 63,
    MAX_DIM = 1 << 20,    /* features, or one side of an input */
    MAX_SAMPLE = 1 << 28, /* values of an input */
    MAX_VALUES = 1 << 30, /* of one sample in one layer */
    MAX_KEYS = 64,
    MAX_ACTIVATIONS = 32
};

typedef struct parser {
    tutti_text *text;
    const char *where;
    tutti_net *net;
    const tutti_kind *const *kinds;
} parser;

/* ---- names ---- */

/* How many letters must be added, dropped or changed to turn a into b; no name is longer than
 * MAX_NAME. */
static int distance(tutti_word a, const char *b)
{
    int row[MAX_NAME + 1];
    const int width = (int)strlen(b);
    for (int j = 0; j <= width; j++) row[j] = j;
    for (int i = 0; i < a.length; i++) {
        int diagonal = row[0];
        row[0] = i + 1;
        for (int j = 0; j < width; j++) {
            int best = diagonal + (a.start[i] != b[j]);
            if (row[j + 1] + 1 < best) best = row[j + 1] + 1;
            if (row[j] + 1 < best) best = row[j] + 1;
            diagonal = row[j + 1];
            row[j + 1] = best;
        }
    }
    return row[width];
}

static int find_layer(const parser *p, tutti_word name)
{
    for (int i = 0; i < p->net->layer_count; i++)
        if (tutti_word_is(name, p->net->layers[i].name)) return i;
    return -1;
}

static tutti_status no_such_layer(const parser *p, tutti_word name)
{
    const char *best = "input";
    for (int i = 0; i < p->net->layer_count - 1; i++) {
        const char *other = p->net->layers[i].name;
        if (distance(name, other) < distance(name, best)) best = other;
    }
    return tutti_text_fail(p->text, name, "no layer '%.*s' above; did you mean '%s'?", name.length,
                           name.start, best);
}

/* The layer of that name above the one that is being read, or the input. */
static tutti_status find_input(const parser *p, tutti_word name, int *out)
{
    *out = tutti_word_is(name, "input") ? TUTTI_NET_INPUT : find_layer(p, name);
    const bool found = tutti_word_is(name, "input") || *out >= 0;
    return found && *out < p->net->layer_count - 1 ? TUTTI_OK : no_such_layer(p, name);
}

static const tutti_kind *find_kind(const parser *p, tutti_word word)
{
    for (const tutti_kind *const *kind = p->kinds; *kind; kind++)
        if (tutti_word_is(word, (*kind)->word)) return *kind;
    return NULL;
}

static bool is_activation(const parser *p, tutti_word word)
{
    const tutti_kind *kind = find_kind(p, word);
    return kind && kind->is_activation;
}

static tutti_status check_name(const parser *p, tutti_word name)
{
    bool good = isalpha((unsigned char)name.start[0]) && name.length <= MAX_NAME;
    for (int i = 0; i < name.length; i++)
        good &= isalnum((unsigned char)name.start[i]) || strchr("_-.", name.start[i]);
    if (!good)
        return tutti_text_fail(
            p->text, name,
            "'%.*s' is not a name: a letter, then letters, digits, '_', '-', '.', "
            "at most %d",
            name.length < 40 ? name.length : 40, name.start, MAX_NAME);
    if (is_activation(p, name))
        return tutti_text_fail(p->text, name,
                               "'%.*s' is a word of the language: give the layer another name",
                               name.length, name.start);
    const int same = find_layer(p, name);
    if (same >= 0)
        return tutti_text_fail(p->text, name, "'%.*s' is taken by the layer in line %d",
                               name.length, name.start, p->net->layers[same].line);
    return TUTTI_OK;
}

static tutti_status parse_kind(const parser *p, const tutti_kind **out)
{
    tutti_word word;
    TUTTI_TRY(tutti_text_need(p->text, &word, "a kind of layer, as in 'fc1 fc 10'"));
    const char *best = p->kinds[0]->word;
    for (const tutti_kind *const *kind = p->kinds; *kind; kind++)
        if (distance(word, (*kind)->word) < distance(word, best)) best = (*kind)->word;
    *out = find_kind(p, word);
    if (*out) return TUTTI_OK;
    return tutti_text_fail(p->text, word, "there is no kind of layer '%.*s'; did you mean '%s'?",
                           word.length, word.start, best);
}

/* ---- a layer ---- */

static tutti_status add_input(tutti_layer *layer, int *room, int from)
{
    TUTTI_TRY(tutti_grow(&layer->from, room, layer->input_count, sizeof *layer->from));
    layer->from[layer->input_count++] = from;
    return TUTTI_OK;
}

/* Names, up to the first word that is an option. */
static tutti_status parse_names(const parser *p, tutti_layer *layer)
{
    for (int room = 0;;) {
        tutti_word key, value;
        int from;
        const tutti_word name = tutti_text_peek(p->text);
        if (!name.length || tutti_word_split(name, &key, &value) || is_activation(p, name)) break;
        TUTTI_TRY(find_input(p, name, &from));
        TUTTI_TRY(add_input(layer, &room, from));
        (void)tutti_text_next(p->text);
    }
    if (layer->input_count < 2)
        return tutti_text_fail(p->text, tutti_text_peek(p->text),
                               "%s wants the names of two or more layers", layer->kind->word);
    return TUTTI_OK;
}

/* What comes between the kind and the options. */
static tutti_status parse_argument(const parser *p, tutti_layer *layer)
{
    const tutti_kind *kind = layer->kind;
    tutti_word word;
    if (kind->names_inputs) return parse_names(p, layer);
    if (!kind->argument.name) return TUTTI_OK;
    TUTTI_TRY(tutti_text_need(p->text, &word, kind->wants));
    return tutti_text_value(p->text, &kind->argument, word, layer->options);
}

/* What every line may say; the kind's own options come after it in memory. */
typedef struct line {
    bool activated[MAX_ACTIVATIONS];
    tutti_word from;
} line;

/* The keys of a line: the kind's own, activations, from. */
static void list_keys(const parser *p, const tutti_kind *kind, tutti_key keys[MAX_KEYS])
{
    int n = 0, at = 0;
    for (const tutti_key *key = kind->keys; key && key->name; key++) {
        keys[n] = *key;
        keys[n++].offset += sizeof(line);
    }
    for (const tutti_kind *const *k = p->kinds; *k && kind->takes_activation; k++) {
        if (!(*k)->is_activation) continue;
        TUTTI_ASSERT(at < MAX_ACTIVATIONS && n < MAX_KEYS - 2);
        keys[n++] = (tutti_key){.name = (*k)->word,
                                .type = TUTTI_KEY_BOOL,
                                .offset = offsetof(line, activated) + (size_t)at++};
    }
    if (!kind->names_inputs)
        keys[n++] = (tutti_key){"from", TUTTI_KEY_WORD, offsetof(line, from), 0, 0, false, NULL};
    keys[n] = (tutti_key){.name = NULL};
}

static tutti_status set_activation(const parser *p, const line *said, tutti_layer *layer)
{
    int at = 0;
    for (const tutti_kind *const *k = p->kinds; *k; k++) {
        if (!(*k)->is_activation || !said->activated[at++]) continue;
        if (layer->activation)
            return tutti_text_fail(p->text, tutti_text_peek(p->text), "a layer has one activation");
        layer->activation = *k;
    }
    return TUTTI_OK;
}

static tutti_status parse_options(const parser *p, tutti_layer *layer)
{
    const size_t size = layer->kind->options_size;
    tutti_key keys[MAX_KEYS];
    char *fields = NULL;
    int from, room = 0;
    list_keys(p, layer->kind, keys);
    TUTTI_TRY(tutti_alloc(&fields, sizeof(line) + size, 1));
    line *said = (line *)fields;
    if (size) memcpy(fields + sizeof(line), layer->options, size);
    tutti_status s = tutti_text_keys(p->text, keys, fields);
    if (s == TUTTI_OK && size) memcpy(layer->options, fields + sizeof(line), size);
    if (s == TUTTI_OK) s = set_activation(p, said, layer);
    if (s == TUTTI_OK && said->from.length) {
        s = find_input(p, said->from, &from);
        if (s == TUTTI_OK) s = add_input(layer, &room, from);
    }
    tutti_free(fields);
    if (s == TUTTI_OK && !layer->input_count)
        s = add_input(layer, &room, p->net->layer_count - 2); /* above, or TUTTI_NET_INPUT */
    return s;
}

static bool trains_below(const tutti_net *net, const tutti_layer *layer)
{
    for (int i = 0; i < layer->input_count; i++) {
        if (layer->from[i] == TUTTI_NET_INPUT) continue;
        const tutti_layer *below = &net->layers[layer->from[i]];
        if (tutti_layer_trains(net, below) || below->trains_below) return true;
    }
    return false;
}

static tutti_status complete(tutti_net *net, tutti_layer *layer)
{
    layer->in = tutti_layer_input_shape(net, layer, 0);
    layer->trains_below = trains_below(net, layer);
    TUTTI_TRY(layer->kind->complete(net, layer));
    if ((double)layer->out.c * layer->out.h * layer->out.w > MAX_VALUES)
        return tutti_fail(TUTTI_SHAPE, "%s: an output of %dx%dx%d is too large", layer->name,
                          layer->out.c, layer->out.h, layer->out.w);
    return TUTTI_OK;
}

static tutti_status copy_defaults(tutti_layer *layer)
{
    const tutti_kind *kind = layer->kind;
    if (!kind->options_size) return TUTTI_OK;
    TUTTI_TRY(tutti_alloc(&layer->options, kind->options_size, 1));
    memcpy(layer->options, kind->defaults, kind->options_size);
    return TUTTI_OK;
}

static tutti_status check_place(const parser *p, tutti_word name)
{
    const tutti_net *net = p->net;
    const tutti_layer *last = net->layer_count ? &net->layers[net->layer_count - 1] : NULL;
    if (!net->input.c)
        return tutti_text_fail(p->text, name, "the input must come first, as in 'input 3 224 224'");
    if (last && last->kind->is_loss)
        return tutti_text_fail(p->text, name, "%s must be the last layer", last->kind->word);
    if (net->layer_count == TUTTI_MAX_LAYERS)
        return tutti_text_fail(p->text, name, "more than %d layers", TUTTI_MAX_LAYERS);
    return TUTTI_OK;
}

static tutti_status parse_layer(parser *p, tutti_word name)
{
    tutti_net *net = p->net;
    const tutti_kind *kind;
    TUTTI_TRY(check_place(p, name));
    TUTTI_TRY(check_name(p, name));
    TUTTI_TRY(parse_kind(p, &kind));
    TUTTI_TRY(tutti_grow(&net->layers, &net->layer_room, net->layer_count, sizeof *net->layers));
    tutti_layer *layer = &net->layers[net->layer_count++];
    layer->kind = kind;
    layer->line = name.line;
    layer->column = name.column;
    TUTTI_TRY(tutti_word_copy(&layer->name, name));
    TUTTI_TRY(copy_defaults(layer));
    TUTTI_TRY(parse_argument(p, layer));
    TUTTI_TRY(parse_options(p, layer));
    return complete(net, layer) ? tutti_text_fail(p->text, name, "%s", tutti_message()) : TUTTI_OK;
}

/* ---- the other statements ---- */

static tutti_status parse_input(parser *p, tutti_word at)
{
    tutti_shape *input = &p->net->input;
    int dims[3], given = 0;
    if (input->c) return tutti_text_fail(p->text, at, "a second input; a net has one");
    for (; given < 3 && tutti_text_peek(p->text).length; given++)
        TUTTI_TRY(tutti_text_int(p->text, tutti_text_next(p->text), 1, MAX_DIM, &dims[given]));
    TUTTI_TRY(tutti_text_end_of_line(p->text));
    if (given != 1 && given != 3)
        return tutti_text_fail(p->text, at, "input wants CHANNELS HEIGHT WIDTH, or FEATURES alone");
    if (given == 1) dims[1] = dims[2] = 1;
    if ((double)dims[0] * dims[1] * dims[2] > MAX_SAMPLE)
        return tutti_text_fail(p->text, at, "an input of %dx%dx%d is too large", dims[0], dims[1],
                               dims[2]);
    *input = (tutti_shape){dims[0], dims[1], dims[2]};
    return TUTTI_OK;
}

static tutti_status parse_default(parser *p)
{
    tutti_word key, value;
    char where[512];
    tutti_net *net = p->net;
    TUTTI_TRY(tutti_text_need(p->text, &key, "a name and a value, as in 'default lr 0.01'"));
    for (int i = 0; i < net->setting_count; i++)
        if (tutti_word_is(key, net->settings[i].key))
            return tutti_text_fail(p->text, key, "there is a 'default %s' already",
                                   net->settings[i].key);
    TUTTI_TRY(
        tutti_grow(&net->settings, &net->setting_room, net->setting_count, sizeof *net->settings));
    tutti_net_setting *s = &net->settings[net->setting_count++];
    TUTTI_TRY(tutti_text_need(p->text, &value, "a value"));
    TUTTI_TRY(tutti_text_end_of_line(p->text));
    snprintf(where, sizeof where, "%s:%d:%d", p->where, value.line, value.column);
    TUTTI_TRY(tutti_word_copy(&s->key, key));
    TUTTI_TRY(tutti_word_copy(&s->value, value));
    return tutti_strdup(&s->where, where);
}

static tutti_status parse_head(parser *p, tutti_word at)
{
    if (p->net->input.c || p->net->setting_count)
        return tutti_text_fail(p->text, at, "'tutti net %d' must be the first line", VERSION);
    return tutti_text_head(p->text, "net", VERSION);
}

/* ---- the whole ---- */

static tutti_status parse_statement(parser *p)
{
    tutti_word first;
    TUTTI_TRY(tutti_text_need(p->text, &first, "a layer"));
    if (tutti_word_is(first, "tutti")) return parse_head(p, first);
    if (tutti_word_is(first, "input")) return parse_input(p, first);
    if (tutti_word_is(first, "default")) return parse_default(p);
    return parse_layer(p, first);
}

static bool is_used(const tutti_net *net, int layer)
{
    for (int i = layer + 1; i < net->layer_count; i++)
        for (int k = 0; k < net->layers[i].input_count; k++)
            if (net->layers[i].from[k] == layer) return true;
    return layer == net->layer_count - 1;
}

static tutti_status check_whole(const parser *p)
{
    const tutti_net *net = p->net;
    if (!net->layer_count || !net->layers[net->layer_count - 1].kind->is_loss)
        return tutti_fail(TUTTI_PARSE, "%s: the net must end with its loss: 'loss softmax'",
                          p->where);
    if (!net->layers[net->layer_count - 1].trains_below)
        return tutti_fail(TUTTI_PARSE, "%s: the net has nothing to train", p->where);
    for (int i = 0; i < net->layer_count; i++) {
        const tutti_layer *layer = &net->layers[i];
        if (!is_used(net, i))
            return tutti_fail(TUTTI_PARSE,
                              "%s:%d:%d: nothing uses the output of '%s'; name it in from=%s, in "
                              "an add or a concat",
                              p->where, layer->line, layer->column, layer->name, layer->name);
    }
    return TUTTI_OK;
}

tutti_status tutti_net_read(tutti_net *net, tutti_text *text, const char *where,
                            const tutti_kind *const *kinds)
{
    parser p = {.text = text, .where = where, .net = net, .kinds = kinds};
    while (tutti_text_next_line(text)) TUTTI_TRY(parse_statement(&p));
    return check_whole(&p);
}
