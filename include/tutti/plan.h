/* Planning: how a net should be split over the nodes of a cluster, and how fast that will be. */
#ifndef TUTTI_PLAN_H
#define TUTTI_PLAN_H

#include <stdbool.h>
#include <stdio.h>

#include <tutti/log.h>
#include <tutti/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Texts are borrowed until the call returns. */
typedef struct tutti_planner_options {
    const char *net;
    const char *platform;  /* a name, or FILE.platform */
    const char *nodes;     /* "64", "1,2,4", "1..1024" (powers of two between) */
    const char *plan;      /* "auto", "data", "model", or a file; NULL: "auto" */
    const char *freeze;    /* layers that are not trained: see tutti_net_freeze */
    const char *precision; /* of layers: see tutti_net_set_precision; NULL: the net's */
    int batch_size;        /* of all nodes together; 0: the net's */
    int micro_batch;       /* samples of a node in memory at a time; 0: all it has of a step */
    bool overlap;          /* communicate while computing */
    bool priority;         /* the first layers first */
    double samples;        /* of an epoch; 0: ImageNet's 1,281,167 */
    double epochs;         /* of the training; 0: the net's */
    double deadline;       /* hours the training may take; 0: any */
    double node_hours;     /* hours times nodes it may cost; 0: any */
    bool json;
    const char *save; /* write the plan for the last number of nodes here */
    const char *plot; /* write the scaling curve as SVG here */
    const char *html; /* write a page with all of it here */
    FILE *show;       /* table or JSON */
} tutti_planner_options;

TUTTI_API tutti_planner_options tutti_planner_defaults(void);
TUTTI_API tutti_status tutti_plan_show(const tutti_planner_options *options) TUTTI_MUST_CHECK;

/* Measuring this machine and, under mpirun or srun, what joins the ranks: for platform "here". */
typedef struct tutti_calibrate_options {
    const char *const *nets; /* whose layers are measured: names, or files */
    int net_count;           /* 0: those that come with the library */
    int threads;             /* of this rank, as in training; 0: OMP_NUM_THREADS or one per core */
    double seconds;          /* to spend, roughly */
    const char *precision;   /* "bf16": of each net in both precisions; NULL: the net's */
    const char *output;      /* the file to write; NULL: where "here" is looked for */
    FILE *show;              /* what is being measured; NULL: silence */
    tutti_log log;
} tutti_calibrate_options;

TUTTI_API tutti_calibrate_options tutti_calibrate_defaults(void);

/* Collective. Layers are measured on all ranks at the same time; the slowest counts. */
TUTTI_API tutti_status tutti_calibrate(const tutti_calibrate_options *options) TUTTI_MUST_CHECK;

/* The platforms that come with the library, from 0; NULL after the last. */
TUTTI_API const char *tutti_plan_platform(int index);

#ifdef __cplusplus
}
#endif
#endif
