/* Benchmarks of layers: one subject is one layer and pass, by us or by an opponent, ready to run
 * on its own data. bench/layers times subjects alternately in one process, because the speed of a
 * machine that others use, too, can double from one second to the next. */
#ifndef TUTTI_BENCH_H
#define TUTTI_BENCH_H

#include <string.h>

#include "kernel/conv.h"
#include "nn/kinds/conv.h"

typedef enum bench_pass {
    BENCH_FORWARD,
    BENCH_BACKWARD_DATA,
    BENCH_BACKWARD_WEIGHTS,
    BENCH_PASSES
} bench_pass;

/* What all subjects of a run share. */
typedef struct bench_setup {
    const tutti_kernels *row;
    tutti_caches caches;
    tutti_team *team;
    int threads, n, grains;
    int *grain_begin;               /* grains + 1 of them */
    bool any_way;                   /* the opponent may convolve as it likes, not only directly */
    tutti_conv_algorithm algorithm; /* of ours, where it may; AUTO: as in training */
    tutti_precision precision;      /* of both, where they can */
} bench_setup;

typedef struct bench_subject {
    void (*run)(void *self);
    void (*close)(void *self);
    void *self;
    char explain[512]; /* the plan in one line; "" if there is none */
} bench_subject;

/* Each stores a subject to be closed by its 'close'. TUTTI_UNSUPPORTED when there is none for this
 * layer and pass. */
tutti_status bench_conv_open(bench_subject *out, const bench_setup *setup, const tutti_layer *layer,
                             bench_pass pass) TUTTI_MUST_CHECK;
tutti_status bench_fc_open(bench_subject *out, const bench_setup *setup, const tutti_layer *layer,
                           bench_pass pass) TUTTI_MUST_CHECK;
tutti_status bench_onednn_open(bench_subject *out, const bench_setup *setup,
                               const tutti_layer *layer, bench_pass pass) TUTTI_MUST_CHECK;
bool bench_onednn_present(void);

/* Benchmarks of convolutions and matrices may ask what a layer is. */
static inline bool bench_is(const tutti_layer *layer, const char *word)
{
    return !strcmp(layer->kind->word, word);
}

/* 'count' ordinary floats, to be given to tutti_free. */
tutti_status bench_numbers(float **out, size_t count) TUTTI_MUST_CHECK;

#endif
