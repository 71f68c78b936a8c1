#include "train/worst.h"

#include <math.h>
#include <stdbool.h>

static bool is_worse(const tutti_bad_answer *a, const tutti_bad_answer *b)
{
    const bool a_is_odd = isnan(a->loss), b_is_odd = isnan(b->loss);
    if (a_is_odd != b_is_odd) return a_is_odd;
    if (!a_is_odd && a->loss != b->loss) return a->loss > b->loss;
    return a->id < b->id;
}

void tutti_worst_add(tutti_worst *worst, const tutti_bad_answer *answer)
{
    int64_t at = worst->count;
    if (at == TUTTI_MOST_WORST && !is_worse(answer, &worst->list[at - 1])) return;
    if (at == TUTTI_MOST_WORST) at--;
    else worst->count++;
    for (; at > 0 && is_worse(answer, &worst->list[at - 1]); at--)
        worst->list[at] = worst->list[at - 1];
    worst->list[at] = *answer;
}

void tutti_worst_merge(tutti_worst *worst, const tutti_worst *other)
{
    for (int64_t i = 0; i < other->count; i++) tutti_worst_add(worst, &other->list[i]);
}
