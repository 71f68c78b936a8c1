/* Ranks and the communication thread.
 *
 * The thread alternates between the engine and rest. How it rests decides whether it disturbs:
 *   nothing under way   after a moment it sleeps on its bell until somebody submits (waking
 *                       briefly to look for notes from other ranks);
 *   messages under way  on a core of its own it polls without pause. Where cores are scarce it
 *                       depends on the compute thread. If that one waits for us, the core is ours:
 *                       poll, and give way to other ranks now and then. If it computes, every
 *                       look costs it time: nap for a part of the time between the last messages
 *                       that came in, or since the last one, so that a slow wire or a late rank
 *                       costs little and a fast one is not kept waiting. */
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/cpu.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/topology.h"
#include "comm/agree.h"
#include "comm/common.h"
#include "comm/launch.h"
#include "comm/comm_core.h"
#include "comm/outlast.h"
#include "comm/process.h"
#include "comm/stall.h"

enum {
    CHUNKS_IN_FLIGHT = 4,
    MANY_RANKS = 64,     /* from here on chunks are so large that half as many keep the wire busy */
    LOOKS = 200,         /* rounds without news before sleeping */
    LOOKS_PER_YIELD = 4, /* a look takes a third of a microsecond, a yield half of one */
    WAIT_YIELDS = 1,     /* of the compute thread before sleeping */
    HOT_LOOKS = 2000,    /* before that, where the communication thread has its own core */
    TIMER_SLACK_NS = 2000
};

#define NAP_SHORTEST 20e-6
#define NAP_LONGEST  4e-3
#define LONGEST_PACE 4e-3
#define IDLE_SLEEP   0.1
#define WATCH_SLEEP  0.02 /* while the compute thread waits in common memory */

tutti_comm_options tutti_comm_defaults(void)
{
    return (tutti_comm_options){
        .core = TUTTI_CORE_AUTO, .stall_warn = 60, .stall_abort = 600, .log = {.rank = -1}};
}

/* --- the thread --- */

static void move_if_asked(tutti_comm *comm)
{
    const int core = atomic_exchange(&comm->wanted_core, TUTTI_CORE_NONE);
    tutti_topology *topology = NULL;
    if (core < 0 || tutti_topology_open(&topology) != TUTTI_OK) return;
    tutti_topology_pin_caller(topology, core);
    tutti_topology_close(&topology);
}

/* An eighth of the time since the last message, or of the usual time between two if that is more;
 * half of the usual time, not an eighth, if all ranks are on this host: then messages are copies
 * that the cores themselves make, and no wire is idle meanwhile. */
static double nap_length(tutti_comm *comm, double now)
{
    const tutti_cadence *const cadence = &comm->cadence;
    const double usual = cadence->interval / (atomic_load(&comm->is_one_host) ? 2 : 8);
    const double quiet = cadence->last > 0 ? (now - cadence->last) / 8 : 0;
    const double nap = quiet > usual ? quiet : usual;
    return nap < NAP_SHORTEST ? NAP_SHORTEST : nap > NAP_LONGEST ? NAP_LONGEST : nap;
}

static void note_cadence(tutti_cadence *cadence, double now)
{
    if (cadence->last > 0) cadence->interval += (now - cadence->last - cadence->interval) / 4;
    if (cadence->interval > LONGEST_PACE) cadence->interval = LONGEST_PACE;
    cadence->last = now;
}

/* Whether to look again at once after this round without news. */
static bool stays_awake(tutti_comm *comm, bool idle, int round)
{
    if (atomic_load_explicit(&comm->is_hot, memory_order_relaxed))
        return !idle || round < HOT_LOOKS;
    return round < (idle || comm->is_awaited ? LOOKS : 0);
}

static void rest(tutti_comm *comm, uint32_t ticket, int round)
{
    const bool idle = !tutti_transport_under_way(comm->engine.transport);
    if (stays_awake(comm, idle, round)) {
        if (comm->is_hot || round % LOOKS_PER_YIELD) tutti_relax();
        else sched_yield();
        if (round % 1024 == 1023) tutti_stall_watch(comm);
        return;
    }
    move_if_asked(comm);
    tutti_stall_watch(comm);
    const double nap = nap_length(comm, tutti_engine_now(&comm->engine));
    const double idle_sleep = atomic_load(&comm->waits_at.name) ? WATCH_SLEEP : IDLE_SLEEP;
    tutti_bell_sleep(&comm->engine.work, ticket, idle ? idle_sleep : nap);
}

