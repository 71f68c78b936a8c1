/* What a layer is, option by option: every option of a kind is in the kind's table, so walking that
 * table leaves nothing out. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "nn/kinds/kind.h"

static double number_at(const tutti_key *key, const void *options, int index)
{
    const char *field = (const char *)options + key->offset;
    switch (key->type) {
    case TUTTI_KEY_INT:
    case TUTTI_KEY_CHOICE:
    case TUTTI_KEY_COUNT:
    case TUTTI_KEY_PAIR: return ((const int *)field)[index];
    case TUTTI_KEY_I64: return (double)*(const int64_t *)field;
    case TUTTI_KEY_REAL: return *(const double *)field;
    case TUTTI_KEY_BOOL: return *(const bool *)field;
    case TUTTI_KEY_WORD: break; /* no kind has one: it would not outlive the text */
    }
    return NAN;
}

double tutti_layer_number(const tutti_layer *layer, const char *name, int index)
{
    const tutti_kind *kind = layer->kind;
    if (kind->argument.name && !strcmp(kind->argument.name, name))
        return number_at(&kind->argument, layer->options, index);
    for (const tutti_key *key = kind->keys; key && key->name; key++)
        if (!strcmp(key->name, name)) return number_at(key, layer->options, index);
    return NAN;
}

/* ---- the hash ---- */

enum { LINE = 512 };

/* Options that came when there were checkpoints already: nets that do not use them keep their
 * hash. */
static const char *const later[] = {"pad-end", "ceil",      "exclude-pad", "size",      "weight",
                                    "linear",  "algorithm", "target",      "precision", NULL};

/* An algorithm and a precision move last digits, not what a net answers. */
static bool counts(const tutti_key *key, bool trains)
{
    return trains || (strcmp(key->name, "algorithm") && strcmp(key->name, "precision"));
}

static bool is_unused(const tutti_key *key, const tutti_kind *kind, const void *options)
{
    int i = 0;
    while (later[i] && strcmp(later[i], key->name)) i++;
    return later[i] && number_at(key, options, 0) == number_at(key, kind->defaults, 0);
}

static void hash_key(tutti_hash *hash, const tutti_key *key, const void *options)
{
    char line[LINE];
    const int pair = key->type == TUTTI_KEY_PAIR;
    const int n = snprintf(line, LINE, " %s=%a,%a", key->name, number_at(key, options, 0),
                           pair ? number_at(key, options, 1) : 0);
    tutti_hash_add(hash, line, (size_t)n);
}

/* What is only said of training; nets that say nothing keep their hash. */
static void hash_tuning(tutti_hash *hash, const tutti_layer *l)
{
    char line[LINE];
    const int n = snprintf(line, LINE, " lr=%a%s", l->lr_scale, l->frozen ? " frozen" : "");
    if (l->frozen || l->lr_scale != 1) tutti_hash_add(hash, line, (size_t)n);
}

static void hash_layer(tutti_hash *hash, const tutti_net *net, const tutti_layer *l, bool trains)
{
    const tutti_kind *kind = l->kind;
    char line[LINE];
    int n = snprintf(line, LINE, "%s %s %s %d,%d,%d", l->name, kind->word,
                     l->activation ? l->activation->word : "-", l->out.c, l->out.h, l->out.w);
    tutti_hash_add(hash, line, (size_t)n);
    if (kind->argument.name) hash_key(hash, &kind->argument, l->options);
    for (const tutti_key *key = kind->keys; key && key->name; key++)
        if (counts(key, trains) && !is_unused(key, kind, l->options))
            hash_key(hash, key, l->options);
    for (int i = 0; i < l->input_count; i++) {
        n = snprintf(line, LINE, " <%d", l->from[i]);
        tutti_hash_add(hash, line, (size_t)n);
    }
    for (int i = 0; i < l->param_count; i++) {
        const tutti_param *p = &net->params[l->first_param + i];
        n = snprintf(line, LINE, " %s:%d,%d,%d,%d", p->name, p->dims[0], p->dims[1], p->dims[2],
                     p->dims[3]);
        tutti_hash_add(hash, line, (size_t)n);
    }
    if (trains) hash_tuning(hash, l);
    tutti_hash_add(hash, "\n", 1);
}

static tutti_status hash_net(const tutti_net *net, bool trains, char hex[TUTTI_HASH_HEX])
{
    tutti_hash *hash = NULL;
    char line[LINE];
    TUTTI_TRY(tutti_hash_create(&hash));
    const int n =
        snprintf(line, LINE, "input %d,%d,%d\n", net->input.c, net->input.h, net->input.w);
    tutti_hash_add(hash, line, (size_t)n);
    for (int i = 0; i < net->layer_count; i++) hash_layer(hash, net, &net->layers[i], trains);
    tutti_hash_finish(hash, hex);
    tutti_hash_destroy(&hash);
    return TUTTI_OK;
}

tutti_status tutti_net_hash(const tutti_net *net, char hex[TUTTI_HASH_HEX])
{
    return hash_net(net, true, hex);
}

tutti_status tutti_net_hash_answers(const tutti_net *net, char hex[TUTTI_HASH_HEX])
{
    return hash_net(net, false, hex);
}

void tutti_net_regroup(tutti_net *net, int samples)
{
    for (int i = 0; i < net->layer_count; i++)
        if (net->layers[i].kind->regroup) net->layers[i].kind->regroup(&net->layers[i], samples);
}

void tutti_net_convolve(tutti_net *net, int algorithm)
{
    for (int i = 0; i < net->layer_count; i++)
        if (net->layers[i].kind->convolve)
            net->layers[i].kind->convolve(&net->layers[i], algorithm);
}

void tutti_net_still(tutti_net *net)
{
    for (int i = 0; i < net->layer_count; i++)
        if (net->layers[i].kind->still) net->layers[i].kind->still(&net->layers[i]);
}
