/* What joins the ranks: part-reduce and part-broadcast against ranks and bytes, alone; and beside
 * computing, where cores are scarce, how much of the computing they cost. */
#include <math.h>

#include "base/clock.h"
#include "base/memory.h"
#include "train/calibrate.h"

enum { LEAST_BYTES = 4096, GROWTH = 4, MOST_BYTES = 256 << 20, LEAST_TRIES = 3, MOST_TRIES = 100 };

typedef struct wires {
    tutti_calibration *c;
    tutti_group *group; /* NULL: all ranks */
    int members;
    size_t bytes;
    float *partial, *whole;
} wires;

static tutti_status create(wires *w, bool reduces, tutti_exchange **out)
{
    float *const partials[] = {w->partial};
    const tutti_exchange_spec spec = {.name = "calibrate",
                                      .group = w->group,
                                      .count = w->bytes / sizeof(float),
                                      .leaves = reduces ? w->members : 0,
                                      .partials = reduces ? partials : NULL,
                                      .whole = reduces ? NULL : w->whole};
    return tutti_exchange_create(out, w->c->comm, &spec);
}

static tutti_status run_often(wires *w, tutti_exchange *x, int often, double *seconds)
{
    TUTTI_TRY(tutti_comm_barrier(w->c->comm));
    const double start = tutti_now();
    for (int i = 0; i < often; i++) TUTTI_TRY(tutti_exchange_run(x));
    *seconds = (tutti_now() - start) / often;
    return tutti_calibration_slowest(w->c, seconds, 1);
}

/* Short ones are run several times in a row. */
static tutti_status best_of(wires *w, tutti_exchange *x, double seconds, double *best)
{
    double took, spent = 0;
    TUTTI_TRY(run_often(w, x, 1, &took));
    const int often = took < 1e-3 ? (int)(1e-3 / took) + 1 : 1;
    *best = INFINITY;
    for (int i = 0; i < LEAST_TRIES || (i < MOST_TRIES && spent < seconds); i++) {
        TUTTI_TRY(run_often(w, x, often, &took));
        *best = fmin(*best, took);
        spent += took * often;
    }
    return TUTTI_OK;
}

static tutti_status time_one(wires *w, bool reduces, double seconds, double *best)
{
    tutti_exchange *x = NULL;
    TUTTI_TRY(tutti_comm_agree(w->c->comm, create(w, reduces, &x)));
    const tutti_status s = best_of(w, x, seconds, best);
    tutti_exchange_destroy(&x);
    return s;
}

static tutti_status time_size(wires *w, double seconds)
{
    tutti_exchange_rate r = {.ranks = w->members, .bytes = (double)w->bytes};
    TUTTI_TRY(time_one(w, true, seconds / 2, &r.reduce));
    TUTTI_TRY(time_one(w, false, seconds / 2, &r.broadcast));
    return tutti_platform_add_exchange(w->c->platform, &r);
}

static size_t most_bytes(const tutti_calibration *c)
{
    size_t bytes = LEAST_BYTES;
    double most = fmin(MOST_BYTES, c->memory_free / 8);
    while ((double)(bytes * GROWTH) <= most) bytes *= GROWTH;
    return bytes;
}

/* Groups of 'members' neighbours, all at the same time. */
static tutti_status time_members(wires *w, int members, size_t most, double seconds)
{
    int sizes = 1;
    for (size_t b = LEAST_BYTES; b < most; b *= GROWTH) sizes++;
    w->members = members;
    w->group = NULL;
    if (members < w->c->ranks)
        TUTTI_TRY(tutti_group_create_inside(&w->group, w->c->comm, w->c->ranks / members));
    tutti_status s = TUTTI_OK;
    for (w->bytes = LEAST_BYTES; s == TUTTI_OK && w->bytes <= most; w->bytes *= GROWTH)
        s = time_size(w, seconds / sizes);
    tutti_group_destroy(&w->group);
    const tutti_exchange_rate *r = &w->c->platform->exchanges[w->c->platform->exchange_count - 1];
    if (s == TUTTI_OK)
        tutti_calibration_say(w->c,
                              "  %d ranks, %.0f MB: part-reduce %.2f ms, part-broadcast %.2f ms",
                              members, r->bytes * 1e-6, r->reduce * 1e3, r->broadcast * 1e3);
    return s;
}

/* ---- beside computing ---- */

