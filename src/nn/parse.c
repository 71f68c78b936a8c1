/* Nets from text. The grammar, one statement a line, '#' starts a comment:
 *
 *     input C H W             or: input FEATURES                 first of all
 *     default KEY VALUE       a hyperparameter 'tutti train' uses unless told otherwise
 *     NAME KIND [ARGUMENT ...] [key=value ...] [flag ...]        a layer
 *
 * A layer's input is the layer before it, or from=NAME; add and concat name theirs as arguments.
 * What a kind takes is in the tables below: they are the parser, the checker and the advice. */
#include "nn/parse.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "nn/layer.h"

enum {
    MAX_NAME = 63,
    MAX_DIM = 1 << 20,    /* features, or one side of an input */
    MAX_SAMPLE = 1 << 28, /* values of an input */
};

typedef struct parser {
    tutti_text *text;
    const char *where;
    tutti_net *net;
    int layer_room, param_room, setting_room; /* of the net's arrays */
} parser;

/* ---- what a kind takes ---- */

typedef struct fields {
    tutti_layer_spec spec;
    tutti_word from, init;
    bool relu, sigmoid, tanh;
} fields;

#define AT(field)   offsetof(fields, field)
#define SPEC(field) offsetof(fields, spec.field)

// clang-format off
#define FROM {"from", TUTTI_KEY_WORD, AT(from), 0, 0, false}
#define ACTIVATIONS                                                \
    {"relu",     TUTTI_KEY_BOOL, AT(relu),       0,    0,    false}, \
    {"sigmoid",  TUTTI_KEY_BOOL, AT(sigmoid),    0,    0,    false}, \
    {"tanh",     TUTTI_KEY_BOOL, AT(tanh),       0,    0,    false}
#define WEIGHTS                                                    \
    {"nobias",   TUTTI_KEY_BOOL, SPEC(no_bias),  0,    0,    false}, \
    {"init",     TUTTI_KEY_WORD, AT(init),       0,    0,    false}, \
    {"std",      TUTTI_KEY_REAL, SPEC(std),      1e-9, 1e3,  false}, \
    {"bias",     TUTTI_KEY_REAL, SPEC(bias),     -1e3, 1e3,  false}
#define WINDOW                                                     \
    {"kernel",   TUTTI_KEY_PAIR, SPEC(kernel),   1,    4096, false}, \
    {"stride",   TUTTI_KEY_PAIR, SPEC(stride),   1,    4096, false}, \
    {"pad",      TUTTI_KEY_PAIR, SPEC(pad),      0,    4096, false}

static const tutti_key conv_keys[] = {
    WINDOW,
    {"dilation", TUTTI_KEY_PAIR, SPEC(dilation), 1,    4096, false},
    {"groups",   TUTTI_KEY_INT,  SPEC(groups),   1, MAX_DIM, false},
    ACTIVATIONS, WEIGHTS, FROM, {.name = NULL}};
static const tutti_key fc_keys[] = {ACTIVATIONS, WEIGHTS, FROM, {.name = NULL}};
static const tutti_key pool_keys[] = {
    WINDOW,
    {"global",   TUTTI_KEY_BOOL, SPEC(global),   0,    0,    false},
    FROM, {.name = NULL}};
static const tutti_key lrn_keys[] = {
    {"alpha",    TUTTI_KEY_REAL, SPEC(alpha),    1e-9, 1e3,  false},
    {"beta",     TUTTI_KEY_REAL, SPEC(beta),     1e-3, 10,   false},
    {"k",        TUTTI_KEY_REAL, SPEC(k),        1e-9, 1e3,  false},
    FROM, {.name = NULL}};
static const tutti_key join_keys[] = {ACTIVATIONS, {.name = NULL}};
static const tutti_key plain_keys[] = {FROM, {.name = NULL}};

typedef enum argument { NOTHING, FEATURES, SIZE, RATE, NAMES } argument;

static const struct {
    argument takes;
    const tutti_key *keys;
} kinds[TUTTI_KIND_COUNT] = {
    [TUTTI_KIND_CONV]    = {FEATURES, conv_keys},
    [TUTTI_KIND_FC]      = {FEATURES, fc_keys},
    [TUTTI_KIND_MAXPOOL] = {NOTHING,  pool_keys},
    [TUTTI_KIND_AVGPOOL] = {NOTHING,  pool_keys},
    [TUTTI_KIND_RELU]    = {NOTHING,  plain_keys},
    [TUTTI_KIND_SIGMOID] = {NOTHING,  plain_keys},
    [TUTTI_KIND_TANH]    = {NOTHING,  plain_keys},
    [TUTTI_KIND_DROPOUT] = {RATE,     plain_keys},
    [TUTTI_KIND_LRN]     = {SIZE,     lrn_keys},
    [TUTTI_KIND_ADD]     = {NAMES,    join_keys},
    [TUTTI_KIND_CONCAT]  = {NAMES,    join_keys},
    [TUTTI_KIND_SOFTMAX] = {NOTHING,  plain_keys},
};
// clang-format on

