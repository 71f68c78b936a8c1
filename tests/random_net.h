/* Nets made up from a seed: every kind of layer, channels that fill blocks and that do not,
 * branches, layers with several readers, frozen layers, layers with nothing to train below them.
 * The text is always accepted. The same seeds make the same nets, and so the same tests, on every
 * machine. */
#ifndef TUTTI_TESTS_RANDOM_NET_H
#define TUTTI_TESTS_RANDOM_NET_H

#include <stdbool.h>
#include <stdint.h>

enum { RANDOM_LAYERS = 64 };

typedef struct random_layer {
    char name[16];
    int c, h, w;
    int from[4], from_count; /* values: 0 is the input, i + 1 layer i */
    int readers;
    bool fc, elementwise, concat;
} random_layer;

typedef struct random_net {
    char text[8192];
    int layer_count;                        /* with the loss */
    random_layer values[RANDOM_LAYERS + 1]; /* the input, then the layers */
} random_net;

void random_net_make(random_net *net, uint64_t seed);

/* Numbers from a seed: 0 .. bound-1. */
typedef struct random_numbers {
    uint64_t state;
} random_numbers;

int random_below(random_numbers *numbers, int bound);

#endif
