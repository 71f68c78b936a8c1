/* A planned convolution from the inside: what conv.c decides and the passes execute. */
#ifndef TUTTI_KERNEL_CONV_PLAN_H
#define TUTTI_KERNEL_CONV_PLAN_H

#include "kernel/blocking.h"
#include "kernel/conv.h"
#include "kernel/conv_kernels.h"

/* A correlation at unit tile strides: output row h reads input rows
 * h*step_h + first_h + r*tap_h for r in 0 .. taps_h-1, those inside 0 .. in_h-1, and the same for
 * columns. Forward is one of them; backward-data at stride d is d*d of them, each computing the
 * pixels of dx of one phase. Strides count floats. */
typedef struct tutti_conv_sweep {
    int rows, cols;
    long y_first, y_row, y_pixel;
    int in_h, in_w;
    int taps_h, taps_w, tap_h, tap_w;
    int step_h, step_w, first_h, first_w;
    long x_row, x_pixel; /* neighbours in x */
    long w_first, w_row, w_tap;
    tutti_conv_segment *segments;
    int segment_count;
} tutti_conv_sweep;

/* The cache blocks of forward and backward-data: how many blocks of input features, tiles of output
 * features and rows are done at a time; and how many of these inputs a tile takes at a time. */
typedef struct tutti_conv_blocks {
    int inputs, tiles, rows, chunk;
} tutti_conv_blocks;

/* y = sweep over x: forward, or backward-data with x = dy and y = dx. */
typedef struct tutti_conv_pass {
    tutti_conv_sweep *sweeps;
    int sweep_count;
    int groups, inputs, outputs; /* blocks of a group */
    int tile_blocks;             /* blocks of a tile */
    int rows;                    /* the most rows of a sweep */
    long x_sample, x_block, y_sample, y_block;
    long w_tile; /* floats of the weights of one (output block, input block) */
    bool transposed;
    tutti_conv_blocks blocks;
    tutti_blocking blocking; /* what the blocks were found by */
} tutti_conv_pass;

/* A run of output columns that the same taps touch. */
typedef struct tutti_conv_columns {
    int begin, count, first_tap, taps;
} tutti_conv_columns;

/* The cache blocks of backward-weights: the number of parts into which dw is cut by features and by
 * channels, and the rows and columns of dy over which a part is summed at a time, or by
 * winograd4_gradient.c the tiles. */
typedef struct tutti_conv_gradient_blocks {
    int features, channels, rows, cols, tiles;
} tutti_conv_gradient_blocks;

/* Rows and columns of dy. */
typedef struct tutti_conv_strip {
    int row_begin, row_end, col_begin, col_end;
} tutti_conv_strip;

typedef struct tutti_conv_gradient {
    int *row_begin, *row_end; /* output rows that row r of the kernel touches */
    int *col_begin, *col_end; /* output columns of column s */
    tutti_conv_columns *columns;
    int column_count;
    int groups, features, channels; /* blocks of a group; channels 1 when compact */
    int width;                      /* channels of a block: 16, or c when compact */
    int tile_blocks;                /* feature blocks of a register tile, at most; by Winograd 1 */
    int feature_tiles;              /* register tiles that make up the features */
    bool merged;                    /* the taps of a kernel row are one run of channels */
    bool starts_afresh;             /* taps come one by one, and each touches some output */
    int pad_left;                   /* columns that x lacks; 0 when packed */
    long x_sample, x_block, x_row, dy_sample, dy_block, dy_row;
    long w_tile; /* floats of one (feature block, channel block) */
    tutti_conv_gradient_blocks blocks;
    double bytes_per_flop; /* of x and dy that pass through a thread's second-level cache */
} tutti_conv_gradient;

/* A part of dw: feature blocks features .. features+nf-1 by channel blocks channels ..
 * channels+nc-1, these counted within the features' group, whose first is first_channel. */
typedef struct tutti_conv_gradient_part {
    int features, nf, channels, nc, first_channel;
} tutti_conv_gradient_part;

struct tutti_conv {
    tutti_conv_shape shape;
    const tutti_conv_kernels *kernels;
    const tutti_conv_tiles *tiles; /* of forward and backward-data */
    const tutti_conv_lanes *lanes; /* narrow groups; NULL: there are none */
    struct tutti_conv *regrouped;  /* by conv_regroup.c: this one does it */
    tutti_caches caches;
    int n, threads, out_h, out_w;
    bool plain;                              /* no fast path: element by element */
    tutti_conv_algorithm algorithm;          /* that is taken */
    const struct tutti_fc_kernels *products; /* of matrices, theirs */
    bool packed;     /* rows of x are copied between the zeros of their padding: conv_pack.c */
    long packed_row; /* floats of such a row */
    tutti_conv_pass forward, backward;
    tutti_conv_gradient gradient;
    struct tutti_conv_bf16 *bf16; /* conv_bf16.h: operands are rounded; NULL: they are not */
};

/* Channels of a block of x that meet a feature: a tap has that many vectors of weights. */
int tutti_conv_tap_channels(const tutti_conv *conv);

/* Half cycles that one channel (or pixel) of a register tile takes: two multiply-adds per cycle,
 * 1.2 loads, two cycles for a line of weights from the second-level cache, the latency of four
 * cycles, and something for the loop, which more work hides better. An Ice Lake server sustains 1.1
 * loads and would rather have 6 by 4 than 14 by 2; on a Zen 5, which sustains two, that loses up to
 * 6 %. */
double tutti_conv_tile_cost(int blocks, int vectors, int width);

/* How many blocks of features a register tile should have: the cheapest way to cover 'blocks' of
 * them by 'width' channels. max_width is the row's. */
