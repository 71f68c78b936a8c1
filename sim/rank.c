/* A rank's life: a stepper's step, again and again, without samples and without arithmetic. */
#include <simgrid/actor.h>
#include <simgrid/engine.h>
#include <simgrid/host.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/random.h"
#include "sim.h"

/* What one core streams: of an addition the other operand, for the sum stays in its cache (measured
 * on an Ice Lake: 0.3 to 0.4 ns a float); of a copy both; of an update what the optimizer reads
 * and writes. */
enum { FLOAT_BYTES = 4, ADD_ACCESSES = 1, COPY_ACCESSES = 2, TRACE_EVENTS = 4096 };

/* ---- turns ---- */

static void turn(sim_rank *r)
{
    sim_scenario *s = r->scenario;
    const double now = simgrid_get_clock();
    const double exposed = r->exposed + tutti_stepper_exposed(r->stepper);
    const uint64_t sent = tutti_stepper_traffic(r->stepper, -1).bytes;
    const int step = r->turns++;
    s->turn[step] = fmax(s->turn[step], now);
    if (step == 0) {
        r->exposed -= exposed;
        r->sent_before = sent;
        if (r->number == 0) sim_links_watch(s);
    }
    if (r->turns < s->steps) return;
    s->exposed += exposed;
    if (sent - r->sent_before > s->bytes_sent) s->bytes_sent = sent - r->sent_before;
    if (!s->trace) sim_is_done(s);
}

/* ---- what stands in for the arithmetic ---- */

static void compute(void *user, int layer, tutti_layer_pass pass, double part)
{
    sim_rank *r = user;
    if (pass != TUTTI_PASS_FORWARD && r->turns == tutti_stepper_steps(r->stepper)) turn(r);
    const tutti_pass_seconds *t = &r->scenario->prediction->layer[layer].compute;
    const double seconds[] = {[TUTTI_PASS_FORWARD] = t->forward,
                              [TUTTI_PASS_WEIGHTS] = t->weights,
                              [TUTTI_PASS_DATA] = t->data};
    sim_compute(r, part * seconds[pass]);
}

static void copy(void *user, size_t floats)
{
    sim_rank *r = user;
    sim_compute(r, 2 * FLOAT_BYTES * (double)floats / r->scenario->platform->memory_bandwidth);
}

static void update(void *user, size_t floats, bool by_comm_thread)
{
    sim_rank *r = user;
    const int accesses = tutti_optimizer_cost_of(&r->scenario->optimizer).accesses;
    const double seconds = tutti_platform_update(r->scenario->platform, (double)floats, accesses);
    const double stream = sim_core_stream(r->scenario, accesses * FLOAT_BYTES * (double)floats);
    if (by_comm_thread) sim_owe(r, fmax(seconds, stream));
    else sim_compute(r, seconds);
}

static void add(void *user, size_t floats)
{
    sim_rank *r = user;
    if (r->scenario->platform->exchange_count) return; /* measured ones have it in them */
    sim_owe(r, sim_core_stream(r->scenario, ADD_ACCESSES * FLOAT_BYTES * (double)floats));
}

/* Small ones may be of records whose contents matter. */
static void pack(void *user, void *to, const void *from, size_t bytes)
{
    sim_rank *r = user;
    if (bytes <= SIM_RECORD) memcpy(to, from, bytes);
    if (r->scenario->platform->exchange_count) return; /* measured ones have it in them */
    sim_owe(r, sim_core_stream(r->scenario, COPY_ACCESSES * (double)bytes));
}

/* How much slower than the platform says this node computes in this step. */
static double slowness(const sim_rank *r, int step)
{
    const sim_scenario *s = r->scenario;
    const tutti_random_key key = {.seed = 1, .when = (uint32_t)step, .sample = (uint32_t)r->number};
    const double straggler = r->number == s->nodes - 1 ? s->straggler : 1;
    return straggler * fmax(1 + s->jitter * tutti_random_normal(&key, 0), 0.1);
}

