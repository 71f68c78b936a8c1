/* tutti-sim: what `tutti simulate` runs for one number of nodes. It is told everything by its
 * arguments (checked by the caller) and answers in lines of a name and a value. */
#include <simgrid/engine.h>
#include <simgrid/host.h>
#include <simgrid/plugins/load.h>
#include <smpi/mpi.h>
#include <xbt/config.h>

#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "sim.h"

/* ---- arguments ---- */

typedef enum { TEXT, WHOLE, REAL } kind;

static const struct argument {
    const char *name;
    kind kind;
    size_t offset;
} arguments[] = {
#define A(name, kind, field)                           \
    {                                                  \
        "--" name, kind, offsetof(sim_scenario, field) \
    }
    A("net", TEXT, net_name),
    A("platform", TEXT, platform_name),
    A("plan", TEXT, plan_path),
    A("network", TEXT, network),
    A("deployment", TEXT, deployment),
    A("trace", TEXT, trace),
    A("precision", TEXT, asked_precision),
    A("nodes", WHOLE, nodes),
    A("batch-size", WHOLE, batch),
    A("grains", WHOLE, grains),
    A("micro-batch", WHOLE, micro_batch),
    A("steps", WHOLE, steps),
    A("overlap", WHOLE, overlap),
    A("priority", WHOLE, priority),
    A("jitter", REAL, jitter),
    A("straggler", REAL, straggler),
#undef A
};

static tutti_status take(sim_scenario *s, const char *name, const char *value)
{
    for (size_t i = 0; i < sizeof arguments / sizeof *arguments; i++) {
        const struct argument *a = &arguments[i];
        void *field = (char *)s + a->offset;
        if (strcmp(a->name, name)) continue;
        if (a->kind == TEXT) *(const char **)field = value;
        else if (a->kind == WHOLE) *(int *)field = atoi(value);
        else *(double *)field = atof(value);
        return TUTTI_OK;
    }
    return tutti_fail(TUTTI_ARGUMENT, "there is no argument %s", name);
}

static tutti_status read_arguments(sim_scenario *s, int argc, char **argv)
{
    for (int i = 1; i + 1 < argc; i += 2) TUTTI_TRY(take(s, argv[i], argv[i + 1]));
    if (!s->net_name || !s->platform_name || !s->network || !s->deployment || s->nodes < 1 ||
        s->nodes > SIM_MOST_NODES || s->steps < 2 || s->steps > SIM_MOST_STEPS)
        return tutti_fail(TUTTI_ARGUMENT, "this program is run by tutti simulate");
    return TUTTI_OK;
}

static tutti_status load(sim_scenario *s)
{
    tutti_suggested suggested;
    TUTTI_TRY(tutti_net_load(&s->net, s->net_name));
    TUTTI_TRY(tutti_net_set_precision(s->net, s->asked_precision));
    TUTTI_TRY(tutti_net_suggested(&suggested, s->net));
    s->optimizer = suggested.optimizer;
    const tutti_predict_options how = {s->batch,       s->overlap,
                                       s->priority,    tutti_optimizer_cost_of(&s->optimizer),
                                       s->micro_batch, s->grains};
    TUTTI_TRY(tutti_platform_load(&s->platform, s->platform_name));
    TUTTI_TRY(tutti_plan_read(&s->plan, s->net, s->nodes, s->plan_path));
    return tutti_predict_step(&s->prediction, s->net, s->platform, s->plan, &how);
}

/* ---- SimGrid ---- */

/* Flows that end so close together end at once, for each end costs a new division of all
 * bandwidths: of a step's computing this part. */
#define TIME_PRECISION  3e-5
#define SHARE_PRECISION 1e-3 /* of a bandwidth, with many nodes: SimGrid's sums are rounded */
#define SHARE_NODES     128

