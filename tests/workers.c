#include "workers.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/memory.h"

typedef struct worker {
    world *world;
    int number;
} worker;

/* Only a test's own thread can end it. */
static void need(tutti_status s)
{
    if (!s) return;
    fprintf(stderr, "a worker failed: %s\n", tutti_message());
    abort();
}

static void meet(world *w)
{
    pthread_barrier_wait(&w->barrier);
}

/* ---- moves ---- */

static const tutti_move *move_of(const world *w, const tutti_move *mine, int self, int member,
                                 int index)
{
    return tutti_model_move(w->models[self / mine->members * mine->members + member], index);
}

static void gather(world *w, const tutti_move *mine, int self, int index)
{
    for (int m = 0; m < mine->members; m++) {
        const tutti_move *other = move_of(w, mine, self, m, index);
        const size_t at = mine->cuts[m], count = mine->cuts[m + 1] - at;
        if (m != self % mine->members)
            memcpy(mine->whole + at, other->whole + at, count * sizeof(float));
    }
    meet(w);
}

static void reduce(world *w, const tutti_move *mine, int self, int index)
{
    const int own = self % mine->members;
    const size_t at = mine->cuts[own], count = mine->cuts[own + 1] - at;
    float *sum[TUTTI_TREE_MAX_ROOTS];
    tutti_tree_stack tree;
    tutti_tree_stack_init(&tree, mine->leaves);
    for (int m = 0; m < mine->members; m++) {
        tutti_subtree roots[TUTTI_TREE_MAX_ROOTS];
        const int n =
            tutti_tree_roots(roots, mine->leaves, tutti_share_begin(mine->leaves, mine->members, m),
                             tutti_share_begin(mine->leaves, mine->members, m + 1));
        for (int r = 0; r < n; r++) {
            const float *part = move_of(w, mine, self, m, index)->partials[r] + at;
            const int place = tutti_tree_push(&tree, roots[r]);
            need(tutti_alloc(&sum[place], count, sizeof(float)));
            memcpy(sum[place], part, count * sizeof(float));
            while (tutti_tree_join(&tree)) {
                for (size_t i = 0; i < count; i++) sum[tree.depth - 1][i] += sum[tree.depth][i];
                tutti_free(sum[tree.depth]);
            }
        }
    }
    meet(w); /* everybody has read */
    memcpy(mine->partials[0] + at, sum[0], count * sizeof(float));
    tutti_free(sum[0]);
}

static void all_to_all(world *w, const tutti_move *mine, int self, int index)
{
    const int own = self % mine->members;
    for (int m = 0; m < mine->members; m++) {
        const tutti_move *other = move_of(w, mine, self, m, index);
        const size_t from = other->send_cuts[own], count = other->send_cuts[own + 1] - from;
        if (count != mine->receive_cuts[m + 1] - mine->receive_cuts[m])
            need(tutti_fail(TUTTI_COMM, "%s: %zu floats come, but not as many are expected",
                            mine->name, count));
        memcpy(mine->receive + mine->receive_cuts[m], other->send + from, count * sizeof(float));
    }
    meet(w);
}

static tutti_status move(void *user, int index)
{
    const worker *self = user;
    const tutti_move *mine = tutti_model_move(self->world->models[self->number], index);
    static void (*const kinds[])(world *, const tutti_move *, int, int) = {
        [TUTTI_MOVE_BROADCAST] = gather,
        [TUTTI_MOVE_REDUCE] = reduce,
        [TUTTI_MOVE_ALLTOALL] = all_to_all,
    };
    meet(self->world); /* everybody has put in its own */
    kinds[mine->kind](self->world, mine, self->number, index);
    return TUTTI_OK;
}

/* ---- workers ---- */

/* How many samples a worker evaluates. Some have nothing to do, but the others need them. */
static int evaluated(const world *w, int number)
{
    return number % 3 == 1 ? 0 : tutti_model_most_samples(w->models[number]) - number % 2;
}

static void pass(const worker *self)
{
    world *w = self->world;
    const batch *b = w->batch;
    tutti_model *m = w->models[self->number];
    const size_t first = (size_t)tutti_model_first_sample(m);
    const float *samples = b->samples + first * tutti_net_input_floats(b->net);
    aim(m, b, first);
    need(tutti_model_train(m, STEP, samples, b->labels + first));
    memcpy(w->losses + first, tutti_model_losses(m),
           (size_t)tutti_model_samples(m) * sizeof(float));
    need(tutti_model_evaluate(m, evaluated(w, self->number), samples, b->labels + first));
}

