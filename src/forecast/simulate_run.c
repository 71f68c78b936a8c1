/* One number of nodes: writes what the simulator reads, runs it, reads what it says. */
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/bar.h"
#include "base/memory.h"
#include "format/file.h"
#include "nn/model.h"
#include "forecast/simgrid_xml.h"
#include "forecast/simulate.h"

enum {
    PATH_BYTES = 4200,
    MOST_NODES = 4096,
    MOST_STEPS = 64,
    MANY_NODES = 64,
    WORDS = 40,
    WORD_BYTES = 32
};

extern char **environ;

/* What is passed on, and the memory of the numbers among it. */
typedef struct command {
    char *words[WORDS];
    char numbers[WORDS][WORD_BYTES];
    int count;
    char plan[PATH_BYTES], network[PATH_BYTES], ranks[PATH_BYTES], errors[PATH_BYTES];
} command;

/* ---- files ---- */

static tutti_status save(char path[PATH_BYTES], const char *folder, const char *name,
                         const tutti_string *text)
{
    snprintf(path, PATH_BYTES, "%s/%s", folder, name);
    TUTTI_TRY(tutti_string_status(text));
    return tutti_file_save(path, text->data, text->length);
}

static tutti_status save_plan(command *c, const tutti_planner *p, int row, const char *folder)
{
    char *text = NULL;
    snprintf(c->plan, sizeof c->plan, "%s/plan", folder);
    TUTTI_TRY(tutti_plan_text(&text, p->rows[row].plan, p->net));
    const tutti_status s = tutti_file_save(c->plan, text, strlen(text));
    tutti_free(text);
    return s;
}

static tutti_status write_files(command *c, const tutti_planner *p, int row, const char *folder)
{
    tutti_string network = {0}, ranks = {0};
    const int nodes = p->rows[row].nodes;
    tutti_status s = tutti_simgrid_xml_network(&network, p->platform, nodes);
    tutti_simgrid_xml_ranks(&ranks, nodes);
    if (s == TUTTI_OK) s = save(c->network, folder, "network.xml", &network);
    if (s == TUTTI_OK) s = save(c->ranks, folder, "ranks.xml", &ranks);
    if (s == TUTTI_OK) s = save_plan(c, p, row, folder);
    snprintf(c->errors, sizeof c->errors, "%s/errors", folder);
    tutti_string_deinit(&network);
    tutti_string_deinit(&ranks);
    return s;
}

/* ---- arguments ---- */

/* As many grains as the trainer would take, or as these nodes need. */
static tutti_status choose_grains(const tutti_planner *p, int nodes, int *grains)
{
    *grains = tutti_default_grains(p->net, p->batch);
    while (*grains < nodes) *grains *= 2;
    if (*grains <= p->batch) return TUTTI_OK;
    return tutti_fail(TUTTI_ARGUMENT,
                      "%d nodes need %d grains, more than the %d samples of a minibatch: take a "
                      "power of two of nodes or a larger batch",
                      nodes, *grains, p->batch);
}

static void say(command *c, const char *name, const char *value)
{
    c->words[c->count++] = (char *)(uintptr_t)name;
    c->words[c->count++] = (char *)(uintptr_t)value;
}

static void say_number(command *c, const char *name, double value)
{
    snprintf(c->numbers[c->count], WORD_BYTES, "%.9g", value);
    say(c, name, c->numbers[c->count]);
}

/* A step of many nodes is long to wait for. */
static int steps_of(const tutti_simulation *s, int row)
{
    const int asked = s->options->steps;
    return asked ? asked : s->planner->rows[row].nodes > MANY_NODES ? 2 : 3;
}

static tutti_status compose(command *c, const tutti_simulation *s, int row, const char *program)
{
    const tutti_simulate_options *o = s->options;
    const tutti_planner *p = s->planner;
    const int nodes = p->rows[row].nodes;
    const int steps = steps_of(s, row);
    int grains;
    if (nodes > MOST_NODES)
        return tutti_fail(TUTTI_ARGUMENT, "%d nodes: the simulator takes up to %d", nodes,
                          MOST_NODES);
    if (steps < 2 || steps > MOST_STEPS)
        return tutti_fail(TUTTI_ARGUMENT, "%d steps: the simulator takes 2 to %d", steps,
                          MOST_STEPS);
    TUTTI_TRY(choose_grains(p, nodes, &grains));
    c->words[c->count++] = (char *)(uintptr_t)program;
    say(c, "--net", o->net);
    if (o->precision) say(c, "--precision", o->precision);
    say(c, "--platform", o->platform);
    say(c, "--plan", c->plan);
    say(c, "--network", c->network);
    say(c, "--deployment", c->ranks);
    say_number(c, "--nodes", nodes);
    say_number(c, "--batch-size", p->batch);
    say_number(c, "--grains", grains);
    say_number(c, "--micro-batch", o->micro_batch);
    say_number(c, "--steps", steps);
    say_number(c, "--overlap", o->overlap);
    say_number(c, "--priority", o->priority);
    say_number(c, "--jitter", o->jitter);
    say_number(c, "--straggler", o->straggler);
    if (o->trace && row == p->count - 1) say(c, "--trace", o->trace);
    return TUTTI_OK;
}

