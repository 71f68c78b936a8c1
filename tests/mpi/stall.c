/* A job in which one rank misbehaves; tests/mpi/stall looks at what the user sees.
 *
 *   stall HOW RANK WARN ABORT      HOW: stop (SIGSTOP itself), late (sleeps 2.5 x WARN), kill
 *                                  (SIGKILL itself), fail (agrees on a failure), abort, none   */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "comm/comm.h"

enum { STEPS = 5, BAD_STEP = 3, COUNT = 100000 };

static int give_up(tutti_comm *comm, tutti_status s)
{
    fprintf(stderr, "stall: %s\n", tutti_message());
    tutti_comm_close(&comm);
    return tutti_status_exit_code(s);
}

static tutti_status misbehave(tutti_comm *comm, const char *how, double warn)
{
    if (!strcmp(how, "stop")) raise(SIGSTOP);
    if (!strcmp(how, "late")) usleep((useconds_t)(2.5e6 * warn));
    if (!strcmp(how, "kill")) raise(SIGKILL);
    if (!strcmp(how, "abort")) tutti_comm_abort(comm, TUTTI_DIVERGED);
    return strcmp(how, "fail") ? TUTTI_OK : tutti_fail(TUTTI_IO, "cannot open 'labels.bin'");
}

static tutti_status run(tutti_comm *comm, tutti_exchange *fc6, const char *how, int bad,
                        double warn)
{
    for (int step = 1; step <= STEPS; step++) {
        tutti_status s = TUTTI_OK;
        if (step == BAD_STEP && tutti_comm_rank(comm) == bad) s = misbehave(comm, how, warn);
        if (!strcmp(how, "fail")) TUTTI_TRY(tutti_comm_agree(comm, s));
        TUTTI_TRY(tutti_exchange_run(fc6));
    }
    return TUTTI_OK;
}

int main(int argc, char **argv)
{
    if (argc != 5) return 2;
    tutti_comm *comm = NULL;
    tutti_exchange *fc6 = NULL;
    float *partial = NULL, *whole = NULL;
    tutti_comm_options options = tutti_comm_defaults();
    options.log = tutti_log_stderr(TUTTI_LOG_WARNING);
    options.stall_warn = atof(argv[3]);
    options.stall_abort = atof(argv[4]);
    tutti_status s = tutti_comm_open(&comm, &options);
    if (s == TUTTI_OK) s = tutti_alloc(&partial, COUNT, sizeof *partial);
    if (s == TUTTI_OK) s = tutti_alloc(&whole, COUNT, sizeof *whole);
    const tutti_exchange_spec spec = {.name = "fc6",
                                      .count = COUNT,
                                      .leaves = comm ? tutti_comm_size(comm) : 1,
                                      .partials = &partial,
                                      .whole = whole};
    if (s == TUTTI_OK) s = tutti_exchange_create(&fc6, comm, &spec);
    if (s == TUTTI_OK) s = run(comm, fc6, argv[1], atoi(argv[2]), options.stall_warn);
    tutti_exchange_destroy(&fc6);
    tutti_free(partial);
    tutti_free(whole);
    if (s != TUTTI_OK) return give_up(comm, s);
    tutti_comm_close(&comm);
    return 0;
}
