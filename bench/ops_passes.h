/* Passes that stream through memory: what they do, read and write. */
#ifndef TUTTI_BENCH_OPS_PASSES_H
#define TUTTI_BENCH_OPS_PASSES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernel/exec.h"

/* Activations are n x 64 channels x 64 x 64 pixels; n follows from --mib. */
enum { CHANNELS = 64, SIDE = 64, PIXELS = SIDE * SIDE, CLASSES = 1000 };

typedef struct bench {
    tutti_exec exec;
    int n;
    size_t count; /* floats of an array */
    float *a, *b, *c, *d;
    uint16_t *tap;
    int32_t *labels;
    volatile double sink;
} bench;

typedef struct pass {
    const char *name;
    void (*run)(bench *b);
    size_t kernel;        /* instead: an elementwise one of the row */
    double reads, writes; /* in arrays */
    bool streams;         /* does so little that memory should limit it */
} pass;

extern const pass passes[]; /* the last has no name */

void run_pass(bench *b, const pass *p);

#endif
