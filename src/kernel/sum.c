/* Sums in the one order: the tree over given subtrees, and the tree of squares of an array.
 *
 * The squares of a part of an array are cut into aligned subtrees, of one size where the part is
 * large. Threads share the subtrees; the caller joins them. As all belong to the one tree, their
 * size has no influence on the bits. */
#include <string.h>

#include "kernel/ops_kernels.h"
#include "kernel/work.h"

void tutti_sum_init(tutti_sum *sum, int leaves)
{
    tutti_tree_stack_init(&sum->stack, leaves);
}

void tutti_sum_add(tutti_sum *sum, tutti_subtree root, double value)
{
    sum->value[tutti_tree_push(&sum->stack, root)] = value;
    while (tutti_tree_join(&sum->stack))
        sum->value[sum->stack.depth - 1] += sum->value[sum->stack.depth];
}

double tutti_sum_value(const tutti_sum *sum)
{
    return sum->stack.depth ? sum->value[0] : 0.0;
}

double tutti_grain_loss(int samples, const float *loss)
{
    double sum = 0.0;
    for (int i = 0; i < samples; i++) sum += loss[i];
    return sum;
}

/* ---- squares ---- */

enum {
    PIECE_LEVEL = 9, /* 2^9 leaves are added up at a time */
    MAX_SUBTREES = 1024
};

typedef struct squares {
    tutti_squares_fn *kernel;
    size_t count, begin; /* floats of the whole array; first float of x */
    const float *x;
    int level, subtrees;
    tutti_subtree subtree[MAX_SUBTREES];
    double sum[MAX_SUBTREES];
} squares;

/* Sums of groups from leaf 'first' on, up to leaf end-1, which may not be full. Returns the
 * number of groups. What the last one lacks is zero, and adds nothing. */
static size_t group_sums(const squares *s, size_t first, size_t end, double *sums)
{
    const float *x = s->x + (first * TUTTI_BLOCK - s->begin);
    const size_t floats = end * TUTTI_BLOCK < s->count ? end * TUTTI_BLOCK : s->count;
    const size_t count = floats - first * TUTTI_BLOCK, groups = count / TUTTI_SQUARE_GROUP;
    const size_t rest = count % TUTTI_SQUARE_GROUP;
    s->kernel(groups, x, sums);
    if (!rest) return groups;
    float last[TUTTI_SQUARE_GROUP] = {0};
    memcpy(last, x + groups * TUTTI_SQUARE_GROUP, rest * sizeof *last);
    s->kernel(1, last, sums + groups);
    return groups + 1;
}

/* Neighbours pairwise, level by level; an odd last one passes up. */
static double pairwise(double *sums, size_t count)
{
    for (; count > 1; count = (count + 1) / 2) {
        for (size_t i = 0; i < count / 2; i++) sums[i] = sums[2 * i] + sums[2 * i + 1];
        if (count % 2) sums[count / 2] = sums[count - 1];
    }
    return sums[0];
}

static double sum_of_subtree(const squares *s, int level, size_t index)
{
    const size_t leaves = (size_t)tutti_square_leaves(s->count), first = index << level;
    if (level > PIECE_LEVEL) {
        const double left = sum_of_subtree(s, level - 1, 2 * index);
        const bool has_right = (2 * index + 1) << (level - 1) < leaves;
        return has_right ? left + sum_of_subtree(s, level - 1, 2 * index + 1) : left;
    }
    double sums[1 << PIECE_LEVEL];
    const size_t end = (index + 1) << level;
    return pairwise(sums, group_sums(s, first, end < leaves ? end : leaves, sums));
}

static void squares_share(void *arg, int thread, int threads)
{
    squares *s = arg;
    const tutti_range mine = tutti_range_of((size_t)s->subtrees, threads, thread);
    for (size_t i = mine.begin; i < mine.end; i++)
        s->sum[i] = sum_of_subtree(s, s->subtree[i].level, (size_t)s->subtree[i].index);
}

/* Appends the subtrees of a root. */
static void cut_root(squares *s, tutti_subtree root)
{
    const size_t leaves = (size_t)tutti_square_leaves(s->count);
    const int down = root.level > s->level ? root.level - s->level : 0;
    for (int i = 0; i < 1 << down; i++) {
        const tutti_subtree subtree = {root.level - down, (root.index << down) + i};
        if ((size_t)subtree.index << subtree.level < leaves) s->subtree[s->subtrees++] = subtree;
    }
}

static double joined(const squares *s, int begin, int end)
{
    tutti_sum sum;
    tutti_sum_init(&sum, tutti_square_leaves(s->count));
    for (int i = begin; i < end; i++) tutti_sum_add(&sum, s->subtree[i], s->sum[i]);
    return tutti_sum_value(&sum);
}

int tutti_square_roots(tutti_exec exec, size_t count, tutti_range part, const float *x,
                       tutti_subtree roots[TUTTI_TREE_MAX_ROOTS], double sums[TUTTI_TREE_MAX_ROOTS])
{
    squares s = {.kernel = exec.row->ops->squares, .count = count, .begin = part.begin, .x = x};
    const int leaves = tutti_square_leaves(count);
    const int first = (int)(part.begin / TUTTI_BLOCK), last = tutti_square_leaves(part.end);
    const int found = tutti_tree_roots(roots, leaves, first, last);

    /* of at least a piece, and half of MAX_SUBTREES of them: the rest is for small roots */
    s.level = PIECE_LEVEL;
    while ((last - first) >> s.level > MAX_SUBTREES / 2) s.level++;
    int behind[TUTTI_TREE_MAX_ROOTS + 1] = {0};
    for (int i = 0; i < found; i++) {
        cut_root(&s, roots[i]);
        behind[i + 1] = s.subtrees;
    }
    tutti_team_run(tutti_team_for(exec.team, tutti_range_length(part)), squares_share, &s);
    for (int i = 0; i < found; i++) sums[i] = joined(&s, behind[i], behind[i + 1]);
    return found;
}

double tutti_square_sum(tutti_exec exec, size_t count, const float *x)
{
    tutti_subtree root[TUTTI_TREE_MAX_ROOTS];
    double sum[TUTTI_TREE_MAX_ROOTS];
    return tutti_square_roots(exec, count, (tutti_range){0, count}, x, root, sum) ? sum[0] : 0.0;
}
