/* How the compute thread and the communication thread hand things over without a lock.
 *
 * The queue has one producer and one consumer. Each side writes only its own counter; the slot is
 * written before the producer's counter is released, and read before the consumer's is:
 *
 *      taken          put
 *        |             |            entries taken .. put-1 are full (counters never wrap back,
 *   . . .[x][x][x][x][x]. . .       their low bits are the place in the ring)
 *
 * The bell puts one thread to sleep until another rings. A sleeper first looks (takes a ticket),
 * then checks its condition, then sleeps on the ticket; whoever makes the condition true rings
 * afterwards. Either the check sees the condition, or the ring changes the count and the sleep
 * returns at once. Ringing costs a system call only when somebody is asleep: the ringer's "count
 * up, then look for a sleeper" and the sleeper's "say so, then look at the count" are sequentially
 * consistent, so at least one of the two sees the other (Dekker). tests/test_queue.c walks through
 * every interleaving of both protocols. */
#ifndef TUTTI_COMM_QUEUE_H
#define TUTTI_COMM_QUEUE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum { TUTTI_QUEUE_SLOTS = 1024 };

typedef enum tutti_command_kind {
    TUTTI_COMMAND_PREPARE, /* make room for an exchange */
    TUTTI_COMMAND_START,
    TUTTI_COMMAND_GATE, /* its gate is open */
    TUTTI_COMMAND_STOP, /* end the thread when everything is done */
    TUTTI_COMMAND_ABORT /* end the job of all ranks */
} tutti_command_kind;

typedef struct tutti_command {
    tutti_command_kind kind;
    struct tutti_exchange *exchange;
} tutti_command;

typedef struct tutti_queue {
    _Alignas(64) atomic_uint put;
    _Alignas(64) atomic_uint taken;
    _Alignas(64) tutti_command slot[TUTTI_QUEUE_SLOTS];
} tutti_queue; /* all zero is empty */

/* false when full. */
static inline bool tutti_queue_put(tutti_queue *queue, tutti_command command)
{
    const unsigned put = atomic_load_explicit(&queue->put, memory_order_relaxed);
    if (put - atomic_load_explicit(&queue->taken, memory_order_acquire) == TUTTI_QUEUE_SLOTS)
        return false;
    queue->slot[put % TUTTI_QUEUE_SLOTS] = command;
    atomic_store_explicit(&queue->put, put + 1, memory_order_release);
    return true;
}

/* false when empty. */
static inline bool tutti_queue_take(tutti_queue *queue, tutti_command *command)
{
    const unsigned taken = atomic_load_explicit(&queue->taken, memory_order_relaxed);
    if (atomic_load_explicit(&queue->put, memory_order_acquire) == taken) return false;
    *command = queue->slot[taken % TUTTI_QUEUE_SLOTS];
    atomic_store_explicit(&queue->taken, taken + 1, memory_order_release);
    return true;
}

typedef struct tutti_bell {
    _Alignas(64) _Atomic uint32_t rings;
    _Atomic uint32_t asleep;
    bool is_common; /* it is in memory that several processes share */
} tutti_bell;       /* all zero is ready; one sleeper, any number of ringers */

static inline uint32_t tutti_bell_look(tutti_bell *bell)
{
    return atomic_load(&bell->rings);
}

void tutti_bell_ring(tutti_bell *bell);

/* Sleeps until the bell has rung since 'ticket' was taken, at most 'seconds'. May return early. */
void tutti_bell_sleep(tutti_bell *bell, uint32_t ticket, double seconds);

#endif
