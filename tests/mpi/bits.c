/* Part-reduce and part-broadcast against the plain sum, by ==, on however many ranks mpirun
 * starts: every algorithm, awkward sizes, values of many magnitudes, ranks that come late, chains
 * with gates that overtake each other, groups, all-to-all, agreement.
 *
 *   mpirun -n 5 tests/mpi/bits [SEED]                                                         */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "sums.h"

/* --- every algorithm, every size --- */

static void run_sum(tester *t, sum_case *c, const char *reduce, const char *broadcast,
                    size_t chunk_bytes)
{
    char name[64];
    snprintf(name, sizeof name, "%s+%s n=%zu leaves=%d chunk=%zu", reduce, broadcast, c->count,
             c->leaves, chunk_bytes);
    float *const whole = floats(t, c->count);
    tutti_exchange *x = NULL;
    const tutti_exchange_spec spec = {.name = name,
                                      .group = c->group,
                                      .count = c->count,
                                      .leaves = c->leaves,
                                      .partials = c->partials,
                                      .whole = whole,
                                      .reduce_by = reduce,
                                      .broadcast_by = broadcast,
                                      .chunk_bytes = chunk_bytes};
    MUST(tutti_exchange_create(&x, t->comm, &spec));
    for (int run = 0; run < 2; run++) {
        for (int i = 0; i < c->roots; i++)
            memcpy(c->partials[i], c->original[i], c->count * sizeof(float));
        memset(whole, 0xff, c->count * sizeof(float));
        delay(t);
        MUST(tutti_exchange_run(x));
        check_whole(t, name, whole, c->want, c->count);
        size_t begin, end;
        tutti_exchange_strip(x, &begin, &end);
        check_whole(t, "the strip", c->partials[0] + begin, c->want + begin, end - begin);
    }
    tutti_exchange_destroy(&x);
    tutti_free(whole);
}

static bool is_power_of_two(int n)
{
    return (n & (n - 1)) == 0;
}

static void every_algorithm(tester *t, int leaves, size_t count)
{
    static const char *const reduces[] = {"direct", "bruck", "halving"};
    static const char *const broadcasts[] = {"direct", "bruck", "doubling"};
    sum_case c;
    sum_case_init(t, &c, NULL, leaves, count);
    const bool halves =
        is_power_of_two(t->size) && leaves % t->size == 0 && is_power_of_two(leaves / t->size);
    for (int r = 0; r < (halves ? 3 : 2); r++)
        for (int b = 0; b < (r == 2 ? 3 : 2); b++) {
            run_sum(t, &c, reduces[r], broadcasts[b], 0);
            if (count <= 1000) run_sum(t, &c, reduces[r], broadcasts[b], 64);
        }
    run_sum(t, &c, NULL, NULL, 0);
    sum_case_deinit(&c);
}

/* Many ranks share few cores: they try less of what does not depend on their number. */
static void awkward_sizes(tester *t)
{
    static const size_t sizes[] = {0, 1, 15, 16, 17, 1000, 20011, 300000, 1000003};
    const bool is_crowd = t->size > 16;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        if (is_crowd && (sizes[i] < 17 || sizes[i] > 100000)) continue;
        every_algorithm(t, leaves_for(t), sizes[i]);
        if (sizes[i] > 1000 || is_crowd) continue;
        every_algorithm(t, t->size, sizes[i]);
        every_algorithm(t, 4 * leaves_for(t), sizes[i]);
        every_algorithm(t, t->size + 5, sizes[i]);
    }
    if (is_crowd) every_algorithm(t, t->size + 5, 17);
}

static void what_cannot_be_is_said(tester *t)
{
    tutti_exchange *x = NULL;
    float *partial = floats(t, 1), *partials[1] = {partial};
    tutti_exchange_spec spec = {.name = "fc6", .count = 1, .leaves = t->size, .partials = partials};
    spec.reduce_by = "magic";
    CHECK(tutti_exchange_create(&x, t->comm, &spec) == TUTTI_ARGUMENT, "took 'magic'");
    spec.reduce_by = NULL;
    spec.leaves = t->size - 1;
    if (spec.leaves) {
        CHECK(tutti_exchange_create(&x, t->comm, &spec) == TUTTI_ARGUMENT, "took too few leaves");
        CHECK(strstr(tutti_message(), "--grains"), "no advice in '%s'", tutti_message());
    }
    tutti_group *group = NULL;
    CHECK(tutti_group_create_inside(&group, t->comm, t->size + 1) == TUTTI_ARGUMENT,
          "took more groups than ranks");
    tutti_free(partial);
}

/* A large exchange is started first, a small urgent one after it: the small one must end first.
 * The gate keeps the large one from ending before the small one is there. */
