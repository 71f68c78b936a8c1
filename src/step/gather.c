/* Few doubles of every rank, on all ranks. They travel behind the computing, before any layer. */
#include "base/memory.h"
#include "step/parts.h"

enum { DOUBLES_PER_UNIT = TUTTI_STRIP_UNIT / 2 };

int tutti_gather_roots_most(const tutti_stepper *s)
{
    int most = 0;
    for (int r = 0; r < s->size; r++) {
        const int roots = tutti_exchange_roots(s->options.grains, s->size, r);
        if (roots > most) most = roots;
    }
    return most;
}

tutti_status tutti_gather_create(tutti_gather *g, const tutti_stepper *s, const char *name,
                                 int doubles)
{
    g->stride = tutti_round_up((size_t)doubles, DOUBLES_PER_UNIT);
    TUTTI_TRY(tutti_alloc(&g->all, (size_t)s->size * g->stride, sizeof *g->all));
    if (s->size == 1) return TUTTI_OK;
    TUTTI_TRY(tutti_alloc(&g->cuts, (size_t)s->size + 1, sizeof *g->cuts));
    for (int r = 0; r <= s->size; r++) g->cuts[r] = (size_t)r * g->stride * 2;
    const tutti_exchange_spec spec = {
        .name = name,
        .priority = -1, /* tiny; never behind a layer */
        .count = g->cuts[s->size],
        .cuts = g->cuts,
        .whole = (float *)g->all,
    };
    return tutti_exchange_create(&g->exchange, s->options.comm, &spec);
}

void tutti_gather_destroy(tutti_gather *g)
{
    tutti_exchange_destroy(&g->exchange);
    tutti_free(g->all);
    tutti_free(g->cuts);
    *g = (tutti_gather){0};
}

double *tutti_gather_of(const tutti_gather *g, int rank)
{
    return g->all + (size_t)rank * g->stride;
}

/* The subtrees of grains that a rank has whole. */
static int roots_of(const tutti_stepper *s, int rank, tutti_subtree roots[TUTTI_TREE_MAX_ROOTS])
{
    return tutti_tree_roots(roots, s->options.grains,
                            tutti_share_begin(s->options.grains, s->size, rank),
                            tutti_share_begin(s->options.grains, s->size, rank + 1));
}

void tutti_gather_put_roots(const tutti_stepper *s, const double *leaves, double *out)
{
    tutti_subtree roots[TUTTI_TREE_MAX_ROOTS];
    const int count = roots_of(s, s->rank, roots);
    for (int i = 0, at = 0; i < count; i++) {
        tutti_sum sum;
        tutti_sum_init(&sum, 1 << roots[i].level);
        for (int g = 0; g < 1 << roots[i].level; g++)
            tutti_sum_add(&sum, (tutti_subtree){0, g}, leaves[at++]);
        out[i] = tutti_sum_value(&sum);
    }
}

double tutti_gather_join_roots(const tutti_stepper *s, const tutti_gather *g, int place)
{
    tutti_sum sum;
    tutti_sum_init(&sum, s->options.grains);
    for (int r = 0; r < s->size; r++) {
        tutti_subtree roots[TUTTI_TREE_MAX_ROOTS];
        const int count = roots_of(s, r, roots);
        const double *theirs = tutti_gather_of(g, r) + place;
        for (int i = 0; i < count; i++) tutti_sum_add(&sum, roots[i], theirs[i]);
    }
    return tutti_sum_value(&sum);
}
