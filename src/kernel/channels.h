/* Channels in another order, or some of them. */
#ifndef TUTTI_KERNEL_CHANNELS_H
#define TUTTI_KERNEL_CHANNELS_H

#include "kernel/exec.h"

/* Channel k of y, which has the extent 'to', is channel map[k] of x, which has 'from' channels, or
 * zero where map[k] < 0; zero also where mask (y's layout, may be NULL) <= 0. Threads share
 * planes of y. y overlaps nothing. */
void tutti_map_channels(tutti_exec exec, tutti_extent to, int from, const int *map, const float *x,
                        const float *mask, float *y);

#endif
