#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "nn/parser.h"

/* How many letters must be added, dropped or changed to turn a into b, which is no longer than a
 * name. */
static int distance(tutti_word a, const char *b)
{
    int row[TUTTI_LONGEST_NAME + 1];
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

/* ---- kinds ---- */

const tutti_kind *tutti_parser_kind(const tutti_parser *p, tutti_word word)
{
    for (const tutti_kind *const *kind = p->kinds; *kind; kind++)
        if (tutti_word_is(word, (*kind)->word)) return *kind;
    return NULL;
}

/* What PyTorch, Keras, Caffe and darknet call them. */
static const struct {
    const char *theirs, *ours;
} synonyms[] = {
    {"linear", "fc"},
    {"dense", "fc"},
    {"innerproduct", "fc"},
    {"fullyconnected", "fc"},
    {"connected", "fc"},
    {"conv1d", "conv"},
    {"conv2d", "conv"},
    {"convolution", "conv"},
    {"convolutional", "conv"},
    {"depthwiseconv2d", "conv"},
    {"convtranspose2d", "deconv"},
    {"conv2dtranspose", "deconv"},
    {"bn", "batchnorm"},
    {"batchnorm2d", "batchnorm"},
    {"batchnormalization", "batchnorm"},
    {"instancenorm2d", "groupnorm"},
    {"maxpool2d", "maxpool"},
    {"maxpooling2d", "maxpool"},
    {"avgpool2d", "avgpool"},
    {"averagepooling2d", "avgpool"},
    {"adaptiveavgpool2d", "avgpool"},
    {"globalavgpool", "avgpool"},
    {"residual", "add"},
    {"shortcut", "add"},
    {"eltwise", "add"},
    {"multiply", "mul"},
    {"cat", "concat"},
    {"route", "concat"},
    {"crossentropy", "softmax"},
    {"crossentropyloss", "softmax"},
    {"logsoftmax", "softmax"},
    {"softmaxwithloss", "softmax"},
    {"meansquarederror", "mse"},
    {"euclideanloss", "mse"},
    {"meanabsoluteerror", "l1"},
    {"mae", "l1"},
    {"smoothl1", "huber"},
    {"smoothl1loss", "huber"},
    {"bcewithlogits", "bce"},
    {"bcewithlogitsloss", "bce"},
    {"binarycrossentropy", "bce"},
    {"sigmoidcrossentropyloss", "bce"},
    {"interpolate", "upsample"},
    {"swish", "silu"},
    {"localresponsenorm", "lrn"},
    {"droppath", "stochasticdepth"},
    {"channelshuffle", "shuffle"},
};

/* Small and large letters are alike, and "batch_norm" is "batchnorm". */
static bool is_called(tutti_word word, const char *name)
{
    for (int i = 0; i < word.length; i++)
        if (word.start[i] != '_' && word.start[i] != '-' &&
            tolower((unsigned char)word.start[i]) != *name++)
            return false;
    return !*name;
}

/* The kind that others call so, else the one that is written most like it, if half of it is the
 * same. */
static const tutti_kind *similar(const tutti_parser *p, tutti_word word)
{
    for (const tutti_kind *const *kind = p->kinds; *kind; kind++)
        if (is_called(word, (*kind)->word)) return *kind;
    for (size_t i = 0; i < sizeof synonyms / sizeof *synonyms; i++) {
        const char *ours = synonyms[i].ours;
        const tutti_kind *kind = tutti_parser_kind(p, (tutti_word){ours, (int)strlen(ours), 0, 0});
        if (kind && is_called(word, synonyms[i].theirs)) return kind;
    }
    const tutti_kind *best = p->kinds[0];
    for (const tutti_kind *const *kind = p->kinds; *kind; kind++)
        if (distance(word, (*kind)->word) < distance(word, best->word)) best = *kind;
    return 2 * distance(word, best->word) <= word.length ? best : NULL;
}

tutti_status tutti_parser_no_kind(const tutti_parser *p, tutti_word word)
{
    char all[512] = "";
    const tutti_kind *meant = similar(p, word);
    if (is_called(word, "flatten"))
        return tutti_text_fail(p->text, word, "leave out '%.*s': an fc flattens what it gets",
                               word.length, word.start);
    if (meant)
        return tutti_text_fail(p->text, word,
                               "there is no kind of layer '%.*s'; did you mean '%s'?", word.length,
                               word.start, meant->word);
    for (const tutti_kind *const *kind = p->kinds; *kind; kind++) {
        const size_t used = strlen(all);
        snprintf(all + used, sizeof all - used, "%s%s", used ? ", " : "", (*kind)->word);
    }
    return tutti_text_fail(p->text, word, "there is no kind of layer '%.*s'; known: %s",
                           word.length, word.start, all);
}

bool tutti_parser_is_activation(const tutti_parser *p, tutti_word word)
{
    const tutti_kind *kind = tutti_parser_kind(p, word);
    return kind && kind->is_activation;
}

/* ---- layers ---- */

/* The used block's last layer, or the layer, of that name in the whole net; *line where it is. */
static int find_full(const tutti_parser *p, const char *name, int *line)
{
    for (int i = 0; i < p->alias_count; i++) {
        *line = p->aliases[i].line;
        if (!strcmp(p->aliases[i].name, name)) return p->aliases[i].layer;
    }
    for (int i = 0; i < p->known; i++) {
        *line = p->net->layers[i].line;
        if (!strcmp(p->net->layers[i].name, name)) return i;
    }
    return -1;
}

static bool is_own(const tutti_frame *in, const char *name)
{
    return in && !strcmp(name, ".");
}

/* The name with that of the block before it; false if it is too long. "." is the block's own. */
static bool join(const tutti_frame *in, const char *name, char out[TUTTI_LONGEST_NAME + 1])
{
    const int n = snprintf(out, TUTTI_LONGEST_NAME + 1, "%s%s%s", in ? in->name : "",
                           in && !is_own(in, name) ? "." : "", is_own(in, name) ? "" : name);
    return n <= TUTTI_LONGEST_NAME;
}

/* A layer's name as it is known in this block; NULL: it is none of its layers. */
static const char *local(const tutti_parser *p, const char *name)
{
    if (!p->in) return name;
    const size_t length = strlen(p->in->name);
    return !strncmp(name, p->in->name, length) && name[length] == '.' ? name + length + 1 : NULL;
}

static tutti_status no_such_layer(const tutti_parser *p, tutti_word name)
{
    const char *best = "input";
    for (int i = 0; i < p->known; i++) {
        const char *other = local(p, p->net->layers[i].name);
        if (other && distance(name, other) < distance(name, best)) best = other;
    }
    return tutti_text_fail(p->text, name, "no layer '%.*s' above; did you mean '%s'?", name.length,
                           name.start, best);
}

tutti_status tutti_parser_find(const tutti_parser *p, tutti_word name, int *out)
{
    char word[TUTTI_LONGEST_NAME + 1], full[TUTTI_LONGEST_NAME + 1];
    int line;
    *out = p->in ? p->in->input : TUTTI_NET_INPUT;
    if (tutti_word_is(name, "input")) return TUTTI_OK;
    if (name.length > TUTTI_LONGEST_NAME) return no_such_layer(p, name);
    snprintf(word, sizeof word, "%.*s", name.length, name.start);
    for (const tutti_frame *in = p->in;; in = in->outer) {
        *out = join(in, word, full) ? find_full(p, full, &line) : -1;
        if (*out >= 0) return TUTTI_OK;
        if (!in) return no_such_layer(p, name);
    }
}

static tutti_status no_name(const tutti_parser *p, tutti_word at, const char *name)
{
    return tutti_text_fail(p->text, at,
                           "'%.40s' is not a name: a letter, then letters, digits, '_', '-', '.', "
                           "at most %d%s",
                           name, TUTTI_LONGEST_NAME, p->in ? " with the block's before it" : "");
}

tutti_status tutti_parser_full_name(const tutti_parser *p, tutti_word at, const char *name,
                                    char out[TUTTI_LONGEST_NAME + 1])
{
    int line;
    bool good = isalpha((unsigned char)*name) || (p->in && isdigit((unsigned char)*name)) ||
                is_own(p->in, name);
    for (const char *c = name; *c; c++) good &= isalnum((unsigned char)*c) || strchr("_-.", *c);
    if (!good || !join(p->in, name, out)) return no_name(p, at, name);
    if (tutti_parser_is_activation(p, at))
        return tutti_text_fail(p->text, at,
                               "'%s' is a word of the language: give the layer another name", name);
    if (find_full(p, out, &line) >= 0)
        return tutti_text_fail(p->text, at, "'%s' is taken by the layer in line %d", out, line);
    return TUTTI_OK;
}

tutti_status tutti_parser_alias(tutti_parser *p, const char *name, int line)
{
    TUTTI_TRY(tutti_grow(&p->aliases, &p->alias_room, p->alias_count, sizeof *p->aliases));
    tutti_alias *alias = &p->aliases[p->alias_count++];
    *alias = (tutti_alias){.layer = p->above, .line = line};
    return tutti_strdup(&alias->name, name);
}
