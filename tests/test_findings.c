/* The doctor's judgement: every rule is provoked by the facts that should provoke it, and a
 * healthy machine gets no complaint. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "machine/doctor.h"

static const tutti_seat apart[] = {{0, 0, 0, 0}, {0, 1, 1, 0}, {0, 2, 2, 0}, {0, 3, 3, 0}};

static tutti_facts healthy(void)
{
    return (tutti_facts){
        .cores = 4,
        .threads = 8,
        .machine_cores = 4,
        .machine_threads = 8,
        .memory = (uint64_t)16 << 30,
        .memory_free = (uint64_t)15 << 30,
        .huge_pages = "madvise",
        .governor = "performance",
        .isa = "avx2",
        .best_isa = "avx2",
        .team = 4,
        .pinned = true,
        .ranks = 1,
        .all_ranks = 1,
        .host_threads = 4,
        .seats = apart,
        .seat_count = 4,
        .speeds = {.fma_one = 100, .fma_all = 390},
    };
}

static void a_healthy_machine_gets_no_complaint(void **state)
{
    (void)state;
    tutti_finding out[TUTTI_MAX_FINDINGS];
    tutti_facts m = healthy();
    assert_int_equal(tutti_findings(out, &m), 0);
    m.speeds = (tutti_speeds){0}; /* not measured */
    m.governor[0] = m.huge_pages[0] = 0;
    assert_int_equal(tutti_findings(out, &m), 0);
}

/* Exactly one finding, with these words and this remedy. */
static void expect(const tutti_facts *m, const char *sentence, const char *remedy)
{
    tutti_finding out[TUTTI_MAX_FINDINGS];
    const int count = tutti_findings(out, m);
    if (count != 1) print_error("%d findings where '%s' was expected\n", count, sentence);
    assert_int_equal(count, 1);
    assert_string_equal(out[0].sentence, sentence);
    assert_string_equal(out[0].remedy, remedy);
}

static void threads_and_cores_must_fit(void **state)
{
    (void)state;
    tutti_facts m = healthy();
    m.team = 8;
    expect(&m, "8 threads on 4 cores share cores as SMT siblings, which slows each of them down",
           "export OMP_NUM_THREADS=4");
    m.team = 9;
    expect(&m, "9 threads are asked for but this process may use only 4 cores",
           "export OMP_NUM_THREADS=4");
    m = healthy();
    m.team = m.seat_count = 1;
    m.speeds.fma_all = 100;
    expect(&m, "3 of 4 cores are idle: only 1 thread is asked for", "export OMP_NUM_THREADS=4");
    m = healthy();
    m.machine_cores = 8, m.machine_threads = 16;
    expect(&m, "this process may use only 4 of the machine's 8 cores",
           "taskset -c 0-15 tutti ..., or mpirun --bind-to none, or srun --cpus-per-task=8");
}

static void nobody_may_share_a_core(void **state)
{
    (void)state;
    const tutti_seat threads[] = {{0, 0, 3, 0}, {0, 1, -1, 0}, {0, 2, -1, 0}, {0, 3, 3, 0}};
    tutti_facts m = healthy();
    m.seats = threads;
    expect(&m, "threads 0 and 3 are bound to the same core 3",
           "unset OMP_PLACES GOMP_CPU_AFFINITY KMP_AFFINITY OMP_PROC_BIND");

    const tutti_seat ranks[] = {{0, 0, 0, 0}, {0, 1, 1, 0}, {3, 0, 1, 3}, {5, 0, 1, 0}};
    m = healthy();
    m.seats = ranks, m.ranks = 2, m.team = 2, m.speeds.fma_all = 200;
    expect(&m, "ranks 0 and 5 are bound to the same core 1",
           "mpirun --map-by slot:PE=2 --bind-to core, or srun --cpus-per-task=2");

    m = healthy();
    m.seats = NULL, m.seat_count = 0;
    m.host_threads = 6, m.ranks = 2, m.team = 3, m.speeds.fma_all = 300;
    expect(&m, "2 ranks with 6 threads together run on this host of 4 cores",
           "export OMP_NUM_THREADS=2");
}

