/* Inside MPI_Init nobody can ask the others what they are doing, as comm/stall.c does: what is
 * known is the rank that the launcher gave to the environment, and the processes of this host.
 * Where one of them is stopped the first of the others says so; elsewhere ranks 0 and 1 speak, one
 * of which is not the one that is waited for. */
#include "comm/outlast.h"

#include <stdio.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "comm/process.h"

#define LOOK_EVERY   0.1
#define TIME_TO_READ 2 /* seconds between those that speak and those that only end */

typedef struct wait {
    const tutti_comm *comm;
    const char *call;
    double seconds, next_warning;
    tutti_siblings siblings; /* as they were before the launcher began to end them */
} wait;

static bool speaks(const tutti_comm *comm, const tutti_siblings *siblings)
{
    return siblings->stopped ? siblings->lowest == (int)getpid() : comm->launch.rank < 2;
}

static void look_around(wait *w)
{
    const tutti_siblings now = tutti_process_siblings();
    if (now.stopped || !w->siblings.stopped) w->siblings = now;
}

static bool say(wait *w, bool gives_up)
{
    char why[160], end[80] = "";
    const tutti_log *const log = &w->comm->options.log;
    look_around(w);
    if (!speaks(w->comm, &w->siblings)) return false;
    char host[64] = "?";
    gethostname(host, sizeof host - 1);
    if (w->siblings.stopped)
        snprintf(why, sizeof why, "process %d on host %.63s is stopped", w->siblings.stopped, host);
    else
        snprintf(why, sizeof why,
                 "one has not started, is stopped or cannot be reached from host %.63s", host);
    if (gives_up)
        snprintf(end, sizeof end, "; giving up after %.0f s (--stall-abort)",
                 w->comm->options.stall_abort);
    tutti_log_line(log, gives_up ? TUTTI_LOG_ERROR : TUTTI_LOG_WARNING,
                   "waiting in %s for the other ranks (%.0f s): %s%s", w->call, w->seconds, why,
                   end);
    return true;
}

static void judge(wait *w)
{
    const tutti_comm_options *const o = &w->comm->options;
    if (o->stall_abort > 0 && w->seconds >= o->stall_abort) {
        if (!say(w, true) && w->seconds < o->stall_abort + TIME_TO_READ) return;
        tutti_process_end_launcher_soon();
        _exit(tutti_status_exit_code(TUTTI_STALL));
    } else if (w->next_warning > 0 && w->seconds >= w->next_warning) {
        say(w, false);
        w->next_warning = 2 * w->seconds;
    }
}

void tutti_outlast(tutti_comm *comm, const atomic_uint *word, const char *call)
{
    wait w = {.comm = comm, .call = call, .next_warning = comm->options.stall_warn};
    const double begun = tutti_now();
    for (;;) {
        const uint32_t ticket = tutti_bell_look(&comm->engine.finished);
        if (atomic_load(word)) return;
        tutti_bell_sleep(&comm->engine.finished, ticket, LOOK_EVERY);
        w.seconds = tutti_now() - begun;
        judge(&w);
    }
}
