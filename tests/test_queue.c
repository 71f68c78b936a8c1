/* The queue and the bell: every interleaving of their steps in a model, and the real ones under
 * stress (run it under ThreadSanitizer, too: meson setup -Db_sanitize=thread). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <pthread.h>
#include <string.h>
#include <cmocka.h>

#include "base/clock.h"
#include "comm/queue.h"

/* --- an explorer of interleavings ---
 *
 * A model is a few bytes of state; an actor is a function that does its next step on it and says
 * whether it could. The explorer follows every choice of who goes next, remembers the states it
 * has seen, and hands every state in which nobody can go on to the model's judge. */

enum { MAX_STATES = 200000, STATE_BYTES = 24 };

typedef struct state {
    unsigned char b[STATE_BYTES];
} state;

typedef bool actor(state *s);

typedef struct explorer {
    actor *actors[2];
    bool (*judge)(const state *s); /* of a state at rest */
    bool (*holds)(const state *s); /* of every state */
    state seen[MAX_STATES];
    int count, wrong;
} explorer;

static explorer the_explorer; /* too large for a stack; a test program is one process */

static bool is_new(explorer *x, const state *s)
{
    for (int i = 0; i < x->count; i++)
        if (!memcmp(&x->seen[i], s, sizeof *s)) return false;
    assert_true(x->count < MAX_STATES);
    x->seen[x->count++] = *s;
    return true;
}

static void explore(explorer *x, state s)
{
    if (!is_new(x, &s)) return;
    if (!x->holds(&s)) x->wrong++;
    bool at_rest = true;
    for (int a = 0; a < 2; a++) {
        state next = s;
        if (!x->actors[a](&next)) continue;
        at_rest = false;
        explore(x, next);
    }
    if (at_rest && !x->judge(&s)) x->wrong++;
}

static int count_wrong(actor *one, actor *two, bool (*judge)(const state *),
                       bool (*holds)(const state *))
{
    explorer *const x = &the_explorer;
    x->actors[0] = one;
    x->actors[1] = two;
    x->judge = judge;
    x->holds = holds;
    x->count = x->wrong = 0;
    explore(x, (state){{0}});
    return x->wrong;
}

/* --- the bell --- */

enum { RINGS_WANTED = 3 };
enum { RINGER_AT, SLEEPER_AT, CONDITION, RINGS, ASLEEP, TICKET, IN_FUTEX, SEEN };

/* Makes the condition true, rings; three times. */
static bool ringer(state *s)
{
    unsigned char *b = s->b;
    switch (b[RINGER_AT]) {
    case 0:
        if (b[CONDITION] == RINGS_WANTED) return false;
        b[CONDITION]++, b[RINGER_AT] = 1;
        return true;
    case 1: b[RINGS]++, b[RINGER_AT] = 2; return true;
    case 2: b[RINGER_AT] = b[ASLEEP] ? 3 : 0; return true;
    default: b[IN_FUTEX] = 0, b[RINGER_AT] = 0; return true;
    }
}

/* Looks, checks, says that it sleeps, compares and sleeps in one step (the futex). */
static bool sleeper(state *s)
{
    unsigned char *b = s->b;
    if (b[IN_FUTEX]) return false;
    switch (b[SLEEPER_AT]) {
    case 0: b[TICKET] = b[RINGS], b[SLEEPER_AT] = 1; return true;
    case 1:
        if (b[SEEN] == RINGS_WANTED) return false;
        b[SLEEPER_AT] = b[CONDITION] > b[SEEN] ? 0 : 2;
        b[SEEN] = b[CONDITION];
        return true;
    case 2: b[ASLEEP] = 1, b[SLEEPER_AT] = 3; return true;
    case 3: b[IN_FUTEX] = b[RINGS] == b[TICKET], b[SLEEPER_AT] = 4; return true;
    default: b[ASLEEP] = 0, b[SLEEPER_AT] = 0; return true;
    }
}

/* The same with a mistake: it compares before it says that it sleeps. */
static bool careless_sleeper(state *s)
{
    unsigned char *b = s->b;
    if (b[IN_FUTEX]) return false;
    switch (b[SLEEPER_AT]) {
    case 2: b[SLEEPER_AT] = b[RINGS] == b[TICKET] ? 3 : 0; return true;
    case 3: b[ASLEEP] = b[IN_FUTEX] = 1, b[SLEEPER_AT] = 4; return true;
    default: return sleeper(s);
    }
}

static bool nothing_missed(const state *s)
{
    return s->b[SEEN] == RINGS_WANTED;
}

static bool always(const state *s)
{
    (void)s;
    return true;
}

static void the_bell_wakes_in_every_interleaving(void **unused)
{
    (void)unused;
    assert_int_equal(0, count_wrong(ringer, sleeper, nothing_missed, always));
    assert_true(the_explorer.count > 100);
}

static void the_explorer_finds_a_lost_wake_up(void **unused)
{
    (void)unused;
    assert_true(count_wrong(ringer, careless_sleeper, nothing_missed, always) > 0);
}

/* --- the queue --- */

enum { RING = 2, ITEMS = 6 };
enum { PUTTER_AT, TAKER_AT, PUT, TAKEN, SEEN_TAKEN, SEEN_PUT, GOT, BAD, SLOT };

