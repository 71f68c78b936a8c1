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
#include "base/random.h"
#include "base/topology.h"
#include "base/tree.h"
#include "comm/comm.h"

enum { MAX_LEAVES = 512, LAYERS = 12 };

typedef struct tester {
    tutti_comm *comm;
    int rank, size;
    uint64_t seed;
    uint64_t draws; /* of this rank's own delays */
} tester;

#define CHECK(condition, ...)                                                                 \
    do {                                                                                      \
        if (condition) break;                                                                 \
        fprintf(stderr, "FAIL %s:%d: rank %d of %d: ", __FILE__, __LINE__, t->rank, t->size); \
        fprintf(stderr, __VA_ARGS__);                                                         \
        fprintf(stderr, "   [again: mpirun -n %d %s %llu]\n", t->size, "tests/mpi/bits",      \
                (unsigned long long)t->seed);                                                 \
        tutti_comm_abort(t->comm, TUTTI_DATA);                                                \
    } while (0)
#define MUST(call)                                                    \
    do {                                                              \
        const tutti_status status_ = (call);                          \
        CHECK(status_ == TUTTI_OK, "%s: %s", #call, tutti_message()); \
    } while (0)

static float *floats(tester *t, size_t count)
{
    float *block = NULL;
    MUST(tutti_alloc(&block, count + 1, sizeof *block));
    return block;
}

/* A float of any sign and many magnitudes; what it is depends on leaf and index alone. */
static float value_of(uint64_t seed, int leaf, size_t index)
{
    uint64_t z = (seed * 0x9e3779b97f4a7c15u) ^ ((uint64_t)(leaf + 1) << 40) ^ index;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    z ^= z >> 31;
    const uint32_t exponent = 127 - 24 + (uint32_t)(z >> 32) % 48;
    const uint32_t bits = (uint32_t)(z & 0x807fffff) | exponent << 23;
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static void delay(tester *t)
{
    const tutti_random_key key = {.seed = t->seed, .sample = (uint32_t)t->rank, .layer = 77};
    const uint32_t draw = tutti_random_below(&key, t->draws++, 4000);
    if (draw < 1500) usleep(draw);
}

/* The definition: neighbours pairwise, level by level, an odd last one passes up. */
static float plain_sum(uint64_t seed, int first, int end, size_t index)
{
    float level[MAX_LEAVES];
    int count = end - first;
    for (int i = 0; i < count; i++) level[i] = value_of(seed, first + i, index);
    for (; count > 1; count = (count + 1) / 2)
        for (int i = 0; i < (count + 1) / 2; i++)
            level[i] = 2 * i + 1 < count ? level[2 * i] + level[2 * i + 1] : level[2 * i];
    return level[0];
}

/* Fills the partial buffers of a member with the roots of its run of leaves. */
static void fill_partials(uint64_t seed, int leaves, int members, int me, size_t count,
                          float **partials)
{
    tutti_subtree roots[TUTTI_TREE_MAX_ROOTS];
    const int n = tutti_tree_roots(roots, leaves, tutti_share_begin(leaves, members, me),
                                   tutti_share_begin(leaves, members, me + 1));
    for (int i = 0; i < n; i++) {
        const int first = roots[i].index << roots[i].level;
        const int end = (roots[i].index + 1) << roots[i].level;
        for (size_t at = 0; at < count; at++)
            partials[i][at] = plain_sum(seed, first, end < leaves ? end : leaves, at);
    }
}

static bool same(float a, float b)
{
    return memcmp(&a, &b, sizeof a) == 0;
}

static void check_whole(tester *t, const char *what, const float *whole, const float *want,
                        size_t count)
{
    for (size_t i = 0; i < count; i++)
        CHECK(same(whole[i], want[i]), "%s: element %zu of %zu is %a, want %a", what, i, count,
              (double)whole[i], (double)want[i]);
}

/* --- every algorithm, every size --- */

/* Leaves of a sum, at least one for each rank. */
static int leaves_for(const tester *t)
{
    return t->size > 16 ? t->size : 16;
}

typedef struct sum_case {
    const tutti_group *group;
    int leaves;
    size_t count;
    float *want;      /* the plain sum */
    float **original; /* this member's partials */
    float **partials;
    int roots;
    bool borrows; /* the partials */
} sum_case;

static void sum_case_init(tester *t, sum_case *c, const tutti_group *group, int leaves,
                          size_t count)
{
    const int members = group ? tutti_group_size(group) : t->size;
    const int me = group ? tutti_group_rank(group) : t->rank;
    *c = (sum_case){.group = group, .leaves = leaves, .count = count};
    c->roots = tutti_exchange_roots(leaves, members, me);
    MUST(tutti_alloc(&c->original, (size_t)c->roots, sizeof *c->original));
    MUST(tutti_alloc(&c->partials, (size_t)c->roots, sizeof *c->partials));
    for (int i = 0; i < c->roots; i++) {
        c->original[i] = floats(t, count);
        c->partials[i] = floats(t, count);
    }
    c->want = floats(t, count);
    fill_partials(t->seed, leaves, members, me, count, c->original);
    for (size_t i = 0; i < count; i++) c->want[i] = plain_sum(t->seed, 0, leaves, i);
}

static void sum_case_deinit(sum_case *c)
{
    for (int i = 0; i < c->roots; i++) {
        tutti_free(c->original[i]);
        if (!c->borrows) tutti_free(c->partials[i]);
    }
    tutti_free(c->original);
    tutti_free(c->partials);
    tutti_free(c->want);
}

/* Common memory from which cases take what they need. */
typedef struct common_room {
    tutti_common *memory;
    float *whole, *own; /* what is left of it */
} common_room;

static float *take(float **left, size_t count)
{
    float *const taken = *left;
    *left += tutti_round_up(count + 1, TUTTI_STRIP_UNIT);
    return taken;
}

static void move_partials(sum_case *c, common_room *room)
{
    for (int i = 0; i < c->roots; i++) {
        tutti_free(c->partials[i]);
        c->partials[i] = take(&room->own, c->count);
    }
    c->borrows = true;
}

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

static void awkward_sizes(tester *t)
{
    static const size_t sizes[] = {0, 1, 15, 16, 17, 1000, 300000, 1000003};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        every_algorithm(t, leaves_for(t), sizes[i]);
        if (sizes[i] > 1000) continue;
        every_algorithm(t, t->size, sizes[i]);
        every_algorithm(t, 4 * leaves_for(t), sizes[i]);
        every_algorithm(t, t->size + 5, sizes[i]);
    }
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

/* --- a step's worth of chains --- */

typedef struct layer {
    tester *t;
    tutti_exchange *x;
    sum_case sum;
    float *weights, *want;
    bool borrows; /* the weights */
    size_t updated;
} layer;

static void update(void *user, const float *sum, const float *rest, size_t begin, size_t end)
{
    layer *const l = user;
    for (size_t i = begin; i < end; i++) {
        const float total = rest ? sum[i - begin] + rest[i - begin] : sum[i - begin];
        l->weights[i] = l->weights[i] * 0.5f + total;
    }
    l->updated += end - begin;
}

static void layer_init(tester *t, layer *l, int index, common_room *room)
{
    static const size_t counts[] = {3, 70001, 17, 0, 20000, 160};
    l->t = t;
    sum_case_init(t, &l->sum, NULL, leaves_for(t), counts[index % 6]);
    const size_t count = l->sum.count;
    l->borrows = room != NULL;
    if (room) move_partials(&l->sum, room);
    l->weights = room ? take(&room->whole, count) : floats(t, count);
    l->want = floats(t, count);
    for (size_t i = 0; i < count; i++) l->want[i] = l->weights[i] = value_of(t->seed, 99, i);
    char name[16];
    snprintf(name, sizeof name, "layer %d", index);
    const tutti_exchange_spec spec = {.name = name,
                                      .priority = index,
                                      .count = count,
                                      .leaves = leaves_for(t),
                                      .partials = l->sum.partials,
                                      .update = update,
                                      .user = l,
                                      .whole = l->weights,
                                      .gated = index % 3 != 0,
                                      .common = room ? room->memory : NULL,
                                      .chunk_bytes = 16384};
    MUST(tutti_exchange_create(&l->x, t->comm, &spec));
}

static void layer_deinit(layer *l)
{
    tutti_exchange_destroy(&l->x);
    sum_case_deinit(&l->sum);
    if (!l->borrows) tutti_free(l->weights);
    tutti_free(l->want);
}

static void layer_submit(layer *l)
{
    for (int r = 0; r < l->sum.roots; r++)
        memcpy(l->sum.partials[r], l->sum.original[r], l->sum.count * sizeof(float));
    l->updated = 0;
    tutti_exchange_start(l->x);
}

static void layer_check(tester *t, layer *l)
{
    size_t begin, end;
    MUST(tutti_exchange_wait(l->x));
    CHECK(tutti_exchange_is_done(l->x), "not done after waiting");
    for (size_t i = 0; i < l->sum.count; i++) l->want[i] = l->want[i] * 0.5f + l->sum.want[i];
    check_whole(t, "weights", l->weights, l->want, l->sum.count);
    tutti_exchange_strip(l->x, &begin, &end);
    CHECK(l->updated == end - begin, "updated %zu of %zu", l->updated, end - begin);
}

/* Backward submits the last layer first and opens each gate a little later, when the old weights
 * are no longer needed; until then they must not change. */
static void one_step(tester *t, layer *layers)
{
    for (int i = LAYERS - 1; i >= 0; i--) {
        layer_submit(&layers[i]);
        delay(t);
        if (i % 3)
            check_whole(t, "gated weights", layers[i].weights, layers[i].want, layers[i].sum.count);
        tutti_exchange_open_gate(layers[i].x);
    }
    for (int i = 0; i < LAYERS; i++) layer_check(t, &layers[i]);
}

static void chains(tester *t, common_room *room)
{
    layer layers[LAYERS];
    for (int i = 0; i < LAYERS; i++) layer_init(t, &layers[i], i, room);
    MUST(tutti_comm_barrier(t->comm)); /* in common memory a rank may begin with all of it */
    for (int step = 0; step < 10; step++) one_step(t, layers);
    const tutti_exchange_stats stats = tutti_exchange_statistics(layers[1].x);
    CHECK(stats.runs == 10, "%d runs counted", (int)stats.runs);
    CHECK(stats.submitted <= stats.begun && stats.begun <= stats.reduced &&
              stats.reduced <= stats.done,
          "times out of order");
    if (t->size == 2 || t->size == 4) /* (N-1)/N of the buffer out and in, twice per step */
        CHECK(stats.bytes_sent <=
                  10 * 2 * 4 * (70001 + 64) * (size_t)(t->size - 1) / (size_t)t->size,
              "sent %llu bytes", (unsigned long long)stats.bytes_sent);
    for (int i = 0; i < LAYERS; i++) layer_deinit(&layers[i]);
}

/* A sum without an update: into the one whole, and into each rank's first partial. */
static void sums_in_common(tester *t, common_room *room, size_t count)
{
    sum_case c;
    sum_case_init(t, &c, NULL, leaves_for(t), count);
    move_partials(&c, room);
    for (int has_whole = 0; has_whole < 2; has_whole++) {
        float *const whole = has_whole ? take(&room->whole, count) : NULL;
        tutti_exchange *x = NULL;
        const tutti_exchange_spec spec = {.name = "in common",
                                          .count = count,
                                          .leaves = leaves_for(t),
                                          .partials = c.partials,
                                          .whole = whole,
                                          .common = room->memory};
        MUST(tutti_exchange_create(&x, t->comm, &spec));
        for (int run = 0; run < 2; run++) {
            for (int i = 0; i < c.roots; i++)
                memcpy(c.partials[i], c.original[i], count * sizeof(float));
            delay(t);
            MUST(tutti_exchange_run(x));
            size_t begin = 0, end = count;
            if (!whole) tutti_exchange_strip(x, &begin, &end);
            check_whole(t, "in common", (whole ? whole : c.partials[0]) + begin, c.want + begin,
                        end - begin);
        }
        tutti_exchange_destroy(&x);
    }
    sum_case_deinit(&c);
}

/* All ranks of one host and one NUMA node that see each other, each with a thread. */
static bool can_share(tester *t, const tutti_comm_options *options)
{
    tutti_topology *topology = NULL;
    MUST(tutti_topology_open(&topology));
    const bool is_one_node = tutti_topology_numa_nodes(topology) <= 1;
    tutti_topology_close(&topology);
    return t->size > 1 && tutti_comm_local_size(t->comm) == t->size && is_one_node &&
           !options->no_thread && !getenv("TUTTI_TEST_APART");
}

static void in_common_memory(tester *t, const tutti_comm_options *options)
{
    common_room room = {.memory = NULL};
    const size_t whole = 4 << 20, own = (size_t)(1 + t->rank % 3) * (8 << 20);
    MUST(tutti_common_create(&room.memory, t->comm, whole, own));
    CHECK((room.memory != NULL) == can_share(t, options), "common memory: %s",
          room.memory ? "unexpected" : "none");
    if (!room.memory) return;
    room.whole = tutti_common_whole(room.memory);
    room.own = tutti_common_own(room.memory);
    for (size_t i = 0; i < own / sizeof(float); i++)
        CHECK(room.own[i] == 0.0f, "own memory is not zero");
    chains(t, &room);
    static const size_t sizes[] = {0, 1, 17, 1000, 70001};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) sums_in_common(t, &room, sizes[i]);
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
            t->comm, me ? tutti_fail(TUTTI_IO, "cannot open '%d.bin'", bad) : TUTTI_OK);
        CHECK(s == (me ? TUTTI_IO : TUTTI_PEER), "status %d", (int)s);
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
