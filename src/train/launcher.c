#define _GNU_SOURCE
#include "train/launcher.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "comm/launch.h"

enum { HIGHEST = 8 }; /* scripts and tools between a launcher and its rank */

/* How the names of launchers begin: mpirun.openmpi, mpiexec.hydra, hydra_pmi_proxy. */
static const char *const launchers[] = {"mpirun", "mpiexec", "orte", "prte", "hydra", "slurmstepd"};

typedef struct process {
    int parent;
    char state, name[32];
    unsigned long long started;
} process;

/* /proc/PID/stat is "pid (name) state parent ...", where the name may hold anything. */
static bool look_at(process *out, int pid)
{
    char path[64], text[1024];
    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    FILE *f = fopen(path, "re");
    if (!f) return false;
    text[fread(text, 1, sizeof text - 1, f)] = 0;
    fclose(f);
    const char *name = strchr(text, '('), *end = strrchr(text, ')');
    if (!name || !end || end < name) return false;
    snprintf(out->name, sizeof out->name, "%.*s", (int)(end - name - 1), name + 1);
    return sscanf(end + 1,
                  " %c %d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %llu",
                  &out->state, &out->parent, &out->started) == 3;
}

static bool is_launcher(const char *name)
{
    for (size_t i = 0; i < sizeof launchers / sizeof *launchers; i++)
        if (!strncmp(name, launchers[i], strlen(launchers[i]))) return true;
    return false;
}

tutti_launcher tutti_launcher_above(int parent)
{
    tutti_launcher none = {0};
    process p;
    for (int i = 0; i < HIGHEST && parent > 1 && look_at(&p, parent); i++, parent = p.parent) {
        if (!is_launcher(p.name)) continue;
        tutti_launcher found = {.pid = parent, .started = p.started};
        snprintf(found.name, sizeof found.name, "%s", p.name);
        return found;
    }
    return none;
}

tutti_launcher tutti_launcher_find(void)
{
    tutti_launch launch;
    if (tutti_launch_detect(&launch, getenv) || !launch.launcher) return (tutti_launcher){0};
    return tutti_launcher_above(getppid());
}

bool tutti_launcher_is_gone(tutti_launcher *launcher)
{
    process p;
    const double now = tutti_now();
    if (!launcher->pid || launcher->gone || now - launcher->looked < 1) return launcher->gone;
    launcher->looked = now;
    launcher->gone =
        !look_at(&p, launcher->pid) || p.started != launcher->started || p.state == 'Z';
    return launcher->gone;
}
