/* Models: gradients against the reference, the reference against finite differences, and the same
 * bits however the work is shared. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/memory.h"
#include "kernel/ops.h"
#include "agree.h"
#include "model_nets.h"

/* The input as blocks. */
static const char blocks[] = "input 3 3 3\n"
                             "a avgpool kernel=3 stride=1 pad=1\n"
                             "c conv 8 kernel=2 from=input\n"
                             "f fc 6 from=a sigmoid\n"
                             "g fc 6 from=input sigmoid\n"
                             "h fc 6 from=c\n"
                             "s sigmoid\n"
                             "sum add f g s\n"
                             "o fc 4\n"
                             "loss softmax\n";
static const char leaks[] = "input 3 6 6\n"
                            "c1 conv 20 kernel=3 leakyrelu\n"
                            "l leakyrelu slope=0.25\n"
                            "c2 conv 10 kernel=3 relu\n"
                            "m leakyrelu slope=0.5\n"
                            "d dropout 0.2\n"
                            "f1 fc 70 leakyrelu\n"
                            "f2 fc 20 relu from=d\n"
                            "cat concat f1 f2 leakyrelu\n"
                            "f3 fc 5\n"
                            "loss softmax\n";

static const char smooth[] = "input 3 6 6\n"
                             "c1 conv 20 kernel=3 hardswish\n"
                             "h hardswish\n"
                             "e gelu\n"
                             "a silu\n"
                             "c2 conv 10 kernel=3 silu\n"
                             "b relu6\n"
                             "s hardsigmoid\n"
                             "d dropout 0.2\n"
                             "f1 fc 70 silu\n"
                             "f2 fc 70 relu from=d\n"
                             "sum add f1 f2 gelu\n"
                             "f3 fc 5\n"
                             "loss softmax\n";

static const char excited[] = "input 3 6 6\n"
                              "c0 conv 20 kernel=3 pad=0x1 pad-end=1x2 relu\n"
                              "p1 maxpool kernel=3 stride=2 pad=0 pad-end=1 ceil\n"
                              "p2 avgpool kernel=2x3 stride=3x2 pad=1 ceil exclude-pad\n"
                              "p3 avgpool kernel=3 stride=2 pad=1x0 pad-end=2 ceil from=p1\n"
                              "c00 conv 20 kernel=2 pad=2 pad-end=0 from=p2\n"
                              "p4 avgpool global from=p3\n"
                              "p6 avgpool size=2x5 from=c0\n"
                              "p7 avgpool size=3 from=p6\n"
                              "p8 avgpool size=1\n"
                              "p9 add p4 p8\n"
                              "p5 mul c00 p9\n"
                              "c1 conv 20 kernel=3 pad=1 silu\n"
                              "g avgpool global\n"
                              "s1 conv 8 kernel=1 relu\n"
                              "s2 conv 20 kernel=1 hardsigmoid\n"
                              "m1 mul c1 s2\n"
                              "m2 mul s2 c1 relu\n"
                              "m3 mul m1 m2 relu6\n"
                              "m4 mul m2 m2\n"
                              "sum add m3 m4\n"
                              "half slice first=3 end=19\n"
                              "rest slice end=4 from=sum\n"
                              "cat concat half rest relu\n"
                              "turn shuffle 4\n"
                              "scaled layerscale init=0.5\n"
                              "shallow stochasticdepth 0.3\n"
                              "f fc 5\n"
                              "loss softmax\n";

/* Frozen layers: below the first that is trained, between trained ones, beside them. */
static const char frozen[] = "input 3 9 9\n"
                             "c1 conv 20 kernel=3 pad=1 frozen\n"
                             "n1 batchnorm relu frozen\n"
                             "p1 maxpool kernel=2\n"
                             "c2 conv 21 kernel=3 pad=1 relu\n"
                             "n2 batchnorm group=5 silu frozen from=c2\n"
                             "c3 conv 24 kernel=1 gelu frozen\n"
                             "n3 batchnorm frozen\n"
                             "s layerscale init=2 frozen from=n3\n"
                             "c4 conv 24 kernel=1 frozen from=p1\n"
                             "d4 dropout 0.25\n"
                             "sum add s d4 relu\n"
                             "c5 conv 24 kernel=1 lr=0.5\n"
                             "f1 fc 70 tanh frozen\n"
                             "f2 fc 7\n"
                             "loss softmax\n";

static const char *const nets[] = {everything, mlp, blocks, leaks, smooth, excited, frozen};

