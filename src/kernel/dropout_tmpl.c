/* Dropout: sixteen blocks of Philox4x32-10 side by side give the numbers, of 16 bits each, of eight
 * vectors of 16 elements (which number is whose: ops.h). A block costs 120 instructions of a vector
 * of 16; with 32 bits for each element they, not memory, would be the limit. */
#include "kernel/isa/isa.h"
#include "kernel/ops_kernels.h"

enum {
    PARTS = TUTTI_BLOCK / VLEN, /* registers that hold one word of each of the 16 blocks */
    VECTORS = 8,                /* of 16 elements, whose numbers a group of 16 blocks holds */
    ROUNDS = 10
};

INLINE void philox_round(vi c[4], vi key0, vi key1)
{
    vi high0, low0, high1, low1;
    vi_mul_u(c[0], vi_set1((int)0xD2511F53u), &high0, &low0);
    vi_mul_u(c[2], vi_set1((int)0xCD9E8D57u), &high1, &low1);
    c[0] = vi_xor3(high1, c[1], key0);
    c[1] = low1;
    c[2] = vi_xor3(high0, c[3], key1);
    c[3] = low0;
}

/* Four words of each of the blocks VLEN*step + lane, as tutti_random_block gives them after ten
 * rounds with the keys that follow each other. */
typedef struct philox {
    vi word[4];
    uint32_t key0, key1;
} philox;

INLINE philox philox_start(const tutti_random_key *key, uint32_t step)
{
    const uint32_t purpose = (uint32_t)key->purpose << 24 | (key->layer & 0xFFFFFFu);
    return (philox){{vi_add(vi_lanes(), vi_set1((int)(step * VLEN))), vi_set1((int)purpose),
                     vi_set1((int)key->when), vi_set1((int)key->sample)},
                    (uint32_t)key->seed,
                    (uint32_t)(key->seed >> 32)};
}

INLINE void philox_next(philox *p)
{
    philox_round(p->word, vi_set1((int)p->key0), vi_set1((int)p->key1));
    p->key0 += 0x9E3779B9u;
    p->key1 += 0xBB67AE85u;
}

/* What one call of the kernel works on: vectors 'first' to 'end' - 1 of a sample. */
typedef struct span {
    uint32_t first, end;
    const float *x, *mask;
    float *y;
    vi limit;
    vf factor;
} span;

/* Vector j of a step's eight, or as much of it as a register holds. */
INLINE void drop_vector(const span *s, const vi word[4], uint32_t step, uint32_t j, bool masked,
                        bool stream)
{
    const ptrdiff_t vector = (ptrdiff_t)(step / PARTS * VECTORS) - (ptrdiff_t)s->first;
    const ptrdiff_t at = vector * TUTTI_BLOCK + (ptrdiff_t)(j * TUTTI_BLOCK + step % PARTS * VLEN);
    const vi number = j < 4 ? word[j] : vi_shl16(word[j - 4]);
    vf kept = vf_keep(vi_ge_u(number, s->limit), vf_mul(s->factor, vf_take(s->x + at)));
    if (masked) kept = vf_gate(kept, vf_take(s->mask + at));
    vf_put(s->y + at, kept, stream);
}

/* Groups of which the span has only some of the vectors. */
INLINE void drop_some(const span *s, const tutti_random_key *key, uint32_t group, bool masked,
                      bool stream)
{
    for (uint32_t step = group * PARTS; step < (group + 1) * PARTS; step++) {
        philox p = philox_start(key, step);
        for (int round = 0; round < ROUNDS; round++) philox_next(&p);
        UNROLL(8)
        for (uint32_t j = 0; j < VECTORS; j++)
            if (group * VECTORS + j >= s->first && group * VECTORS + j < s->end)
                drop_vector(s, p.word, step, j, masked, stream);
    }
}

/* Groups 'begin' to 'end' - 1, whole ones. The next step's numbers are made while this step's
 * vectors come and go: a vector after each round, or memory and arithmetic would take turns. */
INLINE void drop_groups(const span *s, const tutti_random_key *key, uint32_t begin, uint32_t end,
                        bool masked, bool stream)
{
    philox now = philox_start(key, begin * PARTS);
    for (int round = 0; round < ROUNDS; round++) philox_next(&now);
    for (uint32_t step = begin * PARTS; step < end * PARTS; step++) {
        philox next = philox_start(key, step + 1);
        UNROLL(10)
        for (uint32_t round = 0; round < ROUNDS; round++) {
            philox_next(&next);
            if (round < VECTORS) drop_vector(s, now.word, step, round, masked, stream);
        }
        now = next;
    }
}

INLINE void drop_all(const span *s, const tutti_random_key *key, bool masked, bool stream)
{
    const uint32_t begin = (s->first + VECTORS - 1) / VECTORS, end = s->end / VECTORS;
    if (s->first % VECTORS) drop_some(s, key, s->first / VECTORS, masked, stream);
    if (begin < end) drop_groups(s, key, begin, end, masked, stream);
    if (s->end % VECTORS && begin <= end) drop_some(s, key, end, masked, stream);
}

INLINE void drop_span(const span *s, const tutti_random_key *key, bool stream)
{
    if (s->mask) drop_all(s, key, true, stream);
    else drop_all(s, key, false, stream);
}

tutti_drop_fn NAME(op_drop);
void NAME(op_drop)(const tutti_random_key *key, const tutti_drop *drop, uint32_t first,
                   uint32_t end, const float *x, const float *mask, float *y)
{
    const span s = {.first = first,
                    .end = end,
                    .x = x,
                    .mask = mask,
                    .y = y,
                    .limit = vi_set1((int)drop->threshold),
                    .factor = vf_set1(drop->factor)};
    if (drop->stream) drop_span(&s, key, true);
    else drop_span(&s, key, false);
}
