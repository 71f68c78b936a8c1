/* What one instruction set contributes to convolution: register tiles. The loops around them
 * (conv.c and its neighbours) are the same for all. */
#ifndef TUTTI_KERNEL_CONV_KERNELS_H
#define TUTTI_KERNEL_CONV_KERNELS_H

#include <stdbool.h>

/* How many pixels of a tile may miss a tap at the left or at the right edge of the image. */
enum { TUTTI_CONV_CLIP = 4, TUTTI_CONV_RANGES = 2 * TUTTI_CONV_CLIP + 1 };

/* What a tile of forward or backward-data may rely on: nothing; whole blocks at stride and dilation
 * 1 (pixels 16 floats apart, a range one run); every row of the kernel one run of channels that
 * touches all pixels. */
typedef enum tutti_conv_kind {
    TUTTI_CONV_ANY,
    TUTTI_CONV_DENSE,
    TUTTI_CONV_WHOLE,
    TUTTI_CONV_KINDS
} tutti_conv_kind;

/* Taps (columns of the kernel) that touch the same pixels: 'runs' runs of 'channels' channels each,
 * which follow each other in x and in w; x and w: floats from one run to the next. */
typedef struct tutti_conv_range {
    int runs, channels;
    long x, w;
} tutti_conv_range;

/* Pixels of an output row that one tile computes, or several equal ones side by side. Taps come in
 * ranges, because near the edges a tap touches only some of the pixels: range CLIP touches all,
 * range CLIP-i all but the first i, range CLIP+i all but the last i. */
typedef struct tutti_conv_segment {
    int begin, width, tiles; /* width: of each tile */
    tutti_conv_kind kind;
    bool left, right; /* some tap misses pixels at this edge */
    tutti_conv_range ranges[TUTTI_CONV_RANGES];
    long x, w, y;        /* from the row's first pixel and tap to the tile's; x's may lie outside */
    long x_next, y_next; /* from tile to tile */
} tutti_conv_segment;

/* What a tile fetches to the second-level cache: in its last 'rows' rows of the kernel, for each of
 * its pixels 'pixels' lines 'pixel' floats apart, 'ahead' of those it reads; 0: nothing. */
typedef struct tutti_conv_next {
    long ahead, pixel;
    int rows, pixels;
} tutti_conv_next;

/* What the tiles of a row have in common. All strides count floats. */
typedef struct tutti_conv_tile {
    int blocks, rows; /* of the sum: blocks of x, rows of the kernel */
    long x_block, x_row, x_pixel;
    long w_block, w_row, w_output; /* w_output, y_output: to the next block of features */
    long y_pixel, y_output;
    tutti_conv_next next;
    bool resume;       /* go on from the partial sums in y */
    bool finish;       /* add bias and apply the rest; else store the partial sums */
    bool stream;       /* store past the caches; y is aligned to a cache line */
    bool relu;         /* max(., 0) */
    const float *bias; /* NULL: none */
} tutti_conv_tile;

/* Tiles of forward or backward-data: the pixels of a segment by some blocks of 16 features, held
 * in registers while the sum runs over blocks of x, rows and columns of the kernel, and the
 * channels of a block, in this order. y becomes 0 where the mask (of y's strides; NULL: none) is
 * not positive. Arguments travel in registers: a tile may last only a few hundred cycles, and a
 * structure that has just been written delays its reader until everything before is done. */
typedef void tutti_conv_fn(const tutti_conv_tile *tile, const tutti_conv_segment *segment,
                           const float *x, const float *w, float *y, const float *mask);

/* What all tiles of a piece of backward-weights have in common. All strides count floats; a pixel
 * of dy is 16 floats after the last, and dw has 16 floats per channel. */
typedef struct tutti_conv_gradient_piece {
    long x_row, x_pixel;
    long dy_row, dy_output; /* dy_output, dw_output: to the next block of features */
    long dw_output;
    bool fresh; /* dw starts at zero, whatever it holds */
} tutti_conv_gradient_piece;

/* A tile of backward-weights: some channels of x by some blocks of 16 features, summed over rows
 * and columns of dy: dw[c][k] += x[row][col][c] * dy[row][col][k]. With every pixel of dy the line
 * 'ahead' floats after it is fetched to the second-level cache; 0: none. */
typedef void tutti_conv_gradient_fn(const tutti_conv_gradient_piece *piece, int rows, int cols,
                                    const float *x, const float *dy, float *dw, long ahead);

/* A row's tiles: how wide one may be (in pixels, or in channels of x) for each number of blocks of
 * features, and the functions, [blocks - 1][width - 1]. */
enum { TUTTI_CONV_MAX_BLOCKS = 4, TUTTI_CONV_MAX_WIDTH = 14 };

