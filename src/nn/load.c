#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "nn/parse.h"
#include "nn/zoo.h"

const char *tutti_net_known(int index)
{
    return index < 0 ? NULL : tutti_zoo[index].name;
}

/* "models/vgg-a.net" -> "vgg-a" */
static tutti_status set_name(tutti_net *net, const char *where)
{
    const char *slash = strrchr(where, '/'), *base = slash ? slash + 1 : where;
    const char *dot = strrchr(base, '.');
    const size_t length =
        dot && dot != base && !strcmp(dot, ".net") ? (size_t)(dot - base) : strlen(base);
    return tutti_strndup(&net->name, base, length);
}

/* Takes the text. */
static tutti_status parse(tutti_net **out, tutti_text *text, const char *where,
                          const tutti_kind *const *kinds)
{
    tutti_net *net = NULL;
    tutti_status s = TUTTI_OK;
    if ((s = tutti_alloc(&net, 1, sizeof *net))) goto out;
    if ((s = set_name(net, where))) goto out;
    if ((s = tutti_strdup(&net->text, tutti_text_content(text)))) goto out;
    if ((s = tutti_net_read(net, text, where, kinds))) goto out;
    *out = net;
    net = NULL;
out:
    tutti_net_destroy(&net);
    tutti_text_destroy(&text);
    return s;
}

tutti_status tutti_net_parse_kinds(tutti_net **out, const char *content, const char *where,
                                   const tutti_kind *const *kinds)
{
    tutti_text *text = NULL;
    TUTTI_TRY(tutti_text_create(&text, where, content));
    return parse(out, text, where, kinds);
}

tutti_status tutti_net_parse(tutti_net **out, const char *content, const char *where)
{
    return tutti_net_parse_kinds(out, content, where, tutti_kinds);
}

static tutti_status load_path(tutti_net **out, const char *path)
{
    tutti_text *text = NULL;
    TUTTI_TRY(tutti_text_open(&text, path));
    return parse(out, text, path, tutti_kinds);
}

static tutti_status unknown_net(const char *name)
{
    char list[640] = "";
    for (int i = 0; tutti_zoo[i].name; i++) {
        const size_t used = strlen(list);
        snprintf(list + used, sizeof list - used, "%s%s", used ? ", " : "", tutti_zoo[i].name);
    }
    return tutti_fail(TUTTI_ARGUMENT,
                      "there is no net '%s'; known: %s, and any FILE.net (or a directory of "
                      "them in TUTTI_MODELS)",
                      name, list);
}

tutti_status tutti_net_load(tutti_net **out, const char *name)
{
    char path[4096];
    if (tutti_text_is_path(name, ".net")) return load_path(out, name);
    if (tutti_text_find(path, sizeof path, "TUTTI_MODELS", name, ".net"))
        return load_path(out, path);
    for (const tutti_zoo_net *known = tutti_zoo; known->name; known++) {
        if (strcmp(known->name, name)) continue;
        snprintf(path, sizeof path, "%s.net", name);
        return tutti_net_parse(out, known->text, path);
    }
    return unknown_net(name);
}
