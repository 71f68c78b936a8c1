/* Nets from text: the zoo's numbers, branches, and what the parser says about mistakes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "nn/kinds/kind.h"

static tutti_net *load(const char *name)
{
    tutti_net *net = NULL;
    if (tutti_net_load(&net, name)) fail_msg("%s", tutti_message());
    return net;
}

static tutti_net *parse(const char *text)
{
    tutti_net *net = NULL;
    if (tutti_net_parse(&net, text, "t.net")) fail_msg("%s", tutti_message());
    return net;
}

/* Parameters, multiply-adds and training FLOPs of one sample, as published or counted by hand. */
static void the_zoo_has_the_published_sizes(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        uint64_t parameters, macs, train_flops;
        int classes;
    } zoo[] = {
        {"vgg-a", 132863336, 7609090048, 45481132032, 1000},
        {"overfeat-fast", 145920872, 2801403904, 16589856768, 1000},
        {"cd-dnn", 45122648, 45099008, 6 * 45099008ull - 2 * 429 * 2048, 9304},
        {"alexnet", 61100840, 714188480, 0, 1000},
        {"lenet", 0, 0, 0, 10},
        {"cifar-vgg", 0, 0, 0, 10},
        {"resnet18", 11689512, 0, 0, 1000}, /* these as torchvision's */
        {"resnet34", 21797672, 0, 0, 1000},
        {"resnet50", 25557032, 4089184256, 0, 1000},
        {"resnext50", 25028904, 0, 0, 1000},
        {"vgg11-bn", 132868840, 0, 0, 1000},
        {"mobilenet-v2", 3504872, 0, 0, 1000},
        {"mobilenet-v3-small", 2542856, 0, 0, 1000},
        {"squeezenet", 1235496, 0, 0, 1000},
        {"densenet121", 7978856, 0, 0, 1000},
        {"googlenet", 13004888, 0, 0, 1000},
        {"shufflenet-v2", 2278604, 0, 0, 1000},
        {"efficientnet-b0", 5288548, 0, 0, 1000},
        {"regnet-y-400mf", 4344144, 0, 0, 1000},
        {"convnext-tiny", 28589128, 0, 0, 1000},
        {"unet", 1942917, 0, 0, 21},
        {"resnet-cifar", 272474, 0, 0, 10},
        {"resnet9", 6573120, 0, 0, 10},
        {"resnet9-small", 1978016, 0, 0, 10},
    };
    for (size_t i = 0; i < sizeof zoo / sizeof *zoo; i++) {
        tutti_net *net = load(zoo[i].name);
        const tutti_layer_info total = tutti_net_total(net);
        if (zoo[i].parameters) assert_int_equal(total.parameters, zoo[i].parameters);
        if (zoo[i].macs) assert_int_equal(total.macs, zoo[i].macs);
        if (zoo[i].train_flops) assert_int_equal(total.train_flops, zoo[i].train_flops);
        assert_int_equal(tutti_net_classes(net), zoo[i].classes);
        assert_string_equal(tutti_net_name(net), zoo[i].name);
        tutti_net_destroy(&net);
    }
}

static void the_zoo_is_listed(void **state)
{
    (void)state;
    int count = 0;
    for (; tutti_net_known(count); count++) {
        tutti_net *net = load(tutti_net_known(count));
        if (count) assert_true(strcmp(tutti_net_known(count - 1), tutti_net_known(count)) < 0);
        tutti_net_destroy(&net);
    }
    assert_int_equal(count, 24);
}

