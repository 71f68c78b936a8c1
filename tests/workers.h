/* Several workers in one process: they are threads, and what comm does between ranks they do by
 * reaching into each other's buffers. */
#ifndef TUTTI_TESTS_WORKERS_H
#define TUTTI_TESTS_WORKERS_H

#include <pthread.h>

#include "minibatch.h"

enum { MAX_WORKERS = 8 };

typedef struct world {
    const batch *batch;
    const tutti_model_options *options; /* of each worker, but for its place */
    int workers, threads;               /* threads of each */
    const int *groups;                  /* of each layer */
    tutti_model *models[MAX_WORKERS];
    float losses[BATCH]; /* of the step */
    pthread_barrier_t barrier;
} world;

/* One step, then an evaluation, of all workers together; ends the program if one fails. */
void run_world(world *w);
void end_world(world *w);

/* One model's step and evaluation of the whole minibatch, to compare with. */
typedef struct whole {
    tutti_model *model;     /* has the gradients */
    float losses[BATCH];    /* of the step */
    float *probabilities;   /* of the evaluation, the model's own */
    float evaluated[BATCH]; /* its losses */
} whole;

whole make_whole(const batch *b, const tutti_model_options *options);
void free_whole(whole *all);

/* Ends the test unless the workers' losses, gradients and probabilities are those of one. */
void compare_world(const world *w, const whole *all);

#endif