static void limits_and_settings_are_named(void **state)
{
    (void)state;
    tutti_facts m = healthy();
    m.cpu_limit = 2.5;
    expect(&m, "the control group grants the time of 2.5 processors to 4 threads",
           "docker run --cpus=4, or export OMP_NUM_THREADS=2");
    m = healthy();
    m.memory_limit = (uint64_t)2 << 30;
    expect(&m, "the control group grants 2.0 of 16.0 GiB of memory",
           "docker run --memory=16g, or sbatch --mem=0");
    m = healthy();
    strcpy(m.huge_pages, "never");
    expect(&m, "huge pages are off, so large arrays miss the TLB often",
           "echo madvise | sudo tee /sys/kernel/mm/transparent_hugepage/enabled");
    m = healthy();
    strcpy(m.governor, "powersave");
    expect(&m, "the clock's governor is 'powersave', which may hold the processor back",
           "sudo cpupower frequency-set -g performance");
    m = healthy();
    m.isa = "scalar";
    expect(&m, "TUTTI_ISA lowers the kernels from avx2 to scalar", "unset TUTTI_ISA");
    m = healthy();
    m.speeds.fma_all = 210;
    expect(&m, "4 threads compute only 2.1 times as fast as one: something else uses the cores",
           "top -H, to see who else computes here");
}

static void a_slow_rank_is_named(void **state)
{
    (void)state;
    tutti_facts m = healthy();
    m.all_ranks = 8, m.slow_rank = 5, m.slow_speed = 310, m.median_speed = 390;
    expect(&m,
           "rank 5 computes at 310 GFLOP/s where half of the ranks reach 390: all will wait "
           "for it",
           "leave its host out: mpirun --hostfile, or sbatch --exclude");
}

static void a_net_must_fit_into_the_memory(void **state)
{
    (void)state;
    tutti_facts m = healthy();
    tutti_finding out[TUTTI_MAX_FINDINGS];
    m.net = "vgg-a", m.batch = 256, m.net_bytes = (uint64_t)15 << 30;
    assert_int_equal(tutti_findings(out, &m), 0);
    m.net_bytes++;
    expect(&m,
           "training vgg-a with 256 samples a step takes 15.0 GiB a rank, but 15.0 GiB are "
           "free for 1 rank",
           "tutti train vgg-a --batch-size 230, or more hosts");
    m.net_bytes = (uint64_t)8 << 30, m.ranks = 2;
    expect(&m,
           "training vgg-a with 256 samples a step takes 8.0 GiB a rank, but 15.0 GiB are "
           "free for 2 ranks",
           "tutti train vgg-a --batch-size 216, or more hosts");
}

static void a_launcher_must_wait_for_a_step(void **state)
{
    (void)state;
    tutti_facts m = healthy();
    m.net = "vgg-a";
    m.net_flops = 390e9;
    m.grace = 1;
    expect(
        &m,
        "a step of vgg-a takes at least 1.0 s, but mpirun kills 1 s after Ctrl-C or SIGTERM: too "
        "early for a last checkpoint",
        "mpirun --mca odls_base_sigkill_timeout 64");
    tutti_finding out[TUTTI_MAX_FINDINGS];
    m.grace = 60;
    assert_int_equal(tutti_findings(out, &m), 0);
    m.grace = 0; /* nobody kills */
    assert_int_equal(tutti_findings(out, &m), 0);
    m.grace = 1;
    m.speeds = (tutti_speeds){0}; /* nobody knows */
    assert_int_equal(tutti_findings(out, &m), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_healthy_machine_gets_no_complaint),
        cmocka_unit_test(threads_and_cores_must_fit),
        cmocka_unit_test(nobody_may_share_a_core),
        cmocka_unit_test(limits_and_settings_are_named),
        cmocka_unit_test(a_slow_rank_is_named),
        cmocka_unit_test(a_net_must_fit_into_the_memory),
        cmocka_unit_test(a_launcher_must_wait_for_a_step),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
