#include "comm/common.h"

#include <stdio.h>
#include <string.h>

#include "base/memory.h"

enum {
    CHUNK_BYTES = 1 << 20,      /* of the whole buffer, ... */
    HOST_CHUNK_BYTES = 2 << 20, /* ... and within one host beside computing */
    LEAST_PIECE = 64 << 10,     /* bytes: below, messages cost more than bytes */
    LARGEST_PIECE = 64 << 20,   /* keeps a message's length in an int */
    SMALL_BYTES = 32 << 10,     /* up to here messages cost more than bytes */
    SMALL_MEMBERS = 4,          /* from here on rounds are fewer than peers */
    MANY_MEMBERS = 64,          /* from here on posting a message to each takes long */
    THIN_STRIP = 12 << 10,      /* what a fast wire carries while a message is posted and taken */
    THICK_STRIP = 1 << 20,      /* so long that posting a message hardly matters */
    HELPER_PRIORITY = -1000000  /* agreements overtake everything */
};

/* --- creating --- */

static tutti_status take_id(tutti_comm *comm, int *id)
{
    for (*id = 0; *id < TUTTI_MAX_EXCHANGES; ++*id)
        if (!comm->id_used[*id]) {
            comm->id_used[*id] = 1;
            return TUTTI_OK;
        }
    return tutti_fail(TUTTI_ARGUMENT, "more than %d exchanges at a time", TUTTI_MAX_EXCHANGES);
}

static tutti_status copy_sizes(size_t **out, const size_t *from, int count)
{
    TUTTI_TRY(tutti_alloc(out, (size_t)count, sizeof **out));
    memcpy(*out, from, (size_t)count * sizeof **out);
    return TUTTI_OK;
}

static tutti_status create_blank(tutti_exchange **out, tutti_comm *comm, const char *name,
                                 int priority, const tutti_group *group)
{
    tutti_exchange *x = NULL;
    if (!group) group = comm->all;
    TUTTI_TRY(tutti_alloc(&x, 1, sizeof *x));
    x->comm = comm;
    x->id = -1;
    x->priority = priority;
    x->me = group->rank;
    x->members = group->size;
    x->width = sizeof(float);
    tutti_status s;
    if ((s = tutti_alloc(&x->rank, (size_t)x->members, sizeof *x->rank))) goto out;
    memcpy(x->rank, group->members, (size_t)x->members * sizeof *x->rank);
    if ((s = tutti_strdup(&x->name, name ? name : "exchange"))) goto out;
    s = take_id(comm, &x->id);
out:
    if (s != TUTTI_OK) tutti_exchange_destroy(&x);
    *out = x;
    return s;
}

static tutti_status cut_evenly(tutti_exchange *x, size_t count)
{
    TUTTI_TRY(tutti_alloc(&x->cuts, (size_t)x->members + 1, sizeof *x->cuts));
    const size_t units = (count + TUTTI_STRIP_UNIT - 1) / TUTTI_STRIP_UNIT;
    const size_t each = units / (size_t)x->members, extra = units % (size_t)x->members;
    for (int m = 0; m <= x->members; m++) {
        const size_t before = (size_t)m * each + ((size_t)m < extra ? (size_t)m : extra);
        const size_t cut = before * TUTTI_STRIP_UNIT;
        x->cuts[m] = cut < count ? cut : count;
    }
    return TUTTI_OK;
}

static size_t longest(const size_t *cuts, int members)
{
    size_t most = 0;
    for (int m = 0; m < members; m++)
        if (cuts[m + 1] - cuts[m] > most) most = cuts[m + 1] - cuts[m];
    return most;
}

static size_t asked_chunk(const tutti_exchange *x)
{
    return x->chunk_bytes ? x->chunk_bytes : x->comm->options.chunk_bytes;
}

static bool is_on_one_host(const tutti_exchange *x)
{
    const tutti_peer *peers = x->comm->peers;
    for (int m = 0; m < x->members; m++)
        if (strcmp(peers[x->rank[m]].host, peers[x->comm->rank].host) != 0) return false;
    return true;
}

/* Short chunks keep a wire busy and stay in cache. But within a host there is no wire, and every
 * message takes the core away from computing: there, fewer and longer ones are better. */
static size_t tuned_chunk(const tutti_exchange *x)
{
    return x->gated && is_on_one_host(x) ? HOST_CHUNK_BYTES : CHUNK_BYTES;
}

