/* Running a kernel on every row this machine has and on one and two threads, on arrays that end at
 * an unmapped page and are full of NaN, and comparing bit by bit. */
#ifndef TUTTI_TESTS_ROWS_H
#define TUTTI_TESTS_ROWS_H

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/cpu.h"
#include "base/random.h"
#include "base/team.h"
#include "kernel/table.h"

/* ---- fenced arrays ---- */

typedef struct array {
    size_t count, bytes; /* floats; bytes of the mapping */
    char *map;
    float *at;
} array;

static inline void array_fill(array *a, float value)
{
    for (size_t i = 0; i < a->count; i++) a->at[i] = value;
}

/* 'count' NaN between two unmapped pages, ending at the second. */
static inline array array_create(size_t count)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    const size_t inside = (count * sizeof(float) + page - 1) / page * page;
    array a = {count, inside + 2 * page, NULL, NULL};
    a.map = mmap(NULL, a.bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (a.map == MAP_FAILED) abort();
    if (inside && mprotect(a.map + page, inside, PROT_READ | PROT_WRITE)) abort();
    a.at = (float *)(a.map + page + inside) - count;
    array_fill(&a, NAN);
    return a;
}

static inline void array_destroy(array *a)
{
    munmap(a->map, a->bytes);
}

/* Uniform in [low, high), a function of the seed. */
static inline array array_random(size_t count, uint64_t seed, double low, double high)
{
    array a = array_create(count);
    const tutti_random_key key = {.seed = seed, .purpose = TUTTI_RANDOM_SYNTHETIC};
    for (size_t i = 0; i < count; i++)
        a.at[i] = (float)(low + (high - low) * tutti_random_uniform(&key, i));
    return a;
}

/* Whether element i of an activation [n][c/16][pixels][16] is a channel and no filler. */
static inline bool is_channel(int c, int pixels, size_t i)
{
    const size_t block = i / 16 / (size_t)pixels % (size_t)((c + 15) / 16);
    return block * 16 + i % 16 < (size_t)c;
}

/* array_random for an activation, zero where it only fills up. */
static inline array array_activation(int n, int c, int pixels, uint64_t seed, double low,
                                     double high)
{
    const int blocks = (c + 15) / 16;
    array a = array_random((size_t)n * (size_t)blocks * (size_t)pixels * 16, seed, low, high);
    for (size_t i = 0; i < a.count; i++)
        if (!is_channel(c, pixels, i)) a.at[i] = 0.0f;
    return a;
}

static inline double *as_double(const array *a)
{
    double *d = malloc((a->count + 1) * sizeof *d);
    if (!d) abort();
    for (size_t i = 0; i < a->count; i++) d[i] = (double)a->at[i];
    return d;
}

/* ---- runs ---- */

typedef struct run {
    const tutti_kernels *row;
    tutti_team *team; /* of one or two */
    bool first;       /* plain C, one thread: the one the others must equal */
} run;

/* The two teams and the next run: for (run r = {0}; next_run(&r, teams);) */
static inline bool next_run(run *r, tutti_team *const teams[2])
{
    const unsigned have = tutti_cpu_features();
    if (!r->row) {
        *r = (run){tutti_kernel_table, teams[0], true};
        return true;
    }
    r->first = false;
    if (r->team == teams[0]) {
        r->team = teams[1];
        return true;
    }
    r->team = teams[0];
    do r->row++;
    while (r->row->name && (r->row->needs & ~have));
    return r->row->name != NULL;
}

static inline int create_teams(void **state)
{
    static tutti_team *teams[2];
    if (tutti_team_create(&teams[0], 1) || tutti_team_create(&teams[1], 2)) return -1;
    *state = teams;
    return 0;
}

static inline int destroy_teams(void **state)
{
    tutti_team **teams = *state;
    tutti_team_destroy(&teams[0]);
    tutti_team_destroy(&teams[1]);
    return 0;
}

/* Fails with the row, the threads and the element where 'got' differs from 'want'; any NaN equals
 * any NaN. Then fills 'got' with NaN again for the next run. */
static inline void same_bits(const run *r, const char *what, const array *want, array *got)
{
    for (size_t i = 0; i < want->count; i++) {
        if (!memcmp(want->at + i, got->at + i, sizeof(float))) continue;
        if (isnan(want->at[i]) && isnan(got->at[i])) continue;
        fail_msg("%s: row %s, %d threads, element %zu of %zu: got %a, plain C %a", what,
                 r->row->name, tutti_team_size(r->team), i, want->count, (double)got->at[i],
                 (double)want->at[i]);
    }
    array_fill(got, NAN);
}

/* Fails where |got - want| exceeds the bound of the element. */
static inline void within(const char *what, size_t count, const float *got, const double *want,
                          const double *bound)
{
    for (size_t i = 0; i < count; i++)
        if (!(fabs((double)got[i] - want[i]) <= bound[i]))
            fail_msg("%s: element %zu of %zu: got %.9g, want %.17g, bound %.3g", what, i, count,
                     (double)got[i], want[i], bound[i]);
}

#endif