/* ---- names ---- */

/* How many letters must be added, dropped or changed to make b of a; no name is longer than
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

static tutti_status check_name(const parser *p, tutti_word name)
{
    bool good = isalpha((unsigned char)name.start[0]) && name.length <= MAX_NAME;
    for (int i = 0; i < name.length; i++)
        good &= isalnum((unsigned char)name.start[i]) || strchr("_-.", name.start[i]);
    if (!good)
        return tutti_text_fail(p->text, name,
                               "'%.*s' is no name: a letter, then letters, digits, '_', '-', '.', "
                               "at most %d",
                               name.length < 40 ? name.length : 40, name.start, MAX_NAME);
    const int same = find_layer(p, name);
    if (same >= 0)
        return tutti_text_fail(p->text, name, "'%.*s' is taken by the layer in line %d",
                               name.length, name.start, p->net->layers[same].line);
    return TUTTI_OK;
}

static tutti_status parse_kind(const parser *p, tutti_kind *out)
{
    tutti_word word;
    const char *best = tutti_kind_name(0);
    TUTTI_TRY(tutti_text_need(p->text, &word, "a kind of layer, as in 'fc1 fc 10'"));
    for (int i = 0; i < TUTTI_KIND_COUNT; i++) {
        const char *name = tutti_kind_name((tutti_kind)i);
        *out = (tutti_kind)i;
        if (tutti_word_is(word, name)) return TUTTI_OK;
        if (distance(word, name) < distance(word, best)) best = name;
    }
    return tutti_text_fail(p->text, word, "there is no kind of layer '%.*s'; did you mean '%s'?",
                           word.length, word.start, best);
}

/* ---- a layer ---- */

static tutti_status parse_names(const parser *p, tutti_layer *layer)
{
    layer->input_count = 0;
    for (;;) {
        const tutti_word name = tutti_text_peek(p->text);
        const bool option = layer->input_count >= 2 && find_layer(p, name) < 0;
        if (!name.length || option) break;
        if (layer->input_count == TUTTI_MAX_INPUTS)
            return tutti_text_fail(p->text, name, "more than %d inputs", TUTTI_MAX_INPUTS);
        TUTTI_TRY(find_input(p, name, &layer->from[layer->input_count++]));
        (void)tutti_text_next(p->text);
    }
    if (layer->input_count < 2)
        return tutti_text_fail(p->text, tutti_text_peek(p->text),
                               "%s wants the names of two layers or more",
                               tutti_kind_name(layer->kind));
    return TUTTI_OK;
}

/* What stands between the kind and the options. */
static tutti_status parse_argument(const parser *p, tutti_layer *layer, tutti_layer_spec *spec)
{
    static const char *const wants[] = {[FEATURES] = "a number of features",
                                        [SIZE] = "a number of channels",
                                        [RATE] = "a rate from 0 to 1"};
    const argument takes = kinds[layer->kind].takes;
    const int most = takes == SIZE ? TUTTI_LRN_MAX_SIZE : MAX_DIM;
    tutti_word word;
    if (takes == NOTHING) return TUTTI_OK;
    if (takes == NAMES) return parse_names(p, layer);
    TUTTI_TRY(tutti_text_need(p->text, &word, wants[takes]));
    if (takes == RATE) return tutti_text_real(p->text, word, 0, 0.999, &spec->rate);
    return tutti_text_int(p->text, word, 1, most, &spec->features);
}

static tutti_status set_init(const parser *p, tutti_word word, tutti_init *out)
{
    static const char *const names[] = {"auto", "he", "xavier", "gaussian", NULL};
    const int place = tutti_word_among(word, names);
    if (place < 0)
        return tutti_text_fail(p->text, word, "'%.*s' is none of auto, he, xavier, gaussian",
                               word.length, word.start);
    *out = (tutti_init)place;
    return TUTTI_OK;
}