static void serve(tutti_comm *comm)
{
    tutti_engine *const e = &comm->engine;
    for (int quiet = 0; !(e->stopping && (!e->active || atomic_load(&e->failed)));) {
        const uint32_t ticket = tutti_bell_look(&e->work);
        if (tutti_engine_step(e, false)) {
            quiet = 0;
            note_cadence(&comm->cadence, tutti_engine_now(e));
        } else {
            rest(comm, ticket, quiet++);
        }
    }
}

static tutti_status check_size(const tutti_launch *launch, int size)
{
    if (!launch->launcher || !launch->size || launch->size == size) return TUTTI_OK;
    return tutti_fail(TUTTI_UNSUPPORTED,
                      "%s started %d ranks, but this program was built with %s and sees %d: %s",
                      launch->launcher, launch->size, tutti_transport_library(), size,
                      tutti_transport_launcher_hint());
}

static tutti_status join(tutti_comm *comm)
{
    const tutti_launch *const launch = &comm->launch;
    const tutti_transport_world world = {
        .launched = launch->launcher && launch->size != 1, /* one rank needs no MPI */
        .own_thread = comm->has_thread,
        .mpi_comm = comm->options.mpi_comm,
        .mpi_comm_bytes = comm->options.mpi_comm_bytes,
    };
    TUTTI_TRY(tutti_transport_open(&comm->engine.transport, &world));
    comm->rank = tutti_transport_rank(comm->engine.transport);
    comm->size = tutti_transport_size(comm->engine.transport);
    if (comm->size >= MANY_RANKS && !comm->options.chunks_in_flight) comm->engine.budget /= 2;
    return world.mpi_comm ? TUTTI_OK : check_size(launch, comm->size);
}

static void *thread_main(void *arg)
{
    tutti_comm *const comm = arg;
    prctl(PR_SET_TIMERSLACK, TIMER_SLACK_NS);
    prctl(PR_SET_NAME, "tutti-comm");
    comm->open_status = join(comm);
    snprintf(comm->open_sentence, sizeof comm->open_sentence, "%s", tutti_message());
    const bool is_open = comm->open_status == TUTTI_OK;
    atomic_store(&comm->is_open, 1);
    tutti_bell_ring(&comm->engine.finished);
    if (is_open) serve(comm);
    tutti_transport_close(&comm->engine.transport);
    atomic_store(&comm->is_closed, 1);
    tutti_bell_ring(&comm->engine.finished);
    return NULL;
}

/* --- handing over --- */

void tutti_comm_submit(tutti_comm *comm, tutti_command_kind kind, tutti_exchange *exchange)
{
    while (!tutti_queue_put(&comm->engine.queue, (tutti_command){kind, exchange})) {
        if (comm->has_thread) sched_yield();
        else tutti_engine_step(&comm->engine, false);
    }
    if (comm->has_thread) tutti_bell_ring(&comm->engine.work);
    else tutti_engine_step(&comm->engine, false);
}

static bool has_come(const atomic_uint *word, unsigned value)
{
    return (int)(atomic_load_explicit(word, memory_order_acquire) - value) >= 0;
}

static void wait_a_little(tutti_comm *comm, uint32_t ticket, int round)
{
    if (!comm->has_thread) tutti_engine_step(&comm->engine, true);
    else if (comm->is_hot && round < HOT_LOOKS) tutti_relax();
    else if (round < WAIT_YIELDS) sched_yield();
    else tutti_bell_sleep(&comm->engine.finished, ticket, 1);
}

tutti_status tutti_comm_await(tutti_comm *comm, const atomic_uint *word, unsigned value)
{
    tutti_engine *const e = &comm->engine;
    if (has_come(word, value)) return TUTTI_OK;
    atomic_store(&comm->is_awaited, true);
    if (comm->has_thread) tutti_bell_ring(&e->work); /* it may be napping */
    for (int round = 0;; round++) {
        const uint32_t ticket = tutti_bell_look(&e->finished);
        if (has_come(word, value) || atomic_load(&e->failed)) break;
        wait_a_little(comm, ticket, round);
    }
    atomic_store(&comm->is_awaited, false);
    return has_come(word, value) ? TUTTI_OK : tutti_fail(e->failure, "%s", e->sentence);
}

