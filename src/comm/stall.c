/* Stalls.
 *
 * Every communication thread looks for notes from time to time, whether its rank computes, waits
 * or reads a file; only a process that is stopped, hangs in the kernel or has lost its network
 * does not. So a rank that has waited for --stall-warn seconds asks all others what they are doing:
 *
 *   no answer                 that process is stopped or cannot be reached: it is the culprit;
 *                             one that the system sees running may only lack a processor to
 *                             answer with, and gets more time;
 *   "I started fc6 last"      it computes or reads data and has not got this far: the culprit;
 *   "I wait at fc6, too"      a fellow sufferer.
 *
 * Of those that wait only the lowest rank speaks, so the user reads one line. After --stall-abort
 * seconds the same rank says so and ends the job with the exit code of TUTTI_STALL; the others do
 * it a little later in case it could not. */
#include "comm/stall.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "base/memory.h"
#include "comm/process.h"

#define LOOK_EVERY 0.02 /* seconds between looks for notes */

enum {
    DOING_BYTES = 120,
    CULPRITS_NAMED = 4,
    LINE_BYTES = 1000,
    TRIES_TO_READ = 4, /* a message is on its way through MPI for more than one look */
    PATIENCE = 8       /* times the grace, for those that are not known to be stopped */
};

typedef enum note_kind { ASK, ANSWER } note_kind;

typedef struct note {
    note_kind kind;
    bool waits;
    double seconds;          /* it has waited, or since its last start */
    char doing[DOING_BYTES]; /* where it waits, or what it started last */
} note;

struct tutti_stall {
    double looked, asked; /* asked == 0: no question is open */
    double first;         /* seconds of waiting until something is said or done; 0: never */
    double next_warning;
    double grace; /* seconds that others have to answer; who has waited so long, waits */
    bool *answered;
    note *answer;
};

tutti_status tutti_stall_create(tutti_stall **out, const tutti_comm *comm)
{
    tutti_stall *stall = NULL;
    TUTTI_TRY(tutti_alloc(&stall, 1, sizeof *stall));
    const double warn = comm->options.stall_warn, limit = comm->options.stall_abort;
    stall->first = warn > 0 && (limit <= 0 || warn < limit) ? warn : limit;
    stall->next_warning = stall->first;
    stall->grace = stall->first > 0 && stall->first < 4 ? stall->first / 4 : 1;
    *out = stall;
    return TUTTI_OK;
}

void tutti_stall_destroy(tutti_stall **stall)
{
    if (!*stall) return;
    tutti_free((*stall)->answered);
    tutti_free((*stall)->answer);
    tutti_free(*stall);
    *stall = NULL;
}

/* Where this rank waits, and since when. */
typedef struct halt {
    double since; /* 0: it does not */
    char where[DOING_BYTES];
} halt;

/* The chunk that has waited longest. */
static const tutti_slot *longest_waiting(const tutti_engine *e)
{
    const tutti_slot *oldest = NULL;
    for (int i = 0; i < TUTTI_MAX_SLOTS; i++) {
        const tutti_slot *s = &e->slot[i];
        if (s->x && s->pending && (!oldest || s->touched < oldest->touched)) oldest = s;
    }
    return oldest;
}

static void describe(char *text, const tutti_slot *s)
{
    const char *stage = s->stage == TUTTI_STAGE_REDUCE ? "part-reduce of " : "part-broadcast of ";
    const bool is_helper = s->x->width == 1;
    snprintf(text, DOING_BYTES, "%s%.64s (run %u)", is_helper ? "" : stage, s->x->name,
             (unsigned)s->x->stats.runs + 1);
}

static halt my_halt(const tutti_comm *comm)
{
    halt h = {.since = 0};
    const tutti_slot *s = longest_waiting(&comm->engine);
    const char *name = atomic_load(&comm->waits_at.name);
    const double since = atomic_load(&comm->waits_at.since);
    if (name && (!s || since < s->touched)) {
        h.since = since;
        snprintf(h.where, sizeof h.where, "the update of %.64s (run %u)", name,
                 atomic_load(&comm->waits_at.run));
    } else if (s) {
        h.since = s->touched;
        describe(h.where, s);
    }
    return h;
}

