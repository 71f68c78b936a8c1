/* Dividing things into consecutive parts of nearly equal size. There are two rules. The first,
 * which agrees with groups, says who owns which part of the minibatch, of a layer's features or of
 * its parameters; the second divides work that any thread may do. */
#ifndef TUTTI_BASE_SHARE_H
#define TUTTI_BASE_SHARE_H

#include <stddef.h>

/* The first of 'total' things that belong to part 'i' of 'parts': parts are consecutive and their
 * sizes differ by at most one. Groups of m parts divide alike: part g of parts/m begins where
 * part g*m of parts does. */
static inline int tutti_share_begin(int total, int parts, int i)
{
    return (int)((long long)total * i / parts);
}

typedef struct tutti_range {
    size_t begin, end;
} tutti_range;

static inline size_t tutti_range_length(tutti_range range)
{
    return range.end - range.begin;
}

/* Part i of items 0 .. total-1 in consecutive parts whose sizes differ by at most one, the larger
 * ones first: for work, where it does not matter who gets which part. */
static inline tutti_range tutti_range_of(size_t total, int parts, int i)
{
    const size_t n = (size_t)parts, at = (size_t)i, size = total / n, extra = total % n;
    const size_t begin = at * size + (at < extra ? at : extra);
    return (tutti_range){begin, begin + size + (at < extra)};
}

#endif
