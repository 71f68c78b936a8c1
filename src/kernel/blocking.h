/* Cache blocks of a convolution, by brute force: of all ways to cut minibatch, input features,
 * output features, rows and columns into blocks, the one that moves the fewest bytes per
 * floating-point operation while a block's operands fit into a cache. A block is read and written
 * once and shares nothing with the next, so the result bounds the traffic from above; loops that
 * keep one operand from block to block do better. (Das et al., "Distributed deep learning using
 * synchronous stochastic gradient descent", 2016, section 2.) Pure functions. */
#ifndef TUTTI_KERNEL_BLOCKING_H
#define TUTTI_KERNEL_BLOCKING_H

#include <stddef.h>

typedef struct tutti_loops {
    int n, c, k, h, w; /* minibatch, input and output features, rows and columns of the output */
    int r, s;          /* kernel */
    int stride_h, stride_w; /* input rows per output row, columns per column */
} tutti_loops;

typedef struct tutti_blocking {
    tutti_loops block; /* r, s and strides as given */
    size_t bytes;      /* of a block's operands */
    double bytes_per_flop;
} tutti_blocking;

/* The best blocks within 'cache' bytes. A block is at least as large as 'least' says in each
 * dimension (or the whole dimension, where that is smaller), c and k in multiples of it. When not
 * even the least block fits, that is the answer. */
tutti_blocking tutti_block_search(const tutti_loops *all, const tutti_loops *least, size_t cache);

/* Bytes per operation when each output map is computed from each input map on its own. */
double tutti_unblocked_bytes_per_flop(const tutti_loops *all);

#endif
