/* What max and average pooling have in common: options and shapes. */
#ifndef TUTTI_NN_KINDS_POOL_H
#define TUTTI_NN_KINDS_POOL_H

#include "kernel/pool.h"
#include "nn/kinds/window.h"

typedef struct tutti_pool_options {
    tutti_window window;
    bool global;      /* the window is the whole input */
    bool exclude_pad; /* a mean divides by what lies on the image only */
    int size[2];      /* of the output, whatever windows that takes; 0: by the window */
} tutti_pool_options;

extern const tutti_pool_options tutti_pool_defaults;

// clang-format off
#define TUTTI_POOL_KEYS                                                                            \
    TUTTI_WINDOW_KEYS(tutti_pool_options, window),                                                 \
    {"global", TUTTI_KEY_BOOL, offsetof(tutti_pool_options, global),      0, 0, false, NULL},      \
    {"ceil",   TUTTI_KEY_BOOL, offsetof(tutti_pool_options, window.ceil), 0, 0, false, NULL}
// clang-format on

/* Did the text say anything about the window? */
bool tutti_pool_has_window(const tutti_window *window);

tutti_status tutti_pool_complete(tutti_net *net, tutti_layer *layer) TUTTI_MUST_CHECK;
void tutti_pool_work(const tutti_layer *layer, char text[32]);

/* The shape such a layer hands to the kernels. */
tutti_pool_shape tutti_pool_layer_shape(const tutti_layer *layer);

#endif
