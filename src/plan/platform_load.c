#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"
#include "plan/platform.h"
#include "plan/platforms.h"

const char *tutti_platform_known(int index)
{
    return index < 0 ? NULL : tutti_platforms[index].name;
}

static tutti_status load_path(tutti_platform **out, const char *path, const char *name)
{
    tutti_text *text = NULL;
    TUTTI_TRY(tutti_text_open(&text, path));
    return tutti_platform_read(out, name, text);
}

tutti_status tutti_platform_home(char *path, size_t size)
{
    const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    const int n = cache && *cache == '/' ? snprintf(path, size, "%s/tutti", cache)
                  : home && *home        ? snprintf(path, size, "%s/.cache/tutti", home)
                                         : -1;
    if (n < 0 || (size_t)n >= size)
        return tutti_fail(TUTTI_IO, "neither XDG_CACHE_HOME nor HOME says where to keep files");
    return TUTTI_OK;
}

void tutti_platform_here(char name[TUTTI_HERE_NAME], int ranks, int threads)
{
    snprintf(name, TUTTI_HERE_NAME, "here-%dx%d", ranks, threads);
}

/* What was measured cannot be used; tutti_message says why. */
static tutti_status unusable(tutti_status why, const char *name)
{
    int ranks = 1;
    const char *const reason = tutti_message();
    const int first_line = (int)strcspn(reason, "\n");
    if (sscanf(name, "here-%dx", &ranks) == 1 && ranks > 1)
        return tutti_fail(why, "%.*s; 'mpirun -n %d tutti calibrate' measures it again", first_line,
                          reason, ranks);
    return tutti_fail(why, "%.*s; 'tutti calibrate' measures it again", first_line, reason);
}

static tutti_status load_from_home(tutti_platform **out, const char *path, const char *name)
{
    tutti_platform *p = NULL;
    tutti_status s = load_path(&p, path, name);
    if (s == TUTTI_OK && !p->has_sum)
        s = tutti_fail(TUTTI_PARSE, "%s: it has no sum in its first line, so it may be damaged",
                       path);
    if (s == TUTTI_OK) {
        *out = p;
        return TUTTI_OK;
    }
    tutti_platform_destroy(&p);
    return unusable(s, name);
}

static bool is_at_home(char *path, size_t size, const char *name)
{
    if (tutti_platform_home(path, size) != TUTTI_OK) return false;
    const size_t used = strlen(path);
    const int n = snprintf(path + used, size - used, "/%s.platform", name);
    return n > 0 && (size_t)n < size - used && access(path, R_OK) == 0;
}

static tutti_status unknown(const char *name)
{
    char list[512] = "";
    for (int i = 0; tutti_platforms[i].name; i++) {
        const size_t used = strlen(list);
        snprintf(list + used, sizeof list - used, "%s%s", used ? ", " : "",
                 tutti_platforms[i].name);
    }
    if (!strncmp(name, "here", 4))
        return tutti_fail(TUTTI_ARGUMENT,
                          "platform '%s': this machine has not been measured yet; run 'tutti "
                          "calibrate', or for several ranks 'mpirun -n RANKS tutti calibrate'",
                          name);
    return tutti_fail(TUTTI_ARGUMENT,
                      "there is no platform '%s'; known: %s, here, and any FILE.platform", name,
                      list);
}

static bool is_among_the_users(char *path, size_t size, const char *name)
{
    return tutti_text_find(path, size, "TUTTI_PLATFORMS", name, ".platform");
}

bool tutti_platform_exists(const char *name)
{
    char path[4096];
    return is_among_the_users(path, sizeof path, name) || is_at_home(path, sizeof path, name);
}

tutti_status tutti_platform_load(tutti_platform **out, const char *name)
{
    char path[4096];
    if (tutti_text_is_path(name, ".platform")) return load_path(out, name, name);
    if (is_among_the_users(path, sizeof path, name)) return load_path(out, path, name);
    if (is_at_home(path, sizeof path, name)) return load_from_home(out, path, name);
    for (const tutti_known_platform *k = tutti_platforms; k->name; k++)
        if (!strcmp(k->name, name)) return tutti_platform_parse(out, k->name, k->text);
    return unknown(name);
}
