/* What joins the ranks: part-reduce and part-broadcast against ranks and bytes, alone; and beside
 * computing, where cores are scarce, how much of the computing they cost. */
#include <math.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/memory.h"
#include "machine/calibrate.h"

enum {
    LEAST_BYTES = 4096,
    GROWTH = 4,
    MOST_BYTES = 256 << 20,
    LEAST_TRIES = 3,
    MOST_TRIES = 100,
    BESIDE_TRIES = 5,
    BESIDE_WORK = 4 /* computing beside an exchange takes 4 times as long as that alone */
};

/* Of the time for exchanges: alone, and beside computing. What is left is for meeting. */
static const double alone_share = 0.6, beside_share = 0.35;

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
    return tutti_exchange_create(out, w->c->me.comm, &spec);
}

static tutti_status run_often(wires *w, tutti_exchange *x, int often, double *seconds)
{
    TUTTI_TRY(tutti_comm_barrier(w->c->me.comm));
    const double start = tutti_now();
    for (int i = 0; i < often; i++) TUTTI_TRY(tutti_exchange_run(x));
    *seconds = (tutti_now() - start) / often;
    return tutti_calibration_slowest(w->c, seconds, 1);
}

/* Short ones are run several times in a row. */
static tutti_status median_of(wires *w, tutti_exchange *x, double seconds, double *median)
{
    double first, took[MOST_TRIES], spent = 0;
    int tries = 0;
    TUTTI_TRY(run_often(w, x, 1, &first));
    const int often = first < 1e-3 ? (int)(1e-3 / first) + 1 : 1;
    for (; tries < LEAST_TRIES || (tries < MOST_TRIES && spent < seconds); tries++) {
        TUTTI_TRY(run_often(w, x, often, &took[tries]));
        spent += took[tries] * often;
    }
    *median = tutti_calibration_median(took, tries);
    return TUTTI_OK;
}

