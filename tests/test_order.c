/* The order of samples: each epoch a permutation, no two alike, no place preferred. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "data/order.h"

enum { MOST = 5000 };

static void every_epoch_is_a_permutation(void **state)
{
    (void)state;
    static const uint32_t counts[] = {1, 2, 3, 4, 5, 15, 16, 17, 63, 64, 65, 1000, 4096, MOST};
    for (size_t c = 0; c < sizeof counts / sizeof *counts; c++)
        for (uint32_t epoch = 0; epoch < 4; epoch++) {
            uint8_t seen[MOST] = {0};
            for (uint32_t i = 0; i < counts[c]; i++) {
                const uint32_t id = tutti_order_id(7, epoch, counts[c], i);
                assert_in_range(id, 0, counts[c] - 1);
                assert_int_equal(seen[id]++, 0);
            }
        }
}

static void epochs_and_seeds_differ(void **state)
{
    (void)state;
    int same_epoch = 0, same_seed = 0, fixed = 0;
    for (uint32_t i = 0; i < 1000; i++) {
        const uint32_t id = tutti_order_id(1, 0, 1000, i);
        same_epoch += id == tutti_order_id(1, 1, 1000, i);
        same_seed += id == tutti_order_id(2, 0, 1000, i);
        fixed += id == i;
    }
    /* One of each is expected by chance; ten has probability 1e-7. */
    assert_in_range(same_epoch, 0, 10);
    assert_in_range(same_seed, 0, 10);
    assert_in_range(fixed, 0, 10);
}

/* How often each id comes to each place, over many epochs: chi-squared of a table of n x n with
 * (n-1)^2 degrees of freedom must be near its mean (6 standard deviations). */
static void no_place_is_preferred(void **state)
{
    (void)state;
    enum { EPOCHS = 20000 };
    for (uint32_t n = 2; n <= 20; n += 3) {
        static int table[20][20];
        memset(table, 0, sizeof table);
        for (uint32_t epoch = 0; epoch < EPOCHS; epoch++)
            for (uint32_t i = 0; i < n; i++) table[i][tutti_order_id(3, epoch, n, i)]++;
        const double want = (double)EPOCHS / n;
        double chi = 0;
        for (uint32_t i = 0; i < n; i++)
            for (uint32_t j = 0; j < n; j++)
                chi += (table[i][j] - want) * (table[i][j] - want) / want;
        const double degrees = (n - 1.0) * (n - 1.0);
        const double limit = degrees + 6 * 1.4143 * (n - 1.0) + 12;
        if (chi > limit) fail_msg("n = %u: chi-squared %.1f above %.1f", n, chi, limit);
    }
}

/* Neighbours of one epoch must not stay neighbours in the next. */
static void neighbours_part(void **state)
{
    (void)state;
    int together = 0;
    for (uint32_t i = 0; i + 1 < MOST; i++) {
        const int64_t step =
            (int64_t)tutti_order_id(5, 0, MOST, i + 1) - (int64_t)tutti_order_id(5, 0, MOST, i);
        together += step == 1 || step == -1;
    }
    assert_in_range(together, 0, 14); /* 2 are expected */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_epoch_is_a_permutation),
        cmocka_unit_test(epochs_and_seeds_differ),
        cmocka_unit_test(no_place_is_preferred),
        cmocka_unit_test(neighbours_part),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
