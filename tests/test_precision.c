/* Which layers round what they multiply to bf16, and what follows from that. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "base/status.h"
#include "nn/model.h"
#include "plan/platform.h"

static void must(tutti_status status)
{
    if (status != TUTTI_OK) fail_msg("%s", tutti_message());
}

static tutti_net *parse(const char *text)
{
    tutti_net *net = NULL;
    must(tutti_net_parse(&net, text, "t.net"));
    return net;
}

/* The names of the layers that round, each followed by a blank. */
static void expect_rounding(tutti_net *net, const char *precision, const char *names)
{
    char found[512] = "";
    must(tutti_net_set_precision(net, precision));
    for (int i = 0; i < net->layer_count; i++) {
        const bool rounds = tutti_layer_rounds(&net->layers[i]);
        const tutti_layer_info info = tutti_net_layer_info(net, i);
        assert_int_equal(rounds, !strcmp(info.precision, "bf16"));
        if (rounds) strcat(strcat(found, net->layers[i].name), " ");
    }
    assert_string_equal(found, names);
    assert_int_equal(tutti_net_rounds(net), *names != 0);
}

/* ---- */

static void ends_stay_in_fp32(void **state)
{
    (void)state;
    tutti_net *net = parse("input 32 8 8\n"
                           "norm0 batchnorm\n"
                           "conv1 conv 32 kernel=1 relu\n"
                           "conv2 conv 64 kernel=1 relu\n"
                           "conv3 conv 64 kernel=3 pad=1 stride=2 relu\n"
                           "fc4 fc 48 relu\n"
                           "drop4 dropout 0.5\n"
                           "fc5 fc 5\n"
                           "loss softmax\n");
    expect_rounding(net, NULL, "");
    expect_rounding(net, "bf16", "conv2 conv3 fc4 ");
    expect_rounding(net, "fp32", "");
    tutti_net_destroy(&net);
}

static void every_branch_has_ends(void **state)
{
    (void)state;
    tutti_net *net = parse("input 32\n"
                           "a fc 32 relu\n"
                           "b fc 48 relu from=input\n"
                           "both concat a b\n"
                           "c fc 32 relu\n"
                           "d fc 32 relu\n"
                           "sum add c d\n"
                           "e fc 5\n"
                           "judge softmax\n"
                           "aux fc 16 from=c\n"
                           "f fc 5\n"
                           "loss softmax\n");
    expect_rounding(net, "bf16", "c d aux ");
    tutti_net_destroy(&net);

    net = parse("input 32\n"
                "a fc 32 relu\n"
                "b fc 32 relu\n"
                "c fc 32\n"
                "sum add b c\n" /* b reaches the loss without another product, too */
                "loss mse\n");
    expect_rounding(net, "bf16", "");
    tutti_net_destroy(&net);
}

static void lines_decide_for_themselves(void **state)
{
    (void)state;
    tutti_net *net = parse("input 32\n"
                           "default precision bf16\n"
                           "a fc 32 relu precision=bf16\n"
                           "b fc 32 relu precision=fp32\n"
                           "c fc 32 relu\n"
                           "d fc 5 precision=auto\n"
                           "loss softmax\n");
    expect_rounding(net, NULL, "a c ");
    expect_rounding(net, "bf16", "a c ");
    expect_rounding(net, "fp32", "a ");
    tutti_net_destroy(&net);
}

static void only_whole_blocks_of_direct_sums_round(void **state)
{
    (void)state;
    tutti_net *net = parse("input 3 16 16\n"
                           "first conv 32 kernel=3 pad=1 algorithm=direct\n"
                           "usual conv 32 kernel=3 pad=1\n"
                           "direct conv 32 kernel=3 pad=1 algorithm=direct\n"
                           "depth conv 32 kernel=3 pad=1 groups=32\n"
                           "halves conv 32 kernel=3 pad=1 groups=2\n"
                           "part conv 24 kernel=1\n"
                           "of-part conv 32 kernel=1\n"
                           "up deconv 16 kernel=2 stride=2\n"
                           "last fc 5\n"
                           "loss softmax\n");
    expect_rounding(net, "bf16", "direct halves up ");
    tutti_net_convolve(net, TUTTI_CONV_DIRECT);
    expect_rounding(net, "bf16", "usual direct halves up ");
    tutti_net_destroy(&net);
}

