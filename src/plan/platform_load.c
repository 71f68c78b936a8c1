#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "plan/platform.h"
#include "plan/platforms.h"

const char *tutti_platform_known(int index)
{
    return index < 0 ? NULL : tutti_platforms[index].name;
}

static tutti_status load_path(tutti_platform **out, const char *path)
{
    enum { MOST_BYTES = 4 << 20 };
    char *content = NULL;
    FILE *f = fopen(path, "rb");
    if (!f) return tutti_fail(TUTTI_IO, "cannot open the platform '%s'", path);
    tutti_status s = tutti_alloc(&content, MOST_BYTES, 1);
    if (s == TUTTI_OK && fread(content, 1, MOST_BYTES, f) == MOST_BYTES)
        s = tutti_fail(TUTTI_PARSE, "%s is larger than 4 MiB", path);
    if (s == TUTTI_OK) s = tutti_platform_parse(out, path, content);
    fclose(f);
    tutti_free(content);
    return s;
}

static bool find_in_directories(const char *name, char *path, size_t bytes)
{
    const char *dirs = getenv("TUTTI_PLATFORMS");
    for (; dirs && *dirs; dirs += strspn(dirs, ":")) {
        const size_t length = strcspn(dirs, ":");
        const int n = snprintf(path, bytes, "%.*s/%s.platform", (int)length, dirs, name);
        FILE *f = n > 0 && (size_t)n < bytes ? fopen(path, "rb") : NULL;
        if (f) {
            fclose(f);
            return true;
        }
        dirs += length;
    }
    return false;
}

static tutti_status unknown(const char *name)
{
    char list[512] = "";
    for (int i = 0; tutti_platforms[i].name; i++) {
        const size_t used = strlen(list);
        snprintf(list + used, sizeof list - used, "%s%s", used ? ", " : "",
                 tutti_platforms[i].name);
    }
    return tutti_fail(TUTTI_ARGUMENT,
                      "there is no platform '%s'; known are %s, and any FILE.platform (tutti "
                      "calibrate writes one)",
                      name, list);
}

tutti_status tutti_platform_load(tutti_platform **out, const char *name)
{
    char path[4096];
    const char *dot = strrchr(name, '.');
    if (strchr(name, '/') || (dot && !strcmp(dot, ".platform"))) return load_path(out, name);
    if (find_in_directories(name, path, sizeof path)) return load_path(out, path);
    for (const tutti_known_platform *k = tutti_platforms; k->name; k++)
        if (!strcmp(k->name, name)) return tutti_platform_parse(out, k->name, k->text);
    return unknown(name);
}
