/* Memory that all ranks see, and exchanges in it. Inside the room only. */
#ifndef TUTTI_COMM_COMMON_H
#define TUTTI_COMM_COMMON_H

#include "base/memory.h"
#include "comm/exchange.h"

/* How far a rank is with an exchange: for each stage the last run for which it has said so. Only
 * that rank writes it, into memory that all ranks see. */
struct tutti_standing {
    _Alignas(TUTTI_CACHE_LINE) atomic_uint started; /* its partials are complete */
    atomic_uint released;                           /* it has read the old contents of 'whole' */
    atomic_uint updated; /* its strip of 'whole' is new, and it has read the partials of others */
    size_t partial_at[TUTTI_TREE_MAX_ROOTS]; /* from the beginning of the memory; set once */
};

enum { TUTTI_COMMON_EXCHANGES = 4096 }; /* during the life of such memory */

struct tutti_common {
    tutti_comm *comm;
    tutti_common *older; /* of the same comm */
    char *base;
    size_t bytes;
    char *whole, *own;
    size_t whole_bytes, own_bytes;
    tutti_bell *bell;          /* of each rank */
    tutti_standing *standings; /* of each exchange and rank */
    char (*names)[TUTTI_NAME_BYTES];
    int exchanges;         /* that have been created */
    int looks;             /* for news, before sleeping */
    double busy;           /* seconds of adding and updating */
    tutti_exchange *begun; /* whose own strip is not updated yet, in the order of starting */
};

/* When the communication thread is gone. */
void tutti_common_destroy_all(tutti_comm *comm);

/* What tutti_exchange_create, start, ... do in common memory (common_exchange.c). */
tutti_status tutti_common_join(tutti_exchange *x, const tutti_exchange_spec *spec) TUTTI_MUST_CHECK;
void tutti_common_start(tutti_exchange *x);
void tutti_common_open_gate(tutti_exchange *x);
bool tutti_common_is_done(const tutti_exchange *x);
tutti_status tutti_common_await(tutti_exchange *x) TUTTI_MUST_CHECK;

#endif
