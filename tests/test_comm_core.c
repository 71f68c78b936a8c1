/* Where the communication thread runs, and how many threads are left to compute with. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "comm/comm.h"
#include "comm/comm_core.h"

static void expect(tutti_comm_core_question q, int threads, int core, bool is_spare)
{
    const tutti_comm_core place = tutti_comm_core_choose(&q);
    assert_int_equal(threads, place.threads);
    assert_int_equal(core, place.core);
    assert_int_equal(is_spare, place.is_spare);
}

static void many_cores_spare_one(void **state)
{
    (void)state;
    expect((tutti_comm_core_question){32, 1, 0, 0, TUTTI_CORE_AUTO}, 31, 31, true);
    expect((tutti_comm_core_question){8, 1, 0, 0, TUTTI_CORE_AUTO}, 7, 7, true);
    expect((tutti_comm_core_question){32, 1, 0, 0, TUTTI_CORE_NONE}, 32, TUTTI_CORE_NONE, false);
    expect((tutti_comm_core_question){32, 1, 0, 32, TUTTI_CORE_AUTO}, 32, TUTTI_CORE_NONE, false);
}

static void few_cores_spare_none(void **state)
{
    (void)state;
    expect((tutti_comm_core_question){4, 1, 0, 0, TUTTI_CORE_AUTO}, 4, TUTTI_CORE_NONE, false);
    expect((tutti_comm_core_question){4, 1, 0, 3, TUTTI_CORE_AUTO}, 3, 3, true);
    expect((tutti_comm_core_question){2, 2, 1, 1, TUTTI_CORE_AUTO}, 1, TUTTI_CORE_NONE, false);
    expect((tutti_comm_core_question){2, 5, 4, 0, TUTTI_CORE_AUTO}, 1, TUTTI_CORE_NONE, false);
}

/* A team starts at the first core of the rank's share: no two threads meet. */
static void each_rank_uses_its_own_share(void **state)
{
    (void)state;
    expect((tutti_comm_core_question){16, 2, 0, 0, TUTTI_CORE_AUTO}, 7, 7, true);
    expect((tutti_comm_core_question){16, 2, 1, 0, TUTTI_CORE_AUTO}, 7, 15, true);
    expect((tutti_comm_core_question){16, 4, 2, 3, TUTTI_CORE_AUTO}, 3, 11, true);
    expect((tutti_comm_core_question){16, 2, 0, 0, 3}, 7, 3, true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(many_cores_spare_one),
        cmocka_unit_test(few_cores_spare_none),
        cmocka_unit_test(each_rank_uses_its_own_share),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
