/* Ranks, and what they do together.
 *
 * A communication thread is the only one that ever calls MPI (it also initialises it). The thread
 * that opened the tutti_comm - the compute thread, the only caller of everything below - submits
 * commands through a lock-free queue and goes on computing. Without a launcher there is one rank
 * and no MPI; every call below still does its local work.
 *
 * The two primitives, on a group of ranks and a buffer cut into one strip per member:
 *   part-reduce     (reduce-scatter) every member starts with partial sums of the whole buffer and
 *                   ends with its strip of the total, added in the order of base/tree.h;
 *   part-broadcast  (allgather) every member starts with its strip and ends with the whole buffer.
 *
 * Where all ranks are on one host, their buffers may be in common memory: then nothing is sent
 * (tutti_common_create).
 *
 * "Collective." means: every rank calls it, in the same order as the other collective calls.
 * Every rank creates the same exchanges in the same order, each with its own group. The members of
 * a group start its exchanges, open their gates and wait for them in the same order. */
#ifndef TUTTI_COMM_COMM_H
#define TUTTI_COMM_COMM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <tutti/log.h>
#include "base/status.h"
#include "base/team.h"

typedef struct tutti_comm tutti_comm;
typedef struct tutti_group tutti_group;
typedef struct tutti_exchange tutti_exchange;
typedef struct tutti_common tutti_common;

enum {
    TUTTI_STRIP_UNIT = 16, /* strips are cut at multiples of this many floats */
    TUTTI_CORE_AUTO = -1,  /* a core of its own where one is free, else no pinning */
    TUTTI_CORE_NONE = -2
};

/* Stands in for the outside world where there are no threads, no real time and no arithmetic: in
 * a simulator the ranks are contexts of one process. Any field may be NULL: the real thing. */
typedef struct tutti_comm_world {
    void *user;
    const char *host;                       /* where this rank is; read while the comm opens */
    double (*now)(void *user);              /* seconds */
    void (*add)(void *user, size_t floats); /* instead of that many additions */
    void (*copy)(void *user, void *to, const void *from,
                 size_t bytes);                     /* of strips, packing them */
    void *(*take_memory)(void *user, size_t bytes); /* inboxes, whose contents do not matter */
    void (*give_memory)(void *user, void *block, size_t bytes);
} tutti_comm_world;

typedef struct tutti_comm_options {
    tutti_log log;         /* stall warnings; a copy is kept */
    int core;              /* of the communication thread: an index into the allowed cores, */
                           /* TUTTI_CORE_AUTO or TUTTI_CORE_NONE */
    int compute_threads;   /* this rank computes with; 0: see tutti_comm_compute_threads */
    double stall_warn;     /* seconds; 0 never */
    double stall_abort;    /* seconds; 0 never */
    size_t chunk_bytes;    /* unit of priority; 0 means tuned */
    int chunks_in_flight;  /* 0 means tuned */
    bool no_thread;        /* the caller drives: tutti_comm_progress and the waits call MPI */
    const void *mpi_comm;  /* address of the caller's MPI_Comm, of mpi_comm_bytes; borrowed while */
    size_t mpi_comm_bytes; /* the comm opens; NULL: all ranks that a launcher started */
    const tutti_comm_world *world; /* NULL is the real one; borrowed */
} tutti_comm_options;

tutti_comm_options tutti_comm_defaults(void);

/* Collective. Finds out from the environment whether a launcher (mpirun, mpiexec, srun) started
 * this process, starts MPI only then, and checks that all ranks run the same binary on the same
 * kernel row: TUTTI_MISMATCH names the ranks that differ. On a communicator of the caller's, who
 * has started MPI, its ranks are all there are. */
tutti_status tutti_comm_open(tutti_comm **out, const tutti_comm_options *options) TUTTI_MUST_CHECK;

/* Collective. Every exchange must be done and destroyed. After a failure of communication it ends
 * the job (tutti_comm_abort), because MPI cannot end in order. NULL inside is fine; leaves NULL. */
void tutti_comm_close(tutti_comm **comm);

/* Ends the job on all ranks at once with the status's exit code, after a failure that the others
 * cannot know of because they wait somewhere else. Does not return. */
_Noreturn void tutti_comm_abort(tutti_comm *comm, tutti_status status);

/* Returns 'status', except where it is TUTTI_MEMORY of this rank alone, between two agreements: the
 * others wait for it somewhere else, so it says which rank it is and ends the job at once. */
tutti_status tutti_comm_survive(tutti_comm *comm, tutti_status status) TUTTI_MUST_CHECK;

/* After a failure of communication nothing can be agreed on any more. */
bool tutti_comm_has_failed(const tutti_comm *comm);

int tutti_comm_rank(const tutti_comm *comm);
int tutti_comm_size(const tutti_comm *comm);
const char *tutti_comm_host(const tutti_comm *comm, int rank);
int tutti_comm_pid(const tutti_comm *comm, int rank);
int tutti_comm_local_rank(const tutti_comm *comm); /* among the ranks of this host */
int tutti_comm_local_size(const tutti_comm *comm);

