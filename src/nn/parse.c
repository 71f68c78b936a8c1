/* Nets from text. The grammar, one statement per line; '#' starts a comment:
 *
 *     tutti net 1             the version of this grammar        first of all, or left out
 *     input C H W             or: input FEATURES                 before any layer
 *     default KEY VALUE       a hyperparameter 'tutti train' uses unless told otherwise
 *     NAME KIND [ARGUMENT ...] [key=value ...] [flag ...]        a layer
 *     block NAME [PARAMETER ...] [PARAMETER=VALUE ...]           lines up to 'end', with $PARAMETER
 *     NAME BLOCK [VALUE ...] [PARAMETER=VALUE ...]               those lines, here
 *
 * A layer's input is the layer before it, or from=NAME; add and concat name theirs as arguments.
 * What a kind takes is in its record (kinds/kind.h): its table of options is the parser, the
 * checker and the advice. A block's lines (nn/blocks.h) are read where it is used, each as a text
 * of its own with the values put in, so whatever is wrong with them is found by the same code;
 * names in them are looked up from the block outwards (nn/names.c). */
#include "nn/parse.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "nn/parser.h"

enum {
    VERSION = 1,
    MAX_DIM = 1 << 20,    /* features, or one side of an input */
    MAX_SAMPLE = 1 << 28, /* values of an input */
    MAX_VALUES = 1 << 30, /* of one sample in one layer */
    MAX_KEYS = 64,
    MAX_ACTIVATIONS = 32,
    MAX_DEPTH = 16, /* blocks in blocks */
    MAX_RANGE = 9999,
    MAX_WORD = 256 /* more than a name may have */
};

typedef tutti_parser parser;

static tutti_status parse_kind(const parser *p, const tutti_kind **out)
{
    tutti_word word;
    TUTTI_TRY(tutti_text_need(p->text, &word, "a kind of layer, as in 'fc1 fc 10'"));
    *out = tutti_parser_kind(p, word);
    return *out ? TUTTI_OK : tutti_parser_no_kind(p, word);
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
        if (!name.length || tutti_word_split(name, &key, &value) ||
            tutti_parser_is_activation(p, name))
            break;
        TUTTI_TRY(tutti_parser_find(p, name, &from));
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
    bool frozen;
    double lr; /* 0: not said */
} line;

// clang-format off
static const tutti_key tuning[] = {
    {"frozen", TUTTI_KEY_BOOL, offsetof(line, frozen), 0, 0, false, NULL},
    {"lr",     TUTTI_KEY_REAL, offsetof(line, lr), TUTTI_LEAST_LR_SCALE, TUTTI_MOST_LR_SCALE, false, NULL},
};
// clang-format on
enum { TUNING = sizeof tuning / sizeof *tuning };

/* The keys of a line: the kind's own, activations, from, how it is trained. */
static void list_keys(const parser *p, const tutti_kind *kind, tutti_key keys[MAX_KEYS])
{
    int n = 0, at = 0;
    for (const tutti_key *key = kind->keys; key && key->name; key++) {
        keys[n] = *key;
        keys[n++].offset += sizeof(line);
    }
    for (const tutti_kind *const *k = p->kinds; *k && kind->takes_activation; k++) {
        if (!(*k)->is_activation) continue;
        TUTTI_ASSERT(at < MAX_ACTIVATIONS && n < MAX_KEYS - 2 - TUNING);
        keys[n++] = (tutti_key){.name = (*k)->word,
                                .type = TUTTI_KEY_BOOL,
                                .offset = offsetof(line, activated) + (size_t)at++};
    }
    if (!kind->names_inputs)
        keys[n++] = (tutti_key){"from", TUTTI_KEY_WORD, offsetof(line, from), 0, 0, false, NULL};
    for (int i = 0; i < TUNING; i++) keys[n++] = tuning[i];
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
    layer->frozen = said->frozen;
    layer->lr_scale = said->lr;
    if (s == TUTTI_OK && said->from.length) {
        s = tutti_parser_find(p, said->from, &from);
        if (s == TUTTI_OK) s = add_input(layer, &room, from);
    }
    tutti_free(fields);
    if (s == TUTTI_OK && !layer->input_count) s = add_input(layer, &room, p->above);
    return s;
}

