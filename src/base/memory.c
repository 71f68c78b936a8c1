#define _DEFAULT_SOURCE
#include "base/memory.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

static tutti_status no_memory(size_t count, size_t size)
{
    const double mib = (double)count * (double)size / (1024.0 * 1024.0);
    return tutti_fail(TUTTI_MEMORY, "cannot allocate %.1f MiB (%zu x %zu bytes)", mib, count, size);
}

tutti_status tutti_alloc(void *out, size_t count, size_t size)
{
    void *block = NULL;
    memcpy(out, &block, sizeof block);
    if (size && count > (SIZE_MAX / 2) / size) return no_memory(count, size);

    const size_t wanted = count * size;
    const size_t align = wanted >= TUTTI_HUGE_PAGE ? TUTTI_HUGE_PAGE : TUTTI_CACHE_LINE;
    const size_t bytes = tutti_round_up(wanted ? wanted : 1, align);
    block = aligned_alloc(align, bytes);
    if (!block) return no_memory(count, size);
#ifdef MADV_HUGEPAGE
    if (align == TUTTI_HUGE_PAGE) (void)madvise(block, bytes, MADV_HUGEPAGE); /* only advice */
#endif
    memset(block, 0, bytes);
    memcpy(out, &block, sizeof block);
    return TUTTI_OK;
}

tutti_status tutti_alloc_floats(float **out, size_t count)
{
    return tutti_alloc(out, count, sizeof **out);
}

void tutti_free(void *block)
{
    free(block);
}

tutti_status tutti_strndup(char **out, const char *text, size_t length)
{
    TUTTI_TRY(tutti_alloc(out, length + 1, 1));
    memcpy(*out, text, length);
    return TUTTI_OK;
}

tutti_status tutti_grow(void *array, int *room, int count, size_t size)
{
    char *old, *grown;
    if (count < *room) return TUTTI_OK;
    const int more = 2 * count + 8;
    TUTTI_TRY(tutti_alloc(&grown, (size_t)more, size));
    memcpy(&old, array, sizeof old);
    if (old) memcpy(grown, old, (size_t)count * size);
    *room = more;
    memcpy(array, &grown, sizeof grown);
    tutti_free(old);
    return TUTTI_OK;
}

tutti_status tutti_strdup(char **out, const char *text)
{
    return tutti_strndup(out, text, strlen(text));
}

tutti_status tutti_arena_init(tutti_arena *arena, size_t bytes)
{
    *arena = (tutti_arena){0};
    TUTTI_TRY(tutti_alloc(&arena->base, bytes, 1));
    arena->bytes = bytes;
    return TUTTI_OK;
}

void tutti_arena_deinit(tutti_arena *arena)
{
    tutti_free(arena->base);
    *arena = (tutti_arena){0};
}

void *tutti_arena_take(tutti_arena *arena, size_t bytes)
{
    const size_t at = arena->used;
    arena->used += tutti_round_up(bytes, TUTTI_CACHE_LINE);
    if (!arena->base) return NULL;
    TUTTI_ASSERT(arena->used <= arena->bytes);
    return arena->base + at;
}