/* ---- joining what workers found ---- */

typedef struct result {
    float *gradient; /* flat */
    double loss;
    size_t count;
} result;

static result empty_result(const batch *b)
{
    result r = {.count = b->net->param_floats};
    must(tutti_alloc(&r.gradient, r.count, sizeof(float)));
    return r;
}

static bool equal(const result *a, const result *b)
{
    return a->loss == b->loss && !memcmp(a->gradient, b->gradient, a->count * sizeof(float));
}

/* One layer's gradient from all workers' roots, in tree order. */
static void join_layer(const batch *b, tutti_model *const *models, int workers, int layer,
                       float *total)
{
    const size_t count = tutti_model_region(models[0], layer).trained;
    float *stack[TUTTI_TREE_MAX_ROOTS];
    tutti_tree_stack tree;
    tutti_tree_stack_init(&tree, b->options.grains);
    for (int w = 0; w < workers; w++) {
        tutti_subtree roots[TUTTI_TREE_MAX_ROOTS];
        const int n = tutti_model_roots(models[w], layer, roots);
        for (int r = 0; r < n; r++) {
            stack[tutti_tree_push(&tree, roots[r])] = tutti_model_gradient(models[w], layer, r);
            while (tutti_tree_join(&tree))
                for (size_t i = 0; i < count; i++) stack[tree.depth - 1][i] += stack[tree.depth][i];
        }
    }
    assert_int_equal(tree.depth, 1);
    memcpy(total, stack[0], count * sizeof(float));
}

static double join_losses(const batch *b, tutti_model *const *models, int workers)
{
    tutti_sum sum;
    tutti_sum_init(&sum, b->options.grains);
    for (int w = 0; w < workers; w++) {
        int first;
        const double *losses;
        const int n = tutti_model_grain_losses(models[w], 0, &first, &losses);
        for (int g = 0; g < n; g++) tutti_sum_add(&sum, (tutti_subtree){0, first + g}, losses[g]);
    }
    return tutti_sum_value(&sum);
}

/* One step on 'workers' workers, one after another. */
static result run(const batch *b, const tutti_model_options *base, int workers)
{
    tutti_model *models[BATCH] = {NULL};
    result r = empty_result(b);
    for (int w = 0; w < workers; w++) {
        tutti_model_options o = *base;
        o.workers = workers;
        o.worker = w;
        models[w] = make_model(b, &o);
        train(models[w], b);
    }
    for (int i = 0; i < b->net->layer_count; i++) {
        const tutti_region region = tutti_model_region(models[0], i);
        if (region.trained) join_layer(b, models, workers, i, r.gradient + region.offset);
    }
    r.loss = join_losses(b, models, workers);
    for (int w = 0; w < workers; w++) tutti_model_destroy(&models[w]);
    return r;
}

/* ---- gradients ---- */

static void gradients_agree_with_the_reference(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof nets / sizeof *nets; i++) {
        batch b = make_batch(nets[i]);
        tutti_model *m = make_model(&b, &b.options);
        reference_net *reference = reference_of(&b, m);
        train(m, &b);
        losses_agree(reference, &b, true, tutti_model_losses(m));
        reference_step(reference, &b);
        gradients_agree(reference, &b, m);
        must(tutti_model_evaluate(m, BATCH, b.samples, b.labels));
        losses_agree(reference, &b, false, tutti_model_losses(m));
        reference_destroy(reference);
        tutti_model_destroy(&m);
        free_batch(&b);
    }
}

static double reference_mean_loss(reference_net *net, const batch *b, double *deviation)
{
    const reference_mode mode = {.training = true, .seed = SEED, .step = STEP};
    double sum = 0, losses[BATCH], deviations[BATCH];
    *deviation = 0;
    reference_minibatch(net, b, &mode, losses, deviations);
    for (int i = 0; i < BATCH; i++) {
        sum += losses[i] / BATCH;
        *deviation += deviations[i] / BATCH;
    }
    return sum;
}

/* The slope by a parameter; *rounding is what double precision leaves of the deviation. */
static double difference(reference_net *net, const batch *b, double *parameter, double h,
                         double *rounding)
{
    const double old = *parameter;
    *parameter = old + h;
    const double above = reference_mean_loss(net, b, rounding);
    *parameter = old - h;
    const double below = reference_mean_loss(net, b, rounding);
    *parameter = old;
    *rounding *= REFERENCE_DEVIATIONS * 0x1p-29 / h;
    return (above - below) / (2 * h);
}

