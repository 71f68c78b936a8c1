/* What is trained, and how fast: by a net's text and by patterns. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "minibatch.h"

static const char text[] = "input 3 32 32\n"
                           "conv1 conv 32 kernel=3 pad=1 relu\n"
                           "conv2 conv 32 kernel=3 pad=1 silu\n"
                           "norm2 batchnorm relu\n"
                           "pool2 maxpool kernel=2\n"
                           "fc3 fc 40 tanh\n"
                           "fc4 fc 5\n"
                           "loss softmax\n";

static tutti_net *parse(const char *content)
{
    tutti_net *net = NULL;
    must(tutti_net_parse(&net, content, "t.net"));
    return net;
}

static const tutti_layer *layer_of(const tutti_net *net, const char *name)
{
    return &net->layers[tutti_net_find_layer(net, name)];
}

static bool is_frozen(const tutti_net *net, const char *name)
{
    return layer_of(net, name)->frozen;
}

static tutti_model_bytes bytes_of(const tutti_net *net)
{
    tutti_model_options options;
    tutti_model_bytes bytes;
    must(tutti_model_defaults(&options, net, 16));
    must(tutti_model_measure(&bytes, net, &options));
    return bytes;
}

/* ---- */

static void patterns_freeze_what_they_match(void **state)
{
    (void)state;
    tutti_net *net = parse(text);
    must(tutti_net_freeze(net, "conv[1],norm?"));
    assert_true(is_frozen(net, "conv1") && is_frozen(net, "norm2"));
    assert_false(is_frozen(net, "conv2") || is_frozen(net, "pool2") || is_frozen(net, "fc4"));
    must(tutti_net_freeze(net, "conv*"));
    assert_true(is_frozen(net, "conv2") && is_frozen(net, "norm2"));
    assert_false(layer_of(net, "fc3")->trains_below);
    assert_true(layer_of(net, "fc4")->trains_below);
    must(tutti_net_freeze(net, NULL));
    must(tutti_net_freeze(net, ""));
    tutti_net_destroy(&net);
}

static void patterns_scale_rates_and_the_last_holds(void **state)
{
    (void)state;
    tutti_net *net = parse(text);
    must(tutti_net_scale_lr(net, "*=0.5,fc?=2,fc4=0.1"));
    assert_true(layer_of(net, "norm2")->lr_scale == 0.5);
    assert_true(layer_of(net, "fc3")->lr_scale == 2);
    for (int i = 0; i < 2; i++)
        assert_true(net->params[layer_of(net, "fc4")->first_param + i].lr_scale == 0.1);
    tutti_net_destroy(&net);
}

static void the_text_says_the_same(void **state)
{
    (void)state;
    tutti_net *net = parse("input 4\na fc 4 frozen\nb fc 4 lr=0.25 frozen=no\nc batchnorm frozen\n"
                           "d fc 2\nloss softmax\n");
    assert_true(is_frozen(net, "a") && is_frozen(net, "c"));
    assert_false(is_frozen(net, "b") || is_frozen(net, "d"));
    assert_true(layer_of(net, "b")->lr_scale == 0.25);
    assert_true(layer_of(net, "d")->lr_scale == 1);
    assert_false(layer_of(net, "b")->trains_below);
    tutti_net_destroy(&net);
}

static void mistakes_are_named(void **state)
{
    (void)state;
    static const struct {
        tutti_status (*apply)(tutti_net *, const char *);
        const char *patterns, *says;
    } mistakes[] = {
        {tutti_net_freeze, "convx*",
         "--freeze convx*: t has no layer of that name; they go from "
         "conv1 to loss"},
        {tutti_net_freeze, "conv1,pool*", "--freeze pool*: the layers of that name have no param"},
        {tutti_net_freeze, "conv1,,fc3", "--freeze: a pattern is empty"},
        {tutti_net_freeze, "conv1,", "--freeze: a pattern is empty"},
        {tutti_net_freeze, "*", "--freeze * leaves nothing of t to train"},
        {tutti_net_scale_lr, "fc3", "--lr-scale fc3: write PATTERN=FACTOR"},
        {tutti_net_scale_lr, "fc3=", "--lr-scale fc3=: the factor must be a number"},
        {tutti_net_scale_lr, "fc3=0", "--lr-scale fc3=0: the factor must be a number between"},
        {tutti_net_scale_lr, "fc3=nan", "the factor must be a number between"},
        {tutti_net_scale_lr, "=2", "--lr-scale : t has no layer of that name"},
    };
    for (size_t i = 0; i < sizeof mistakes / sizeof *mistakes; i++) {
        tutti_net *net = parse(text);
        assert_int_equal(mistakes[i].apply(net, mistakes[i].patterns), TUTTI_ARGUMENT);
        if (!strstr(tutti_message(), mistakes[i].says))
            fail_msg("'%s', not '%s'", tutti_message(), mistakes[i].says);
        tutti_net_destroy(&net);
    }
}

static void a_frozen_layer_costs_its_parameters_only(void **state)
{
    (void)state;
    tutti_net *net = parse(text);
    tutti_net_convolve(net, TUTTI_CONV_DIRECT); /* with little scratch: freezing saves none */
    const tutti_layer_info all = tutti_net_total(net);
    const tutti_model_bytes before = bytes_of(net);
    assert_int_equal(all.trained, all.parameters);
    assert_int_equal(before.followed, before.parameters);
    must(tutti_net_freeze(net, "conv*,norm2,fc3"));
    const tutti_layer_info left = tutti_net_total(net), fc4 = tutti_net_layer_info(net, 5);
    const tutti_model_bytes after = bytes_of(net);
    assert_int_equal(left.parameters, all.parameters);
    assert_int_equal(left.trained, fc4.parameters);
    assert_int_equal(left.train_flops, 2 * (all.macs + fc4.macs));
    assert_int_equal(after.parameters, before.parameters);
    assert_int_equal(after.followed, tutti_layer_floats(net, 5) * sizeof(float));
    assert_int_equal(after.gradients, before.gradients * after.followed / before.followed);
    assert_true(after.arena < before.arena / 2); /* no output outlives its readers */
    tutti_net_destroy(&net);
}

static void training_alone_tells_such_nets_apart(void **state)
{
    (void)state;
    char plain[TUTTI_HASH_HEX], frozen[TUTTI_HASH_HEX], slow[TUTTI_HASH_HEX];
    char answers[3][TUTTI_HASH_HEX];
    tutti_net *net[3] = {parse(text), parse(text), parse(text)};
    must(tutti_net_freeze(net[1], "conv1"));
    must(tutti_net_scale_lr(net[2], "conv1=0.1"));
    must(tutti_net_hash(net[0], plain));
    must(tutti_net_hash(net[1], frozen));
    must(tutti_net_hash(net[2], slow));
    assert_string_not_equal(plain, frozen);
    assert_string_not_equal(plain, slow);
    assert_string_not_equal(frozen, slow);
    for (int i = 0; i < 3; i++) must(tutti_net_hash_answers(net[i], answers[i]));
    for (int i = 0; i < 3; i++) assert_string_equal(answers[i], plain);
    for (int i = 0; i < 3; i++) tutti_net_destroy(&net[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(patterns_freeze_what_they_match),
        cmocka_unit_test(patterns_scale_rates_and_the_last_holds),
        cmocka_unit_test(the_text_says_the_same),
        cmocka_unit_test(mistakes_are_named),
        cmocka_unit_test(a_frozen_layer_costs_its_parameters_only),
        cmocka_unit_test(training_alone_tells_such_nets_apart),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
