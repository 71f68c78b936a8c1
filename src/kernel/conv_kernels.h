/* What one instruction set contributes to convolution: register tiles. The loops around them
 * (conv.c and its neighbours) are the same for all. */
#ifndef TUTTI_KERNEL_CONV_KERNELS_H
#define TUTTI_KERNEL_CONV_KERNELS_H

#include <stdbool.h>

/* How many pixels of a tile may miss a tap at the left or at the right edge of the image. */
enum { TUTTI_CONV_CLIP = 2, TUTTI_CONV_RANGES = 2 * TUTTI_CONV_CLIP + 1 };

/* A tile of forward or backward-data: 'width' pixels of a row of y, 'nblocks' blocks of 16
 * features each, held in registers while the sum runs over blocks of x, rows and columns of the
 * kernel, and the channels of a block, in this order.
 *
 * Taps (columns of the kernel) come in ranges, because near the edges a tap touches only some of
 * the pixels: range CLIP touches all, range CLIP-i all but the first i, range CLIP+i all but the
 * last i. All strides count floats. x points at the first tap of pixel 0, be it inside the
 * image or not. */
typedef struct tutti_conv_tile {
    int width, nblocks;
    const float *x, *w;
    int blocks, rows, channels; /* of the sum */
    int taps[TUTTI_CONV_RANGES];
    long x_block, x_row, x_tap, x_pixel;
    long w_block, w_row, w_tap, w_output; /* w_output: to the next block of features */
    float *y;
    long y_pixel, y_output;
    bool resume;       /* go on from the partial sums in y */
    bool finish;       /* add bias and apply the rest; else store the partial sums */
    bool stream;       /* store around the caches; y is aligned to a cache line */
    const float *bias; /* NULL: none */
    bool relu;         /* max(., 0) */
    const float *mask; /* of y's strides; 0 where it is not positive; NULL: none */
} tutti_conv_tile;

/* What all tiles of a piece of backward-weights have in common. All strides count floats; a pixel
 * of dy is 16 floats after the last, and dw has 16 floats per channel. */
typedef struct tutti_conv_gradient_piece {
    long x_row, x_pixel;
    long dy_row, dy_output; /* dy_output, dw_output: to the next block of features */
    long dw_output;
    bool fresh; /* dw starts at zero, whatever it holds */
} tutti_conv_gradient_piece;

/* A tile of backward-weights: some channels of x by some blocks of 16 features, summed over rows
 * and columns of dy: dw[c][k] += x[row][col][c] * dy[row][col][k]. The arguments travel in
 * registers: a tile may last only a few hundred cycles, and a structure that has just been written
 * delays its reader until everything before is done. */
typedef void tutti_conv_gradient_fn(const tutti_conv_gradient_piece *piece, int rows, int cols,
                                    const float *x, const float *dy, float *dw);

/* A row's tiles: how wide one may be (in pixels, or in channels of x) for each number of blocks of
 * features, and the functions. */
enum { TUTTI_CONV_MAX_BLOCKS = 4, TUTTI_CONV_MAX_WIDTH = 12 };

typedef struct tutti_conv_tiles {
    int vectors; /* of a block */
    int max_width[TUTTI_CONV_MAX_BLOCKS + 1];
    void (*tile)(const tutti_conv_tile *tile);
    void (*stream_end)(void); /* after the last tile that streams, by the thread that ran it */
    /* out[k][c] = in[c][k], 16 by 16 */
    void (*transpose)(float *restrict out, const float *restrict in);
} tutti_conv_tiles;

typedef struct tutti_conv_gradient_tiles {
    int vectors;
    int max_width[TUTTI_CONV_MAX_BLOCKS + 1];
    tutti_conv_gradient_fn *tile[TUTTI_CONV_MAX_BLOCKS][TUTTI_CONV_MAX_WIDTH]; /* each - 1 */
    /* db[16] += dy[row][col][16] over rows and columns, in this order, for nblocks of them. */
    void (*bias)(const tutti_conv_gradient_piece *piece, int nblocks, int rows, int cols,
                 const float *dy, float *db);
    /* to += from; a multiple of 16 floats. */
    void (*join)(float *restrict to, const float *restrict from, long floats);
} tutti_conv_gradient_tiles;

typedef struct tutti_conv_kernels {
    const tutti_conv_tiles *tiles;
    const tutti_conv_gradient_tiles *gradient;
} tutti_conv_kernels;

#endif
