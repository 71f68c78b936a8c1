/* The planner on the paper's platforms: which layers it splits, how fast it says they are. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "nn/kinds/kind.h"
#include "plan/slack.h"

typedef struct fixture {
    tutti_net *net;
    tutti_platform *platform;
} fixture;

static const tutti_optimizer_cost sgd = {1, 4}; /* with momentum */

static fixture load(const char *net, const char *platform)
{
    fixture f = {0};
    assert_int_equal(tutti_net_load(&f.net, net), TUTTI_OK);
    if (tutti_platform_load(&f.platform, platform) != TUTTI_OK) fail_msg("%s", tutti_message());
    return f;
}

static void unload(fixture *f)
{
    tutti_net_destroy(&f->net);
    tutti_platform_destroy(&f->platform);
}

static double step(const fixture *f, const tutti_plan *plan, int batch)
{
    const tutti_predict_options o = {batch, true, true, sgd, 0, 0};
    tutti_prediction *p = NULL;
    assert_int_equal(tutti_predict_step(&p, f->net, f->platform, plan, &o), TUTTI_OK);
    const double seconds = p->step_s;
    tutti_prediction_destroy(&p);
    return seconds;
}

static double data_parallel(const fixture *f, int nodes, int batch)
{
    tutti_plan *plan = NULL;
    assert_int_equal(tutti_plan_create(&plan, f->net, nodes), TUTTI_OK);
    const double seconds = step(f, plan, batch);
    tutti_plan_destroy(&plan);
    return seconds;
}

static tutti_plan *best_plan(const fixture *f, int nodes, int batch)
{
    const tutti_predict_options o = {batch, true, true, sgd, 0, 0};
    tutti_plan *plan = NULL;
    assert_int_equal(tutti_plan_search(&plan, f->net, f->platform, nodes, &o), TUTTI_OK);
    return plan;
}

static tutti_prediction *in_passes(const fixture *f, const tutti_plan *plan, int micro_batch)
{
    const tutti_predict_options o = {256, true, true, sgd, micro_batch, 0};
    tutti_prediction *p = NULL;
    assert_int_equal(tutti_predict_step(&p, f->net, f->platform, plan, &o), TUTTI_OK);
    return p;
}

/* Gradients are exchanged once in a step, activations of split layers in every pass; memory falls
 * with the samples, but for the partial gradients. */
static void several_passes_cost_little_and_save_memory(void **state)
{
    (void)state;
    fixture f = load("overfeat-fast", "cori-phase1");
    tutti_plan *plans[2] = {NULL, NULL};
    assert_int_equal(tutti_plan_named(&plans[0], f.net, 4, "data"), TUTTI_OK);
    assert_int_equal(tutti_plan_named(&plans[1], f.net, 4, "model"), TUTTI_OK);
    for (int i = 0; i < 2; i++) {
        tutti_prediction *one = in_passes(&f, plans[i], 0), *all = in_passes(&f, plans[i], 64),
                         *two = in_passes(&f, plans[i], 32), *eight = in_passes(&f, plans[i], 8);
        assert_int_equal(one->passes, 1);
        assert_int_equal(two->passes, 2);
        assert_int_equal(eight->passes, 8);
        assert_true(all->step_s == one->step_s && all->memory == one->memory);
        assert_true(one->step_s < two->step_s && two->step_s < eight->step_s);
        assert_true(eight->step_s < 2 * one->step_s);
        assert_true(two->memory < one->memory);
        for (int l = 0; l < f.net->layer_count; l++)
            assert_true(fabs(eight->layer[l].bytes - one->layer[l].bytes) <=
                        1e-9 * one->layer[l].bytes);
        tutti_prediction_destroy(&one);
        tutti_prediction_destroy(&all);
        tutti_prediction_destroy(&two);
        tutti_prediction_destroy(&eight);
    }
    const tutti_predict_options o = {256, true, true, sgd, 3, 0};
    tutti_prediction *p = NULL;
    assert_int_equal(tutti_predict_step(&p, f.net, f.platform, plans[0], &o), TUTTI_ARGUMENT);
    tutti_plan_destroy(&plans[0]);
    tutti_plan_destroy(&plans[1]);
    unload(&f);
}

