/* Memory: aligned to cache lines, large blocks to huge pages, always zeroed, and a sentence when
 * there is not enough. */
#ifndef TUTTI_BASE_MEMORY_H
#define TUTTI_BASE_MEMORY_H

#include <stddef.h>
#include "base/status.h"

enum { TUTTI_CACHE_LINE = 64, TUTTI_HUGE_PAGE = 2 << 20 };

/* Stores a block of count*size zeroed bytes in *(void **)out, to be given to tutti_free. Blocks
 * of a huge page and more are aligned to one and offered to the kernel as such. On failure
 * (TUTTI_MEMORY, with the number of bytes) *out is NULL. 'out' is the address of a pointer. */
tutti_status tutti_alloc(void *out, size_t count, size_t size) TUTTI_MUST_CHECK;
void tutti_free(void *block); /* NULL is fine */

/* The same for numbers that are only computed with: parameters, gradients, activations. Nothing
 * that says what to do next may be there, no pointer, no count: a simulator, which does not
 * compute, gives every caller the same block. */
tutti_status tutti_alloc_floats(float **out, size_t count) TUTTI_MUST_CHECK;

/* Makes room for one more element after the first 'count' of the array at *(void **)array, which
 * has room for *room: when it is full, a larger copy takes its place, zero after the old
 * elements. */
tutti_status tutti_grow(void *array, int *room, int count, size_t size) TUTTI_MUST_CHECK;

/* A copy of a string, or of its first 'length' bytes. */
tutti_status tutti_strdup(char **out, const char *text) TUTTI_MUST_CHECK;
tutti_status tutti_strndup(char **out, const char *text, size_t length) TUTTI_MUST_CHECK;

/* An arena is one block from which pieces are taken and which is freed as a whole. Measure first:
 * an arena without a base only counts, so the same code plans the memory and then takes it. */
typedef struct tutti_arena {
    char *base;
    size_t bytes; /* capacity */
    size_t used;
} tutti_arena;

tutti_status tutti_arena_init(tutti_arena *arena, size_t bytes) TUTTI_MUST_CHECK;
void tutti_arena_deinit(tutti_arena *arena);

/* A piece aligned to a cache line; NULL from an arena that only counts. Taking more than the
 * capacity is the programmer's mistake. */
void *tutti_arena_take(tutti_arena *arena, size_t bytes);

static inline size_t tutti_round_up(size_t value, size_t multiple)
{
    return (value + multiple - 1) / multiple * multiple;
}

static inline int tutti_ceil_div(int value, int divisor)
{
    return (value + divisor - 1) / divisor;
}

#endif
