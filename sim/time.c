/* Simulated time: what takes how long, and for whom.
 *
 * A rank has two threads in reality and one context here. While it computes it waits for messages
 * as well, as the communication thread would beside it, and lets the engine go on when there is
 * one. The work of that thread (posting messages, adding, updating) is a debt: beside computing the
 * engine rests until it is paid; while the rank only waits, the wait grows by it. Where cores are
 * scarce the platform says how much longer messages take beside computing ("beside"; the links of a
 * star are slower then) and how much of that time is lost to it ("steals"): computing takes that
 * much longer for each.
 *
 * The linker puts the functions named __wrap_* in the place of those they are named after. */
#include <simgrid/actor.h>
#include <simgrid/engine.h>
#include <simgrid/host.h>
#include <smpi/mpi.h>

#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "sim.h"

enum {
    LOOKS = 400, /* at least, of the engine in the time of a step's computing */
    ALARM_TAG = 1
};

#define CORE_BANDWIDTH 12e9   /* bytes/s that one core streams, if the node can */
#define POST_LEAST     0.2e-6 /* seconds an MPI library takes to post a message */
#define POST_MOST      2e-6
#define INSTANT        1e-9 /* seconds that are none */

// clang-format off
#define STAND_IN(type, name, ...)      \
    type __real_##name(__VA_ARGS__);   \
    type __wrap_##name(__VA_ARGS__);   \
    type __wrap_##name(__VA_ARGS__)
// clang-format on

sim_rank *sim_self(void)
{
    const sg_host_t host = sg_host_self();
    return host ? sg_host_get_data(host) : NULL;
}

STAND_IN(double, tutti_now, void)
{
    return simgrid_get_clock();
}

/* ---- the communication thread's work ---- */

double sim_core_stream(const sim_scenario *s, double bytes)
{
    return bytes / fmin(CORE_BANDWIDTH, s->platform->memory_bandwidth);
}

void sim_owe(sim_rank *r, double seconds)
{
    r->debt += seconds;
}

/* Beside computing the communication thread is busy for a while, and the engine rests. */
static void pay_beside(sim_rank *r)
{
    r->free_again = fmax(simgrid_get_clock(), r->free_again) + r->debt;
    r->debt = 0;
}

/* While nothing is computed the wait grows. */
static void pay_now(sim_rank *r)
{
    const double now = simgrid_get_clock();
    pay_beside(r);
    if (r->free_again > now + r->scenario->precision) sg_actor_sleep_until(r->free_again);
}

/* The platform's latency is a message's from end to end; some of it is the two ends' own work. */
static double post_seconds(const sim_rank *r)
{
    if (r->scenario->platform->exchange_count) return 0; /* measured ones have it in them */
    return fmin(fmax(r->scenario->platform->latency / 4, POST_LEAST), POST_MOST);
}

/* What a message takes from computing that goes on beside it. */
static double stolen_seconds(const sim_rank *r, double bytes)
{
    const tutti_platform *p = r->scenario->platform;
    return p->steals * fmax(p->beside, 1) * bytes / p->link;
}

/* Where cores are scarce messages take longer beside computing than alone. */
static void set_speed(sim_rank *r, bool computes)
{
    if (r->computes == computes) return;
    r->computes = computes;
    const double speed = r->speed / (computes ? r->scenario->platform->beside : 1);
    for (int i = 0; i < SIM_WAYS; i++)
        if (r->links[i]) sg_link_set_bandwidth(r->links[i], speed);
}

/* The engine watches for jams. */
static double between_looks(const sim_rank *r)
{
    return r->scenario->prediction->compute_s / LOOKS;
}

/* ---- messages ---- */

STAND_IN(int, MPI_Isend, const void *data, int count, MPI_Datatype type, int to, int tag,
         MPI_Comm comm, MPI_Request *request)
{
    sim_rank *r = sim_self();
    sim_owe(r, post_seconds(r));
    data = sim_payload(r->scenario, data, count);
    return __real_MPI_Isend(data, count, type, to, tag, comm, request);
}

STAND_IN(int, MPI_Irecv, void *data, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm,
         MPI_Request *request)
{
    sim_rank *r = sim_self();
    sim_owe(r, post_seconds(r));
    r->stolen += stolen_seconds(r, count);
    data = sim_payload(r->scenario, data, count);
    return __real_MPI_Irecv(data, count, type, from, tag, comm, request);
}

/* An alarm is a message of this rank to itself over its own loopback, which nothing else uses: it
 * can be waited for together with others. It cannot be taken back: one that is not needed any more
 * wakes the rank for nothing. */
