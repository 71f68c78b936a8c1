/* Nets from text. The grammar, one statement a line, '#' starts a comment:
 *
 *     input C H W             or: input FEATURES                 first of all
 *     default KEY VALUE       a hyperparameter 'tutti train' uses unless told otherwise
 *     NAME KIND [ARGUMENT ...] [key=value ...] [flag ...]        a layer
 *
 * A layer's input is the layer before it, or from=NAME; add and concat name theirs as arguments.
 * What a kind takes is in the two tables below: they are the parser, the checker and the advice.
 * Every complaint starts with file:line:column. */
#include "nn/parse.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "nn/layer.h"

enum {
    MAX_WORDS = 64,
    MAX_WORD = 64,
    MAX_LINES = TUTTI_MAX_LAYERS,
    MAX_DIM = 1 << 20,    /* features, or one side of an input */
    MAX_SAMPLE = 1 << 28, /* values of a sample */
};

typedef struct word {
    char text[MAX_WORD];
    int column; /* from 1 */
} word;

typedef struct parser {
    const char *where; /* the file in messages */
    int line;          /* from 1 */
    bool has_input;
    int word_count;
    word words[MAX_WORDS];
    tutti_net *net;
} parser;

/* ---- what a kind takes ---- */

/* Kinds that understand the same options make a group. */
enum { CONV = 1, FC = 2, POOL = 4, JOIN = 8, LRN = 16, PLAIN = 32 };
enum { WEIGHTS = CONV | FC, WINDOW = CONV | POOL, ONE_INPUT = CONV | FC | POOL | LRN | PLAIN };

typedef enum argument { NOTHING, FEATURES, SIZE, RATE, NAMES } argument;

static const struct {
    argument takes;
    unsigned group; /* of options it understands */
} kinds[TUTTI_KIND_COUNT] = {
    [TUTTI_KIND_CONV] = {FEATURES, CONV},    [TUTTI_KIND_FC] = {FEATURES, FC},
    [TUTTI_KIND_MAXPOOL] = {NOTHING, POOL},  [TUTTI_KIND_AVGPOOL] = {NOTHING, POOL},
    [TUTTI_KIND_RELU] = {NOTHING, PLAIN},    [TUTTI_KIND_SIGMOID] = {NOTHING, PLAIN},
    [TUTTI_KIND_TANH] = {NOTHING, PLAIN},    [TUTTI_KIND_DROPOUT] = {RATE, PLAIN},
    [TUTTI_KIND_ADD] = {NAMES, JOIN},        [TUTTI_KIND_CONCAT] = {NAMES, JOIN},
    [TUTTI_KIND_SOFTMAX] = {NOTHING, PLAIN}, [TUTTI_KIND_LRN] = {SIZE, LRN},
};

typedef enum value { FLAG, PAIR, NUMBER, REAL, INIT, LAYER } value;

typedef struct option {
    const char *name;
    unsigned groups; /* of kinds that understand it */
    value value;
    size_t offset;      /* in tutti_layer_spec */
    double least, most; /* FLAG: 'least' is what it sets */
} option;

// clang-format off
#define AT(field) offsetof(tutti_layer_spec, field)
static const option options[] = {
    {"from",     ONE_INPUT,          LAYER,  0,              0,                  0},
    {"kernel",   WINDOW,             PAIR,   AT(kernel),     1,                  4096},
    {"stride",   WINDOW,             PAIR,   AT(stride),     1,                  4096},
    {"pad",      WINDOW,             PAIR,   AT(pad),        0,                  4096},
    {"dilation", CONV,               PAIR,   AT(dilation),   1,                  4096},
    {"groups",   CONV,               NUMBER, AT(groups),     1,                  1 << 20},
    {"global",   POOL,               FLAG,   AT(global),     1,                  0},
    {"relu",     WEIGHTS | JOIN,     FLAG,   AT(activation), TUTTI_ACT_RELU,     0},
    {"sigmoid",  WEIGHTS | JOIN,     FLAG,   AT(activation), TUTTI_ACT_SIGMOID,  0},
    {"tanh",     WEIGHTS | JOIN,     FLAG,   AT(activation), TUTTI_ACT_TANH,     0},
    {"nobias",   WEIGHTS,            FLAG,   AT(no_bias),    1,                  0},
    {"init",     WEIGHTS,            INIT,   AT(init),       0,                  0},
    {"std",      WEIGHTS,            REAL,   AT(std),        1e-9,               1e3},
    {"bias",     WEIGHTS,            REAL,   AT(bias),       -1e3,               1e3},
    {"alpha",    LRN,                REAL,   AT(alpha),      1e-9,               1e3},
    {"beta",     LRN,                REAL,   AT(beta),       1e-3,               10},
    {"k",        LRN,                REAL,   AT(k),          1e-9,               1e3},
    {.name = NULL},
};
// clang-format on

