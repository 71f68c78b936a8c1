/* The inner loops of fully connected layers, one set per instruction set.
 *
 * Each works on a panel: a few blocks of 16 columns, as many as the register tile is wide, times
 * any number of rows, which it cuts into register tiles as it likes. Columns are outputs in
 * forward and backward-weights, samples in backward-data. Strides count floats. */
#ifndef TUTTI_KERNEL_FC_KERNELS_H
#define TUTTI_KERNEL_FC_KERNELS_H

#include <stdbool.h>
#include <stddef.h>

/* y[n][o] += x[n][i] w[i][o] over a run of inputs, continuing the chain that y holds. */
typedef struct tutti_fc_forward_job {
    int samples, blocks; /* blocks of 16 outputs: 1 .. the row's limit */
    int inputs;          /* length of this piece of the chain */
    const float *x;      /* [samples][inputs], x_row apart */
    size_t x_row;
    const float *w; /* [blocks][inputs][16], w_block apart */
    size_t w_block;
    float *y; /* [samples][blocks][16], y_row apart */
    size_t y_row;
    bool first, last;  /* the chain starts at +0; it ends: add bias (may be NULL), then ReLU */
    const float *bias; /* [blocks][16] */
    bool relu;
    const float
        *next; /* the weights of the job that follows, to be fetched meanwhile; NULL: none */
} tutti_fc_forward_job;

/* dx^T[i][n] = sum over o of w[i][o] dy^T[o][n]: one leaf of the tree over outputs, joined with the
 * sums that wait for it. Those are on a stack, each [inputs][blocks][16 samples]. */
typedef struct tutti_fc_data_job {
    int inputs, blocks; /* inputs: a multiple of 16; blocks of 16 samples: 1 .. the row's limit */
    int output_blocks;  /* blocks of 16 outputs: 1 .. 4 */
    const float *w;     /* [output_blocks][inputs][16], w_block apart */
    size_t w_block;
    const float *dy; /* [blocks][output_blocks * 16][16 samples], dy_block apart */
    size_t dy_block;
    int joins;    /* how many of the stack's sums are joined, from its top down, ... */
    float *to;    /* ... and where the result goes: in place of the lowest of them, or on the top */
    size_t level; /* floats from a sum to the one above it */
    const float *next_w, *next_dy; /* of the job that follows, to be fetched meanwhile */
} tutti_fc_data_job;

/* The same for a few samples, with inputs in the lanes: dx[n][i], dy as it is. */
typedef struct tutti_fc_few_job {
    int samples, inputs; /* samples: 1 .. the row's limit; inputs: a multiple of 16 */
    int output_blocks;
    const float *w; /* [output_blocks][inputs][16], w_block apart */
    size_t w_block;
    const float *dy; /* [samples][output_blocks * 16], dy_row apart */
    size_t dy_row;
    int joins;        /* how many sums of the stack are joined, ... */
    const float *top; /* ... from its top down; each [samples][inputs] */
    size_t level;     /* floats from a sum to the one above it */
    float *to;        /* [samples][inputs], to_row apart, +0 where mask (may be NULL) <= 0 */
    const float *mask;
    size_t to_row;
} tutti_fc_few_job;

typedef struct tutti_fc_few {
    int samples; /* at most; 0: there is no such kernel */
    void (*data)(const tutti_fc_few_job *job);
} tutti_fc_few;

/* dw[o/16][i][16] = sum over samples of x[n][i] dy[n][o]: one run of the tree over grains. A run is
 * a subtree, so runs are the leaves of a smaller tree, or a piece of one grain's chain. */
typedef struct tutti_fc_weights_job {
    int inputs, blocks; /* inputs: a multiple of 16; blocks of 16 outputs: 1 .. the row's limit */
    int run, runs;      /* this run, and all of them */
    int grains;         /* of this run */
    const int *begin;   /* grain g of it is samples begin[g] .. begin[g+1]-1 */
    bool first, last;   /* the piece of the chain starts it, ends it; both true with whole grains */
    bool sweep;         /* every grain has 1 .. the row's few_samples samples; then runs == 1 */
    const float *x; /* [inputs/16][samples][16], x_block apart, from the run's first sample on */
    size_t x_block;
    const float *dy; /* [blocks][samples][16], dy_block apart, likewise */
    size_t dy_block;
    float *near; /* the run's own stack: tutti_tree_height(grains) + 1 times TUTTI_FC_NEAR floats */
    float *far;  /* the stacks of all tiles over runs, kept from the first run to the last: */
    int levels;  /* inputs * blocks * 16 * levels floats, levels = tutti_tree_height(runs) + 1 */
    float *dw;   /* [blocks][inputs][16], dw_block apart; written by the last run */
    size_t dw_block;
    bool stream; /* store past the caches; dw is aligned to a cache line */
} tutti_fc_weights_job;

/* Floats of the largest piece of dw whose partial sums wait together, on any row. */
enum { TUTTI_FC_NEAR = 64 * 3 * 16 };

typedef struct tutti_fc_kernels {
    int forward_blocks, data_blocks, weights_blocks; /* the widest panel of each pass */
    int few_samples;                                 /* 0: there is no way to sweep */
    void (*forward)(const tutti_fc_forward_job *job);
    void (*data)(const tutti_fc_data_job *job);
    const tutti_fc_few *few;
    void (*weights)(const tutti_fc_weights_job *job);
    /* The same sums for the bias: of dy alone. */
    void (*bias)(const tutti_fc_weights_job *job, float *db);

    /* [n][columns] -> [columns/16][n][16]; columns a multiple of 16. */
    void (*pack)(int n, int columns, const float *from, size_t from_row, float *to,
                 size_t to_block);
    /* [n][columns] -> [n/16][columns][16 n], samples that fill up the last block zero. */
    void (*pack_transposed)(int n, int columns, const float *from, size_t from_row, float *to,
                            size_t to_block);
    /* [columns][n] -> [n][columns], +0 where mask (may be NULL, like 'to') <= 0; 'from' holds whole
     * blocks of 16 samples. */
    void (*unpack_transposed)(int n, int columns, const float *from, size_t from_row,
                              const float *mask, float *to, size_t to_row);
} tutti_fc_kernels;

#endif
