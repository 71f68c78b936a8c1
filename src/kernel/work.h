/* How drivers divide their work over a team, and when they store past the caches. */
#ifndef TUTTI_KERNEL_WORK_H
#define TUTTI_KERNEL_WORK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/memory.h"
#include "base/share.h"
#include "base/team.h"

/* Below this many floats a pass is done before the team would have woken up. */
enum { TUTTI_SMALL = 1 << 14 };

/* The team, or the caller alone for little work. */
static inline tutti_team *tutti_team_for(tutti_team *team, size_t floats)
{
    return floats < TUTTI_SMALL ? NULL : team;
}

/* Whether an output y of 'floats' floats is stored past the caches. A plain store first fetches
 * the line it writes, a third of the traffic of a copy; but what the caches can hold until it is
 * read again had better stay there. */
enum { TUTTI_STREAMED = 4 << 20 };

static inline bool tutti_streams(const float *y, size_t floats)
{
    return floats >= TUTTI_STREAMED && (uintptr_t)y % TUTTI_CACHE_LINE == 0;
}

#endif
