/* The small collectives: blocking, built from exchanges of bytes, so that they, too, go through the
 * engine, can be named when a rank does not arrive, and never stop other messages. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "comm/agree.h"
#include "kernel/table.h"

enum {
    SENTENCE_BYTES = 1024, /* as many as a message has */
    CLOCK_TRIES = 8,
    LIST_BYTES = 120,
    VALUE_BYTES = 48
};

/* Everybody's status and sentence, made once: an agreement may be part of every step; and when one
 * fails there may be no memory left, or ranks that have not created the same exchanges. */
struct tutti_agreement {
    tutti_exchange *x, *telling;
    int32_t *status;
    char (*said)[SENTENCE_BYTES];
    tutti_status failure; /* of the lowest rank that failed in the last one */
};

static tutti_status even_cuts(size_t **out, int members, size_t bytes)
{
    TUTTI_TRY(tutti_alloc(out, (size_t)members + 1, sizeof **out));
    for (int i = 0; i <= members; i++) (*out)[i] = (size_t)i * bytes;
    return TUTTI_OK;
}

static tutti_status create_gather(tutti_exchange **out, tutti_comm *comm, const char *name,
                                  size_t bytes, void *all)
{
    size_t *cuts = NULL;
    tutti_status s = even_cuts(&cuts, comm->size, bytes);
    if (s == TUTTI_OK) s = tutti_exchange_create_bytes(out, comm, name, NULL, cuts, all);
    tutti_free(cuts);
    return s;
}

static tutti_status gather(tutti_comm *comm, const char *name, const void *mine, size_t bytes,
                           void *all)
{
    tutti_exchange *x = NULL;
    TUTTI_TRY(create_gather(&x, comm, name, bytes, all));
    memcpy((char *)all + (size_t)comm->rank * bytes, mine, bytes);
    const tutti_status s = tutti_exchange_run(x);
    tutti_exchange_destroy(&x);
    return s;
}

tutti_status tutti_comm_allgather(tutti_comm *comm, const void *mine, size_t bytes, void *all)
{
    return gather(comm, "an allgather", mine, bytes, all);
}

tutti_status tutti_comm_broadcast(tutti_comm *comm, int root, void *data, size_t bytes)
{
    size_t *cuts = NULL;
    tutti_exchange *x = NULL;
    tutti_status s = even_cuts(&cuts, comm->size, 0);
    if (s != TUTTI_OK) return s;
    for (int i = root + 1; i <= comm->size; i++) cuts[i] = bytes;
    s = tutti_exchange_create_bytes(&x, comm, "a broadcast", NULL, cuts, data);
    if (s == TUTTI_OK) s = tutti_exchange_run(x);
    tutti_exchange_destroy(&x);
    tutti_free(cuts);
    return s;
}

/* --- agreement --- */

void tutti_agreement_destroy(tutti_agreement **agreement)
{
    if (!*agreement) return;
    tutti_exchange_destroy(&(*agreement)->telling);
    tutti_exchange_destroy(&(*agreement)->x);
    tutti_free((*agreement)->status);
    tutti_free((*agreement)->said);
    tutti_free(*agreement);
    *agreement = NULL;
}

tutti_status tutti_agreement_create(tutti_agreement **out, tutti_comm *comm)
{
    tutti_agreement *a = NULL;
    TUTTI_TRY(tutti_alloc(&a, 1, sizeof *a));
    tutti_status s = tutti_alloc(&a->status, (size_t)comm->size, sizeof *a->status);
    if (s == TUTTI_OK) s = tutti_alloc(&a->said, (size_t)comm->size, sizeof *a->said);
    if (s == TUTTI_OK) s = create_gather(&a->x, comm, "an agreement", sizeof *a->status, a->status);
    if (s == TUTTI_OK)
        s = create_gather(&a->telling, comm, "telling a failure", sizeof *a->said, a->said);
    if (s != TUTTI_OK) tutti_agreement_destroy(&a);
    *out = a;
    return s;
}

/* The sentence of a rank that failed becomes everybody's; a rank that failed, too, keeps its
 * own. */
static tutti_status pass_on(tutti_comm *comm, int failed, tutti_status mine, const char *sentence)
{
    tutti_agreement *const a = comm->agreement;
    snprintf(a->said[comm->rank], sizeof a->said[comm->rank], "%s", sentence);
    TUTTI_TRY(tutti_exchange_run(a->telling));
    if (mine != TUTTI_OK) return tutti_fail(mine, "%s", sentence);
    return tutti_fail_peer((tutti_status)a->status[failed], "rank %d (host %s, pid %d): %s", failed,
                           tutti_comm_host(comm, failed), tutti_comm_pid(comm, failed),
                           a->said[failed]);
}

tutti_status tutti_comm_agree(tutti_comm *comm, tutti_status mine)
{
    tutti_agreement *const a = comm->agreement;
    char sentence[SENTENCE_BYTES] = "";
    if (mine != TUTTI_OK) snprintf(sentence, sizeof sentence, "%s", tutti_message());
    a->status[comm->rank] = (int32_t)mine;
    a->failure = TUTTI_OK;
    TUTTI_TRY(tutti_exchange_run(a->x));
    for (int r = 0; r < comm->size; r++)
        if (a->status[r] != TUTTI_OK) {
            a->failure = (tutti_status)a->status[r];
            return pass_on(comm, r, mine, sentence);
        }
    return TUTTI_OK;
}

