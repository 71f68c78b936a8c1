/* The simulator: one rank's life on a cluster that does not exist.
 *
 * A rank runs the trainer's own step (src/nn's walk through the layers, src/step) and the
 * communication engine (all of src/comm), compiled for SimGrid's MPI. Four things are put in their
 * place:
 *
 *   arithmetic   the model has a stand-in (nn/model.h) that lets the seconds pass which the
 *                platform says; the engine has one for its additions (tutti_comm_world);
 *   time         tutti_now is the simulated clock (time.c, by the linker's --wrap);
 *   hosts        the communication room is told each rank's (tutti_comm_world): a node is one;
 *   memory       the floats that are computed with (tutti_alloc_floats) are one block for all; the
 *                engine's inboxes share all but their beginnings, where small messages arrive.
 *
 * A step is measured from turn to turn, from where backward begins to where it begins again. What
 * backward begins to exchange the next forward waits for, so all of it lies between two turns: it
 * takes one step's messages to measure one, not two, and from 128 nodes on that takes minutes.
 *
 * All ranks are contexts of one process and one thread: what they share needs no lock. */
#ifndef TUTTI_SIM_H
#define TUTTI_SIM_H

#include <simgrid/link.h>
#include <smpi/mpi.h>

#include "plan/predict.h"
#include "step/stepper.h"

enum {
    SIM_WAYS = 2, /* up and down */
    SIM_MOST_STEPS = 64,
    SIM_MOST_NODES = 4096,
    SIM_ALARMS = 16,
    SIM_RECORD = 256,      /* bytes: ranks gather smaller ones from each other */
    SIM_PAYLOAD = 64 << 20 /* bytes; comm/exchange.c's largest message */
};

/* Bytes/s of a node's loopback (forecast/simgrid_xml.c): of 5 ns is its clock. */
#define SIM_LOOPBACK 2e8

/* What is simulated; the same for all ranks. */
typedef struct sim_scenario {
    const char *net_name, *platform_name, *plan_path; /* plan: a file */
    const char *network, *deployment;                 /* SimGrid's XML files */
    const char *trace;                                /* NULL: none */
    const char *asked_precision;                      /* of layers; NULL: the net's */
    int nodes, batch, grains, micro_batch, steps;
    int overlap, priority;
    double jitter;    /* standard deviation of a node's computing from step to step, a fraction */
    double precision; /* of the simulated time, seconds */
    double straggler; /* how much slower the last node computes; 1: like the others */

    tutti_net *net;
    tutti_chosen_optimizer optimizer;
    tutti_platform *platform;
    tutti_plan *plan;
    tutti_prediction *prediction; /* its seconds of computing are the simulation's */
    void *floats;                 /* memory whose contents do not matter, and never is there */
    char *inboxes;                /* address space for the engine's */
    size_t inboxes_used;
    int inbox_file; /* what they share */
    void *payload;  /* what is sent instead of it; SimGrid knows that it need not be copied */

    /* what came out, from the first turn to the last */
    double turn[SIM_MOST_STEPS]; /* when the last rank turned in each step */
    double exposed;              /* seconds waited, the sum of all ranks */
    uint64_t bytes_sent;         /* by the rank that sent most */
    int done;                    /* ranks that have come to the end */
    double watched;              /* since when links are */
    double busiest;              /* share of the time a link was in use, the largest */
    char busiest_link[128];
} sim_scenario;

typedef struct sim_alarm {
    double at;
    MPI_Request received, sent;
} sim_alarm;

typedef struct sim_rank {
    sim_scenario *scenario;
    int number;
    tutti_comm *comm;
    tutti_stepper *stepper;
    int turns;      /* done */
    double exposed; /* seconds waited in steps that are done, less those before the first turn */
    uint64_t sent_before; /* bytes, the first turn */
    double slowness;      /* of this step's computing; 1: as the platform says */
    double debt;          /* seconds of work the communication thread has not yet taken time for */
    double free_again;    /* when it is done with what it took time for */
    double stolen;        /* seconds that messages posted since took from computing */
    double until;         /* when the compute thread is done with what it computes */
    double computed;      /* when it was done with what it has computed */
    bool computes;        /* now, or did last */
    sg_link_t links[SIM_WAYS]; /* its own, of a star whose messages are slower beside computing */
    double speed;              /* theirs */
    double left;               /* seconds of computing, less than can be told from none */
    double rang;               /* when the last alarm was to ring */
    sim_alarm alarms[SIM_ALARMS];
    int alarm_count;
    MPI_Request *waited_for; /* memory for a list */
    int waited_for_size;
} sim_rank;

/* ---- main.c ---- */

/* One more rank has come to the end. After the last one prints what came out and ends the process,
 * whatever is under way. */
void sim_is_done(sim_scenario *scenario);

/* ---- rank.c ---- */

/* The main function of every rank, as SimGrid calls it. The sim_rank is its host's data. */
void sim_rank_main(int argc, char **argv);

_Noreturn void sim_fail(const sim_rank *rank);

/* ---- world.c ---- */

tutti_status sim_world_init(sim_scenario *scenario) TUTTI_MUST_CHECK;

/* For the engine's inboxes. */
void *sim_take_inbox(void *user, size_t bytes);
void sim_give_inbox(void *user, void *block, size_t bytes);

/* What to send, or where to receive, instead of 'data'. */
void *sim_payload(const sim_scenario *scenario, const void *data, int bytes);

/* ---- time.c ---- */

sim_rank *sim_self(void); /* NULL: none yet */

/* Computing for some seconds, beside communication. */
void sim_compute(sim_rank *rank, double seconds);

/* Work of the communication thread: additions, updates. */
void sim_owe(sim_rank *rank, double seconds);

/* Seconds one core takes to stream that many bytes. */
double sim_core_stream(const sim_scenario *scenario, double bytes);

/* ---- links.c ---- */

/* Counts from now on what goes over every link; finds the one in use most since then. */
void sim_links_watch(sim_scenario *scenario);
void sim_links_find_busiest(sim_scenario *scenario);

/* Finds the links of a rank's node. */
void sim_links_of(sim_rank *rank);

#endif
