/* Part-broadcast and all-to-all: strips go where they belong, straight into place.
 *
 * direct     one message per pair, see in_flight.c. Bytes out of a member: its strip to N-1 others,
 *            (N-1)/N of the buffer. The all-to-all is the same with other pieces.
 * bruck      ceil(log2(N)) rounds for any N (Bruck's allgather): in round r a member sends the 2^r
 *            strips from its own on, as far as they are not yet known, to the one 2^r below it.
 *            The same bytes in fewer messages, but most of them go far.
 * doubling   a swap and log2(N) rounds for N = 2^k members: part-reduce's halving backwards, see
 *            halving.c. Most bytes go to the neighbour. */
#include <string.h>

#include "comm/engine.h"

static tutti_range piece_of(const tutti_slot *s, int member)
{
    return tutti_chunk_of(s->x->cuts, s->x->piece, member, s->chunk);
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
    const tutti_range p =
        x->send ? tutti_chunk_of(x->send_cuts, x->piece, to, s->chunk) : piece_of(s, x->me);
    const char *from = x->send ? x->send : x->whole;
    tutti_slot_send(e, s, from + p.begin * x->width, tutti_range_length(p) * x->width, to);
}

static void receive_piece(tutti_engine *e, tutti_slot *s, int item)
{
    const tutti_exchange *x = s->x;
    const int from = tutti_peer_below(x, item);
    const tutti_range p = piece_of(s, from);
    tutti_slot_receive(e, s, x->whole + p.begin * x->width, tutti_range_length(p) * x->width, from,
                       0);
}

static void alltoall_begin(tutti_engine *e, tutti_slot *s)
{
    const tutti_exchange *x = s->x;
    const tutti_range from = tutti_chunk_of(x->send_cuts, x->piece, x->me, s->chunk);
    const tutti_range to = piece_of(s, x->me);
    tutti_in_flight_peers(e, s);
    memcpy(x->whole + to.begin * x->width, x->send + from.begin * x->width,
           tutti_range_length(from) * x->width);
}

/* --- bruck --- */

static size_t bruck_inbox(const tutti_exchange *x)
{
    return (size_t)(x->members + 2) * x->piece * x->width; /* half going out, half coming in */
}

/* How many strips travel in a round. */
static int travelling(const tutti_slot *s)
{
    const int distance = 1 << s->round, unknown = s->x->members - distance;
    return distance < unknown ? distance : unknown;
}

static char *bruck_half(const tutti_slot *s, int which)
{
    const size_t half = (size_t)(s->x->members / 2 + 1) * s->x->piece * s->x->width;
    return s->inbox + (size_t)which * half;
}

/* The bytes of 'count' strips from 'first' on, copied to or from 'packed' if asked. */
static size_t pack(tutti_engine *e, const tutti_slot *s, int first, int count, char *packed,
                   bool unpack)
{
    const tutti_exchange *x = s->x;
    size_t at = 0;
    for (int i = 0; i < count; i++) {
        const tutti_range p = piece_of(s, (first + i) % x->members);
        const size_t bytes = tutti_range_length(p) * x->width;
        char *const strip = x->whole + p.begin * x->width;
        if (packed && bytes)
            tutti_engine_copy(e, unpack ? strip : packed + at, unpack ? packed + at : strip, bytes);
        at += bytes;
    }
    return at;
}

static void bruck_post(tutti_engine *e, tutti_slot *s)
{
    const tutti_exchange *x = s->x;
    const int distance = 1 << s->round, count = travelling(s);
    const size_t coming = pack(e, s, x->me + distance, count, NULL, false);
    const size_t going = pack(e, s, x->me, count, bruck_half(s, 0), false);
    tutti_slot_receive(e, s, bruck_half(s, 1), coming, (x->me + distance) % x->members, 0);
    tutti_slot_send(e, s, bruck_half(s, 0), going, (x->me - distance + x->members) % x->members);
}

static void bruck_begin(tutti_engine *e, tutti_slot *s)
{
    if (s->x->members > 1) bruck_post(e, s);
}

static bool bruck_next(tutti_engine *e, tutti_slot *s)
{
    const tutti_exchange *x = s->x;
    if (x->members == 1) return false;
    pack(e, s, x->me + (1 << s->round), travelling(s), bruck_half(s, 1), true);
    if (2 << s->round >= x->members) return false;
    s->round++;
    bruck_post(e, s);
    return true;
}

/* --- doubling --- */

/* It makes the exchange a single chunk, which the inboxes of other reductions could not hold. */
static bool doubling_applies(const tutti_exchange *x)
{
    return tutti_halving_apply(x) && (!x->reduce || x->reduce->one_chunk);
}

// clang-format off
const tutti_algorithm tutti_broadcast_algorithms[] = {
    {.name = "direct", .inbox = no_inbox, .begin = tutti_in_flight_peers,
     .receive = receive_piece, .send = send_piece},
    {.name = "bruck", .is_better = tutti_exchange_is_thin, .inbox = bruck_inbox,
     .begin = bruck_begin, .next_round = bruck_next},
    {.name = "doubling", .one_chunk = true, .applies = doubling_applies,
     .is_better = tutti_exchange_is_wide, .inbox = tutti_halving_inbox,
     .begin = tutti_halving_begin, .receive = tutti_halving_receive, .send = tutti_halving_send,
     .next_round = tutti_halving_next},
    {.name = NULL},
};

const tutti_algorithm tutti_alltoall_algorithms[] = {
    {.name = "direct", .inbox = no_inbox, .begin = alltoall_begin,
     .receive = receive_piece, .send = send_piece},
    {.name = NULL},
};
// clang-format on