/* Some elements of one parameter. The difference with twice the step has four times the error of
 * truncation: the two differ by three times that of the smaller step. */
static void check_reference(reference_net *net, const batch *b, int parameter)
{
    enum { CHECKED = 4 };
    const size_t count = reference_parameter_count(net, parameter);
    for (size_t k = 0; k < CHECKED && k < count; k++) {
        const size_t e = count < CHECKED ? k : k * (count - 1) / (CHECKED - 1);
        double *p = &reference_parameter(net, parameter)[e], deviation, rounding;
        const double h = 0x1p-16, coarse = difference(net, b, p, 2 * h, &rounding);
        const double want = difference(net, b, p, h, &rounding);
        const double got = reference_gradient(net, parameter, e, &deviation);
        if (fabs(got - want) > fabs(want - coarse) + rounding)
            fail_msg("parameter %d[%zu]: gradient %.12g, finite differences %.12g and %.12g",
                     parameter, e, got, want, coarse);
    }
}

static void the_reference_agrees_with_finite_differences(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof nets / sizeof *nets; i++) {
        batch b = make_batch(nets[i]);
        tutti_model *m = make_model(&b, &b.options);
        reference_net *reference = reference_of(&b, m);
        reference_step(reference, &b);
        for (int p = 0; p < reference_parameters(reference); p++)
            if (b.net->params[p].role == TUTTI_TRAINED) check_reference(reference, &b, p);
        reference_destroy(reference);
        tutti_model_destroy(&m);
        free_batch(&b);
    }
}

/* ---- the same bits ---- */

static void any_sharing_of_grains_gives_the_same_bits(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof nets / sizeof *nets; i++) {
        batch b = make_batch(nets[i]);
        result want = run(&b, &b.options, 1);
        for (int workers = 2; workers <= GRAINS; workers++) {
            result got = run(&b, &b.options, workers);
            if (!equal(&got, &want)) fail_msg("net %zu differs on %d workers", i, workers);
            tutti_free(got.gradient);
        }
        tutti_free(want.gradient);
        free_batch(&b);
    }
}

static void any_number_of_late_layers_gives_the_same_bits(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof nets / sizeof *nets; i++) {
        batch b = make_batch(nets[i]);
        result want = run(&b, &b.options, 1);
        for (int late = 1; late <= b.net->layer_count; late++) {
            tutti_model_options o = b.options;
            o.late = late;
            result got = run(&b, &o, 1 + late % 3);
            if (!equal(&got, &want)) fail_msg("net %zu differs with %d late layers", i, late);
            tutti_free(got.gradient);
        }
        tutti_free(want.gradient);
        free_batch(&b);
    }
}

static void any_number_of_threads_gives_the_same_bits(void **state)
{
    (void)state;
    batch b = make_batch(everything);
    result want = run(&b, &b.options, 1);
    for (int threads = 2; threads <= 3; threads++) {
        tutti_model_options o = b.options;
        must(tutti_team_create(&o.team, threads));
        for (int workers = 1; workers <= 3; workers += 2) {
            result got = run(&b, &o, workers);
            if (!equal(&got, &want)) fail_msg("%d threads, %d workers differ", threads, workers);
            tutti_free(got.gradient);
        }
        tutti_team_destroy(&o.team);
    }
    tutti_free(want.gradient);
    free_batch(&b);
}

static void every_instruction_set_gives_the_same_bits(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof nets / sizeof *nets; i++) {
        batch b = make_batch(nets[i]);
        result want = run(&b, &b.options, 1);
        for (int k = 0; tutti_kernel_table[k]; k++) {
            const tutti_kernels *const row = tutti_kernel_table[k];
            if (!tutti_kernels_run_here(row)) {
                printf("%s skipped: not on this machine\n", row->name);
                continue;
            }
            tutti_model_options o = b.options;
            o.row = row;
            result got = run(&b, &o, 1);
            if (!equal(&got, &want)) fail_msg("net %zu differs on %s", i, row->name);
            tutti_free(got.gradient);
        }
        tutti_free(want.gradient);
        free_batch(&b);
    }
}

/* ---- sums in the pass of what is added ---- */

/* The same net twice: with layers that change nothing behind its sums, or before them, where no
 * normalisation can do the sum. */
