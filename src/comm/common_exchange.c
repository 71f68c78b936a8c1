/* Exchanges in common memory.
 *
 * Where all ranks see the memory that holds partial sums and parameters, nothing needs to be
 * sent. A rank says that its partials are complete (started) and that it has read the old
 * parameters (released). When all have said both, each adds up its strip, straight from the
 * partials of all and in the order of the tree, and updates its strip of the one copy of the
 * parameters, block by block in the cache; then it says so (updated). When all have, the exchange
 * is done: the parameters are the new ones, and the partials may be overwritten.
 *
 * The compute thread does all of that, with its team, whenever it starts an exchange, opens a gate
 * or waits: as soon as it gets there and the others have come that far. A thread beside it could
 * not do it sooner on the same cores, and would take them in the middle of a kernel.
 *
 * No two ranks wait for each other. Ranks run the same program. Of those that wait, take one at the
 * earliest place in it, and the exchange it waits for: each of the others has been through its own
 * wait for it, so its strip is new; or waits for it, too, and updates its strip when the last has
 * released it; or still computes, and will come. */
#include <stdio.h>
#include <string.h>

#include "base/cpu.h"
#include "comm/common.h"
#include "kernel/ops.h"
#include "kernel/work.h"

enum { BLOCK = 16384 }; /* floats to add, then update while they are in the cache */

#define LONGEST_SLEEP 0.1 /* seconds: a failure of communication rings no bell of ours */

/* --- creating --- */

static const float *root_place(const tutti_exchange *x, const tutti_root *root)
{
    const size_t at = x->standing[x->rank[root->member]].partial_at[root->index];
    return (const float *)(const void *)(x->common->base + at);
}

static tutti_status take_standing(tutti_exchange *x)
{
    tutti_common *const c = x->common;
    if (c->exchanges == TUTTI_COMMON_EXCHANGES)
        return tutti_fail(TUTTI_ARGUMENT, "%s: more than %d exchanges in common memory", x->name,
                          TUTTI_COMMON_EXCHANGES);
    x->standing = c->standings + c->exchanges * c->comm->size;
    snprintf(c->names[c->exchanges], sizeof *c->names, "%s", x->name);
    x->lasting_name = c->names[c->exchanges++];
    tutti_standing *const mine = &x->standing[c->comm->rank];
    for (int i = 0; i < x->my_roots; i++)
        mine->partial_at[i] = (size_t)((char *)x->partials[i] - c->base);
    return TUTTI_OK;
}

/* At most as many sums are open at a time as the tree's stack is deep; two roots need none. */
static tutti_status take_sums(tutti_exchange *x)
{
    const int height = tutti_tree_height(x->leaves) + 1;
    x->depth = x->root_count <= 2 ? 0 : height < x->root_count ? height : x->root_count;
    const int sums = x->depth * tutti_team_size(x->team);
    TUTTI_TRY(tutti_alloc(&x->sums, (size_t)sums * BLOCK, sizeof *x->sums));
    return tutti_alloc(&x->root_at, (size_t)x->root_count, sizeof *x->root_at);
}

tutti_status tutti_common_join(tutti_exchange *x, const tutti_exchange_spec *spec)
{
    x->common = spec->common;
    x->team = spec->team;
    TUTTI_TRY(take_sums(x));
    return take_standing(x);
}

/* --- what has been said --- */

static bool has_come(const atomic_uint *word, unsigned run)
{
    return (int)(atomic_load_explicit(word, memory_order_acquire) - run) >= 0;
}

static bool is_ready(const tutti_exchange *x)
{
    for (int m = 0; m < x->members; m++) {
        const tutti_standing *const s = &x->standing[x->rank[m]];
        if (!has_come(&s->started, x->started) || !has_come(&s->released, x->started)) return false;
    }
    return true;
}

bool tutti_common_is_done(const tutti_exchange *x)
{
    for (int m = 0; m < x->members; m++)
        if (!has_come(&x->standing[x->rank[m]].updated, x->started)) return false;
    return true;
}

static void say(tutti_exchange *x, atomic_uint *word)
{
    atomic_store_explicit(word, x->started, memory_order_release);
    for (int m = 0; m < x->members; m++)
        if (m != x->me) tutti_bell_ring(&x->common->bell[x->rank[m]]);
}

static tutti_standing *my_standing(const tutti_exchange *x)
{
    return &x->standing[x->comm->rank];
}

/* --- the sum and the update --- */

/* Adds up floats begin .. begin+count-1, except for the last addition: the total is a + b, or just
 * a if b is NULL. */
static void sum_block(const tutti_exchange *x, size_t begin, size_t count, float *sums,
                      const float **a, const float **b)
{
    tutti_tree_stack stack;
    const float *place[TUTTI_TREE_MAX_ROOTS];
    tutti_tree_stack_init(&stack, x->leaves);
    *b = NULL;
    for (int i = 0; i < x->root_count; i++) {
        place[tutti_tree_push(&stack, x->roots[i].node)] = x->root_at[i] + begin;
        while (tutti_tree_join(&stack)) {
            const int at = stack.depth - 1;
            float *const sum = sums + at * BLOCK;
            if (at == 0 && i == x->root_count - 1) {
                *b = place[1];
                break;
            }
            tutti_add((tutti_exec){x->comm->engine.kernels, NULL}, count, place[at], place[at + 1],
                      false, sum);
            place[at] = sum;
        }
    }
    *a = place[0];
}