typedef struct work {
    const tutti_kernels *row;
    long rounds;
} work;

static void compute(void *arg, int member, int size)
{
    const work *w = arg;
    float sink;
    (void)member, (void)size;
    (void)w->row->fma_rounds(w->rounds, &sink);
}

static tutti_status time_both(wires *w, tutti_exchange *x, work *job, double *computing,
                              double *channel)
{
    TUTTI_TRY(tutti_comm_barrier(w->c->comm));
    const double start = tutti_now();
    if (x) tutti_exchange_start(x);
    tutti_team_run(w->c->team, compute, job);
    *computing = tutti_now() - start;
    if (x) {
        TUTTI_TRY(tutti_exchange_wait(x));
        const tutti_exchange_stats s = tutti_exchange_statistics(x);
        *channel = s.done - s.begun;
    }
    return TUTTI_OK;
}

/* The share of an exchange's time that computing loses: enough computing is under way to outlast
 * it. The least of several tries on each rank, the mean of the ranks. */
static tutti_status time_steals(wires *w, size_t bytes)
{
    tutti_platform *p = w->c->platform;
    const tutti_exchange_rate *last = &p->exchanges[p->exchange_count - 1];
    const double wanted = 4 * last->reduce * (double)bytes / last->bytes;
    work job = {w->c->row, 100000};
    tutti_exchange *x = NULL;
    double alone, beside, channel = 0, best_alone = INFINITY, best_lost = INFINITY;
    TUTTI_TRY(time_both(w, NULL, &job, &alone, NULL));
    job.rounds = (long)((double)job.rounds * fmax(wanted, 1e-3) / alone) + 1;
    w->group = NULL;
    w->members = w->c->ranks;
    w->bytes = bytes;
    TUTTI_TRY(tutti_comm_agree(w->c->comm, create(w, true, &x)));
    tutti_status s = TUTTI_OK;
    for (int i = 0; i < 5 && s == TUTTI_OK; i++) {
        if ((s = time_both(w, NULL, &job, &alone, NULL))) break;
        if ((s = time_both(w, x, &job, &beside, &channel))) break;
        best_alone = fmin(best_alone, alone);
        best_lost = fmin(best_lost, (beside - best_alone) / channel);
    }
    tutti_exchange_destroy(&x);
    TUTTI_TRY(s);
    double lost = fmin(fmax(best_lost, 0), 1);
    TUTTI_TRY(tutti_calibration_slowest(w->c, &lost, 1));
    p->steals = lost;
    return TUTTI_OK;
}

/* ---- the whole ---- */

/* For ranks that were not measured: the two-parameter description of the largest group. */
static void describe(tutti_platform *p, int ranks)
{
    const tutti_exchange_rate *first = NULL, *last = NULL;
    for (int i = 0; i < p->exchange_count; i++) {
        if (p->exchanges[i].ranks != ranks) continue;
        if (!first) first = &p->exchanges[i];
        last = &p->exchanges[i];
    }
    p->link = last->bytes * (ranks - 1) / ranks * 2 / (last->reduce + last->broadcast);
    p->latency = (first->reduce + first->broadcast) / 2 / ceil(log2(ranks));
    p->overlap = 1;
}

static tutti_status run(wires *w, size_t most, double seconds)
{
    const int ranks = w->c->ranks;
    int sizes = 0;
    for (int m = 2; m <= ranks; m++) sizes += ranks % m == 0;
    for (int m = 2; m <= ranks; m++)
        if (ranks % m == 0) TUTTI_TRY(time_members(w, m, most, seconds / sizes));
    describe(w->c->platform, ranks);
    return time_steals(w, most);
}

tutti_status tutti_calibrate_exchanges(tutti_calibration *c, double seconds)
{
    if (c->ranks == 1) return TUTTI_OK;
    double free_memory = -c->memory_free;
    TUTTI_TRY(tutti_calibration_slowest(c, &free_memory, 1));
    c->memory_free = -free_memory;
    const size_t most = most_bytes(c);
    wires w = {.c = c};
    tutti_status s = tutti_alloc(&w.partial, most, 1);
    if (s == TUTTI_OK) s = tutti_alloc(&w.whole, most, 1);
    s = tutti_comm_agree(c->comm, s);
    if (s == TUTTI_OK) s = run(&w, most, seconds);
    tutti_free(w.partial);
    tutti_free(w.whole);
    return s;
}
