/* Models: memory, parameters out and in, hooks, who is blamed for a NaN, options. */
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
#include "minibatch.h"
#include "model_nets.h"

/* ---- memory ---- */

static void memory_is_measured_and_reused(void **state)
{
    (void)state;
    batch b = make_batch(everything);
    tutti_model_bytes training, forward;
    must(tutti_model_measure(&training, b.net, &b.options));
    tutti_model_options o = b.options;
    o.forward_only = true;
    must(tutti_model_measure(&forward, b.net, &o));
    assert_int_equal(training.parameters, b.net->param_floats * sizeof(float));
    assert_int_equal(training.gradients, training.parameters);
    assert_true(training.arena < training.separate);
    assert_true(forward.arena < training.arena);
    assert_int_equal(forward.gradients, 0);
    o.workers = 3; /* shares of 2, 3 and 3 grains: one, two and two roots */
    o.worker = 2;
    o.forward_only = false;
    must(tutti_model_measure(&training, b.net, &o));
    assert_int_equal(training.gradients, 2 * training.parameters);
    free_batch(&b);
}

/* ---- parameters ---- */

static void parameters_go_to_torch_and_back(void **state)
{
    (void)state;
    batch b = make_batch(everything);
    tutti_model *m = make_model(&b, &b.options);
    const size_t floats = tutti_model_parameter_floats(m);
    float *back = NULL, *cut = NULL;
    must(tutti_alloc(&back, floats, sizeof(float)));
    must(tutti_alloc(&cut, floats, sizeof(float)));
    const size_t middle = floats / 3;
    for (int i = 0; i < b.net->param_count; i++) {
        const size_t count = b.net->params[i].count;
        float *torch = NULL, *strips = NULL;
        must(tutti_alloc(&torch, count, sizeof(float)));
        must(tutti_alloc(&strips, count, sizeof(float)));
        const float *flat = tutti_model_parameters(m);
        tutti_model_export(m, i, flat, torch);
        const tutti_rows all = {0, b.net->params[i].dims[0]};
        tutti_model_export_rows(m, i, all, 0, middle, flat, strips);
        tutti_model_export_rows(m, i, all, middle, floats, flat + middle, strips);
        assert_memory_equal(torch, strips, count * sizeof(float));
        tutti_model_import(m, i, torch, back);
        for (tutti_rows r = {0, 16}; r.first < all.end; r = (tutti_rows){r.end, r.end + 16}) {
            if (r.end > all.end) r.end = all.end;
            const float *from = torch + (size_t)r.first * (count / (size_t)all.end);
            tutti_model_import_rows(m, i, r, from, 0, middle, cut);
            tutti_model_import_rows(m, i, r, from, middle, floats, cut + middle);
        }
        tutti_free(torch);
        tutti_free(strips);
    }
    assert_memory_equal(back, tutti_model_parameters(m), floats * sizeof(float));
    assert_memory_equal(cut, tutti_model_parameters(m), floats * sizeof(float));
    tutti_free(back);
    tutti_free(cut);
    tutti_model_destroy(&m);
    free_batch(&b);
}

static double **export_parameters(const batch *b, tutti_model *m)
{
    double **params = calloc((size_t)b->net->param_count, sizeof *params);
    for (int i = 0; i < b->net->param_count; i++) {
        const size_t count = b->net->params[i].count;
        float *torch = NULL;
        must(tutti_alloc(&torch, count, sizeof(float)));
        tutti_model_export(m, i, tutti_model_parameters(m), torch);
        params[i] = calloc(count, sizeof(double));
        for (size_t k = 0; k < count; k++) params[i][k] = (double)torch[k];
        tutti_free(torch);
    }
    return params;
}

static void free_parameters(const batch *b, double **params)
{
    for (int i = 0; i < b->net->param_count; i++) free(params[i]);
    free(params);
}

static void initial_parameters_have_the_right_spread(void **state)
{
    (void)state;
    batch b = make_batch("input 400\n"
                         "he fc 256 relu bias=0.25\n"
                         "xavier fc 256\n"
                         "small fc 100 init=gaussian std=0.5\n"
                         "loss softmax\n");
    tutti_model *m = NULL;
    must(tutti_model_create(&m, b.net, &b.options));
    tutti_model_init(m, 1, TUTTI_INIT_AUTO, 0);
    const double want[] = {2.0 / 400, 0, 2.0 / 512, 0, 0.25, 0}; /* variance; biases apart */
    double **params = export_parameters(&b, m);
    for (int i = 0; i < b.net->param_count; i++) {
        const size_t count = b.net->params[i].count;
        double sum = 0, squares = 0;
        for (size_t k = 0; k < count; k++) {
            sum += params[i][k];
            squares += params[i][k] * params[i][k];
        }
        if (b.net->params[i].dim_count == 1)
            assert_true(sum == (i == 1 ? 0.25 * (double)count : 0));
        else {
            assert_true(fabs(squares / (double)count / want[i] - 1) < 0.05);
            assert_true(fabs(sum / (double)count) < 0.02 * sqrt(want[i]));
        }
    }
    free_parameters(&b, params);
    tutti_model_destroy(&m);
    free_batch(&b);
}

/* ---- hooks and diagnosis ---- */

typedef struct trail {
    char text[256];
    int fail_at;
} trail;

