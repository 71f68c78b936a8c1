/* Exact sums, and the figures of judges against their definitions. */
#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/exact.h"
#include "base/random.h"
#include "train/judge.h"

static double sum_of(const double *terms, int count)
{
    int64_t words[TUTTI_EXACT_WORDS] = {0};
    for (int i = 0; i < count; i++) tutti_exact_add(words, terms[i]);
    return tutti_exact_value(words);
}

static void sums_lose_nothing(void **state)
{
    (void)state;
    const double cancels[] = {1e308, 1, 1e308, -1e308, 0x1p-1074, -1e308};
    const double negative[] = {-3, 0.5, -1e-300, 1e-300, -0.25};
    const double tiny[] = {0x1p-1074, 0x1p-1074, -0x1p-1073, 0x1.8p-1060};
    assert_true(sum_of(cancels, 6) == 1);
    assert_true(sum_of(negative, 5) == -2.75);
    assert_true(sum_of(tiny, 4) == 0x1.8p-1060);
    assert_true(sum_of(NULL, 0) == 0);
    assert_true(sum_of((const double[]){DBL_MAX, -DBL_MAX / 2}, 2) == DBL_MAX / 2);
}

static void no_order_shows(void **state)
{
    enum { TERMS = 2000, PARTS = 3 };
    static double terms[TERMS];
    int64_t words[TUTTI_EXACT_WORDS] = {0}, parts[PARTS][TUTTI_EXACT_WORDS] = {{0}};
    const tutti_random_key key = {.seed = 2, .purpose = TUTTI_RANDOM_SYNTHETIC};
    (void)state;
    for (int i = 0; i < TERMS; i++)
        terms[i] = ldexp(2 * tutti_random_uniform(&key, (uint64_t)i) - 1,
                         (int)tutti_random_below(&key, (uint64_t)i, 400) - 200);
    for (int i = TERMS - 1; i >= 0; i--) tutti_exact_add(words, terms[i]);
    for (int i = 0; i < TERMS; i++) tutti_exact_add(parts[i * 7 % PARTS], terms[i]);
    for (int k = 0; k < TUTTI_EXACT_WORDS; k++)
        for (int p = 1; p < PARTS; p++) parts[0][k] += parts[p][k];
    assert_true(tutti_exact_value(words) == sum_of(terms, TERMS));
    assert_true(tutti_exact_value(parts[0]) == sum_of(terms, TERMS));
}

/* ---- judges ---- */

static void near(double got, double want)
{
    assert_true(fabs(got - want) <= 1e-12 * (1 + fabs(want)));
}

/* Two outputs, three samples: against sums by hand. */
static void values_are_judged(void **state)
{
    const tutti_target t = {TUTTI_TARGET_VALUES, 2, 1, 1};
    const float answer[3][16] = {{1, 10}, {2, 20}, {4, 30}},
                goal[3][16] = {{1, 12}, {3, 20}, {4, 25}};
    int64_t *sums = calloc(tutti_judge_words(&t), sizeof *sums);
    (void)state;
    for (int i = 0; i < 3; i++)
        tutti_judge_sample(&t, &(tutti_judged){.loss = 2, .answer = answer[i], .values = goal[i]},
                           sums);
    const tutti_found all = tutti_judge_finish(&t, sums), first = tutti_judge_output(&t, sums, 0);
    assert_int_equal(tutti_judge_samples(sums), 3);
    near(all.loss, 2);
    near(all.figures[0], 8.0 / 6);
    near(all.figures[1], sqrt(30.0 / 6));
    near(all.figures[2], 1 - 30 / (14.0 / 3 + 86));
    near(first.figures[0], 1.0 / 3);
    near(first.figures[2], 1 - 1 / (14.0 / 3));
    free(sums);
}

/* Of images that are 0.1 everywhere no spread can be explained, whatever rounding says. */
static void values_without_spread_have_no_r2(void **state)
{
    enum { PIXELS = 1000, SAMPLES = 7 };
    const tutti_target t = {TUTTI_TARGET_VALUES, 1, 10, 100};
    float answer[PIXELS * 16] = {0}, goal[PIXELS * 16] = {0};
    int64_t *sums = calloc(tutti_judge_words(&t), sizeof *sums);
    (void)state;
    for (int p = 0; p < PIXELS; p++) goal[16 * p] = 0.1f;
    for (int i = 0; i < SAMPLES; i++)
        tutti_judge_sample(&t, &(tutti_judged){.loss = 1, .answer = answer, .values = goal}, sums);
    assert_true(isnan(tutti_judge_finish(&t, sums).figures[2]));
    near(tutti_judge_finish(&t, sums).figures[1], (double)0.1f);
    free(sums);
}

static void pixels_are_judged(void **state)
{
    const tutti_target t = {TUTTI_TARGET_PIXELS, 4, 1, 5};
    const int32_t goal[5] = {0, 1, 1, TUTTI_IGNORED, 2};
    const int says[5] = {0, 1, 0, 2, 0};
    float answer[5 * 16] = {0};
    int64_t *sums = calloc(tutti_judge_words(&t), sizeof *sums);
    (void)state;
    for (int p = 0; p < 5; p++) answer[16 * p + says[p]] = 1;
    tutti_judge_sample(&t, &(tutti_judged){.loss = 8, .answer = answer, .classes = goal}, sums);
    const tutti_found f = tutti_judge_finish(&t, sums);
    near(f.loss, 2); /* of four pixels that count */
    near(f.figures[0], 0.5);
    near(f.figures[1], (1.0 / 3 + 0.5 + 0) / 3); /* class 3 does not occur */
    assert_true(isnan(tutti_class_iou(&tutti_judge_classes(sums)[3])));
    free(sums);
}

static void shares_are_judged(void **state)
{
    const tutti_target t = {TUTTI_TARGET_SHARES, 4, 1, 1};
    const float answer[16] = {0.9f, 0.2f, 0.6f, 0.1f}, goal[16] = {1, 1, 0, 0};
    int64_t *sums = calloc(tutti_judge_words(&t), sizeof *sums);
    (void)state;
    tutti_judge_sample(&t, &(tutti_judged){.loss = INFINITY, .answer = answer, .values = goal},
                       sums);
    const tutti_found f = tutti_judge_finish(&t, sums);
    assert_true(isinf(f.loss));
    near(f.figures[0], 0.5);
    near(f.figures[1], 0.5);
    free(sums);
}

static void lower_losses_and_higher_shares_are_better(void **state)
{
    const tutti_target values = {TUTTI_TARGET_VALUES, 1, 1, 1},
                       classes = {TUTTI_TARGET_CLASS, 1, 1, 1};
    const tutti_judge *v = tutti_judge_of(&values), *c = tutti_judge_of(&classes);
    (void)state;
    assert_string_equal(tutti_judge_decider(v), "loss");
    assert_string_equal(tutti_judge_decider(c), "top1");
    assert_true(tutti_judge_prefers(v, 1, 2) && !tutti_judge_prefers(v, 2, 1));
    assert_true(tutti_judge_prefers(c, 2, 1) && !tutti_judge_prefers(c, 1, 1));
    assert_true(tutti_judge_prefers(v, 1, NAN) && !tutti_judge_prefers(v, NAN, 1));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sums_lose_nothing),
        cmocka_unit_test(no_order_shows),
        cmocka_unit_test(values_are_judged),
        cmocka_unit_test(values_without_spread_have_no_r2),
        cmocka_unit_test(pixels_are_judged),
        cmocka_unit_test(shares_are_judged),
        cmocka_unit_test(lower_losses_and_higher_shares_are_better),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
