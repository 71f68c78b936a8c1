/* Part-reduce.
 *
 * direct    one message per pair of members (and root), see in_flight.c. The owner of a strip adds
 *           a root as soon as all roots before it in the tree are there, whatever arrives first.
 * halving   log2(N) rounds and a swap for N = 2^k members with one root each, see halving.c.
 * bruck     ceil(log2(N)) rounds for any N and any number of roots: Bruck's all-to-all carries the
 *           roots themselves in blocks of one size, the owner adds at the end. More bytes, few
 *           messages: for small buffers where halving does not apply.
 *
 * Bytes out of a member for a buffer of B: direct (N-1)/N B times its roots, halving B,
 * bruck about log2(N)/2 B times the largest number of roots. */
#include <string.h>

#include "comm/engine.h"

static tutti_range piece_of(const tutti_slot *s, int member)
{
    return tutti_chunk_of(s->x->cuts, s->x->piece, member, s->chunk);
}

/* --- the sum in tree order --- */

static float *root_place(const tutti_slot *s, int root,
                         float *(*arrived_at)(const tutti_slot *, int))
{
    const tutti_exchange *x = s->x;
    const tutti_root *r = &x->roots[root];
    if (r->member == x->me) return x->partials[r->index] + piece_of(s, x->me).begin;
    return arrived_at(s, root);
}

static void begin_sum(tutti_slot *s)
{
    const tutti_exchange *x = s->x;
    for (int i = 0; i < x->root_count; i++) s->here[i] = x->roots[i].member == x->me;
    s->next_root = 0;
    tutti_tree_stack_init(&s->stack, x->leaves);
}

/* Adds the roots that are there, as far as the order allows. The last addition of all puts the
 * sum where the exchange promises it: in the first partial buffer. */
static void go_on_adding(tutti_engine *e, tutti_slot *s,
                         float *(*arrived_at)(const tutti_slot *, int))
{
    const tutti_exchange *x = s->x;
    const tutti_range own = piece_of(s, x->me);
    const size_t count = tutti_range_length(own);
    if (!count) return;
    while (s->next_root < x->root_count && s->here[s->next_root]) {
        const int root = s->next_root++;
        s->place[tutti_tree_push(&s->stack, x->roots[root].node)] = root_place(s, root, arrived_at);
        while (tutti_tree_join(&s->stack)) {
            float *const left = s->place[s->stack.depth - 1];
            const bool is_last = s->stack.depth == 1 && s->next_root == x->root_count;
            float *const sum = is_last ? x->partials[0] + own.begin : left;
            tutti_engine_add(e, sum, left, s->place[s->stack.depth], count);
            s->place[s->stack.depth - 1] = sum;
        }
    }
}

/* --- direct --- */

static size_t direct_inbox(const tutti_exchange *x)
{
    return (size_t)(x->root_count - x->my_roots) * x->piece * sizeof(float);
}

/* Roots of other members are in the inbox in tree order; mine are a run in the middle. */
static float *direct_place(const tutti_slot *s, int root)
{
    const tutti_exchange *x = s->x;
    const int index = x->roots[root].member > x->me ? root - x->my_roots : root;
    return (float *)(void *)s->inbox + (size_t)index * x->piece;
}

static void direct_receive(tutti_engine *e, tutti_slot *s, int item)
{
    const tutti_exchange *x = s->x;
    const int from = tutti_peer_below(x, item);
    const size_t mine = tutti_range_length(piece_of(s, x->me)) * sizeof(float);
    const int first = x->first_root[from], end = x->first_root[from + 1];
    for (int i = first; i < end; i++) tutti_slot_receive(e, s, direct_place(s, i), mine, from, i);
}

static void direct_send(tutti_engine *e, tutti_slot *s, int item)
{
    const tutti_exchange *x = s->x;
    const int to = tutti_peer_above(x, item);
    const tutti_range theirs = piece_of(s, to);
    for (int i = 0; i < x->my_roots; i++)
        tutti_slot_send(e, s, x->partials[i] + theirs.begin,
                        tutti_range_length(theirs) * sizeof(float), to);
}

static void direct_begin(tutti_engine *e, tutti_slot *s)
{
    begin_sum(s);
    tutti_in_flight_peers(e, s);
    go_on_adding(e, s, direct_place);
}

static void direct_arrived(tutti_engine *e, tutti_slot *s, int message)
{
    s->here[message] = true;
    go_on_adding(e, s, direct_place);
}

/* --- halving --- */

