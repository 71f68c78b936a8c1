/* The cache-block search against the figures of the paper it comes from. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <math.h>
#include <stdbool.h>
#include <cmocka.h>

#include "kernel/blocking.h"

static const tutti_loops least = {.n = 1, .c = 1, .k = 8, .h = 1, .w = 1};

/* VGG-A and OverFeat-FAST at minibatch 1. */
static const tutti_loops layers[] = {
    {1, 3, 64, 224, 224, 3, 3, 1, 1},   {1, 64, 128, 112, 112, 3, 3, 1, 1},
    {1, 128, 256, 56, 56, 3, 3, 1, 1},  {1, 256, 256, 56, 56, 3, 3, 1, 1},
    {1, 256, 512, 28, 28, 3, 3, 1, 1},  {1, 512, 512, 28, 28, 3, 3, 1, 1},
    {1, 512, 512, 14, 14, 3, 3, 1, 1},  {1, 3, 96, 56, 56, 11, 11, 4, 4},
    {1, 96, 256, 24, 24, 5, 5, 1, 1},   {1, 256, 512, 12, 12, 3, 3, 1, 1},
    {1, 512, 1024, 12, 12, 3, 3, 1, 1}, {1, 1024, 1024, 12, 12, 3, 3, 1, 1},
};
enum { LAYERS = sizeof layers / sizeof *layers, OVERFEAT_C5 = LAYERS - 1 };

static void unblocked_needs_more_than_machines_have(void **state)
{
    (void)state;
    const double c5 = tutti_unblocked_bytes_per_flop(&layers[OVERFEAT_C5]);
    assert_true(fabs(c5 - (144 + 196 + 9) * 4.0 / 2592) < 1e-12); /* the paper's 0.54 */
    for (int i = 0; i < LAYERS; i++) assert_true(tutti_unblocked_bytes_per_flop(&layers[i]) > 0.19);
}

static void small_caches_suffice(void **state)
{
    (void)state;
    for (int i = 0; i < LAYERS; i++) {
        const tutti_blocking b = tutti_block_search(&layers[i], &least, 128 << 10);
        assert_true(b.bytes <= 128 << 10);
        assert_true(b.bytes_per_flop <= (i ? 0.04 : 0.09)); /* VGG-A C1 has 3 input maps only */
    }
}

static void more_cache_never_hurts(void **state)
{
    (void)state;
    for (int i = 0; i < LAYERS; i++) {
        double last = 1e9;
        for (size_t cache = 16 << 10; cache <= 4 << 20; cache *= 2) {
            const tutti_blocking b = tutti_block_search(&layers[i], &least, cache);
            assert_true(b.bytes_per_flop <= last);
            last = b.bytes_per_flop;
        }
    }
}

/* Every size of every dimension, on a problem small enough. */
static void nothing_is_better_than_what_is_found(void **state)
{
    (void)state;
    static const tutti_loops one = {1, 1, 1, 1, 1, 0, 0, 0, 0};
    const tutti_loops all = {2, 6, 8, 4, 6, 3, 3, 2, 1};
    const tutti_blocking found = tutti_block_search(&all, &one, 1500);
    for (int n = 1; n <= all.n; n++)
        for (int c = 1; c <= all.c; c++)
            for (int k = 1; k <= all.k; k++)
                for (int h = 1; h <= all.h; h++)
                    for (int w = 1; w <= all.w; w++) {
                        const int x = n * c * ((h - 1) * 2 + 3) * (w - 1 + 3);
                        const int bytes = 4 * (x + n * k * h * w + c * k * 9);
                        const bool divides = all.n % n == 0 && all.c % c == 0 && all.k % k == 0 &&
                                             all.h % h == 0 && all.w % w == 0;
                        if (bytes <= 1500 && divides)
                            assert_true(found.bytes_per_flop <=
                                        bytes / (2.0 * n * c * k * h * w * 9) + 1e-12);
                    }
}

static void a_cache_too_small_gives_the_least_block(void **state)
{
    (void)state;
    const tutti_loops units = {1, 16, 64, 2, 1000, 0, 0, 0, 0};
    const tutti_blocking b = tutti_block_search(&layers[OVERFEAT_C5], &units, 100);
    assert_int_equal(b.block.c, 16);
    assert_int_equal(b.block.k, 64);
    assert_int_equal(b.block.h, 2);
    assert_int_equal(b.block.w, 12); /* whole rows */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(unblocked_needs_more_than_machines_have),
        cmocka_unit_test(small_caches_suffice),
        cmocka_unit_test(more_cache_never_hurts),
        cmocka_unit_test(nothing_is_better_than_what_is_found),
        cmocka_unit_test(a_cache_too_small_gives_the_least_block),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
