/* The messages of a chunk, a few at a time.
 *
 * Either one for each pair of members: a member's peers are counted by their distance; it sends to
 * those above it and receives from those below, nearest first. So at every instant the members
 * exchange along a permutation: nobody is sent to by all at once. Only the next few peers each way
 * have messages under way; each that is through makes room for the next. A network card has no use
 * for more, an MPI library looks through all it was given, and a switch's buffers overflow.
 *
 * It cannot get stuck: take the smallest distance at which a message of the chunk is not through.
 * Nothing nearer holds up its sender or its receiver, so both have posted it.
 *
 * Or the parts of what goes to one partner: every part but the last is added while the next ones
 * are on their way.
 *
 * Between two members messages must be posted in the order of chunks: the next chunk of an exchange
 * begins when the last one has posted all of its messages (may_post in engine.c). */
#include "comm/engine.h"

enum { MANY = 64 };

static void post_receives(tutti_engine *e, tutti_slot *s)
{
    while (s->next_from < s->items && s->receives < s->window)
        s->algorithm->receive(e, s, s->next_from++);
}

static void post_sends(tutti_engine *e, tutti_slot *s)
{
    while (s->next_to < s->items && s->sends < s->window) s->algorithm->send(e, s, s->next_to++);
}

static bool has_more(const tutti_slot *s)
{
    return s->next_from < s->items || s->next_to < s->items;
}

void tutti_in_flight_move(tutti_engine *e, tutti_slot *s)
{
    if (!has_more(s)) return;
    post_receives(e, s);
    post_sends(e, s);
    if (!has_more(s)) s->x->unposted[s->stage]--;
}

static void open_window(tutti_engine *e, tutti_slot *s, int items, int window)
{
    s->items = items;
    s->window = window;
    s->next_from = s->next_to = 0;
    s->x->unposted[s->stage] += has_more(s);
    tutti_in_flight_move(e, s);
}

/* With many members a chunk is long: half as many messages keep the wire busy. */
void tutti_in_flight_peers(tutti_engine *e, tutti_slot *s)
{
    const int members = s->x->members;
    open_window(e, s, members - 1, members < MANY ? TUTTI_WINDOW : TUTTI_WINDOW / 2);
}

void tutti_in_flight_parts(tutti_engine *e, tutti_slot *s, int parts)
{
    open_window(e, s, parts, TUTTI_PARTS);
}

int tutti_peer_below(const tutti_exchange *x, int item)
{
    return (x->me - 1 - item + x->members) % x->members;
}

int tutti_peer_above(const tutti_exchange *x, int item)
{
    return (x->me + 1 + item) % x->members;
}
