/* Blocks of a net's text: what they unroll to, and what is said of mistakes in them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "nn/net.h"

static tutti_net *parse(const char *text)
{
    tutti_net *net = NULL;
    if (tutti_net_parse(&net, text, "t.net")) fail_msg("%s", tutti_message());
    return net;
}

static char *unrolled(const tutti_net *net)
{
    char *text = NULL;
    size_t size;
    FILE *memory = open_memstream(&text, &size);
    assert_int_equal(tutti_net_print(net, memory), TUTTI_OK);
    fclose(memory);
    return text;
}

static void assert_unrolls(const char *text, const char *wanted)
{
    tutti_net *net = parse(text), *again;
    char *plain = unrolled(net), one[TUTTI_HASH_HEX], two[TUTTI_HASH_HEX];
    assert_string_equal(plain, wanted);
    again = parse(plain);
    assert_int_equal(tutti_net_hash(net, one), TUTTI_OK);
    assert_int_equal(tutti_net_hash(again, two), TUTTI_OK);
    assert_string_equal(one, two);
    free(plain);
    tutti_net_destroy(&net);
    tutti_net_destroy(&again);
}

static void a_block_is_used_by_name(void **state)
{
    (void)state;
    assert_unrolls("input 3 8 8\n"
                   "default lr 0.5 # of all\n"
                   "block step features kernel=3 stride=1 # a comment\n"
                   "conv conv $features*2/4 kernel=$kernel pad=$kernel/2 stride=$stride\n"
                   "  # nothing here\n"
                   "0 batchnorm relu # $nothing\n"
                   "end\n"
                   "a step 64 stride=2\n"
                   "b step stride=2 kernel=5 features=64 from=input\n"
                   "c add a.conv a b\n"
                   "f fc 2\n"
                   "loss softmax\n",
                   "tutti net 1\n"
                   "input 3 8 8\n"
                   "default lr 0.5\n\n"
                   "a.conv conv 32 kernel=3 pad=1 stride=2\n"
                   "a.0    batchnorm relu\n"
                   "b.conv conv 32 kernel=5 pad=2 stride=2 from=input\n"
                   "b.0    batchnorm relu\n"
                   "c      add a.conv a.0 b.0\n"
                   "f      fc 2\n"
                   "loss   softmax\n");
}

static void a_range_repeats_a_block(void **state)
{
    (void)state;
    assert_unrolls("input 4\n"
                   "block residual\n"
                   "fc fc 4 relu\n"
                   "sum add fc input\n"
                   "end\n"
                   "top fc 4 tanh\n"
                   "layer{2..4}.x residual from=top\n"
                   "s add layer3.x layer4.x top\n"
                   "loss softmax\n",
                   "tutti net 1\n"
                   "input 4\n\n"
                   "top          fc 4 tanh\n"
                   "layer2.x.fc  fc 4 relu\n"
                   "layer2.x.sum add layer2.x.fc top\n"
                   "layer3.x.fc  fc 4 relu\n"
                   "layer3.x.sum add layer3.x.fc layer2.x.sum\n"
                   "layer4.x.fc  fc 4 relu\n"
                   "layer4.x.sum add layer4.x.fc layer3.x.sum\n"
                   "s            add layer3.x.sum layer4.x.sum top\n"
                   "loss         softmax\n");
}

/* A block may use those that are written below it, and may add nothing to the names. */
static void blocks_use_blocks(void **state)
{
    (void)state;
    assert_unrolls("input 4\n"
                   "block outer width act=relu\n"
                   ". inner $width act=$act\n"
                   "b inner $width*2 act=\n"
                   "c concat input x b skip\n"
                   ". fc 2 tanh\n"
                   "d add . .\n"
                   "end\n"
                   "block inner width act\n"
                   "x fc $width $act\n"
                   "end\n"
                   "skip fc 3\n"
                   "one outer 5\n"
                   "two outer 6 act=\n"
                   "loss softmax\n",
                   "tutti net 1\n"
                   "input 4\n\n"
                   "skip    fc 3\n"
                   "one.x   fc 5 relu\n"
                   "one.b.x fc 10\n"
                   "one.c   concat skip one.x one.b.x skip\n"
                   "one     fc 2 tanh\n"
                   "one.d   add one one\n"
                   "two.x   fc 6\n"
                   "two.b.x fc 12\n"
                   "two.c   concat one.d two.x two.b.x skip\n"
                   "two     fc 2 tanh\n"
                   "two.d   add two two\n"
                   "loss    softmax\n");
}

