/* Dropout: sixteen blocks of Philox4x32-10 side by side give the numbers, of 16 bits each, of eight
 * vectors of 16 elements (which number is whose: ops.h). A block costs 116 instructions of a vector
 * of 16; with 32 bits for each element they, not memory, would be the limit. */
#include "kernel/isa/isa.h"
#include "kernel/ops_kernels.h"

enum {
    PARTS = TUTTI_BLOCK / VLEN, /* registers that hold one word of each of the 16 blocks */
    VECTORS = 8,                /* of 16 elements, whose numbers a group of 16 blocks holds */
    ROUNDS = 10,
    COMMON_ROUNDS = 2
};

#define PHILOX_M0 0xD2511F53u
#define PHILOX_M1 0xCD9E8D57u

/* The blocks of a call differ in their first word only, which takes two rounds to reach them all.
 * What those rounds do to the others is done once. */
typedef struct philox_key {
    uint32_t key0[ROUNDS], key1[ROUNDS];
    uint32_t first2;                    /* the first round's third word is its product and this */
    uint32_t second0, second2, second3; /* likewise; the fourth word is just this */
} philox_key;

static philox_key philox_key_of(const tutti_random_key *key)
{
    philox_key k;
    for (uint32_t i = 0; i < ROUNDS; i++) {
        k.key0[i] = (uint32_t)key->seed + i * 0x9E3779B9u;
        k.key1[i] = (uint32_t)(key->seed >> 32) + i * 0xBB67AE85u;
    }
    const uint32_t purpose = (uint32_t)key->purpose << 24 | (key->layer & 0xFFFFFFu);
    const uint64_t first = (uint64_t)PHILOX_M1 * (uint32_t)key->when;
    const uint32_t word0 = (uint32_t)(first >> 32) ^ purpose ^ k.key0[0];
    const uint64_t second = (uint64_t)PHILOX_M0 * word0;
    k.first2 = (uint32_t)key->sample ^ k.key1[0];
    k.second0 = (uint32_t)first ^ k.key0[1];
    k.second2 = (uint32_t)(second >> 32) ^ k.key1[1];
    k.second3 = (uint32_t)second;
    return k;
}

/* Four words of each of the blocks VLEN*step + lane, as tutti_random_block gives them after the
 * last round. */
typedef struct philox {
    vw word[4];
} philox;

INLINE philox philox_start(const philox_key *k, uint32_t step)
{
    vw high, low, product;
    vw_mul_u(vw_of(vi_add(vi_lanes(), vi_set1((int)(step * VLEN)))), vi_set1((int)PHILOX_M0), &high,
             &product);
    vw_mul_u(vw_xor(high, vi_set1((int)k->first2)), vi_set1((int)PHILOX_M1), &high, &low);
    return (philox){{vw_xor(high, vi_set1((int)k->second0)), low,
                     vw_xor(product, vi_set1((int)k->second2)), vw_of(vi_set1((int)k->second3))}};
}

INLINE void philox_round(philox *p, const philox_key *k, uint32_t round)
{
    vw high0, low0, high1, low1, *w = p->word;
    vw_mul_u(w[0], vi_set1((int)PHILOX_M0), &high0, &low0);
    vw_mul_u(w[2], vi_set1((int)PHILOX_M1), &high1, &low1);
    w[0] = vw_xor3(high1, w[1], vi_set1((int)k->key0[round]));
    w[1] = low1;
    w[2] = vw_xor3(high0, w[3], vi_set1((int)k->key1[round]));
    w[3] = low0;
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
INLINE void drop_vector(const span *s, const vi words[4], uint32_t step, uint32_t j, bool masked,
                        bool stream)
{
    const ptrdiff_t vector = (ptrdiff_t)(step / PARTS * VECTORS) - (ptrdiff_t)s->first;
    const ptrdiff_t at = vector * TUTTI_BLOCK + (ptrdiff_t)(j * TUTTI_BLOCK + step % PARTS * VLEN);
    const vi number = j < 4 ? words[j] : vi_shl16(words[j - 4]);
    vf kept = vf_keep(vi_ge_u(number, s->limit), vf_mul(s->factor, vf_take(s->x + at)));
    if (masked) kept = vf_gate(kept, vf_take(s->mask + at));
    vf_put(s->y + at, kept, stream);
}

INLINE void philox_words(const philox *p, vi words[4])
{
    UNROLL(4)
    for (int i = 0; i < 4; i++) words[i] = vi_of_wide(p->word[i]);
}

/* Groups of which the span has only some of the vectors. */
INLINE void drop_some(const span *s, const philox_key *k, uint32_t group, bool masked, bool stream)
{
    for (uint32_t step = group * PARTS; step < (group + 1) * PARTS; step++) {
        philox p = philox_start(k, step);
        vi words[4];
        for (uint32_t round = COMMON_ROUNDS; round < ROUNDS; round++) philox_round(&p, k, round);
        philox_words(&p, words);
        UNROLL(8)
        for (uint32_t j = 0; j < VECTORS; j++)
            if (group * VECTORS + j >= s->first && group * VECTORS + j < s->end)
                drop_vector(s, words, step, j, masked, stream);
    }
}

/* Groups 'begin' to 'end' - 1, whole ones. The next step's numbers are made while this step's
 * vectors come and go: a vector after each round, or memory and arithmetic would take turns. */
INLINE void drop_groups(const span *s, const philox_key *k, uint32_t begin, uint32_t end,
                        bool masked, bool stream)
{
    _Static_assert(ROUNDS - COMMON_ROUNDS == VECTORS, "a vector after each round");
    philox p = philox_start(k, begin * PARTS);
    for (uint32_t round = COMMON_ROUNDS; round < ROUNDS; round++) philox_round(&p, k, round);
    for (uint32_t step = begin * PARTS; step < end * PARTS; step++) {
        vi words[4];
        philox_words(&p, words);
        p = philox_start(k, step + 1);
        UNROLL(8)
        for (uint32_t j = 0; j < VECTORS; j++) {
            philox_round(&p, k, COMMON_ROUNDS + j);
            drop_vector(s, words, step, j, masked, stream);
        }
    }
}

INLINE void drop_all(const span *s, const philox_key *k, bool masked, bool stream)
{
    const uint32_t begin = (s->first + VECTORS - 1) / VECTORS, end = s->end / VECTORS;
    if (s->first % VECTORS) drop_some(s, k, s->first / VECTORS, masked, stream);
    if (begin < end) drop_groups(s, k, begin, end, masked, stream);
    if (s->end % VECTORS && begin <= end) drop_some(s, k, end, masked, stream);
}

INLINE void drop_span(const span *s, const philox_key *k, bool stream)
{
    if (s->mask) drop_all(s, k, true, stream);
    else drop_all(s, k, false, stream);
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
    const philox_key k = philox_key_of(key);
    if (drop->stream) drop_span(&s, &k, true);
    else drop_span(&s, &k, false);
}