static void keys_of_rates_tell_them_apart(void **state)
{
    (void)state;
    char key[TUTTI_LAYER_KEY];
    tutti_net *net = parse("input 32 4 4\na conv 32 kernel=1\nb conv 32 kernel=2 stride=2\n"
                           "c fc 64\nd fc 5\nloss softmax\n");
    static const char *const want[] = {"conv 32x4x4 32x4x4 1x1/1", "conv 32x4x4 32x2x2 2x2/2,bf16",
                                       "fc 32x2x2 64x1x1 1x1/1,bf16", "fc 64x1x1 5x1x1 1x1/1"};
    must(tutti_net_set_precision(net, "bf16"));
    for (int i = 0; i < 4; i++) {
        tutti_platform_key(&net->layers[i], net->layers[i].out.c, key);
        assert_string_equal(key, want[i]);
    }
    tutti_net_destroy(&net);
}

static void grains_hold_whole_blocks(void **state)
{
    (void)state;
    tutti_net *net = parse("input 32\na fc 32\nb fc 32\nc fc 5\nloss softmax\n");
    static const struct {
        int batch, fp32, bf16;
    } rows[] = {{1, 1, 1},    {8, 2, 2},    {32, 8, 8},     {63, 8, 8},
                {64, 16, 8},  {100, 16, 8}, {128, 32, 8},   {255, 32, 8},
                {256, 64, 8}, {511, 64, 8}, {512, 128, 16}, {1024, 256, 32}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        must(tutti_net_set_precision(net, "fp32"));
        assert_int_equal(tutti_default_grains(net, rows[i].batch), rows[i].fp32);
        must(tutti_net_set_precision(net, "bf16"));
        assert_int_equal(tutti_default_grains(net, rows[i].batch), rows[i].bf16);
    }
    tutti_net_destroy(&net);
}

static void hashes_know_lines(void **state)
{
    (void)state;
    char plain[TUTTI_HASH_HEX], other[TUTTI_HASH_HEX];
    tutti_net *net = parse("input 32\na fc 32\nb fc 32\nc fc 5\nloss softmax\n");
    tutti_net *said = parse("input 32\na fc 32\nb fc 32 precision=bf16\nc fc 5\nloss softmax\n");
    must(tutti_net_hash(net, plain));
    must(tutti_net_hash(said, other));
    assert_string_not_equal(plain, other);
    must(tutti_net_set_precision(net, "bf16"));
    must(tutti_net_hash(net, other));
    assert_string_equal(plain, other); /* a run's is recorded by itself */
    must(tutti_net_hash_answers(net, plain));
    must(tutti_net_hash_answers(said, other));
    assert_string_equal(plain, other);
    tutti_net_destroy(&net);
    tutti_net_destroy(&said);
}

static void mistakes_are_answered(void **state)
{
    (void)state;
    static const struct {
        const char *text, *says;
    } rows[] = {
        {"input 3 8 8\na conv 32 kernel=3 precision=bf16\nb fc 5\nloss softmax\n",
         "t.net:2:1: a: precision=bf16 is for direct sums"},
        {"input 32 8 8\na conv 32 kernel=3 pad=1 precision=bf16\nb fc 5\nloss softmax\n",
         "t.net:2:1: a: precision=bf16 is for direct sums"},
        {"input 32\na fc 32 precision=fp16\nloss softmax\n", "t.net:2:19: "},
        {"input 32\nr relu precision=bf16\na fc 5\nloss softmax\n", "t.net:2:8: "},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        tutti_net *net = NULL;
        assert_int_equal(tutti_net_parse(&net, rows[i].text, "t.net"), TUTTI_PARSE);
        if (strncmp(tutti_message(), rows[i].says, strlen(rows[i].says)))
            fail_msg("'%s' does not begin with '%s'", tutti_message(), rows[i].says);
    }
    tutti_suggested suggested;
    tutti_net *net = parse("input 32\ndefault precision half\na fc 5\nloss softmax\n");
    assert_int_equal(tutti_net_suggested(&suggested, net), TUTTI_PARSE);
    assert_string_equal(tutti_message(),
                        "t.net:2:19: default precision is fp32 or bf16, not 'half'");
    assert_int_equal(tutti_net_set_precision(net, "fp32"), TUTTI_PARSE);
    tutti_net_destroy(&net);
    net = parse("input 32\na fc 5\nloss softmax\n");
    assert_int_equal(tutti_net_set_precision(net, "int8"), TUTTI_ARGUMENT);
    assert_string_equal(tutti_message(), "--precision is fp32 or bf16, not 'int8'");
    tutti_net_destroy(&net);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ends_stay_in_fp32),
        cmocka_unit_test(every_branch_has_ends),
        cmocka_unit_test(lines_decide_for_themselves),
        cmocka_unit_test(only_whole_blocks_of_direct_sums_round),
        cmocka_unit_test(keys_of_rates_tell_them_apart),
        cmocka_unit_test(grains_hold_whole_blocks),
        cmocka_unit_test(hashes_know_lines),
        cmocka_unit_test(mistakes_are_answered),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
