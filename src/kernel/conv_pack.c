/* Compact images with their padding.
 *
 * Few channels make short sums: 25 terms for a grey image and a 5x5 kernel. There the edges cost
 * more than their pixels, because every tap that leaves the image needs a loop of its own, of one
 * or two rounds. So the rows of a compact image are copied, a few at a time and into cache, between
 * the zeros left and right of it, and all its pixels are alike. A zero times a finite weight
 * changes no sum. Rows above and below are skipped as everywhere. */
#include "kernel/conv_plan.h"

#include <string.h>

#include "base/memory.h"

size_t tutti_conv_packed_floats(const tutti_conv *conv, int rows)
{
    return tutti_round_up((size_t)rows * (size_t)conv->packed_row, TUTTI_BLOCK);
}

void tutti_conv_pack(const tutti_conv *conv, float *to, const float *x, int begin, int end)
{
    const tutti_conv_shape *shape = &conv->shape;
    const long row = (long)shape->w * shape->c;
    const long left = (long)shape->pad_left * shape->c, right = (long)shape->pad_right * shape->c;
    for (int h = begin; h < end; h++) {
        for (long i = 0; i < left; i++) *to++ = 0.0f;
        memcpy(to, x + h * row, (size_t)row * sizeof(float));
        to += row;
        for (long i = 0; i < right; i++) *to++ = 0.0f;
    }
}
