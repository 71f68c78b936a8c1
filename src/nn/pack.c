#include "nn/pack.h"

#include <stdint.h>
#include <string.h>

#include "base/memory.h"

static void sort_by_size(const tutti_piece *pieces, int *order, int count)
{
    for (int i = 0; i < count; i++) {
        int at = i;
        for (; at && pieces[order[at - 1]].bytes < pieces[i].bytes; at--) order[at] = order[at - 1];
        order[at] = i;
    }
}

static int meet(const tutti_piece *a, const tutti_piece *b)
{
    return a->begin <= b->end && b->begin <= a->end;
}

/* The start of the smallest gap for 'piece' among the 'placed' ones, which are in order of
 * offset; behind all of them if there is none. */
static size_t best_gap(const tutti_piece *piece, const tutti_piece *pieces, const int *placed,
                       int count)
{
    size_t best = SIZE_MAX, best_slack = SIZE_MAX, at = 0;
    for (int i = 0; i < count; i++) {
        const tutti_piece *other = &pieces[placed[i]];
        if (!meet(piece, other)) continue;
        if (other->offset >= at + piece->bytes && other->offset - at - piece->bytes < best_slack) {
            best = at;
            best_slack = other->offset - at - piece->bytes;
        }
        if (other->offset + other->bytes > at) at = other->offset + other->bytes;
    }
    return best == SIZE_MAX ? at : best;
}

static void insert(const tutti_piece *pieces, int *placed, int count, int piece)
{
    int at = count;
    for (; at && pieces[placed[at - 1]].offset > pieces[piece].offset; at--)
        placed[at] = placed[at - 1];
    placed[at] = piece;
}

tutti_status tutti_pack(tutti_piece *pieces, int count, size_t *total)
{
    int *order = NULL;
    TUTTI_TRY(tutti_alloc(&order, 2 * (size_t)count, sizeof *order));
    int *placed = order + count;
    for (int i = 0; i < count; i++)
        pieces[i].bytes = tutti_round_up(pieces[i].bytes, TUTTI_CACHE_LINE);
    sort_by_size(pieces, order, count);
    *total = 0;
    for (int i = 0; i < count; i++) {
        tutti_piece *piece = &pieces[order[i]];
        piece->offset = best_gap(piece, pieces, placed, i);
        insert(pieces, placed, i, order[i]);
        if (piece->offset + piece->bytes > *total) *total = piece->offset + piece->bytes;
    }
    tutti_free(order);
    return TUTTI_OK;
}
