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

/* A strip of a split layer has weights and biases that lie apart in the whole layer. */
typedef struct square_list {
    int64_t count;
    square list[2 * TUTTI_TREE_MAX_ROOTS];
} square_list;

/* Elements begin .. end-1 of the region, which are elements at .. of the whole layer. */
static void add_run(tutti_session *s, const tutti_sync *sync, size_t begin, size_t end, size_t at,
                    square_list *out)
{
    tutti_subtree roots[TUTTI_TREE_MAX_ROOTS];
    double sums[TUTTI_TREE_MAX_ROOTS];
    if (begin >= end) return;
    const float *gradient = tutti_model_gradient(s->model, sync->layer, 0) + begin;
    const int count =
        tutti_square_roots(s->options.exec, tutti_layer_floats(s->options.net, sync->layer),
                           (tutti_range){at, at + (end - begin)}, gradient, roots, sums);
    for (int i = 0; i < count; i++) out->list[out->count++] = (square){roots[i], sums[i]};
}

/* What the strip has of each trained parameter. */
static void own_squares(tutti_session *s, const tutti_sync *sync, square_list *out)
{
    const tutti_layer *layer = &s->options.net->layers[sync->layer];
    out->count = 0;
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

static tutti_status layer_squares(tutti_session *s, const tutti_sync *sync, square_list *lists,
                                  square *merged, double *sum)
{
    square_list mine;
    own_squares(s, sync, &mine);
    TUTTI_TRY(tutti_comm_allgather(s->options.comm, &mine, sizeof mine, lists));
    int count = 0;
    for (int r = 0; r < s->size; r++)
        for (int64_t i = 0; i < lists[r].count; i++) merged[count++] = lists[r].list[i];
    *sum = joined(merged, count, tutti_layer_floats(s->options.net, sync->layer));
    return TUTTI_OK;
}

tutti_status tutti_gradient_norm(tutti_session *s, double *norm)
{
    square_list *lists = NULL;
    square *merged = NULL;
    double total = 0, sum = 0;
    const size_t ranks = (size_t)s->size;
    tutti_status status = tutti_alloc(&lists, ranks, sizeof *lists);
    if (status == TUTTI_OK)
        status = tutti_alloc(&merged, 2 * ranks * TUTTI_TREE_MAX_ROOTS, sizeof *merged);
    for (int i = 0; status == TUTTI_OK && i < s->sync_count; i++) {
        status = layer_squares(s, &s->syncs[i], lists, merged, &sum);
        total += sum;
    }
    *norm = sqrt(total);
    tutti_free(lists);
    tutti_free(merged);
    return status;
}