static bool is_power_of_two(int n)
{
    return n > 0 && (n & (n - 1)) == 0;
}

/* The tree above the members' roots must be the tree over the members: every share is one subtree,
 * and all are of the same height. */
static bool halving_applies(const tutti_exchange *x)
{
    return tutti_halving_apply(x) && x->leaves % x->members == 0 &&
           is_power_of_two(x->leaves / x->members);
}

static bool halving_is_better(const tutti_exchange *x)
{
    return tutti_exchange_is_small(x) || tutti_exchange_is_wide(x);
}

/* --- bruck --- */

/* Blocks are all of one size, so that a block can be carried by members that do not know how many
 * roots are in it. Block j of member m starts as "for m+j" and ends as "from m-j". */
static size_t bruck_block(const tutti_exchange *x)
{
    return (size_t)x->max_roots * x->piece;
}

static size_t bruck_inbox(const tutti_exchange *x)
{
    return (size_t)(2 * x->members + 2) * bruck_block(x) * sizeof(float);
}

static float *bruck_at(const tutti_slot *s, int block)
{
    return (float *)(void *)s->inbox + (size_t)block * bruck_block(s->x);
}

static float *bruck_place(const tutti_slot *s, int root)
{
    const tutti_exchange *x = s->x;
    const int block = (x->me - x->roots[root].member + x->members) % x->members;
    return bruck_at(s, block) + (size_t)x->roots[root].index * x->piece;
}

static void bruck_post(tutti_engine *e, tutti_slot *s)
{
    const tutti_exchange *x = s->x;
    const int distance = 1 << s->round;
    const size_t bytes = bruck_block(x) * sizeof(float);
    int count = 0;
    for (int block = 0; block < x->members; block++)
        if (block & distance)
            tutti_engine_copy(e, bruck_at(s, x->members + count++), bruck_at(s, block), bytes);
    float *const out = bruck_at(s, x->members), *const in = bruck_at(s, x->members + count);
    tutti_slot_receive(e, s, in, (size_t)count * bytes,
                       (x->me - distance + x->members) % x->members, 0);
    tutti_slot_send(e, s, out, (size_t)count * bytes, (x->me + distance) % x->members);
}

static void bruck_unpack(tutti_engine *e, tutti_slot *s)
{
    const tutti_exchange *x = s->x;
    const int distance = 1 << s->round;
    int count = 0, at = 0;
    for (int block = 0; block < x->members; block++) count += (block & distance) != 0;
    for (int block = 0; block < x->members; block++)
        if (block & distance)
            tutti_engine_copy(e, bruck_at(s, block), bruck_at(s, x->members + count + at++),
                              bruck_block(x) * sizeof(float));
}

static void bruck_begin(tutti_engine *e, tutti_slot *s)
{
    const tutti_exchange *x = s->x;
    begin_sum(s);
    if (x->members == 1) return;
    for (int block = 1; block < x->members; block++) {
        const tutti_range p = piece_of(s, (x->me + block) % x->members);
        for (int i = 0; i < x->my_roots; i++)
            tutti_engine_copy(e, bruck_at(s, block) + (size_t)i * x->piece,
                              x->partials[i] + p.begin, tutti_range_length(p) * sizeof(float));
    }
    bruck_post(e, s);
}

static bool bruck_next(tutti_engine *e, tutti_slot *s)
{
    const tutti_exchange *x = s->x;
    if (x->members == 1) return false;
    bruck_unpack(e, s);
    if (2 << s->round < x->members) {
        s->round++;
        bruck_post(e, s);
        return true;
    }
    for (int i = 0; i < x->root_count; i++) s->here[i] = true;
    go_on_adding(e, s, bruck_place);
    return false;
}

// clang-format off
const tutti_algorithm tutti_reduce_algorithms[] = {
    {.name = "direct", .inbox = direct_inbox, .begin = direct_begin, .arrived = direct_arrived,
     .receive = direct_receive, .send = direct_send},
    {.name = "bruck", .is_better = tutti_exchange_is_small, .inbox = bruck_inbox,
     .begin = bruck_begin, .next_round = bruck_next},
    {.name = "halving", .one_chunk = true, .applies = halving_applies,
     .is_better = halving_is_better, .inbox = tutti_halving_inbox,
     .begin = tutti_halving_begin, .arrived = tutti_halving_arrived,
     .receive = tutti_halving_receive, .send = tutti_halving_send, .next_round = tutti_halving_next},
    {.name = NULL},
};
// clang-format on