typedef struct tutti_conv_tiles {
    int vectors; /* of a block */
    int max_width[TUTTI_CONV_MAX_BLOCKS + 1];
    tutti_conv_fn *tile[TUTTI_CONV_MAX_BLOCKS][TUTTI_CONV_MAX_WIDTH][TUTTI_CONV_KINDS];
    /* out[k][c] = in[c][k], 16 by 16; of narrow groups within each */
    void (*transpose)(float *restrict out, const float *restrict in);
} tutti_conv_tiles;

typedef struct tutti_conv_gradient_tiles {
    int vectors;
    int max_width[TUTTI_CONV_MAX_BLOCKS + 1];
    tutti_conv_gradient_fn *tile[TUTTI_CONV_MAX_BLOCKS][TUTTI_CONV_MAX_WIDTH];
    /* db[16] += dy[row][col][16] over rows and columns, in this order, for nblocks of them. */
    void (*bias)(const tutti_conv_gradient_piece *piece, int nblocks, int rows, int cols,
                 const float *dy, float *db);
    /* to += from; a multiple of 16 floats. */
    void (*join)(float *restrict to, const float *restrict from, long floats);
} tutti_conv_gradient_tiles;

/* A row of the kernel, or some taps of it, in backward-weights of narrow groups. Strides count
 * floats; columns count from that of dy, and so does x: tap s reads column 0's x at s * x_tap, if
 * that is inside. */
enum { TUTTI_CONV_LANES_TAPS = 7 };
typedef struct tutti_conv_lanes_piece {
    long x_row, x_pixel, x_tap, dy_row;
    int first, last;                                              /* columns some tap touches */
    int whole_begin, whole_end;                                   /* columns that all touch */
    int begin[TUTTI_CONV_LANES_TAPS], end[TUTTI_CONV_LANES_TAPS]; /* columns of each tap */
} tutti_conv_lanes_piece;

/* dw[tap][channel of the group][16] += x * dy over rows and columns, in this order */
typedef void tutti_conv_lanes_fn(const tutti_conv_lanes_piece *piece, int rows, const float *x,
                                 const float *dy, float *dw);

/* Groups of 'channels' channels and as many features, several of which share a block of 16: tiles
 * of one block, and backward-weights of up to max_taps taps at a time, [taps - 1]. */
typedef struct tutti_conv_lanes {
    int channels; /* 0 ends a table */
    const tutti_conv_tiles *tiles;
    int max_taps;
    tutti_conv_lanes_fn *gradient[TUTTI_CONV_LANES_TAPS];
} tutti_conv_lanes;

/* A tile of Winograd's algorithm: of its 4x4 pixels of x those in rows top .. bottom-1 and columns
 * left .. right-1 are inside the image; of its 2x2 pixels of y those before bottom and right. */
typedef struct tutti_winograd_tile {
    long row; /* floats to the next row */
    int top, bottom, left, right;
} tutti_winograd_tile;

enum {
    TUTTI_WINOGRAD_SIDE = 4,
    TUTTI_WINOGRAD_POINTS = TUTTI_WINOGRAD_SIDE * TUTTI_WINOGRAD_SIDE,
};

/* The transforms, 16 channels at a time. Point p of u, v and m is p steps of floats away. */
typedef struct tutti_winograd_kernels {
    /* [3][3][16 c][16 k] to [points][16 c][16 k] */
    void (*weights)(const float *w, float *u, long u_step);
    void (*input)(const tutti_winograd_tile *tile, const float *x, float *v, long v_step);
    /* y = the tile's pixels + bias (NULL: none), then max(., 0) if relu, zero where the mask (NULL:
     * none) is not positive. */
    void (*output)(const tutti_winograd_tile *tile, const float *m, long m_step, const float *bias,
                   bool relu, const float *mask, float *y);
    /* The gradients of 'output' and of 'weights': a tile's pixels of dy to [points], and those
     * points' sums, [points][16 c][16 k], to [3][3][16 c][16 k]. */
    void (*output_back)(const tutti_winograd_tile *tile, const float *dy, float *d, long d_step);
    void (*weights_back)(const float *m, long m_step, float *dw);
} tutti_winograd_kernels;

/* ---- F(4x4, 3x3): winograd4.c ---- */

/* Points of a row and of a column, and of both. Short tiles have the first four of them only, so
 * that not all points are those of all tiles: tiles are counted by classes, class 0 of points that
 * all have, 1 where the column's is one of the last two, 2 where the row's is, 3 where both are. */
enum {
    TUTTI_WINOGRAD4_SIDE = 6,
    TUTTI_WINOGRAD4_POINTS = TUTTI_WINOGRAD4_SIDE * TUTTI_WINOGRAD4_SIDE,
    TUTTI_WINOGRAD4_CLASSES = 4,
};

static inline int tutti_winograd4_class(int row, int col)
{
    return 2 * (row >= 4) + (col >= 4);
}