/* Threads to compute with: those asked for in the options, else one per core of this rank except
 * the one the communication thread took for itself; 0: all (one rank, or nothing is known). */
int tutti_comm_compute_threads(const tutti_comm *comm);
/* "Open MPI 4.1.4", "none": what this build speaks. */
const char *tutti_comm_library(void);

/* --- agreement: blocking, small, for start-up, steps and shutdown --- */

/* Collective. Makes a local failure everybody's: a rank that was fine gets TUTTI_PEER and the
 * sentence of the lowest rank that failed. Call it wherever one rank could fail alone, before the
 * next collective, or the others wait until the stall limit. */
tutti_status tutti_comm_agree(tutti_comm *comm, tutti_status mine) TUTTI_MUST_CHECK;

/* The status of the lowest rank that failed in the last agreement, the same on all ranks; TUTTI_OK
 * if none did. */
tutti_status tutti_comm_failure(const tutti_comm *comm);

/* Collective. */
tutti_status tutti_comm_barrier(tutti_comm *comm) TUTTI_MUST_CHECK;

/* Collective. all[rank*bytes ..] = that rank's 'bytes' bytes at 'mine', for every rank. */
tutti_status tutti_comm_allgather(tutti_comm *comm, const void *mine, size_t bytes,
                                  void *all) TUTTI_MUST_CHECK;

/* Collective. Everybody's 'data' becomes root's. */
tutti_status tutti_comm_broadcast(tutti_comm *comm, int root, void *data,
                                  size_t bytes) TUTTI_MUST_CHECK;

/* Collective. Unless all ranks hold the same value: TUTTI_MISMATCH with one sentence that names
 * 'what' and the ranks. check_same(comm, "the data set", hash). */
tutti_status tutti_comm_check_same(tutti_comm *comm, const char *what,
                                   uint64_t value) TUTTI_MUST_CHECK;
/* The same for a short text (only its first 47 characters count). */
tutti_status tutti_comm_check_same_text(tutti_comm *comm, const char *what,
                                        const char *text) TUTTI_MUST_CHECK;

/* Collective. offsets[r] + (tutti_now() on rank r) is rank 0's clock; one entry per rank, on
 * all. */
tutti_status tutti_comm_clock_offsets(tutti_comm *comm, double *offsets) TUTTI_MUST_CHECK;

/* --- groups: N ranks as G groups of N/G consecutive ranks --- */

/* The ranks of my group; the ranks at my position in every group. TUTTI_ARGUMENT unless 'groups'
 * divides the number of ranks. */
tutti_status tutti_group_create_inside(tutti_group **out, tutti_comm *comm,
                                       int groups) TUTTI_MUST_CHECK;
tutti_status tutti_group_create_across(tutti_group **out, tutti_comm *comm,
                                       int groups) TUTTI_MUST_CHECK;
void tutti_group_destroy(tutti_group **group);
int tutti_group_rank(const tutti_group *group);
int tutti_group_size(const tutti_group *group);

/* --- common memory, where all ranks are on one host --- */

/* Collective. Zeroed memory that every rank sees: 'whole' bytes that all of them share, and 'own'
 * bytes for each rank, aligned like those of tutti_alloc. It lasts as long as the comm. *out is
 * NULL where there is no such memory: one rank, several hosts or NUMA nodes, no thread, or a
 * system that does not let processes share; then exchanges send messages, with the same bits. */
tutti_status tutti_common_create(tutti_common **out, tutti_comm *comm, size_t whole,
                                 size_t own) TUTTI_MUST_CHECK;
bool tutti_common_is_likely(const tutti_comm *comm); /* before it is tried */

/* Collective. Gives the memory back to the system when nobody needs what is in it any more; the
 * addresses stay taken. NULL is fine. */
tutti_status tutti_common_release(tutti_common *common) TUTTI_MUST_CHECK;
void *tutti_common_whole(const tutti_common *common);
void *tutti_common_own(const tutti_common *common);

/* --- exchanges: created once, started every step --- */

/* Called by the communication thread on a piece of the strip this member owns, as soon as its sum
 * is complete and the gate is open: a[0 .. end-begin) is the total of elements begin .. end-1; in
 * common memory the last addition is left to the update: the total is a + b unless b is NULL.
 * Writes the new values where the part-broadcast takes them from. Pieces do not overlap. In common
 * memory all threads of the spec's team call it at once. */
typedef void tutti_update_fn(void *user, const float *a, const float *b, size_t begin, size_t end);

/* A chain: part-reduce, update, part-broadcast. Leave out what is not wanted: leaves == 0 means no
 * part-reduce, update == NULL no update, whole == NULL no part-broadcast. */
