/* A rank that does not arrive: say who waits for whom, then end the job. Inside the room. */
#ifndef TUTTI_COMM_STALL_H
#define TUTTI_COMM_STALL_H

#include "comm/exchange.h"

tutti_status tutti_stall_create(tutti_stall **out, const tutti_comm *comm) TUTTI_MUST_CHECK;
void tutti_stall_destroy(tutti_stall **stall);

/* The communication thread calls it whenever it has nothing else to do, even when idle: that is how
 * it answers the others. */
void tutti_stall_watch(tutti_comm *comm);

#endif
