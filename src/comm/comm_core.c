#include "comm/comm_core.h"

#include "base/tree.h"
#include "comm/comm.h"

tutti_comm_core tutti_comm_core_choose(const tutti_comm_core_question *q)
{
    const int begin = tutti_share_begin(q->cores, q->ranks, q->rank);
    const int end = tutti_share_begin(q->cores, q->ranks, q->rank + 1), own = end - begin;
    const bool spares = q->core != TUTTI_CORE_NONE && own >= TUTTI_CORES_TO_SPARE_ONE;
    tutti_comm_core place = {.threads = q->threads, .core = q->core};
    if (!place.threads) place.threads = own < 1 ? 1 : own - spares;
    place.is_spare = place.threads < own;
    if (q->core == TUTTI_CORE_AUTO) place.core = place.is_spare ? end - 1 : TUTTI_CORE_NONE;
    return place;
}
