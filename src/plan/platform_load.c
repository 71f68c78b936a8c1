#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "plan/platform.h"
#include "plan/platforms.h"

const char *tutti_platform_known(int index)
{
    return index < 0 ? NULL : tutti_platforms[index].name;
}

static tutti_status load_path(tutti_platform **out, const char *path)
{
    tutti_text *text = NULL;
    TUTTI_TRY(tutti_text_open(&text, path));
    return tutti_platform_read(out, path, text);
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
                      "there is no platform '%s'; known are %s, and any FILE.platform", name, list);
}

tutti_status tutti_platform_load(tutti_platform **out, const char *name)
{
    char path[4096];
    if (tutti_text_is_path(name, ".platform")) return load_path(out, name);
    if (tutti_text_find(path, sizeof path, "TUTTI_PLATFORMS", name, ".platform"))
        return load_path(out, path);
    for (const tutti_known_platform *k = tutti_platforms; k->name; k++)
        if (!strcmp(k->name, name)) return tutti_platform_parse(out, k->name, k->text);
    return unknown(name);
}