/* ---- complaints and advice ---- */

static tutti_status fail_at(const parser *p, int column, tutti_status status, const char *format,
                            ...) TUTTI_PRINTF(4, 5);
static tutti_status fail_at(const parser *p, int column, tutti_status status, const char *format,
                            ...)
{
    char text[512];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return tutti_fail(status, "%s:%d:%d: %s", p->where, p->line, column, text);
}

/* How many letters must be added, dropped or changed to make b of a. */
static int distance(const char *a, const char *b)
{
    int row[MAX_WORD + 1];
    const int width = (int)strlen(b);
    for (int j = 0; j <= width; j++) row[j] = j;
    for (int i = 0; a[i]; i++) {
        int diagonal = row[0];
        row[0] = i + 1;
        for (int j = 0; j < width; j++) {
            int best = diagonal + (a[i] != b[j]);
            if (row[j + 1] + 1 < best) best = row[j + 1] + 1;
            if (row[j] + 1 < best) best = row[j] + 1;
            diagonal = row[j + 1];
            row[j + 1] = best;
        }
    }
    return row[width];
}

/* The name most like 'text' of a list that ends with NULL and is not empty. */
static const char *nearest(const char *text, const char *const *names)
{
    const char *best = names[0];
    for (; *names; names++)
        if (distance(text, *names) < distance(text, best)) best = *names;
    return best;
}

/* ---- words and numbers ---- */

/* Splits the line that starts at *text into words; moves *text behind it. */
static tutti_status split_line(parser *p, const char **text)
{
    const char *s = *text, *start = s;
    p->word_count = 0;
    for (; *s && *s != '\n' && *s != '#';) {
        if (isspace((unsigned char)*s)) {
            s++;
            continue;
        }
        const char *word_end = s + strcspn(s, " \t\r\v\f\n#");
        const int column = (int)(s - start) + 1, length = (int)(word_end - s);
        if (p->word_count == MAX_WORDS)
            return fail_at(p, column, TUTTI_PARSE, "more than %d words in a line", MAX_WORDS);
        if (length >= MAX_WORD)
            return fail_at(p, column, TUTTI_PARSE, "a word of %d characters; %d are the most",
                           length, MAX_WORD - 1);
        word *w = &p->words[p->word_count++];
        memcpy(w->text, s, (size_t)length);
        w->text[length] = 0;
        w->column = column;
        s = word_end;
    }
    *text = s + strcspn(s, "\n");
    if (**text) ++*text;
    return TUTTI_OK;
}

static bool to_int(const char *text, char stop, int least, int most, int *out, const char **end)
{
    char *after;
    if (!isdigit((unsigned char)*text)) return false;
    const long v = strtol(text, &after, 10);
    if (*after && *after != stop) return false;
    if (v < least || v > most) return false;
    *out = (int)v;
    *end = after;
    return true;
}

static tutti_status int_word(const parser *p, const word *w, const char *what, int most, int *out)
{
    const char *end;
    if (to_int(w->text, 0, 1, most, out, &end)) return TUTTI_OK;
    return fail_at(p, w->column, TUTTI_PARSE, "%s: '%s' is not a whole number from 1 to %d", what,
                   w->text, most);
}

/* ---- options of a layer ---- */

static tutti_status bad_value(const parser *p, int column, const option *o, const char *text)
{
    if (o->value == REAL)
        return fail_at(p, column, TUTTI_PARSE, "%s: '%s' is not a number from %g to %g", o->name,
                       text, o->least, o->most);
    return fail_at(p, column, TUTTI_PARSE, "%s: '%s' is not a whole number from %.0f to %.0f%s",
                   o->name, text, o->least, o->most,
                   o->value == PAIR ? ", or two as HEIGHTxWIDTH" : "");
}

static bool to_pair(const option *o, const char *text, int out[2])
{
    const char *end;
    if (!to_int(text, 'x', (int)o->least, (int)o->most, &out[0], &end)) return false;
    out[1] = out[0];
    return !*end || to_int(end + 1, 0, (int)o->least, (int)o->most, &out[1], &end);
}

