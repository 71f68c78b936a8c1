/* Halving and doubling: log2(N) rounds for N = 2^k members.
 *
 * Members halve the buffer, neighbours first. One whose bit of the round is 0 keeps the lower half
 * of the strips it works on, its partner the upper one:
 *
 *     round 0: 0-1 2-3 4-5 6-7     members 0 2 4 6 keep strips 0-3, the others 4-7
 *     round 1: 0-2 1-3 4-6 5-7     members 0 4 keep 0-1, 2 6 keep 2-3, 1 5 keep 4-5, 3 7 keep 6-7
 *     round 2: 0-4 1-5 2-6 3-7     each has one: 0 4 2 6 1 5 3 7 have strips 0 1 2 3 4 5 6 7
 *     round 3: 0 1-4 2 3-6 5 7     and gives it to its owner
 *
 * What a member has after round k-1 is the strip whose number is its own with the bits reversed; so
 * round k is a swap. What this buys: a half is a run of strips, side by side in the buffer, and no
 * message needs packing. The long messages go to the neighbour, the far ones are short.
 *
 * The classic algorithm pairs distant members first, which adds in another order; this one adds
 * exactly along the levels of the tree. Run backwards, the rounds are part-broadcast's.
 *
 * A round's message travels in parts, a few at a time (in_flight.c): one is added while the next
 * are on their way, and no more memory is needed. The exchange is one chunk, however long. */
#include "comm/engine.h"

enum {
    PART_BYTES = 256 << 10,
    PLACES = TUTTI_PARTS + 1 /* a part is added when the next one has been posted */
};

bool tutti_halving_apply(const tutti_exchange *x)
{
    return (x->members & (x->members - 1)) == 0;
}

static int rounds_of(const tutti_exchange *x)
{
    return __builtin_ctz((unsigned)x->members);
}

/* What a member works on after that many rounds. */
static tutti_range half_of(const tutti_exchange *x, int member, int rounds)
{
    int first = 0, count = x->members;
    for (int round = 0; round < rounds; round++) {
        count /= 2;
        if (member >> round & 1) first += count;
    }
    return (tutti_range){x->cuts[first], x->cuts[first + count]};
}

static tutti_range strip_of(const tutti_exchange *x, int member)
{
    return (tutti_range){x->cuts[member], x->cuts[member + 1]};
}

static int reversed(const tutti_exchange *x)
{
    int strip = 0;
    for (int bit = 0; bit < rounds_of(x); bit++) strip = 2 * strip + (x->me >> bit & 1);
    return strip;
}

/* What a member gives to its partner in a round of halving, and takes. */
typedef struct trade {
    int partner;
    tutti_range give, take;
} trade;

static trade trade_of(const tutti_exchange *x, int round)
{
    if (round == rounds_of(x)) {
        const int partner = reversed(x);
        return (trade){partner, strip_of(x, partner), strip_of(x, x->me)};
    }
    const int partner = x->me ^ (1 << round);
    return (trade){partner, half_of(x, partner, round + 1), half_of(x, x->me, round + 1)};
}

/* The trade of the slot's round. */
static trade trade_in(const tutti_slot *s)
{
    if (s->stage == TUTTI_STAGE_REDUCE) return trade_of(s->x, s->round);
    const trade t = trade_of(s->x, rounds_of(s->x) - s->round);
    return (trade){t.partner, t.take, t.give};
}

/* --- parts --- */

static size_t part_elements(const tutti_exchange *x)
{
    return PART_BYTES / x->width;
}

static tutti_range part_of(const tutti_exchange *x, tutti_range whole, int item)
{
    const size_t part = part_elements(x), begin = whole.begin + (size_t)item * part;
    if (begin >= whole.end) return (tutti_range){whole.end, whole.end};
    return (tutti_range){begin, whole.end - begin < part ? whole.end : begin + part};
}

static void open_round(tutti_engine *e, tutti_slot *s)
{
    const trade t = trade_in(s);
    const size_t give = tutti_range_length(t.give), take = tutti_range_length(t.take);
    const size_t part = part_elements(s->x), most = give > take ? give : take;
    s->places = 0;
    tutti_in_flight_parts(e, s, t.partner == s->x->me ? 0 : (int)((most + part - 1) / part));
}

static char *buffer_of(const tutti_slot *s)
{
    return s->stage == TUTTI_STAGE_REDUCE ? (char *)s->x->partials[0] : s->x->whole;
}

static bool adds(const tutti_slot *s)
{
    return s->stage == TUTTI_STAGE_REDUCE && s->round < rounds_of(s->x);
}

/* What is to be added waits in one of a few places. */
void tutti_halving_receive(tutti_engine *e, tutti_slot *s, int item)
{
    const tutti_exchange *x = s->x;
    const trade t = trade_in(s);
    const tutti_range part = part_of(x, t.take, item);
    const size_t bytes = tutti_range_length(part) * x->width;
    if (!bytes) return;
    if (!adds(s)) {
        tutti_slot_receive(e, s, buffer_of(s) + part.begin * x->width, bytes, t.partner, 0);
        return;
    }
    const int place = __builtin_ctz(~s->places);
    s->places |= 1u << place;
    tutti_slot_receive(e, s, s->inbox + (size_t)place * PART_BYTES, bytes, t.partner,
                       item * PLACES + place);
}

void tutti_halving_send(tutti_engine *e, tutti_slot *s, int item)
{
    const tutti_exchange *x = s->x;
    const trade t = trade_in(s);
    const tutti_range part = part_of(x, t.give, item);
    tutti_slot_send(e, s, buffer_of(s) + part.begin * x->width, tutti_range_length(part) * x->width,
                    t.partner);
}

void tutti_halving_arrived(tutti_engine *e, tutti_slot *s, int message)
{
    if (!adds(s)) return;
    const tutti_exchange *x = s->x;
    const int item = message / PLACES, place = message % PLACES;
    const tutti_range part = part_of(x, trade_in(s).take, item);
    float *const sum = x->partials[0] + part.begin;
    const void *const in = s->inbox + (size_t)place * PART_BYTES;
    tutti_engine_add(e, sum, sum, in, tutti_range_length(part));
    s->places &= ~(1u << place);
}

/* --- rounds --- */

size_t tutti_halving_inbox(const tutti_exchange *x)
{
    return x->members > 1 ? (size_t)PLACES * PART_BYTES : 0;
}

void tutti_halving_begin(tutti_engine *e, tutti_slot *s)
{
    open_round(e, s);
}

bool tutti_halving_next(tutti_engine *e, tutti_slot *s)
{
    if (s->round == rounds_of(s->x)) return false;
    s->round++;
    open_round(e, s);
    return true;
}
