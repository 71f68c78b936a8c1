/* Packing: nothing that is alive at the same time overlaps, and little is wasted. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/memory.h"
#include "base/random.h"
#include "nn/pack.h"

enum { TIMES = 64 };

static void check_apart(const tutti_lease *pieces, int count, size_t total)
{
    for (int i = 0; i < count; i++) {
        const tutti_lease *a = &pieces[i];
        assert_true(a->offset + a->bytes <= total);
        assert_int_equal(a->offset % TUTTI_CACHE_LINE, 0);
        for (int j = 0; j < i; j++) {
            const tutti_lease *b = &pieces[j];
            const int meet = a->begin <= b->end && b->begin <= a->end;
            const int overlap =
                a->offset < b->offset + b->bytes && b->offset < a->offset + a->bytes;
            assert_false(meet && overlap);
        }
    }
}

/* The most that is alive at one time: no packing can do with less. */
static size_t least(const tutti_lease *pieces, int count)
{
    size_t most = 0;
    for (int t = 0; t < TIMES; t++) {
        size_t now = 0;
        for (int i = 0; i < count; i++)
            if (pieces[i].begin <= t && t <= pieces[i].end) now += pieces[i].bytes;
        if (now > most) most = now;
    }
    return most;
}

static void random_pieces_stay_apart(void **state)
{
    (void)state;
    for (uint32_t round = 0; round < 200; round++) {
        const tutti_random_key key = {.seed = round};
        tutti_lease pieces[40];
        const int count = (int)(round % 40);
        size_t total = 1;
        for (int i = 0; i < count; i++) {
            const uint64_t at = 3 * (uint64_t)i;
            const int begin = (int)tutti_random_below(&key, at, TIMES);
            pieces[i] = (tutti_lease){
                .bytes = tutti_random_below(&key, at + 1, 10000),
                .begin = begin,
                .end = begin + (int)tutti_random_below(&key, at + 2, (uint32_t)(TIMES - begin)),
            };
        }
        assert_int_equal(tutti_pack(pieces, count, &total), TUTTI_OK);
        check_apart(pieces, count, total);
        assert_true((double)total <= 1.5 * (double)least(pieces, count));
    }
}

/* A chain of layers, forward and back: what is soon free leaves its place to the next. */
static void a_chain_is_packed_without_waste(void **state)
{
    (void)state;
    tutti_lease pieces[TIMES];
    size_t total;
    for (int i = 0; i < TIMES; i++)
        pieces[i] = (tutti_lease){.bytes = 64, .begin = i, .end = i + 1};
    assert_int_equal(tutti_pack(pieces, TIMES, &total), TUTTI_OK);
    check_apart(pieces, TIMES, total);
    assert_int_equal(total, 128);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_pieces_stay_apart),
        cmocka_unit_test(a_chain_is_packed_without_waste),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
