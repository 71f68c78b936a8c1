/* Dropout: sixteen blocks of Philox4x32-10 side by side give the numbers of four vectors of 16
 * elements (which number is whose: ops.h). */
#include "kernel/isa/isa.h"
#include "kernel/ops_kernels.h"

enum { PARTS = TUTTI_BLOCK / VLEN }; /* registers that hold one number of each of the 16 blocks */

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

/* Numbers of blocks 16*group + VLEN*part + lane, as tutti_random_block gives them. */
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

INLINE void drop_all(const tutti_random_key *key, const tutti_drop *drop, uint32_t first,
                     uint32_t end, const float *x, const float *mask, float *y, bool stream)
{
    const vi limit = vi_set1((int)drop->threshold);
    const vf scale = vf_set1(drop->factor);
    for (uint32_t group = first / 4; group * 4 < end; group++)
        for (int part = 0; part < PARTS; part++) {
            vi number[4];
            philox(number, key, group, part);
            UNROLL(4)
            for (uint32_t j = 0; j < 4; j++) {
                const uint32_t vector = group * 4 + j;
                if (vector < first || vector >= end) continue;
                const size_t at = (size_t)(vector - first) * TUTTI_BLOCK + (size_t)part * VLEN;
                vf kept = vf_keep(vi_ge_u(number[j], limit), vf_mul(scale, vf_load(x + at)));
                if (mask) kept = vf_gate(kept, vf_load(mask + at));
                vf_put(y + at, kept, stream);
            }
        }
}

tutti_drop_fn NAME(op_drop);
void NAME(op_drop)(const tutti_random_key *key, const tutti_drop *drop, uint32_t first,
                   uint32_t end, const float *x, const float *mask, float *y)
{
    if (drop->stream) {
        drop_all(key, drop, first, end, x, mask, y, true);
        vf_stream_end();
    } else drop_all(key, drop, first, end, x, mask, y, false);
}
