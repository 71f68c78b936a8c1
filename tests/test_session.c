/* The public session against tutti_train: the same samples, the same bits; and what it refuses.
 * What several ranks have to agree on is tests/checks/doors.py's. */
#define _GNU_SOURCE
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include <tutti/session.h>
#include "scratch.h"

enum {
    SAMPLES = 64,
    BATCH = 16,
    STEPS = 9,
    C = 3,
    H = 8,
    W = 8,
    VALUES = C * H * W,
    HIDDEN = 24,
    CLASSES = 5
};

static const char net[] = "input 3 8 8\n"
                          "c1 conv 20 kernel=3 pad=1 nobias\n"
                          "n1 batchnorm group=8 relu\n"
                          "f1 fc 24 relu\n" /* HIDDEN; it may round */
                          "d1 dropout 0.2\n"
                          "f2 fc 5\n"
                          "l softmax\n";

typedef struct fixture {
    float floats[SAMPLES * VALUES];
    uint8_t bytes[SAMPLES * VALUES];
    int32_t labels[SAMPLES];
    tutti_arrays arrays;
    tutti_own_data own;
} fixture;

static tutti_train_options usual(const fixture *f)
{
    tutti_train_options o = tutti_train_defaults();
    o.net = net;
    o.batch_size = BATCH;
    o.lr = 0.05;
    o.threads = 2;
    o.steps = STEPS;
    o.shuffle = o.augment = 0;
    o.own_data = &f->own;
    o.log = (tutti_log){.rank = -1};
    return o;
}

static int set_up(void **state)
{
    static fixture f;
    for (int i = 0; i < SAMPLES * VALUES; i++) {
        f.bytes[i] = (uint8_t)((unsigned)i * 2654435761u >> 24);
        f.floats[i] = (float)f.bytes[i] / 100 - 1;
    }
    for (int i = 0; i < SAMPLES; i++) f.labels[i] = i * 7 % CLASSES;
    f.arrays = (tutti_arrays){{f.floats}, {f.labels}, VALUES * sizeof(float)};
    f.own = (tutti_own_data){.count = {SAMPLES}, .read = tutti_arrays_read, .user = &f.arrays};
    *state = &f;
    return 0;
}

/* Tests change what they have. */
static void take_copy(fixture *f, const fixture *of)
{
    *f = *of;
    f->own.user = &f->arrays;
}

static bool note_last(void *user, const tutti_train_news *news)
{
    double *losses = user;
    if (!strcmp(news->phase, "train")) losses[news->step - 1] = news->loss;
    return true;
}

/* All parameters one after another, tutti_free's to free. */
static float *parameters_of(tutti_session *s, size_t *count)
{
    *count = 0;
    for (int i = 0; i < tutti_session_parameter_count(s); i++)
        *count += tutti_session_parameter(s, i).count;
    float *all = calloc(*count, sizeof *all), *at = all;
    for (int i = 0; i < tutti_session_parameter_count(s); i++) {
        assert_int_equal(tutti_session_read(s, i, at), TUTTI_OK);
        at += tutti_session_parameter(s, i).count;
    }
    return all;
}

static tutti_session *session_of(const tutti_train_options *o)
{
    tutti_session *s = NULL;
    const tutti_status status = tutti_session_create(&s, o);
    if (status != TUTTI_OK) print_error("%s\n", tutti_message());
    assert_int_equal(status, TUTTI_OK);
    return s;
}