static size_t piece_elements(const tutti_exchange *x)
{
    const size_t asked = asked_chunk(x);
    size_t bytes = (asked ? asked : tuned_chunk(x)) / (size_t)x->members;
    if (!asked && bytes < LEAST_PIECE) bytes = LEAST_PIECE;
    if (bytes > LARGEST_PIECE) bytes = LARGEST_PIECE;
    return tutti_round_up(bytes / x->width ? bytes / x->width : 1, TUTTI_STRIP_UNIT);
}

/* Close to 'piece', but such that all are of one size: a small rest would cost as many messages. */
static size_t even_piece(const tutti_exchange *x, size_t most, size_t piece)
{
    const size_t chunks = (most + (asked_chunk(x) ? piece - 1 : piece / 2)) / piece;
    return chunks ? tutti_round_up((most + chunks - 1) / chunks, TUTTI_STRIP_UNIT) : most + !most;
}

static bool is_one_chunk(const tutti_exchange *x)
{
    return (x->reduce && x->reduce->one_chunk) || (x->broadcast && x->broadcast->one_chunk);
}

/* Pieces depend only on what all members know: not on the parts of an all-to-all. */
static tutti_status cut_chunks(tutti_exchange *x)
{
    size_t most = longest(x->cuts, x->members);
    x->piece = piece_elements(x);
    if (is_one_chunk(x)) {
        x->piece = most + !most;
    } else if (!x->send) {
        x->piece = even_piece(x, most, x->piece);
    } else {
        const size_t going = longest(x->send_cuts, x->members);
        if (going > most) most = going;
    }
    x->chunks = (int)((most + x->piece - 1) / x->piece);
    return tutti_alloc(&x->summed, (size_t)x->chunks + 1, sizeof *x->summed);
}

int tutti_exchange_roots(int leaves, int members, int member)
{
    tutti_subtree roots[TUTTI_TREE_MAX_ROOTS];
    return tutti_tree_roots(roots, leaves, tutti_share_begin(leaves, members, member),
                            tutti_share_begin(leaves, members, member + 1));
}

/* Lists the roots of all members in tree order. */
static tutti_status list_roots(tutti_exchange *x)
{
    for (int m = 0; m < x->members; m++) {
        const int count = tutti_exchange_roots(x->leaves, x->members, m);
        x->root_count += count;
        if (count > x->max_roots) x->max_roots = count;
        if (m == x->me) x->my_roots = count;
    }
    TUTTI_TRY(tutti_alloc(&x->roots, (size_t)x->root_count, sizeof *x->roots));
    TUTTI_TRY(tutti_alloc(&x->first_root, (size_t)x->members + 1, sizeof *x->first_root));
    tutti_root *at = x->roots;
    for (int m = 0; m < x->members; m++) {
        tutti_subtree nodes[TUTTI_TREE_MAX_ROOTS];
        const int count =
            tutti_tree_roots(nodes, x->leaves, tutti_share_begin(x->leaves, x->members, m),
                             tutti_share_begin(x->leaves, x->members, m + 1));
        for (int i = 0; i < count; i++) *at++ = (tutti_root){nodes[i], m, i};
        x->first_root[m + 1] = (int)(at - x->roots);
    }
    return TUTTI_OK;
}

static tutti_status plan_reduce(tutti_exchange *x, const tutti_exchange_spec *spec)
{
    if (spec->leaves < x->members)
        return tutti_fail(TUTTI_ARGUMENT,
                          "%s: %d leaves of the sum for %d ranks: use fewer ranks "
                          "or more grains (--grains)",
                          x->name, spec->leaves, x->members);
    x->leaves = spec->leaves;
    TUTTI_TRY(list_roots(x));
    TUTTI_TRY(tutti_alloc(&x->partials, (size_t)x->my_roots, sizeof *x->partials));
    memcpy(x->partials, spec->partials, (size_t)x->my_roots * sizeof *x->partials);
    return tutti_algorithm_choose(&x->reduce, tutti_reduce_algorithms, spec->reduce_by, x);
}

bool tutti_exchange_is_small(const tutti_exchange *x)
{
    return x->members >= SMALL_MEMBERS && x->cuts[x->members] * x->width <= SMALL_BYTES;
}

bool tutti_exchange_is_thin(const tutti_exchange *x)
{
    const size_t members = (size_t)x->members;
    const bool is_thin =
        members >= MANY_MEMBERS && x->cuts[members] * x->width <= members * THIN_STRIP;
    return is_thin || tutti_exchange_is_small(x);
}