static void one_node_is_as_fast_as_measured(void **state)
{
    (void)state;
    static const struct {
        const char *net, *platform;
        double rate;
        int batch;
    } row[] = {{"vgg-a", "cori-phase1", 30, 256},
               {"overfeat-fast", "cori-phase1", 90, 256},
               {"vgg-a", "aws-c4", 28, 256},
               {"cd-dnn", "endeavor-fdr", 4600, 1024}};
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        fixture f = load(row[i].net, row[i].platform);
        const double rate = row[i].batch / data_parallel(&f, 1, row[i].batch);
        if (!(fabs(rate / row[i].rate - 1) < 0.01))
            fail_msg("%s on %s: %g samples/s, not %g", row[i].net, row[i].platform, rate,
                     row[i].rate);
        unload(&f);
    }
}

static void convolutions_stay_data_parallel(void **state)
{
    (void)state;
    static const struct {
        const char *net, *platform;
        int nodes, batch;
    } point[] = {{"vgg-a", "cori-phase1", 128, 512},
                 {"vgg-a", "cori-phase1", 64, 256},
                 {"overfeat-fast", "cori-phase1", 64, 256},
                 {"vgg-a", "aws-c4", 16, 256},
                 {"overfeat-fast", "aws-c4", 16, 256}};
    for (size_t i = 0; i < sizeof point / sizeof *point; i++) {
        fixture f = load(point[i].net, point[i].platform);
        tutti_plan *plan = best_plan(&f, point[i].nodes, point[i].batch);
        for (int l = 0; l < plan->layers; l++) {
            const tutti_layer *layer = &f.net->layers[l];
            if (!strcmp(layer->kind->word, "conv")) assert_int_equal(plan->groups[l], plan->nodes);
            if (!strcmp(layer->kind->word, "fc") && layer->macs > 1e7)
                if (plan->groups[l] == plan->nodes)
                    fail_msg("%s on %s: %s is data parallel", point[i].net, point[i].platform,
                             layer->name);
        }
        tutti_plan_destroy(&plan);
        unload(&f);
    }
}

static void never_worse_than_data_parallel(void **state)
{
    (void)state;
    static const char *const nets[] = {"lenet", "cifar-vgg", "vgg-a", "overfeat-fast", "cd-dnn"};
    for (int p = 0; tutti_platform_known(p); p++)
        for (size_t n = 0; n < sizeof nets / sizeof *nets; n++) {
            fixture f = load(nets[n], tutti_platform_known(p));
            for (int nodes = 1; nodes <= 96; nodes = nodes * 2 + (nodes == 1)) {
                tutti_plan *plan = best_plan(&f, nodes, 1024);
                assert_true(step(&f, plan, 1024) <= data_parallel(&f, nodes, 1024) * (1 + 1e-9));
                tutti_plan_destroy(&plan);
            }
            unload(&f);
        }
}

static void speech_net_is_hybrid_on_16_nodes(void **state)
{
    (void)state;
    fixture f = load("cd-dnn", "endeavor-fdr");
    tutti_plan *plan = best_plan(&f, 16, 1024);
    int hybrid = 0;
    for (int l = 0; l < plan->layers; l++) hybrid += plan->groups[l] >= 2 && plan->groups[l] <= 8;
    assert_true(hybrid >= 5);
    tutti_plan_destroy(&plan);
    unload(&f);
}

/* The last late layer's name, "" for none. */
static const char *last_late(const fixture *f, int nodes, int batch, bool overlap)
{
    const tutti_predict_options o = {batch, overlap, true, sgd, 0, 0};
    tutti_plan *plan = best_plan(f, nodes, batch);
    tutti_prediction *p = NULL;
    assert_int_equal(tutti_predict_step(&p, f->net, f->platform, plan, &o), TUTTI_OK);
    for (int l = 0; l < p->late; l++) assert_int_equal(plan->groups[l], nodes);
    const char *name = p->late ? f->net->layers[p->late - 1].name : "";
    tutti_prediction_destroy(&p);
    tutti_plan_destroy(&plan);
    return name;
}

