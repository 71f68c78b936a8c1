/* Part-broadcast and all-to-all: strips go where they belong, straight into place.
 *
 * direct     one message per pair, see window.c. Bytes out of a member: its strip to N-1 others,
 *            (N-1)/N of the buffer. The all-to-all is the same with other pieces.
 * doubling   ceil(log2(N)) rounds for any N (Bruck's allgather): in round r a member sends the 2^r
 *            strips from its own on, as far as they are not yet known, to the one 2^r below it.
 *            The same bytes in fewer messages; packed, so for small buffers. */
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
static void send_piece(tutti_engine *e, tutti_slot *s, int to)
{
    const tutti_exchange *x = s->x;
    const tutti_piece p =
        x->send ? tutti_piece_of(x->send_cuts, x->piece, to, s->chunk) : piece_of(s, x->me);
    const char *from = x->send ? x->send : x->whole;
    tutti_slot_send(e, s, from + p.begin * x->width, tutti_piece_length(p) * x->width, to);
}

static void receive_piece(tutti_engine *e, tutti_slot *s, int from)
{
    const tutti_exchange *x = s->x;
    const tutti_piece p = piece_of(s, from);
    tutti_slot_receive(e, s, x->whole + p.begin * x->width, tutti_piece_length(p) * x->width, from,
                       0);
}

static void alltoall_begin(tutti_engine *e, tutti_slot *s)
{
    const tutti_exchange *x = s->x;
    const tutti_piece from = tutti_piece_of(x->send_cuts, x->piece, x->me, s->chunk);
    const tutti_piece to = piece_of(s, x->me);
    tutti_window_open(e, s);
    memcpy(x->whole + to.begin * x->width, x->send + from.begin * x->width,
           tutti_piece_length(from) * x->width);
}

/* --- doubling --- */

static size_t doubling_inbox(const tutti_exchange *x)
{
    return (size_t)(x->members + 2) * x->piece * x->width; /* half going out, half coming in */
}

/* How many strips travel in a round. */
static int travelling(const tutti_slot *s)
{
    const int distance = 1 << s->round, unknown = s->x->members - distance;
    return distance < unknown ? distance : unknown;
}

static char *doubling_half(const tutti_slot *s, int which)
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
        const tutti_piece p = piece_of(s, (first + i) % x->members);
        const size_t bytes = tutti_piece_length(p) * x->width;
        char *const strip = x->whole + p.begin * x->width;
        if (packed && bytes)
            tutti_engine_copy(e, unpack ? strip : packed + at, unpack ? packed + at : strip, bytes);
        at += bytes;
    }
    return at;
}

static void doubling_post(tutti_engine *e, tutti_slot *s)
{
    const tutti_exchange *x = s->x;
    const int distance = 1 << s->round, count = travelling(s);
    const size_t coming = pack(e, s, x->me + distance, count, NULL, false);
    const size_t going = pack(e, s, x->me, count, doubling_half(s, 0), false);
    tutti_slot_receive(e, s, doubling_half(s, 1), coming, (x->me + distance) % x->members, 0);
    tutti_slot_send(e, s, doubling_half(s, 0), going, (x->me - distance + x->members) % x->members);
}

static void doubling_begin(tutti_engine *e, tutti_slot *s)
{
    if (s->x->members > 1) doubling_post(e, s);
}

static bool doubling_next(tutti_engine *e, tutti_slot *s)
{
    const tutti_exchange *x = s->x;
    if (x->members == 1) return false;
    pack(e, s, x->me + (1 << s->round), travelling(s), doubling_half(s, 1), true);
    if (2 << s->round >= x->members) return false;
    s->round++;
    doubling_post(e, s);
    return true;
}

// clang-format off
const tutti_algorithm tutti_broadcast_algorithms[] = {
    {.name = "direct", .inbox = no_inbox, .begin = tutti_window_open,
     .receive_from = receive_piece, .send_to = send_piece},
    {.name = "doubling", .is_better = tutti_exchange_wants_rounds, .inbox = doubling_inbox,
     .begin = doubling_begin, .next_round = doubling_next},
    {.name = NULL},
};

const tutti_algorithm tutti_alltoall_algorithms[] = {
    {.name = "direct", .inbox = no_inbox, .begin = alltoall_begin,
     .receive_from = receive_piece, .send_to = send_piece},
    {.name = NULL},
};
// clang-format on
