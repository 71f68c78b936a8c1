/* Convolutions that round what they multiply to bf16, from the inside: conv_bf16.c, which states
 * the order of the sums, conv_bf16_pass.c, conv_bf16_gradient.c. */
#ifndef TUTTI_KERNEL_CONV_BF16_H
#define TUTTI_KERNEL_CONV_BF16_H

#include "kernel/bf16_kernels.h"
#include "kernel/conv_plan.h"

/* Forward or backward-data: the sweeps of a tutti_conv_pass over packed rows and panels. */
typedef struct tutti_conv_bf16_pass {
    const tutti_conv_pass *pass; /* what is where, and its sweeps; of its blocks nothing */
    bool gathers;                /* one tap: only pixels that are read are packed, in y's order */
    int blocks;                  /* of terms of a tap */
    int rows;                    /* of the output that are done at a time; may be fewer */
    int parts;                   /* of the features, for threads */
    int chunk;                   /* blocks of terms of a product */
    int left, width, height;     /* of packed rows: columns of zeros before them; all; how many */
    size_t panel;                /* elements of all weights of 16 features */
    size_t *weights;             /* by sweep: where in a panel its taps begin */
    tutti_bf16_block **terms;    /* by sweep: those of all its taps */
} tutti_conv_bf16_pass;

typedef struct tutti_conv_bf16 {
    const tutti_bf16_kernels *kernels;
    tutti_conv_bf16_pass forward, backward;
    int pixels; /* of backward-weights: blocks that are packed at a time */
} tutti_conv_bf16;

/* Makes conv->bf16, once the passes are planned. */
tutti_status tutti_conv_bf16_create(tutti_conv *conv, const tutti_kernels *row) TUTTI_MUST_CHECK;
void tutti_conv_bf16_destroy(tutti_conv_bf16 **bf16);

/* As snprintf: what forward and backward-data have at a time. */
int tutti_conv_bf16_explain(const tutti_conv *conv, char *text, size_t bytes);

/* Bytes of scratch of forward and backward-data; elements of their weights and of a thread's
 * rows. */
size_t tutti_conv_bf16_scratch(const tutti_conv *conv);
size_t tutti_conv_bf16_weights(const tutti_conv_bf16_pass *p);
size_t tutti_conv_bf16_packed(const tutti_conv_bf16_pass *p);

/* Input rows that output rows begin .. end-1 read; where only pixels that are read are packed,
 * these are counted. */
typedef struct tutti_conv_bf16_rows {
    int begin, end;
} tutti_conv_bf16_rows;
tutti_conv_bf16_rows tutti_conv_bf16_read(const tutti_conv_bf16_pass *p, int begin, int end);

/* Memory that is needed soon, in runs that lie apart; products fetch it piece by piece. Counts are
 * of floats. */
typedef struct tutti_conv_bf16_ahead {
    const float *at;
    size_t run, apart, piece;
    int runs;
    size_t done; /* of the first run */
} tutti_conv_bf16_ahead;

/* Gives a product the next piece. */
void tutti_conv_bf16_fetch(tutti_conv_bf16_ahead *ahead, tutti_bf16_product *product);

/* A pass. */
typedef struct tutti_conv_bf16_job {
    int n;
    const float *x, *w, *bias, *mask;
    bool relu;
    float *y;
} tutti_conv_bf16_job;

void tutti_conv_bf16_run(const tutti_conv *conv, const tutti_conv_bf16_pass *p,
                         const tutti_conv_bf16_job *of, tutti_team *team, void *scratch);

/* ---- conv_bf16_gradient.c ---- */

void tutti_conv_bf16_plan_gradient(tutti_conv *conv);

/* A part of dw, summed over samples begin .. end-1, at least one. */
typedef struct tutti_conv_bf16_grain {
    const tutti_conv *conv;
    const tutti_conv_gradient_part *part;
    int begin, end;
    const float *x, *dy; /* of all samples */
    float *dw;           /* of the part */
    long feature;        /* floats of dw from one block of features to the next */
    float *room;         /* tutti_conv_bf16_room floats */
} tutti_conv_bf16_grain;

size_t tutti_conv_bf16_room(const tutti_conv *conv);
void tutti_conv_bf16_sum_grain(const tutti_conv_bf16_grain *grain);

#endif
