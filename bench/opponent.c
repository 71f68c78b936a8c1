#define _GNU_SOURCE
#include "opponent.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

// clang-format off
static const struct {
    const char *script, *title;
    bool has_ranks;
} opponents[] = {
    {0},
    {"torch_step.py",      "PyTorch",    true},
    {"tensorflow_step.py", "TensorFlow", false},
};
static const char *const precisions[] = {"fp32", "bf16"};
// clang-format on

/* $TUTTI_PYTHON, else what tools/setup opponents made. */
static const char *python(void)
{
    const char *told = getenv("TUTTI_PYTHON");
    return told && *told ? told : OPPONENTS_PYTHON;
}

/* The net's text without blocks, which is all that the scripts read. */
static bool write_net(const tutti_net *net, char path[])
{
    const int fd = mkstemps(path, 4);
    FILE *file = fd < 0 ? NULL : fdopen(fd, "w");
    if (!file) return false;
    const bool printed = tutti_net_print(net, file) == TUTTI_OK;
    return !fclose(file) && printed;
}

static void become_it(const opponent_question *q, const char *net)
{
    char script[4096], batch[16], threads[16], processes[16];
    cpu_set_t cores = q->cores;
    snprintf(script, sizeof script, "%s/%s", OPPONENTS_FOLDER, opponents[q->opponent].script);
    snprintf(batch, sizeof batch, "%d", q->batch);
    snprintf(threads, sizeof threads, "%d", q->threads);
    snprintf(processes, sizeof processes, "%d", q->ranks);
    unsetenv("OMP_NUM_THREADS");
    if (q->ranks > 1) memset(&cores, 0xff, sizeof cores); /* the launcher left us one */
    sched_setaffinity(0, sizeof cores, &cores);
    execlp(python(), python(), script, net, batch, threads, "--serve", "--processes", processes,
           "--precision", precisions[q->precision], (char *)NULL);
    _exit(127);
}

static bool start(opponent *o, const opponent_question *q, const char *net)
{
    int to[2], from[2];
    if (pipe(to)) return false;
    if (pipe(from) || (o->pid = fork()) < 0) return false;
    if (o->pid == 0) {
        dup2(to[0], 0);
        dup2(from[1], 1);
        close(to[1]);
        close(from[0]);
        become_it(q, net);
    }
    close(to[0]);
    close(from[1]);
    o->to = fdopen(to[1], "w");
    o->from = fdopen(from[0], "r");
    return o->to && o->from;
}

tutti_status opponent_open(opponent *o, const opponent_question *q)
{
    char net[] = "/tmp/tutti-step-XXXXXX.net", line[256];
    const char *title = opponents[q->opponent].title;
    *o = (opponent){.best = INFINITY};
    if (q->ranks > 1 && !opponents[q->opponent].has_ranks)
        return tutti_fail(TUTTI_UNSUPPORTED, "%s is compared with on one rank only", title);
    const bool is_ready = write_net(q->net, net) && start(o, q, net) &&
                          fgets(line, sizeof line, o->from) &&
                          sscanf(line, "ready %79[^\n]", o->name) == 1;
    unlink(net);
    if (is_ready) return TUTTI_OK;
    opponent_close(o);
    return tutti_fail(TUTTI_UNSUPPORTED,
                      "%s in %s did no step: see above, or run tools/setup opponents, or name one "
                      "that can: TUTTI_PYTHON=...",
                      title, python());
}

tutti_status opponent_steps(opponent *o, int count)
{
    double seconds = 0;
    for (int i = 0; i < count; i++) {
        char line[256];
        fprintf(o->to, "\n");
        fflush(o->to);
        if (!fgets(line, sizeof line, o->from))
            return tutti_fail(TUTTI_UNSUPPORTED, "%s failed in a step", o->name);
        seconds += atof(line);
    }
    o->best = fmin(o->best, seconds / count);
    return TUTTI_OK;
}

void opponent_close(opponent *o)
{
    char line[65536];
    if (o->to) fclose(o->to);
    if (o->from && fgets(line, sizeof line, o->from)) {
        json_t *j = json_loads(line, 0, NULL);
        o->rss = json_number_value(json_object_get(j, "max_rss_bytes"));
        json_decref(j);
    }
    if (o->from) fclose(o->from);
    if (o->pid > 0) waitpid(o->pid, NULL, 0);
    o->pid = 0;
    o->to = o->from = NULL;
}