static bool putter(state *s)
{
    unsigned char *b = s->b;
    switch (b[PUTTER_AT]) {
    case 0:
        if (b[PUT] == ITEMS) return false;
        b[SEEN_TAKEN] = b[TAKEN], b[PUTTER_AT] = 1;
        return true;
    case 1:
        if (b[PUT] - b[SEEN_TAKEN] == RING) {
            if (b[TAKEN] == b[SEEN_TAKEN]) return false; /* would look again and see the same */
            b[PUTTER_AT] = 0;
            return true;
        }
        b[SLOT + b[PUT] % RING] = (unsigned char)(b[PUT] + 1), b[PUTTER_AT] = 2;
        return true;
    default: b[PUT]++, b[PUTTER_AT] = 0; return true;
    }
}

static bool taker(state *s)
{
    unsigned char *b = s->b;
    switch (b[TAKER_AT]) {
    case 0:
        if (b[PUT] == b[TAKEN]) return false;
        b[SEEN_PUT] = b[PUT], b[TAKER_AT] = 1;
        return true;
    case 1:
        b[GOT] = b[SLOT + b[TAKEN] % RING];
        b[BAD] |= b[GOT] != b[TAKEN] + 1;
        b[TAKER_AT] = 2;
        return true;
    default: b[TAKEN]++, b[TAKER_AT] = 0; return true;
    }
}

/* With a mistake: gives the slot back before it has read it. */
static bool hasty_taker(state *s)
{
    unsigned char *b = s->b;
    switch (b[TAKER_AT]) {
    case 1: b[TAKEN]++, b[TAKER_AT] = 2; return true;
    case 2:
        b[GOT] = b[SLOT + (b[TAKEN] - 1) % RING];
        b[BAD] |= b[GOT] != b[TAKEN];
        b[TAKER_AT] = 0;
        return true;
    default: return taker(s);
    }
}

static bool in_order(const state *s)
{
    return !s->b[BAD];
}

static bool all_taken(const state *s)
{
    return s->b[TAKEN] == ITEMS;
}

static void the_queue_keeps_order_in_every_interleaving(void **unused)
{
    (void)unused;
    assert_int_equal(0, count_wrong(putter, taker, all_taken, in_order));
    assert_true(count_wrong(putter, hasty_taker, all_taken, in_order) > 0);
}

/* --- the real ones --- */

static void the_queue_is_full_and_empty_when_it_should(void **unused)
{
    (void)unused;
    static tutti_queue queue;
    tutti_command c;
    for (int lap = 0; lap < 3; lap++) {
        assert_false(tutti_queue_take(&queue, &c));
        for (int i = 0; i < TUTTI_QUEUE_SLOTS; i++)
            assert_true(
                tutti_queue_put(&queue, (tutti_command){(tutti_command_kind)(i % 3), NULL}));
        assert_false(tutti_queue_put(&queue, (tutti_command){TUTTI_COMMAND_STOP, NULL}));
        for (int i = 0; i < TUTTI_QUEUE_SLOTS; i++) {
            assert_true(tutti_queue_take(&queue, &c));
            assert_int_equal(c.kind, i % 3);
        }
    }
}

/* Two threads hand numbers back and forth: one submits and sleeps for the answer, the other
 * sleeps for work. A wake-up that gets lost shows as a sleep of a whole second. */
enum { ROUNDS = 20000, BURST = 7 };

typedef struct pair {
    tutti_queue queue;
    tutti_bell work, done;
    atomic_uint served;
    unsigned order_broken, slept_through;
} pair;

static void sleep_well(pair *p, tutti_bell *bell, uint32_t ticket)
{
    const double begin = tutti_now();
    tutti_bell_sleep(bell, ticket, 1);
    if (tutti_bell_look(bell) == ticket && tutti_now() - begin > 0.9) return; /* nobody rang */
    if (tutti_now() - begin > 0.9) p->slept_through++;
}

static void *serve(void *arg)
{
    pair *const p = arg;
    for (unsigned next = 0; next < ROUNDS * BURST;) {
        const uint32_t ticket = tutti_bell_look(&p->work);
        tutti_command c;
        if (!tutti_queue_take(&p->queue, &c)) {
            sleep_well(p, &p->work, ticket);
            continue;
        }
        p->order_broken += (unsigned)(uintptr_t)c.exchange != next++;
        atomic_fetch_add_explicit(&p->served, 1, memory_order_release);
        tutti_bell_ring(&p->done);
    }
    return NULL;
}

static void stress(void **unused)
{
    (void)unused;
    static pair p;
    pthread_t server;
    assert_int_equal(0, pthread_create(&server, NULL, serve, &p));
    unsigned sent = 0;
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < BURST; i++, sent++) {
            const tutti_command c = {TUTTI_COMMAND_START, (void *)(uintptr_t)sent};
            while (!tutti_queue_put(&p.queue, c)) {}
            tutti_bell_ring(&p.work);
        }
        for (;;) {
            const uint32_t ticket = tutti_bell_look(&p.done);
            if (atomic_load_explicit(&p.served, memory_order_acquire) == sent) break;
            sleep_well(&p, &p.done, ticket);
        }
    }
    assert_int_equal(0, pthread_join(server, NULL));
    assert_int_equal(0, p.order_broken);
    assert_int_equal(0, p.slept_through);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_bell_wakes_in_every_interleaving),
        cmocka_unit_test(the_explorer_finds_a_lost_wake_up),
        cmocka_unit_test(the_queue_keeps_order_in_every_interleaving),
        cmocka_unit_test(the_queue_is_full_and_empty_when_it_should),
        cmocka_unit_test(stress),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