static void the_urgent_overtakes(tester *t)
{
    if (t->size == 1) return; /* nothing travels */
    enum { MANY = 200003, FEW = 100 };
    sum_case large, small;
    sum_case_init(t, &large, NULL, leaves_for(t), MANY);
    sum_case_init(t, &small, NULL, leaves_for(t), FEW);
    float *const whole[] = {floats(t, MANY), floats(t, FEW)};
    tutti_exchange *x[2] = {NULL, NULL};
    for (int i = 0; i < 2; i++) {
        const sum_case *c = i ? &small : &large;
        for (int r = 0; r < c->roots; r++)
            memcpy(c->partials[r], c->original[r], c->count * sizeof(float));
        const tutti_exchange_spec spec = {.name = i ? "conv1" : "fc6",
                                          .priority = i ? 1 : 6,
                                          .count = c->count,
                                          .leaves = leaves_for(t),
                                          .partials = c->partials,
                                          .whole = whole[i],
                                          .gated = i == 0,
                                          .chunk_bytes = 16384};
        MUST(tutti_exchange_create(&x[i], t->comm, &spec));
    }
    tutti_exchange_start(x[0]);
    delay(t);
    tutti_exchange_start(x[1]);
    tutti_exchange_open_gate(x[0]);
    MUST(tutti_exchange_wait(x[1]));
    MUST(tutti_exchange_wait(x[0]));
    CHECK(tutti_exchange_statistics(x[1]).done < tutti_exchange_statistics(x[0]).done,
          "the urgent exchange ended last");
    check_whole(t, "large", whole[0], large.want, MANY);
    check_whole(t, "small", whole[1], small.want, FEW);
    for (int i = 0; i < 2; i++) {
        tutti_exchange_destroy(&x[i]);
        tutti_free(whole[i]);
    }
    sum_case_deinit(&large);
    sum_case_deinit(&small);
}

/* Strips as the caller cuts them, one of them empty. */
static void uneven_strips(tester *t)
{
    size_t *cuts = NULL;
    MUST(tutti_alloc(&cuts, (size_t)t->size + 1, sizeof *cuts));
    for (int m = 0; m < t->size; m++) cuts[m + 1] = cuts[m] + (size_t)(m % 3) * 1000 + (m == 0);
    sum_case c;
    sum_case_init(t, &c, NULL, leaves_for(t), cuts[t->size]);
    float *const whole = floats(t, c.count);
    for (int i = 0; i < c.roots; i++) memcpy(c.partials[i], c.original[i], c.count * sizeof(float));
    tutti_exchange *x = NULL;
    const tutti_exchange_spec spec = {.name = "uneven",
                                      .count = c.count,
                                      .cuts = cuts,
                                      .leaves = leaves_for(t),
                                      .partials = c.partials,
                                      .whole = whole,
                                      .chunk_bytes = 2048};
    MUST(tutti_exchange_create(&x, t->comm, &spec));
    MUST(tutti_exchange_run(x));
    check_whole(t, "uneven", whole, c.want, c.count);
    tutti_exchange_destroy(&x);
    tutti_free(whole);
    tutti_free(cuts);
    sum_case_deinit(&c);
}

/* --- groups and all-to-all --- */

static void one_grouping(tester *t, int groups)
{
    tutti_group *inside = NULL, *across = NULL;
    MUST(tutti_group_create_inside(&inside, t->comm, groups));
    MUST(tutti_group_create_across(&across, t->comm, groups));
    CHECK(tutti_group_size(inside) * tutti_group_size(across) == t->size, "sizes");
    sum_case in, over;
    sum_case_init(t, &in, inside, leaves_for(t), 1009);
    sum_case_init(t, &over, across, leaves_for(t), 4099);
    run_sum(t, &in, NULL, NULL, 0);
    run_sum(t, &over, "direct", "bruck", 0);
    sum_case_deinit(&in);
    sum_case_deinit(&over);
    tutti_group_destroy(&inside);
    tutti_group_destroy(&across);
}

/* How much rank 'from' sends to rank 'to': some floats, sometimes none, now and then many. */
static size_t amount(int from, int to)
{
    const int n = from * 7 + to * 3;
    return n % 5 == 0 ? 0 : n % 7 == 0 ? 40000 : (size_t)(n % 11) * 13;
}

static void alltoall(tester *t)
{
    size_t *send_cuts = NULL, *receive_cuts = NULL;
    MUST(tutti_alloc(&send_cuts, (size_t)t->size + 1, sizeof *send_cuts));
    MUST(tutti_alloc(&receive_cuts, (size_t)t->size + 1, sizeof *receive_cuts));
    for (int m = 0; m < t->size; m++) {
        send_cuts[m + 1] = send_cuts[m] + amount(t->rank, m);
        receive_cuts[m + 1] = receive_cuts[m] + amount(m, t->rank);
    }
    float *const send = floats(t, send_cuts[t->size]);
    float *const receive = floats(t, receive_cuts[t->size]);
    for (int m = 0; m < t->size; m++)
        for (size_t i = 0; i < amount(t->rank, m); i++)
            send[send_cuts[m] + i] = value_of(t->seed, t->rank * 100 + m, i);
    tutti_exchange *x = NULL;
    const tutti_alltoall_spec spec = {.name = "transpose",
                                      .send = send,
                                      .send_cuts = send_cuts,
                                      .receive = receive,
                                      .receive_cuts = receive_cuts};
    MUST(tutti_exchange_create_alltoall(&x, t->comm, &spec));
    delay(t);
    MUST(tutti_exchange_run(x));
    for (int m = 0; m < t->size; m++)
        for (size_t i = 0; i < amount(m, t->rank); i++)
            CHECK(same(receive[receive_cuts[m] + i], value_of(t->seed, m * 100 + t->rank, i)),
                  "element %zu from rank %d", i, m);
    tutti_exchange_destroy(&x);
    tutti_free(send);
    tutti_free(receive);
    tutti_free(send_cuts);
    tutti_free(receive_cuts);
}

