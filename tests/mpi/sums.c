#include "sums.h"

#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/random.h"
#include "base/tree.h"

enum { MAX_LEAVES = 512 };

float *floats(tester *t, size_t count)
{
    float *block = NULL;
    MUST(tutti_alloc(&block, count + 1, sizeof *block));
    return block;
}

float value_of(uint64_t seed, int leaf, size_t index)
{
    uint64_t z = (seed * 0x9e3779b97f4a7c15u) ^ ((uint64_t)(leaf + 1) << 40) ^ index;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    z ^= z >> 31;
    const uint32_t exponent = 127 - 24 + (uint32_t)(z >> 32) % 48;
    const uint32_t bits = (uint32_t)(z & 0x807fffff) | exponent << 23;
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

void delay(tester *t)
{
    const tutti_random_key key = {.seed = t->seed, .sample = (uint32_t)t->rank, .layer = 77};
    const uint32_t draw = tutti_random_below(&key, t->draws++, 4000);
    if (draw < 1500) usleep(draw);
}

/* The definition: neighbours pairwise, level by level, an odd last one passes up. */
static float plain_sum(uint64_t seed, int first, int end, size_t index)
{
    float level[MAX_LEAVES];
    int count = end - first;
    for (int i = 0; i < count; i++) level[i] = value_of(seed, first + i, index);
    for (; count > 1; count = (count + 1) / 2)
        for (int i = 0; i < (count + 1) / 2; i++)
            level[i] = 2 * i + 1 < count ? level[2 * i] + level[2 * i + 1] : level[2 * i];
    return level[0];
}

/* Fills the partial buffers of a member with the roots of its run of leaves. */
static void fill_partials(uint64_t seed, int leaves, int members, int me, size_t count,
                          float **partials)
{
    tutti_subtree roots[TUTTI_TREE_MAX_ROOTS];
    const int n = tutti_tree_roots(roots, leaves, tutti_share_begin(leaves, members, me),
                                   tutti_share_begin(leaves, members, me + 1));
    for (int i = 0; i < n; i++) {
        const int first = roots[i].index << roots[i].level;
        const int end = (roots[i].index + 1) << roots[i].level;
        for (size_t at = 0; at < count; at++)
            partials[i][at] = plain_sum(seed, first, end < leaves ? end : leaves, at);
    }
}

bool same(float a, float b)
{
    return memcmp(&a, &b, sizeof a) == 0;
}

void check_whole(tester *t, const char *what, const float *whole, const float *want, size_t count)
{
    for (size_t i = 0; i < count; i++)
        CHECK(same(whole[i], want[i]), "%s: element %zu of %zu is %a, want %a", what, i, count,
              (double)whole[i], (double)want[i]);
}

int leaves_for(const tester *t)
{
    return t->size > 16 ? t->size : 16;
}

void sum_case_init(tester *t, sum_case *c, const tutti_group *group, int leaves, size_t count)
{
    const int members = group ? tutti_group_size(group) : t->size;
    const int me = group ? tutti_group_rank(group) : t->rank;
    *c = (sum_case){.group = group, .leaves = leaves, .count = count};
    c->roots = tutti_exchange_roots(leaves, members, me);
    MUST(tutti_alloc(&c->original, (size_t)c->roots, sizeof *c->original));
    MUST(tutti_alloc(&c->partials, (size_t)c->roots, sizeof *c->partials));
    for (int i = 0; i < c->roots; i++) {
        c->original[i] = floats(t, count);
        c->partials[i] = floats(t, count);
    }
    c->want = floats(t, count);
    fill_partials(t->seed, leaves, members, me, count, c->original);
    for (size_t i = 0; i < count; i++) c->want[i] = plain_sum(t->seed, 0, leaves, i);
}

void sum_case_deinit(sum_case *c)
{
    for (int i = 0; i < c->roots; i++) {
        tutti_free(c->original[i]);
        if (!c->borrows) tutti_free(c->partials[i]);
    }
    tutti_free(c->original);
    tutti_free(c->partials);
    tutti_free(c->want);
}

float *take(float **left, size_t count)
{
    float *const taken = *left;
    *left += tutti_round_up(count + 1, TUTTI_STRIP_UNIT);
    return taken;
}

void move_partials(sum_case *c, common_room *room)
{
    for (int i = 0; i < c->roots; i++) {
        tutti_free(c->partials[i]);
        c->partials[i] = take(&room->own, c->count);
    }
    c->borrows = true;
}
