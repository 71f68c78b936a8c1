/* Simulating: the trainer's own schedule and communication on a cluster you do not have. */
#ifndef TUTTI_SIMULATE_H
#define TUTTI_SIMULATE_H

#include <stdbool.h>
#include <stdio.h>

#include <tutti/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Texts are borrowed until the call returns. */
typedef struct tutti_simulate_options {
    const char *net;
    const char *platform;  /* a name, or FILE.platform */
    const char *nodes;     /* "64", "1,2,4", "1..1024" (powers of two between) */
    const char *plan;      /* "auto", "data", "model", or a file; NULL: "auto" */
    const char *precision; /* of layers: see tutti_net_set_precision; NULL: the net's */
    int batch_size;        /* of all nodes together; 0: the net's */
    int micro_batch;       /* samples of a node in memory at a time; 0: all it has of a step */
    int steps;        /* simulated, measured from backward to backward; 0: 3, above 64 nodes 2 */
    bool overlap;     /* communicate while computing */
    bool priority;    /* the first layers first */
    double jitter;    /* standard deviation of a node's compute time from step to step, 0.02 */
    double straggler; /* how much slower one node computes; 1: like the others */
    bool json;
    const char *plot;  /* write the scaling curve as SVG here */
    const char *html;  /* write a page with all of it here */
    const char *trace; /* write a Chrome/Perfetto trace for the last number of nodes here */
    FILE *show;        /* table or JSON */
    FILE *progress;    /* what is being simulated; NULL: silence */
} tutti_simulate_options;

TUTTI_API tutti_simulate_options tutti_simulate_defaults(void);

/* Needs the program tutti-sim, built only where SimGrid is installed; else TUTTI_UNSUPPORTED. */
TUTTI_API tutti_status tutti_simulate_show(const tutti_simulate_options *options) TUTTI_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
