/* Fully connected layers split over workers: the same bits as whole ones. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "plan/plan.h"
#include "workers.h"

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

/* Groups for each fc layer: a divisor of the workers that it allows, another one each time. */
static void choose_groups(const tutti_net *net, int workers, int variant, int *groups)
{
    for (int i = 0; i < tutti_net_layer_count(net); i++) {
        int choices[MAX_WORKERS], count = 0;
        for (int g = 1; g <= workers; g++)
            if (tutti_layer_can_split(&net->layers[i], workers, g)) choices[count++] = g;
        groups[i] = count < 2      ? 0
                    : variant == 0 ? choices[0]
                                   : choices[(variant * (i + 3) / 2) % count];
    }
}

/* In one pass, and in several. */
static void check_passes(const batch *b, const whole *all, int workers, const int *groups)
{
    for (int micro_batch = 0; micro_batch <= 3; micro_batch += 3) {
        tutti_model_options o = b->options;
        o.micro_batch = micro_batch;
        world w = {.batch = b, .options = &o, .workers = workers, .groups = groups};
        run_world(&w);
        compare_world(&w, all);
        end_world(&w);
    }
}

static void check_net(const char *text)
{
    batch b = make_batch(text);
    whole all = make_whole(&b, &b.options);
    for (int workers = 2; workers <= MAX_WORKERS; workers++)
        for (int variant = 0; variant < 4; variant++) {
            int groups[32];
            choose_groups(b.net, workers, variant, groups);
            check_passes(&b, &all, workers, groups);
        }
    free_whole(&all);
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

static void branches_of_split_layers_join_whole(void **state)
{
    (void)state;
    check_net("input 20\n"
              "f1 fc 130 relu\n"
              "s sigmoid\n"
              "d dropout 0.3 from=f1\n"
              "cat concat f1 s d f1 tanh\n"
              "f2 fc 70\n"
              "sum add f2 f2\n"
              "both concat sum f2 input relu\n"
              "f3 fc 9\n"
              "loss softmax\n");
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
    assert_non_null(strstr(tutti_message(), "layer c1: only fully connected layers can be split"));
    groups[0] = 0;
    groups[2] = 3;
    assert_int_equal(tutti_model_create(&m, b.net, &o), TUTTI_ARGUMENT);
    assert_non_null(strstr(tutti_message(), "layer f2: 3 groups do not divide 4 ranks"));
    groups[2] = 0;
    groups[5] = 2;
    assert_int_equal(tutti_model_create(&m, b.net, &o), TUTTI_ARGUMENT);
    assert_non_null(strstr(tutti_message(), "blocks of 64, too few for the 2 ranks"));
    assert_null(m);
    free_batch(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_dnn_split_anyhow_has_the_same_bits),
        cmocka_unit_test(a_cnn_split_anyhow_has_the_same_bits),
        cmocka_unit_test(images_go_straight_into_split_layers),
        cmocka_unit_test(branches_of_split_layers_join_whole),
        cmocka_unit_test(splits_that_cannot_be_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