static void layers_know_their_shapes_and_parameters(void **state)
{
    (void)state;
    tutti_net *net = load("vgg-a");
    const tutti_layer_info conv8 = tutti_net_layer_info(net, tutti_net_find_layer(net, "conv8"));
    assert_int_equal(conv8.in.c, 512);
    assert_int_equal(conv8.in.h, 14);
    assert_int_equal(conv8.out.w, 14);
    assert_int_equal(conv8.macs, 462422016);
    assert_string_equal(conv8.activation, "relu");

    const tutti_param *w = &net->params[tutti_net_find_param(net, "conv2.weight")];
    const int want[4] = {128, 64, 3, 3};
    assert_int_equal(w->dim_count, 4);
    assert_memory_equal(w->dims, want, sizeof want);
    assert_int_equal(w->count, 73728);
    const tutti_param *fc = &net->params[tutti_net_find_param(net, "fc6.weight")];
    assert_int_equal(fc->dims[0], 4096);
    assert_int_equal(fc->dims[1], 25088);
    assert_int_equal(tutti_net_find_param(net, "fc12.weight"), -1);
    tutti_net_destroy(&net);
    net = parse("input 20 5 5\nc conv 7 kernel=1 linear\nf fc 3\nl softmax");
    const tutti_param *linear = &net->params[tutti_net_find_param(net, "c.weight")];
    assert_int_equal(linear->dim_count, 2);
    assert_int_equal(linear->dims[0], 7);
    assert_int_equal(linear->dims[1], 20);
    tutti_net_destroy(&net);
}

/* Regions follow one another without gaps, in whole cache lines. */
static void the_flat_buffer_is_contiguous(void **state)
{
    (void)state;
    tutti_net *net = load("lenet");
    size_t at = 0;
    for (int i = 0; i < net->param_count; i++) {
        assert_int_equal(net->params[i].offset, at);
        assert_true(net->params[i].stored >= net->params[i].count);
        assert_int_equal(net->params[i].stored % TUTTI_BLOCK, 0);
        at += net->params[i].stored;
    }
    assert_int_equal(net->param_floats, at);
    const int fc3 = tutti_net_find_layer(net, "fc3");
    assert_int_equal(tutti_layer_offset(net, fc3),
                     net->params[net->layers[fc3].first_param].offset);
    assert_int_equal(tutti_layer_floats(net, fc3), 64 * 25 * 512 + 512);
    tutti_net_destroy(&net);
}

static void branches_join_by_name(void **state)
{
    (void)state;
    tutti_net *net = parse("input 3 8 8   # a small residual net\n"
                           "a conv 32 kernel=3 pad=1 relu\n"
                           "b conv 32 kernel=3 pad=1\n"
                           "s add a b relu\n"
                           "c conv 16 kernel=1x3 pad=0x1 from=s\n"
                           "d conv 20 kernel=1 from=s\n"
                           "cat concat c d s tanh\n"
                           "p avgpool global\n"
                           "f fc 5 init=gaussian std=0.01 bias=0.5\n"
                           "loss softmax\n");
    assert_int_equal(net->layers[tutti_net_find_layer(net, "cat")].out.c, 68);
    assert_int_equal(net->layers[tutti_net_find_layer(net, "p")].out.h, 1);
    assert_int_equal(net->layers[2].from[1], 1);
    assert_int_equal(net->layers[3].from[0], 2);
    assert_false(net->layers[0].trains_below);
    assert_int_equal(net->layers[0].form, TUTTI_FORM_COMPACT);
    assert_true(net->layers[1].trains_below);
    assert_int_equal(net->layers[1].form, TUTTI_FORM_BLOCKED);
    const tutti_layer *f = &net->layers[tutti_net_find_layer(net, "f")];
    const tutti_param *p = &net->params[f->first_param];
    assert_int_equal(p[0].fill.init, TUTTI_INIT_GAUSSIAN);
    assert_true(p[0].fill.value == 0.01f);
    assert_true(p[1].fill.value == 0.5f);
    assert_true(tutti_layer_number(f, "bias", 0) == 0.5);
    tutti_net_destroy(&net);
}

static void many_inputs_and_the_sample_join(void **state)
{
    (void)state;
    char text[1024] = "input 3\na fc 3\nb fc 3\nc add a b input tanh\nd concat";
    for (int i = 0; i < 40; i++) strcat(text, i % 2 ? " input" : " c");
    strcat(text, " relu\nf fc 2\nloss softmax\n");
    tutti_net *net = parse(text);
    const tutti_layer *c = &net->layers[2], *d = &net->layers[3];
    assert_int_equal(c->input_count, 3);
    assert_int_equal(c->from[2], TUTTI_NET_INPUT);
    assert_string_equal(c->activation->word, "tanh");
    assert_int_equal(d->input_count, 40);
    assert_int_equal(d->out.c, 120);
    assert_string_equal(d->activation->word, "relu");
    tutti_net_destroy(&net);
}

