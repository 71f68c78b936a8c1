/* A rank is put together in one place: what trains takes the same paths as what is measured. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

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
    assert_int_equal(tutti_model_defaults(&benchmark, 4), TUTTI_OK);
    assert_int_equal(tutti_run_open(&run, &o, false), TUTTI_OK);
    assert_int_equal(run.me.caches.l1, benchmark.caches.l1);
    assert_int_equal(run.me.caches.l2, benchmark.caches.l2);
    assert_int_equal(run.me.caches.l3, benchmark.caches.l3);
    tutti_run_close(&run);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(training_plans_for_the_same_caches_as_benchmarks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
