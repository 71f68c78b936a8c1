/* A small minibatch and models on it, for the tests of models. */
#ifndef TUTTI_TESTS_MINIBATCH_H
#define TUTTI_TESTS_MINIBATCH_H

#include "nn/model.h"

enum { BATCH = 13, GRAINS = 8, SEED = 7, STEP = 3 };

typedef struct batch {
    const char *text; /* of the net, borrowed */
    tutti_net *net;
    float *samples;        /* as models want them */
    double *reference;     /* [BATCH][c][h][w] */
    int32_t labels[BATCH]; /* of the net's answer, where it is a class */
    void *targets[TUTTI_MOST_TARGETS];
    tutti_model_options options; /* for one worker and one thread */
} batch;

/* Ends the test with the message unless all is well. */
void must(tutti_status status);

/* Numbers from -1 to 1. */
float noise(uint32_t sample, uint64_t index);

batch make_batch(const char *net_text);
batch make_batch_of_kinds(const char *net_text, const tutti_kind *const *kinds);
void free_batch(batch *b);

/* A model with its first parameters; biases are not zero, so that they matter. */
tutti_model *make_model(const batch *b, const tutti_model_options *options);
tutti_status try_model(tutti_model **out, const batch *b,
                       const tutti_model_options *options) TUTTI_MUST_CHECK;

/* Points the model at the targets of samples from 'first' on. */
void aim(tutti_model *model, const batch *b, size_t first);

/* Floats of a sample's answer. */
size_t answer_floats(const batch *b);

/* Step number STEP on the model's share. */
void train(tutti_model *model, const batch *b);

#endif