bool tutti_comm_progress(tutti_comm *comm)
{
    return !comm->has_thread && tutti_engine_step(&comm->engine, false);
}

bool tutti_comm_is_idle(const tutti_comm *comm)
{
    return !comm->engine.active;
}

/* --- opening --- */

int tutti_comm_compute_threads(const tutti_comm *comm)
{
    return comm->compute_threads;
}

/* Finds the thread a core. A single rank has no messages to poll for: its thread stays where it is
 * unless a core is named. */
static tutti_status settle(tutti_comm *comm)
{
    if (!comm->has_thread || (comm->size == 1 && comm->options.core < 0)) return TUTTI_OK;
    tutti_topology *topology = NULL;
    TUTTI_TRY(tutti_topology_open(&topology));
    tutti_status s = TUTTI_OK;
    if (comm->options.core >= tutti_topology_cores(topology))
        s = tutti_fail(TUTTI_ARGUMENT, "--comm-core %d: this rank may use cores 0 to %d",
                       comm->options.core, tutti_topology_cores(topology) - 1);
    const int cores = tutti_topology_cores(topology);
    const bool is_bound = cores < tutti_topology_machine_cores(topology);
    const tutti_comm_core place = tutti_comm_core_choose(&(tutti_comm_core_question){
        .cores = cores,
        .ranks = is_bound ? 1 : comm->local_size,
        .rank = is_bound ? 0 : comm->local_rank,
        .threads = comm->options.compute_threads,
        .core = comm->options.core,
    });
    tutti_topology_close(&topology);
    comm->compute_threads = place.threads;
    atomic_store(&comm->is_hot, place.is_spare && comm->size > 1);
    if (s == TUTTI_OK && place.core >= 0) {
        atomic_store(&comm->wanted_core, place.core);
        tutti_bell_ring(&comm->engine.work);
    }
    return s;
}

static void name_host(char *name, size_t size, const tutti_comm_world *world)
{
    if (world && world->host) snprintf(name, size, "%s", world->host);
    else gethostname(name, size - 1);
}

static tutti_status introduce(tutti_comm *comm)
{
    TUTTI_TRY(tutti_alloc(&comm->peers, (size_t)comm->size, sizeof *comm->peers));
    tutti_peer me = {.pid = (int)getpid(), .space = tutti_process_space()};
    name_host(me.host, sizeof me.host, comm->options.world);
    TUTTI_TRY(tutti_comm_allgather(comm, &me, sizeof me, comm->peers));
    for (int r = 0; r < comm->size; r++) {
        if (strcmp(comm->peers[r].host, me.host) != 0) continue;
        comm->local_size++;
        comm->local_rank += r < comm->rank;
    }
    atomic_store(&comm->is_one_host, comm->local_size == comm->size);
    return TUTTI_OK;
}

static tutti_status start_engine(tutti_comm *comm)
{
    if (!comm->options.mpi_comm) TUTTI_TRY(tutti_launch_detect(&comm->launch, getenv));
    if (!comm->has_thread) return join(comm);
    if (pthread_create(&comm->thread, NULL, thread_main, comm))
        return tutti_fail(TUTTI_MEMORY, "cannot start the communication thread");
    comm->is_started = true;
    tutti_outlast(comm, &comm->is_open, "MPI_Init");
    return comm->open_status == TUTTI_OK ? TUTTI_OK
                                         : tutti_fail(comm->open_status, "%s", comm->open_sentence);
}