static tutti_status note(trail *t, char what, int layer)
{
    const size_t used = strlen(t->text);
    snprintf(t->text + used, sizeof t->text - used, "%c%d ", what, layer);
    return layer == t->fail_at ? tutti_fail(TUTTI_COMM, "told to fail") : TUTTI_OK;
}

static tutti_status before_forward(void *user, int layer)
{
    return note(user, 'f', layer);
}

static tutti_status gradient_ready(void *user, int layer)
{
    return note(user, 'g', layer);
}

static tutti_status weights_released(void *user, int layer)
{
    return note(user, 'r', layer);
}

static tutti_model_options with_trail(const batch *b, trail *t)
{
    tutti_model_options o = b->options;
    o.hooks = (tutti_model_hooks){.user = t,
                                  .before_forward = before_forward,
                                  .gradient_ready = gradient_ready,
                                  .weights_released = weights_released};
    return o;
}

static void late_layers_come_last_and_upwards(void **state)
{
    (void)state;
    batch b = make_batch("input 1 4 4\na fc 8\nb fc 8\nc fc 8\nd fc 5\nloss softmax\n");
    trail t = {.fail_at = -1};
    tutti_model_options o = with_trail(&b, &t);
    o.late = 3;
    tutti_model *m = make_model(&b, &o);
    train(m, &b);
    assert_string_equal(t.text, "f0 f1 f2 f3 g3 r3 g0 r0 g1 r1 g2 r2 ");
    tutti_model_destroy(&m);
    free_batch(&b);
}

static void hooks_are_called_in_order(void **state)
{
    (void)state;
    batch b = make_batch(mlp);
    trail t = {.fail_at = -1};
    tutti_model_options o = with_trail(&b, &t);
    tutti_model *m = make_model(&b, &o);
    train(m, &b);
    assert_string_equal(t.text, "f0 f1 g1 r1 g0 r0 ");
    t.fail_at = 1;
    assert_int_equal(tutti_model_train(m, 0, b.samples, b.labels), TUTTI_COMM);
    tutti_model_destroy(&m);
    free_batch(&b);
}

static void expect_oddity(const batch *b, tutti_model *m, tutti_nonfinite_kind kind, int layer,
                          int sample)
{
    assert_int_equal(tutti_model_nonfinite(m).kind, TUTTI_NONFINITE_NOTHING);
    assert_int_equal(tutti_model_train(m, 5, b->samples, b->labels), TUTTI_OK);
    assert_int_equal(tutti_model_nonfinite(m).kind, kind);
    assert_int_equal(tutti_model_nonfinite(m).layer, layer);
    assert_int_equal(tutti_model_nonfinite(m).sample, sample);
    tutti_model_destroy(&m);
}

static void a_layer_is_blamed_for_numbers_that_are_none(void **state)
{
    (void)state;
    batch b = make_batch(mlp);
    tutti_model *m = make_model(&b, &b.options);
    float *parameters = tutti_model_parameters(m);
    const size_t second = tutti_model_region(m, 1).offset;

    parameters[second] = NAN;
    expect_oddity(&b, m, TUTTI_NONFINITE_PARAMETERS, 1, -1);
    m = make_model(&b, &b.options);
    parameters = tutti_model_parameters(m);
    for (size_t i = 0; i < second; i++) parameters[i] = 3e38f;
    expect_oddity(&b, m, TUTTI_NONFINITE_OUTPUT, 0, 0);
    m = make_model(&b, &b.options);
    b.samples[16] = INFINITY;
    expect_oddity(&b, m, TUTTI_NONFINITE_SAMPLE, -1, 1);
    free_batch(&b);
}

static void wrong_options_are_refused(void **state)
{
    (void)state;
    batch b = make_batch(mlp);
    tutti_model *m = NULL;
    tutti_model_options o = b.options;
    o.grains = 6;
    assert_int_equal(tutti_model_create(&m, b.net, &o), TUTTI_ARGUMENT);
    o.grains = 16;
    assert_int_equal(tutti_model_create(&m, b.net, &o), TUTTI_ARGUMENT);
    o.grains = 4;
    o.workers = 5;
    assert_int_equal(tutti_model_create(&m, b.net, &o), TUTTI_ARGUMENT);
    assert_non_null(strstr(tutti_message(), "5 ranks are more than the 4 grains"));
    assert_non_null(strstr(tutti_message(), "use at most 4 ranks, or --grains 8"));
    assert_null(m);
    free_batch(&b);
    assert_int_equal(tutti_grains_suffice(4, 2, 3), TUTTI_ARGUMENT); /* no power of two is left */
    assert_non_null(strstr(tutti_message(), "or a minibatch of 4 samples and --grains 4"));
    assert_int_equal(tutti_grains_suffice(5, 4, 7), TUTTI_ARGUMENT);
    assert_non_null(strstr(tutti_message(), "or a minibatch of 8 samples and --grains 8"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_is_measured_and_reused),
        cmocka_unit_test(parameters_go_to_torch_and_back),
        cmocka_unit_test(initial_parameters_have_the_right_spread),
        cmocka_unit_test(hooks_are_called_in_order),
        cmocka_unit_test(late_layers_come_last_and_upwards),
        cmocka_unit_test(a_layer_is_blamed_for_numbers_that_are_none),
        cmocka_unit_test(wrong_options_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
