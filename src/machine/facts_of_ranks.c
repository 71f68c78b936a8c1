/* The doctor's facts about all ranks, known to every rank. */
#include "machine/doctor.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

enum { MOST_THREADS = 1024 }; /* of a team whose cores are compared */

/* What a rank tells the others. */
typedef struct card {
    int team;
    double speed;
    int cores[MOST_THREADS];
} card;

static int host_of(const tutti_comm *comm, int rank)
{
    int first = 0;
    while (strcmp(tutti_comm_host(comm, first), tutti_comm_host(comm, rank))) first++;
    return first;
}

static int threads_of(const card *c)
{
    return c->team < MOST_THREADS ? c->team : MOST_THREADS;
}

static tutti_status seat_everybody(tutti_facts *facts, const tutti_comm *comm, const card *cards,
                                   tutti_seat **out)
{
    int count = 0;
    for (int r = 0; r < facts->all_ranks; r++) count += threads_of(&cards[r]);
    TUTTI_TRY(tutti_alloc(out, (size_t)count, sizeof **out));
    tutti_seat *seat = *out;
    for (int r = 0; r < facts->all_ranks; r++)
        for (int m = 0; m < threads_of(&cards[r]); m++)
            *seat++ = (tutti_seat){r, m, cards[r].cores[m], host_of(comm, r)};
    facts->seats = *out;
    facts->seat_count = count;
    return TUTTI_OK;
}

static void count_host(tutti_facts *facts, const tutti_comm *comm, const card *cards)
{
    facts->ranks = facts->host_threads = 0;
    for (int r = 0; r < facts->all_ranks; r++) {
        if (host_of(comm, r) != host_of(comm, facts->rank)) continue;
        facts->ranks++;
        facts->host_threads += cards[r].team;
    }
}

static int by_speed(const void *a, const void *b)
{
    const double x = ((const card *)a)->speed, y = ((const card *)b)->speed;
    return (x > y) - (x < y);
}

/* Sorts the cards: the last to look at them. */
static void find_slowest(tutti_facts *facts, card *cards)
{
    facts->slow_rank = 0;
    for (int r = 1; r < facts->all_ranks; r++)
        if (cards[r].speed < cards[facts->slow_rank].speed) facts->slow_rank = r;
    facts->slow_speed = cards[facts->slow_rank].speed;
    qsort(cards, (size_t)facts->all_ranks, sizeof *cards, by_speed);
    facts->median_speed = cards[facts->all_ranks / 2].speed;
}

tutti_status tutti_facts_gather(tutti_facts *facts, tutti_comm *comm, const int *cores,
                                tutti_seat **seats)
{
    card *mine = NULL, *all = NULL;
    facts->rank = tutti_comm_rank(comm);
    facts->all_ranks = tutti_comm_size(comm);
    tutti_status s = tutti_alloc(&mine, 1, sizeof *mine);
    if (s == TUTTI_OK) s = tutti_alloc(&all, (size_t)facts->all_ranks, sizeof *all);
    if ((s = tutti_comm_agree(comm, s))) goto out;
    mine->team = facts->team;
    mine->speed = facts->speeds.fma_all;
    memcpy(mine->cores, cores, (size_t)threads_of(mine) * sizeof *cores);
    if ((s = tutti_comm_allgather(comm, mine, sizeof *mine, all))) goto out;
    if ((s = tutti_comm_agree(comm, seat_everybody(facts, comm, all, seats)))) goto out;
    count_host(facts, comm, all);
    find_slowest(facts, all);
out:
    tutti_free(mine);
    tutti_free(all);
    return s;
}