static tutti_status set_up(tutti_comm *comm)
{
    const int asked = comm->options.chunks_in_flight;
    TUTTI_TRY(tutti_engine_init(&comm->engine, asked > 0 ? asked : CHUNKS_IN_FLIGHT,
                                comm->options.world));
    atomic_store(&comm->wanted_core, TUTTI_CORE_NONE);
    TUTTI_TRY(tutti_alloc(&comm->id_used, TUTTI_MAX_EXCHANGES, 1));
    TUTTI_TRY(tutti_stall_create(&comm->stall, comm));
    TUTTI_TRY(start_engine(comm));
    TUTTI_TRY(tutti_group_create_all(&comm->all, comm->rank, comm->size));
    TUTTI_TRY(introduce(comm));
    TUTTI_TRY(tutti_agreement_create(&comm->agreement, comm));
    TUTTI_TRY(tutti_agreement_check_start(comm, tutti_launch_build_id()));
    return tutti_comm_agree(comm, settle(comm));
}

tutti_status tutti_comm_open(tutti_comm **out, const tutti_comm_options *options)
{
    tutti_comm *comm = NULL;
    TUTTI_TRY(tutti_alloc(&comm, 1, sizeof *comm));
    comm->options = *options;
    comm->compute_threads = options->compute_threads;
    comm->has_thread = !options->no_thread;
    comm->size = 1;
    const tutti_status s = tutti_comm_survive(comm, set_up(comm));
    if (s != TUTTI_OK) tutti_comm_close(&comm);
    *out = comm;
    return s;
}

static void stop_thread(tutti_comm *comm)
{
    if (!comm->is_started) {
        tutti_transport_close(&comm->engine.transport);
        return;
    }
    if (comm->open_status == TUTTI_OK) tutti_comm_submit(comm, TUTTI_COMMAND_STOP, NULL);
    tutti_outlast(comm, &comm->is_closed, "MPI_Finalize");
    pthread_join(comm->thread, NULL);
}

void tutti_comm_close(tutti_comm **comm_at)
{
    tutti_comm *comm = *comm_at;
    if (!comm) return;
    /* So that a rank that does not arrive is named, which MPI_Finalize would not do. */
    if (comm->agreement && tutti_comm_barrier(comm) != TUTTI_OK) {
        tutti_error(&comm->options.log, "%s", tutti_message());
        tutti_comm_abort(comm, comm->engine.failure);
    }
    stop_thread(comm);
    tutti_agreement_destroy(&comm->agreement);
    tutti_stall_destroy(&comm->stall);
    tutti_group_destroy(&comm->all);
    tutti_engine_deinit(&comm->engine);
    tutti_common_destroy_all(comm);
    tutti_free(comm->peers);
    tutti_free(comm->id_used);
    tutti_free(comm);
    *comm_at = NULL;
}

_Noreturn void tutti_comm_abort(tutti_comm *comm, tutti_status status)
{
    comm->engine.exit_code = tutti_status_exit_code(status);
    tutti_process_end_soon(comm->engine.exit_code); /* the thread may hang */
    tutti_comm_submit(comm, TUTTI_COMMAND_ABORT, NULL);
    for (;;) pause();
}

tutti_status tutti_comm_survive(tutti_comm *comm, tutti_status status)
{
    if (status != TUTTI_MEMORY || !comm || comm->size == 1) return status;
    if (comm->agreement && tutti_comm_failure(comm) != TUTTI_OK) return status; /* all know */
    char host[64] = "?";
    gethostname(host, sizeof host - 1);
    tutti_error(&comm->options.log, "rank %d (host %.63s, pid %d): %s", comm->rank, host,
                (int)getpid(), tutti_message());
    tutti_comm_abort(comm, status);
}

/* --- who is who --- */

bool tutti_comm_has_failed(const tutti_comm *comm)
{
    return atomic_load(&comm->engine.failed);
}

int tutti_comm_rank(const tutti_comm *comm)
{
    return comm->rank;
}

int tutti_comm_size(const tutti_comm *comm)
{
    return comm->size;
}

const char *tutti_comm_host(const tutti_comm *comm, int rank)
{
    return comm->peers[rank].host;
}

int tutti_comm_pid(const tutti_comm *comm, int rank)
{
    return comm->peers[rank].pid;
}

int tutti_comm_local_rank(const tutti_comm *comm)
{
    return comm->local_rank;
}

int tutti_comm_local_size(const tutti_comm *comm)
{
    return comm->local_size;
}

const char *tutti_comm_library(void)
{
    return tutti_transport_library();
}
