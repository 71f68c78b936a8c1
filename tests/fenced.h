/* Arrays that end where an unmapped page begins, so that one float too many is a crash; a float
 * written before the first is noticed at the end. */
#ifndef TUTTI_TESTS_FENCED_H
#define TUTTI_TESTS_FENCED_H

#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

typedef struct fenced {
    void *map;
    size_t bytes;
    float *data;
    size_t count;
} fenced;

/* 'count' floats of NaN. Aligned to a cache line when count is a multiple of 16. */
static inline fenced fenced_create(size_t count)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE), wanted = count * sizeof(float);
    const size_t bytes = (wanted / page + 1) * page;
    fenced f = {.bytes = bytes + page, .count = count};
    f.map = mmap(NULL, f.bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (f.map == MAP_FAILED || mprotect((char *)f.map + bytes, page, PROT_NONE)) abort();
    f.data = (float *)((char *)f.map + bytes) - count;
    for (float *p = (float *)f.map; p < f.data + count; p++) *p = NAN;
    return f;
}

static inline void fenced_destroy(fenced *f)
{
    for (const float *p = (const float *)f->map; p < f->data; p++)
        if (!isnan(*p)) abort();
    munmap(f->map, f->bytes);
    *f = (fenced){0};
}

#endif