static void layers_are_late_where_there_is_slack(void **state)
{
    (void)state;
    static const struct {
        const char *net, *platform;
        int nodes, batch;
        const char *last;
    } point[] = {
        {"vgg-a", "cori-phase1", 128, 512, "conv3"},   /* little to exchange */
        {"vgg-a", "cori-phase1", 1, 512, ""},          /* nobody to wait for */
        {"overfeat-fast", "cori-phase1", 64, 256, ""}, /* exchanges as long as the slack */
        {"overfeat-fast", "cori-phase1", 4, 256, "conv3"},
        {"cd-dnn", "endeavor-fdr", 16, 1024, ""}, /* split from the first layers on */
        {"cifar-vgg", "workstations-1g", 8, 256, ""},
    };
    for (size_t i = 0; i < sizeof point / sizeof *point; i++) {
        fixture f = load(point[i].net, point[i].platform);
        const char *last = last_late(&f, point[i].nodes, point[i].batch, true);
        if (strcmp(last, point[i].last))
            fail_msg("%s on %d nodes of %s: late up to '%s', not '%s'", point[i].net,
                     point[i].nodes, point[i].platform, last, point[i].last);
        assert_string_equal(last_late(&f, point[i].nodes, point[i].batch, false), "");
        unload(&f);
    }
}

/* Layers of 10, 20, 30 and 40 ms of weights; forward takes half of that. */
static void slack_is_counted_from_a_gradient_to_its_use(void **state)
{
    (void)state;
    enum { LAYERS = 4, NODES = 2 };
    static const struct {
        double comm_ms[LAYERS];
        int late;
    } row[] = {{{1, 1, 1, 1}, 3},  /* 5 ms before the second layer are not 200 / 32 */
               {{13, 1, 1, 1}, 4}, /* 4 x 13 ms are 20 + 30 and some */
               {{1, 1, 4, 1}, 4},  /* the third has 5 + 10 before it and 40 after it */
               {{1, 1, 1, 100}, 3},
               {{30, 1, 1, 1}, 0}}; /* not even all layers take 4 x 30 ms */
    tutti_net *net = NULL;
    tutti_plan *plan = NULL;
    assert_int_equal(
        tutti_net_parse(&net, "input 8\na fc 8\nb fc 8\nc fc 8\nd fc 8\nloss softmax\n", "t"),
        TUTTI_OK);
    assert_int_equal(tutti_plan_create(&plan, net, NODES), TUTTI_OK);
    tutti_prediction *p = calloc(1, sizeof *p + (LAYERS + 1) * sizeof *p->layer);
    assert_non_null(p);
    p->layers = LAYERS + 1;
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        for (int l = 0; l < LAYERS; l++) {
            p->layer[l].compute.weights = 0.010 * (l + 1);
            p->layer[l].compute.forward = 0.005 * (l + 1);
            p->layer[l].comm = 0.001 * row[i].comm_ms[l];
        }
        p->layer[0].compute.data = 0.050;
        assert_int_equal(tutti_slack_layers(net, plan, p), row[i].late);
    }
    free(p);
    tutti_plan_destroy(&plan);
    tutti_net_destroy(&net);
}

/* Ranks of one host update in common memory: no messages, nothing to wait for. */
static void one_host_sends_nothing(void **state)
{
    (void)state;
    fixture f = load("cd-dnn", "endeavor-fdr");
    const tutti_predict_options o = {1024, true, true, sgd, 0, 0};
    double steps[2], parameters = 0;
    for (int i = 0; i < f.net->layer_count; i++) parameters += (double)tutti_layer_floats(f.net, i);
    f.platform->ranks = 2;
    f.platform->meeting = 1e-3;
    tutti_plan *plan = NULL;
    assert_int_equal(tutti_plan_create(&plan, f.net, 2), TUTTI_OK);
    for (int i = 0; i < 2; i++) {
        tutti_prediction *p = NULL;
        f.platform->common = i ? 3e-9 : 1e-9;
        assert_int_equal(tutti_predict_step(&p, f.net, f.platform, plan, &o), TUTTI_OK);
        assert_true(p->comm_s == 0 && p->late == 0 && p->exposed_s == 0);
        steps[i] = p->step_s;
        tutti_prediction_destroy(&p);
    }
    const double more = 2e-9 * parameters / 2;
    assert_true(fabs(steps[1] - steps[0] - more) < 1e-9 * more + 1e-12);
    tutti_plan_destroy(&plan);
    const double two_hosts = data_parallel(&f, 4, 1024);
    f.platform->common = 0;
    assert_true(data_parallel(&f, 4, 1024) == two_hosts);
    unload(&f);
}