/* --- agreement --- */

static void agreement(tester *t)
{
    MUST(tutti_comm_agree(t->comm, TUTTI_OK));
    for (int bad = 0; bad < t->size; bad++) {
        delay(t);
        const bool me = bad == t->rank;
        const tutti_status s = tutti_comm_agree(
            t->comm, me ? tutti_fail(TUTTI_DISK_FULL, "cannot open '%d.bin'", bad) : TUTTI_OK);
        CHECK(s == (me ? TUTTI_DISK_FULL : TUTTI_PEER), "status %d", (int)s);
        CHECK(tutti_status_exit_code(s) == 8, "exit %d", tutti_status_exit_code(s));
        char want[32];
        snprintf(want, sizeof want, "cannot open '%d.bin'", bad);
        CHECK(strstr(tutti_message(), want), "'%s'", tutti_message());
    }
    MUST(tutti_comm_check_same(t->comm, "the answer", 42));
    if (t->size == 1) return;
    CHECK(tutti_comm_check_same(t->comm, "the net", t->rank == t->size - 1) == TUTTI_MISMATCH,
          "a difference was not seen");
    char want[32];
    snprintf(want, sizeof want, "rank %d (host", t->size - 1);
    CHECK(strstr(tutti_message(), "the net") && strstr(tutti_message(), want), "'%s'",
          tutti_message());
}

static void small_collectives(tester *t)
{
    for (int root = 0; root < t->size; root += 3) {
        char text[3000];
        memset(text, t->rank == root ? 'r' : 'x', sizeof text);
        MUST(tutti_comm_broadcast(t->comm, root, text, sizeof text));
        CHECK(text[0] == 'r' && text[sizeof text - 1] == 'r', "broadcast from %d", root);
    }
    double *offsets = NULL;
    MUST(tutti_alloc(&offsets, (size_t)t->size, sizeof *offsets));
    MUST(tutti_comm_clock_offsets(t->comm, offsets));
    for (int r = 0; r < t->size; r++) /* all ranks of a test share the machine's clock */
        CHECK(offsets[r] > -0.5 && offsets[r] < 0.5, "rank %d is off by %g s", r, offsets[r]);
    tutti_free(offsets);
    MUST(tutti_comm_barrier(t->comm));
}

/* --- hosts --- */

/* With TUTTI_TEST_HOSTS every rank is told that it is on a host of its own. */
static const char *host_of_my_own(char *name, size_t size)
{
    snprintf(name, size, "host-%d", (int)getpid());
    return getenv("TUTTI_TEST_HOSTS") ? name : NULL;
}

static void a_host_as_told(tester *t, const char *told)
{
    if (!told) return;
    CHECK(!strcmp(tutti_comm_host(t->comm, t->rank), told), "host %s instead of %s",
          tutti_comm_host(t->comm, t->rank), told);
    CHECK(tutti_comm_local_size(t->comm) == 1, "%d ranks on %s", tutti_comm_local_size(t->comm),
          told);
}

int main(int argc, char **argv)
{
    char name[32];
    const tutti_comm_world world = {.host = host_of_my_own(name, sizeof name)};
    tester tester_ = {.seed = argc > 1 ? strtoull(argv[1], NULL, 10) : 1}, *const t = &tester_;
    tutti_comm_options options = tutti_comm_defaults();
    options.log = tutti_log_stderr(TUTTI_LOG_WARNING);
    options.stall_abort = 100;
    options.no_thread = getenv("TUTTI_TEST_NO_THREAD") != NULL;
    options.world = &world;
    if (tutti_comm_open(&t->comm, &options) != TUTTI_OK) {
        fprintf(stderr, "FAIL: %s\n", tutti_message());
        return 1;
    }
    t->rank = tutti_comm_rank(t->comm);
    t->size = tutti_comm_size(t->comm);
    a_host_as_told(t, world.host);
    agreement(t);
    small_collectives(t);
    what_cannot_be_is_said(t);
    awkward_sizes(t);
    chains(t, NULL);
    in_common_memory(t, &options);
    the_urgent_overtakes(t);
    uneven_strips(t);
    for (int groups = 1; groups <= t->size; groups++)
        if (t->size % groups == 0) one_grouping(t, groups);
    alltoall(t);
    if (t->rank == 0) printf("ok: %d ranks, %s\n", t->size, tutti_comm_library());
    tutti_comm_close(&t->comm);
    return 0;
}