/* What the line says of training, once the layer has its parameters. */
static tutti_status tune(tutti_net *net, tutti_layer *layer)
{
    if ((layer->frozen || layer->lr_scale > 0) && !tutti_layer_trains(net, layer))
        return tutti_fail(TUTTI_PARSE, "%s has no parameters to train: leave '%s' out", layer->name,
                          layer->frozen ? "frozen" : "lr=");
    tutti_layer_scale_lr(net, layer, layer->lr_scale > 0 ? layer->lr_scale : 1);
    if (layer->frozen) tutti_layer_freeze(net, layer);
    return TUTTI_OK;
}

static tutti_status complete(tutti_net *net, tutti_layer *layer)
{
    layer->in = tutti_layer_input_shape(net, layer, 0);
    tutti_layer_look_below(net, layer);
    TUTTI_TRY(layer->kind->complete(net, layer));
    TUTTI_TRY(tune(net, layer));
    TUTTI_TRY(tutti_layer_check_precision(layer));
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

/* Keeps what the line says after the kind, without names of inputs. */
static tutti_status keep_said(const parser *p, tutti_layer *layer)
{
    const int names = layer->kind->names_inputs ? layer->input_count : 0;
    const size_t room = (size_t)tutti_text_line(p->text).length + 2;
    TUTTI_TRY(tutti_alloc(&layer->said, room, 1));
    tutti_text_restart_line(p->text);
    for (int i = 0; i < 2 + names; i++) (void)tutti_text_next(p->text);
    while (tutti_text_peek(p->text).length) {
        tutti_word key, value;
        const tutti_word word = tutti_text_next(p->text);
        if (tutti_word_split(word, &key, &value) && tutti_word_is(key, "from")) continue;
        const size_t used = strlen(layer->said);
        snprintf(layer->said + used, room - used, " %.*s", word.length, word.start);
    }
    return TUTTI_OK;
}

static tutti_status check_place(const parser *p, tutti_word name)
{
    const tutti_net *net = p->net;
    if (!net->input.c)
        return tutti_text_fail(p->text, name, "the input must come first, as in 'input 3 224 224'");
    if (net->layer_count == TUTTI_MAX_LAYERS)
        return tutti_text_fail(p->text, name, "more than %d layers", TUTTI_MAX_LAYERS);
    return TUTTI_OK;
}

static tutti_status parse_layer(parser *p, tutti_word name)
{
    tutti_net *net = p->net;
    const tutti_kind *kind;
    char called[MAX_WORD], full[TUTTI_LONGEST_NAME + 1];
    snprintf(called, sizeof called, "%.*s", name.length, name.start);
    TUTTI_TRY(tutti_parser_full_name(p, name, called, full));
    TUTTI_TRY(parse_kind(p, &kind));
    TUTTI_TRY(tutti_grow(&net->layers, &net->layer_room, net->layer_count, sizeof *net->layers));
    tutti_layer *layer = &net->layers[net->layer_count++];
    layer->kind = kind;
    layer->line = name.line;
    layer->column = name.column;
    layer->used_line = p->in ? p->in->line : 0;
    TUTTI_TRY(tutti_strdup(&layer->name, full));
    TUTTI_TRY(copy_defaults(layer));
    TUTTI_TRY(parse_argument(p, layer));
    TUTTI_TRY(parse_options(p, layer));
    TUTTI_TRY(keep_said(p, layer));
    if (complete(net, layer)) return tutti_text_fail(p->text, name, "%s", tutti_message());
    p->above = p->known++;
    return TUTTI_OK;
}

/* ---- a block's use ---- */

/* The name of the word, or of number 'number' of its range: "layer1.{1..3}" is "layer1.1", ... */
typedef struct range {
    tutti_word before, after;
    int first, last; /* both 0 and 'is_one' without a range */
    bool is_one;
} range;

static tutti_word part_of(tutti_word word, int start, int end)
{
    return (tutti_word){word.start + start, end - start, word.line, word.column + start};
}

static tutti_status read_range(const parser *p, tutti_word name, range *out)
{
    const char *open = memchr(name.start, '{', (size_t)name.length);
    *out =
        (range){.before = name, .after = part_of(name, name.length, name.length), .is_one = true};
    if (!open) return TUTTI_OK;
    const int start = (int)(open - name.start);
    int dots = start, end = start;
    while (dots + 1 < name.length && memcmp(name.start + dots, "..", 2)) dots++;
    while (end < name.length && name.start[end] != '}') end++;
    if (end == name.length || dots + 1 >= end)
        return tutti_text_fail(p->text, name, "a range of names is 'layer1.{1..3}'");
    TUTTI_TRY(tutti_text_int(p->text, part_of(name, start + 1, dots), 0, MAX_RANGE, &out->first));
    TUTTI_TRY(
        tutti_text_int(p->text, part_of(name, dots + 2, end), out->first, MAX_RANGE, &out->last));
    out->before = part_of(name, 0, start);
    out->after = part_of(name, end + 1, name.length);
    out->is_one = false;
    return TUTTI_OK;
}

static void name_of(const range *r, int number, char out[MAX_WORD])
{
    char digits[16] = "";
    if (!r->is_one) snprintf(digits, sizeof digits, "%d", number);
    snprintf(out, MAX_WORD, "%.*s%s%.*s", r->before.length, r->before.start, digits,
             r->after.length, r->after.start);
}

static tutti_status parse_statement(parser *p);

static tutti_status parse_block_line(parser *p, const tutti_block_use *use, tutti_text *text,
                                     int index)
{
    p->text = NULL;
    tutti_status s = tutti_block_use_line(&p->text, use, text, index);
    if (s == TUTTI_OK)
        s = tutti_text_next_line(p->text)
                ? parse_statement(p)
                : tutti_text_fail(text, use->block->lines[index], "its values leave nothing of it");
    tutti_text_destroy(&p->text);
    p->text = text;
    return s;
}

/* Reads the lines of a block, which 'name' calls in the whole net. */
static tutti_status parse_block(parser *p, const tutti_block_use *use, const char *name, int used)
{
    const tutti_frame frame = {p->in, use->block, name, p->above, used};
    tutti_status s = TUTTI_OK;
    p->in = &frame;
    for (int i = 0; s == TUTTI_OK && i < use->block->line_count; i++)
        s = parse_block_line(p, use, p->text, i);
    p->in = frame.outer;
    if (s != TUTTI_PARSE) return s;
    return tutti_fail(s, "%s\n  in block %.*s, used in line %d", tutti_message(),
                      use->block->name.length, use->block->name.start, used);
}

static tutti_status check_depth(const parser *p, const tutti_block *block, tutti_word at)
{
    int depth = 0;
    for (const tutti_frame *in = p->in; in; in = in->outer, depth++)
        if (in->block == block)
            return tutti_text_fail(p->text, at, "block %.*s would use itself for ever",
                                   block->name.length, block->name.start);
    return depth < MAX_DEPTH
               ? TUTTI_OK
               : tutti_text_fail(p->text, at, "more than %d blocks in one another", MAX_DEPTH);
}

/* "NAME BLOCK VALUE ... key=value ...": NAME may have a range, or be "." in a block, whose names
 * the layers then follow directly. */
static tutti_status parse_use(parser *p, tutti_word at, const tutti_block *block)
{
    tutti_block_use use;
    range names;
    char name[MAX_WORD], full[TUTTI_LONGEST_NAME + 1];
    TUTTI_TRY(check_depth(p, block, at));
    TUTTI_TRY(tutti_block_use_read(&use, block, p->text));
    TUTTI_TRY(read_range(p, at, &names));
    if (use.from.length) TUTTI_TRY(tutti_parser_find(p, use.from, &p->above));
    if (p->in && tutti_word_is(at, ".")) return parse_block(p, &use, p->in->name, at.line);
    for (int i = names.first; i <= names.last; i++) {
        name_of(&names, i, name);
        TUTTI_TRY(tutti_parser_full_name(p, at, name, full));
        TUTTI_TRY(parse_block(p, &use, full, at.line));
        TUTTI_TRY(tutti_parser_alias(p, full, at.line));
    }
    return TUTTI_OK;
}

/* A layer, or a block. */
static tutti_status parse_line(parser *p, tutti_word name)
{
    TUTTI_TRY(check_place(p, name));
    const tutti_block *block = tutti_blocks_find(&p->blocks, tutti_text_peek(p->text));
    if (!block) return parse_layer(p, name);
    (void)tutti_text_next(p->text);
    return parse_use(p, name, block);
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

/* So that it can be written again. */
static tutti_status check_unquoted(const parser *p, tutti_word word, const char *marks)
{
    for (int i = 0; i < word.length; i++)
        if (strchr(marks, word.start[i]))
            return tutti_text_fail(p->text, word, "a quote or a blank is in the wrong place");
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
    TUTTI_TRY(check_unquoted(p, key, "\" \t#"));
    TUTTI_TRY(check_unquoted(p, value, "\""));
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

static tutti_status parse_block_head(parser *p)
{
    const tutti_word name = tutti_text_peek(p->text);
    if (tutti_parser_kind(p, name))
        return tutti_text_fail(p->text, name,
                               "'%.*s' is a kind of layer; give the block another "
                               "name",
                               name.length, name.start);
    return tutti_blocks_read(&p->blocks, p->text);
}

static tutti_status parse_statement(parser *p)
{
    static const char *const others[] = {"tutti", "input", "default", "block", NULL};
    const tutti_word first = tutti_text_next(p->text);
    const int which = tutti_word_among(first, others);
    if (which >= 0 && p->in)
        return tutti_text_fail(p->text, first, "in a block are layers and blocks only");
    switch (which) {
    case 0: return parse_head(p, first);
    case 1: return parse_input(p, first);
    case 2: return parse_default(p);
    case 3: return parse_block_head(p);
    default: return parse_line(p, first);
    }
}

static bool is_used(const tutti_net *net, int layer)
{
    for (int i = layer + 1; i < net->layer_count; i++)
        for (int k = 0; k < net->layers[i].input_count; k++)
            if (net->layers[i].from[k] == layer) return true;
    return net->layers[layer].kind->is_loss;
}

static tutti_status check_whole(const parser *p)
{
    const tutti_net *net = p->net;
    if (!net->layer_count || !net->layers[net->layer_count - 1].kind->is_loss)
        return tutti_fail(TUTTI_PARSE, "%s: the net must end with its loss: 'loss softmax'",
                          p->where);
    if (!net->layers[net->layer_count - 1].trains_below)
        return tutti_fail(TUTTI_PARSE, "%s: the net has nothing to train", p->where);
    TUTTI_TRY(tutti_net_check_losses(p->net, p->where));
    tutti_net_find_ends(p->net);
    tutti_net_round(p->net, TUTTI_IN_FP32);
    for (int i = 0; i < net->layer_count; i++) {
        const tutti_layer *layer = &net->layers[i];
        if (is_used(net, i)) continue;
        char used[64] = "";
        if (layer->used_line)
            snprintf(used, sizeof used, "; its block is used in line %d", layer->used_line);
        return tutti_fail(TUTTI_PARSE,
                          "%s:%d:%d: nothing uses the output of '%s'; name it in from=%s, in "
                          "an add or a concat%s",
                          p->where, layer->line, layer->column, layer->name, layer->name, used);
    }
    return TUTTI_OK;
}

tutti_status tutti_net_read(tutti_net *net, tutti_text *text, const char *where,
                            const tutti_kind *const *kinds)
{
    parser p = {.text = text, .where = where, .net = net, .kinds = kinds, .above = TUTTI_NET_INPUT};
    tutti_status s = TUTTI_OK;
    while (s == TUTTI_OK && tutti_text_next_line(text)) s = parse_statement(&p);
    if (s == TUTTI_OK) s = check_whole(&p);
    for (int i = 0; i < p.alias_count; i++) tutti_free(p.aliases[i].name);
    tutti_free(p.aliases);
    tutti_blocks_deinit(&p.blocks);
    return s;
}