static tutti_status parse_options(const parser *p, tutti_layer *layer, fields *f)
{
    TUTTI_TRY(tutti_text_keys(p->text, kinds[layer->kind].keys, f));
    if (f->from.length) TUTTI_TRY(find_input(p, f->from, &layer->from[0]));
    if (f->init.length) TUTTI_TRY(set_init(p, f->init, &f->spec.init));
    if (f->relu + f->sigmoid + f->tanh > 1)
        return tutti_text_fail(p->text, tutti_text_peek(p->text), "a layer has one activation");
    f->spec.activation = f->relu      ? TUTTI_ACT_RELU
                         : f->sigmoid ? TUTTI_ACT_SIGMOID
                         : f->tanh    ? TUTTI_ACT_TANH
                                      : TUTTI_ACT_NONE;
    return TUTTI_OK;
}

static tutti_status parse_layer(parser *p, tutti_word name)
{
    tutti_net *net = p->net;
    fields f = {.spec = {0}};
    tutti_kind kind;
    if (!net->input.c)
        return tutti_text_fail(p->text, name, "the input must come first, as in 'input 3 224 224'");
    if (net->layer_count && net->layers[net->layer_count - 1].kind == TUTTI_KIND_SOFTMAX)
        return tutti_text_fail(p->text, name, "softmax must be the last layer");
    TUTTI_TRY(check_name(p, name));
    TUTTI_TRY(parse_kind(p, &kind));

    tutti_layer *layer = &net->layers[net->layer_count++];
    layer->kind = kind;
    layer->line = name.line;
    layer->column = name.column;
    layer->input_count = 1;
    layer->from[0] = net->layer_count - 2; /* the one before, or TUTTI_NET_INPUT */
    TUTTI_TRY(tutti_word_copy(&layer->name, name));
    TUTTI_TRY(parse_argument(p, layer, &f.spec));
    TUTTI_TRY(parse_options(p, layer, &f));
    return tutti_layer_complete(net, &f.spec)
               ? tutti_text_fail(p->text, name, "%s", tutti_message())
               : TUTTI_OK;
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
    tutti_net_setting *s = &p->net->settings[p->net->setting_count++];
    TUTTI_TRY(tutti_text_need(p->text, &key, "a name and a value, as in 'default lr 0.01'"));
    TUTTI_TRY(tutti_text_need(p->text, &value, "a value"));
    TUTTI_TRY(tutti_text_end_of_line(p->text));
    snprintf(where, sizeof where, "%s:%d:%d", p->where, value.line, value.column);
    TUTTI_TRY(tutti_word_copy(&s->key, key));
    TUTTI_TRY(tutti_word_copy(&s->value, value));
    return tutti_strdup(&s->where, where);
}

/* ---- the whole ---- */

/* Room for element number 'last' in the array at *(void **)array, which has room for *room. */
static tutti_status grow(void *array, int *room, int last, size_t size)
{
    char *old, *grown;
    if (last < *room) return TUTTI_OK;
    const int more = 2 * last + 32;
    TUTTI_TRY(tutti_alloc(&grown, (size_t)more, size));
    memcpy(&old, array, sizeof old);
    if (old) memcpy(grown, old, (size_t)*room * size);
    *room = more;
    memcpy(array, &grown, sizeof grown);
    tutti_free(old);
    return TUTTI_OK;
}

/* Room for one more layer with its two parameters, and one more setting. */
static tutti_status make_room(parser *p, tutti_word at)
{
    tutti_net *net = p->net;
    if (net->layer_count == TUTTI_MAX_LAYERS)
        return tutti_text_fail(p->text, at, "more than %d layers", TUTTI_MAX_LAYERS);
    TUTTI_TRY(grow(&net->layers, &p->layer_room, net->layer_count, sizeof *net->layers));
    TUTTI_TRY(grow(&net->params, &p->param_room, net->param_count + 1, sizeof *net->params));
    return grow(&net->settings, &p->setting_room, net->setting_count, sizeof *net->settings);
}

static tutti_status parse_statement(parser *p)
{
    tutti_word first;
    TUTTI_TRY(tutti_text_need(p->text, &first, "a layer"));
    TUTTI_TRY(make_room(p, first));
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
    if (!net->layer_count || net->layers[net->layer_count - 1].kind != TUTTI_KIND_SOFTMAX)
        return tutti_fail(TUTTI_PARSE, "%s: the net must end with its loss: 'loss softmax'",
                          p->where);
    if (!net->param_count)
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

tutti_status tutti_net_read(tutti_net *net, tutti_text *text, const char *where)
{
    parser p = {.text = text, .where = where, .net = net};
    while (tutti_text_next_line(text)) TUTTI_TRY(parse_statement(&p));
    return check_whole(&p);
}