bool tutti_exchange_is_wide(const tutti_exchange *x)
{
    const size_t members = (size_t)x->members;
    return members >= MANY_MEMBERS && x->cuts[members] * x->width <= members * THICK_STRIP &&
           !tutti_exchange_is_small(x);
}

tutti_status tutti_algorithm_choose(const tutti_algorithm **out, const tutti_algorithm *table,
                                    const char *name, const tutti_exchange *x)
{
    const tutti_algorithm *best = NULL;
    for (const tutti_algorithm *row = table; row->name; row++) {
        if (row->applies && !row->applies(x)) continue;
        if (name ? strcmp(row->name, name) == 0 : !row->is_better || row->is_better(x)) best = row;
    }
    if (!best)
        return tutti_fail(
            TUTTI_ARGUMENT,
            "%s: no algorithm '%s' for %d ranks: halving needs a power of two of them "
            "and as many grains or 2, 4, 8, ... times as many, doubling needs halving",
            x->name, name ? name : "any", x->members);
    *out = best;
    return TUTTI_OK;
}

static tutti_status check_name(const char *option, const tutti_algorithm *table, const char *name)
{
    char known[128] = "";
    for (const tutti_algorithm *row = table; name && row->name; row++) {
        if (!strcmp(row->name, name)) return TUTTI_OK;
        snprintf(known + strlen(known), sizeof known - strlen(known), "%s%s", *known ? ", " : "",
                 row->name);
    }
    if (!name) return TUTTI_OK;
    return tutti_fail(TUTTI_ARGUMENT, "%s: there is no algorithm '%s'; known: %s", option, name,
                      known);
}

tutti_status tutti_exchange_check_names(const char *reduce_by, const char *broadcast_by)
{
    TUTTI_TRY(check_name("--part-reduce", tutti_reduce_algorithms, reduce_by));
    return check_name("--part-broadcast", tutti_broadcast_algorithms, broadcast_by);
}

/* Has the engine make room. */
static tutti_status prepare(tutti_exchange *x)
{
    tutti_comm_submit(x->comm, TUTTI_COMMAND_PREPARE, x);
    TUTTI_TRY(tutti_comm_await(x->comm, &x->prepared, 1));
    return x->prepare_status == TUTTI_OK
               ? TUTTI_OK
               : tutti_fail(x->prepare_status, "%s: no memory for its inboxes", x->name);
}

static tutti_status give(tutti_exchange **out, tutti_exchange *x, tutti_status s)
{
    if (s != TUTTI_OK) tutti_exchange_destroy(&x);
    if (x) *out = x;
    return s;
}

static tutti_status fill_chain(tutti_exchange *x, const tutti_exchange_spec *spec)
{
    x->update = spec->update;
    x->user = spec->user;
    x->whole = (char *)spec->whole;
    x->gated = spec->gated;
    x->exclusive = spec->exclusive;
    x->chunk_bytes = spec->chunk_bytes;
    TUTTI_TRY(spec->cuts ? copy_sizes(&x->cuts, spec->cuts, x->members + 1)
                         : cut_evenly(x, spec->count));
    if (spec->leaves) TUTTI_TRY(plan_reduce(x, spec));
    if (spec->common) return tutti_common_join(x, spec);
    if (spec->whole)
        TUTTI_TRY(tutti_algorithm_choose(&x->broadcast, tutti_broadcast_algorithms,
                                         spec->broadcast_by, x));
    TUTTI_TRY(cut_chunks(x));
    return prepare(x);
}

tutti_status tutti_exchange_create(tutti_exchange **out, tutti_comm *comm,
                                   const tutti_exchange_spec *spec)
{
    tutti_exchange *x = NULL;
    TUTTI_TRY(create_blank(&x, comm, spec->name, spec->priority, spec->group));
    return give(out, x, fill_chain(x, spec));
}

static tutti_status fill_alltoall(tutti_exchange *x, const tutti_alltoall_spec *spec)
{
    x->send = (const char *)spec->send;
    x->exclusive = spec->exclusive;
    x->whole = (char *)spec->receive;
    TUTTI_TRY(copy_sizes(&x->cuts, spec->receive_cuts, x->members + 1));
    TUTTI_TRY(copy_sizes(&x->send_cuts, spec->send_cuts, x->members + 1));
    TUTTI_TRY(cut_chunks(x));
    TUTTI_TRY(tutti_algorithm_choose(&x->broadcast, tutti_alltoall_algorithms, NULL, x));
    return prepare(x);
}

