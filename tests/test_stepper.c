/* A stepper as a loop of one's own sees it, on one rank; what several ranks have to agree on is
 * tests/bits' and tests/mpi's. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "step/rank.h"
#include "step/stepper.h"

enum { BATCH = 8, INPUTS = 16, CLASSES = 3 };

static const char text[] = "input 16\n"
                           "f1 fc 20 relu\n"
                           "f2 fc 3\n"
                           "l softmax\n";

typedef struct fixture {
    tutti_rank me;
    tutti_net *net;
    float values[BATCH * INPUTS];
    int32_t labels[BATCH];
    tutti_samples samples;
} fixture;

static int set_up(void **state)
{
    static fixture f;
    const tutti_comm_options o = tutti_comm_defaults();
    assert_int_equal(tutti_rank_open(&f.me, &o), TUTTI_OK);
    assert_int_equal(tutti_net_parse(&f.net, text, "t.net"), TUTTI_OK);
    for (int i = 0; i < BATCH * INPUTS; i++) f.values[i] = (float)((i * 37) % 19 - 9) / 9;
    for (int i = 0; i < BATCH; i++) f.labels[i] = i % CLASSES;
    f.samples = (tutti_samples){.values = f.values, .labels = f.labels};
    *state = &f;
    return 0;
}

static int tear_down(void **state)
{
    fixture *f = *state;
    tutti_net_destroy(&f->net);
    tutti_rank_close(&f->me);
    return 0;
}

static tutti_stepper_options usual(const fixture *f, const char *optimizer)
{
    tutti_stepper_options o = {.comm = f->me.comm,
                               .net = f->net,
                               .exec = f->me.exec,
                               .caches = f->me.caches,
                               .batch = BATCH,
                               .grains = 2,
                               .decay_all = true,
                               .overlap = true,
                               .priority = true};
    assert_int_equal(tutti_optimizer_parse(&o.optimizer, optimizer, "test", tutti_optimizers),
                     TUTTI_OK);
    return o;
}

static tutti_stepper *begin(const tutti_stepper_options *o)
{
    tutti_stepper *stepper = NULL;
    assert_int_equal(tutti_stepper_create(&stepper, o), TUTTI_OK);
    tutti_model_init(tutti_stepper_model(stepper), 7, TUTTI_INIT_AUTO, 0);
    return stepper;
}

static tutti_news step(tutti_stepper *stepper, const fixture *f, double lr, tutti_note mine)
{
    tutti_news news;
    assert_int_equal(tutti_stepper_step(stepper, &f->samples, lr, mine, &news), TUTTI_OK);
    return news;
}

static tutti_news settle(tutti_stepper *stepper)
{
    tutti_news news;
    assert_int_equal(tutti_stepper_settle(stepper, &news), TUTTI_OK);
    return news;
}

static void a_loop_of_ones_own_learns(void **state)
{
    const fixture *f = *state;
    static const char *const optimizers[] = {"sgd,momentum=0.9", "adam"};
    for (int i = 0; i < 2; i++) {
        const tutti_stepper_options o = usual(f, optimizers[i]);
        tutti_stepper *stepper = begin(&o);
        double first = NAN;
        for (int n = 0; n < 60; n++) {
            const tutti_news news = step(stepper, f, i ? 0.01 : 0.1, (tutti_note){0});
            if (news.step == 1) first = news.loss;
        }
        const tutti_news last = settle(stepper);
        assert_true(last.loss < first / 4);
        assert_int_equal(last.hits, BATCH);
        assert_int_equal(tutti_stepper_steps(stepper), 60);
        tutti_stepper_destroy(&stepper);
    }
}

static void news_come_one_step_late_and_once(void **state)
{
    const fixture *f = *state;
    const tutti_stepper_options o = usual(f, "sgd");
    tutti_stepper *stepper = begin(&o);
    assert_int_equal(settle(stepper).step, 0);
    assert_int_equal(step(stepper, f, 0, (tutti_note){.asked = 5, .data_wait = 2}).step, 0);
    const tutti_news first = step(stepper, f, 0, (tutti_note){0});
    assert_int_equal(first.step, 1);
    assert_int_equal(first.asked, 5);
    assert_true(first.data_wait == 2);
    assert_int_equal(first.diverged_rank, -1);
    const tutti_news second = settle(stepper);
    assert_int_equal(second.step, 2);
    assert_int_equal(second.asked, 0);
    assert_true(second.loss == first.loss); /* the rate was 0 */
    assert_int_equal(settle(stepper).step, 0);
    tutti_stepper_destroy(&stepper);
}