/* A tenth is held out for tests: what remains in order is what both take. */
static void steps_are_those_of_train(void **state)
{
    fixture f;
    take_copy(&f, *state);
    double losses[STEPS];
    f.arrays.samples[TUTTI_SPLIT_TEST] = f.floats;
    f.arrays.labels[TUTTI_SPLIT_TEST] = f.labels;
    f.own.count[TUTTI_SPLIT_TEST] = BATCH;
    for (int bytes = 0; bytes < 2; bytes++) {
        tutti_train_options o = usual(&f);
        if (bytes) {
            f.own.number = TUTTI_BYTE;
            f.arrays.samples[0] = f.arrays.samples[1] = f.bytes;
            f.arrays.bytes = VALUES;
            o.precision = "bf16";
        }
        const float mean[] = {0.5f, 0.25f, 0.125f}, std[] = {1, 2, 3};
        f.own.mean = mean, f.own.std = std, f.own.means = 3;
        o.watch = note_last;
        o.user = losses;
        tutti_train_result result;
        assert_int_equal(tutti_train(&o, &result), TUTTI_OK);
        tutti_session *s = session_of(&o);
        for (int n = 0; n < STEPS; n++) {
            tutti_step_news news;
            const int first = n * BATCH % SAMPLES;
            const void *samples = bytes ? (const void *)(f.bytes + first * VALUES)
                                        : (const void *)(f.floats + first * VALUES);
            assert_int_equal(tutti_session_step(s, samples, f.labels + first, -1, &news), TUTTI_OK);
            assert_int_equal(news.step, n + 1);
            assert_true(news.loss == losses[n]);
            assert_true(news.lr == (float)0.05);
        }
        tutti_session *own = session_of(&o);
        for (int n = 0; n < STEPS; n++)
            assert_int_equal(tutti_session_step_data(own, -1, NULL), TUTTI_OK);
        tutti_session_score score;
        assert_int_equal(tutti_session_evaluate(own, TUTTI_SPLIT_TEST, &score), TUTTI_OK);
        assert_int_equal(score.samples, BATCH);
        assert_true(score.top1 == result.top1);
        size_t count;
        float *a = parameters_of(s, &count), *b = parameters_of(own, &count);
        assert_memory_equal(a, b, count * sizeof *a);
        free(a);
        free(b);
        tutti_session_destroy(&s);
        tutti_session_destroy(&own);
    }
}

static void forms_of_samples_are_the_same(void **state)
{
    fixture f;
    take_copy(&f, *state);
    static float hwc[SAMPLES * VALUES], outputs[3][SAMPLES * CLASSES];
    for (int i = 0; i < SAMPLES; i++)
        for (int c = 0; c < C; c++)
            for (int p = 0; p < H * W; p++)
                hwc[i * VALUES + p * C + c] = f.floats[i * VALUES + c * H * W + p];
    const tutti_layout layouts[] = {TUTTI_CHW, TUTTI_HWC, TUTTI_BLOCKED};
    f.own.read = NULL;
    for (int k = 0; k < 3; k++) {
        tutti_train_options o = usual(&f);
        f.own.layout = layouts[k];
        tutti_session *s = session_of(&o);
        assert_int_equal(tutti_session_stride(s), VALUES); /* a multiple of 16: nothing to fill */
        assert_int_equal(
            tutti_session_forward(s, k ? hwc : f.floats, NULL, SAMPLES, outputs[k], NULL),
            TUTTI_OK);
        tutti_session_destroy(&s);
        assert_memory_equal(outputs[k], outputs[0], sizeof outputs[0]);
    }
}

typedef struct regression {
    const float *targets; /* of the minibatch */
    int first;            /* of the last evaluation's last piece */
} regression;

static void squares(void *user, const tutti_loss_call *call)
{
    regression *r = user;
    if (!call->gradients) r->first = call->first;
    for (int i = 0; i < call->count; i++) {
        const float *y = call->values + (size_t)i * call->stride;
        const float *t = r->targets + (size_t)(call->first + i) * (size_t)call->outputs;
        float loss = 0;
        for (int k = 0; k < call->outputs; k++) {
            const float d = y[k] - t[k];
            loss += d * d;
            if (call->gradients) call->gradients[(size_t)i * call->stride + (size_t)k] = 2 * d;
        }
        if (call->losses) call->losses[i] = loss;
    }
}

