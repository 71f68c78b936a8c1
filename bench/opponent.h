/* The opponent of bench/step: a process that does a step for every line it is sent. */
#ifndef TUTTI_BENCH_OPPONENT_H
#define TUTTI_BENCH_OPPONENT_H

#include <sched.h>
#include <stdio.h>
#include <sys/types.h>

#include "nn/net.h"

#define OPPONENTS           "none|torch|tensorflow"
#define OPPONENT_PRECISIONS "fp32|bf16"

typedef struct opponent_question {
    const tutti_net *net;
    int opponent, precision; /* places in the lists above */
    int batch, threads, ranks;
    cpu_set_t cores; /* all of ours: the child must not inherit one pinned thread's core */
} opponent_question;

typedef struct opponent {
    pid_t pid; /* 0: there is none */
    FILE *to, *from;
    double best, rss; /* seconds of a step; bytes, after it was closed */
    char name[80];    /* "PyTorch 2.13.0, channels_last" */
} opponent;

/* Starts it; returns when it is warm. */
tutti_status opponent_open(opponent *o, const opponent_question *q) TUTTI_MUST_CHECK;

/* Lets it do 'count' steps in a row. */
tutti_status opponent_steps(opponent *o, int count) TUTTI_MUST_CHECK;

void opponent_close(opponent *o);

#endif