static tutti_status time_one(wires *w, bool reduces, double seconds, double *median)
{
    tutti_exchange *x = NULL;
    tutti_calibration_tick(w->c);
    TUTTI_TRY(tutti_comm_agree(w->c->me.comm, create(w, reduces, &x)));
    const tutti_status s = median_of(w, x, seconds, median);
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

/* Whether the next size can be tried in what is left of the time. */
static bool has_time(const tutti_exchange_rate *last, double left)
{
    return GROWTH * (last->reduce + last->broadcast) * (LEAST_TRIES + 1) < left;
}

/* Size after size, the smaller ones in their share of the time, as long as it lasts. */
static tutti_status time_sizes(wires *w, size_t most, double seconds)
{
    const tutti_platform *p = w->c->platform;
    const double end = tutti_now() + seconds;
    int sizes = 1;
    for (size_t b = LEAST_BYTES; b < most; b *= GROWTH) sizes++;
    for (w->bytes = LEAST_BYTES; w->bytes <= most; w->bytes *= GROWTH) {
        double over = tutti_now() - end;
        TUTTI_TRY(tutti_calibration_slowest(w->c, &over, 1));
        const bool first = w->bytes == LEAST_BYTES;
        if (!first && !has_time(&p->exchanges[p->exchange_count - 1], -over)) break;
        TUTTI_TRY(time_size(w, seconds / sizes));
    }
    return TUTTI_OK;
}

/* Groups of 'members' neighbours, all at the same time. */
static tutti_status time_members(wires *w, int members, size_t most, double seconds)
{
    w->members = members;
    w->group = NULL;
    if (members < w->c->me.size)
        TUTTI_TRY(tutti_group_create_inside(&w->group, w->c->me.comm, w->c->me.size / members));
    const tutti_status s = time_sizes(w, most, seconds);
    tutti_group_destroy(&w->group);
    if (s != TUTTI_OK) return s;
    const tutti_exchange_rate *r = &w->c->platform->exchanges[w->c->platform->exchange_count - 1];
    tutti_calibration_say(w->c, "  %d ranks, %.3g MB: part-reduce %.2f ms, part-broadcast %.2f ms",
                          members, r->bytes * 1e-6, r->reduce * 1e3, r->broadcast * 1e3);
    return TUTTI_OK;
}

/* ---- beside computing ---- */

typedef struct work {
    const tutti_kernels *row;
    long rounds;
} work;

static void burn(void *arg, int thread, int size)
{
    const work *w = arg;
    float sink;
    (void)thread, (void)size;
    (void)w->row->fma_rounds(w->rounds, &sink);
}

static double compute(const wires *w, work *job)
{
    const double start = tutti_now();
    tutti_team_run(w->c->me.exec.team, burn, job);
    return tutti_now() - start;
}

/* Collective. From the first rank's start to the last one's end. */
static tutti_status compute_all(const wires *w, work *job, double *seconds)
{
    TUTTI_TRY(tutti_comm_barrier(w->c->me.comm));
    const double start = tutti_now(), took = compute(w, job);
    return tutti_calibration_span(w->c, start, start + took, seconds);
}

/* Collective. As much computing as takes rank 0 about 'seconds', the same on all ranks. */
static tutti_status work_for(const wires *w, double seconds, work *job)
{
    double took = INFINITY;
    *job = (work){w->c->me.exec.row, 100000};
    for (int i = 0; i < 3; i++) took = fmin(took, compute(w, job));
    job->rounds = (long)((double)job->rounds * seconds / took) + 1;
    return tutti_comm_broadcast(w->c->me.comm, 0, &job->rounds, sizeof job->rounds);
}

/* A try: computing with the exchange behind it, and how long the channel was busy. */
static tutti_status compute_beside(wires *w, tutti_exchange *x, work *job, double *computing,
                                   double *busy)
{
    TUTTI_TRY(tutti_comm_barrier(w->c->me.comm));
    const double start = tutti_now();
    tutti_exchange_start(x);
    (void)compute(w, job);
    const double end = tutti_now();
    TUTTI_TRY(tutti_exchange_wait(x));
    const tutti_exchange_stats s = tutti_exchange_statistics(x);
    *busy = s.done - s.begun;
    return tutti_calibration_span(w->c, start, end, computing);
}

/* What a part-reduce and the computing that outlasts it cost each other: of several tries the
 * median of each, on the rank where the exchange takes longest. */
static tutti_status try_beside(wires *w, tutti_exchange *x, double alone)
{
    work job;
    double computing[BESIDE_TRIES], beside[BESIDE_TRIES], busy[BESIDE_TRIES];
    TUTTI_TRY(work_for(w, BESIDE_WORK * alone, &job));
    for (int i = 0; i < BESIDE_TRIES; i++) {
        TUTTI_TRY(compute_all(w, &job, &computing[i]));
        TUTTI_TRY(compute_beside(w, x, &job, &beside[i], &busy[i]));
    }
    double channel = tutti_calibration_median(busy, BESIDE_TRIES);
    TUTTI_TRY(tutti_calibration_slowest(w->c, &channel, 1));
    const double lost = tutti_calibration_median(beside, BESIDE_TRIES) -
                        tutti_calibration_median(computing, BESIDE_TRIES);
    w->c->platform->steals = fmin(fmax(lost / channel, 0), 1);
    w->c->platform->beside = fmax(channel / alone, 1);
    return TUTTI_OK;
}

/* The largest part-reduce among all ranks that can be tried in 'seconds'. */
static const tutti_exchange_rate *rate_for(const wires *w, double seconds)
{
    const tutti_platform *p = w->c->platform;
    const tutti_exchange_rate *found = NULL;
    for (int i = 0; i < p->exchange_count; i++) {
        const tutti_exchange_rate *r = &p->exchanges[i];
        const double cost = BESIDE_TRIES * (2 * BESIDE_WORK + 1) * r->reduce;
        if (r->ranks == w->c->me.size && (!found || cost < seconds)) found = r;
    }
    return found;
}

static tutti_status time_beside(wires *w, double seconds)
{
    tutti_exchange *x = NULL;
    const tutti_exchange_rate *r = rate_for(w, seconds);
    *w = (wires){.c = w->c,
                 .members = w->c->me.size,
                 .bytes = (size_t)r->bytes,
                 .partial = w->partial,
                 .whole = w->whole};
    TUTTI_TRY(tutti_comm_agree(w->c->me.comm, create(w, true, &x)));
    const tutti_status s = try_beside(w, x, r->reduce);
    tutti_exchange_destroy(&x);
    return s;
}

/* ---- meeting ---- */

/* What a small exchange after a little computing takes beyond the exchange itself and the computing
 * from the first rank's start to the last one's end, in which layers are measured as well. */
static tutti_status try_meeting(wires *w, tutti_exchange *x, double alone)
{
    enum { ROUNDS = 61 };
    work job;
    double together[ROUNDS], apart[ROUNDS];
    TUTTI_TRY(work_for(w, 5e-3, &job));
    for (int i = 0; i < ROUNDS; i++) {
        const double start = tutti_now();
        (void)compute(w, &job);
        TUTTI_TRY(tutti_exchange_run(x));
        together[i] = tutti_now() - start;
        TUTTI_TRY(compute_all(w, &job, &apart[i]));
        TUTTI_TRY(tutti_exchange_run(x));
    }
    double lost = tutti_calibration_median(together, ROUNDS) -
                  tutti_calibration_median(apart, ROUNDS) - alone;
    lost = fmax(lost, 0);
    TUTTI_TRY(tutti_calibration_slowest(w->c, &lost, 1));
    w->c->platform->meeting = lost;
    return TUTTI_OK;
}

static tutti_status time_meeting(wires *w)
{
    tutti_exchange *x = NULL;
    w->bytes = LEAST_BYTES;
    TUTTI_TRY(tutti_comm_agree(w->c->me.comm, create(w, false, &x)));
    const tutti_status s =
        try_meeting(w, x, tutti_platform_broadcast(w->c->platform, w->c->me.size, LEAST_BYTES));
    tutti_exchange_destroy(&x);
    return s;
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
    const int ranks = w->c->me.size;
    int sizes = 0;
    for (int m = 2; m <= ranks; m++) sizes += ranks % m == 0;
    for (int m = 2; m <= ranks; m++)
        if (ranks % m == 0) TUTTI_TRY(time_members(w, m, most, seconds * alone_share / sizes));
    describe(w->c->platform, ranks);
    TUTTI_TRY(time_beside(w, seconds * beside_share));
    TUTTI_TRY(time_meeting(w));
    const tutti_platform *p = w->c->platform;
    tutti_calibration_say(w->c,
                          "  beside computing an exchange takes %.1f times as long and slows it by "
                          "%.0f %%; meeting costs %.0f us",
                          p->beside, 100 * p->steals, p->meeting * 1e6);
    return TUTTI_OK;
}

tutti_status tutti_calibrate_exchanges(tutti_calibration *c, double seconds)
{
    if (c->me.size == 1) return TUTTI_OK;
    double free_memory = -c->memory_free;
    TUTTI_TRY(tutti_calibration_slowest(c, &free_memory, 1));
    c->memory_free = -free_memory;
    const size_t most = most_bytes(c);
    wires w = {.c = c};
    tutti_status s = tutti_alloc(&w.partial, most, 1);
    if (s == TUTTI_OK) s = tutti_alloc(&w.whole, most, 1);
    s = tutti_comm_agree(c->me.comm, s);
    if (s == TUTTI_OK) s = run(&w, most, seconds);
    tutti_free(w.partial);
    tutti_free(w.whole);
    return s;
}
