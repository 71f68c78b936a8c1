/* Who started this process, told by the environment alone. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "comm/launch.h"

/* The environment of a test: name, value, name, value, ..., NULL. */
static const char *const *environment;

static char *lookup(const char *name)
{
    for (const char *const *at = environment; *at; at += 2)
        if (!strcmp(at[0], name)) return (char *)(uintptr_t)at[1];
    return NULL;
}

static tutti_launch detect(const char *const *variables)
{
    tutti_launch launch = {NULL, -1, -1};
    environment = variables;
    assert_int_equal(TUTTI_OK, tutti_launch_detect(&launch, lookup));
    return launch;
}

#define ENV(...) ((const char *const[]){__VA_ARGS__, NULL})

static void nobody_means_one_rank(void **state)
{
    (void)state;
    const tutti_launch launch = detect(ENV("HOME", "/"));
    assert_null(launch.launcher);
    assert_int_equal(1, launch.size);
}

static void launchers_are_recognised(void **state)
{
    (void)state;
    assert_int_equal(4, detect(ENV("OMPI_COMM_WORLD_SIZE", "4")).size);
    assert_int_equal(8, detect(ENV("PMI_RANK", "3", "PMI_SIZE", "8")).size);
    assert_int_equal(128, detect(ENV("SMPI_GLOBAL_SIZE", "128")).size);
    const tutti_launch srun = detect(ENV("PMIX_RANK", "0", "SLURM_STEP_NUM_TASKS", "16"));
    assert_non_null(srun.launcher);
    assert_int_equal(0, srun.size); /* it does not say */
    assert_int_equal(0, srun.rank);
    assert_int_equal(3, detect(ENV("PMI_RANK", "3", "PMI_SIZE", "8")).rank);
    assert_int_equal(-1, detect(ENV("SMPI_GLOBAL_SIZE", "128")).rank);
}

static double grace(const char *const *variables)
{
    environment = variables;
    return tutti_launch_grace(lookup);
}

static void a_launcher_says_when_it_kills(void **state)
{
    (void)state;
    assert_true(grace(ENV("HOME", "/")) == 0);
    assert_true(grace(ENV("PMIX_RANK", "0", "SLURM_STEP_NUM_TASKS", "16")) == 0);
    assert_true(grace(ENV("OMPI_COMM_WORLD_SIZE", "4")) == 1);
    assert_true(
        grace(ENV("OMPI_COMM_WORLD_SIZE", "4", "OMPI_MCA_odls_base_sigkill_timeout", "60")) == 60);
}

static void a_batch_script_is_not_a_launcher(void **state)
{
    (void)state;
    assert_null(detect(ENV("SLURM_JOB_ID", "7", "SLURM_NTASKS", "16")).launcher);
    assert_null(detect(ENV("SLURM_STEP_NUM_TASKS", "1")).launcher);
}

static void srun_without_mpi_is_refused(void **state)
{
    (void)state;
    tutti_launch launch;
    environment = ENV("SLURM_PROCID", "3", "SLURM_STEP_NUM_TASKS", "16");
    assert_int_equal(TUTTI_UNSUPPORTED, tutti_launch_detect(&launch, lookup));
    assert_non_null(strstr(tutti_message(), "--mpi=pmix"));
}

static void the_build_id_is_found(void **state)
{
    (void)state;
    assert_int_not_equal(0, tutti_launch_build_id());
    assert_int_equal(tutti_launch_build_id(), tutti_launch_build_id());
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nobody_means_one_rank),
        cmocka_unit_test(launchers_are_recognised),
        cmocka_unit_test(a_launcher_says_when_it_kills),
        cmocka_unit_test(a_batch_script_is_not_a_launcher),
        cmocka_unit_test(srun_without_mpi_is_refused),
        cmocka_unit_test(the_build_id_is_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
