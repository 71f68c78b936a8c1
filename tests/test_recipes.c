/* What the recipes of doc/ARCHITECTURE.md promise: a kind of a few lines, outside the tree, is
 * read, trained and stored like any other. */
#include "recipes.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "base/memory.h"
#include "minibatch.h"

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
        cmocka_unit_test(a_table_without_it_does_not_know_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