#define B "input 3 8 8\nblock b n k=3\nc conv $n kernel=$k\nend\n"

/* Each text, and what the complaint about it has, in this order. */
static const struct {
    const char *text, *says, *adds;
} mistakes[] = {
    {"block b\n", "t.net:1:7: block b has no 'end'", ""},
    {"block\n", "t.net:1:6: expected a name", ""},
    {"block b\nend\n", "t.net:2:1: block b has no layers", ""},
    {"block b\nx fc 3\nblock c\n", "t.net:3:1: a block cannot be made in block b", ""},
    {"block conv n\n", "t.net:1:7: 'conv' is a kind of layer", ""},
    {B "block b\n", "t.net:5:7: there is a block b in line 2", ""},
    {"block b 3\n", "t.net:1:9: '3' is no parameter", ""},
    {"block b n n\n", "t.net:1:11: there is a parameter 'n' already", ""},
    {"block b from\n", "t.net:1:9: 'from' says where", ""},
    {"block b a b c d e f g h i j k l m n o p q\n", "t.net:1:41: a block has at most 16", ""},
    {"block b\nx fc 3\nend\ny b\n", "t.net:4:1: the input must come first", ""},
    {B "x b\n", "t.net:5:4: 'n' is missing; the block is 'b n k=3'", ""},
    {B "x b 3 4\n", "t.net:5:7: there is no place for '4'; the block is 'b n k=3'", ""},
    {B "x b 3 m=4\n", "t.net:5:7: there is no place for 'm=4'", ""},
    {B "x b 3 k=4 k=5\n", "t.net:5:11: 'k' is given twice", ""},
    {B "x b 3 from=y\n", "t.net:5:12: no layer 'y' above", ""},
    {B "x b 3 k=0\n", "t.net:3:17: 0 is not between 1 and",
     "  c conv 3 kernel=0\n                  ^\n  in block b, used in line 5"},
    {B "x b 3\nx b 4 k=1\n", "t.net:6:1: 'x' is taken by the layer in line 5", ""},
    {B "x b 3\nx.c b 4 k=1\n", "t.net:6:1: 'x.c' is taken by the layer in line 3", ""},
    {B "x{1..2 b 3\n", "t.net:5:1: a range of names is 'layer1.{1..3}'", ""},
    {B "x{1..x} b 3\n", "t.net:5:6: 'x' is not a whole number", ""},
    {B "x{3..2} b 3\n", "t.net:5:6: 2 is not between 3 and 9999", ""},
    {B "{1..2} b 3\n", "t.net:5:1: '1' is not a name", ""},
    {B "x{1..2} conv 3\n", "t.net:5:1: 'x{1..2}' is not a name", ""},
    {B "x.{1..9999} b 1 k=1\n", "t.net:3:1: more than 4096 layers", "used in line 5"},
    {B ". fc 3\n", "t.net:5:1: '.' is not a name", ""},
    {B ". b 3\n", "t.net:5:1: '.' is not a name", ""},
    {B "y b 3\nloss softmax", "t.net:6:1: loss: softmax wants", ""},
    {B "x b 3\ny b 3 from=input\nz fc 2\nloss softmax",
     "t.net:3:1: nothing uses the output of 'x.c'", "its block is used in line 5"},
    {"input 3\nblock b n\nx fc $m\nend\ny b 3\n",
     "t.net:3:7: there is no parameter 'm'; the block is 'b n'", "used in line 5"},
    {"input 3\nblock b n\nx fc $n*2\nend\ny b many\n", "t.net:5:5: 'many' is not a whole number",
     "in block b, used in line 5"},
    {"input 3\nblock b n\nx fc $n/0\nend\ny b 3\n", "t.net:3:9: 0 is not between 1 and", ""},
    {"input 3\nblock b n\nx fc 3*$n\nend\ny b 3\n", "t.net:3:6: '3*3' is not a whole", ""},
    {"input 3\nblock b n\nx fc $n*9999999\nend\ny b 99\n", "t.net:3:9: that makes more", ""},
    {"input 3\nblock b n\n$n\nend\ny b n=\n", "t.net:3:1: its values leave nothing", ""},
    {"input 3\nblock b n\ndefault lr 1\nend\ny b 3\n", "t.net:3:1: in a block are layers", ""},
    {"input 3\nblock b\nx fc 3\ny b\nend\nz b\n", "t.net:4:1: block b would use itself",
     "in block b, used in line 6"},
    {"input 3\nblock a\nx b\nend\nblock b\ny a\nend\nz a\n", "t.net:6:1: block a would use itself",
     "in block b, used in line 3\n  in block a, used in line 8"},
    {"input 3\nblock b\nalpha fc 3\nx fc 3 from=alpah\nend\nz b\n",
     "t.net:4:13: no layer 'alpah' above; did you mean 'alpha'?", "used in line 6"},
    {"input 3\nblock b\nrelu fc 3\nend\nz b\n", "t.net:3:1: 'relu' is a word of the", ""},
};

