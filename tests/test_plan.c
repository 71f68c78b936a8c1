/* Plans as text, and what a step costs when computing and communication overlap. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "base/memory.h"
#include "plan/plan.h"
#include "plan/timeline.h"

static tutti_net *load(const char *name)
{
    tutti_net *net = NULL;
    assert_int_equal(tutti_net_load(&net, name), TUTTI_OK);
    return net;
}

#define HEAD "tutti plan 1\n"

static void a_plan_survives_its_text(void **state)
{
    (void)state;
    tutti_net *net = load("vgg-a");
    tutti_plan *plan = NULL, *again = NULL;
    char *text = NULL;
    const char *wanted = HEAD "fc6 hybrid groups=4\nfc7 model # over everybody\n\nconv1 data\n";
    assert_int_equal(tutti_plan_parse(&plan, net, 8, "mine.plan", wanted), TUTTI_OK);
    assert_int_equal(plan->groups[tutti_net_find_layer(net, "fc6")], 4);
    assert_int_equal(plan->groups[tutti_net_find_layer(net, "fc7")], 1);
    assert_int_equal(plan->groups[tutti_net_find_layer(net, "conv3")], 8);
    assert_int_equal(tutti_plan_text(&text, plan, net), TUTTI_OK);
    assert_non_null(strstr(text, "fc6 hybrid groups=4\nfc7 model\nfc8 data\n"));
    assert_int_equal(tutti_plan_parse(&again, net, 8, "again", text), TUTTI_OK);
    assert_memory_equal(again->groups, plan->groups, sizeof *plan->groups * (size_t)plan->layers);
    tutti_free(text);
    tutti_plan_destroy(&plan);
    tutti_plan_destroy(&again);
    tutti_net_destroy(&net);
}

/* What was written says when it is not that any more, unless only its first line changed. */
static void a_changed_plan_is_noticed(void **state)
{
    (void)state;
    tutti_net *net = load("vgg-a");
    tutti_plan *plan = NULL;
    char *text = NULL;
    assert_int_equal(tutti_plan_create(&plan, net, 8), TUTTI_OK);
    tutti_plan_set_model(plan, net);
    assert_int_equal(tutti_plan_text(&text, plan, net), TUTTI_OK);
    tutti_plan_destroy(&plan);
    for (char *at = strchr(text, '\n') + 1; *at; at++) {
        const char was = *at;
        for (int bit = 0; bit < 8; bit++) {
            *at = (char)(was ^ (1 << bit));
            assert_int_equal(tutti_plan_parse(&plan, net, 8, "mine", text), TUTTI_PARSE);
        }
        *at = 0; /* cut off here */
        assert_int_equal(tutti_plan_parse(&plan, net, 8, "mine", text), TUTTI_PARSE);
        *at = was;
    }
    assert_int_equal(tutti_plan_parse(&plan, net, 8, "mine", text), TUTTI_OK);
    tutti_plan_destroy(&plan);
    tutti_free(text);
    tutti_net_destroy(&net);
}

static void what_does_not_fit_is_named(void **state)
{
    (void)state;
    static const struct {
        const char *text, *complaint;
    } bad[] = {
        {"", "mine:1:1: a plan begins with the line 'tutti plan 1'"},
        {"fc6 model\n", "mine:1:1: a plan begins with the line 'tutti plan 1'"},
        {"tutti plan\n", "mine:1:11: expected the version"},
        {"tutti plan 2\n", "mine:1:12: version 2 of a plan is for a later tutti"},
        {"tutti platform 1\n", "mine:1:7: this is a platform, not a plan"},
        {"tutti plan 1 some=7\n", "mine:1:14"},
        {"tutti plan 1 sum=\nfc6 model\n", "mine:1:14: 'sum' needs a value"},
        {"tutti plan 1 sum=0123456789abcdef\nfc6 model\n", "take 'sum=...' out of this line"},
        {HEAD "fc9 model\n", "mine:2:1: vgg-a has no layer 'fc9'"},
        {HEAD "fc6 split\n", "mine:2:5: a layer is split data, model or hybrid"},
        {HEAD "\nfc6 hybrid groups=3\n", "mine:3:1: layer fc6: 3 groups do not divide 8 ranks"},
        {HEAD "fc6 hybrid\n", "groups"},
        {HEAD "fc6 model\n\nfc6 data\n", "mine:4:1: line 2 is about fc6 already"},
        {HEAD "conv2 model\n", "only fully connected layers"},
        {HEAD "fc6 model 7\n", "mine:2:11"},
    };
    tutti_net *net = load("vgg-a");
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        tutti_plan *plan = NULL;
        assert_int_not_equal(tutti_plan_parse(&plan, net, 8, "mine", bad[i].text), TUTTI_OK);
        assert_null(plan);
        if (!strstr(tutti_message(), bad[i].complaint))
            fail_msg("'%s' does not say '%s'", tutti_message(), bad[i].complaint);
    }
    /* 1000 outputs are 16 blocks: too few for 32 ranks in one group */
    assert_int_not_equal(
        tutti_layer_check_split(&net->layers[tutti_net_find_layer(net, "fc8")], 32, 1), TUTTI_OK);
    assert_non_null(strstr(tutti_message(), "at least 2 groups"));
    tutti_net_destroy(&net);
}