/* f(x) = its own targets: least squares finds them where there are as many features as samples. */
static void a_loss_of_ones_own_is_minimised(void **state)
{
    fixture f;
    take_copy(&f, *state);
    float targets[BATCH * CLASSES], outputs[BATCH * CLASSES], losses[BATCH];
    regression r = {.targets = targets};
    const tutti_own_loss loss = {squares, &r};
    for (int i = 0; i < BATCH * CLASSES; i++) targets[i] = (float)(i % 7) - 3;
    tutti_train_options o = usual(&f);
    o.net = "input 3 8 8\nf1 fc 32 tanh\nf2 fc 5\nl softmax\n";
    o.own_loss = &loss;
    o.micro_batch = 8;
    f.own.read = NULL;
    tutti_session *s = session_of(&o);
    tutti_step_news first, news;
    assert_int_equal(tutti_session_step(s, f.floats, NULL, 0.01, &first), TUTTI_OK);
    for (int i = 0; i < 300; i++)
        assert_int_equal(tutti_session_step(s, f.floats, NULL, 0.01, &news), TUTTI_OK);
    assert_true(first.loss > 10);
    assert_true(news.loss < first.loss / 1000);
    assert_int_equal(tutti_session_forward(s, f.floats, f.labels, BATCH, outputs, losses),
                     TUTTI_OK);
    assert_int_equal(r.first, 8);
    for (int i = 0; i < BATCH * CLASSES; i++) assert_true(fabsf(outputs[i] - targets[i]) < 0.5f);
    tutti_session_destroy(&s);
}

static void what_is_saved_is_gone_on_with(void **state)
{
    fixture f;
    take_copy(&f, *state);
    scratch place;
    scratch_open(&place);
    const char *run = place.path;
    f.own.read = NULL;
    tutti_train_options o = usual(&f);
    o.run = run;
    size_t count;
    float *want = NULL;
    for (int part = 0; part < 2; part++) {
        tutti_session *s = session_of(&o);
        for (int n = (int)tutti_session_steps(s); n < STEPS; n++) {
            const int first = n * BATCH % SAMPLES;
            assert_int_equal(
                tutti_session_step(s, f.floats + first * VALUES, f.labels + first, -1, NULL),
                TUTTI_OK);
            if (part == 0 && n == 4) assert_int_equal(tutti_session_save(s), TUTTI_OK);
        }
        float *have = parameters_of(s, &count);
        if (part) assert_memory_equal(have, want, count * sizeof *have);
        else want = have;
        if (part) free(have);
        tutti_session_destroy(&s);
        o.resume = "auto";
    }
    free(want);
    scratch_close(&place);
}

static void parameters_are_read_and_written_by_name(void **state)
{
    fixture f;
    take_copy(&f, *state);
    float weights[CLASSES * HIDDEN], again[CLASSES * HIDDEN];
    f.own.read = NULL;
    const tutti_train_options o = usual(&f);
    tutti_session *s = session_of(&o);
    const int at = tutti_session_find(s, "f2.weight");
    assert_true(at >= 0);
    assert_int_equal(tutti_session_find(s, "f3.weight"), -1);
    const tutti_parameter p = tutti_session_parameter(s, at);
    assert_int_equal(p.dim_count, 2);
    assert_int_equal(p.count, sizeof weights / sizeof *weights);
    assert_true(p.is_trained);
    assert_false(tutti_session_parameter(s, tutti_session_find(s, "n1.running_mean")).is_trained);
    for (size_t i = 0; i < p.count; i++) weights[i] = (float)i;
    assert_int_equal(tutti_session_write(s, at, weights), TUTTI_OK);
    assert_int_equal(tutti_session_read(s, at, again), TUTTI_OK);
    assert_memory_equal(weights, again, sizeof weights);
    assert_int_equal(tutti_session_read(s, 99, again), TUTTI_ARGUMENT);
    tutti_session_destroy(&s);
}

