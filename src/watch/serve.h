/* The server, by libmicrohttpd: one thread, any number of clients, however slow. */
#ifndef TUTTI_WATCH_SERVE_H
#define TUTTI_WATCH_SERVE_H

#include <stdbool.h>

#include <tutti/watch.h>
#include "base/status.h"

typedef struct tutti_server tutti_server;

/* 'listens': in a thread of its own, at the address of the options; else it has only the
 * connections that it is given. */
tutti_status tutti_server_open(tutti_server **out, const tutti_watch_options *options,
                               bool listens) TUTTI_MUST_CHECK;
void tutti_server_close(tutti_server **server);

/* Prints where the page is. */
void tutti_server_introduce(const tutti_server *server, FILE *out);

/* Of one that does not listen: serves what came in at this socket, whose other end sends no more,
 * until it is closed. Takes the socket. */
void tutti_server_handle(tutti_server *server, int socket);

#endif