/* Two layers; forward 1 + 1, backward 1 w, 1 b, 1 w: five seconds of computing. */
static const tutti_op program[] = {
    {TUTTI_OP_WAIT, 0, 0},    {TUTTI_OP_COMPUTE, 0, 1}, {TUTTI_OP_WAIT, 1, 0},
    {TUTTI_OP_COMPUTE, 1, 1}, {TUTTI_OP_COMPUTE, 1, 1}, {TUTTI_OP_SUBMIT, 1, 0},
    {TUTTI_OP_COMPUTE, 1, 1}, {TUTTI_OP_GATE, 1, 0},    {TUTTI_OP_COMPUTE, 0, 1},
    {TUTTI_OP_SUBMIT, 0, 0},  {TUTTI_OP_GATE, 0, 0},
};
enum { OPS = sizeof program / sizeof *program };

static double step(double reduce0, double reduce1, double steals, int in_order, double waited[2])
{
    tutti_chain chains[2] = {{.reduce = reduce0, .broadcast = reduce0},
                             {.reduce = reduce1, .broadcast = reduce1}};
    const tutti_channel channel = {steals, 1, in_order};
    const double seconds = tutti_timeline_step(program, OPS, chains, 2, &channel, NULL);
    waited[0] = chains[0].waited;
    waited[1] = chains[1].waited;
    return seconds;
}

static void overlap_hides_what_fits(void **state)
{
    (void)state;
    double waited[2];
    assert_true(fabs(step(0, 0, 0, 0, waited) - 5) < 1e-12);
    /* layer 1's exchange of 2 is hidden behind backward-data and layer 0 */
    assert_true(fabs(step(0, 1, 0, 0, waited) - 5) < 1e-12);
    /* layer 0 has nothing to hide behind */
    assert_true(fabs(step(0.5, 0, 0, 0, waited) - 6) < 1e-12);
    assert_true(fabs(waited[0] - 1) < 1e-12 && waited[1] == 0);
}

static void priority_lets_the_first_layer_overtake(void **state)
{
    (void)state;
    double first[2], ordered[2];
    /* layer 1 takes 6 in all, 2 of them before layer 0 submits its 1. First layer first: wait 1,
     * then forward of layer 0 hides 1 more, 3 are left to wait for. In order: 4 + 1 at once, and
     * nothing later. */
    const double with = step(0.5, 3, 0, 0, first), without = step(0.5, 3, 0, 1, ordered);
    assert_true(fabs(first[0] - 1) < 1e-12);
    assert_true(fabs(first[1] - 3) < 1e-12);
    assert_true(fabs(with - 9) < 1e-12);
    assert_true(fabs(ordered[0] - 5) < 1e-12);
    assert_true(fabs(without - 10) < 1e-12);
}

static void a_stolen_core_is_paid_for(void **state)
{
    (void)state;
    double waited[2];
    assert_true(fabs(step(0, 1, 1, 0, waited) - 7) < 1e-12);
    assert_true(fabs(step(0, 1, 0.5, 0, waited) - 6) < 1e-12);
}

static void a_channel_beside_computing_is_slower(void **state)
{
    (void)state;
    /* layer 1's chain of 1 takes 2 beside computing and slows it to a half: 1 of 5 seconds is lost;
     * layer 0's, of 1, has nothing to hide behind and is as fast as alone */
    tutti_chain chains[2] = {{.reduce = 0.5, .broadcast = 0.5}, {.reduce = 0.5, .broadcast = 0.5}};
    const tutti_channel channel = {.steals = 0.5, .beside = 2};
    assert_true(fabs(tutti_timeline_step(program, OPS, chains, 2, &channel, NULL) - 7) < 1e-12);
    assert_true(fabs(chains[0].waited - 1) < 1e-12);
    assert_true(fabs(chains[0].computed + chains[1].computed - 6) < 1e-12);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_plan_survives_its_text),
        cmocka_unit_test(a_changed_plan_is_noticed),
        cmocka_unit_test(what_does_not_fit_is_named),
        cmocka_unit_test(overlap_hides_what_fits),
        cmocka_unit_test(priority_lets_the_first_layer_overtake),
        cmocka_unit_test(a_stolen_core_is_paid_for),
        cmocka_unit_test(a_channel_beside_computing_is_slower),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
