/* Where the communication thread runs: on a core of its own it polls without pause and costs
 * computing nothing else, but where cores are few, one core is too much to pay. */
#ifndef TUTTI_COMM_COMM_CORE_H
#define TUTTI_COMM_COMM_CORE_H

#include <stdbool.h>

enum { TUTTI_CORES_TO_SPARE_ONE = 8 }; /* from here on a rank keeps one for the thread */

typedef struct tutti_comm_core_question {
    int cores;       /* that these ranks may use: */
    int ranks, rank; /* how many share them, and which of them asks */
    int threads;     /* it computes with; 0: not said */
    int core;        /* asked for: an index, TUTTI_CORE_AUTO or TUTTI_CORE_NONE */
} tutti_comm_core_question;

typedef struct tutti_comm_core {
    int threads;   /* to compute with */
    int core;      /* of the thread; TUTTI_CORE_NONE: wherever there is room */
    bool is_spare; /* nobody computes there */
} tutti_comm_core;

/* Ranks share cores as teams do (base/team.h); the thread takes the last of a rank's share, the
 * team the first ones. */
tutti_comm_core tutti_comm_core_choose(const tutti_comm_core_question *question);

#endif