static void hash_of(const char *text, char hex[TUTTI_HASH_HEX])
{
    tutti_net *net = parse(text);
    assert_int_equal(tutti_net_hash(net, hex), TUTTI_OK);
    tutti_net_destroy(&net);
}

static void every_option_is_part_of_the_hash(void **state)
{
    (void)state;
    static const char *const different[] = {
        "input 32 9 9\nc conv 32 kernel=3 pad=1\nn lrn 5\nf fc 2\nloss softmax\n",
        "input 32 9 9\nc conv 32 kernel=3 pad=1\nn lrn 5 alpha=1e-3\nf fc 2\nloss softmax\n",
        "input 32 9 9\nc conv 32 kernel=3 pad=1\nn lrn 5 beta=0.5\nf fc 2\nloss softmax\n",
        "input 32 9 9\nc conv 32 kernel=3 pad=1\nn lrn 5 k=2\nf fc 2\nloss softmax\n",
        "input 32 9 9\nc conv 32 kernel=3 pad=1\nn lrn 3\nf fc 2\nloss softmax\n",
        "input 32 9 9\nc conv 32 kernel=3 pad=1\nn batchnorm\nf fc 2\nloss softmax\n",
        "input 32 9 9\nc conv 32 kernel=3 pad=1\nn batchnorm group=all\nf fc 2\nloss softmax\n",
        "input 32 9 9\nc conv 32 kernel=3 pad=1\nn batchnorm group=8\nf fc 2\nloss softmax\n",
        "input 32 9 9\nc conv 32 kernel=3 pad=1\nn batchnorm eps=1e-3\nf fc 2\nloss softmax\n",
        "input 32 9 9\nc conv 32 kernel=3 pad=1\nn batchnorm momentum=1\nf fc 2\nloss softmax\n",
        "input 32 9 9\nc conv 32 kernel=3 pad=2 dilation=2\nn lrn 5\nf fc 2\nloss softmax\n",
        "input 32 9 9\nc conv 32 kernel=3 pad=1 groups=2\nn lrn 5\nf fc 2\nloss softmax\n",
        "input 32 9 9\nc conv 32 kernel=3 pad=1 relu\nn lrn 5\nf fc 2\nloss softmax\n",
        "input 32 9 9\nc conv 32 kernel=3 pad=1 nobias\nn lrn 5\nf fc 2\nloss softmax\n",
        "input 32 9 9\nc conv 32 kernel=3 pad=1\nn lrn 5\nf fc 2 from=c\nd dropout 0.5\n"
        "e fc 2 from=n\ns add d e\nloss softmax\n",
        "input 32 9 9\nc conv 32 kernel=3 pad=1\nn lrn 5\nf fc 2 from=c\nd dropout 0.4\n"
        "e fc 2 from=n\ns add d e\nloss softmax\n",
        "input 32 9 9\nc conv 32 kernel=3 pad=0 pad-end=2\nn lrn 5\nf fc 2\nloss softmax\n",
        "input 32 9 9\nc avgpool kernel=2 pad=1\nf fc 2\nloss softmax\n",
        "input 32 9 9\nc avgpool kernel=2 pad=1 ceil\nf fc 2\nloss softmax\n",
        "input 32 9 9\nc avgpool kernel=2 pad=1 exclude-pad\nf fc 2\nloss softmax\n",
        "input 32 9 9\nc avgpool size=6\nf fc 2\nloss softmax\n",
        "input 32 9 9\nc conv 32 kernel=3 pad=1 frozen\nn lrn 5\nf fc 2\nloss softmax\n",
        "input 32 9 9\nc conv 32 kernel=3 pad=1 lr=0.1\nn lrn 5\nf fc 2\nloss softmax\n",
        "input 32 9 9\nc conv 32 kernel=3 pad=1\nn lrn 5\nf fc 2 lr=0.1\nloss softmax\n",
    };
    enum { COUNT = sizeof different / sizeof *different };
    char hashes[COUNT][TUTTI_HASH_HEX], again[TUTTI_HASH_HEX];
    for (int i = 0; i < COUNT; i++) {
        hash_of(different[i], hashes[i]);
        for (int k = 0; k < i; k++) assert_string_not_equal(hashes[i], hashes[k]);
    }
    hash_of("# the same, said in other words\ninput 32 9 9\ndefault lr 0.5\n"
            "c conv 32 kernel=3x3 stride=1 pad=1 pad-end=1\nn lrn 5 k=1\nf fc 2\nloss softmax\n",
            again);
    assert_string_equal(again, hashes[0]);
}

