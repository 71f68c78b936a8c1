/* Dropout: sixteen blocks of Philox4x32-10 side by side give the numbers, of 16 bits each, of eight
 * vectors of 16 elements (which number is whose: ops.h). A block costs 120 instructions of a vector
 * of 16; with 32 bits for each element they, not memory, would be the limit. */
#include "kernel/isa/isa.h"
#include "kernel/ops_kernels.h"

enum {
    PARTS = TUTTI_BLOCK / VLEN, /* registers that hold one word of each of the 16 blocks */
    VECTORS = 8                 /* of 16 elements, whose numbers a group of 16 blocks holds */
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

/* Words of blocks 16*group + VLEN*part + lane, as tutti_random_block gives them. */
INLINE void philox(vi c[4], const tutti_random_key *key, uint32_t group, int part)
{
    const uint32_t purpose = (uint32_t)key->purpose << 24 | (key->layer & 0xFFFFFFu);
    uint32_t key0 = (uint32_t)key->seed, key1 = (uint32_t)(key->seed >> 32);
    c[0] = vi_add(vi_lanes(), vi_set1((int)(group * TUTTI_BLOCK + (uint32_t)part * VLEN)));
    c[1] = vi_set1((int)purpose);
    c[2] = vi_set1((int)key->when);
    c[3] = vi_set1((int)key->sample);
    UNROLL(10)
    for (int round = 0; round < 10; round++) {
        philox_round(c, vi_set1((int)key0), vi_set1((int)key1));
        key0 += 0x9E3779B9u;
        key1 += 0xBB67AE85u;
    }
}

/* What one call of the kernel works on, 'first' .. 'end'-1 of a sample's vectors. */
typedef struct span {
    uint32_t first, end;
    const float *x, *mask;
    float *y;
    vi limit;
    vf factor;
} span;

INLINE void drop_group(const span *s, const tutti_random_key *key, uint32_t group, bool whole,
                       bool stream)
{
    for (int part = 0; part < PARTS; part++) {
        vi word[4];
        philox(word, key, group, part);
        UNROLL(8)
        for (uint32_t j = 0; j < VECTORS; j++) {
            const uint32_t vector = group * VECTORS + j;
            if (!whole && (vector < s->first || vector >= s->end)) continue;
            const size_t at = (size_t)(vector - s->first) * TUTTI_BLOCK + (size_t)part * VLEN;
            const vi number = j < 4 ? word[j] : vi_shl16(word[j - 4]);
            vf kept = vf_keep(vi_ge_u(number, s->limit), vf_mul(s->factor, vf_take(s->x + at)));
            if (s->mask) kept = vf_gate(kept, vf_take(s->mask + at));
            vf_put(s->y + at, kept, stream);
        }
    }
}

INLINE void drop_all(const span *s, const tutti_random_key *key, bool stream)
{
    for (uint32_t group = s->first / VECTORS; group * VECTORS < s->end; group++)
        if (group * VECTORS >= s->first && group * VECTORS + VECTORS <= s->end)
            drop_group(s, key, group, true, stream);
        else drop_group(s, key, group, false, stream);
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
    if (drop->stream) {
        drop_all(&s, key, true);
        vf_stream_end();
    } else drop_all(&s, key, false);
}
