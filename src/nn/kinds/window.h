/* Windows that slide over an image: options, and the size of what comes out. */
#ifndef TUTTI_NN_KINDS_WINDOW_H
#define TUTTI_NN_KINDS_WINDOW_H

#include "nn/kinds/kind.h"

/* Pairs are height, width. */
typedef struct tutti_window {
    int kernel[2], stride[2], pad[2], dilation[2];
    int pad_end[2]; /* below and to the right; -1: as 'pad', above and to the left */
    bool ceil;      /* round the number of windows up */
} tutti_window;

// clang-format off
#define TUTTI_WINDOW_KEYS(options, field)                                                          \
    {"kernel", TUTTI_KEY_PAIR, offsetof(options, field.kernel), 1, 4096, false, NULL},             \
    {"stride", TUTTI_KEY_PAIR, offsetof(options, field.stride), 1, 4096, false, NULL},             \
    {"pad",    TUTTI_KEY_PAIR, offsetof(options, field.pad),    0, 4096, false, NULL},             \
    {"pad-end", TUTTI_KEY_PAIR, offsetof(options, field.pad_end), 0, 4096, false, NULL}
// clang-format on

/* Checks that the window fits, completes it and sets height and width of layer->out. */
tutti_status tutti_window_slide(tutti_window *window, tutti_layer *layer) TUTTI_MUST_CHECK;

/* Padding that is the same on both sides is said in one way only from now on: nets have a hash. */
void tutti_window_settle(tutti_window *window);

/* The padding below (way 0) or to the right (1). */
int tutti_window_pad_end(const tutti_window *window, int way);

/* "3x3/1", with whatever else is unusual: "3x3/1x2,g32,d2x2". */
void tutti_window_work(const tutti_window *window, int groups, char text[32]);

#endif