static void defaults_are_kept_with_their_place(void **state)
{
    (void)state;
    tutti_net *net = parse("input 10\ndefault lr 0.5\n\tdefault  momentum 0.9\nf fc 2\nl softmax");
    const char *key, *value, *where;
    assert_true(tutti_net_default(net, 1, &key, &value, &where));
    assert_string_equal(key, "momentum");
    assert_string_equal(value, "0.9");
    assert_string_equal(where, "t.net:3:20");
    assert_false(tutti_net_default(net, 2, &key, &value, &where));
    tutti_net_destroy(&net);
}

static void suggestions_fill_up_with_the_usual(void **state)
{
    (void)state;
    tutti_suggested s;
    tutti_net *net = parse("input 10\ndefault epochs 2.5\ndefault warmup 9\nf fc 2\nl softmax");
    assert_int_equal(tutti_net_suggested(&s, net), TUTTI_OK);
    assert_int_equal(s.batch, 64);
    assert_true(s.epochs == 2.5 && s.lr == 0.01 && s.clip == 0);
    char text[TUTTI_OPTIMIZER_TEXT];
    tutti_optimizer_text(&s.optimizer, text);
    assert_string_equal(text, "sgd,momentum=0.9,nesterov=no");
    assert_string_equal(s.lr_schedule, "fixed");
    assert_string_equal(s.warmup, "9");
    assert_true(s.decay_all && s.label_smoothing == 0 && s.ema == 0);
    tutti_net_destroy(&net);
}

