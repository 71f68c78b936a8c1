#include "machine/room.h"

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

enum { STACKS = 64 << 20 }; /* of a few threads: addresses, hardly any memory */

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static uint64_t rest(uint64_t limit, uint64_t used)
{
    return limit > used ? limit - used : 0;
}

/* The number after 'key' at the beginning of a line of a file; of the first line, if it is "". */
static bool read_number(const char *folder, const char *name, const char *key, uint64_t *out)
{
    char path[3 * PATH_MAX], line[256];
    unsigned long long number;
    bool found = false;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "r");
    if (!file) return false;
    while (!found && fgets(line, sizeof line, file))
        found =
            !strncmp(line, key, strlen(key)) && sscanf(line + strlen(key), "%llu", &number) == 1;
    fclose(file);
    if (found) *out = number;
    return found;
}

/* ---- the machine ---- */

static uint64_t machine_leaves(const char *root)
{
    uint64_t kib;
    return read_number(root, "proc/meminfo", "MemAvailable:", &kib) ? kib << 10 : UINT64_MAX;
}

/* ---- control groups ---- */

/* How a version of them names things. */
typedef struct version {
    const char *controller; /* in /proc/self/cgroup */
    const char *mount, *limit, *used, *cache;
} version;

static const version versions[] = {
    {":", "/sys/fs/cgroup", "memory.max", "memory.current", "inactive_file "},
    {":memory:", "/sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes",
     "total_inactive_file "},
};

/* What one group leaves: pages of files that nobody has used for a while give way. */
static uint64_t group_leaves(const char *folder, const version *v)
{
    uint64_t limit, used, cache = 0;
    if (!read_number(folder, v->limit, "", &limit)) return UINT64_MAX; /* "max", or none */
    if (!read_number(folder, v->used, "", &used)) return UINT64_MAX;
    (void)read_number(folder, "memory.stat", v->cache, &cache);
    return rest(limit, rest(used, cache));
}

/* The name of this process's group: "/job/step". */
static bool find_group(const char *root, const version *v, char *out, size_t size)
{
    char path[PATH_MAX], line[PATH_MAX];
    bool found = false;
    snprintf(path, sizeof path, "%s/proc/self/cgroup", root);
    FILE *file = fopen(path, "r");
    if (!file) return false;
    while (!found && fgets(line, sizeof line, file)) {
        const char *name = strchr(line, ':');
        if (!name || strncmp(name, v->controller, strlen(v->controller)) != 0) continue;
        name += strlen(v->controller);
        if (v == versions && *name++ != ':') continue; /* "0::/job" is the second version's */
        found = snprintf(out, size, "%.*s", (int)strcspn(name, "\n"), name) < (int)size;
    }
    fclose(file);
    return found;
}

/* The least that the group and those above it leave. */
static uint64_t groups_leave(const char *root, const version *v)
{
    char name[PATH_MAX / 2], folder[2 * PATH_MAX];
    uint64_t leaves = UINT64_MAX;
    if (!find_group(root, v, name, sizeof name)) return leaves;
    for (char *end = name + strlen(name); end; end = strrchr(name, '/')) {
        *end = 0;
        snprintf(folder, sizeof folder, "%s%s%s", root, v->mount, name);
        leaves = least(leaves, group_leaves(folder, v));
    }
    return leaves;
}

/* ---- limits of the process ---- */

/* 'spoken_for': by what threads to come reserve. */
static uint64_t limit_leaves(int which, const char *root, const char *key, uint64_t spoken_for)
{
    struct rlimit limit;
    uint64_t kib;
    if (getrlimit(which, &limit) || limit.rlim_cur == RLIM_INFINITY) return UINT64_MAX;
    return read_number(root, "proc/self/status", key, &kib)
               ? rest(limit.rlim_cur, (kib << 10) + spoken_for)
               : UINT64_MAX;
}

tutti_room tutti_room_find(const char *root)
{
    tutti_room room = {machine_leaves(root), UINT64_MAX};
    for (size_t i = 0; i < sizeof versions / sizeof *versions; i++)
        room.host = least(room.host, groups_leave(root, &versions[i]));
    room.own = least(limit_leaves(RLIMIT_AS, root, "VmSize:", STACKS),
                     limit_leaves(RLIMIT_DATA, root, "VmData:", STACKS));
    return room;
}

uint64_t tutti_room_of(const tutti_room *room, int ranks)
{
    const uint64_t share = room->host == UINT64_MAX ? UINT64_MAX : room->host / (uint64_t)ranks;
    return least(share, room->own);
}