static const char *const residual[] = {"input 3 6 6\n"
                                       "c1 conv 20 kernel=3 pad=1 relu\n"
                                       "c2 conv 20 kernel=3 pad=1\n"
                                       "n2 groupnorm 4\n"
                                       "s2 add n2 c1 relu\n"
                                       "i2 stochasticdepth 0\n"
                                       "c3 conv 20 kernel=3 pad=1\n"
                                       "n3 batchnorm group=5 frozen\n"
                                       "s3 add i2 n3\n"
                                       "i3 stochasticdepth 0\n"
                                       "c4 conv 24 kernel=1 from=i3\n"
                                       "n4 groupnorm 1\n"
                                       "c5 conv 24 kernel=1 from=i3\n"
                                       "n5 groupnorm 2\n"
                                       "s5 add n4 n5 relu\n"
                                       "i5 stochasticdepth 0\n"
                                       "f fc 5\n"
                                       "loss softmax\n",
                                       "input 3 6 6\n"
                                       "c1 conv 20 kernel=3 pad=1 relu\n"
                                       "c2 conv 20 kernel=3 pad=1\n"
                                       "n2 groupnorm 4\n"
                                       "i2 stochasticdepth 0\n"
                                       "s2 add i2 c1 relu\n"
                                       "c3 conv 20 kernel=3 pad=1\n"
                                       "n3 batchnorm group=5 frozen\n"
                                       "i3 stochasticdepth 0\n"
                                       "s3 add s2 i3\n"
                                       "c4 conv 24 kernel=1 from=s3\n"
                                       "n4 groupnorm 1\n"
                                       "c5 conv 24 kernel=1 from=s3\n"
                                       "n5 groupnorm 2\n"
                                       "i5 stochasticdepth 0\n"
                                       "s5 add n4 i5 relu\n"
                                       "f fc 5\n"
                                       "loss softmax\n"};

static size_t memory_of(const batch *b)
{
    tutti_model_bytes bytes;
    must(tutti_model_measure(&bytes, b->net, &b->options));
    return bytes.separate;
}

static void fused_sums_have_the_same_bits(void **state)
{
    batch fused = make_batch(residual[0]), apart = make_batch(residual[1]);
    (void)state;
    assert_true(memory_of(&fused) < memory_of(&apart));
    for (int late = 0; late < 5; late += 4)
        for (int workers = 1; workers <= 3; workers++) {
            tutti_model_options o = fused.options;
            o.late = late;
            result a = run(&fused, &o, workers), b = run(&apart, &o, workers);
            if (!equal(&a, &b)) fail_msg("%d workers, %d late layers differ", workers, late);
            tutti_free(a.gradient), tutti_free(b.gradient);
        }
    free_batch(&fused), free_batch(&apart);
}

/* ---- forward only ---- */

static void evaluation_does_not_depend_on_the_batch(void **state)
{
    (void)state;
    batch b = make_batch(everything);
    tutti_model_options o = b.options;
    o.forward_only = true;
    tutti_model *small = make_model(&b, &o), *large = make_model(&b, &b.options);
    train(large, &b); /* leaves its traces in memory that is reused */
    const size_t stride = tutti_net_input_floats(b.net);
    const int classes = tutti_net_classes(b.net);
    for (int n = 0; n <= BATCH; n += 6) {
        aim(small, &b, 0);
        must(tutti_model_evaluate(small, n, b.samples, b.labels));
        for (int i = 0; i < n; i++) {
            aim(large, &b, (size_t)i);
            must(tutti_model_evaluate(large, 1, b.samples + (size_t)i * stride, b.labels + i));
            assert_memory_equal(tutti_model_probabilities(small) + i * 16,
                                tutti_model_probabilities(large), (size_t)classes * sizeof(float));
            assert_true(tutti_model_losses(small)[i] == tutti_model_losses(large)[0]);
            assert_int_equal(tutti_model_beaten_by(small)[i], tutti_model_beaten_by(large)[0]);
        }
    }
    must(tutti_model_evaluate(small, BATCH, b.samples, NULL));
    tutti_model_destroy(&small);
    tutti_model_destroy(&large);
    free_batch(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gradients_agree_with_the_reference),
        cmocka_unit_test(the_reference_agrees_with_finite_differences),
        cmocka_unit_test(any_sharing_of_grains_gives_the_same_bits),
        cmocka_unit_test(any_number_of_late_layers_gives_the_same_bits),
        cmocka_unit_test(any_number_of_threads_gives_the_same_bits),
        cmocka_unit_test(every_instruction_set_gives_the_same_bits),
        cmocka_unit_test(fused_sums_have_the_same_bits),
        cmocka_unit_test(evaluation_does_not_depend_on_the_batch),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
