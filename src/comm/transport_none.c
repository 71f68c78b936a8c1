/* A build without MPI: one rank, no messages. */
#include "comm/transport.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

struct tutti_transport {
    int size;
};

tutti_status tutti_transport_open(tutti_transport **out, const tutti_transport_world *world)
{
    if (world->launched || world->mpi_comm)
        return tutti_fail(TUTTI_UNSUPPORTED, "this build has no MPI: configure it with "
                                             "-Dmpi=openmpi or -Dmpi=mpich, or start one rank");
    TUTTI_TRY(tutti_alloc(out, 1, sizeof **out));
    (*out)->size = 1;
    return TUTTI_OK;
}

void tutti_transport_close(tutti_transport **transport)
{
    tutti_free(*transport);
    *transport = NULL;
}

_Noreturn void tutti_transport_abort(tutti_transport *transport, int exit_code)
{
    (void)transport;
    exit(exit_code);
}

int tutti_transport_rank(const tutti_transport *transport)
{
    (void)transport;
    return 0;
}

int tutti_transport_size(const tutti_transport *transport)
{
    return transport->size;
}

const char *tutti_transport_library(void)
{
    return "none";
}

const char *tutti_transport_launcher_hint(void)
{
    return "start it without a launcher";
}

tutti_status tutti_transport_reserve(tutti_transport *transport, int messages)
{
    (void)transport, (void)messages;
    return TUTTI_OK;
}

void tutti_transport_send(tutti_transport *transport, const void *data, size_t bytes, int peer,
                          int tag, tutti_cookie cookie)
{
    (void)transport, (void)data, (void)bytes, (void)peer, (void)tag, (void)cookie;
    TUTTI_ASSERT(!"one rank has nobody to send to");
}

void tutti_transport_receive(tutti_transport *transport, void *data, size_t bytes, int peer,
                             int tag, tutti_cookie cookie)
{
    (void)transport, (void)data, (void)bytes, (void)peer, (void)tag, (void)cookie;
    TUTTI_ASSERT(!"one rank has nobody to receive from");
}

int tutti_transport_poll(tutti_transport *transport, const tutti_cookie **finished, bool block)
{
    (void)transport, (void)finished, (void)block;
    return 0;
}

int tutti_transport_under_way(const tutti_transport *transport)
{
    (void)transport;
    return 0;
}

tutti_cookie tutti_transport_pending(const tutti_transport *transport, int index)
{
    (void)transport, (void)index;
    return (tutti_cookie){NULL, 0, 0};
}

tutti_status tutti_transport_status(const tutti_transport *transport, char *text, size_t bytes)
{
    (void)transport;
    if (bytes) text[0] = '\0';
    return TUTTI_OK;
}

void tutti_transport_note_send(tutti_transport *transport, const void *note, size_t bytes, int peer)
{
    (void)transport, (void)note, (void)bytes, (void)peer;
}

bool tutti_transport_note_take(tutti_transport *transport, void *note, size_t bytes, int *peer)
{
    (void)transport, (void)note, (void)bytes, (void)peer;
    return false;
}
