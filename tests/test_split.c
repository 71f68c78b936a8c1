/* Fully connected layers split over workers: the same bits as whole ones. Workers are threads
 * here, and what comm does between ranks is done by reaching into the others' buffers. */
#define _GNU_SOURCE
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "base/memory.h"
#include "kernel/fc.h"
#include "minibatch.h"

enum { MAX_WORKERS = 8 };

static const char dnn[] = "input 40\n"
                          "h1 fc 200 sigmoid\n"
                          "h2 fc 150 relu\n"
                          "d2 dropout 0.3\n"
                          "h3 fc 320\n"
                          "t3 tanh\n"
                          "h4 fc 500 relu from=d2\n" /* two readers of d2 */
                          "h5 fc 320 from=h4\n"
                          "sum add t3 h5 relu\n"
                          "o fc 70\n"
                          "loss softmax\n";
static const char cnn[] = "input 3 9 9\n"
                          "c1 conv 20 kernel=3 relu\n"
                          "p1 maxpool kernel=2\n"
                          "f2 fc 260 relu\n"
                          "d2 dropout 0.5\n"
                          "f3 fc 130 relu\n"
                          "f4 fc 7\n"
                          "loss softmax\n";
static const char image[] = "input 1 4 4\nf1 fc 300 relu\nf2 fc 600\nloss softmax\n";

/* ---- a world of workers ---- */

typedef struct world {
    const batch *batch;
    int workers;
    const int *groups;
    tutti_model *models[MAX_WORKERS];
    pthread_barrier_t barrier;
    pthread_t threads[MAX_WORKERS];
} world;

typedef struct worker {
    world *world;
    int number;
} worker;

static void meet(world *w)
{
    pthread_barrier_wait(&w->barrier);
}

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
            must(tutti_alloc(&sum[place], count, sizeof(float)));
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
        assert_int_equal(count, mine->receive_cuts[m + 1] - mine->receive_cuts[m]);
        memcpy(mine->receive + mine->receive_cuts[m], other->send + from, count * sizeof(float));
    }
    meet(w);
}

static tutti_status move(void *user, int index)
{
    const worker *self = user;
    const tutti_move *mine = tutti_model_move(self->world->models[self->number], index);
    static void (*const kinds[])(world *, const tutti_move *, int, int) = {
        [TUTTI_MOVE_GATHER] = gather,
        [TUTTI_MOVE_REDUCE] = reduce,
        [TUTTI_MOVE_ALLTOALL] = all_to_all,
    };
    meet(self->world); /* everybody has brought its own */
    kinds[mine->kind](self->world, mine, self->number, index);
    return TUTTI_OK;
}

static void *step(void *arg)
{
    const worker *self = arg;
    world *w = self->world;
    tutti_model_options o = w->batch->options;
    o.workers = w->workers;
    o.worker = self->number;
    o.groups = w->groups;
    o.hooks = (tutti_model_hooks){.user = arg, .move = move};
    w->models[self->number] = make_model(w->batch, &o);
    meet(w);
    train(w->models[self->number], w->batch);
    return NULL;
}

/* Some have nothing to do, but the others need them. */
static int evaluated(const world *w, int number)
{
    return number % 3 == 1 ? 0 : tutti_model_samples(w->models[number]) - number % 2;
}

static void *evaluate(void *arg)
{
    const worker *self = arg;
    const batch *b = self->world->batch;
    tutti_model *m = self->world->models[self->number];
    const size_t first = (size_t)tutti_model_first_sample(m);
    must(tutti_model_evaluate(m, evaluated(self->world, self->number),
                              b->samples + first * tutti_net_input_floats(b->net),
                              b->labels + first));
    return NULL;
}

static void run_world(world *w, void *(*job)(void *))
{
    worker workers[MAX_WORKERS];
    pthread_barrier_init(&w->barrier, NULL, (unsigned)w->workers);
    for (int i = 0; i < w->workers; i++) {
        workers[i] = (worker){w, i};
        pthread_create(&w->threads[i], NULL, job, &workers[i]);
    }
    for (int i = 0; i < w->workers; i++) pthread_join(w->threads[i], NULL);
    pthread_barrier_destroy(&w->barrier);
}

static void end_world(world *w)
{
    for (int i = 0; i < w->workers; i++) tutti_model_destroy(&w->models[i]);
}

/* ---- comparing with a whole one ---- */

/* The gradient of the features that member 'member' of each group holds, joined across groups. */
static void join_across(const world *w, int layer, int groups, int member, float **out)
{
    const int members = w->workers / groups;
    float *stack[TUTTI_TREE_MAX_ROOTS];
    tutti_tree_stack tree;
    tutti_tree_stack_init(&tree, GRAINS);
    for (int g = 0; g < groups; g++) {
        tutti_model *m = w->models[g * members + member];
        tutti_subtree roots[TUTTI_TREE_MAX_ROOTS];
        const int n = tutti_model_roots(m, layer, roots);
        const size_t count = tutti_model_region(m, layer).count;
        for (int r = 0; r < n; r++) {
            stack[tutti_tree_push(&tree, roots[r])] = tutti_model_gradient(m, layer, r);
            while (tutti_tree_join(&tree))
                for (size_t i = 0; i < count; i++) stack[tree.depth - 1][i] += stack[tree.depth][i];
        }
    }
    assert_int_equal(tree.depth, 1);
    *out = stack[0];
}

