/* What the public handle of ranks holds. */
#ifndef TUTTI_STEP_RANKS_H
#define TUTTI_STEP_RANKS_H

#include <tutti/ranks.h>
#include "step/rank.h"

struct tutti_ranks {
    tutti_rank me;
};

#endif
