/* From options and what a net suggests to the settings of a run. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "train/settings.h"

enum { SAMPLES = 1000 };

static const char *const schedules[] = {"fixed",    "step:2:0.5", "multistep:2:0.5",
                                        "exp:0.95", "poly:0.9",   "cosine"};
enum { SCHEDULES = sizeof schedules / sizeof *schedules };

/* A net that suggests 10 samples a step, 100 steps an epoch, 25 epochs, one of them to warm up. */
static tutti_status resolve(tutti_settings *out, const tutti_train_options *o, const char *schedule)
{
    char text[512];
    tutti_net *net = NULL;
    snprintf(text, sizeof text,
             "input 4\ndefault batch-size 10\ndefault epochs 25\ndefault warmup 1epoch\n"
             "default lr 0.5\ndefault lr-schedule %s\nout fc 2\nloss softmax\n",
             schedule);
    assert_int_equal(tutti_net_parse(&net, text, "small.net"), TUTTI_OK);
    tutti_status s = tutti_settings_resolve(out, o, net);
    if (s == TUTTI_OK) s = tutti_settings_pace(out, o, SAMPLES);
    tutti_net_destroy(&net);
    return s;
}

static double rate(const tutti_settings *s, int64_t step)
{
    return tutti_schedule_rate(&s->schedule, s->lr, step, &s->pace);
}

static void a_suggested_warm_up_stays_where_it_fits(void **state)
{
    (void)state;
    tutti_settings s;
    for (int i = 0; i < SCHEDULES; i++) {
        tutti_train_options o = tutti_train_defaults();
        assert_int_equal(resolve(&s, &o, schedules[i]), TUTTI_OK);
        assert_string_equal(s.warmup, "1epoch");
        assert_string_equal(s.note, "");
        o.steps = 101;
        assert_int_equal(resolve(&s, &o, schedules[i]), TUTTI_OK);
        assert_string_equal(s.warmup, "1epoch");
    }
}

/* One epoch of 25: four of its hundred steps. */
static void a_suggested_warm_up_shrinks_with_the_run(void **state)
{
    (void)state;
    tutti_settings s;
    for (int i = 0; i < SCHEDULES; i++) {
        tutti_train_options o = tutti_train_defaults();
        o.epochs = 1;
        assert_int_equal(resolve(&s, &o, schedules[i]), TUTTI_OK);
        assert_string_equal(s.warmup, "4steps");
        assert_non_null(strstr(s.note, "4 of the 100 steps"));
        for (int step = 0; step < 4; step++)
            assert_true(fabs(rate(&s, step) - 0.5 * (step + 1) / 4) < 1e-15);
        assert_true(fabs(rate(&s, 4) - 0.5) < 1e-15);
        for (int step = 0; step < 100; step++) assert_true(rate(&s, step) > 0);
    }
    tutti_train_options o = tutti_train_defaults();
    o.steps = 20; /* less than a step of it is left */
    assert_int_equal(resolve(&s, &o, "fixed"), TUTTI_OK);
    assert_string_equal(s.warmup, "0steps");
    assert_true(rate(&s, 0) == 0.5);
}

static void a_warm_up_that_was_asked_for_must_fit(void **state)
{
    (void)state;
    static const char *const too_long[] = {"1epoch", "30steps", "31steps", "0.3epoch"};
    tutti_settings s;
    tutti_train_options o = tutti_train_defaults();
    o.steps = 30;
    for (int i = 0; i < SCHEDULES; i++)
        for (size_t w = 0; w < sizeof too_long / sizeof *too_long; w++) {
            o.warmup = too_long[w];
            assert_int_equal(resolve(&s, &o, schedules[i]), TUTTI_ARGUMENT);
            assert_non_null(strstr(tutti_message(), "the run has only 30"));
        }
    o.warmup = "29steps";
    assert_int_equal(resolve(&s, &o, "fixed"), TUTTI_OK);
    assert_true(rate(&s, 29) == 0.5);
}

static void one_cycle_takes_no_warm_up(void **state)
{
    (void)state;
    tutti_settings s;
    tutti_train_options o = tutti_train_defaults();
    assert_int_equal(resolve(&s, &o, "onecycle"), TUTTI_OK);
    assert_string_equal(s.warmup, "0steps");
    o.warmup = "0steps";
    assert_int_equal(resolve(&s, &o, "onecycle"), TUTTI_OK);
    o.warmup = "5steps";
    assert_int_equal(resolve(&s, &o, "onecycle"), TUTTI_ARGUMENT);
    assert_non_null(strstr(tutti_message(), "raises the rate itself"));
}

static void options_go_before_what_a_net_suggests(void **state)
{
    (void)state;
    tutti_settings s;
    tutti_net *net = NULL;
    tutti_train_options o = tutti_train_defaults();
    assert_int_equal(tutti_net_parse(&net,
                                     "input 4\ndefault decay-all off\ndefault ema 0.9\n"
                                     "default label-smoothing 0.1\nout fc 2\nloss softmax\n",
                                     "small.net"),
                     TUTTI_OK);
    assert_int_equal(tutti_settings_resolve(&s, &o, net), TUTTI_OK);
    assert_true(!s.decay_all && s.ema == 0.9 && s.label_smoothing == 0.1);
    o.decay_all = 1, o.ema = 0, o.label_smoothing = 0;
    assert_int_equal(tutti_settings_resolve(&s, &o, net), TUTTI_OK);
    assert_true(s.decay_all && s.ema == 0 && s.label_smoothing == 0);
    tutti_net_destroy(&net);
}

static void nets_of_the_zoo_suggest_what_can_be_run(void **state)
{
    (void)state;
    enum { IMAGENET = 1281167 };
    tutti_settings s;
    for (int i = 0; tutti_net_known(i); i++) {
        tutti_net *net = NULL;
        tutti_train_options o = tutti_train_defaults();
        assert_int_equal(tutti_net_load(&net, tutti_net_known(i)), TUTTI_OK);
        assert_int_equal(tutti_settings_resolve(&s, &o, net), TUTTI_OK);
        assert_int_equal(tutti_settings_pace(&s, &o, IMAGENET), TUTTI_OK);
        assert_true(rate(&s, 0) > 0 && rate(&s, s.pace.steps - 1) < s.lr * 1.001);
        tutti_net_destroy(&net);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_suggested_warm_up_stays_where_it_fits),
        cmocka_unit_test(a_suggested_warm_up_shrinks_with_the_run),
        cmocka_unit_test(a_warm_up_that_was_asked_for_must_fit),
        cmocka_unit_test(options_go_before_what_a_net_suggests),
        cmocka_unit_test(nets_of_the_zoo_suggest_what_can_be_run),
        cmocka_unit_test(one_cycle_takes_no_warm_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