static void check_layer(const world *w, tutti_model *whole, int layer)
{
    const int asked = w->groups[layer], groups = asked ? asked : w->workers;
    const tutti_region all = tutti_model_region(whole, layer);
    const float *want = tutti_model_gradient(whole, layer, 0);
    const size_t features = tutti_round_up((size_t)all.features, TUTTI_BLOCK);
    if (!all.count) return;
    for (int m = 0; m < w->workers / groups; m++) {
        const tutti_region part = tutti_model_region(w->models[m], layer);
        const size_t first = (size_t)part.first_feature;
        float *got;
        join_across(w, layer, groups, m, &got);
        const size_t at = all.weight_count / features * first;
        if (memcmp(got, want + at, part.weight_count * sizeof(float)) ||
            memcmp(got + part.weight_count, want + all.weight_count + first,
                   (part.count - part.weight_count) * sizeof(float)))
            fail_msg("layer %s, member %d of %d groups of %d workers differs",
                     w->batch->net->layers[layer].name, m, groups, w->workers);
    }
}

static void check_losses(const world *w, const tutti_model *whole)
{
    for (int i = 0; i < w->workers; i++) {
        const int first = tutti_model_first_sample(w->models[i]);
        assert_memory_equal(tutti_model_losses(w->models[i]), tutti_model_losses(whole) + first,
                            (size_t)tutti_model_samples(w->models[i]) * sizeof(float));
    }
}

static void check_probabilities(const world *w, const tutti_model *whole)
{
    const size_t row = tutti_round_up((size_t)tutti_net_classes(w->batch->net), TUTTI_BLOCK);
    for (int i = 0; i < w->workers; i++) {
        const size_t first = (size_t)tutti_model_first_sample(w->models[i]);
        assert_memory_equal(tutti_model_probabilities(w->models[i]),
                            tutti_model_probabilities(whole) + first * row,
                            (size_t)evaluated(w, i) * row * sizeof(float));
    }
}

/* Groups for each fc layer: a divisor of the workers that it can bear, another one each time. */
static void choose_groups(const tutti_net *net, int workers, int variant, int *groups)
{
    for (int i = 0; i < net->layer_count; i++) {
        const int leaves = tutti_ceil_div(net->layers[i].out.c, TUTTI_FC_LEAF);
        int choices[MAX_WORKERS], count = 0;
        for (int g = 1; g <= workers; g++)
            if (workers % g == 0 && workers / g <= leaves) choices[count++] = g;
        const bool fc = net->layers[i].kind == TUTTI_KIND_FC;
        groups[i] = !fc ? 0 : variant == 0 ? choices[0] : choices[(variant * (i + 3) / 2) % count];
    }
}

static void check_net(const char *text)
{
    batch b = make_batch(text);
    tutti_model *whole = make_model(&b, &b.options);
    tutti_model *forward = make_model(&b, &b.options);
    train(whole, &b);
    must(tutti_model_evaluate(forward, BATCH, b.samples, b.labels));
    for (int workers = 2; workers <= MAX_WORKERS; workers++)
        for (int variant = 0; variant < 4; variant++) {
            int groups[32];
            world w = {.batch = &b, .workers = workers, .groups = groups};
            choose_groups(b.net, workers, variant, groups);
            run_world(&w, step);
            check_losses(&w, whole);
            for (int i = 0; i < b.net->layer_count; i++) check_layer(&w, whole, i);
            run_world(&w, evaluate);
            check_probabilities(&w, forward);
            end_world(&w);
        }
    tutti_model_destroy(&whole);
    tutti_model_destroy(&forward);
    free_batch(&b);
}

static void a_dnn_split_anyhow_has_the_same_bits(void **state)
{
    (void)state;
    check_net(dnn);
}

static void a_cnn_split_anyhow_has_the_same_bits(void **state)
{
    (void)state;
    check_net(cnn);
}

static void images_go_straight_into_split_layers(void **state)
{
    (void)state;
    check_net(image);
}

static void splits_that_cannot_be_are_refused(void **state)
{
    (void)state;
    batch b = make_batch(cnn);
    tutti_model *m = NULL;
    tutti_model_options o = b.options;
    int groups[8] = {0};
    o.workers = 4;
    o.groups = groups;
    groups[0] = 2;
    assert_int_equal(tutti_model_create(&m, b.net, &o), TUTTI_ARGUMENT);
    assert_non_null(strstr(tutti_message(), "'c1' cannot be split: only fc"));
    groups[0] = 0;
    groups[2] = 3;
    assert_int_equal(tutti_model_create(&m, b.net, &o), TUTTI_ARGUMENT);
    assert_non_null(strstr(tutti_message(), "'f2' cannot be split in 3 groups"));
    groups[2] = 0;
    groups[5] = 2;
    assert_int_equal(tutti_model_create(&m, b.net, &o), TUTTI_ARGUMENT);
    assert_non_null(strstr(tutti_message(), "it has 1 blocks of 64"));
    assert_null(m);
    free_batch(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_dnn_split_anyhow_has_the_same_bits),
        cmocka_unit_test(a_cnn_split_anyhow_has_the_same_bits),
        cmocka_unit_test(images_go_straight_into_split_layers),
        cmocka_unit_test(splits_that_cannot_be_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