static bool to_real(const option *o, const char *text, float *out)
{
    char *end;
    const double v = strtod(text, &end);
    if (end == text || *end || !(v >= o->least && v <= o->most)) return false;
    *out = (float)v;
    return true;
}

static tutti_status set_init(const parser *p, int column, const char *text, int *out)
{
    static const char *const names[] = {"auto", "he", "xavier", "gaussian", NULL};
    for (int i = 0; names[i]; i++)
        if (!strcmp(names[i], text)) {
            *out = i;
            return TUTTI_OK;
        }
    return fail_at(p, column, TUTTI_PARSE, "init: '%s' is none of auto, he, xavier, gaussian",
                   text);
}

static tutti_status find_input(const parser *p, int column, const char *name, int *out)
{
    const tutti_net *net = p->net;
    const int own = net->layer_count - 1;
    const char *names[TUTTI_MAX_LAYERS + 2];
    *out = TUTTI_NET_INPUT;
    if (!strcmp(name, "input")) return TUTTI_OK;
    for (*out = 0; *out < own; ++*out) {
        if (!strcmp(net->layers[*out].name, name)) return TUTTI_OK;
        names[*out] = net->layers[*out].name;
    }
    names[own] = "input";
    names[own + 1] = NULL;
    return fail_at(p, column, TUTTI_PARSE, "no layer '%s' above; did you mean '%s'?", name,
                   nearest(name, names));
}

/* An argument without its option: "kernel" for "kernel=3", or a word nobody knows. */
static tutti_status unknown_option(const parser *p, const word *w, const char *key, unsigned group)
{
    const char *names[sizeof options / sizeof *options];
    char list[256] = "";
    int count = 0;
    for (const option *o = options; o->name; o++) {
        if (!(o->groups & group)) continue;
        names[count++] = o->name;
        const size_t used = strlen(list);
        snprintf(list + used, sizeof list - used, "%s%s%s", used ? ", " : "", o->name,
                 o->value == FLAG ? "" : "=");
    }
    names[count] = NULL;
    return fail_at(p, w->column, TUTTI_PARSE,
                   "'%s' is not understood here; did you mean '%s'? (%s)", key, nearest(key, names),
                   list);
}

static tutti_status set_option(const parser *p, const word *w, const option *o, const char *text,
                               tutti_layer_spec *spec)
{
    const int column = w->column + (int)(text - w->text);
    void *field = (char *)spec + o->offset;
    bool good = true;
    switch (o->value) {
    case FLAG: *(int *)field = (int)o->least; break;
    case PAIR: good = to_pair(o, text, field); break;
    case REAL: good = to_real(o, text, field); break;
    case INIT: return set_init(p, column, text, field);
    case LAYER:
        return find_input(p, column, text, &p->net->layers[p->net->layer_count - 1].from[0]);
    case NUMBER: {
        const char *end;
        good = to_int(text, 0, (int)o->least, (int)o->most, field, &end);
    }
    }
    return good ? TUTTI_OK : bad_value(p, column, o, text);
}

static tutti_status parse_option(const parser *p, const word *w, unsigned group,
                                 tutti_layer_spec *spec)
{
    char key[MAX_WORD];
    const char *equals = strchr(w->text, '=');
    const int length = equals ? (int)(equals - w->text) : (int)strlen(w->text);
    snprintf(key, sizeof key, "%.*s", length, w->text);
    for (const option *o = options; o->name; o++) {
        if (strcmp(o->name, key) || !(o->groups & group)) continue;
        if (!equals != (o->value == FLAG))
            return fail_at(p, w->column, TUTTI_PARSE,
                           equals ? "'%s' takes no value" : "'%s' needs a value: %s=...", key, key);
        return set_option(p, w, o, equals ? equals + 1 : w->text, spec);
    }
    return unknown_option(p, w, key, group);
}

/* ---- statements ---- */