#define HEAD "tutti platform 1\n"

static void bad_platforms_are_named(void **state)
{
    (void)state;
    static const struct {
        const char *text, *complaint;
    } bad[] = {{"peak 3GF\n", "mine:1:1: a platform begins with the line 'tutti platform 1'"},
               {"tutti plan 1\n", "mine:1:7: this is a plan, not a platform"},
               {HEAD "peak 3\n", "mine:2:6"},
               {HEAD "peak 3GF\nmemory-bandwidth 1GB/s\n", "no line 'link'"},
               {HEAD "peak 3GF\n\npeak 4GF\n", "mine:4:1: line 2 says 'peak' already"},
               {HEAD "speed 3\n", "mine:2:1"},
               {HEAD "topology ring\n", "star, fat-tree"},
               {HEAD "link 1GB/s latency=2\n", "mine:2"}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        tutti_platform *p = NULL;
        assert_int_not_equal(tutti_platform_parse(&p, "mine", bad[i].text), TUTTI_OK);
        if (!strstr(tutti_message(), bad[i].complaint))
            fail_msg("'%s' does not say '%s'", tutti_message(), bad[i].complaint);
    }
}

static const tutti_layer_prediction *layer_of(const tutti_prediction *p, const tutti_net *net,
                                              const char *name)
{
    return &p->layer[tutti_net_find_layer(net, name)];
}

/* Groups that ranks share cost messages; those inside ranks only the exchange of parameters. */
static void statistics_cost_messages_where_ranks_share_groups(void **state)
{
    (void)state;
    const tutti_predict_options o = {64, true, true, sgd, 0, 0};
    double seconds[2], bytes[2];
    for (int all = 0; all < 2; all++) {
        fixture f = {0};
        tutti_plan *plan = NULL;
        tutti_prediction *p = NULL;
        assert_int_equal(tutti_net_parse(&f.net,
                                         "input 3 32 32\nc conv 64 kernel=3\nb batchnorm group=16\n"
                                         "p avgpool global\nf fc 10\nl softmax\n",
                                         "t.net"),
                         TUTTI_OK);
        if (all) tutti_net_regroup(f.net, 0);
        assert_int_equal(tutti_platform_load(&f.platform, "cori-phase1"), TUTTI_OK);
        assert_int_equal(tutti_plan_create(&plan, f.net, 4), TUTTI_OK);
        assert_int_equal(tutti_predict_step(&p, f.net, f.platform, plan, &o), TUTTI_OK);
        seconds[all] = p->step_s;
        bytes[all] = layer_of(p, f.net, "b")->bytes;
        assert_true(layer_of(p, f.net, "b")->compute.weights > 0);
        tutti_prediction_destroy(&p);
        tutti_plan_destroy(&plan);
        unload(&f);
    }
    assert_true(seconds[1] > seconds[0]);
    /* of three others a root: 64 channels, two doubles, forward and back */
    assert_true(bytes[1] - bytes[0] == 2 * 3 * 64 * 2 * 8);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_node_is_as_fast_as_measured),
        cmocka_unit_test(several_passes_cost_little_and_save_memory),
        cmocka_unit_test(statistics_cost_messages_where_ranks_share_groups),
        cmocka_unit_test(convolutions_stay_data_parallel),
        cmocka_unit_test(never_worse_than_data_parallel),
        cmocka_unit_test(speech_net_is_hybrid_on_16_nodes),
        cmocka_unit_test(layers_are_late_where_there_is_slack),
        cmocka_unit_test(slack_is_counted_from_a_gradient_to_its_use),
        cmocka_unit_test(one_host_sends_nothing),
        cmocka_unit_test(bad_platforms_are_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