static void mistakes_name_both_lines(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof mistakes / sizeof *mistakes; i++) {
        tutti_net *net = NULL;
        assert_int_equal(tutti_net_parse(&net, mistakes[i].text, "t.net"), TUTTI_PARSE);
        assert_null(net);
        const char *says = mistakes[i].says;
        if (strncmp(tutti_message(), says, strlen(says)) ||
            !strstr(tutti_message(), mistakes[i].adds))
            fail_msg("%s\nsays  %s\nwants %s ... %s", mistakes[i].text, tutti_message(), says,
                     mistakes[i].adds);
    }
}

/* Values in values, block in block: a short text that would make a line of 4^16 characters. */
static void lines_and_depth_are_bounded(void **state)
{
    (void)state;
    char text[4096] = "input 3\n";
    for (int i = 0; i < 20; i++)
        snprintf(text + strlen(text), sizeof text - strlen(text),
                 "block b%d n\nx%d b%d $n$n$n$n\nend\n", i, i, i + 1);
    strcat(text, "block b20 n\nx fc 3\nend\n");
    const size_t head = strlen(text);
    tutti_net *net = NULL;
    strcpy(text + head, "y b0 1\n");
    assert_int_equal(tutti_net_parse(&net, text, "t.net"), TUTTI_PARSE);
    assert_non_null(strstr(tutti_message(), "more than 2000 characters"));
    strcpy(text + head, "y b0 n=\n");
    assert_int_equal(tutti_net_parse(&net, text, "t.net"), TUTTI_PARSE);
    assert_non_null(strstr(tutti_message(), "is missing"));
    for (char *c = text; (c = strstr(c, "$n$n$n$n")); c += 8) memcpy(c, "$n      ", 8);
    strcpy(text + head, "y b0 1\n");
    assert_int_equal(tutti_net_parse(&net, text, "t.net"), TUTTI_PARSE);
    assert_non_null(strstr(tutti_message(), "more than 16 blocks in one another"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_block_is_used_by_name),     cmocka_unit_test(a_range_repeats_a_block),
        cmocka_unit_test(blocks_use_blocks),           cmocka_unit_test(mistakes_name_both_lines),
        cmocka_unit_test(lines_and_depth_are_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
