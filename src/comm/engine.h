/* The engine: what the communication thread runs, and what a simulator runs without a thread.
 * Inside the room only. */
#ifndef TUTTI_COMM_ENGINE_H
#define TUTTI_COMM_ENGINE_H

#include "base/tree.h"
#include "comm/comm.h"
#include "comm/queue.h"
#include "comm/transport.h"
#include "kernel/table.h"

enum {
    TUTTI_MAX_SLOTS = 48,
    TUTTI_WINDOW = 16,          /* messages of a chunk under way, each way, at most */
    TUTTI_PARTS = 3,            /* the same, of messages to one partner */
    TUTTI_MAX_EXCHANGES = 8192, /* at a time; twice that many tags are certain to exist */
    TUTTI_FAILURE_BYTES = 400,
    TUTTI_NAME_BYTES = 64 /* of an exchange's name, for reports */
};

typedef struct tutti_engine tutti_engine;
typedef struct tutti_slot tutti_slot;
typedef struct tutti_standing tutti_standing;

/* An algorithm moves one chunk: the same piece of every strip. All algorithms for a stage give
 * the same bits. */
typedef struct tutti_algorithm {
    const char *name;
    bool one_chunk;                             /* it moves an exchange as a single chunk */
    bool (*applies)(const tutti_exchange *x);   /* NULL: always */
    bool (*is_better)(const tutti_exchange *x); /* than the rows above, by size and ranks */
    size_t (*inbox)(const tutti_exchange *x);   /* bytes of memory a chunk needs */
    void (*begin)(tutti_engine *e, tutti_slot *s);
    void (*arrived)(tutti_engine *e, tutti_slot *s, int message); /* may be NULL */
    /* When all messages posted so far are through: posts the next round, or returns false. NULL:
     * one round. */
    bool (*next_round)(tutti_engine *e, tutti_slot *s);
    /* Post one of the messages of a window, coming in or going out. NULL: no windows. */
    void (*receive)(tutti_engine *e, tutti_slot *s, int item);
    void (*send)(tutti_engine *e, tutti_slot *s, int item);
} tutti_algorithm;

extern const tutti_algorithm tutti_reduce_algorithms[]; /* end with a row without a name */
extern const tutti_algorithm tutti_broadcast_algorithms[];
extern const tutti_algorithm tutti_alltoall_algorithms[];

/* The row of that name, or the last one that applies and is better. TUTTI_ARGUMENT if it does not
 * exist or does not apply. */
tutti_status tutti_algorithm_choose(const tutti_algorithm **out, const tutti_algorithm *table,
                                    const char *name, const tutti_exchange *x) TUTTI_MUST_CHECK;

enum { TUTTI_LANES = 4 }; /* for all; for each stage of what is awaited; beside */

typedef enum tutti_stage { TUTTI_STAGE_REDUCE, TUTTI_STAGE_BROADCAST, TUTTI_STAGES } tutti_stage;

/* A subtree of the sum and the partial buffer it comes in. */
typedef struct tutti_root {
    tutti_subtree node;
    int member, index;
} tutti_root;

struct tutti_group {
    int rank, size;
    int *members; /* world ranks */
};

struct tutti_exchange {
    tutti_comm *comm;
    char *name;
    int id, priority;
    int me, members;
    int *rank;    /* world rank of each member */
    size_t width; /* bytes of an element */
    size_t *cuts; /* strips; of an all-to-all: where to receive */
    size_t piece; /* elements of a strip in a chunk */
    int chunks;
    size_t chunk_bytes; /* asked for; 0: tuned */

    int leaves, my_roots, max_roots, root_count;
    float **partials;
    tutti_root *roots; /* all of them, in tree order */
    int *first_root;   /* of each member, and after the last */
    tutti_update_fn *update;
    void *user;
    char *whole;
    bool gated, exclusive;
    const char *send; /* all-to-all */
    size_t *send_cuts;
    const tutti_algorithm *reduce, *broadcast; /* NULL: the chain has no such stage */

    tutti_common *common; /* NULL: messages. What follows is common.c's */
    tutti_team *team;
    tutti_standing *standing; /* of each rank of the job */
    const char *lasting_name; /* lasts as long as the comm */
    const float **root_at;    /* where the roots are, in tree order */
    float *sums;              /* of a block: 'depth' of them for each thread */
    int depth;

    /* This run; the engine's. */
    bool *summed; /* per chunk */
    int reduce_posted, summed_count, broadcast_posted, broadcast_done;
    bool gate_open;
    int in_flight[TUTTI_STAGES]; /* slots */
    int unposted[TUTTI_STAGES];  /* slots that have not posted all of their messages */
    double last[TUTTI_STAGES];   /* when a chunk was through, or could first be posted */
    tutti_exchange *next;        /* active ones, most urgent first */

    unsigned started; /* the compute thread's */
    bool gate_asked;
    atomic_uint done; /* runs; the engine's last touch */
    atomic_uint prepared;
    tutti_status prepare_status;
    tutti_exchange_stats stats;
};