/* ---- the program ---- */

/* Standard output becomes *answers, standard error a file. */
static tutti_status start(const command *c, pid_t *pid, FILE **answers)
{
    int pipe_ends[2];
    posix_spawn_file_actions_t actions;
    if (pipe(pipe_ends)) return tutti_fail(TUTTI_IO, "pipe: %s", strerror(errno));
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, pipe_ends[1], STDOUT_FILENO);
    posix_spawn_file_actions_addclose(&actions, pipe_ends[0]);
    posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, c->errors,
                                     O_WRONLY | O_CREAT | O_TRUNC, 0600);
    const int error = posix_spawn(pid, c->words[0], &actions, NULL, c->words, environ);
    posix_spawn_file_actions_destroy(&actions);
    close(pipe_ends[1]);
    *answers = error ? NULL : fdopen(pipe_ends[0], "r");
    if (*answers) return TUTTI_OK;
    close(pipe_ends[0]);
    return tutti_fail(TUTTI_IO, "cannot run %s: %s", c->words[0], strerror(error ? error : errno));
}

static const struct answer {
    const char *name;
    size_t offset;
} answers_known[] = {
    {"step_s", offsetof(tutti_simulated, step_s)},
    {"exposed_s", offsetof(tutti_simulated, exposed_s)},
    {"bytes_sent", offsetof(tutti_simulated, bytes_sent)},
    {"busiest_share", offsetof(tutti_simulated, busiest)},
};

static void hear(tutti_simulated *out, const char *name, const char *value)
{
    for (size_t i = 0; i < sizeof answers_known / sizeof *answers_known; i++)
        if (!strcmp(answers_known[i].name, name))
            *(double *)(void *)((char *)out + answers_known[i].offset) = strtod(value, NULL);
    if (!strcmp(name, "busiest_link"))
        snprintf(out->busiest_link, sizeof out->busiest_link, "%.63s", value);
}

static void show_progress(const tutti_simulation *s, int row, tutti_bar *bar, int done)
{
    char what[64];
    snprintf(what, sizeof what, "simulating %d nodes", s->planner->rows[row].nodes);
    tutti_bar_show(bar, what, done, steps_of(s, row));
}

static void listen(const tutti_simulation *s, int row, FILE *answers, tutti_simulated *out)
{
    char line[256], name[64], value[128];
    tutti_bar bar = {.stream = s->options->progress};
    show_progress(s, row, &bar, 0);
    while (fgets(line, sizeof line, answers)) {
        if (sscanf(line, "%63s %127s", name, value) != 2) continue;
        if (!strcmp(name, "done")) show_progress(s, row, &bar, atoi(value));
        else hear(out, name, value);
    }
    show_progress(s, row, &bar, steps_of(s, row));
}

/* The first line of what it complained about. */
static tutti_status complain(const command *c, int nodes, int how)
{
    char *text = NULL;
    size_t length = 0;
    if (tutti_file_load(&text, &length, c->errors, 1 << 20) != TUTTI_OK) text = NULL;
    if (text) text[strcspn(text, "\n")] = 0;
    const tutti_status s = tutti_fail(TUTTI_UNSUPPORTED, "simulating %d nodes: %s", nodes,
                                      text && *text      ? text
                                      : WIFSIGNALED(how) ? strsignal(WTERMSIG(how))
                                                         : "the simulator ended without an answer");
    tutti_free(text);
    return s;
}

tutti_status tutti_simulation_run(tutti_simulation *s, int row, const char *program,
                                  const char *folder)
{
    command c = {.count = 0};
    const tutti_planner_row *planned = &s->planner->rows[row];
    tutti_simulated *out = &s->rows[row];
    FILE *answers = NULL;
    pid_t pid = 0;
    int how = 0;
    TUTTI_TRY(write_files(&c, s->planner, row, folder));
    TUTTI_TRY(compose(&c, s, row, program));
    TUTTI_TRY(start(&c, &pid, &answers));
    listen(s, row, answers, out);
    fclose(answers);
    waitpid(pid, &how, 0);
    if (!WIFEXITED(how) || WEXITSTATUS(how) || !(out->step_s > 0))
        return complain(&c, planned->nodes, how);
    out->speedup = planned->one_node_s / out->step_s;
    out->efficiency = out->speedup / planned->nodes;
    return TUTTI_OK;
}
