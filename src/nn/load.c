#define _POSIX_C_SOURCE 200809L
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "nn/parse.h"
#include "nn/zoo.h"

enum { MAX_BYTES = 1 << 20 }; /* of a net's text */

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

tutti_status tutti_net_parse(tutti_net **out, const char *text, const char *where)
{
    tutti_net *net = NULL;
    tutti_status s = TUTTI_OK;
    if ((s = tutti_alloc(&net, 1, sizeof *net))) goto out;
    if ((s = set_name(net, where))) goto out;
    if ((s = tutti_net_read_text(net, text, where))) goto out;
    *out = net;
    net = NULL;
out:
    tutti_net_destroy(&net);
    return s;
}

static tutti_status load_stream(tutti_net **out, FILE *f, const char *path)
{
    char *text = NULL;
    TUTTI_TRY(tutti_alloc(&text, MAX_BYTES + 1, 1));
    const size_t bytes = fread(text, 1, MAX_BYTES + 1, f);
    tutti_status s;
    if (ferror(f)) s = tutti_fail(TUTTI_IO, "cannot read '%s': %s", path, strerror(errno));
    else if (bytes > MAX_BYTES || strlen(text) != bytes)
        s = tutti_fail(TUTTI_PARSE, "'%s' is not the text of a net", path);
    else s = tutti_net_parse(out, text, path);
    tutti_free(text);
    return s;
}

static tutti_status load_path(tutti_net **out, const char *path)
{
    FILE *f = fopen(path, "rb");
    if (!f) return tutti_fail(TUTTI_IO, "cannot open the net '%s': %s", path, strerror(errno));
    const tutti_status s = load_stream(out, f, path);
    fclose(f);
    return s;
}

/* Looks for NAME.net in the directories of TUTTI_MODELS. */
static bool find_in_models(const char *name, char *path, size_t bytes)
{
    const char *dirs = getenv("TUTTI_MODELS");
    for (; dirs && *dirs; dirs += strspn(dirs, ":")) {
        const size_t length = strcspn(dirs, ":");
        const int n = snprintf(path, bytes, "%.*s/%s.net", (int)length, dirs, name);
        FILE *f = n > 0 && (size_t)n < bytes ? fopen(path, "rb") : NULL;
        if (f) {
            fclose(f);
            return true;
        }
        dirs += length;
    }
    return false;
}

static tutti_status unknown_net(const char *name)
{
    char list[256] = "";
    for (int i = 0; tutti_zoo[i].name; i++) {
        const size_t used = strlen(list);
        snprintf(list + used, sizeof list - used, "%s%s", used ? ", " : "", tutti_zoo[i].name);
    }
    return tutti_fail(TUTTI_ARGUMENT,
                      "there is no net '%s'; known are %s, and any FILE.net (or a directory of "
                      "them in TUTTI_MODELS)",
                      name, list);
}

tutti_status tutti_net_load(tutti_net **out, const char *name)
{
    char path[4096];
    const char *dot = strrchr(name, '.');
    if (strchr(name, '/') || (dot && !strcmp(dot, ".net"))) return load_path(out, name);
    if (find_in_models(name, path, sizeof path)) return load_path(out, path);
    for (const tutti_zoo_net *known = tutti_zoo; known->name; known++) {
        if (strcmp(known->name, name)) continue;
        snprintf(path, sizeof path, "%s.net", name);
        return tutti_net_parse(out, known->text, path);
    }
    return unknown_net(name);
}