static void *live(void *arg)
{
    const worker *self = arg;
    world *w = self->world;
    tutti_model_options o = *w->options;
    o.workers = w->workers;
    o.worker = self->number;
    o.groups = w->groups;
    o.hooks = (tutti_model_hooks){.user = arg, .move = move};
    if (w->threads > 1) need(tutti_team_create(&o.team, w->threads));
    need(try_model(&w->models[self->number], w->batch, &o));
    meet(w);
    pass(self);
    if (w->threads > 1) tutti_team_destroy(&o.team);
    return NULL;
}

void run_world(world *w)
{
    worker workers[MAX_WORKERS];
    pthread_t threads[MAX_WORKERS];
    pthread_barrier_init(&w->barrier, NULL, (unsigned)w->workers);
    for (int i = 0; i < w->workers; i++) {
        workers[i] = (worker){w, i};
        pthread_create(&threads[i], NULL, live, &workers[i]);
    }
    for (int i = 0; i < w->workers; i++) pthread_join(threads[i], NULL);
    pthread_barrier_destroy(&w->barrier);
}

void end_world(world *w)
{
    for (int i = 0; i < w->workers; i++) tutti_model_destroy(&w->models[i]);
}

/* ---- comparing with a whole one ---- */

whole make_whole(const batch *b, const tutti_model_options *options)
{
    whole all = {.model = make_model(b, options)};
    const size_t row = answer_floats(b);
    train(all.model, b);
    memcpy(all.losses, tutti_model_losses(all.model), sizeof all.losses);
    must(tutti_model_evaluate(all.model, BATCH, b->samples, b->labels));
    memcpy(all.evaluated, tutti_model_losses(all.model), sizeof all.evaluated);
    must(tutti_alloc(&all.probabilities, BATCH * row, sizeof(float)));
    memcpy(all.probabilities, tutti_model_probabilities(all.model), BATCH * row * sizeof(float));
    return all;
}

void free_whole(whole *all)
{
    tutti_model_destroy(&all->model);
    tutti_free(all->probabilities);
}

/* The gradient of the features that member 'member' of each group holds, joined across groups. */
static float *join_across(const world *w, int layer, int groups, int member)
{
    const int members = w->workers / groups;
    float *stack[TUTTI_TREE_MAX_ROOTS];
    tutti_tree_stack tree;
    tutti_tree_stack_init(&tree, GRAINS);
    for (int g = 0; g < groups; g++) {
        tutti_model *m = w->models[g * members + member];
        tutti_subtree roots[TUTTI_TREE_MAX_ROOTS];
        const int n = tutti_model_roots(m, layer, roots);
        const size_t count = tutti_model_region(m, layer).trained;
        for (int r = 0; r < n; r++) {
            stack[tutti_tree_push(&tree, roots[r])] = tutti_model_gradient(m, layer, r);
            while (tutti_tree_join(&tree))
                for (size_t i = 0; i < count; i++) stack[tree.depth - 1][i] += stack[tree.depth][i];
        }
    }
    assert_int_equal(tree.depth, 1);
    return stack[0];
}

static void compare_layer(const world *w, tutti_model *one, int layer)
{
    const int asked = w->groups ? w->groups[layer] : 0, groups = asked ? asked : w->workers;
    const tutti_layer *l = &w->batch->net->layers[layer];
    const float *want = tutti_model_gradient(one, layer, 0);
    if (!tutti_model_region(one, layer).trained) return;
    for (int m = 0; m < w->workers / groups; m++) {
        const size_t region = tutti_model_region(w->models[m], layer).offset;
        const float *got = join_across(w, layer, groups, m);
        for (int i = l->first_param; i < l->first_param + l->param_count; i++) {
            const tutti_slice part = tutti_model_slice(w->models[m], i);
            if (memcmp(got + (part.offset - region), want + part.whole_at,
                       part.count * sizeof(float)))
                fail_msg("%s, member %d of %d groups of %d workers: other bits",
                         w->batch->net->params[i].name, m, groups, w->workers);
        }
    }
}

static void compare_probabilities(const world *w, const whole *all)
{
    const size_t row = answer_floats(w->batch);
    for (int i = 0; i < w->workers; i++) {
        const size_t first = (size_t)tutti_model_first_sample(w->models[i]);
        if (memcmp(tutti_model_probabilities(w->models[i]), all->probabilities + first * row,
                   (size_t)evaluated(w, i) * row * sizeof(float)))
            fail_msg("probabilities of worker %d of %d: other bits", i, w->workers);
    }
}

void compare_world(const world *w, const whole *all)
{
    for (int i = 0; i < BATCH; i++)
        if (memcmp(&w->losses[i], &all->losses[i], sizeof(float)))
            fail_msg("sample %d of %d workers: loss %.9g, not %.9g", i, w->workers,
                     (double)w->losses[i], (double)all->losses[i]);
    for (int i = 0; i < tutti_net_layer_count(w->batch->net); i++) compare_layer(w, all->model, i);
    compare_probabilities(w, all);
}
