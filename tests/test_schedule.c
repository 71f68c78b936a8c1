/* Spans and learning-rate schedules against values computed by hand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <math.h>
#include <string.h>
#include <cmocka.h>

#include "train/schedule.h"

static const tutti_pace even = {.samples = 1000, .batch = 10, .steps = 1000}; /* 100 per epoch */
static const tutti_pace uneven = {.samples = 100, .batch = 48, .steps = 25};  /* 2.08 per epoch */

static tutti_span span(const char *text, tutti_span_unit bare)
{
    tutti_span s = {0, TUTTI_SPAN_STEPS};
    assert_int_equal(tutti_span_parse(&s, text, bare, "--x"), TUTTI_OK);
    return s;
}

static void spans_are_what_people_write(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        tutti_span want;
    } good[] = {
        {"1000steps", {1000, TUTTI_SPAN_STEPS}}, {"1step", {1, TUTTI_SPAN_STEPS}},
        {"1epoch", {1, TUTTI_SPAN_EPOCHS}},      {"0.5epochs", {0.5, TUTTI_SPAN_EPOCHS}},
        {"600s", {600, TUTTI_SPAN_SECONDS}},     {"10min", {600, TUTTI_SPAN_SECONDS}},
        {"2h", {7200, TUTTI_SPAN_SECONDS}},      {"1e3steps", {1000, TUTTI_SPAN_STEPS}},
        {"7", {7, TUTTI_SPAN_EPOCHS}},           {"0", {0, TUTTI_SPAN_EPOCHS}},
    };
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        const tutti_span got = span(good[i].text, TUTTI_SPAN_EPOCHS);
        assert_true(got.count == good[i].want.count && got.unit == good[i].want.unit);
    }
    static const char *const bad[] = {"",     "steps", "-1steps", "1.5steps",  "1 epoch",
                                      "1day", "nan",   "inf",     "1e99steps", "0x10steps2"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        tutti_span s;
        assert_int_equal(tutti_span_parse(&s, bad[i], TUTTI_SPAN_EPOCHS, "--x"), TUTTI_ARGUMENT);
        assert_non_null(strstr(tutti_message(), "--x: '"));
    }
}

