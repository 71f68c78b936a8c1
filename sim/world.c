/* The simulated world: its clock, its memory, and what work costs whom.
 *
 * A rank has two threads in reality and one context here. Computing is cut into slices, between
 * which the engine makes progress, as the communication thread would beside it. The work of that
 * thread (posting messages, adding, updating) is a debt: beside computing the engine rests until
 * it is paid; while the rank only waits, the wait grows by it. Where cores are scarce the platform
 * says how much of its speed computing loses while the channel is in use ("steals").
 *
 * The linker puts the functions named __wrap_* in the place of those they are named after. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* memfd_create */
#endif
#include <simgrid/actor.h>
#include <simgrid/engine.h>
#include <simgrid/host.h>
#include <smpi/mpi.h>

#include <math.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"
#include "sim.h"

enum { SLICES = 400 }; /* of a step's computing */

#define FLOATS_BYTES   ((size_t)1 << 40) /* of address space */
#define INBOXES_BYTES  ((size_t)1 << 44)
#define INBOX_MOST     ((size_t)1 << 30)
#define INBOX_OWN      ((size_t)128 << 10) /* not shared, at the beginning of each */
#define MATTERS        4096                /* bytes: larger messages in inboxes are floats */
#define PAYLOAD_BYTES  ((size_t)64 << 20)  /* comm/exchange.c's largest message */
#define CORE_BANDWIDTH 12e9                /* bytes/s that one core streams, if the node can */
#define POST_LEAST     0.2e-6              /* seconds an MPI library takes to post a message */
#define POST_MOST      2e-6

static sim_rank *self(void)
{
    const sg_host_t host = sg_host_self();
    return host ? sg_host_get_data(host) : NULL;
}

/* ---- time ---- */

double __wrap_tutti_now(void);
double __wrap_tutti_now(void)
{
    return simgrid_get_clock();
}

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
    if (r->free_again > now) sg_actor_sleep_until(r->free_again);
}

static double slice_of(const sim_rank *r)
{
    return r->scenario->prediction->compute_s / SLICES;
}

void sim_compute(sim_rank *r, double seconds)
{
    double left = seconds * r->slowness;
    const double speed = 1 - r->scenario->platform->steals;
    while (left > 0) {
        const double now = simgrid_get_clock();
        if (tutti_comm_is_idle(r->comm)) {
            sg_actor_sleep_for(left);
            break;
        }
        const double next = fmax(slice_of(r), r->free_again - now);
        const double slice = fmin(next, left / speed);
        sg_actor_sleep_for(slice);
        left -= slice * speed;
        if (simgrid_get_clock() >= r->free_again) tutti_comm_progress(r->comm);
    }
}

/* ---- messages ---- */

/* The platform's latency is a message's from end to end; some of it is the two ends' own work. */
static double post_seconds(const sim_rank *r)
{
    if (r->scenario->platform->exchange_count) return 0; /* measured ones have it in them */
    return fmin(fmax(r->scenario->platform->latency / 4, POST_LEAST), POST_MOST);
}

static void *payload(const void *data, int bytes)
{
    const sim_scenario *s = self()->scenario;
    const size_t in_floats = (size_t)((const char *)data - (const char *)s->floats);
    const size_t in_inboxes = (size_t)((const char *)data - s->inboxes);
    const bool matters =
        in_floats >= FLOATS_BYTES && (in_inboxes >= INBOXES_BYTES || bytes <= MATTERS);
    return matters ? (void *)(uintptr_t)data : s->payload;
}

int __real_MPI_Isend(const void *data, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm,
                     MPI_Request *request);
int __wrap_MPI_Isend(const void *data, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm,
                     MPI_Request *request);
int __wrap_MPI_Isend(const void *data, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm,
                     MPI_Request *request)
{
    sim_owe(self(), post_seconds(self()));
    return __real_MPI_Isend(payload(data, count), count, type, to, tag, comm, request);
}