typedef struct tutti_exchange_spec {
    const char *name;         /* layer and purpose, for sentences and traces; copied */
    int priority;             /* the lowest is served first; equal ones in the order of starting */
    const tutti_group *group; /* borrowed; NULL is all ranks */
    size_t count;             /* floats of the whole buffer */
    const size_t *cuts;       /* member m owns cuts[m] .. cuts[m+1]-1; copied; NULL: even strips */

    /* Part-reduce: the tree's leaves are shared out over the members by tutti_share_begin, so
     * this member holds one buffer of count floats per root of its run (tutti_exchange_roots),
     * in the order of the tree. leaves >= group size. They are overwritten: the total of its own
     * strip ends up in partials[0], the rest is undefined. The buffers are borrowed, the list is
     * copied. */
    int leaves;
    float *const *partials;

    tutti_update_fn *update;
    void *user;

    float *whole;   /* part-broadcast; borrowed. With leaves but no update: the sum itself */
    bool gated;     /* update and part-broadcast wait for tutti_exchange_open_gate */
    bool exclusive; /* the caller waits for it at once: nothing else is posted meanwhile */

    /* Not NULL: all partials and 'whole' are in this memory, 'whole' at the same place for all
     * ranks. Nothing is sent: see comm/common_exchange.c. */
    tutti_common *common;
    tutti_team *team; /* that adds and updates there, when the caller starts, opens or waits */

    /* For tests and experiments; NULL and 0 choose by size and ranks. All give the same bits. */
    const char *reduce_by;    /* "direct", "halving" (2^k members, one root each), "bruck" */
    const char *broadcast_by; /* "direct", "doubling" (with halving), "bruck" */
    size_t chunk_bytes;       /* of the whole buffer */
} tutti_exchange_spec;

/* TUTTI_ARGUMENT if one of the two names is neither NULL nor an algorithm's. */
tutti_status tutti_exchange_check_names(const char *reduce_by,
                                        const char *broadcast_by) TUTTI_MUST_CHECK;

/* How many partial buffers member 'member' of 'members' contributes. */
int tutti_exchange_roots(int leaves, int members, int member);

tutti_status tutti_exchange_create(tutti_exchange **out, tutti_comm *comm,
                                   const tutti_exchange_spec *spec) TUTTI_MUST_CHECK;

/* All-to-all: floats send[send_cuts[m] .. send_cuts[m+1]-1] go to member m, what comes from member
 * m ends up in receive[receive_cuts[m] ..]. The cuts (members + 1 entries) are copied, the buffers
 * borrowed; they do not overlap. */
typedef struct tutti_alltoall_spec {
    const char *name;
    int priority;
    const tutti_group *group;
    const float *send;
    const size_t *send_cuts;
    float *receive;
    const size_t *receive_cuts;
    bool exclusive; /* as above */
} tutti_alltoall_spec;

tutti_status tutti_exchange_create_alltoall(tutti_exchange **out, tutti_comm *comm,
                                            const tutti_alltoall_spec *spec) TUTTI_MUST_CHECK;
void tutti_exchange_destroy(tutti_exchange **exchange); /* must not be under way */

/* The strip this member owns: floats begin .. end-1 of the buffer. */
void tutti_exchange_strip(const tutti_exchange *exchange, size_t *begin, size_t *end);

/* Submits and returns at once. The buffers belong to the exchange until it is done. Must not be
 * under way. Nothing is allocated. */
void tutti_exchange_start(tutti_exchange *exchange);

/* Says that the old contents of 'whole' are no longer needed. Call it once after each start of a
 * gated exchange; more often, or on one that is not gated, it does nothing. */
void tutti_exchange_open_gate(tutti_exchange *exchange);

bool tutti_exchange_is_done(const tutti_exchange *exchange);

/* Returns when the exchange is done on this rank (its buffers are the caller's again), or with the
 * failure that ended communication. Cheap when it is already done or was never started. */
tutti_status tutti_exchange_wait(tutti_exchange *exchange) TUTTI_MUST_CHECK;

/* start and wait. */
tutti_status tutti_exchange_run(tutti_exchange *exchange) TUTTI_MUST_CHECK;

/* What the last run (times) and all runs (totals) of an exchange cost. Times are tutti_now()'s.
 * Valid when the exchange is done. */
typedef struct tutti_exchange_stats {
    double submitted; /* tutti_exchange_start */
    double begun;     /* the first message was posted */
    double reduced;   /* the last piece of the sum was complete */
    double done;
    double waited; /* seconds that tutti_exchange_wait blocked: exposed communication */
    uint64_t runs;
    double total_busy; /* sum over runs of done - begun */
    double total_waited;
    uint64_t bytes_sent, bytes_received;
} tutti_exchange_stats;

tutti_exchange_stats tutti_exchange_statistics(const tutti_exchange *exchange);

/* --- without a thread --- */

/* Lets messages move: polls, adds, updates, posts. Call it between slices of computing when the
 * comm was opened with no_thread; otherwise it does nothing. Returns whether anything moved. */
bool tutti_comm_progress(tutti_comm *comm);

/* Whether everything that was started is done. */
bool tutti_comm_is_idle(const tutti_comm *comm);

#endif