static tutti_status parse_input(parser *p)
{
    int dims[3] = {1, 1, 1};
    const int given = p->word_count - 1;
    if (p->has_input) return fail_at(p, 1, TUTTI_PARSE, "a second input; a net has one");
    if (given != 1 && given != 3)
        return fail_at(p, p->words[0].column, TUTTI_PARSE,
                       "input wants CHANNELS HEIGHT WIDTH, or FEATURES alone");
    for (int i = 0; i < given; i++)
        TUTTI_TRY(int_word(p, &p->words[1 + i], "input", MAX_DIM, &dims[i]));
    if ((double)dims[0] * dims[1] * dims[2] > MAX_SAMPLE)
        return fail_at(p, p->words[1].column, TUTTI_SHAPE, "an input of %dx%dx%d is too large",
                       dims[0], dims[1], dims[2]);
    p->net->input = (tutti_shape){dims[0], dims[1], dims[2]};
    p->has_input = true;
    return TUTTI_OK;
}

static tutti_status parse_default(parser *p)
{
    if (p->word_count != 3)
        return fail_at(p, p->words[0].column, TUTTI_PARSE,
                       "default wants a name and a value, as in 'default lr 0.01'");
    tutti_net_setting *s = &p->net->settings[p->net->setting_count++];
    char where[512];
    snprintf(where, sizeof where, "%s:%d:%d", p->where, p->line, p->words[2].column);
    TUTTI_TRY(tutti_strdup(&s->key, p->words[1].text));
    TUTTI_TRY(tutti_strdup(&s->value, p->words[2].text));
    return tutti_strdup(&s->where, where);
}

static tutti_status check_name(const parser *p, const word *w)
{
    if (!isalpha((unsigned char)w->text[0]))
        return fail_at(p, w->column, TUTTI_PARSE, "'%s' is no name; names start with a letter",
                       w->text);
    for (const char *c = w->text; *c; c++)
        if (!isalnum((unsigned char)*c) && !strchr("_-.", *c))
            return fail_at(p, w->column, TUTTI_PARSE,
                           "'%s' is no name; letters, digits, '_', '-' and '.' make names",
                           w->text);
    const int same = tutti_net_find_layer(p->net, w->text);
    if (same >= 0)
        return fail_at(p, w->column, TUTTI_PARSE, "'%s' is taken by the layer in line %d", w->text,
                       p->net->layers[same].line);
    return TUTTI_OK;
}

static tutti_status parse_kind(const parser *p, tutti_kind *out)
{
    const char *names[TUTTI_KIND_COUNT + 1] = {NULL};
    if (p->word_count < 2)
        return fail_at(p, p->words[0].column, TUTTI_PARSE,
                       "a layer wants a name and a kind, as in '%s fc 10'", p->words[0].text);
    for (int i = 0; i < TUTTI_KIND_COUNT; i++) {
        names[i] = tutti_kind_name((tutti_kind)i);
        *out = (tutti_kind)i;
        if (!strcmp(names[i], p->words[1].text)) return TUTTI_OK;
    }
    return fail_at(p, p->words[1].column, TUTTI_PARSE,
                   "there is no kind of layer '%s'; did you mean '%s'?", p->words[1].text,
                   nearest(p->words[1].text, names));
}

static tutti_status parse_names(const parser *p, tutti_layer *layer, int *next)
{
    layer->input_count = 0;
    for (; *next < p->word_count; ++*next) {
        const word *w = &p->words[*next];
        if (layer->input_count >= 2 && tutti_net_find_layer(p->net, w->text) < 0) break;
        if (layer->input_count == TUTTI_MAX_INPUTS)
            return fail_at(p, w->column, TUTTI_PARSE, "%d inputs are the most", TUTTI_MAX_INPUTS);
        TUTTI_TRY(find_input(p, w->column, w->text, &layer->from[layer->input_count++]));
    }
    if (layer->input_count < 2)
        return fail_at(p, p->words[1].column, TUTTI_PARSE,
                       "%s wants the names of two layers or more", p->words[1].text);
    return TUTTI_OK;
}

/* What stands between the kind and the options. *next is the first word behind it. */
static tutti_status parse_argument(const parser *p, tutti_layer *layer, tutti_layer_spec *spec,
                                   int *next)
{
    static const option rate = {"dropout", 0, REAL, 0, 0, 0.999};
    static const char *const wants[] = {
        [FEATURES] = "a number of features", [SIZE] = "a number of channels", [RATE] = "a rate"};
    const argument takes = kinds[layer->kind].takes;
    *next = 2;
    if (takes == NOTHING) return TUTTI_OK;
    if (takes == NAMES) return parse_names(p, layer, next);
    if (p->word_count < 3)
        return fail_at(p, p->words[1].column, TUTTI_PARSE, "%s wants %s behind it",
                       p->words[1].text, wants[takes]);
    const word *w = &p->words[(*next)++];
    if (takes == FEATURES) return int_word(p, w, "features", MAX_DIM, &spec->features);
    if (takes == SIZE) return int_word(p, w, "size", TUTTI_LRN_MAX_SIZE, &spec->size);
    return to_real(&rate, w->text, &spec->rate) ? TUTTI_OK
                                                : bad_value(p, w->column, &rate, w->text);
}

