#include "data/crop.h"

#include <math.h>

#include "base/series.h"
#include "data/view.h"

enum { TRIES = 10 };

static double draw(tutti_between from, uint32_t random)
{
    return from.least + (from.most - from.least) * (random * 0x1p-32);
}

/* 0 .. most */
static int place(uint32_t random, int most)
{
    return (int)((uint64_t)random * ((uint64_t)most + 1) >> 32);
}

static tutti_crop in_the_middle(const tutti_crop_range *range, int height, int width)
{
    const double aspect = (double)width / height;
    tutti_crop crop = {.height = height, .width = width};
    if (aspect < range->aspect.least) crop.height = (int)rint(width / range->aspect.least);
    if (aspect > range->aspect.most) crop.width = (int)rint(height * range->aspect.most);
    if (crop.height < 1) crop.height = 1;
    if (crop.width < 1) crop.width = 1;
    crop.top = (height - crop.height) / 2;
    crop.left = (width - crop.width) / 2;
    return crop;
}

tutti_crop tutti_crop_draw(const tutti_crop_range *range, const tutti_random_key *key, int height,
                           int width)
{
    const tutti_between shape = {tutti_series_log(range->aspect.least),
                                 tutti_series_log(range->aspect.most)};
    for (uint32_t i = 0; i < TRIES; i++) {
        uint32_t random[4];
        tutti_random_block(random, key, TUTTI_DRAWS_CROP + i);
        const double area = (double)height * width * draw(range->area, random[0]);
        const double aspect = tutti_series_exp(draw(shape, random[1]));
        const double w = rint(sqrt(area * aspect)), h = rint(sqrt(area / aspect));
        if (!(w >= 1 && h >= 1 && w <= width && h <= height)) continue;
        return (tutti_crop){.top = place(random[2], height - (int)h),
                            .left = place(random[3], width - (int)w),
                            .height = (int)h,
                            .width = (int)w};
    }
    return in_the_middle(range, height, width);
}
