/* Running a kernel on every row this machine has, on one and two threads, on arrays that end at an
 * unmapped page and are full of NaN, and comparing bit by bit. */
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
#include <cmocka.h>

#include "base/random.h"
#include "kernel/exec.h"
#include "fenced.h"

/* ---- arrays ---- */

static inline void fenced_fill(fenced *a, float value)
{
    for (size_t i = 0; i < a->count; i++) a->data[i] = value;
}

/* Uniform in [low, high), a function of the seed. */
static inline fenced random_array(size_t count, uint64_t seed, double low, double high)
{
    fenced a = fenced_create(count);
    const tutti_random_key key = {.seed = seed, .purpose = TUTTI_RANDOM_SYNTHETIC};
    for (size_t i = 0; i < count; i++)
        a.data[i] = (float)(low + (high - low) * tutti_random_uniform(&key, i));
    return a;
}

/* Whether element i of an activation [n][c/16][pixels][16] is a channel and not filling. */
static inline bool is_channel(int c, int pixels, size_t i)
{
    const size_t block = i / 16 / (size_t)pixels % (size_t)((c + 15) / 16);
    return block * 16 + i % 16 < (size_t)c;
}

/* random_array for an activation, zero where it only fills up. */
static inline fenced random_activation(int n, int c, int pixels, uint64_t seed, double low,
                                       double high)
{
    const int blocks = (c + 15) / 16;
    fenced a = random_array((size_t)n * (size_t)blocks * (size_t)pixels * 16, seed, low, high);
    for (size_t i = 0; i < a.count; i++)
        if (!is_channel(c, pixels, i)) a.data[i] = 0.0f;
    return a;
}

static inline double *as_double(const fenced *a)
{
    double *d = malloc((a->count + 1) * sizeof *d);
    if (!d) abort();
    for (size_t i = 0; i < a->count; i++) d[i] = (double)a->data[i];
    return d;
}

/* ---- runs ---- */

typedef struct run {
    bool first;      /* plain C, one thread: the one the others must equal */
    int number;      /* of the row in the table */
    tutti_exec exec; /* with a team of one or two */
} run;

/* The two teams and the next run: for (run r = {0}; next_run(&r, teams);) */
static inline bool next_run(run *r, tutti_team *const teams[2])
{
    if (!r->exec.row) {
        *r = (run){true, 0, {tutti_kernel_table[0], teams[0]}};
        return true;
    }
    r->first = false;
    if (r->exec.team == teams[0]) {
        r->exec.team = teams[1];
        return true;
    }
    r->exec.team = teams[0];
    do r->exec.row = tutti_kernel_table[++r->number];
    while (r->exec.row && !tutti_kernels_run_here(r->exec.row));
    return r->exec.row != NULL;
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
static inline void same_bits(const run *r, const char *what, const fenced *want, fenced *got)
{
    for (size_t i = 0; i < want->count; i++) {
        if (!memcmp(want->data + i, got->data + i, sizeof(float))) continue;
        if (isnan(want->data[i]) && isnan(got->data[i])) continue;
        fail_msg("%s: row %s, %d threads, element %zu of %zu: got %a, plain C %a", what,
                 r->exec.row->name, tutti_team_size(r->exec.team), i, want->count,
                 (double)got->data[i], (double)want->data[i]);
    }
    fenced_fill(got, NAN);
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
