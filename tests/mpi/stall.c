/* A job in which one rank misbehaves; tests/mpi/stall looks at what the user sees.
 *
 *   stall HOW RANK WARN ABORT [common]
 *                                  HOW: stop (SIGSTOP itself), late (sleeps 2.5 x WARN), kill
 *                                  (SIGKILL itself), fail (agrees on a failure), abort,
 *                                  halfway (fails to create what the others do), none;
 *                                  common: without messages, in common memory
 *
 * With TUTTI_TEST_SHORT=N the N-th allocation and all that follow fail on rank 1. */
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "comm/comm.h"

enum { STEPS = 5, BAD_STEP = 3, COUNT = 100000 };

void *__real_aligned_alloc(size_t align, size_t bytes);
void *__wrap_aligned_alloc(size_t align, size_t bytes);

void *__wrap_aligned_alloc(size_t align, size_t bytes)
{
    static atomic_int count;
    const char *rank = getenv("OMPI_COMM_WORLD_RANK"), *limit = getenv("TUTTI_TEST_SHORT");
    if (!rank) rank = getenv("PMI_RANK");
    const bool is_short = limit && rank && atoi(rank) == 1;
    if (is_short && atomic_fetch_add(&count, 1) + 1 >= atoi(limit)) return NULL;
    return __real_aligned_alloc(align, bytes);
}

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

typedef struct buffers {
    tutti_common *common;
    float *partial, *whole;
} buffers;

static tutti_status take_buffers(buffers *b, tutti_comm *comm, bool in_common)
{
    const size_t bytes = COUNT * sizeof(float);
    if (in_common) {
        TUTTI_TRY(tutti_common_create(&b->common, comm, bytes, bytes));
        if (!b->common) return tutti_fail(TUTTI_UNSUPPORTED, "no common memory");
        b->partial = tutti_common_own(b->common);
        b->whole = tutti_common_whole(b->common);
        return TUTTI_OK;
    }
    TUTTI_TRY(tutti_alloc(&b->partial, COUNT, sizeof(float)));
    return tutti_alloc(&b->whole, COUNT, sizeof(float));
}

int main(int argc, char **argv)
{
    if (argc < 5) return 2;
    tutti_comm *comm = NULL;
    tutti_exchange *fc6 = NULL;
    buffers b = {.common = NULL};
    tutti_comm_options options = tutti_comm_defaults();
    options.log = tutti_log_stderr(TUTTI_LOG_WARNING);
    options.stall_warn = atof(argv[3]);
    options.stall_abort = atof(argv[4]);
    tutti_status s = tutti_comm_open(&comm, &options);
    if (s != TUTTI_OK) return give_up(comm, s);
    if (s == TUTTI_OK) s = take_buffers(&b, comm, argc > 5 && !strcmp(argv[5], "common"));
    const tutti_exchange_spec spec = {.name = "fc6",
                                      .count = COUNT,
                                      .leaves = comm ? tutti_comm_size(comm) : 1,
                                      .partials = &b.partial,
                                      .whole = b.whole,
                                      .common = b.common};
    const bool fails = !strcmp(argv[1], "halfway") && tutti_comm_rank(comm) == atoi(argv[2]);
    if (fails) s = tutti_fail(TUTTI_MEMORY, "no memory for fc6");
    else if (s == TUTTI_OK) s = tutti_exchange_create(&fc6, comm, &spec);
    s = tutti_comm_agree(comm, s);
    if (s == TUTTI_OK) s = run(comm, fc6, argv[1], atoi(argv[2]), options.stall_warn);
    tutti_exchange_destroy(&fc6);
    if (!b.common) {
        tutti_free(b.partial);
        tutti_free(b.whole);
    }
    s = tutti_comm_survive(comm, s);
    if (s != TUTTI_OK) return give_up(comm, s);
    tutti_comm_close(&comm);
    return 0;
}