static void set_alarm(sim_rank *r, double at)
{
    const double bytes = ceil((at - simgrid_get_clock()) * SIM_LOOPBACK);
    const int count = (int)fmin(fmax(bytes, 1), SIM_PAYLOAD), tag = ALARM_TAG;
    void *const nothing = r->scenario->payload;
    sim_alarm *const a = &r->alarms[r->alarm_count++];
    __real_MPI_Irecv(nothing, count, MPI_BYTE, r->number, tag, MPI_COMM_WORLD, &a->received);
    __real_MPI_Isend(nothing, count, MPI_BYTE, r->number, tag, MPI_COMM_WORLD, &a->sent);
    a->at = at;
}

static bool will_wake(const sim_rank *r)
{
    for (int i = 0; i < r->alarm_count; i++)
        if (r->alarms[i].at <= r->until) return true;
    return r->alarm_count == SIM_ALARMS;
}

static void hear_alarm(sim_rank *r, int which)
{
    MPI_Wait(&r->alarms[which].sent, MPI_STATUS_IGNORE);
    r->rang = r->alarms[which].at;
    r->alarms[which] = r->alarms[--r->alarm_count];
}

/* The messages, and the alarms behind them. */
static MPI_Request *with_alarms(sim_rank *r, int count, const MPI_Request *requests)
{
    if (r->waited_for_size < count + SIM_ALARMS) {
        tutti_free(r->waited_for);
        r->waited_for_size = 2 * count + SIM_ALARMS;
        if (tutti_alloc(&r->waited_for, (size_t)r->waited_for_size, sizeof *r->waited_for))
            sim_fail(r);
    }
    if (!will_wake(r)) set_alarm(r, r->until);
    memcpy(r->waited_for, requests, (size_t)count * sizeof *requests);
    for (int i = 0; i < r->alarm_count; i++) r->waited_for[count + i] = r->alarms[i].received;
    return r->waited_for;
}

/* Waits for a message, at most until r->until. One at a time: SimGrid tests each of many with a
 * change of context, but waits for all at once. */
STAND_IN(int, MPI_Testsome, int count, MPI_Request *requests, int *done, int *which,
         MPI_Status *how)
{
    sim_rank *r = sim_self();
    *done = 0;
    if (r->until <= simgrid_get_clock())
        return MPI_SUCCESS; /* it does not compute: no time passes */
    MPI_Request *all = with_alarms(r, count, requests);
    const int error = MPI_Waitany(count + r->alarm_count, all, which, how);
    *done = *which < count;
    if (*done) requests[*which] = MPI_REQUEST_NULL;
    else hear_alarm(r, *which - count);
    return error;
}

/* The rank only waits; now and then it looks for jams all the same. */
STAND_IN(int, MPI_Waitsome, int count, MPI_Request *requests, int *done, int *which,
         MPI_Status *how)
{
    sim_rank *r = sim_self();
    set_speed(r, false);
    pay_now(r);
    r->until = simgrid_get_clock() + between_looks(r);
    return __wrap_MPI_Testsome(count, requests, done, which, how);
}

/* ---- computing ---- */

/* Lets at most 'seconds' of computing pass and the engine go on meanwhile. What is less than the
 * precision of the simulated time is paid later. */
static void look(sim_rank *r, double seconds)
{
    const double now = simgrid_get_clock();
    pay_beside(r);
    r->until = r->computed + seconds;
    if (r->free_again > now + r->scenario->precision)
        sg_actor_sleep_until(fmin(r->free_again, r->until));
    else if (!tutti_comm_progress(r->comm) && simgrid_get_clock() == now)
        sg_actor_sleep_until(r->until); /* nothing is under way */
}

/* Ends close to each other come at once, so an alarm may ring a little early: that it was to ring
 * later counts, once, or many would be set for the same moment. What is left waits for the next
 * call. */
void sim_compute(sim_rank *r, double seconds)
{
    double left = seconds * r->slowness + r->left;
    r->stolen = 0; /* from nobody, while the rank waited */
    r->computed = fmax(r->computed, simgrid_get_clock());
    set_speed(r, true);
    while (left > r->scenario->precision && !tutti_comm_is_idle(r->comm)) {
        const double before = r->computed;
        look(r, fmin(between_looks(r), left));
        r->computed = fmax(before, fmax(simgrid_get_clock(), fmin(r->rang, r->until)));
        left += r->stolen - (r->computed - before);
        r->stolen = 0;
    }
    if (left > r->scenario->precision) {
        r->computed += left;
        sg_actor_sleep_until(r->computed);
        left = 0;
    }
    r->left = left;
    r->until = 0;
}