/* Where a tile's 16 numbers of a point are: the first block of channels', and how far it is from
 * one block to the next, in floats. */
typedef struct tutti_winograd4_place {
    long first, block;
} tutti_winograd4_place;

/* Tiles side by side. The image's rows that they read may be any memory of 'width' pixels. */
typedef struct tutti_winograd4_strip {
    int count;
    int width, col;        /* columns of the image; that of the first tile's first pixel */
    bool short_h, short_w; /* all are of two rows; the last one is of two columns */
    const float *row[TUTTI_WINOGRAD4_SIDE]; /* of the first block of channels */
    long row_block[TUTTI_WINOGRAD4_SIDE];   /* floats from a block to the next */
    const tutti_winograd4_place *place[TUTTI_WINOGRAD4_CLASSES]; /* of the first tile */
} tutti_winograd4_strip;

/* A tile of the output. */
typedef struct tutti_winograd4_tile {
    long row;              /* floats to the next row */
    int rows, cols;        /* inside the image, 1 .. 4 */
    bool short_h, short_w; /* has points for two of them only */
    bool stream;           /* store past the caches; y is aligned to a cache line */
    bool relu;
} tutti_winograd4_tile;

/* m[blocks][tiles][16] = sum over channels of u v, one chain for each of them. */
typedef struct tutti_winograd4_product {
    int channels;   /* a multiple of 16 */
    const float *u; /* [channels][blocks][16] */
    const float *v; /* [channels/16][tiles][16] */
    float *m;
    long m_block;      /* floats to the next block of m */
    const float *next; /* memory that is read soon: 'lines' cache lines of it are fetched with every
                        * 16 channels */
    int lines;
} tutti_winograd4_product;
typedef void tutti_winograd4_fn(const tutti_winograd4_product *product);

/* sums[blocks][16 c][16 k] += d v for each tile in turn, one chain for each of them. */
typedef struct tutti_winograd4_gather {
    int tiles;
    bool first;         /* sums start at zero */
    const float *d, *v; /* [blocks][tiles][16], [tiles][16] */
    float *sums;
    long d_block, sums_block; /* floats to the next block of outputs */
    long d_ahead, v_ahead;    /* what is so many floats behind d, v is fetched */
    const float *next;        /* sums [blocks] that are used soon; NULL: none */
} tutti_winograd4_gather;
typedef void tutti_winograd4_gather_fn(const tutti_winograd4_gather *gather);

enum {
    TUTTI_WINOGRAD4_MAX_BLOCKS = 2,
    TUTTI_WINOGRAD4_MAX_TILES = 14,
    TUTTI_WINOGRAD4_MAX_GATHERED = 2,
};

typedef struct tutti_winograd4_kernels {
    int blocks, tiles; /* the largest product */
    tutti_winograd4_fn *product[TUTTI_WINOGRAD4_MAX_BLOCKS][TUTTI_WINOGRAD4_MAX_TILES];

    /* [3][3][16 c][16 k] to [points], u_step apart, of [16 c], u_channel apart, of [16 k]; past the
     * caches if 'stream'. */
    void (*weights)(const float *w, float *u, long u_step, long u_channel, bool stream);
    /* Block number 'block' of a strip to its places in v. Point p is p steps further. */
    void (*input)(const tutti_winograd4_strip *strip, int block, float *v, long v_step);
    /* y = the tile's pixels + bias (NULL: none), then max(., 0) if relu, zero where the mask (NULL:
     * none) is not positive. m: where the tile is in points of each class. */
    void (*output)(const tutti_winograd4_tile *tile, const float *const m[TUTTI_WINOGRAD4_CLASSES],
                   long m_step, const float *bias, const float *mask, float *y);

    /* Backward: a tile's pixels of dy to its points; the sums of one point over tiles, of up to
     * 'gathered' blocks of outputs, [blocks - 1]; and the sums of all points, [points][16 c][16 k],
     * to [3][3][16 c][16 k] of dw. Before they are stored 'joins' other ones are added, below[0]
     * first. */
    void (*output_back)(const tutti_winograd4_tile *tile, const float *dy,
                        float *const d[TUTTI_WINOGRAD4_CLASSES], long d_step);
    int gathered;
    tutti_winograd4_gather_fn *gather[TUTTI_WINOGRAD4_MAX_GATHERED];
    void (*weights_back)(const float *sums, int joins, const float *const below[], float *dw);
} tutti_winograd4_kernels;

typedef struct tutti_conv_kernels {
    const tutti_conv_tiles *tiles;
    const tutti_conv_gradient_tiles *gradient;
    const tutti_winograd_kernels *winograd;
    const tutti_winograd4_kernels *winograd4;
    const tutti_conv_lanes *lanes;
} tutti_conv_kernels;

#endif
