/* Messages between ranks: the few parts of MPI that are used, and no MPI anywhere else.
 *
 * transport_mpi.c speaks MPI (Open MPI, MPICH, SimGrid's SMPI), transport_none.c is for builds
 * without it: one rank. All calls come from one thread. The first MPI error is kept; after it
 * nothing moves any more and tutti_transport_status says what happened. */
#ifndef TUTTI_COMM_TRANSPORT_H
#define TUTTI_COMM_TRANSPORT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/status.h"

typedef struct tutti_transport tutti_transport;

/* Whom a finished message concerns; the transport only carries it. */
typedef struct tutti_cookie {
    void *owner;
    int message; /* >= 0 for a received one, -1 for a sent one */
    int peer;
} tutti_cookie;

typedef struct tutti_transport_world {
    bool launched;   /* join the launcher's job; otherwise there is one rank and nothing to call */
    bool own_thread; /* the caller's; where the program has started MPI itself, this needs */
                     /* MPI_THREAD_MULTIPLE */
    const void *mpi_comm; /* not NULL: join the ranks of this MPI_Comm instead; of so many bytes, */
    size_t mpi_comm_bytes; /* which tell another MPI's from one of this build's */
} tutti_transport_world;

tutti_status tutti_transport_open(tutti_transport **out,
                                  const tutti_transport_world *world) TUTTI_MUST_CHECK;
void tutti_transport_close(tutti_transport **transport);
/* Ends the job; this process ends within seconds whatever becomes of the others. */
_Noreturn void tutti_transport_abort(tutti_transport *transport, int exit_code);

int tutti_transport_rank(const tutti_transport *transport);
int tutti_transport_size(const tutti_transport *transport);
const char *tutti_transport_library(void);
const char *tutti_transport_launcher_hint(void); /* how to start what this build speaks */

/* Makes room for 'messages' messages under way at a time. */
tutti_status tutti_transport_reserve(tutti_transport *transport, int messages) TUTTI_MUST_CHECK;

/* Messages between two ranks with the same tag arrive in the order of sending. The memory belongs
 * to the transport until the cookie comes back. */
void tutti_transport_send(tutti_transport *transport, const void *data, size_t bytes, int peer,
                          int tag, tutti_cookie cookie);
void tutti_transport_receive(tutti_transport *transport, void *data, size_t bytes, int peer,
                             int tag, tutti_cookie cookie);

/* Returns how many messages have finished since the last call; *finished lists their cookies and
 * is valid until the next call. With 'block' waits until there is at least one, unless none is
 * under way. */
int tutti_transport_poll(tutti_transport *transport, const tutti_cookie **finished, bool block);

int tutti_transport_under_way(const tutti_transport *transport);
tutti_cookie tutti_transport_pending(const tutti_transport *transport, int index);
tutti_status tutti_transport_status(const tutti_transport *transport, char *text, size_t bytes);

/* Notes: small messages beside the others, sent and forgotten, for reports of stalls. */
void tutti_transport_note_send(tutti_transport *transport, const void *note, size_t bytes,
                               int peer);
bool tutti_transport_note_take(tutti_transport *transport, void *note, size_t bytes, int *peer);

#endif
