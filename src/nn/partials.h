/* Partial gradients over passes: which subtrees of grains are kept where between passes.
 *
 * The gradient is the tree of base/tree.h, whatever the passes. A pass finds roots of its own run
 * of grains; a root that has its left sibling there already is added to it, the sum perhaps to the
 * next one, as in a binary counter:
 *
 *   pass        [01]    [23]          [45]          [67]
 *   kept after  [01]    [0-3]         [0-3] [45]    [0-7]
 *
 * So P passes keep at most about log2(P) partial gradients in slots; a root that is added at once
 * needs no slot, only a spare place while it is computed. Where the grains of a pass are not next
 * to each other, in a split layer whose group's workers each take a piece of their own share, each
 * of these runs has its own slots, and the last pass joins what they hold. */
#ifndef TUTTI_NN_PARTIALS_H
#define TUTTI_NN_PARTIALS_H

#include "base/status.h"
#include "base/tree.h"

enum { TUTTI_PARTIALS_SPARE = -1 }; /* instead of a slot */

/* Slots to be added: to += from. */
typedef struct tutti_partials_sum {
    int to, from;
} tutti_partials_sum;

typedef struct tutti_partials {
    int leaves;
    int run_count;
    tutti_tree_stack *stacks; /* [run_count] what is kept now */
    int *first_slot;          /* [run_count + 1] of each run's; the last is the number of all */
    int root_count;           /* of all runs together, when all is done */
    tutti_subtree roots[TUTTI_TREE_MAX_ROOTS];
    int slots[TUTTI_TREE_MAX_ROOTS]; /* where these are */
    int last_count;
    tutti_partials_sum *last; /* after the last pass: these join the runs, in this order */
} tutti_partials;

/* Run r has, in pass p, the leaves cuts[r][p] .. cuts[r][p+1]-1 of a tree of 'leaves'. */
tutti_status tutti_partials_init(tutti_partials *out, int leaves, int run_count,
                                 const int *const *cuts, int passes) TUTTI_MUST_CHECK;
void tutti_partials_deinit(tutti_partials *partials); /* all zero is fine; leaves it so */
int tutti_partials_slots(const tutti_partials *partials);

/* A step: forget what was kept; then, for each pass and run, push its roots in their order. */
void tutti_partials_begin(tutti_partials *partials);

/* Returns where to compute the root, a slot or the spare place, and what to add then. */
int tutti_partials_push(tutti_partials *partials, int run, tutti_subtree root,
                        tutti_partials_sum sums[TUTTI_TREE_LEVELS], int *count);

#endif