static void suggestions_that_do_not_fit_are_refused(void **state)
{
    (void)state;
    static const char *const bad[][2] = {
        {"batch-size many", "'many' is not a whole number from 1 to"},
        {"batch-size 0", "'0' is not a whole number"},
        {"batch-size 2.5", "'2.5' is not a whole number"},
        {"momentum 2", "'2' is not a number from 0 to 1"},
        {"decay-all no", "default decay-all is on or off, not 'no'"},
        {"label-smoothing 1.5", "'1.5' is not a number from 0 to 1"},
        {"ema 1", "'1' is not a number from 0 to"},
        {"batchsize 3", "'default batchsize' is unknown"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char text[128];
        int batch;
        snprintf(text, sizeof text, "input 10\ndefault %s\nf fc 2\nl softmax", bad[i][0]);
        tutti_net *net = parse(text);
        assert_int_equal(tutti_net_batch_size(net, &batch), TUTTI_PARSE);
        assert_non_null(strstr(tutti_message(), "t.net:2:"));
        assert_non_null(strstr(tutti_message(), bad[i][1]));
        tutti_net_destroy(&net);
    }
}

static void noise_is_taken_out(void **state)
{
    (void)state;
    tutti_net *net = parse("input 3\nf fc 3\nd dropout 0.5\ns stochasticdepth 0.2\nl softmax");
    assert_true(tutti_layer_number(&net->layers[2], "rate", 0) == 0.2);
    tutti_net_still(net);
    assert_true(tutti_layer_number(&net->layers[1], "rate", 0) == 0);
    assert_true(tutti_layer_number(&net->layers[2], "rate", 0) == 0);
    tutti_net_destroy(&net);
}

/* Each text, and how the complaint about it begins. */
static const struct {
    const char *text, *says;
} mistakes[] = {
    {"", "t.net: the net must end with its loss"},
    {"tutti net 2\n", "t.net:1:11: version 2 of a net is for a later tutti"},
    {"tutti plan 1\n", "t.net:1:7: this is a plan, not a net"},
    {"input 3\ntutti net 1\n", "t.net:2:1: 'tutti net 1' must be the first line"},
    {"tutti net 1 sum=0123456789abcdef\ninput 3\n", "t.net:1:17: the lines below are not"},
    {"a fc 3\n", "t.net:1:1: the input must come first"},
    {"input 3 0 4\n", "t.net:1:9: 0 is not between 1 and"},
    {"input 3 4\n", "t.net:1:1: input wants CHANNELS HEIGHT WIDTH"},
    {"input 3\ninput 3\n", "t.net:2:1: a second input"},
    {"input 1048576 1048576 1048576\n", "t.net:1:1: an input of"},
    {"input 3\nx\n", "t.net:2:2: expected a kind of layer"},
    {"input 3\nx cnov 3\n", "t.net:2:3: there is no kind of layer 'cnov'; did you mean 'conv'"},
    {"input 3\nx Linear 3\n", "t.net:2:3: there is no kind of layer 'Linear'; did you mean 'fc'"},
    {"input 3\nx batchnorm2d\n",
     "t.net:2:3: there is no kind of layer 'batchnorm2d'; did you mean 'batchnorm'"},
    {"input 3\nx fully_connected 3\n",
     "t.net:2:3: there is no kind of layer 'fully_connected'; did you mean 'fc'"},
    {"input 3\nx Batch_Norm\n",
     "t.net:2:3: there is no kind of layer 'Batch_Norm'; did you mean 'batchnorm'"},
    {"input 3\nx flatten\n", "t.net:2:3: leave out 'flatten': an fc flattens what it gets"},
    {"input 3\nx attention 3\n",
     "t.net:2:3: there is no kind of layer 'attention'; known: conv, deconv, fc, maxpool"},
    {"input 3\nx cross_entropy\n",
     "t.net:2:3: there is no kind of layer 'cross_entropy'; did you mean 'softmax'"},
    {"input 3\nx mae\n", "t.net:2:3: there is no kind of layer 'mae'; did you mean 'l1'"},
    {"input 3\nx fc\n", "t.net:2:5: expected a number of features"},
    {"input 3\nx fc 3.5\n", "t.net:2:6: '3.5' is not a whole number"},
    {"input 3\nx fc 99999999999999999999\n", "t.net:2:6: 99999999999999999999 is not between"},
    {"input 3\nx fc 3 kernel=3\n", "t.net:2:8: there is no 'kernel' here; possible: nobias"},
    {"input 3 9 9\nx conv 3 kernal=3\n", "t.net:2:10: there is no 'kernal' here; possible: kernel"},
    {"input 3 9 9\nx conv 3 kernel\n", "t.net:2:10: 'kernel' needs a value"},
    {"input 3 9 9\nx conv 3 relu=2\n", "t.net:2:15: '2' is neither yes nor no"},
    {"input 3 9 9\nx conv 3 kernel=3x\n", "t.net:2:19: '' is not a whole number"},
    {"input 3 9 9\nx conv 3\n", "t.net:2:1: x needs a window"},
    {"input 3 9 9\nx conv 3 kernel=11\n", "t.net:2:1: x: a window of 11x11 does not fit"},
    {"input 3 9 9\nx conv 4 kernel=1 groups=2\n", "t.net:2:1: x: groups=2 must divide"},
    {"input 3 9 9\nx conv 4 kernel=1x2 linear\n", "t.net:2:1: x: linear is a linear layer on each"},
    {"input 3 9 9\nx conv 4 kernel=1 stride=2 linear\n", "t.net:2:1: x: linear is a linear layer"},
    {"input 3 9 9\nx conv 3 kernel=1 groups=3 linear\n", "t.net:2:1: x: linear is a linear layer"},
    {"input 3 9 9\nx maxpool kernel=2 pad=2\n", "t.net:2:1: x: pad=2x2 is more than half"},
    {"input 3 9 9\nx maxpool kernel=2 pad-end=2\n", "t.net:2:1: x: pad-end=2x2 is as much as"},
    {"input 3 9 9\nx maxpool kernel=2 exclude-pad\n", "t.net:2:20: there is no 'exclude-pad'"},
    {"input 3 9 9\np maxpool global ceil\n", "t.net:2:1: p: global pools the whole image"},
    {"input 3 9 9\np avgpool size=3 kernel=3\n", "t.net:2:1: p: size= is that of the output"},
    {"input 3 9 9\nx fc 5 init=hi\n", "t.net:2:13: 'hi' is none of auto, he"},
    {"input 3\nx batchnorm group=0\n", "t.net:2:19: 0 is not between 1 and"},
    {"input 3\nx batchnorm group=some\n", "t.net:2:19: 'some' is not"},
    {"input 3\nx batchnorm 3\n", "t.net:2:13"},
    {"input 3\nx dropout 1.5\n", "t.net:2:11: 1.5 is not between 0 and"},
    {"input 3\nx fc 3\nx fc 3\n", "t.net:3:1: 'x' is taken by the layer in line 2"},
    {"input 3\n7 fc 3\n", "t.net:2:1: '7' is not a name"},
    {"input 3\nalpha fc 3\nb fc 3 from=alpah\n", "t.net:3:13: no layer 'alpah' above; did you "
                                                 "mean 'alpha'"},
    {"input 3\na fc 3\nb fc 4\ns add a b\n", "t.net:4:1: s: a is 3x1x1 and b is 4x1x1; they"},
    {"input 3\na fc 3\nb fc 3\ns mul a b a\n", "t.net:4:1: s: mul has two inputs, not 3"},
    {"input 3 4 4\na conv 3 kernel=2\ns mul a input\n",
     "t.net:3:1: s: a is 3x3x3 and input is 3x4x4; they must be equal, or one of them 3x1x1"},
    {"input 3 4 4\na slice first=3\n", "t.net:2:1: a: channels first=3 to end=3"},
    {"input 3 4 4\na slice first=1 end=4\n", "t.net:2:1: a: channels first=1 to end=4"},
    {"input 3 4 4\na shuffle 2\n", "t.net:2:1: a: 2 groups must divide its 3 input"},
    {"input 3 4 4\na groupnorm\n", "t.net:2:12: expected a number of groups"},
    {"input 3 4 4\na groupnorm 2\n", "t.net:2:1: a: 2 groups do not divide its 3 channels"},
    {"input 3 4 4\na upsample\n", "t.net:2:1: a needs scale=N"},
    {"input 3 4 4\na upsample scale=2 size=8\n", "t.net:2:1: a needs scale=N"},
    {"input 3 4 4\na upsample scale=2 mode=cubic\n", "t.net:2:25: 'cubic' is none of nearest"},
    {"input 3 4 4\na upsample scale=2 align-corners\n", "t.net:2:1: a: align-corners is for"},
    {"input 3 4096 1\na upsample scale=4096\n", "t.net:2:1: a: 4096 times 4096 pixels are"},
    {"input 3 4 4\na deconv 3\n", "t.net:2:1: a needs a window"},
    {"input 3 4 4\na deconv 4 kernel=1 groups=2\n", "t.net:2:1: a: groups=2 must divide"},
    {"input 3 4 4\na deconv 4 kernel=2 output-pad=1\n", "t.net:2:1: a: output-pad=1x1 must be"},
    {"input 3 4 4\na deconv 4 kernel=1 pad=2\n", "t.net:2:1: a: it would make images of 0x0"},
    {"input 3 4 4\na stochasticdepth 1\n", "t.net:2:19: 1 is not between 0 and"},
    {"input 3\na fc 3\ns add a\n", "t.net:3:8: add wants the names of two or more layers"},
    {"input 3\na fc 3\nb fc 3 from=input\nl softmax\n", "t.net:2:1: nothing uses the output"},
    {"input 3 4 4\nl softmax\n", "t.net:2:1: l: softmax wants one value per class"},
    {"input 3\nl softmax\n", "t.net: the net has nothing to train"},
    {"input 3\na fc 3\nb fc 3\ns add a b cc\n", "t.net:4:11: no layer 'cc' above"},
    {"input 3\nrelu fc 3\n", "t.net:2:1: 'relu' is a word of the language"},
    {"input 3 9 9\np maxpool global pad=1\n", "t.net:2:1: p: global pools the whole image"},
    {"input 3 9 9\np avgpool global kernel=2\n", "t.net:2:1: p: global pools the whole"},
    {"input 3 9 9\np avgpool global stride=2\n", "t.net:2:1: p: global pools the whole"},
    {"input 3\na fc 3 std=0.1\n", "t.net:2:1: a: std= is the deviation of init=gaussian"},
    {"input 3\na fc 3 init=he std=0.1\n", "t.net:2:1: a: std= is the deviation"},
    {"input 3\na fc 3 nobias bias=3\n", "t.net:2:1: a: bias=3 is the initial bias"},
    {"input 3\na fc 3 lr=0\n", "t.net:2:11: 0 is not between 1e-09 and 1000000000"},
    {"input 3\na fc 3 lr=fast\n", "t.net:2:11: 'fast' is not a number"},
    {"input 3\na fc 3 frozen=2\n", "t.net:2:15: '2' is neither yes nor no"},
    {"input 3\na dropout 0.5 frozen\n", "t.net:2:1: a has no parameters to train: leave 'frozen'"},
    {"input 3\na dropout 0.5 lr=2\n", "t.net:2:1: a has no parameters to train: leave 'lr='"},
    {"input 3\na fc 3 frozen\nl softmax\n", "t.net: the net has nothing to train"},
    {"input 3\na fc 3 relu tanh\n", "t.net:2:17: a layer has one activation"},
    {"input 3\na fc 3\nl softmax\nb fc 3\nm softmax\n",
     "t.net:4:1: l is a loss, which has no output: say with"},
    {"input 3\na fc 3\nl softmax\nb fc 3 from=a\n", "t.net: the net must end with its loss"},
    {"input 3\na fc 4\nl softmax\nb fc 3 from=a\nm softmax\n", "t.net:3:1: 'l' tells 4 classes"},
    {"input 3\nl softmax\nb fc 3 from=input\nm softmax\n", "t.net:2:1: there is nothing to train"},
    {"input 3\na fc 3\nl softmax weight=-1\n", "t.net:3:"},
    {"input 3\ndefault lr\n", "t.net:2:11: expected a value"},
    {"default lr a\"b\"\n", "t.net:1:12: a quote or a blank is in the wrong place"},
    {"default lr 1\ndefault lr 2\n", "t.net:2:9: there is a 'default lr' already"},
};

static void mistakes_are_named_with_their_place(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof mistakes / sizeof *mistakes; i++) {
        tutti_net *net = NULL;
        assert_int_not_equal(tutti_net_parse(&net, mistakes[i].text, "t.net"), TUTTI_OK);
        assert_null(net);
        if (strncmp(tutti_message(), mistakes[i].says, strlen(mistakes[i].says)))
            fail_msg("%s\nsays  %s\nwants %s", mistakes[i].text, tutti_message(), mistakes[i].says);
    }
}

