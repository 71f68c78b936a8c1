/* What layers with weights and a bias have in common: options of the text, and the parameters. */
#ifndef TUTTI_NN_KINDS_WEIGHTS_H
#define TUTTI_NN_KINDS_WEIGHTS_H

#include <math.h>

#include "nn/kinds/kind.h"

typedef struct tutti_weights {
    bool nobias;
    int init;      /* tutti_init */
    int precision; /* of tutti_precision_words */
    double std, bias;
} tutti_weights;

#define TUTTI_WEIGHTS_DEFAULTS \
    {                          \
        .std = 0, .bias = NAN  \
    }

// clang-format off
#define TUTTI_WEIGHTS_KEYS(options, field)                                                        \
    {"nobias",    TUTTI_KEY_BOOL,   offsetof(options, field.nobias),    0,    0,   false, NULL},  \
    {"init",      TUTTI_KEY_CHOICE, offsetof(options, field.init),      0,    0,   false,         \
     tutti_init_words},                                                                           \
    {"std",       TUTTI_KEY_REAL,   offsetof(options, field.std),       1e-9, 1e3, false, NULL},  \
    {"bias",      TUTTI_KEY_REAL,   offsetof(options, field.bias),      -1e3, 1e3, false, NULL},  \
    {"precision", TUTTI_KEY_CHOICE, offsetof(options, field.precision), 0,    0,   false,         \
     tutti_precision_words}
// clang-format on

enum { TUTTI_MAX_FEATURES = 1 << 20 };

/* Fills in what the text did not say, and adds LAYER.weight with the dims and layout of 'like' and,
 * unless 'nobias', LAYER.bias of the output's channels. */
tutti_status tutti_layer_add_weights(tutti_net *net, tutti_layer *layer, tutti_weights *weights,
                                     const tutti_param *like) TUTTI_MUST_CHECK;

#endif
