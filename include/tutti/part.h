/* The two primitives of synchronous SGD by themselves, for programs that have gradients and an
 * update of their own: a buffer of floats is cut into one strip for each rank;
 *
 *   part-reduce      every rank starts with terms of a sum of whole buffers and ends with its strip
 *                    of the total (MPI's reduce-scatter);
 *   part-broadcast   every rank starts with its strip and ends with the whole buffer (allgather).
 *
 * They run behind the caller's computing, the most urgent first, and a part is created once and
 * started as often as wanted:
 *
 *     tutti_part_reduce_create(&sum, ranks, &(tutti_part_options){.count = n, .terms = 32});
 *     tutti_part_broadcast_create(&spread, ranks, weights, &(tutti_part_options){.count = n});
 *     tutti_part_share(sum, &first, &end);
 *     for (int step = 0; step < steps; step++) {
 *         for (int t = first; t < end; t++) gradient_of(t, weights, tutti_part_term(sum));
 *         tutti_part_start(sum);
 *         ... compute what does not need it ...
 *         tutti_part_wait(sum);
 *         const float *total = tutti_part_strip(sum, &begin, &stop);
 *         for (size_t i = begin; i < stop; i++) weights[i] -= rate * total[i - begin];
 *         tutti_part_start(spread);
 *         tutti_part_wait(spread);
 *     }
 *
 * The same bits on any number of ranks: the sum has a fixed number of terms, whoever computes them,
 * and one order, a binary tree over the terms: ((0+1)+(2+3))+((4+5)+(6+7)). Nothing is ever added
 * in the order of arrival. */
#ifndef TUTTI_PART_H
#define TUTTI_PART_H

#include <stdbool.h>
#include <stddef.h>

#include <tutti/ranks.h>
#include <tutti/status.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tutti_part tutti_part;

typedef struct tutti_part_options {
    const char *name; /* in sentences; copied; NULL: "part" */
    size_t count;     /* floats of the whole buffer, on all ranks the same */
    /* Rank r owns floats cuts[r] .. cuts[r+1]-1, the same on all ranks; copied. NULL: even strips,
     * cut at multiples of 16 floats, for equal counts the same in every part. */
    const size_t *cuts;
    int terms;    /* of a part-reduce's sum, at least the number of ranks; 0: one a rank */
    int priority; /* the lowest is served first; equal ones in the order of starting */
} tutti_part_options;

/* Collective. All ranks create the same parts in the same order. Gives *out to the caller, who
 * gives it to tutti_part_destroy; the ranks are borrowed and must outlive it. */
TUTTI_API tutti_status tutti_part_reduce_create(tutti_part **out, tutti_ranks *ranks,
                                                const tutti_part_options *options) TUTTI_MUST_CHECK;

/* Collective. 'whole' are 'count' floats of the caller's, borrowed as long as the part lasts. */
TUTTI_API tutti_status tutti_part_broadcast_create(tutti_part **out, tutti_ranks *ranks,
                                                   float *whole, const tutti_part_options *options)
    TUTTI_MUST_CHECK;
TUTTI_API void tutti_part_destroy(tutti_part **part); /* not under way; NULL inside is fine */

/* The terms that this rank brings: first .. end-1. */
TUTTI_API void tutti_part_share(const tutti_part *part, int *first, int *end);

/* Where this rank's next term goes, in the order first .. end-1: 'count' floats to be written
 * before the next call with this part. What stands there is no matter. NULL once all terms of this
 * start were asked for. */
TUTTI_API float *tutti_part_term(tutti_part *part);

/* Submits and returns at once: TUTTI_ARGUMENT unless all terms are there. Until it is done its
 * buffers must be left alone. */
TUTTI_API tutti_status tutti_part_start(tutti_part *part) TUTTI_MUST_CHECK;

/* Returns when it is done on this rank, or communication has failed. Ranks wait for their parts in
 * the same order. */
TUTTI_API tutti_status tutti_part_wait(tutti_part *part) TUTTI_MUST_CHECK;
TUTTI_API bool tutti_part_is_done(const tutti_part *part);

/* This rank's strip: floats *begin .. *end-1 of the buffer, of which the first is at the address
 * returned. Of a part-reduce that is the total, valid until its next term or start. */
TUTTI_API float *tutti_part_strip(const tutti_part *part, size_t *begin, size_t *end);

#ifdef __cplusplus
}
#endif
#endif