static void nets_are_found_by_name_and_path(void **state)
{
    (void)state;
    char dir[] = "/tmp/tutti-test-XXXXXX", path[64];
    assert_non_null(mkdtemp(dir));
    snprintf(path, sizeof path, "%s/lenet.net", dir);
    FILE *f = fopen(path, "w");
    fputs("input 4\nf fc 2\nloss softmax\n", f);
    fclose(f);

    tutti_net *net = load(path);
    assert_string_equal(tutti_net_name(net), "lenet");
    tutti_net_destroy(&net);
    char dirs[128];
    snprintf(dirs, sizeof dirs, "/nowhere:%s", dir);
    setenv("TUTTI_MODELS", dirs, 1);
    net = load("lenet"); /* the user's own comes before the library's */
    assert_int_equal(tutti_net_classes(net), 2);
    tutti_net_destroy(&net);
    unsetenv("TUTTI_MODELS");

    assert_int_equal(tutti_net_load(&net, "vgg"), TUTTI_ARGUMENT);
    assert_non_null(strstr(tutti_message(), "vgg-a"));
    assert_int_equal(tutti_net_load(&net, "./missing.net"), TUTTI_IO);
    unlink(path);
    rmdir(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_zoo_has_the_published_sizes),
        cmocka_unit_test(the_zoo_is_listed),
        cmocka_unit_test(layers_know_their_shapes_and_parameters),
        cmocka_unit_test(the_flat_buffer_is_contiguous),
        cmocka_unit_test(branches_join_by_name),
        cmocka_unit_test(many_inputs_and_the_sample_join),
        cmocka_unit_test(every_option_is_part_of_the_hash),
        cmocka_unit_test(defaults_are_kept_with_their_place),
        cmocka_unit_test(suggestions_fill_up_with_the_usual),
        cmocka_unit_test(suggestions_that_do_not_fit_are_refused),
        cmocka_unit_test(noise_is_taken_out),
        cmocka_unit_test(mistakes_are_named_with_their_place),
        cmocka_unit_test(nets_are_found_by_name_and_path),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
