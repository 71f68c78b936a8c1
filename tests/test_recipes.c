/* What the recipes of doc/ARCHITECTURE.md promise: a kind and an optimizer of a few lines,
 * outside the tree, are read and run like any other. */
#include "recipes.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "base/memory.h"
#include "minibatch.h"
#include "step/rank.h"
#include "step/stepper.h"

extern const tutti_optimizer tutti_optimizer_sgd;

enum { MOST_KINDS = 64 };

/* The table of all kinds, and the new one. */
static const tutti_kind *const *kinds_and_one(const tutti_kind *one)
{
    static const tutti_kind *kinds[MOST_KINDS + 2];
    int n = 0;
    for (; tutti_kinds[n]; n++) kinds[n] = tutti_kinds[n];
    assert_true(n <= MOST_KINDS);
    kinds[n++] = one;
    kinds[n] = NULL;
    return kinds;
}

/* The same net twice: with the bias of its convolution, and with a layer that adds it. Layers have
 * the same numbers, and so the same first weights. */
static const char with_bias[] = "input 3 6 6\n"
                                "c conv 20 kernel=3\n"
                                "o dropout 0 from=c\n"
                                "t tanh\n"
                                "f fc 5\n"
                                "loss softmax\n";
static const char with_layer[] = "input 3 6 6\n"
                                 "c conv 20 kernel=3 nobias\n"
                                 "o offset\n"
                                 "t tanh\n"
                                 "f fc 5\n"
                                 "loss softmax\n";

static void expect_same_gradient(tutti_model *a, const char *name, tutti_model *b,
                                 const char *other)
{
    const tutti_net *na = tutti_model_net(a), *nb = tutti_model_net(b);
    const int p = tutti_net_find_param(na, name), q = tutti_net_find_param(nb, other);
    assert_true(p >= 0 && q >= 0);
    const tutti_slice sa = tutti_model_slice(a, p), sb = tutti_model_slice(b, q);
    const int la = na->params[p].layer, lb = nb->params[q].layer;
    const float *ga = tutti_model_gradient(a, la, 0) + sa.offset - tutti_model_region(a, la).offset;
    const float *gb = tutti_model_gradient(b, lb, 0) + sb.offset - tutti_model_region(b, lb).offset;
    assert_int_equal(sa.count, sb.count);
    assert_memory_equal(ga, gb, sa.count * sizeof(float));
}

static void a_kind_of_ones_own_trains_as_any_other(void **state)
{
    (void)state;
    batch a = make_batch(with_bias),
          b = make_batch_of_kinds(with_layer, kinds_and_one(&recipe_kind));
    tutti_model *ma = make_model(&a, &a.options), *mb = make_model(&b, &b.options);
    train(ma, &a);
    train(mb, &b);
    assert_memory_equal(tutti_model_losses(ma), tutti_model_losses(mb), BATCH * sizeof(float));
    expect_same_gradient(ma, "c.weight", mb, "c.weight");
    expect_same_gradient(ma, "c.bias", mb, "o.bias");
    expect_same_gradient(ma, "f.weight", mb, "f.weight");
    expect_same_gradient(ma, "f.bias", mb, "f.bias");
    tutti_model_destroy(&ma);
    tutti_model_destroy(&mb);
    free_batch(&a);
    free_batch(&b);
}

static void what_is_kept_has_no_gradient(void **state)
{
    (void)state;
    batch b = make_batch_of_kinds(with_layer, kinds_and_one(&recipe_kind));
    tutti_model *m = NULL;
    float torch[20];
    must(tutti_model_create(&m, b.net, &b.options));
    tutti_model_init(m, SEED, TUTTI_INIT_AUTO, 0);
    const int kept = tutti_net_find_param(b.net, "o.kept");
    assert_int_equal(b.net->params[kept].role, TUTTI_KEPT);
    const tutti_region region = tutti_model_region(m, b.net->params[kept].layer);
    assert_int_equal(region.count, 64);
    assert_int_equal(region.trained, 32);
    train(m, &b);
    tutti_model_export(m, kept, tutti_model_parameters(m), torch);
    for (int i = 0; i < 20; i++) assert_true(torch[i] == 7);
    tutti_model_destroy(&m);
    free_batch(&b);
}

static tutti_chosen_optimizer chosen(const char *text)
{
    static const tutti_optimizer *const known[] = {&recipe_optimizer, &tutti_optimizer_sgd, NULL};
    tutti_chosen_optimizer out;
    must(tutti_optimizer_parse(&out, text, "--optimizer", known));
    return out;
}

