/* The small things everything rests on: status, log, memory, hash, random numbers, team. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/clock.h"
#include "base/cpu.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/random.h"
#include "base/team.h"
#include "base/topology.h"

static void a_failure_keeps_its_sentence(void **state)
{
    (void)state;
    assert_int_equal(tutti_fail(TUTTI_SHAPE, "layer %s", "c1"), TUTTI_SHAPE);
    assert_string_equal(tutti_message(), "layer c1");
    assert_int_equal(tutti_fail(TUTTI_IO, "file: %s", tutti_message()), TUTTI_IO);
    assert_string_equal(tutti_message(), "file: layer c1");
    for (int i = 0; i < TUTTI_STATUS_COUNT; i++) {
        assert_true(*tutti_status_name((tutti_status)i) && *tutti_status_text((tutti_status)i));
        assert_true((tutti_status_exit_code((tutti_status)i) == 0) == (i == TUTTI_OK));
    }
    assert_string_equal(tutti_status_name((tutti_status)-1), "UNKNOWN");
    assert_int_equal(tutti_status_exit_code((tutti_status)9999), 1);
    assert_int_equal(tutti_status_exit_code(TUTTI_PEER), 1);
    assert_int_equal(tutti_fail_peer(TUTTI_CHECKPOINT, "rank 3: %s", tutti_message()), TUTTI_PEER);
    assert_string_equal(tutti_message(), "rank 3: file: layer c1");
    assert_int_equal(tutti_status_exit_code(TUTTI_PEER), 6);
}

static void keep_line(void *user, tutti_log_level level, const char *line)
{
    snprintf(user, 64, "%d|%s", (int)level, line);
}

static void the_log_speaks_only_to_its_sink(void **state)
{
    (void)state;
    char heard[64] = "";
    tutti_log log = {keep_line, heard, TUTTI_LOG_INFO, 3};
    tutti_debug(&log, "not at this level");
    assert_string_equal(heard, "");
    tutti_warn(&log, "step %d", 7);
    assert_string_equal(heard, "1|[3] step 7");
    log.rank = -1;
    tutti_info(&log, "alone");
    assert_string_equal(heard, "2|alone");
    tutti_info(NULL, "silence");
    tutti_info(&(tutti_log){0}, "silence");
    assert_string_equal(heard, "2|alone");
}

static void memory_is_aligned_zeroed_and_says_what_it_lacks(void **state)
{
    (void)state;
    const size_t sizes[] = {0, 1, 63, 64, 4097, (2 << 20) - 1, 2 << 20, (5 << 20) + 1};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        unsigned char *p = NULL;
        assert_int_equal(tutti_alloc(&p, sizes[i], 1), TUTTI_OK);
        assert_int_equal((uintptr_t)p % (sizes[i] >= TUTTI_HUGE_PAGE ? TUTTI_HUGE_PAGE : 64), 0);
        for (size_t b = 0; b < sizes[i]; b++) assert_int_equal(p[b], 0);
        memset(p, 1, sizes[i]);
        tutti_free(p);
    }
    float *p = (float *)state;
    assert_int_equal(tutti_alloc(&p, SIZE_MAX / 2, 4), TUTTI_MEMORY);
    assert_null(p);
    assert_int_equal(tutti_alloc(&p, (size_t)1 << 46, 1), TUTTI_MEMORY);
    assert_string_equal(tutti_message(),
                        "cannot allocate 67108864.0 MiB (70368744177664 x 1 bytes)");
}

static void an_arena_measures_and_then_gives(void **state)
{
    (void)state;
    tutti_arena arena = {0};
    assert_null(tutti_arena_take(&arena, 1));
    assert_null(tutti_arena_take(&arena, 65));
    assert_int_equal(arena.used, 192);
    assert_int_equal(tutti_arena_init(&arena, 192), TUTTI_OK);
    char *first = tutti_arena_take(&arena, 1), *second = tutti_arena_take(&arena, 65);
    assert_int_equal(second - first, 64);
    tutti_arena_deinit(&arena);
}

/* FIPS 180-2, appendix B. */
static void sha256_is_the_published_one(void **state)
{
    (void)state;
    char hex[TUTTI_HASH_HEX];
    assert_int_equal(tutti_hash_bytes(hex, "abc", 3), TUTTI_OK);
    assert_string_equal(hex, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");

    tutti_hash *hash = NULL;
    char a[1000];
    memset(a, 'a', sizeof a);
    assert_int_equal(tutti_hash_create(&hash), TUTTI_OK);
    for (int i = 0; i < 1000; i++) tutti_hash_add(hash, a, sizeof a);
    tutti_hash_finish(hash, hex);
    assert_string_equal(hex, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
    tutti_hash_add(hash, "a", 1); /* starts again */
    tutti_hash_add(hash, "bc", 2);
    tutti_hash_finish(hash, hex);
    assert_string_equal(hex, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    tutti_hash_destroy(&hash);
    assert_null(hash);
    assert_int_equal(tutti_hash_file(hex, "/nowhere/at.all"), TUTTI_IO);
    assert_int_equal(tutti_hash_file(hex, "/dev/null"), TUTTI_OK);
    assert_string_equal(hex, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
}

/* The known answers of Random123 for philox4x32 with 10 rounds. */
static void philox_gives_its_known_answers(void **state)
{
    (void)state;
    static const struct {
        uint32_t counter[4], key[2], want[4];
    } known[] = {
        {{0, 0, 0, 0}, {0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
        {{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff},
         {0xffffffff, 0xffffffff},
         {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
        {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
         {0xa4093822, 0x299f31d0},
         {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        uint32_t out[4];
        tutti_philox(out, known[i].counter, known[i].key);
        assert_memory_equal(out, known[i].want, sizeof out);
    }
}

static void random_numbers_depend_on_what_they_are_for(void **state)
{
    (void)state;
    const tutti_random_key key = {42, TUTTI_RANDOM_INIT, 3, 5, 7};
    const tutti_random_key others[] = {
        {43, TUTTI_RANDOM_INIT, 3, 5, 7}, {42, TUTTI_RANDOM_DROPOUT, 3, 5, 7},
        {42, TUTTI_RANDOM_INIT, 4, 5, 7}, {42, TUTTI_RANDOM_INIT, 3, 6, 7},
        {42, TUTTI_RANDOM_INIT, 3, 5, 8}, {42 + ((uint64_t)1 << 32), TUTTI_RANDOM_INIT, 3, 5, 7}};
    uint32_t four[4];
    tutti_random_block(four, &key, 9);
    for (int i = 0; i < 4; i++) assert_int_equal(tutti_random_u32(&key, 36 + (uint64_t)i), four[i]);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        assert_int_not_equal(tutti_random_u32(&others[i], 0), tutti_random_u32(&key, 0));
}

static void random_numbers_are_spread_as_promised(void **state)
{
    (void)state;
    enum { COUNT = 100000, BOUND = 7 };
    const tutti_random_key key = {1, TUTTI_RANDOM_SHUFFLE, 0, 0, 0};
    double sum = 0, square = 0, mean = 0;
    int seen[BOUND] = {0};
    for (uint64_t i = 0; i < COUNT; i++) {
        const double u = tutti_random_uniform(&key, i), x = tutti_random_normal(&key, i);
        assert_true(u >= 0 && u < 1);
        mean += u / COUNT, sum += x / COUNT, square += x * x / COUNT;
        seen[tutti_random_below(&key, i, BOUND)]++;
    }
    /* five standard deviations of each estimate */
    assert_true(mean > 0.5 - 0.0046 && mean < 0.5 + 0.0046);
    assert_true(sum > -0.016 && sum < 0.016);
    assert_true(square > 1 - 0.0224 && square < 1 + 0.0224);
    for (int i = 0; i < BOUND; i++)
        assert_in_range(seen[i], COUNT / BOUND - 553, COUNT / BOUND + 553);
}

static void count_thread(void *arg, int thread, int threads)
{
    int *seen = arg;
    seen[thread] += threads;
}

static void every_member_of_a_team_works_once(void **state)
{
    (void)state;
    for (int threads = 1; threads <= 5; threads++) {
        tutti_team *team = NULL;
        int seen[5] = {0};
        assert_int_equal(tutti_team_create(&team, threads), TUTTI_OK);
        assert_int_equal(tutti_team_size(team), threads);
        tutti_team_run(team, count_thread, seen);
        tutti_team_run(team, count_thread, seen);
        for (int i = 0; i < threads; i++) assert_int_equal(seen[i], 2 * threads);
        tutti_team_destroy(&team);
        assert_null(team);
    }
    int alone = 0;
    tutti_team_run(NULL, count_thread, &alone);
    assert_int_equal(alone, 1);
}

static int allowed_threads(void)
{
    tutti_topology *topology = NULL;
    assert_int_equal(tutti_topology_open(&topology), TUTTI_OK);
    const int count = tutti_topology_threads(topology);
    tutti_topology_close(&topology);
    return count;
}

/* A team pins its threads; whoever comes after it must find the cpuset as it was. */
static void a_team_leaves_the_cpuset_as_it_was(void **state)
{
    (void)state;
    const int before = allowed_threads();
    tutti_team *team = NULL;
    assert_int_equal(tutti_team_create(&team, 1), TUTTI_OK);
    tutti_team_destroy(&team);
    assert_int_equal(allowed_threads(), before);
}

static void the_machine_is_described(void **state)
{
    (void)state;
    tutti_topology *t = NULL;
    assert_int_equal(tutti_topology_open(&t), TUTTI_OK);
    const int cores = tutti_topology_cores(t), threads = tutti_topology_threads(t);
    assert_true(cores >= 1 && threads >= cores);
    assert_true(tutti_topology_machine_threads(t) >= threads);
    assert_true(tutti_topology_numa_nodes(t) >= 1);
    assert_true(tutti_topology_memory(t) > (uint64_t)64 << 20);
    assert_true(*tutti_topology_cpu(t));
    for (int level = 1; level <= 3; level++)
        if (tutti_topology_cache(t, level)) {
            const int sharers = tutti_topology_cache_sharers(t, level);
            assert_in_range(sharers, 1, cores);
            assert_true(tutti_topology_cache_cores(t, level) >= sharers);
        }
    assert_int_equal(tutti_topology_cache(t, 0), 0);
    assert_false(tutti_topology_pin_caller(t, 1 << 20));
    tutti_topology_close(&t);
    const double start = tutti_now();
    assert_true(tutti_now() >= start);
    assert_true(!(tutti_cpu_features() & TUTTI_CPU_AVX512) ||
                tutti_cpu_features() & TUTTI_CPU_AVX2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_team_leaves_the_cpuset_as_it_was), /* before others have threads */
        cmocka_unit_test(a_failure_keeps_its_sentence),
        cmocka_unit_test(the_log_speaks_only_to_its_sink),
        cmocka_unit_test(memory_is_aligned_zeroed_and_says_what_it_lacks),
        cmocka_unit_test(an_arena_measures_and_then_gives),
        cmocka_unit_test(sha256_is_the_published_one),
        cmocka_unit_test(philox_gives_its_known_answers),
        cmocka_unit_test(random_numbers_depend_on_what_they_are_for),
        cmocka_unit_test(random_numbers_are_spread_as_promised),
        cmocka_unit_test(every_member_of_a_team_works_once),
        cmocka_unit_test(the_machine_is_described),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
