/* Part-broadcast and all-to-all: strips go where they belong, straight into place.
 *
 * direct     one message per pair, see window.c. Bytes out of a member: its strip to N-1 others,
 *            (N-1)/N of the buffer. The all-to-all is the same with other pieces.
 * bruck      ceil(log2(N)) rounds for any N (Bruck's allgather): in round r a member sends the 2^r
 *            strips from its own on, as far as they are not yet known, to the one 2^r below it.
 *            The same bytes in fewer messages, but most of them go far.
 * doubling   a swap and log2(N) rounds for N = 2^k members: part-reduce's halving backwards, see
 *            halves.c. Most bytes go to the neighbour. */
#include <string.h>

#include "comm/engine.h"

static tutti_piece piece_of(const tutti_slot *s, int member)
{
    return tutti_piece_of(s->x->cuts, s->x->piece, member, s->chunk);
}

static size_t no_inbox(const tutti_exchange *x)
{
    (void)x;
    return 0;
}

/* --- direct --- */

/* What this member has for another one: its own strip, or the part made for it. */
static void send_piece(tutti_engine *e, tutti_slot *s, int item)
{
    const tutti_exchange *x = s->x;
    const int to = tutti_peer_above(x, item);
    const tutti_piece p =
        x->send ? tutti_piece_of(x->send_cuts, x->piece, to, s->chunk) : piece_of(s, x->me);
    const char *from = x->send ? x->send : x->whole;
    tutti_slot_send(e, s, from + p.begin * x->width, tutti_piece_length(p) * x->width, to);
}

static void receive_piece(tutti_engine *e, tutti_slot *s, int item)
{
    const tutti_exchange *x = s->x;
    const int from = tutti_peer_below(x, item);
    const tutti_piece p = piece_of(s, from);
    tutti_slot_receive(e, s, x->whole + p.begin * x->width, tutti_piece_length(p) * x->width, from,
                       0);
}

static void alltoall_begin(tutti_engine *e, tutti_slot *s)
{
    const tutti_exchange *x = s->x;
    const tutti_piece from = tutti_piece_of(x->send_cuts, x->piece, x->me, s->chunk);
    const tutti_piece to = piece_of(s, x->me);
    tutti_window_peers(e, s);
    memcpy(x->whole + to.begin * x->width, x->send + from.begin * x->width,
           tutti_piece_length(from) * x->width);
}

/* --- doubling --- */

/* Round 0 swaps, then runs of strips grow: halving backwards. */
static void doubling_post(tutti_engine *e, tutti_slot *s)
{
    const tutti_exchange *x = s->x;
    const int left = tutti_halvings(x) - s->round, partner = x->me ^ (1 << left);
    const tutti_run going = tutti_half(x, x->me, left + 1);
    const tutti_run coming = tutti_half(x, partner, left + 1);
    const char *out = tutti_run_pack(e, s, x->whole, going, tutti_halves_outbox(s));
    tutti_slot_receive(e, s, tutti_run_place(s, x->whole, coming, s->inbox),
                       tutti_run_bytes(s, coming), partner, 0);
    tutti_slot_send(e, s, out, tutti_run_bytes(s, going), partner);
}

static void doubling_unpack(tutti_engine *e, const tutti_slot *s)
{
    const tutti_exchange *x = s->x;
    const int left = tutti_halvings(x) - s->round, partner = x->me ^ (1 << left);
    if (s->round) tutti_run_unpack(e, s, x->whole, tutti_half(x, partner, left + 1), s->inbox);
}

static void doubling_begin(tutti_engine *e, tutti_slot *s)
{
    const tutti_exchange *x = s->x;
    tutti_halves_swap(e, s, x->whole, x->me, tutti_half(x, x->me, tutti_halvings(x)).first);
}

static bool doubling_next(tutti_engine *e, tutti_slot *s)
{
    doubling_unpack(e, s);
    if (s->round == tutti_halvings(s->x)) return false;
    s->round++;
    doubling_post(e, s);
    return true;
}

/* --- bruck --- */

/* The strips that travel in a round, from the first on. */
static tutti_run travelling(const tutti_slot *s, int first)
{
    const int distance = 1 << s->round, unknown = s->x->members - distance;
    return (tutti_run){first % s->x->members, distance < unknown ? distance : unknown};
}

static void bruck_post(tutti_engine *e, tutti_slot *s)
{
    const tutti_exchange *x = s->x;
    const int distance = 1 << s->round;
    const tutti_run going = travelling(s, x->me), coming = travelling(s, x->me + distance);
    const char *out = tutti_run_pack(e, s, x->whole, going, tutti_halves_outbox(s));
    tutti_slot_receive(e, s, tutti_run_place(s, x->whole, coming, s->inbox),
                       tutti_run_bytes(s, coming), coming.first, 0);
    tutti_slot_send(e, s, out, tutti_run_bytes(s, going),
                    (x->me - distance + x->members) % x->members);
}

static void bruck_begin(tutti_engine *e, tutti_slot *s)
{
    if (s->x->members > 1) bruck_post(e, s);
}

static bool bruck_next(tutti_engine *e, tutti_slot *s)
{
    const tutti_exchange *x = s->x;
    if (x->members == 1) return false;
    tutti_run_unpack(e, s, x->whole, travelling(s, x->me + (1 << s->round)), s->inbox);
    if (2 << s->round >= x->members) return false;
    s->round++;
    bruck_post(e, s);
    return true;
}

// clang-format off
const tutti_algorithm tutti_broadcast_algorithms[] = {
    {.name = "direct", .inbox = no_inbox, .begin = tutti_window_peers,
     .receive = receive_piece, .send = send_piece},
    {.name = "bruck", .is_better = tutti_exchange_is_thin, .inbox = tutti_halves_inbox,
     .begin = bruck_begin, .next_round = bruck_next},
    {.name = "doubling", .applies = tutti_halves_apply, .is_better = tutti_exchange_wants_halves,
     .inbox = tutti_halves_inbox, .begin = doubling_begin, .next_round = doubling_next},
    {.name = NULL},
};

const tutti_algorithm tutti_alltoall_algorithms[] = {
    {.name = "direct", .inbox = no_inbox, .begin = alltoall_begin,
     .receive = receive_piece, .send = send_piece},
    {.name = NULL},
};
// clang-format on
