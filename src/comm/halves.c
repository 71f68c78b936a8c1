/* Runs of neighbouring strips as one message, for algorithms of log2(N) rounds.
 *
 * N = 2^k members halve the buffer, neighbours first. A member whose round's bit is 0 keeps the
 * lower half of the strips it works on, its partner the upper one:
 *
 *     round 0: 0-1 2-3 4-5 6-7     members 0 2 4 6 keep strips 0-3, the others 4-7
 *     round 1: 0-2 1-3 4-6 5-7     members 0 4 keep 0-1, 2 6 keep 2-3, 1 5 keep 4-5, 3 7 keep 6-7
 *     round 2: 0-4 1-5 2-6 3-7     each has one: 0 4 2 6 1 5 3 7 have strips 0 1 2 3 4 5 6 7
 *
 * It is the strip whose number is the member's with its bits reversed; one more message, a swap,
 * takes it to its owner. What this buys: a half is a run of strips. Where an exchange is one chunk
 * the strips of a run lie side by side, and messages leave from where they are; else they are
 * packed. And the long messages go to the neighbour, the far ones are short. */
#include <limits.h>

#include "comm/engine.h"

/* --- runs --- */

static tutti_piece piece_in(const tutti_slot *s, tutti_run run, int i)
{
    return tutti_piece_of(s->x->cuts, s->x->piece, (run.first + i) % s->x->members, s->chunk);
}

size_t tutti_run_bytes(const tutti_slot *s, tutti_run run)
{
    size_t elements = 0;
    for (int i = 0; i < run.count; i++) elements += tutti_piece_length(piece_in(s, run, i));
    return elements * s->x->width;
}

static bool lies_together(const tutti_slot *s, tutti_run run)
{
    return run.count == 1 || (s->x->chunks == 1 && run.first + run.count <= s->x->members);
}

char *tutti_run_place(const tutti_slot *s, char *buffer, tutti_run run, char *spare)
{
    return lies_together(s, run) ? buffer + piece_in(s, run, 0).begin * s->x->width : spare;
}

const char *tutti_run_pack(tutti_engine *e, const tutti_slot *s, char *buffer, tutti_run run,
                           char *spare)
{
    if (lies_together(s, run)) return tutti_run_place(s, buffer, run, spare);
    char *to = spare;
    for (int i = 0; i < run.count; i++) {
        const tutti_piece p = piece_in(s, run, i);
        const size_t bytes = tutti_piece_length(p) * s->x->width;
        if (bytes) tutti_engine_copy(e, to, buffer + p.begin * s->x->width, bytes);
        to += bytes;
    }
    return spare;
}

void tutti_run_unpack(tutti_engine *e, const tutti_slot *s, char *buffer, tutti_run run,
                      const char *spare)
{
    for (int i = 0; i < run.count && !lies_together(s, run); i++) {
        const tutti_piece p = piece_in(s, run, i);
        const size_t bytes = tutti_piece_length(p) * s->x->width;
        if (bytes) tutti_engine_copy(e, buffer + p.begin * s->x->width, spare, bytes);
        spare += bytes;
    }
}

/* --- memory --- */

static size_t half_bytes(const tutti_exchange *x)
{
    return (size_t)(x->members / 2 + 1) * x->piece * x->width;
}

size_t tutti_halves_inbox(const tutti_exchange *x)
{
    return 2 * half_bytes(x);
}

char *tutti_halves_outbox(const tutti_slot *s)
{
    return s->inbox + half_bytes(s->x);
}

/* --- halves --- */

bool tutti_halves_apply(const tutti_exchange *x)
{
    return (x->members & (x->members - 1)) == 0 && half_bytes(x) <= INT_MAX;
}

int tutti_halvings(const tutti_exchange *x)
{
    int rounds = 0;
    while (1 << rounds < x->members) rounds++;
    return rounds;
}

tutti_run tutti_half(const tutti_exchange *x, int member, int rounds)
{
    tutti_run run = {0, x->members};
    for (int round = 0; round < rounds; round++) {
        run.count /= 2;
        if (member >> round & 1) run.first += run.count;
    }
    return run;
}

void tutti_halves_swap(tutti_engine *e, tutti_slot *s, char *buffer, int give, int take)
{
    const tutti_exchange *x = s->x;
    const int partner = give == x->me ? take : give;
    if (partner == x->me) return;
    const tutti_run going = {give, 1}, coming = {take, 1};
    tutti_slot_receive(e, s, tutti_run_place(s, buffer, coming, NULL), tutti_run_bytes(s, coming),
                       partner, 0);
    tutti_slot_send(e, s, tutti_run_place(s, buffer, going, NULL), tutti_run_bytes(s, going),
                    partner);
}
