/* The one order of addition.
 *
 * Floating-point sums over samples, and over output features that may be split over ranks, have
 * one order, whoever adds. The terms are the leaves of a binary tree in index order; neighbours
 * are added pairwise, level by level, and an odd last one passes up unchanged:
 *
 *   8 leaves   ((01)(23))((45)(67))         7 leaves   ((01)(23))((45)6)
 *
 * A rank that owns a run of consecutive leaves adds up the subtrees it owns completely and sends
 * their roots; whoever owns the result joins the roots in tree order, never in order of arrival:
 *
 *   leaves    0 1 2 3 4 5 6 7
 *   2 ranks   0 . . . 1 . . .     sends   [0-3]     |  [4-7]
 *   3 ranks   0 . 1 . . 2 . .     sends   [01]  |  [23] [4]  |  [5] [67]
 *
 * So the bits do not depend on the number of ranks. The cost is one root per rank when ranks and
 * leaves are powers of two, at most 2 log2(leaves per rank) roots otherwise. */
#ifndef TUTTI_BASE_TREE_H
#define TUTTI_BASE_TREE_H

#include <stdbool.h>

#include "base/share.h"

enum { TUTTI_TREE_LEVELS = 32, TUTTI_TREE_MAX_ROOTS = 2 * TUTTI_TREE_LEVELS };

/* A subtree: leaves index<<level up to, not including, min((index+1)<<level, leaves). */
typedef struct tutti_subtree {
    int level, index;
} tutti_subtree;

/* The number of levels above the leaves: ceil(log2(leaves)). */
int tutti_tree_height(int leaves);

/* The largest complete subtrees of a tree of 'leaves' leaves that make up leaves first .. end-1,
 * in index order. Returns their number, at most TUTTI_TREE_MAX_ROOTS; 0 when the run is empty. */
int tutti_tree_roots(tutti_subtree roots[TUTTI_TREE_MAX_ROOTS], int leaves, int first, int end);

/* Adds leaf after leaf with a stack of partial sums, like a binary counter: after leaf i (0-based)
 * arrives, the top of the stack is joined with the one below it tutti_tree_joins(i) times. When
 * all have arrived, what is left is joined from the top down until one remains. */
static inline int tutti_tree_joins(int leaf)
{
    return __builtin_ctz(~(unsigned)leaf);
}

/* The stack for joining given roots in index order: the two on top are joined when they are
 * siblings, or when the right one is the odd last one of its level. */
typedef struct tutti_tree_stack {
    int leaves, depth;
    tutti_subtree subtree[TUTTI_TREE_MAX_ROOTS];
} tutti_tree_stack;

void tutti_tree_stack_init(tutti_tree_stack *stack, int leaves);

/* Puts a root on the stack and returns its place. */
int tutti_tree_push(tutti_tree_stack *stack, tutti_subtree root);

/* If the two on top are to be added now (below += top), drops the top and returns true. */
bool tutti_tree_join(tutti_tree_stack *stack);

#endif