static void update_block(tutti_exchange *x, size_t begin, size_t end, float *sums)
{
    const float *a, *b;
    sum_block(x, begin, end - begin, sums, &a, &b);
    float *const to = (x->whole ? (float *)(void *)x->whole : x->partials[0]) + begin;
    if (x->update) x->update(x->user, a, b, begin, end);
    else if (b)
        tutti_add((tutti_exec){x->comm->engine.kernels, NULL}, end - begin, a, b, false, to);
    else if (to != a) memcpy(to, a, (end - begin) * sizeof *to);
}

static void update_share(void *arg, int thread, int threads)
{
    tutti_exchange *const x = arg;
    const size_t first = x->cuts[x->me], stop = x->cuts[x->me + 1];
    const size_t units = (stop - first + TUTTI_STRIP_UNIT - 1) / TUTTI_STRIP_UNIT;
    const tutti_range mine = tutti_range_of(units, threads, thread);
    const size_t end = first + mine.end * TUTTI_STRIP_UNIT;
    const size_t block = x->depth ? BLOCK : end - first;
    float *const sums = x->sums + (size_t)(thread * x->depth) * BLOCK;
    for (size_t at = first + mine.begin * TUTTI_STRIP_UNIT, next; at < end && at < stop;
         at = next) {
        next = at + block < end ? at + block : end;
        update_block(x, at, next < stop ? next : stop, sums);
    }
}

static void finish(tutti_exchange *x)
{
    const size_t own = x->cuts[x->me + 1] - x->cuts[x->me];
    x->stats.begun = tutti_engine_now(&x->comm->engine);
    for (int i = 0; i < x->root_count; i++) x->root_at[i] = root_place(x, &x->roots[i]);
    if (x->reduce && own) tutti_team_run(tutti_team_for(x->team, own), update_share, x);
    x->stats.reduced = x->stats.done = tutti_engine_now(&x->comm->engine);
    x->stats.total_busy += x->stats.done - x->stats.begun;
    x->common->busy += x->stats.done - x->stats.begun;
    x->stats.runs++;
    x->stats.bytes_sent += (uint64_t)x->my_roots * (x->cuts[x->members] - own) * sizeof(float);
    x->stats.bytes_received += (uint64_t)(x->root_count - x->my_roots) * own * sizeof(float);
    say(x, &my_standing(x)->updated);
}

/* Updates whatever is ready. Returns whether anything was. */
static bool go_on(tutti_common *c)
{
    bool moved = false;
    for (tutti_exchange **at = &c->begun; *at;) {
        tutti_exchange *const x = *at;
        if (is_ready(x)) {
            *at = x->next;
            finish(x);
            moved = true;
        } else {
            at = &x->next;
        }
    }
    return moved;
}

/* --- running --- */

static void note(tutti_doing *doing, const tutti_exchange *x)
{
    atomic_store(&doing->run, x->started);
    atomic_store(&doing->since, tutti_engine_now(&x->comm->engine));
    atomic_store(&doing->name, x->lasting_name);
}

void tutti_common_start(tutti_exchange *x)
{
    tutti_exchange **end = &x->common->begun;
    while (*end) end = &(*end)->next;
    *end = x;
    x->next = NULL;
    note(&x->comm->begun_last, x);
    if (!x->gated)
        atomic_store_explicit(&my_standing(x)->released, x->started, memory_order_release);
    say(x, &my_standing(x)->started);
    go_on(x->common);
}

void tutti_common_open_gate(tutti_exchange *x)
{
    say(x, &my_standing(x)->released);
    go_on(x->common);
}

/* Time spent updating does not count as waiting. */
tutti_status tutti_common_await(tutti_exchange *x)
{
    tutti_common *const c = x->common;
    tutti_engine *const e = &c->comm->engine;
    tutti_bell *const bell = &c->bell[c->comm->rank];
    const double begin = tutti_engine_now(e) - c->busy;
    note(&c->comm->waits_at, x);
    for (int look = 0;; look++) {
        const uint32_t ticket = tutti_bell_look(bell);
        if (go_on(c)) look = 0;
        if (tutti_common_is_done(x) || atomic_load(&e->failed)) break;
        if (look < c->looks) tutti_relax();
        else tutti_bell_sleep(bell, ticket, LONGEST_SLEEP);
    }
    atomic_store(&c->comm->waits_at.name, NULL);
    if (!tutti_common_is_done(x)) return tutti_fail(e->failure, "%s", e->sentence);
    const double waited = tutti_engine_now(e) - c->busy - begin;
    x->stats.waited += waited;
    x->stats.total_waited += waited;
    return TUTTI_OK;
}