/* Equal spans have equal texts, and those are read as the same span. */
static void spans_have_one_text(void **state)
{
    (void)state;
    static const struct {
        const char *written, *text;
    } cases[] = {{"500", "500steps"},   {"500steps", "500steps"},  {"1step", "1step"},
                 {"1epochs", "1epoch"}, {"0.5epoch", "0.5epochs"}, {"10min", "600s"},
                 {"0.1s", "0.1s"},      {"0epoch", "0epochs"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[TUTTI_SPAN_TEXT];
        const tutti_span s = span(cases[i].written, TUTTI_SPAN_STEPS);
        tutti_span_text(&s, text);
        assert_string_equal(text, cases[i].text);
        const tutti_span again = span(text, TUTTI_SPAN_STEPS);
        assert_true(again.count == s.count && again.unit == s.unit);
    }
}

static tutti_rhythm rhythm(const char *text)
{
    return (tutti_rhythm){.every = span(text, TUTTI_SPAN_STEPS)};
}

static void epochs_end_where_the_samples_do(void **state)
{
    (void)state;
    assert_int_equal(tutti_pace_epoch(&even, 99), 0);
    assert_int_equal(tutti_pace_epoch(&even, 100), 1);
    assert_int_equal(tutti_pace_steps(&even, 3), 300);
    /* 48 samples per step, 100 per epoch: complete after steps 3 (144), 5 (240), 7 (336), ... 25 */
    static const int ends[] = {3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25};
    const tutti_rhythm each = rhythm("1epoch"), six = rhythm("6epochs");
    for (int step = 0, e = 0; step <= 25; step++) {
        const int ends_here = e < 12 && ends[e] == step;
        assert_int_equal(tutti_rhythm_is_due(&each, &uneven, step, 0), ends_here);
        assert_int_equal(tutti_rhythm_is_due(&six, &uneven, step, 0), step == 13 || step == 25);
        e += ends_here;
        assert_int_equal(tutti_pace_epoch(&uneven, step), e);
    }
}

static void things_are_due_in_steps(void **state)
{
    (void)state;
    const tutti_rhythm steps = rhythm("3steps"), never = rhythm("0"), no_time = rhythm("0s");
    for (int step = 0; step < 10; step++) {
        assert_int_equal(tutti_rhythm_is_due(&steps, &even, step, 0), step > 0 && step % 3 == 0);
        assert_false(tutti_rhythm_is_due(&never, &even, step, 1e9));
        assert_false(tutti_rhythm_is_due(&no_time, &even, step, 1e9));
    }
}

/* A step takes a second, an evaluation half of one and a checkpoint two, by a clock of our own. */
static void each_rhythm_has_its_own_clock(void **state)
{
    enum { STEPS = 60 };
    (void)state;
    tutti_rhythm evaluate = rhythm("10s"), save = rhythm("25s");
    double clock = 1000;
    int64_t evaluated[STEPS], saved[STEPS];
    int evaluations = 0, saves = 0;
    tutti_rhythm_mark(&evaluate, clock);
    tutti_rhythm_mark(&save, clock);
    for (int64_t step = 1; step <= STEPS; step++) {
        clock += 1;
        if (tutti_rhythm_is_due(&evaluate, &even, step, clock)) {
            evaluated[evaluations++] = step;
            tutti_rhythm_mark(&evaluate, clock += 0.5);
        }
        if (tutti_rhythm_is_due(&save, &even, step, clock)) {
            saved[saves++] = step;
            tutti_rhythm_mark(&save, clock += 2);
        }
    }
    /* step 24 ends at 1025; the two seconds of its save bring the evaluation of step 30 forward */
    static const int64_t evaluated_at[] = {10, 20, 28, 38, 48, 56}, saved_at[] = {24, 48};
    assert_int_equal(evaluations, 6);
    assert_int_equal(saves, 2);
    assert_memory_equal(evaluated, evaluated_at, sizeof evaluated_at);
    assert_memory_equal(saved, saved_at, sizeof saved_at);
}

static double rate(const char *text, const char *warmup, int64_t step, const tutti_pace *pace)
{
    tutti_schedule s;
    assert_int_equal(tutti_schedule_parse(&s, text), TUTTI_OK);
    s.warmup = span(warmup, TUTTI_SPAN_EPOCHS);
    return tutti_schedule_rate(&s, 0.5, step, pace);
}

static void rates_are_those_of_the_hand(void **state)
{
    (void)state;
    static const struct {
        const char *schedule, *warmup;
        int64_t step;
        double want;
    } table[] = {
        {"fixed", "0", 0, 0.5},
        {"fixed", "0", 999, 0.5},
        {"fixed", "4steps", 0, 0.125},
        {"fixed", "4steps", 2, 0.375},
        {"fixed", "4steps", 3, 0.5},
        {"fixed", "4steps", 4, 0.5},
        {"fixed", "1epoch", 49, 0.25},
        {"step:3:0.5", "0", 299, 0.5},
        {"step:3:0.5", "0", 300, 0.25},
        {"step:3:0.5", "0", 599, 0.25},
        {"step:3:0.5", "0", 600, 0.125},
        {"step:250steps:0.1", "0", 249, 0.5},
        {"step:250steps:0.1", "0", 250, 0.05},
        {"step:250steps:0.1", "0", 999, 0.0005},
        {"step:0.5:0.5", "0", 49, 0.5},
        {"step:0.5:0.5", "0", 50, 0.25},
        {"multistep:3,6:0.1", "0", 299, 0.5},
        {"multistep:3,6:0.1", "0", 300, 0.05},
        {"multistep:3,6:0.1", "0", 600, 0.005},
        {"multistep:3,450steps:0.1", "0", 449, 0.05},
        {"multistep:3,450steps:0.1", "0", 450, 0.005},
        {"exp:0.5", "0", 99, 0.5},
        {"exp:0.5", "0", 100, 0.25},
        {"exp:0.5", "0", 399, 0.0625},
        {"poly:1", "0", 0, 0.5},
        {"poly:1", "0", 250, 0.375},
        {"poly:2", "0", 500, 0.125},
        {"poly:0.5", "0", 750, 0.25},
        {"poly:0.9", "0", 600, 0.5 * 0.43838329055408692}, /* 0.4^0.9 */
        {"poly:1", "0", 1000, 0},
        {"poly:0.5", "0", 1000, 0},
        {"poly:1", "200steps", 199, 0.5},
        {"poly:1", "200steps", 200, 0.5},
        {"poly:1", "200steps", 600, 0.25},
        {"cosine", "0", 0, 0.5},
        {"cosine", "0", 500, 0.25},
        {"cosine", "0", 250, 0.25 * (1 + 0.70710678118654752)},
        {"cosine", "0", 1000, 0},
        {"cosine:0.1", "0", 1000, 0.05},
        {"cosine:0.1", "0", 500, 0.275},
        {"cosine", "200steps", 600, 0.25},
        {"cosine", "200steps", 99, 0.25},
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        const double got = rate(table[i].schedule, table[i].warmup, table[i].step, &even);
        if (fabs(got - table[i].want) > 1e-15)
            fail_msg("%s, warm-up %s, step %d: got %.17g, want %.17g", table[i].schedule,
                     table[i].warmup, (int)table[i].step, got, table[i].want);
    }
}

static void one_cycle_is_that_of_torch(void **state)
{
    (void)state;
    static const struct {
        const char *schedule;
        int64_t step;
        double want;
    } table[] = {
        {"onecycle", 0, 0.02},
        {"onecycle", 299, 0.5},
        {"onecycle", 999, 2e-6},
        {"onecycle", 5000, 2e-6},
        {"onecycle:0.5:10:100", 0, 0.05},
        {"onecycle:0.251:10:100", 125, 0.275},
        {"onecycle:0.5:10:100", 499, 0.5},
        {"onecycle:0.5:10:100", 749, 0.25025},
        {"onecycle:0.5:10:100", 999, 0.0005},
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        assert_true(fabs(rate(table[i].schedule, "0", table[i].step, &even) - table[i].want) <
                    1e-15);
}

static void own_functions_agree_with_the_library(void **state)
{
    (void)state;
    const tutti_pace pace = {.samples = 1000, .batch = 10, .steps = 10007};
    for (int64_t step = 0; step < pace.steps; step++) {
        const double done = (double)step / (double)pace.steps;
        const double wave = 0.25 * (1 + cos(acos(-1.0) * done));
        const double power = 0.5 * pow(1 - done, 0.9);
        assert_true(fabs(rate("cosine", "0", step, &pace) - wave) <= 2e-16);
        assert_true(fabs(rate("poly:0.9", "0", step, &pace) - power) <= 1e-14 * power);
    }
}

static void warm_up_longer_than_the_run_is_harmless(void **state)
{
    (void)state;
    const tutti_pace pace = {.samples = 100, .batch = 10, .steps = 5};
    static const char *const schedules[] = {"fixed", "poly:0.9", "cosine", "cosine:0.1"};
    for (size_t i = 0; i < sizeof schedules / sizeof *schedules; i++) {
        assert_true(fabs(rate(schedules[i], "5steps", 0, &pace) - 0.1) < 1e-16);
        assert_true(fabs(rate(schedules[i], "10steps", 4, &pace) - 0.25) < 1e-16);
    }
    assert_true(rate("cosine", "5steps", 5, &pace) == 0);
}

static void bad_schedules_are_told_what_fits(void **state)
{
    (void)state;
    static const struct {
        const char *text, *part;
    } bad[] = {
        {"", "no schedule ''"},
        {"stairs:3", "no schedule 'stairs'; there are fixed, step"},
        {"fixed:1", "write fixed"},
        {"step", "write step:30:0.1"},
        {"step:30", "write step:30:0.1"},
        {"step:30:", "write step:30:0.1"},
        {"step:30:0.1:7", "write step:30:0.1"},
        {"step:30,60:0.1", "write step:30:0.1"},
        {"step:0:0.1", "'0' is not a number of epochs or steps"},
        {"step:30s:0.1", "'30s' is not a number of epochs or steps"},
        {"step:x:0.1", "'x' is not a span of time"},
        {"step:30:2", "step takes 1e-06 to 1, not '2'"},
        {"multistep:60,30:0.1", "the times before '30' must be smaller"},
        {"multistep:1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17:0.1", "write multistep:30,60:0.1"},
        {"exp", "write exp:0.95"},
        {"exp:nan", "write exp:0.95"},
        {"poly:-1", "poly takes 0.01 to 100, not '-1'"},
        {"cosine:2", "cosine takes 0 to 1, not '2'"},
        {"onecycle:1.5", "onecycle takes 0.01 to 0.99, not '1.5'"},
        {"onecycle:0.3:0:5", "onecycle takes 1 to 1e+06, not '0'"},
        {"onecycle:0.3:25:1e4:1", "write onecycle[:0.3"},
        {"onecycle:0.3:", "write onecycle[:0.3"},
        {"onecycle::25", "write onecycle[:0.3"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        tutti_schedule s;
        const tutti_status status = tutti_schedule_parse(&s, bad[i].text);
        if (status != TUTTI_ARGUMENT || !strstr(tutti_message(), bad[i].part))
            fail_msg("'%s': %s, \"%s\"", bad[i].text, tutti_status_name(status), tutti_message());
    }
    int kinds = 0;
    while (tutti_schedule_help(kinds)) kinds++;
    assert_int_equal(kinds, 7);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(spans_are_what_people_write),
        cmocka_unit_test(spans_have_one_text),
        cmocka_unit_test(epochs_end_where_the_samples_do),
        cmocka_unit_test(things_are_due_in_steps),
        cmocka_unit_test(each_rhythm_has_its_own_clock),
        cmocka_unit_test(rates_are_those_of_the_hand),
        cmocka_unit_test(one_cycle_is_that_of_torch),
        cmocka_unit_test(own_functions_agree_with_the_library),
        cmocka_unit_test(warm_up_longer_than_the_run_is_harmless),
        cmocka_unit_test(bad_schedules_are_told_what_fits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
