/* One message per pair of members, a few at a time.
 *
 * A member's peers are counted by their distance: it sends to those above it and receives from
 * those below, nearest first. So in every instant the members exchange along a permutation: nobody
 * is sent to by all at once. Only the next few peers each way have messages under way;
 * each that is through makes room for the next. A network card has no use for more, an MPI library
 * looks through all it was given, and a switch's buffers overflow.
 *
 * It cannot stick: take the smallest distance at which a message of the chunk is not through.
 * Nothing nearer holds up its sender or its receiver, so both have posted it.
 *
 * Between two members messages must be posted in the order of chunks: the next chunk of an exchange
 * begins when the last one has posted all of its messages (may_post in engine.c). */
#include "comm/engine.h"

enum { MANY = 64 };

/* A chunk of many members is long: half as many messages keep the wire busy. */
static int window_of(const tutti_engine *e, const tutti_exchange *x)
{
    const int tuned = x->members < MANY ? TUTTI_WINDOW : TUTTI_WINDOW / 2;
    return e->window > 0 && e->window < tuned ? e->window : tuned;
}

static void post_receives(tutti_engine *e, tutti_slot *s)
{
    const int members = s->x->members;
    while (s->next_from < members && s->receives < window_of(e, s->x))
        s->algorithm->receive_from(e, s, (s->x->me - s->next_from++ + members) % members);
}

static void post_sends(tutti_engine *e, tutti_slot *s)
{
    const int members = s->x->members;
    while (s->next_to < members && s->sends < window_of(e, s->x))
        s->algorithm->send_to(e, s, (s->x->me + s->next_to++) % members);
}

static bool has_more(const tutti_slot *s)
{
    return s->next_from < s->x->members || s->next_to < s->x->members;
}

void tutti_window_move(tutti_engine *e, tutti_slot *s)
{
    if (!has_more(s)) return;
    post_receives(e, s);
    post_sends(e, s);
    if (!has_more(s)) s->x->unposted[s->stage]--;
}

void tutti_window_open(tutti_engine *e, tutti_slot *s)
{
    s->next_from = s->next_to = 1;
    s->x->unposted[s->stage] += has_more(s);
    tutti_window_move(e, s);
}