/* ---- a life ---- */

static tutti_status one_step(sim_rank *r, int step)
{
    sim_scenario *s = r->scenario;
    tutti_news news;
    r->slowness = slowness(r, step);
    sim_compute(r, s->prediction->input_s);
    if (s->nodes > 1) sg_actor_sleep_for(s->platform->meeting);
    TUTTI_TRY(tutti_stepper_step(r->stepper, &(tutti_samples){0}, 0, (tutti_note){0}, &news));
    r->exposed += tutti_stepper_exposed(r->stepper);
    return TUTTI_OK;
}

/* What the last step began ends here when the trace shall show it. */
static tutti_status write_trace(sim_rank *r, const tutti_trace *trace, double origin)
{
    const char *path = r->scenario->trace;
    tutti_news news;
    if (!path) return TUTTI_OK;
    TUTTI_TRY(tutti_stepper_settle(r->stepper, &news));
    TUTTI_TRY(tutti_comm_agree(r->comm, tutti_trace_write(trace, path, origin)));
    return r->number ? TUTTI_OK : tutti_trace_join(path, r->scenario->nodes);
}

static void say_done(int step)
{
    printf("done %d\n", step + 1);
    fflush(stdout);
}

static tutti_status run_steps(sim_rank *r, const tutti_trace *trace)
{
    sim_scenario *s = r->scenario;
    TUTTI_TRY(tutti_comm_barrier(r->comm));
    const double origin = simgrid_get_clock();
    for (int step = 0; step < s->steps; step++) {
        TUTTI_TRY(one_step(r, step));
        if (r->number == 0) say_done(step);
    }
    return write_trace(r, trace, origin);
}

/* A node is a host of its own, unless the platform was measured with several ranks on each. */
static int host_of(const sim_rank *r)
{
    const int ranks = r->scenario->platform->ranks;
    return ranks > 1 ? r->number / ranks : r->number;
}

static tutti_status open_comm(sim_rank *r)
{
    char host[32];
    const tutti_comm_world world = {.user = r,
                                    .host = host,
                                    .add = add,
                                    .copy = pack,
                                    .take_memory = sim_take_inbox,
                                    .give_memory = sim_give_inbox};
    tutti_comm_options o = tutti_comm_defaults();
    o.no_thread = true;
    o.stall_warn = o.stall_abort = 0;
    o.world = &world;
    snprintf(host, sizeof host, "host-%d", host_of(r));
    return tutti_comm_open(&r->comm, &o);
}

static tutti_status live(sim_rank *r, const tutti_stand_in *stand_in)
{
    const sim_scenario *s = r->scenario;
    tutti_trace *trace = NULL;
    TUTTI_TRY(open_comm(r));
    if (s->trace) TUTTI_TRY(tutti_trace_create(&trace, r->number, TRACE_EVENTS));
    const tutti_stepper_options o = {
        .comm = r->comm,
        .net = s->net,
        .batch = s->batch,
        .micro_batch = s->micro_batch,
        .grains = s->grains,
        .groups = s->plan->groups,
        .late = s->prediction->late,
        .optimizer = s->optimizer,
        .overlap = s->overlap,
        .priority = s->priority,
        .trace = trace,
        .stand_in = stand_in,
    };
    TUTTI_TRY(tutti_stepper_create(&r->stepper, &o));
    return run_steps(r, trace);
}

_Noreturn void sim_fail(const sim_rank *r)
{
    fprintf(stderr, "rank %d: %s\n", r->number, tutti_message());
    exit(1);
}

void sim_rank_main(int argc, char **argv)
{
    (void)argc, (void)argv;
    sim_rank *r = sg_host_get_data(sg_host_self());
    sim_scenario *s = r->scenario;
    const tutti_stand_in stand_in = {r, compute, copy, update};
    if (live(r, &stand_in) != TUTTI_OK) sim_fail(r);
    if (s->trace) sim_is_done(s);
    sg_actor_suspend(sg_actor_self()); /* the others may still want something of this rank */
}
