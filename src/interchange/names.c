/* What layers are called. PyTorch's exporters keep the names of parameters
 * ("layer1.0.conv1.weight") where they keep the parameter; where they do not, the place in the
 * module is in the node: the old one calls it "/layer1/layer1.0/conv1/Conv", today's keeps "['',
 * 'layer1', 'layer1.0', 'layer1.0.conv1', 'conv2d_1']" beside it. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "interchange/importer.h"
#include "nn/kinds/kind.h"

enum { LONGEST = TUTTI_CALLED - 1 };

void tutti_draft_call(tutti_draft *draft, tutti_name_rank rank, const char *name, size_t length)
{
    if (!length || (draft->name[0] && rank <= draft->rank)) return;
    const size_t cut = length > LONGEST ? length - LONGEST : 0; /* the end tells more */
    snprintf(draft->name, sizeof draft->name, "%.*s", (int)(length - cut), name + cut);
    draft->rank = rank;
}

/* ---- after parameters ---- */

bool tutti_name_is_given(const char *name)
{
    static const char *const made_up[] = {"onnx::", "val_", "/", "Constant", "const", NULL};
    for (int i = 0; made_up[i]; i++)
        if (!strncmp(name, made_up[i], strlen(made_up[i]))) return false;
    return true;
}

void tutti_draft_call_after_param(const tutti_importer *im, tutti_draft *draft, int name)
{
    static const char *const suffixes[] = {".weight", ".bias", ".layer_scale", ".gamma", ".beta",
                                           ".scale",  NULL};
    const char *text = tutti_onnx_name(im->model, name), *dot = strrchr(text, '.');
    if (!dot || !tutti_name_is_given(text) || im->uses[name] > 1) return;
    for (int i = 0; suffixes[i]; i++)
        if (!strcmp(dot, suffixes[i]))
            tutti_draft_call(draft, TUTTI_NAME_PARAM, text, (size_t)(dot - text));
}

/* ---- after nodes ---- */

/* A module's place, with dots. */
typedef struct place {
    char text[256];
    size_t last; /* where the last part begins */
} place;

/* "layer1.0" after "layer1" says it again, longer; any other part is a step further in. */
static void go_into(place *p, const char *part, size_t length)
{
    const size_t used = strlen(p->text), tail = used - p->last;
    const bool again =
        used && length > tail && !strncmp(part, p->text + p->last, tail) && part[tail] == '.';
    if (used && !again) {
        if (used + length + 2 > sizeof p->text) return;
        p->text[used] = '.';
        p->last = used + 1;
    }
    snprintf(p->text + p->last, sizeof p->text - p->last, "%.*s", (int)length, part);
}

/* "/layer1/layer1.0/conv1/Conv": all parts but the operator. */
static void read_path(place *p, const char *name)
{
    for (const char *end; (end = strchr(name, '/')); name = end + 1)
        if (end > name) go_into(p, name, (size_t)(end - name));
}

/* "['', 'layer1', 'layer1.0', 'add']": the last but one. */
static void read_scopes(place *p, const char *scopes)
{
    char last[sizeof p->text] = "";
    for (const char *at = strchr(scopes, '\''), *begin = NULL; at; at = strchr(at + 1, '\'')) {
        if (begin) {
            memcpy(p->text, last, sizeof last);
            snprintf(last, sizeof last, "%.*s", (int)(at - begin), begin);
        }
        begin = begin ? NULL : at + 1;
    }
}

static bool contains(const char *text, const char *word)
{
    for (size_t n = strlen(word); *text; text++)
        if (!strncasecmp(text, word, n)) return true;
    return false;
}

static bool has_weights(const char *kind)
{
    static const char *const kinds[] = {"conv",      "deconv",    "fc",         "batchnorm",
                                        "layernorm", "groupnorm", "layerscale", NULL};
    for (int i = 0; kinds[i]; i++)
        if (!strcmp(kinds[i], kind)) return true;
    return false;
}

static void find_place(place *p, const tutti_onnx_node *node)
{
    if (*node->scopes) read_scopes(p, node->scopes);
    else if (*node->name == '/') read_path(p, node->name);
    else if (tutti_name_is_given(node->name)) snprintf(p->text, sizeof p->text, "%s", node->name);
}

void tutti_draft_call_after_node(const tutti_importer *im, tutti_draft *draft)
{
    const tutti_onnx_node *node = im->node;
    place p = {.text = ""};
    char name[sizeof p.text + 32];
    if (node) find_place(&p, node);
    const char *last = strrchr(p.text, '.');
    if (node && *node->name && !strcmp(im->model->producer, "tutti")) { /* our own export */
        tutti_draft_call(draft, TUTTI_NAME_NODE, node->name, strcspn(node->name, "/"));
        return;
    }
    const bool says =
        *p.text && (has_weights(draft->kind) || contains(last ? last : p.text, draft->kind));
    if (says) snprintf(name, sizeof name, "%s", p.text);
    else snprintf(name, sizeof name, "%s%s%s", p.text, *p.text ? "." : "", draft->kind);
    tutti_draft_call(draft, *p.text ? TUTTI_NAME_NODE : TUTTI_NAME_KIND, name, strlen(name));
}

/* ---- names of the language ---- */

static bool is_word(const char *name)
{
    static const char *const words[] = {"input", "end", "block", "default", "tutti", "loss", NULL};
    for (int i = 0; words[i]; i++)
        if (!strcmp(words[i], name)) return true;
    for (const tutti_kind *const *k = tutti_kinds; *k; k++)
        if ((*k)->is_activation && !strcmp((*k)->word, name)) return true;
    return false;
}

static bool is_taken(const tutti_importer *im, int before, const char *name)
{
    for (int i = 0; i < before; i++)
        if (im->drafts[i].merged < 0 && !strcmp(im->drafts[i].name, name)) return true;
    return is_word(name);
}

static void clean(char *name)
{
    char out[TUTTI_CALLED] = "";
    const bool needs_letter = !isalpha((unsigned char)name[0]);
    snprintf(out, sizeof out, "%s%.*s", needs_letter ? "m" : "", LONGEST - needs_letter, name);
    for (char *at = out; *at; at++)
        if (!isalnum((unsigned char)*at) && !strchr("_-.", *at)) *at = '_';
    memcpy(name, out, sizeof out);
}

/* How many layers before have names that begin so. */
static int similar(const tutti_importer *im, int before, const char *name)
{
    int count = 0;
    for (int i = 0; i < before; i++)
        count += im->drafts[i].merged < 0 && !strncmp(im->drafts[i].name, name, strlen(name));
    return count;
}

/* What is only called by its kind is numbered: "conv1", "conv2". */
static void make_one(tutti_importer *im, int draft)
{
    tutti_draft *d = &im->drafts[draft];
    const bool is_kind = d->rank == TUTTI_NAME_KIND;
    char name[TUTTI_CALLED], number[16];
    clean(d->name);
    memcpy(name, d->name, sizeof name);
    if (!is_kind && !is_taken(im, draft, name)) return;
    for (int n = similar(im, draft, name) + 1;; n++) {
        const int digits = snprintf(number, sizeof number, "%s%d", is_kind ? "" : "_", n);
        snprintf(d->name, sizeof d->name, "%.*s%s", LONGEST - digits, name, number);
        if (!is_taken(im, draft, d->name)) return;
    }
}

void tutti_drafts_name(tutti_importer *im)
{
    for (int i = 0; i < im->draft_count; i++)
        if (im->drafts[i].merged < 0) make_one(im, i);
}
