/* What the tests of sums share: a rank that checks, values, and a sum to do. */
#ifndef TUTTI_TESTS_MPI_SUMS_H
#define TUTTI_TESTS_MPI_SUMS_H

#include <stdint.h>
#include <stdio.h>

#include "comm/comm.h"

typedef struct tester {
    tutti_comm *comm;
    int rank, size;
    uint64_t seed;
    uint64_t draws; /* of this rank's own delays */
} tester;

#define CHECK(condition, ...)                                                                 \
    do {                                                                                      \
        if (condition) break;                                                                 \
        fprintf(stderr, "FAIL %s:%d: rank %d of %d: ", __FILE__, __LINE__, t->rank, t->size); \
        fprintf(stderr, __VA_ARGS__);                                                         \
        fprintf(stderr, "   [again: mpirun -n %d %s %llu]\n", t->size, "tests/mpi/bits",      \
                (unsigned long long)t->seed);                                                 \
        tutti_comm_abort(t->comm, TUTTI_DATA);                                                \
    } while (0)
#define MUST(call)                                                    \
    do {                                                              \
        const tutti_status status_ = (call);                          \
        CHECK(status_ == TUTTI_OK, "%s: %s", #call, tutti_message()); \
    } while (0)

float *floats(tester *t, size_t count);

/* A float of any sign and many magnitudes; what it is depends on leaf and index alone. */
float value_of(uint64_t seed, int leaf, size_t index);

/* Now and then this rank is late. */
void delay(tester *t);

bool same(float a, float b); /* bit for bit */
void check_whole(tester *t, const char *what, const float *whole, const float *want, size_t count);

/* Leaves of a sum, at least one for each rank. */
int leaves_for(const tester *t);

typedef struct sum_case {
    const tutti_group *group;
    int leaves;
    size_t count;
    float *want;      /* the plain sum */
    float **original; /* this member's partials */
    float **partials;
    int roots;
    bool borrows; /* the partials */
} sum_case;

void sum_case_init(tester *t, sum_case *c, const tutti_group *group, int leaves, size_t count);
void sum_case_deinit(sum_case *c);

/* Common memory from which cases take what they need. */
typedef struct common_room {
    tutti_common *memory;
    float *whole, *own; /* what is left of it */
} common_room;

float *take(float **left, size_t count);
void move_partials(sum_case *c, common_room *room);

/* ---- chains.c ---- */

/* Steps of a net of a few layers; in common memory where 'room' is given. */
void chains(tester *t, common_room *room);

/* The same, and sums without an update, where ranks can share memory. */
void in_common_memory(tester *t, const tutti_comm_options *options);

#endif
