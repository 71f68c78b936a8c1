#include "base/tree.h"

#include "base/status.h"

int tutti_tree_height(int leaves)
{
    int height = 0;
    while (1 << height < leaves) height++;
    return height;
}

int tutti_tree_roots(tutti_subtree roots[TUTTI_TREE_MAX_ROOTS], int leaves, int first, int end)
{
    const int height = tutti_tree_height(leaves);
    if (end == leaves) end = 1 << height; /* leaves missing at the end are free to join */
    int count = 0;
    for (int at = first; at < end && at < leaves;) {
        int level = 0;
        while (level < height && at % (2 << level) == 0 && at + (2 << level) <= end) level++;
        roots[count++] = (tutti_subtree){level, at >> level};
        at += 1 << level;
    }
    return count;
}

void tutti_tree_stack_init(tutti_tree_stack *stack, int leaves)
{
    stack->leaves = leaves;
    stack->depth = 0;
}

static bool is_last(const tutti_tree_stack *stack, tutti_subtree subtree)
{
    return ((long)subtree.index + 1) << subtree.level >= stack->leaves;
}

/* A last subtree without a sibling passes up until it has one. */
static tutti_subtree passed_up(const tutti_tree_stack *stack, tutti_subtree subtree)
{
    const int height = tutti_tree_height(stack->leaves);
    while (is_last(stack, subtree) && subtree.index % 2 == 0 && subtree.level < height) {
        subtree.index /= 2;
        subtree.level++;
    }
    return subtree;
}

int tutti_tree_push(tutti_tree_stack *stack, tutti_subtree root)
{
    TUTTI_ASSERT(stack->depth < TUTTI_TREE_MAX_ROOTS);
    stack->subtree[stack->depth] = passed_up(stack, root);
    return stack->depth++;
}

bool tutti_tree_join(tutti_tree_stack *stack)
{
    if (stack->depth < 2) return false;
    const tutti_subtree left = stack->subtree[stack->depth - 2],
                        right = stack->subtree[stack->depth - 1];
    if (left.level != right.level || left.index % 2 || right.index != left.index + 1) return false;
    stack->depth--;
    stack->subtree[stack->depth - 1] =
        passed_up(stack, (tutti_subtree){left.level + 1, left.index / 2});
    return true;
}