/* Parameters and state after some steps of a stepper of one rank; the net is split by nobody. */
static float *trained(const batch *b, const char *optimizer, bool decay_all, float *updates)
{
    tutti_comm_options comm = tutti_comm_defaults();
    tutti_rank me;
    tutti_stepper *stepper = NULL;
    tutti_news news;
    float *copy = NULL;
    comm.compute_threads = 1;
    must(tutti_rank_open(&me, &comm));
    const tutti_stepper_options o = {.comm = me.comm,
                                     .net = b->net,
                                     .exec = me.exec,
                                     .caches = me.caches,
                                     .batch = BATCH,
                                     .grains = GRAINS,
                                     .optimizer = chosen(optimizer),
                                     .weight_decay = 0.5,
                                     .decay_all = decay_all,
                                     .overlap = true,
                                     .priority = true};
    must(tutti_stepper_create(&stepper, &o));
    tutti_model *m = tutti_stepper_model(stepper);
    tutti_model_init(m, SEED, TUTTI_INIT_AUTO, 0);
    for (int i = 0; i < 3; i++)
        must(tutti_stepper_step(stepper,
                                &(tutti_samples){.values = b->samples, .labels = b->labels}, 0.1,
                                (tutti_note){0}, &news));
    must(tutti_stepper_settle(stepper, &news));
    must(tutti_alloc(&copy, b->net->param_floats, sizeof(float)));
    memcpy(copy, tutti_model_parameters(m), b->net->param_floats * sizeof(float));
    const tutti_holding held = tutti_stepper_holding(stepper, 0);
    if (updates) *updates = held.state[0][held.end - 1];
    tutti_stepper_destroy(&stepper);
    tutti_rank_close(&me);
    return copy;
}

static void an_optimizer_of_ones_own_updates_as_any_other(void **state)
{
    (void)state;
    batch b = make_batch(with_bias);
    const size_t bytes = b.net->param_floats * sizeof(float);
    float updates = 0;
    for (int decay_all = 0; decay_all < 2; decay_all++) {
        float *want = trained(&b, "sgd,momentum=0", decay_all, NULL);
        float *got = trained(&b, "down", decay_all, &updates);
        float *slower = trained(&b, "down,stretch=0.5", decay_all, NULL);
        assert_memory_equal(got, want, bytes);
        assert_memory_not_equal(slower, want, bytes);
        assert_true(updates == 3);
        tutti_free(want), tutti_free(got), tutti_free(slower);
    }
    free_batch(&b);
}

/* What --decay-all off spares: parameters that do not decay, and no others. */
static void biases_are_left_out_of_decay(void **state)
{
    (void)state;
    batch b = make_batch("input 3\nf fc 4 nobias\nloss softmax\n");
    batch c = make_batch("input 3\nf fc 4 bias=2\nloss softmax\n");
    float *on = trained(&b, "sgd,momentum=0", true, NULL);
    float *off = trained(&b, "sgd,momentum=0", false, NULL);
    assert_memory_equal(on, off, b.net->param_floats * sizeof(float)); /* weights always decay */
    tutti_free(on), tutti_free(off);
    on = trained(&c, "sgd,momentum=0", true, NULL);
    off = trained(&c, "sgd,momentum=0", false, NULL);
    const size_t weights = c.net->params[0].stored;
    for (size_t i = 0; i < 4; i++) assert_true(on[weights + i] < off[weights + i] - 0.2f);
    tutti_free(on), tutti_free(off);
    free_batch(&b);
    free_batch(&c);
}

static void wrong_settings_are_named(void **state)
{
    (void)state;
    static const struct {
        const char *text, *says;
    } bad[] = {
        {"sdg", "--optimizer: there is no optimizer 'sdg'; known: sgd"},
        {"sgd,momentun=0.5", "there is no 'momentun' here; possible: momentum, nesterov"},
        {"sgd,momentum=2", "2 is not between 0 and 1"},
        {"sgd,nesterov=perhaps", "'perhaps' is neither yes nor no"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        tutti_chosen_optimizer out;
        assert_int_not_equal(
            tutti_optimizer_parse(&out, bad[i].text, "--optimizer", tutti_optimizers), TUTTI_OK);
        if (!strstr(tutti_message(), bad[i].says)) fail_msg("%s", tutti_message());
    }
    char text[TUTTI_OPTIMIZER_TEXT];
    tutti_chosen_optimizer out = chosen("sgd,nesterov,momentum=0.5");
    tutti_optimizer_text(&out, text);
    assert_string_equal(text, "sgd,momentum=0.5,nesterov=yes");
}

static void a_table_without_it_does_not_know_it(void **state)
{
    (void)state;
    tutti_net *net = NULL;
    assert_int_equal(tutti_net_parse(&net, with_layer, "t.net"), TUTTI_PARSE);
    assert_non_null(strstr(tutti_message(), "there is no kind of layer 'offset'"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_kind_of_ones_own_trains_as_any_other),
        cmocka_unit_test(what_is_kept_has_no_gradient),
        cmocka_unit_test(an_optimizer_of_ones_own_updates_as_any_other),
        cmocka_unit_test(biases_are_left_out_of_decay),
        cmocka_unit_test(wrong_settings_are_named),
        cmocka_unit_test(a_table_without_it_does_not_know_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