int __real_MPI_Irecv(void *data, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm,
                     MPI_Request *request);
int __wrap_MPI_Irecv(void *data, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm,
                     MPI_Request *request);
int __wrap_MPI_Irecv(void *data, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm,
                     MPI_Request *request)
{
    sim_owe(self(), post_seconds(self()));
    return __real_MPI_Irecv(payload(data, count), count, type, from, tag, comm, request);
}

int __real_MPI_Testsome(int count, MPI_Request *requests, int *done, int *which, MPI_Status *how);
int __wrap_MPI_Testsome(int count, MPI_Request *requests, int *done, int *which, MPI_Status *how);
int __wrap_MPI_Testsome(int count, MPI_Request *requests, int *done, int *which, MPI_Status *how)
{
    pay_beside(self());
    return __real_MPI_Testsome(count, requests, done, which, how);
}

int __real_MPI_Waitsome(int count, MPI_Request *requests, int *done, int *which, MPI_Status *how);
int __wrap_MPI_Waitsome(int count, MPI_Request *requests, int *done, int *which, MPI_Status *how);
int __wrap_MPI_Waitsome(int count, MPI_Request *requests, int *done, int *which, MPI_Status *how)
{
    pay_now(self());
    return __real_MPI_Waitsome(count, requests, done, which, how);
}

/* ---- memory ---- */

static void *reserve(size_t bytes)
{
    void *block = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return block == MAP_FAILED ? NULL : block;
}

tutti_status sim_world_init(sim_scenario *s)
{
    s->payload = SMPI_SHARED_MALLOC(PAYLOAD_BYTES);
    s->floats = reserve(FLOATS_BYTES);
    s->inboxes = reserve(INBOXES_BYTES);
    s->inbox_file = memfd_create("inboxes", MFD_CLOEXEC);
    if (!s->payload || !s->floats || !s->inboxes || s->inbox_file < 0 ||
        ftruncate(s->inbox_file, INBOX_MOST))
        return tutti_fail(TUTTI_MEMORY, "no address space for the simulated memory");
    return TUTTI_OK;
}

/* Small messages between ranks have contents that matter (agreements); they use the beginning. */
void *sim_take_inbox(void *user, size_t bytes)
{
    const sim_rank *r = user;
    sim_scenario *s = r->scenario;
    const size_t whole = tutti_round_up(bytes, INBOX_OWN);
    char *inbox = s->inboxes + s->inboxes_used;
    if (whole > INBOX_MOST || s->inboxes_used + whole > INBOXES_BYTES) return NULL;
    s->inboxes_used += whole;
    if (whole > INBOX_OWN && mmap(inbox + INBOX_OWN, whole - INBOX_OWN, PROT_READ | PROT_WRITE,
                                  MAP_SHARED | MAP_FIXED, s->inbox_file, 0) == MAP_FAILED)
        return NULL;
    return inbox;
}

void sim_give_inbox(void *user, void *block, size_t bytes)
{
    (void)user;
    if (block) munmap(block, tutti_round_up(bytes, INBOX_OWN));
}

tutti_status __real_tutti_alloc(void *out, size_t count, size_t size);
tutti_status __wrap_tutti_alloc(void *out, size_t count, size_t size);
tutti_status __wrap_tutti_alloc(void *out, size_t count, size_t size)
{
    const sim_rank *r = self();
    if (!r || count * size < TUTTI_HUGE_PAGE) return __real_tutti_alloc(out, count, size);
    if (count * size > FLOATS_BYTES)
        return tutti_fail(TUTTI_MEMORY, "%zu bytes are more than the simulator has", count * size);
    *(void **)out = r->scenario->floats;
    return TUTTI_OK;
}

void __real_tutti_free(void *block);
void __wrap_tutti_free(void *block);
void __wrap_tutti_free(void *block)
{
    const sim_rank *r = self();
    if (!r || block != r->scenario->floats) __real_tutti_free(block);
}