static tutti_status parse_layer(parser *p)
{
    tutti_net *net = p->net;
    tutti_kind kind;
    if (!p->has_input)
        return fail_at(p, p->words[0].column, TUTTI_PARSE,
                       "the input must come first, as in 'input 3 224 224'");
    if (net->layer_count && net->layers[net->layer_count - 1].kind == TUTTI_KIND_SOFTMAX)
        return fail_at(p, p->words[0].column, TUTTI_PARSE, "softmax must be the last layer");
    TUTTI_TRY(check_name(p, &p->words[0]));
    TUTTI_TRY(parse_kind(p, &kind));

    tutti_layer *layer = &net->layers[net->layer_count++];
    tutti_layer_spec spec = {0};
    int next;
    layer->kind = kind;
    layer->line = p->line;
    layer->column = p->words[0].column;
    layer->input_count = 1;
    layer->from[0] = net->layer_count - 2; /* the one before, or TUTTI_NET_INPUT */
    TUTTI_TRY(tutti_strdup(&layer->name, p->words[0].text));
    TUTTI_TRY(parse_argument(p, layer, &spec, &next));
    for (; next < p->word_count; next++)
        TUTTI_TRY(parse_option(p, &p->words[next], kinds[kind].group, &spec));
    const tutti_status s = tutti_layer_complete(net, &spec);
    return s ? fail_at(p, layer->column, s, "%s", tutti_message()) : TUTTI_OK;
}

static tutti_status parse_statement(parser *p)
{
    if (!p->word_count) return TUTTI_OK;
    if (!strcmp(p->words[0].text, "input")) return parse_input(p);
    if (!strcmp(p->words[0].text, "default")) return parse_default(p);
    return parse_layer(p);
}

/* ---- the whole ---- */

static tutti_status check_whole(const parser *p)
{
    const tutti_net *net = p->net;
    if (!net->layer_count || net->layers[net->layer_count - 1].kind != TUTTI_KIND_SOFTMAX)
        return fail_at(p, 1, TUTTI_PARSE, "the net must end with its loss: 'loss softmax'");
    for (int i = 0; i < net->layer_count - 1; i++) {
        bool used = false;
        for (int j = i + 1; j < net->layer_count && !used; j++)
            for (int k = 0; k < net->layers[j].input_count; k++)
                used |= net->layers[j].from[k] == i;
        if (!used)
            return tutti_fail(TUTTI_PARSE,
                              "%s:%d:%d: nothing uses the output of '%s'; name it in from=%s, in "
                              "an add or a concat",
                              p->where, net->layers[i].line, net->layers[i].column,
                              net->layers[i].name, net->layers[i].name);
    }
    if (!net->param_count) return fail_at(p, 1, TUTTI_PARSE, "the net has nothing to train");
    return TUTTI_OK;
}

/* Room for as many layers and settings as there are lines. */
static tutti_status take_room(parser *p, const char *text)
{
    size_t lines = 1;
    for (const char *s = text; *s; s++) lines += *s == '\n';
    if (lines > MAX_LINES)
        return tutti_fail(TUTTI_PARSE, "%s: %zu lines; a net has %d at most", p->where, lines,
                          MAX_LINES);
    TUTTI_TRY(tutti_alloc(&p->net->layers, lines, sizeof *p->net->layers));
    TUTTI_TRY(tutti_alloc(&p->net->params, 2 * lines, sizeof *p->net->params));
    return tutti_alloc(&p->net->settings, lines, sizeof *p->net->settings);
}

tutti_status tutti_net_read_text(tutti_net *net, const char *text, const char *where)
{
    parser *p = NULL;
    tutti_status s = TUTTI_OK;
    if ((s = tutti_alloc(&p, 1, sizeof *p))) goto out;
    p->where = where;
    p->net = net;
    if ((s = take_room(p, text))) goto out;
    for (p->line = 1; *text; p->line++) {
        if ((s = split_line(p, &text))) goto out;
        if ((s = parse_statement(p))) goto out;
    }
    s = check_whole(p);
out:
    tutti_free(p);
    return s;
}
