/* The doctor's facts. Collecting them touches the machine (facts.c, peak.c); judging them
 * (findings.c) does not, so that every finding can be provoked in a test. */
#ifndef TUTTI_MACHINE_DOCTOR_H
#define TUTTI_MACHINE_DOCTOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <tutti/machine.h>
#include "machine/peak.h"

/* Where a thread is bound: the number of its core on its host, -1 if it may run on several.
 * 'host' is the lowest rank on the same host. */
typedef struct tutti_seat {
    int rank, thread, core, host;
} tutti_seat;

typedef struct tutti_facts {
    char cpu[128];
    int cores, threads;                 /* physical cores, hardware threads: the cpuset's */
    int machine_cores, machine_threads; /* and the machine's */
    int numa_nodes;
    size_t cache[3]; /* bytes of L1, L2, L3; 0: there is none */
    int sharers[3];  /* cores that share one */
    uint64_t memory, memory_free;
    uint64_t memory_limit; /* of the control group; 0: none */
    double cpu_limit;      /* of the control group, in CPUs; 0: none */
    char huge_pages[16];   /* "always", "madvise", "never", or "" where the system has none */
    char governor[32];     /* of the clock, "" where the system does not say */
    const char *isa;       /* the row of kernels in use */
    const char *best_isa;  /* the row this processor could use */
    char mpi[64];          /* "Open MPI 4.1.4", "" without */
    int team;              /* threads of this rank */
    bool pinned;           /* by us, one to a core */
    int rank, all_ranks;
    int ranks, host_threads; /* ranks on this host, and the threads of all of them */
    const tutti_seat *seats; /* of all threads of all ranks */
    int seat_count;
    tutti_speeds speeds;
    int slow_rank; /* the rank with the least fma_all, that speed, and the median of all ranks */
    double slow_speed, median_speed;
    const char *net; /* what training it would take on this rank; NULL: not asked */
    int batch;
    uint64_t net_bytes;
    double net_flops; /* of a step, on this rank */
    double grace;     /* seconds that the launcher leaves after SIGTERM; 0: any */
} tutti_facts;

/* What can be read without measuring. */
void tutti_facts_collect(tutti_facts *facts, const tutti_rank *me);

/* Collective. Fills in what concerns all ranks; *seats is the caller's (tutti_free). 'cores' has
 * an entry for each thread of the team: where it is bound. */
tutti_status tutti_facts_gather(tutti_facts *facts, tutti_comm *comm, const int *cores,
                                tutti_seat **seats) TUTTI_MUST_CHECK;

typedef struct tutti_finding {
    char sentence[256];
    char remedy[192];
} tutti_finding;

enum { TUTTI_MAX_FINDINGS = 24 };

/* Pure. Returns the number of findings. */
int tutti_findings(tutti_finding out[TUTTI_MAX_FINDINGS], const tutti_facts *facts);

struct tutti_machine {
    tutti_facts facts;
    char net[64];
    tutti_seat *seats;
    tutti_finding findings[TUTTI_MAX_FINDINGS];
    int finding_count;
};

#endif