/* What it began last, by message or in common memory. */
static void tell_last_start(const tutti_comm *comm, double now, note *mine)
{
    const tutti_engine *e = &comm->engine;
    const char *name = atomic_load(&comm->begun_last.name);
    const double since = atomic_load(&comm->begun_last.since);
    const bool is_common = name && since > e->last_start;
    snprintf(mine->doing, sizeof mine->doing, "%.64s", is_common ? name : e->last_name);
    mine->seconds = now - (is_common ? since : e->last_start);
}

static note my_state(const tutti_comm *comm, double now)
{
    const halt h = my_halt(comm);
    note mine = {.kind = ANSWER, .waits = h.since && now - h.since > comm->stall->grace};
    if (mine.waits) {
        memcpy(mine.doing, h.where, sizeof mine.doing);
        mine.seconds = now - h.since;
    } else {
        tell_last_start(comm, now, &mine);
    }
    return mine;
}

static void read_notes(tutti_comm *comm, double now)
{
    tutti_stall *const stall = comm->stall;
    note in;
    int from;
    for (int tries = 0; tries < TRIES_TO_READ;) {
        if (!tutti_transport_note_take(comm->engine.transport, &in, sizeof in, &from)) {
            tries++;
        } else if (in.kind == ASK) {
            const note mine = my_state(comm, now);
            tutti_transport_note_send(comm->engine.transport, &mine, sizeof mine, from);
        } else if (stall->answered) {
            stall->answered[from] = true;
            stall->answer[from] = in;
        }
    }
}

static void ask_everybody(tutti_comm *comm, double now)
{
    tutti_stall *const stall = comm->stall;
    const size_t size = (size_t)comm->size;
    if (!stall->answered && (tutti_alloc(&stall->answered, size, sizeof *stall->answered) ||
                             tutti_alloc(&stall->answer, size, sizeof *stall->answer)))
        return;
    memset(stall->answered, 0, size * sizeof *stall->answered);
    const note question = {.kind = ASK};
    for (int r = 0; r < comm->size; r++)
        if (r != comm->rank)
            tutti_transport_note_send(comm->engine.transport, &question, sizeof question, r);
    stall->answered[comm->rank] = true;
    stall->answer[comm->rank] = my_state(comm, now);
    stall->asked = now;
}

/* --- what the system knows of those that do not answer --- */

static tutti_process look_at(const tutti_comm *comm, int r)
{
    const tutti_peer *me = &comm->peers[comm->rank], *it = &comm->peers[r];
    const bool is_here = me->space && it->space == me->space && !strcmp(it->host, me->host);
    return is_here ? tutti_process_look(it->pid) : TUTTI_PROCESS_UNKNOWN;
}

static bool can_answer(const tutti_comm *comm, int r)
{
    const tutti_process p = look_at(comm, r);
    return p == TUTTI_PROCESS_RUNS || p == TUTTI_PROCESS_UNKNOWN;
}

/* All have answered, or those that have not never will. */
static bool is_settled(const tutti_comm *comm)
{
    for (int r = 0; r < comm->size; r++)
        if (!comm->stall->answered[r] && can_answer(comm, r)) return false;
    return true;
}

/* --- what is said --- */

static int speaker(const tutti_comm *comm)
{
    int r = 0;
    while (r < comm->rank && !(comm->stall->answered[r] && comm->stall->answer[r].waits)) r++;
    return r;
}

typedef struct line {
    char text[LINE_BYTES];
    size_t used;
} line;

static void say(line *l, const char *format, ...) TUTTI_PRINTF(2, 3);
static void say(line *l, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    const int n = vsnprintf(l->text + l->used, sizeof l->text - l->used, format, args);
    va_end(args);
    l->used += n > 0 ? (size_t)n : 0;
    if (l->used >= sizeof l->text) l->used = sizeof l->text - 1;
}