tutti_status tutti_exchange_create_alltoall(tutti_exchange **out, tutti_comm *comm,
                                            const tutti_alltoall_spec *spec)
{
    tutti_exchange *x = NULL;
    TUTTI_TRY(create_blank(&x, comm, spec->name, spec->priority, spec->group));
    return give(out, x, fill_alltoall(x, spec));
}

static tutti_status fill_bytes(tutti_exchange *x, const size_t *cuts, void *whole)
{
    x->width = 1;
    x->exclusive = true;
    x->whole = whole;
    TUTTI_TRY(copy_sizes(&x->cuts, cuts, x->members + 1));
    TUTTI_TRY(tutti_algorithm_choose(&x->broadcast, tutti_broadcast_algorithms, NULL, x));
    TUTTI_TRY(cut_chunks(x));
    return prepare(x);
}

tutti_status tutti_exchange_create_bytes(tutti_exchange **out, tutti_comm *comm, const char *name,
                                         const tutti_group *group, const size_t *cuts, void *whole)
{
    tutti_exchange *x = NULL;
    TUTTI_TRY(create_blank(&x, comm, name, HELPER_PRIORITY, group));
    return give(out, x, fill_bytes(x, cuts, whole));
}

void tutti_exchange_destroy(tutti_exchange **exchange)
{
    tutti_exchange *x = *exchange;
    if (!x) return;
    TUTTI_ASSERT(tutti_exchange_is_done(x) || atomic_load(&x->comm->engine.failed));
    if (x->id >= 0) x->comm->id_used[x->id] = 0;
    tutti_free(x->name);
    tutti_free(x->rank);
    tutti_free(x->cuts);
    tutti_free(x->send_cuts);
    tutti_free(x->partials);
    tutti_free(x->roots);
    tutti_free(x->first_root);
    tutti_free(x->summed);
    tutti_free(x->root_at);
    tutti_free(x->sums);
    tutti_free(x);
    *exchange = NULL;
}

/* --- running --- */

void tutti_exchange_strip(const tutti_exchange *x, size_t *begin, size_t *end)
{
    *begin = x->cuts[x->me];
    *end = x->cuts[x->me + 1];
}

bool tutti_exchange_is_done(const tutti_exchange *x)
{
    if (x->common) return tutti_common_is_done(x);
    return atomic_load_explicit(&x->done, memory_order_acquire) == x->started;
}

void tutti_exchange_start(tutti_exchange *x)
{
    TUTTI_ASSERT(tutti_exchange_is_done(x) || atomic_load(&x->comm->engine.failed));
    x->stats.submitted = tutti_engine_now(&x->comm->engine);
    x->stats.waited = 0;
    x->gate_asked = false;
    x->started++;
    if (x->common) tutti_common_start(x);
    else tutti_comm_submit(x->comm, TUTTI_COMMAND_START, x);
}

void tutti_exchange_open_gate(tutti_exchange *x)
{
    if (!x->gated || x->gate_asked) return;
    x->gate_asked = true;
    if (x->common) tutti_common_open_gate(x);
    else tutti_comm_submit(x->comm, TUTTI_COMMAND_GATE, x);
}

tutti_status tutti_exchange_wait(tutti_exchange *x)
{
    const bool is_done = tutti_exchange_is_done(x);
    TUTTI_ASSERT(is_done || !x->gated || x->gate_asked); /* nobody else could open it */
    if (x->common && x->started) return tutti_common_await(x);
    if (is_done) return TUTTI_OK;
    const double begin = tutti_engine_now(&x->comm->engine);
    atomic_store(&x->comm->engine.awaited, x);
    const tutti_status s = tutti_comm_await(x->comm, &x->done, x->started);
    atomic_store(&x->comm->engine.awaited, NULL);
    TUTTI_TRY(s);
    const double waited = tutti_engine_now(&x->comm->engine) - begin;
    x->stats.waited += waited;
    x->stats.total_waited += waited;
    return TUTTI_OK;
}

tutti_status tutti_exchange_run(tutti_exchange *x)
{
    tutti_exchange_start(x);
    return tutti_exchange_wait(x);
}

tutti_exchange_stats tutti_exchange_statistics(const tutti_exchange *x)
{
    return x->stats;
}