int tutti_conv_tile_blocks(const int max_width[], int blocks, int vectors, int width);

/* ---- conv_pack.c ---- */

/* Floats of 'rows' packed rows. */
size_t tutti_conv_packed_floats(const tutti_conv *conv, int rows);
/* Copies rows begin .. end-1 of the compact image x to 'to', each with its padding. */
void tutti_conv_pack(const tutti_conv *conv, float *to, const float *x, int begin, int end);

/* ---- conv_lanes.c ---- */

/* dw += x * dy over a strip of dy, of one block. */
void tutti_conv_lanes_sum(const tutti_conv *conv, const float *x, const float *dy, float *dw,
                          const tutti_conv_strip *strip);

/* ---- conv_plain.c ---- */
void tutti_conv_plain_forward(const tutti_conv *conv, const tutti_task *task, const float *x,
                              const float *w, const float *bias, bool relu, float *y);
void tutti_conv_plain_weights(const tutti_conv *conv, const tutti_task *task, const float *x,
                              const float *dy, float *dw, float *db);

/* ---- conv_regroup.c ---- */

bool tutti_conv_regroups(const tutti_conv_shape *shape);
tutti_status tutti_conv_plan_regrouped(tutti_conv *conv, const tutti_kernels *row) TUTTI_MUST_CHECK;
size_t tutti_conv_regrouped_scratch(const tutti_conv *conv);
void tutti_conv_regrouped_forward(const tutti_conv *conv, const tutti_task *task, const float *x,
                                  const float *w, const float *bias, bool relu, float *y);
void tutti_conv_regrouped_data(const tutti_conv *conv, const tutti_task *task, const float *dy,
                               const float *w, const float *mask, float *dx);
void tutti_conv_regrouped_weights(const tutti_conv *conv, const tutti_task *task, const float *x,
                                  const float *dy, float *dw, float *db);

/* ---- conv_sweep.c ---- */
tutti_status tutti_conv_plan_forward(tutti_conv *conv) TUTTI_MUST_CHECK;
tutti_status tutti_conv_plan_backward(tutti_conv *conv) TUTTI_MUST_CHECK;
void tutti_conv_pass_deinit(tutti_conv_pass *pass);

/* ---- conv_gradient_plan.c ---- */
tutti_status tutti_conv_plan_gradient(tutti_conv *conv) TUTTI_MUST_CHECK;
int tutti_conv_gradient_part_count(const tutti_conv_gradient *gradient);
tutti_conv_gradient_part tutti_conv_gradient_part_of(const tutti_conv_gradient *gradient,
                                                     int index);
void tutti_conv_gradient_deinit(tutti_conv_gradient *gradient);

/* ---- winograd.c, winograd_gradient.c ---- */

/* Images cut into tiles of 2x2 pixels of y. */
typedef struct tutti_winograd_image {
    int blocks, h, w;      /* of 16 channels; rows and columns */
    int pad_top, pad_left; /* rows and columns of the first tile that lie outside */
    int tiles_h, tiles_w;
} tutti_winograd_image;

/* x and y of forward; of backward-data, if 'turned', dy and dx. */
tutti_winograd_image tutti_winograd_input(const tutti_conv *conv, bool turned);
tutti_winograd_image tutti_winograd_output(const tutti_conv *conv, bool turned);
int tutti_winograd_tiles(const tutti_winograd_image *image);  /* of one image */
long tutti_winograd_plane(const tutti_winograd_image *image); /* floats of a block of channels */

/* Tile 'tile' of all images: how much of it is inside, and where its first pixel is, or would be,
 * in floats from the first image's. */
tutti_winograd_tile tutti_winograd_cut(const tutti_winograd_image *image, int tile, long *first);

/* The pass of these images and weights; forward, or backward-data if 'turned'. */
typedef struct tutti_winograd_job {
    const tutti_conv *conv;
    bool turned;
    int n;
    const float *x, *w, *bias, *mask;
    bool relu;
    float *y;
} tutti_winograd_job;

size_t tutti_winograd_scratch(const tutti_conv *conv);
int tutti_winograd_explain(const tutti_conv *conv, char *text, size_t bytes);
void tutti_winograd_run(const tutti_winograd_job *job, tutti_team *team, void *scratch);

/* A part of dw, summed over samples begin .. end-1, at least one. */
typedef struct tutti_winograd_grain {
    const tutti_conv *conv;
    const tutti_conv_gradient_part *part;
    int begin, end;
    const float *x, *dy; /* of all samples */
    float *dw;           /* of the part */
    long feature;        /* floats of dw from one block of features to the next */
    float *room;         /* tutti_winograd_gradient_room floats */
} tutti_winograd_grain;

size_t tutti_winograd_gradient_room(const tutti_conv *conv);
void tutti_winograd_sum_grain(const tutti_winograd_grain *grain);

/* ---- winograd4.c, winograd4_gradient.c ---- */

double tutti_winograd4_effort(const tutti_conv_shape *shape);
size_t tutti_winograd4_scratch(const tutti_conv *conv);
int tutti_winograd4_explain(const tutti_conv *conv, char *text, size_t bytes);
void tutti_winograd4_run(const tutti_winograd_job *job, tutti_team *team, void *scratch);
size_t tutti_winograd4_gradient_scratch(const tutti_conv *conv);
void tutti_winograd4_gradient(const tutti_conv *conv, const tutti_task *task, const float *x,
                              const float *dy, float *dw, float *db);

/* Bytes of scratch of each pass. */
size_t tutti_conv_pass_scratch(const tutti_conv *conv, const tutti_conv_pass *pass);
size_t tutti_conv_gradient_scratch(const tutti_conv *conv);

#endif
