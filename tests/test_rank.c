/* A rank is put together in one place: what trains takes the same paths as what is measured. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "machine/peak.h"
#include "nn/model.h"
#include "train/run.h"

static void training_plans_for_the_same_caches_as_benchmarks(void **state)
{
    (void)state;
    tutti_run run;
    tutti_model_options benchmark;
    tutti_train_options o = tutti_train_defaults();
    o.net = "lenet";
    o.data = "synthetic";
    o.steps = 1;
    o.batch_size = 4;
    assert_int_equal(tutti_run_open(&run, &o, TUTTI_RUN_TRAINS), TUTTI_OK);
    assert_int_equal(tutti_model_defaults(&benchmark, run.net, 4), TUTTI_OK);
    assert_int_equal(run.me.caches.l1, benchmark.caches.l1);
    assert_int_equal(run.me.caches.l2, benchmark.caches.l2);
    assert_int_equal(run.me.caches.l3, benchmark.caches.l3);
    tutti_run_close(&run);
}

/* A peak that was measured too low is found out by the first step that is faster. */
static void nothing_is_faster_than_the_peak(void **state)
{
    (void)state;
    tutti_run run = {.peak = 1e9};
    assert_int_equal(tutti_net_load(&run.net, "lenet"), TUTTI_OK);
    const double all = 1e9 / tutti_net_made_flops(run.net); /* samples/s */
    assert_true(fabs(tutti_run_percent_of_peak(&run, all / 2) - 50) < 1e-9);
    assert_true(fabs(tutti_run_percent_of_peak(&run, all * 6) - 100) < 1e-9);
    assert_true(fabs(tutti_run_percent_of_peak(&run, all * 3) - 50) < 1e-9);
    run.peak = 0;
    assert_true(isnan(tutti_run_percent_of_peak(&run, all)));
    tutti_net_destroy(&run.net);
}

/* 36 multiplications instead of 144 where Winograd's method is taken. */
static void what_is_not_computed_does_not_count(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        double part;
    } nets[] = {{"input 64 8 8\nc conv 64 kernel=3 pad=1\nf fc 2\nloss softmax\n", 36.0 / 144},
                {"input 64 8 8\nc conv 64 kernel=3 pad=1 stride=2\nf fc 2\nloss softmax\n", 1},
                {"input 64 8 8\nc conv 64 kernel=5 pad=2\nf fc 2\nloss softmax\n", 1},
                {"input 64\ng fc 64\nf fc 2\nloss softmax\n", 1}};
    for (size_t i = 0; i < sizeof nets / sizeof *nets; i++) {
        tutti_net *net = NULL;
        assert_int_equal(tutti_net_parse(&net, nets[i].text, "t.net"), TUTTI_OK);
        const double direct = (double)tutti_net_total(net).train_flops;
        const double first = (double)tutti_layer_train_flops(&net->layers[0]);
        const double made = direct - first * (1 - nets[i].part);
        assert_true(fabs(tutti_net_made_flops(net) - made) <= 1e-9 * direct);
        tutti_net_destroy(&net);
    }
}

/* Several ranks of one host have its cores once. */
static void a_lone_rank_has_all_of_its_peak(void **state)
{
    (void)state;
    tutti_rank me;
    tutti_comm_options o = tutti_comm_defaults();
    for (int threads = 1; threads <= 64; threads *= 8) {
        o.compute_threads = threads;
        assert_int_equal(tutti_rank_open(&me, &o), TUTTI_OK);
        assert_true(tutti_peak_share(&me) == 1);
        tutti_rank_close(&me);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(training_plans_for_the_same_caches_as_benchmarks),
        cmocka_unit_test(nothing_is_faster_than_the_peak),
        cmocka_unit_test(what_is_not_computed_does_not_count),
        cmocka_unit_test(a_lone_rank_has_all_of_its_peak),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
