/* A permutation without a table. A Feistel network over pairs of b-bit halves is a permutation of
 * 0 .. 4^b-1 whatever its round function is; with 4^b the next such power above the number of
 * samples, an id that falls outside is sent through again until one falls inside (fewer than four
 * times on average). The round function is Philox, keyed by (seed, epoch, round). So every place
 * of every epoch is known at once: no epoch has to be shuffled before it begins, a resumed run can
 * start anywhere, and a billion samples take no memory (Fisher-Yates would take 4 bytes each). */
#include "data/order.h"

#include "base/random.h"

enum { ROUNDS = 8 };

static uint32_t shuffle_once(uint64_t seed, uint32_t epoch, int half, uint32_t x)
{
    const uint32_t mask = ((uint32_t)1 << half) - 1;
    uint32_t left = x >> half, right = x & mask;
    for (uint32_t round = 0; round < ROUNDS; round++) {
        const tutti_random_key key = {.seed = seed,
                                      .purpose = TUTTI_RANDOM_SHUFFLE,
                                      .layer = round,
                                      .when = epoch,
                                      .sample = right};
        const uint32_t next = left ^ (tutti_random_u32(&key, 0) & mask);
        left = right;
        right = next;
    }
    return left << half | right;
}

uint32_t tutti_order_id(uint64_t seed, uint32_t epoch, uint32_t count, uint32_t place)
{
    int half = 1;
    while (half < 16 && (UINT64_C(1) << 2 * half) < count) half++;
    do place = shuffle_once(seed, epoch, half, place);
    while (place >= count);
    return place;
}