/* Links share their bandwidth fairly among the flows that cross them; no model of TCP, no
 * correction factors of somebody else's cluster. No message leaves before its receiver waits for
 * it: SimGrid 3.32 keeps those that do in one list and walks it for each, four fifths of its time
 * with 1,024 nodes. */
static void configure(sim_scenario *s)
{
    char *words[] = {(char[]){"tutti-sim"}, (char[]){"--log=root.thres:critical"}, NULL};
    int count = 2;
    smpi_init_options();
    simgrid_init(&count, words);
    sg_link_load_plugin_init();
    SMPI_init();
    sg_cfg_set_string("network/model", "CM02");
    sg_cfg_set_boolean("network/crosstraffic", "no");
    sg_cfg_set_double("network/TCP-gamma", 0);
    sg_cfg_set_double("network/latency-factor", 1);
    sg_cfg_set_double("network/bandwidth-factor", 1);
    sg_cfg_set_double("network/weight-S", 0);
    sg_cfg_set_boolean("smpi/simulate-computation", "no");
    sg_cfg_set_string("smpi/privatization", "no");
    sg_cfg_set_double("smpi/test", 0);
    sg_cfg_set_double("smpi/iprobe", 0);
    sg_cfg_set_int("smpi/send-is-detached-thresh", 0);
    sg_cfg_set_int("smpi/async-small-thresh", 0);
    sg_cfg_set_double("surf/precision", s->precision);
    if (s->nodes > SHARE_NODES) sg_cfg_set_double("maxmin/precision", SHARE_PRECISION);
    sg_cfg_set_int("contexts/stack-size", 1024); /* KiB */
}

static tutti_status simulate(sim_scenario *s)
{
    sim_rank *ranks = NULL;
    TUTTI_TRY(tutti_alloc(&ranks, (size_t)s->nodes, sizeof *ranks));
    s->precision = s->prediction->compute_s * TIME_PRECISION;
    configure(s);
    simgrid_load_platform(s->network);
    SMPI_app_instance_register("tutti", sim_rank_main, s->nodes);
    TUTTI_TRY(sim_world_init(s));
    for (int i = 0; i < s->nodes; i++) {
        char name[32];
        snprintf(name, sizeof name, "node-%d", i);
        ranks[i] = (sim_rank){.scenario = s, .number = i, .slowness = 1};
        if (s->platform->beside > 1) sim_links_of(&ranks[i]);
        sg_host_set_data(sg_host_by_name(name), &ranks[i]);
    }
    simgrid_load_deployment(s->deployment);
    simgrid_run(); /* the last rank ends the process, sim_is_done */
    return tutti_fail(TUTTI_COMM, "the simulation ended before its last step");
}

/* ---- the answer ---- */

static _Noreturn void finish(sim_scenario *s)
{
    const int counted = s->steps - 1;
    sim_links_find_busiest(s);
    printf("step_s %.9g\n", (s->turn[counted] - s->turn[0]) / counted);
    printf("exposed_s %.9g\n", s->exposed / counted / s->nodes);
    printf("bytes_sent %.9g\n", (double)s->bytes_sent / counted);
    printf("busiest_share %.6g\n", s->busiest);
    printf("busiest_link %s\n", *s->busiest_link ? s->busiest_link : "-");
    fflush(stdout);
    _exit(0);
}

void sim_is_done(sim_scenario *s)
{
    if (++s->done == s->nodes) finish(s);
}

int main(int argc, char **argv)
{
    sim_scenario s = {.straggler = 1, .overlap = 1, .priority = 1, .steps = 2};
    char size[16];
    tutti_status status = read_arguments(&s, argc, argv);
    snprintf(size, sizeof size, "%d", s.nodes);
    setenv("SMPI_GLOBAL_SIZE", size, 1); /* comm/launch.c looks for it */
    if (status == TUTTI_OK) status = load(&s);
    if (status == TUTTI_OK) status = simulate(&s);
    fprintf(stderr, "%s\n", tutti_message());
    return tutti_status_exit_code(status);
}
