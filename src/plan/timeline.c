#include "plan/timeline.h"

#include <math.h>
#include <stdbool.h>

enum { MOST_CHAINS = 4096, WARM_UP_STEPS = 3 };

typedef enum { IDLE, REDUCING, GATED, BROADCASTING } phase;

typedef struct job {
    phase phase;
    bool gate;
    double left; /* seconds of the phase */
    long turn;   /* order of submission */
} job;

typedef struct world {
    const tutti_chain *chains;
    job jobs[MOST_CHAINS];
    int count;
    double now, steals, beside;
    long turns;
    bool in_order;
} world;

static bool serves(const job *j)
{
    return j->phase == REDUCING || j->phase == BROADCASTING;
}

/* The job the channel works on now, -1 when there is none. */
static int most_urgent(const world *w)
{
    int best = -1;
    for (int i = 0; i < w->count; i++)
        if (serves(&w->jobs[i]) &&
            (best < 0 || (w->in_order && w->jobs[i].turn < w->jobs[best].turn)))
            best = i;
    return best;
}

static void finish_phase(world *w, int i)
{
    job *j = &w->jobs[i];
    if (j->phase == REDUCING && j->gate)
        *j = (job){BROADCASTING, true, w->chains[i].broadcast, j->turn};
    else j->phase = j->phase == REDUCING ? GATED : IDLE;
}

/* Lets the channel work for at most 'seconds', 'slower' times as slow as alone; returns how long it
 * worked. Stops when a phase ends. */
static double serve(world *w, double seconds, double slower)
{
    const int i = most_urgent(w);
    if (i < 0) return 0;
    job *j = &w->jobs[i];
    const bool ends = j->left * slower <= seconds;
    const double spent = ends ? j->left * slower : seconds;
    j->left -= spent / slower;
    w->now += spent;
    if (ends) finish_phase(w, i);
    return spent;
}

/* While the channel works, computing goes on at 1 - steals of its speed. */
static void compute(world *w, double work)
{
    while (work > 0) {
        const double speed = 1 - w->steals;
        if (most_urgent(w) < 0) {
            w->now += work;
            return;
        }
        work -= serve(w, speed > 0 ? work / speed : INFINITY, w->beside) * speed;
    }
}

static double wait_for(world *w, int layer)
{
    const double start = w->now;
    while (w->jobs[layer].phase != IDLE && most_urgent(w) >= 0) serve(w, INFINITY, 1);
    return w->now - start;
}

static void open_gate(world *w, int layer)
{
    job *j = &w->jobs[layer];
    j->gate = true;
    if (j->phase == GATED) *j = (job){BROADCASTING, true, w->chains[layer].broadcast, j->turn};
}

static void run(world *w, const tutti_op *op, tutti_chain *chains, double *exchanged)
{
    const double start = w->now;
    switch (op->kind) {
    case TUTTI_OP_COMPUTE: compute(w, op->seconds); break;
    case TUTTI_OP_SUBMIT:
        w->jobs[op->layer] = (job){REDUCING, false, chains[op->layer].reduce, w->turns++};
        break;
    case TUTTI_OP_GATE: open_gate(w, op->layer); break;
    case TUTTI_OP_WAIT: chains[op->layer].waited += wait_for(w, op->layer); break;
    case TUTTI_OP_EXCHANGE:
        w->now += op->seconds;
        *exchanged += op->seconds;
        break;
    }
    if (op->kind == TUTTI_OP_COMPUTE && op->layer >= 0)
        chains[op->layer].computed += w->now - start;
}

double tutti_timeline_step(const tutti_op *ops, int op_count, tutti_chain *chains, int chain_count,
                           const tutti_channel *channel, double *exchanged)
{
    world w = {.chains = chains,
               .count = chain_count < MOST_CHAINS ? chain_count : MOST_CHAINS,
               .steals = channel->steals,
               .beside = channel->beside > 1 ? channel->beside : 1,
               .in_order = channel->in_order};
    double begun = 0, in_exchange = 0;
    for (int step = 0; step <= WARM_UP_STEPS; step++) {
        begun = w.now;
        in_exchange = 0;
        for (int i = 0; i < chain_count; i++) chains[i].waited = chains[i].computed = 0;
        for (int i = 0; i < op_count; i++) run(&w, &ops[i], chains, &in_exchange);
    }
    if (exchanged) *exchanged = in_exchange;
    return w.now - begun;
}
