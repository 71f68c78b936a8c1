/* The norm of the gradient. A layer's sum of squares is a tree over blocks of 16 floats
 * (tutti_square_roots). Every rank has the strips it owns, as roots of that tree; everybody
 * gathers all roots, brings them into the order of the tree, and joins them. */
#include <math.h>
#include <stdlib.h>

#include "base/memory.h"
#include "step/parts.h"

typedef struct square {
    tutti_subtree root;
    double sum;
} square;

/* Room for what strips have of one layer: parameters of a split layer lie apart in the whole layer,
 * so each has roots of its own. */
typedef struct lists {
    int most;     /* squares of a strip */
    square *own;  /* [1 + most] this rank's; the first one's index is their number */
    square *all;  /* [size][1 + most] */
    square *join; /* [size * most] */
} lists;

/* Elements begin .. end-1 of the region, which are elements at .. of the whole layer. */
static void add_run(tutti_stepper *s, const tutti_sync *sync, size_t begin, size_t end, size_t at,
                    square *out)
{
    tutti_subtree roots[TUTTI_TREE_MAX_ROOTS];
    double sums[TUTTI_TREE_MAX_ROOTS];
    if (begin >= end) return;
    const float *gradient = tutti_model_gradient(s->model, sync->layer, 0) + begin;
    const int count =
        tutti_square_roots(s->options.exec, tutti_layer_trained(s->options.net, sync->layer),
                           (tutti_range){at, at + (end - begin)}, gradient, roots, sums);
    for (int i = 0; i < count; i++) out[++out->root.index] = (square){roots[i], sums[i]};
}

/* What the strip has of each trained parameter. */
static void own_squares(tutti_stepper *s, const tutti_sync *sync, square *out)
{
    const tutti_layer *layer = &s->options.net->layers[sync->layer];
    *out = (square){{0, 0}, 0};
    for (int i = 0; i < layer->param_count; i++) {
        if (s->options.net->params[layer->first_param + i].role != TUTTI_TRAINED) continue;
        const tutti_slice held = tutti_model_slice(s->model, layer->first_param + i);
        const size_t at = held.offset - sync->region.offset;
        const size_t begin = sync->begin > at ? sync->begin : at;
        const size_t end = sync->end < at + held.count ? sync->end : at + held.count;
        add_run(s, sync, begin, end, held.whole_at + (begin - at), out);
    }
}

static int by_place(const void *a, const void *b)
{
    const square *x = a, *y = b;
    const long long left = (long long)x->root.index << x->root.level;
    const long long right = (long long)y->root.index << y->root.level;
    return left < right ? -1 : left > right;
}

static double joined(square *list, int count, size_t floats)
{
    tutti_sum sum;
    qsort(list, (size_t)count, sizeof *list, by_place);
    tutti_sum_init(&sum, tutti_square_leaves(floats));
    for (int i = 0; i < count; i++) tutti_sum_add(&sum, list[i].root, list[i].sum);
    return tutti_sum_value(&sum);
}

static tutti_status layer_squares(tutti_stepper *s, const tutti_sync *sync, const lists *l,
                                  double *sum)
{
    const size_t row = 1 + (size_t)l->most;
    own_squares(s, sync, l->own);
    TUTTI_TRY(tutti_comm_allgather(s->options.comm, l->own, row * sizeof *l->own, l->all));
    int count = 0;
    for (int r = 0; r < s->size; r++) {
        const square *theirs = l->all + (size_t)r * row;
        for (int i = 1; i <= theirs->root.index; i++) l->join[count++] = theirs[i];
    }
    *sum = joined(l->join, count, tutti_layer_trained(s->options.net, sync->layer));
    return TUTTI_OK;
}

static tutti_status make_lists(const tutti_stepper *s, lists *l)
{
    const size_t ranks = (size_t)s->size;
    for (int i = 0; i < s->options.net->layer_count; i++) {
        const int squares = s->options.net->layers[i].param_count * TUTTI_TREE_MAX_ROOTS;
        if (squares > l->most) l->most = squares;
    }
    const size_t row = 1 + (size_t)l->most;
    TUTTI_TRY(tutti_alloc(&l->own, row, sizeof *l->own));
    TUTTI_TRY(tutti_alloc(&l->all, ranks * row, sizeof *l->all));
    return tutti_alloc(&l->join, ranks * row, sizeof *l->join);
}

tutti_status tutti_gradient_norm(tutti_stepper *s, double *norm)
{
    lists l = {0};
    double total = 0, sum = 0;
    tutti_status status = make_lists(s, &l);
    for (int i = 0; status == TUTTI_OK && i < s->sync_count; i++) {
        status = layer_squares(s, &s->syncs[i], &l, &sum);
        total += sum;
    }
    *norm = sqrt(total);
    tutti_free(l.own);
    tutti_free(l.all);
    tutti_free(l.join);
    return status;
}
