#include "nn/partials.h"

#include "base/memory.h"

int tutti_partials_slots(const tutti_partials *p)
{
    return p->first_slot[p->run_count];
}

void tutti_partials_begin(tutti_partials *p)
{
    for (int r = 0; r < p->run_count; r++) tutti_tree_stack_init(&p->stacks[r], p->leaves);
}

int tutti_partials_push(tutti_partials *p, int run, tutti_subtree root,
                        tutti_partials_sum sums[TUTTI_TREE_LEVELS], int *count)
{
    tutti_tree_stack *stack = &p->stacks[run];
    const int slot = p->first_slot[run] + tutti_tree_push(stack, root);
    int from = TUTTI_PARTIALS_SPARE;
    *count = 0;
    while (tutti_tree_join(stack)) {
        const int to = p->first_slot[run] + stack->depth - 1;
        sums[(*count)++] = (tutti_partials_sum){to, from};
        from = to;
    }
    return *count ? TUTTI_PARTIALS_SPARE : slot;
}

/* ---- making ---- */

/* Goes through all passes of a run; returns how many slots it needs. */
static int rehearse(tutti_partials *p, int run, const int *cuts, int passes)
{
    int most = 0;
    for (int pass = 0; pass < passes; pass++) {
        tutti_subtree roots[TUTTI_TREE_MAX_ROOTS];
        const int count = tutti_tree_roots(roots, p->leaves, cuts[pass], cuts[pass + 1]);
        for (int i = 0; i < count; i++) {
            tutti_partials_sum sums[TUTTI_TREE_LEVELS];
            int joins;
            tutti_partials_push(p, run, roots[i], sums, &joins);
            if (p->stacks[run].depth > most) most = p->stacks[run].depth;
        }
    }
    return most;
}

/* What the runs hold in the end, joined. */
static void join_runs(tutti_partials *p)
{
    tutti_tree_stack all;
    tutti_tree_stack_init(&all, p->leaves);
    for (int r = 0; r < p->run_count; r++)
        for (int i = 0; i < p->stacks[r].depth; i++) {
            p->slots[tutti_tree_push(&all, p->stacks[r].subtree[i])] = p->first_slot[r] + i;
            while (tutti_tree_join(&all))
                p->last[p->last_count++] =
                    (tutti_partials_sum){p->slots[all.depth - 1], p->slots[all.depth]};
        }
    p->root_count = all.depth;
    for (int i = 0; i < all.depth; i++) p->roots[i] = all.subtree[i];
}

static tutti_status fill(tutti_partials *p, const int *const *cuts, int passes)
{
    TUTTI_TRY(tutti_alloc(&p->stacks, (size_t)p->run_count, sizeof *p->stacks));
    TUTTI_TRY(tutti_alloc(&p->first_slot, (size_t)p->run_count + 1, sizeof *p->first_slot));
    tutti_partials_begin(p);
    for (int r = 0; r < p->run_count; r++)
        p->first_slot[r + 1] = p->first_slot[r] + rehearse(p, r, cuts[r], passes);
    TUTTI_TRY(tutti_alloc(&p->last, (size_t)tutti_partials_slots(p), sizeof *p->last));
    join_runs(p);
    return TUTTI_OK;
}

tutti_status tutti_partials_init(tutti_partials *out, int leaves, int run_count,
                                 const int *const *cuts, int passes)
{
    *out = (tutti_partials){.leaves = leaves, .run_count = run_count};
    const tutti_status s = fill(out, cuts, passes);
    if (s != TUTTI_OK) tutti_partials_deinit(out);
    return s;
}

void tutti_partials_deinit(tutti_partials *p)
{
    tutti_free(p->stacks);
    tutti_free(p->first_slot);
    tutti_free(p->last);
    *p = (tutti_partials){0};
}