static void nonsense_is_refused_with_a_sentence(void **state)
{
    fixture f;
    take_copy(&f, *state);
    const int32_t wrong[BATCH] = {[3] = CLASSES};
    tutti_step_news news;
    f.own.read = NULL;
    tutti_train_options o = usual(&f);
    o.steps = 0;
    o.lr_schedule = "cosine";
    tutti_session *s = session_of(&o);
    assert_int_equal(tutti_session_step(s, f.floats, wrong, 0.1, &news), TUTTI_DATA);
    assert_string_equal(tutti_message(), "sample 3 has label 5; this net's are 0 to 4");
    assert_int_equal(tutti_session_step(s, f.floats, NULL, 0.1, &news), TUTTI_ARGUMENT);
    assert_int_equal(tutti_session_step(s, NULL, f.labels, 0.1, &news), TUTTI_ARGUMENT);
    assert_int_equal(tutti_session_step(s, f.floats, f.labels, -1, &news), TUTTI_ARGUMENT);
    assert_non_null(strstr(tutti_message(), "epoch_samples"));
    assert_int_equal(tutti_session_step_data(s, 0.1, &news), TUTTI_ARGUMENT);
    assert_int_equal(tutti_session_save(s), TUTTI_ARGUMENT);
    tutti_session_score score;
    assert_int_equal(tutti_session_evaluate(s, TUTTI_SPLIT_TEST, &score), TUTTI_ARGUMENT);
    f.floats[5] = NAN;
    assert_int_equal(tutti_session_step(s, f.floats, f.labels, 0.1, &news), TUTTI_DATA);
    assert_non_null(strstr(tutti_message(), "sample 0: "));
    tutti_session_destroy(&s);
    f.own.layout = TUTTI_BLOCKED;
    f.own.number = TUTTI_BYTE;
    assert_int_equal(tutti_session_create(&s, &o), TUTTI_ARGUMENT);
    assert_null(s);
    o.net = "input 3 8 8\nf1 cf 3\n";
    assert_int_equal(tutti_session_create(&s, &o), TUTTI_PARSE);
}

static bool stop_at_five(void *user, const tutti_train_news *news)
{
    *(int *)user += 1;
    return news->step < 5;
}

static void a_watcher_may_end_a_training(void **state)
{
    fixture f;
    take_copy(&f, *state);
    tutti_train_options o = usual(&f);
    tutti_train_result result;
    int calls = 0;
    o.eval_every = "never";
    o.watch = stop_at_five;
    o.user = &calls;
    assert_int_equal(tutti_train(&o, &result), TUTTI_OK);
    assert_int_equal(result.steps, 6); /* a step is told of when the next is done */
    assert_int_equal(calls, 6);
}

static tutti_status fail_at_last(void *user, tutti_split split, int64_t index, void *sample,
                                 int32_t *label)
{
    if (index == SAMPLES - 1) return tutti_own_data_fail(TUTTI_IO, "the tape is torn");
    return tutti_arrays_read(user, split, index, sample, label);
}

static void a_source_that_fails_ends_a_training(void **state)
{
    fixture f;
    take_copy(&f, *state);
    tutti_train_options o = usual(&f);
    tutti_train_result result;
    f.own.count[TUTTI_SPLIT_TEST] = 1;
    f.arrays.samples[TUTTI_SPLIT_TEST] = f.floats;
    f.arrays.labels[TUTTI_SPLIT_TEST] = f.labels;
    f.own.read = fail_at_last;
    f.own.mean = f.own.std = (const float[]){1};
    f.own.means = 1;
    assert_int_equal(tutti_train(&o, &result), TUTTI_IO);
    assert_string_equal(tutti_message(), "the tape is torn");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(steps_are_those_of_train),
        cmocka_unit_test(forms_of_samples_are_the_same),
        cmocka_unit_test(a_loss_of_ones_own_is_minimised),
        cmocka_unit_test(what_is_saved_is_gone_on_with),
        cmocka_unit_test(parameters_are_read_and_written_by_name),
        cmocka_unit_test(nonsense_is_refused_with_a_sentence),
        cmocka_unit_test(a_watcher_may_end_a_training),
        cmocka_unit_test(a_source_that_fails_ends_a_training),
    };
    return cmocka_run_group_tests(tests, set_up, NULL);
}
