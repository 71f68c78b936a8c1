/* Numbers that hurt products of bf16, and where terms are in their operands. */
#ifndef TUTTI_TESTS_BF16_NUMBERS_H
#define TUTTI_TESTS_BF16_NUMBERS_H

#include <stdint.h>
#include <string.h>

#include "fenced.h"
#include "kernel/bf16_kernels.h"
#include "kernel/ref_bf16.h"

enum { TERMS = TUTTI_BF16_TERMS, PANEL = TUTTI_BF16_PANEL, LINE = TUTTI_BF16_LINE };

static inline uint32_t next(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(*state >> 33) ^ (uint32_t)(*state >> 60);
}

static inline float of_bits(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static inline bool same_bits(float a, float b)
{
    return memcmp(&a, &b, sizeof a) == 0 || (isnan(a) && isnan(b));
}

static inline tutti_bf16 *fenced_bf16(const fenced *f)
{
    return (tutti_bf16 *)(void *)f->data;
}

/* What numbers are like. */
typedef enum kind {
    USUAL, /* around one, and zeros of either sign */
    SMALL, /* products around 2^-126, numbers that are not normal */
    LARGE, /* sums that become infinite, and small ones */
    WILD,  /* infinities and NaNs, too */
    KINDS
} kind;

static inline uint32_t random_bits(uint64_t *state, kind k)
{
    const uint32_t fraction = next(state) & 0x807fffff, special = next(state) % 16;
    if (special == 0) return fraction & (k == USUAL ? 0x80000000 : 0x807fffff);
    if (k == WILD && special == 1) return (fraction & 0x80000000) | 0x7f800000;
    if (k == WILD && special == 2) return fraction | 0x7f800000;
    const uint32_t exponent = k == USUAL   ? 120 + next(state) % 8
                              : k == SMALL ? 56 + next(state) % 10
                                           : 1 + next(state) % 200;
    return fraction | exponent << 23;
}

#define EACH_ROW(row)                                                       \
    for (const tutti_kernels *const *row = tutti_kernel_table; *row; row++) \
        if (tutti_kernels_run_here(*row))

/* Where term k is in a block of so many slots a chain. */
static inline int slot_of(int k, int slots)
{
    return k % 2 * slots + k / 4;
}

static inline int in_slot(int k)
{
    return tutti_ref_bf16_place(k) % 2;
}

#endif
