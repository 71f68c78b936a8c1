/* Winograd's F(4x4, 3x3) from the inside: images cut into tiles, and what forward, backward-data
 * (winograd4.c) and backward-weights (winograd4_gradient.c) both do with them. */
#ifndef TUTTI_KERNEL_WINOGRAD4_H
#define TUTTI_KERNEL_WINOGRAD4_H

#include "base/memory.h"
#include "kernel/conv_plan.h"

/* An image and its tiles, those of the output, four by four pixels. Where a side ends with one or
 * two pixels its last tiles are short; three are a whole tile that reaches beyond the edge. */
typedef struct tutti_winograd4_image {
    int blocks, h, w;      /* of 16 channels; rows and columns */
    int pad_top, pad_left; /* rows and columns of the first tile that lie outside */
    int tiles_h, tiles_w;
    bool short_h, short_w; /* the last row of tiles, the last column */
} tutti_winograd4_image;

/* x and y of forward; of backward-data, if 'turned', dy and dx. */
tutti_winograd4_image tutti_winograd4_input(const tutti_conv *conv, bool turned);
tutti_winograd4_image tutti_winograd4_output(const tutti_conv *conv, bool turned);
int tutti_winograd4_tiles(const tutti_winograd4_image *image);  /* of one image */
long tutti_winograd4_plane(const tutti_winograd4_image *image); /* floats of a block of channels */
long tutti_winograd4_sample(const tutti_winograd4_image *image);

/* Consecutive tiles of all samples, and where each is among those of a class: number 'at', and in
 * memory. */
typedef struct tutti_winograd4_block {
    int first, count;
    int *at[TUTTI_WINOGRAD4_CLASSES]; /* [count + 1]: the last is how many there are */
    tutti_winograd4_place *place[TUTTI_WINOGRAD4_CLASSES];
} tutti_winograd4_block;

/* Memory for up to 'most' tiles. */
tutti_winograd4_block tutti_winograd4_block_take(tutti_arena *arena, int most);

/* Tiles first .. first+count-1, in groups of at most 'group' of a class: [groups][blocks of
 * channels][tiles of the group][16] for each point. */
void tutti_winograd4_cut(tutti_winograd4_block *block, const tutti_winograd4_image *image,
                         int first, int count, int group);

/* v of tiles begin .. end-1 of the block and blocks of channels c .. c_end-1. 'zeros' is a row of
 * the image that lies in the padding. */
void tutti_winograd4_spread(const tutti_winograd4_kernels *kernels,
                            const tutti_winograd4_image *image, const tutti_winograd4_block *block,
                            const tutti_fc_part *part, const float *x, const float *zeros, float *v,
                            long v_step);

/* A tile of the output, and where its first pixel is, in floats from the first sample's first. */
typedef struct tutti_winograd4_spot {
    tutti_winograd4_tile tile;
    long first;
} tutti_winograd4_spot;

void tutti_winograd4_find(tutti_winograd4_spot spots[], const tutti_winograd4_image *image,
                          int first, int count);

/* Floats from one point to the next: an odd number of lines, or all points were in one set of the
 * cache. */
static inline long tutti_winograd4_step(long floats)
{
    return floats / TUTTI_BLOCK % 2 ? floats : floats + TUTTI_BLOCK;
}

static inline float *tutti_winograd4_floats(tutti_arena *arena, long floats)
{
    return tutti_arena_take(arena, (size_t)floats * sizeof(float));
}

#endif