/* A chunk under way. */
struct tutti_slot {
    tutti_exchange *x; /* NULL: free */
    const tutti_algorithm *algorithm;
    tutti_stage stage;
    int lane, chunk, round;
    int pending, sends, receives; /* messages under way: all, going out, coming in */
    int items, window;            /* messages each way; most of them under way at a time */
    int next_to, next_from;       /* whose turn it is (in_flight.c) */
    unsigned places;              /* taken in the inbox (halving.c), a bit each */
    double begun, touched;        /* when it was posted, when a message of it last arrived */

    char *inbox;
    size_t inbox_bytes;

    /* The sum: roots in tree order, those before next_root are on the stack. */
    bool *here; /* per root */
    int here_count, next_root;
    tutti_tree_stack stack;
    float *place[TUTTI_TREE_MAX_ROOTS];
};

struct tutti_engine {
    tutti_queue queue;
    tutti_bell work;     /* the communication thread sleeps here */
    tutti_bell finished; /* and the compute thread here */
    tutti_transport *transport;
    tutti_comm_world world;
    const tutti_kernels *kernels; /* to add with */
    int budget; /* chunks under way, and as many of each stage of what is awaited */
    tutti_slot slot[TUTTI_MAX_SLOTS]; /* 'budget' for each lane, the rest for the last */
    int used[TUTTI_LANES];
    double usual;                      /* seconds that a chunk takes */
    int exclusive;                     /* exchanges that are active and exclusive */
    _Atomic(tutti_exchange *) awaited; /* by the compute thread, which says so; NULL: none */
    const tutti_exchange *seen;        /* the one that was awaited when chunks were last posted */
    tutti_exchange *active;
    bool stopping;
    int exit_code;                    /* of TUTTI_COMMAND_ABORT */
    char last_name[TUTTI_NAME_BYTES]; /* the last start, for reports */
    double last_start;
    atomic_bool failed;
    tutti_status failure; /* with its sentence; valid when failed */
    char sentence[TUTTI_FAILURE_BYTES];
};

tutti_status tutti_engine_init(tutti_engine *e, int budget,
                               const tutti_comm_world *world) TUTTI_MUST_CHECK;
void tutti_engine_deinit(tutti_engine *e);

/* Takes commands, finishes messages, adds, updates and posts. Returns whether anything moved.
 * With 'block' waits for a message when there is nothing else to do. */
bool tutti_engine_step(tutti_engine *e, bool block);

/* Ends communication: every wait returns 'status' with this sentence. */
void tutti_engine_fail(tutti_engine *e, tutti_status status, const char *sentence);

double tutti_engine_now(const tutti_engine *e);

/* --- for the algorithms --- */

/* The part of member m's strip that belongs to a chunk, in elements; may be empty. */
tutti_range tutti_chunk_of(const size_t *cuts, size_t piece, int member, int chunk);

/* So short that messages cost more than bytes: rounds of packed strips are better. */
bool tutti_exchange_is_small(const tutti_exchange *x);

/* The same, or so many members that each gets next to nothing, where packing sends no more. */
bool tutti_exchange_is_thin(const tutti_exchange *x);

/* More bytes, but so many members that posting a message to each takes long. */
bool tutti_exchange_is_wide(const tutti_exchange *x);

/* Post a message to or from a member; nothing when it is empty. */
void tutti_slot_send(tutti_engine *e, tutti_slot *s, const void *data, size_t bytes, int member);
void tutti_slot_receive(tutti_engine *e, tutti_slot *s, void *data, size_t bytes, int member,
                        int message);

/* Post the messages of a chunk by its algorithm's receive and send, a few at a time: one for every
 * peer, or some parts; and the next ones when some are through. */
void tutti_in_flight_peers(tutti_engine *e, tutti_slot *s);
void tutti_in_flight_parts(tutti_engine *e, tutti_slot *s, int parts);
void tutti_in_flight_move(tutti_engine *e, tutti_slot *s);

/* The peer an item of such a window is received from, and the one it is sent to. */
int tutti_peer_below(const tutti_exchange *x, int item);
int tutti_peer_above(const tutti_exchange *x, int item);

/* Halving and doubling (halving.c), by the slot's stage. */
bool tutti_halving_apply(const tutti_exchange *x);
size_t tutti_halving_inbox(const tutti_exchange *x);
void tutti_halving_begin(tutti_engine *e, tutti_slot *s);
void tutti_halving_receive(tutti_engine *e, tutti_slot *s, int item);
void tutti_halving_send(tutti_engine *e, tutti_slot *s, int item);
void tutti_halving_arrived(tutti_engine *e, tutti_slot *s, int message);
bool tutti_halving_next(tutti_engine *e, tutti_slot *s);

/* sum = a + b, which it may overlap exactly. */
void tutti_engine_add(tutti_engine *e, float *sum, const float *a, const float *b, size_t count);

/* To pack strips and to unpack them. */
void tutti_engine_copy(tutti_engine *e, void *to, const void *from, size_t bytes);

#endif