static void name_culprit(line *l, const tutti_comm *comm, int r, bool *first)
{
    static const char *const silence[] = {
        [TUTTI_PROCESS_UNKNOWN] = ": its process is stopped or its host cannot be reached",
        [TUTTI_PROCESS_RUNS] = " although its process runs: it hangs, or gets no processor",
        [TUTTI_PROCESS_STOPPED] = ": its process is stopped",
        [TUTTI_PROCESS_ENDED] = ": its process has ended",
    };
    const note *n = &comm->stall->answer[r];
    say(l, "%srank %d", *first ? "" : "; ", r);
    if (*comm->peers[r].host) /* not before it has introduced itself */
        say(l, " (host %s, pid %d)", comm->peers[r].host, comm->peers[r].pid);
    say(l, ", which ");
    if (!comm->stall->answered[r]) say(l, "does not answer%s", silence[look_at(comm, r)]);
    else
        say(l,
            "has not got there: it started %s %.0f s ago and has been computing or reading since",
            n->doing[0] ? n->doing : "nothing", n->seconds);
    *first = false;
}

/* Those that do not answer because they cannot; if there are none, all that do not wait. */
static int name_culprits(line *l, const tutti_comm *comm, bool silent)
{
    int count = 0;
    bool first = true;
    for (int r = 0; r < comm->size; r++) {
        const bool here = comm->stall->answered[r];
        const bool is_one = silent ? !here && look_at(comm, r) != TUTTI_PROCESS_RUNS
                                   : !here || !comm->stall->answer[r].waits;
        if (!is_one) continue;
        if (count++ < CULPRITS_NAMED) name_culprit(l, comm, r, &first);
    }
    if (count > CULPRITS_NAMED) say(l, "; and %d more", count - CULPRITS_NAMED);
    return count;
}

static void compose(line *l, const tutti_comm *comm)
{
    const tutti_stall *stall = comm->stall;
    const note *mine = &stall->answer[comm->rank];
    int waiting = 0, elsewhere = -1;
    for (int r = 0; r < comm->size; r++) {
        if (!stall->answered[r] || !stall->answer[r].waits) continue;
        waiting++;
        if (strcmp(stall->answer[r].doing, mine->doing) != 0) elsewhere = r;
    }
    say(l, "no progress for %.0f s: %d %s at %s for ", mine->seconds, waiting,
        waiting == 1 ? "rank waits" : "ranks wait", mine->doing);
    if (name_culprits(l, comm, true) || name_culprits(l, comm, false)) return;
    say(l, "each other");
    if (elsewhere >= 0)
        say(l, ": rank %d at %s, rank %d at %s", comm->rank, mine->doing, elsewhere,
            stall->answer[elsewhere].doing);
}

static void speak(const tutti_comm *comm, bool gives_up)
{
    line l = {.used = 0};
    compose(&l, comm);
    if (gives_up)
        tutti_error(&comm->options.log, "%s; giving up after %.0f s (--stall-abort)", l.text,
                    comm->options.stall_abort);
    else tutti_warn(&comm->options.log, "%s", l.text);
}

static void judge(tutti_comm *comm, double waited, double now)
{
    tutti_stall *const stall = comm->stall;
    const double limit = comm->options.stall_abort;
    const bool gives_up = limit > 0 && waited >= limit;
    if (speaker(comm) == comm->rank) speak(comm, gives_up);
    else if (gives_up && now - stall->asked < (PATIENCE + 2) * stall->grace)
        return; /* the one that speaks ends the job */
    if (gives_up)
        tutti_transport_abort(comm->engine.transport, tutti_status_exit_code(TUTTI_STALL));
    stall->asked = 0;
    stall->next_warning = 2 * waited;
    if (limit > 0 && stall->next_warning > limit) stall->next_warning = limit;
}

static double patience(const tutti_comm *comm)
{
    return comm->stall->grace * (is_settled(comm) ? 1 : PATIENCE);
}

void tutti_stall_watch(tutti_comm *comm)
{
    tutti_stall *const stall = comm->stall;
    const double now = tutti_engine_now(&comm->engine);
    if (!stall || comm->size == 1 || now - stall->looked < LOOK_EVERY) return;
    stall->looked = now;
    read_notes(comm, now);
    const halt h = my_halt(comm);
    const double waited = h.since ? now - h.since : 0;
    if (stall->first <= 0 || waited < stall->first) {
        stall->asked = 0;
        stall->next_warning = stall->first;
    } else if (!stall->asked && waited >= stall->next_warning) {
        ask_everybody(comm, now);
    } else if (stall->asked && now - stall->asked > patience(comm)) {
        judge(comm, waited, now);
    }
}
