#include "kernel/blocking.h"

#include "base/memory.h"

static size_t operand_bytes(const tutti_loops *b)
{
    const size_t rows = (size_t)(b->h - 1) * (size_t)b->stride_h + (size_t)b->r;
    const size_t cols = (size_t)(b->w - 1) * (size_t)b->stride_w + (size_t)b->s;
    const size_t x = (size_t)b->n * (size_t)b->c * rows * cols;
    const size_t y = (size_t)b->n * (size_t)b->k * (size_t)b->h * (size_t)b->w;
    const size_t w = (size_t)b->c * (size_t)b->k * (size_t)b->r * (size_t)b->s;
    return (x + y + w) * sizeof(float);
}

static double flops(const tutti_loops *b)
{
    return 2.0 * b->n * b->c * b->k * b->h * b->w * b->r * b->s;
}

static tutti_blocking measured(const tutti_loops *block)
{
    const size_t bytes = operand_bytes(block);
    return (tutti_blocking){*block, bytes, (double)bytes / flops(block)};
}

static int min_of(int a, int b)
{
    return a < b ? a : b;
}

/* The next smaller size worth trying after 'size': cuts 'total' (in units) into more equal parts.
 * 0 when there is none. */
static int next_smaller(int total, int unit, int size)
{
    const int units = tutti_ceil_div(total, unit), now = tutti_ceil_div(size, unit);
    if (now <= 1) return 0;
    int parts = tutti_ceil_div(units, now);
    while (tutti_ceil_div(units, parts) >= now) parts++;
    return min_of(tutti_ceil_div(units, parts) * unit, total);
}

/* What one dimension is called in a tutti_loops, to walk over all five alike. */
static int *dimension(tutti_loops *loops, int i)
{
    int *const all[] = {&loops->n, &loops->c, &loops->k, &loops->h, &loops->w};
    return all[i];
}

enum { DIMENSIONS = 5 };

static void try_all(const tutti_loops *all, const tutti_loops *least, size_t cache,
                    tutti_loops *block, int i, tutti_blocking *best)
{
    if (i == DIMENSIONS) {
        const tutti_blocking now = measured(block);
        if (now.bytes <= cache &&
            (best->bytes > cache || now.bytes_per_flop < best->bytes_per_flop))
            *best = now;
        return;
    }
    tutti_loops a = *all, l = *least;
    const int total = *dimension(&a, i), unit = min_of(*dimension(&l, i), total);
    for (int size = total; size >= unit && size > 0; size = next_smaller(total, unit, size)) {
        *dimension(block, i) = size;
        try_all(all, least, cache, block, i + 1, best);
    }
}

tutti_blocking tutti_block_search(const tutti_loops *all, const tutti_loops *least, size_t cache)
{
    tutti_loops block = *all, smallest = *all;
    for (int i = 0; i < DIMENSIONS; i++) {
        tutti_loops l = *least;
        *dimension(&smallest, i) = min_of(*dimension(&l, i), *dimension(&smallest, i));
    }
    tutti_blocking best = measured(&smallest);
    try_all(all, least, cache, &block, 0, &best);
    return best;
}

double tutti_unblocked_bytes_per_flop(const tutti_loops *all)
{
    tutti_loops one = *all;
    one.n = one.c = one.k = 1;
    return measured(&one).bytes_per_flop;
}