/* A norm belongs to its step; a gradient below the bound is not changed by it. */
static void clipping_knows_the_norm(void **state)
{
    const fixture *f = *state;
    tutti_stepper_options o = usual(f, "sgd");
    tutti_stepper *plain = begin(&o);
    o.clip = 1e6;
    tutti_stepper *high = begin(&o);
    o.clip = 1e-3;
    tutti_stepper *low = begin(&o);
    (void)step(plain, f, 0.5, (tutti_note){0}), (void)step(high, f, 0.5, (tutti_note){0});
    (void)step(low, f, 0.5, (tutti_note){0});
    assert_true(isnan(settle(plain).norm));
    const tutti_news a = settle(high), b = settle(low);
    assert_true(a.norm > o.clip && a.norm == b.norm);
    const size_t floats = tutti_model_parameter_floats(tutti_stepper_model(plain));
    const float *const w = tutti_model_parameters(tutti_stepper_model(plain));
    assert_memory_equal(w, tutti_model_parameters(tutti_stepper_model(high)), floats * sizeof *w);
    assert_memory_not_equal(w, tutti_model_parameters(tutti_stepper_model(low)),
                            floats * sizeof *w);
    tutti_stepper_destroy(&plain);
    tutti_stepper_destroy(&high);
    tutti_stepper_destroy(&low);
}

/* Parameters, states and the number of steps are all that one stepper must tell the next. */
static void a_stepper_goes_on_where_another_stood(void **state)
{
    const fixture *f = *state;
    const tutti_stepper_options o = usual(f, "adam");
    tutti_stepper *whole = begin(&o), *next = begin(&o);
    for (int i = 0; i < 3; i++) (void)step(whole, f, 0.1, (tutti_note){0});
    (void)settle(whole);
    tutti_model *from = tutti_stepper_model(whole), *to = tutti_stepper_model(next);
    const size_t bytes = tutti_model_parameter_floats(from) * sizeof(float);
    memcpy(tutti_model_parameters(to), tutti_model_parameters(from), bytes);
    for (int i = 0; i < f->net->layer_count; i++) {
        const tutti_holding a = tutti_stepper_holding(whole, i);
        const tutti_holding b = tutti_stepper_holding(next, i);
        assert_int_equal(a.holders, a.region.count ? 1 : 0);
        assert_int_equal(a.end - a.begin, a.region.trained);
        for (int s = 0; s < 2 && a.region.trained; s++)
            memcpy(b.state[s], a.state[s], (a.end - a.begin) * sizeof(float));
    }
    tutti_stepper_begin_at(next, tutti_stepper_steps(whole));
    (void)step(whole, f, 0.1, (tutti_note){0}), (void)step(next, f, 0.1, (tutti_note){0});
    assert_int_equal(settle(next).step, 4);
    (void)settle(whole);
    assert_memory_equal(tutti_model_parameters(from), tutti_model_parameters(to), bytes);
    tutti_stepper_destroy(&whole);
    tutti_stepper_destroy(&next);
}

static void one_rank_sends_nothing(void **state)
{
    const fixture *f = *state;
    const tutti_stepper_options o = usual(f, "sgd");
    tutti_stepper *stepper = begin(&o);
    (void)step(stepper, f, 0.1, (tutti_note){0});
    (void)settle(stepper);
    const tutti_traffic all = tutti_stepper_traffic(stepper, -1);
    assert_true(all.bytes == 0 && all.exposed == 0);
    assert_true(tutti_stepper_exposed(stepper) == 0 && tutti_stepper_computed(stepper) > 0);
    assert_false(tutti_stepper_shares_memory(stepper));
    tutti_stepper_destroy(&stepper);
}

static void one_that_only_evaluates_has_no_gradients(void **state)
{
    const fixture *f = *state;
    tutti_stepper_options o = usual(f, "sgd");
    o.forward_only = true;
    tutti_stepper *stepper = begin(&o);
    tutti_model *model = tutti_stepper_model(stepper);
    assert_int_equal(tutti_model_evaluate(model, BATCH, f->values, f->labels), TUTTI_OK);
    assert_true(isfinite(tutti_model_losses(model)[BATCH - 1]));
    assert_int_equal(settle(stepper).step, 0);
    assert_int_equal(tutti_stepper_holding(stepper, 0).region.count, 0);
    tutti_stepper_destroy(&stepper);
}

static void what_cannot_be_is_refused(void **state)
{
    const fixture *f = *state;
    tutti_stepper *stepper = NULL;
    tutti_stepper_options o = usual(f, "sgd");
    o.grains = 2 * BATCH;
    assert_int_not_equal(tutti_stepper_create(&stepper, &o), TUTTI_OK);
    assert_null(stepper);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_loop_of_ones_own_learns),
        cmocka_unit_test(news_come_one_step_late_and_once),
        cmocka_unit_test(clipping_knows_the_norm),
        cmocka_unit_test(a_stepper_goes_on_where_another_stood),
        cmocka_unit_test(one_rank_sends_nothing),
        cmocka_unit_test(one_that_only_evaluates_has_no_gradients),
        cmocka_unit_test(what_cannot_be_is_refused),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
