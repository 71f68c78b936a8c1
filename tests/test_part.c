/* Part-reduce and part-broadcast on one rank: the order of the sum, and what is refused. What
 * several ranks make of it examples/primitives.c shows, which tests/checks/install.py runs on 1, 2
 * and 3. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include <tutti/part.h>

enum { COUNT = 37, MOST_TERMS = 70 };

static int set_up(void **state)
{
    static tutti_ranks *ranks;
    tutti_ranks_options o = tutti_ranks_defaults();
    o.threads = 2;
    assert_int_equal(tutti_ranks_open(&ranks, &o), TUTTI_OK);
    *state = ranks;
    return 0;
}

static int tear_down(void **state)
{
    tutti_ranks *ranks = *state;
    tutti_ranks_close(&ranks);
    return 0;
}

/* Of many magnitudes, so that another order would show. */
static float value(int term, int i)
{
    return ldexpf((float)((term * 31 + i * 17) % 23 - 11), (term * 7 + i) % 30 - 15);
}

/* Neighbours pairwise, level by level, an odd last one passes up. */
static float sum_in_order(int terms, int i)
{
    float level[MOST_TERMS];
    for (int t = 0; t < terms; t++) level[t] = value(t, i);
    for (int n = terms; n > 1; n = (n + 1) / 2)
        for (int t = 0; t < n; t += 2)
            level[t / 2] = t + 1 < n ? level[t] + level[t + 1] : level[t];
    return level[0];
}

static void terms_are_added_in_the_order_of_the_tree(void **state)
{
    for (int terms = 1; terms <= MOST_TERMS; terms++) {
        tutti_part *sum = NULL;
        const tutti_part_options o = {.name = "sum", .count = COUNT, .terms = terms};
        assert_int_equal(tutti_part_reduce_create(&sum, *state, &o), TUTTI_OK);
        for (int again = 0; again < 2; again++) {
            size_t begin, end;
            for (int t = 0; t < terms; t++) {
                float *term = tutti_part_term(sum);
                for (int i = 0; i < COUNT; i++) term[i] = value(t, i);
            }
            assert_null(tutti_part_term(sum));
            assert_int_equal(tutti_part_start(sum), TUTTI_OK);
            assert_int_equal(tutti_part_wait(sum), TUTTI_OK);
            assert_true(tutti_part_is_done(sum));
            const float *total = tutti_part_strip(sum, &begin, &end);
            assert_int_equal(begin, 0);
            assert_int_equal(end, COUNT);
            for (int i = 0; i < COUNT; i++) assert_true(total[i] == sum_in_order(terms, i));
        }
        tutti_part_destroy(&sum);
    }
}

static void nonsense_is_refused(void **state)
{
    tutti_part *part = NULL;
    float whole[COUNT] = {0};
    const size_t wrong[] = {0, COUNT + 1};
    tutti_part_options o = {.count = COUNT, .terms = 3};
    assert_int_equal(tutti_part_reduce_create(&part, *state, &o), TUTTI_OK);
    assert_non_null(tutti_part_term(part));
    assert_int_equal(tutti_part_start(part), TUTTI_ARGUMENT);
    assert_string_equal(tutti_message(), "only 1 of this rank's 3 terms are there");
    tutti_part_destroy(&part);
    o.terms = -1;
    assert_int_equal(tutti_part_reduce_create(&part, *state, &o), TUTTI_ARGUMENT);
    o = (tutti_part_options){.count = COUNT, .cuts = wrong};
    assert_int_equal(tutti_part_broadcast_create(&part, *state, whole, &o), TUTTI_ARGUMENT);
    assert_null(part);
    o.cuts = NULL;
    assert_int_equal(tutti_part_broadcast_create(&part, *state, NULL, &o), TUTTI_ARGUMENT);
    assert_int_equal(tutti_part_broadcast_create(&part, *state, whole, &o), TUTTI_OK);
    assert_int_equal(tutti_part_start(part), TUTTI_OK);
    assert_int_equal(tutti_part_wait(part), TUTTI_OK);
    tutti_part_destroy(&part);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(terms_are_added_in_the_order_of_the_tree),
        cmocka_unit_test(nonsense_is_refused),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
