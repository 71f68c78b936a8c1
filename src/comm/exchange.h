/* What the files of this room share. */
#ifndef TUTTI_COMM_EXCHANGE_H
#define TUTTI_COMM_EXCHANGE_H

#include <pthread.h>

#include "comm/engine.h"
#include "comm/launch.h"

typedef struct tutti_peer {
    char host[64];
    int pid;
    uint64_t space; /* in which pid is its number; 0: unknown */
} tutti_peer;

/* Where the compute thread is, told to the communication thread. */
typedef struct tutti_doing {
    _Atomic(const char *) name; /* of an exchange; lasts as long as the comm; NULL: nowhere */
    atomic_uint run;
    _Atomic double since;
} tutti_doing;

/* How quickly messages come in. */
typedef struct tutti_cadence {
    double last, interval; /* seconds */
} tutti_cadence;

typedef struct tutti_agreement tutti_agreement;
typedef struct tutti_stall tutti_stall;

struct tutti_comm {
    tutti_engine engine;
    tutti_comm_options options;
    int rank, size;
    int local_rank, local_size;
    int compute_threads;
    tutti_peer *peers;
    bool has_thread, is_started; /* it is to have a thread; there is one */
    atomic_bool is_hot;          /* it has a core of its own and polls */
    atomic_int wanted_core;      /* where it is to move to */
    atomic_bool is_awaited;      /* the compute thread waits */
    atomic_bool is_one_host;     /* all ranks are here */
    tutti_cadence cadence;
    pthread_t thread;
    tutti_group *all;
    tutti_agreement *agreement;
    tutti_stall *stall;
    unsigned char *id_used;           /* per exchange id */
    tutti_common *common;             /* the newest; all of them end with the comm; NULL: none */
    tutti_doing waits_at, begun_last; /* in common memory */
    tutti_launch launch;
    /* What the thread reports about its start, and that it is done. */
    atomic_uint is_open, is_closed;
    tutti_status open_status;
    char open_sentence[TUTTI_FAILURE_BYTES];
};

/* Submits a command; waits when the queue is full. */
void tutti_comm_submit(tutti_comm *comm, tutti_command_kind kind, tutti_exchange *exchange);

/* Sleeps until *word >= value (counting up) or communication has failed; drives the engine when
 * there is no thread. */
tutti_status tutti_comm_await(tutti_comm *comm, const atomic_uint *word,
                              unsigned value) TUTTI_MUST_CHECK;

/* A part-broadcast of bytes that overtakes everything; for the small helpers. Collective over the
 * group (NULL is all ranks). */
tutti_status tutti_exchange_create_bytes(tutti_exchange **out, tutti_comm *comm, const char *name,
                                         const tutti_group *group, const size_t *cuts,
                                         void *whole) TUTTI_MUST_CHECK;

tutti_status tutti_group_create_all(tutti_group **out, int rank, int size) TUTTI_MUST_CHECK;

#endif
