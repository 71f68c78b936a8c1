/* The one order of addition: runs of leaves, joined from any split, give the plain tree. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "base/tree.h"

enum { MAX_LEAVES = 70 };

/* Sums are strings, so that the order of addition is visible. */
typedef struct text {
    char s[8 * MAX_LEAVES];
} text;

static text leaf(int i)
{
    text t;
    snprintf(t.s, sizeof t.s, "%d", i);
    return t;
}

static text add(text a, text b)
{
    text t;
    const size_t la = strlen(a.s), lb = strlen(b.s);
    t.s[0] = '(';
    memcpy(t.s + 1, a.s, la);
    t.s[1 + la] = ' ';
    memcpy(t.s + 2 + la, b.s, lb);
    memcpy(t.s + 2 + la + lb, ")", 2);
    return t;
}

/* The definition: neighbours pairwise, level by level, an odd last one passes up. */
static text plain_tree(int first, int end)
{
    text level[MAX_LEAVES];
    int count = end - first;
    for (int i = 0; i < count; i++) level[i] = leaf(first + i);
    for (; count > 1; count = (count + 1) / 2)
        for (int i = 0; i < (count + 1) / 2; i++)
            level[i] = 2 * i + 1 < count ? add(level[2 * i], level[2 * i + 1]) : level[2 * i];
    return level[0];
}

static text counter_tree(int leaves)
{
    text stack[TUTTI_TREE_LEVELS + 1];
    int depth = 0;
    for (int i = 0; i < leaves; i++) {
        stack[depth++] = leaf(i);
        for (int j = tutti_tree_joins(i); j; j--, depth--)
            stack[depth - 2] = add(stack[depth - 2], stack[depth - 1]);
    }
    for (; depth > 1; depth--) stack[depth - 2] = add(stack[depth - 2], stack[depth - 1]);
    return stack[0];
}

static text joined_from_ranks(int leaves, int ranks)
{
    text part[TUTTI_TREE_MAX_ROOTS];
    tutti_tree_stack stack;
    tutti_tree_stack_init(&stack, leaves);
    for (int r = 0; r < ranks; r++) {
        tutti_subtree roots[TUTTI_TREE_MAX_ROOTS];
        const int n = tutti_tree_roots(roots, leaves, tutti_share_begin(leaves, ranks, r),
                                       tutti_share_begin(leaves, ranks, r + 1));
        for (int i = 0; i < n; i++) {
            const int first = roots[i].index << roots[i].level;
            const int end = (roots[i].index + 1) << roots[i].level;
            part[tutti_tree_push(&stack, roots[i])] =
                plain_tree(first, end < leaves ? end : leaves);
            while (tutti_tree_join(&stack))
                part[stack.depth - 1] = add(part[stack.depth - 1], part[stack.depth]);
        }
    }
    assert_int_equal(stack.depth, 1);
    return part[0];
}

static void any_number_of_ranks_gives_the_plain_tree(void **state)
{
    (void)state;
    for (int leaves = 1; leaves <= MAX_LEAVES; leaves++) {
        const text want = plain_tree(0, leaves);
        assert_string_equal(counter_tree(leaves).s, want.s);
        for (int ranks = 1; ranks <= leaves; ranks++)
            assert_string_equal(joined_from_ranks(leaves, ranks).s, want.s);
    }
}

static void powers_of_two_send_one_root_each(void **state)
{
    (void)state;
    tutti_subtree roots[TUTTI_TREE_MAX_ROOTS];
    for (int leaves = 1; leaves <= 64; leaves *= 2)
        for (int ranks = 1; ranks <= leaves; ranks *= 2)
            for (int r = 0; r < ranks; r++)
                assert_int_equal(1, tutti_tree_roots(roots, leaves, leaves / ranks * r,
                                                     leaves / ranks * (r + 1)));
    assert_int_equal(0, tutti_tree_roots(roots, 8, 3, 3));
}

static void shares_are_consecutive_and_even(void **state)
{
    (void)state;
    for (int total = 0; total < 40; total++)
        for (int parts = 1; parts < 12; parts++) {
            assert_int_equal(tutti_share_begin(total, parts, 0), 0);
            assert_int_equal(tutti_share_begin(total, parts, parts), total);
            for (int i = 0; i < parts; i++) {
                const int size =
                    tutti_share_begin(total, parts, i + 1) - tutti_share_begin(total, parts, i);
                assert_in_range(size, total / parts, total / parts + (total % parts != 0));
            }
            for (int m = 1; m <= parts; m++)
                for (int g = 0; parts % m == 0 && g <= parts / m; g++)
                    assert_int_equal(tutti_share_begin(total, parts, g * m),
                                     tutti_share_begin(total, parts / m, g));
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_number_of_ranks_gives_the_plain_tree),
        cmocka_unit_test(powers_of_two_send_one_root_each),
        cmocka_unit_test(shares_are_consecutive_and_even),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