tutti_status tutti_comm_failure(const tutti_comm *comm)
{
    return comm->agreement->failure;
}

tutti_status tutti_comm_barrier(tutti_comm *comm)
{
    return tutti_comm_agree(comm, TUTTI_OK);
}

/* --- the same on all ranks --- */

typedef struct value {
    char text[VALUE_BYTES];
} value;

static bool same(const value *a, const value *b)
{
    return memcmp(a, b, sizeof *a) == 0;
}

/* "0-2, 5": the ranks that hold 'wanted'. */
static void list_ranks(char *text, size_t bytes, const value *values, int size, const value *wanted)
{
    size_t used = 0;
    for (int r = 0; r < size && used + 32 < bytes; r++) {
        if (!same(&values[r], wanted)) continue;
        int last = r;
        while (last + 1 < size && same(&values[last + 1], wanted)) last++;
        const char *comma = used ? ", " : "";
        used += (size_t)(last > r ? snprintf(text + used, bytes - used, "%s%d-%d", comma, r, last)
                                  : snprintf(text + used, bytes - used, "%s%d", comma, r));
        r = last;
    }
}

static tutti_status compare(const tutti_comm *comm, const char *what, const value *values)
{
    int other = 0;
    while (other < comm->size && same(&values[other], &values[0])) other++;
    if (other == comm->size) return TUTTI_OK;
    char first[LIST_BYTES], second[LIST_BYTES];
    list_ranks(first, sizeof first, values, comm->size, &values[0]);
    list_ranks(second, sizeof second, values, comm->size, &values[other]);
    return tutti_fail(TUTTI_MISMATCH,
                      "%s is not the same on all ranks: rank %s (host %s) has "
                      "%s, rank %s (host "
                      "%s) has %s",
                      what, first, tutti_comm_host(comm, 0), values[0].text, second,
                      tutti_comm_host(comm, other), values[other].text);
}

tutti_status tutti_comm_check_same_text(tutti_comm *comm, const char *what, const char *text)
{
    value *values = NULL, mine = {{0}};
    snprintf(mine.text, sizeof mine.text, "%s", text);
    TUTTI_TRY(tutti_alloc(&values, (size_t)comm->size, sizeof *values));
    tutti_status s = gather(comm, what, &mine, sizeof mine, values);
    if (s == TUTTI_OK) s = compare(comm, what, values);
    tutti_free(values);
    return s;
}

tutti_status tutti_comm_check_same(tutti_comm *comm, const char *what, uint64_t number)
{
    char text[VALUE_BYTES];
    snprintf(text, sizeof text, "%016" PRIx64, number);
    return tutti_comm_check_same_text(comm, what, text);
}

tutti_status tutti_agreement_check_start(tutti_comm *comm, uint64_t build_id)
{
    const tutti_kernels *row = NULL;
    TUTTI_TRY(tutti_comm_agree(comm, tutti_kernels_choose(&row)));
    TUTTI_TRY(tutti_comm_check_same(comm, "the program's build id", build_id));
    return tutti_comm_check_same_text(comm, "the instruction set of the kernels (TUTTI_ISA)",
                                      row->name);
}

/* --- clocks --- */

/* Rank 'other' asks, rank 0 answers with its time; of several tries the quickest is the truest. */
static tutti_status measure_offset(tutti_comm *comm, int other, tutti_exchange *ask,
                                   tutti_exchange *answer, double *time, double *offset)
{
    double quickest = 1e30;
    for (int i = 0; i < CLOCK_TRIES; i++) {
        const double begin = tutti_engine_now(&comm->engine);
        TUTTI_TRY(tutti_exchange_run(ask));
        if (comm->rank == 0) *time = tutti_engine_now(&comm->engine);
        TUTTI_TRY(tutti_exchange_run(answer));
        const double end = tutti_engine_now(&comm->engine);
        if (comm->rank != other || end - begin >= quickest) continue;
        quickest = end - begin;
        *offset = *time - (begin + end) / 2;
    }
    return TUTTI_OK;
}

static tutti_status pair_offset(tutti_comm *comm, int other, double *offset)
{
    int members[2] = {0, other};
    const tutti_group pair = {comm->rank != 0, 2, members};
    const size_t from_other[] = {0, 0, 1}, from_zero[] = {0, sizeof(double), sizeof(double)};
    tutti_exchange *ask = NULL, *answer = NULL;
    double time = 0;
    char mark = 0;
    tutti_status s =
        tutti_exchange_create_bytes(&ask, comm, "the clocks", &pair, from_other, &mark);
    if (s == TUTTI_OK)
        s = tutti_exchange_create_bytes(&answer, comm, "the clocks", &pair, from_zero, &time);
    if (s == TUTTI_OK) s = measure_offset(comm, other, ask, answer, &time, offset);
    tutti_exchange_destroy(&answer);
    tutti_exchange_destroy(&ask);
    return s;
}

tutti_status tutti_comm_clock_offsets(tutti_comm *comm, double *offsets)
{
    double mine = 0;
    tutti_status s = TUTTI_OK;
    for (int other = 1; other < comm->size && s == TUTTI_OK; other++)
        if (comm->rank == 0 || comm->rank == other) s = pair_offset(comm, other, &mine);
    TUTTI_TRY(s);
    return tutti_comm_allgather(comm, &mine, sizeof mine, offsets);
}
