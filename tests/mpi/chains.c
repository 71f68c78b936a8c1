/* A step's worth of chains: exchanges with gates that overtake each other, by messages and in
 * common memory. */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/topology.h"
#include "sums.h"

enum { LAYERS = 12 };

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

void chains(tester *t, common_room *room)
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

void in_common_memory(tester *t, const tutti_comm_options *options)
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
