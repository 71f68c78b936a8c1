/* Validation sets drawn from the training set: which samples, how many, always the same ones. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <math.h>
#include <cmocka.h>

#include "data/loader.h"
#include "data_files.h"

enum { TRAIN = 53, TEST = 7, STRIDE = 32 };

static tutti_data *open_set(const char *spec, uint64_t seed, bool skip_bad)
{
    tutti_data *data = NULL;
    tutti_data_options o = tutti_data_defaults();
    o.augment = false;
    o.seed = seed;
    o.skip_bad = skip_bad;
    assert_ok(tutti_data_open(&data, spec, &o));
    return data;
}

static void must_fail(const char *spec, tutti_status status, const char *part)
{
    tutti_data *data = NULL;
    const tutti_data_options o = tutti_data_defaults();
    assert_fails(tutti_data_open(&data, spec, &o), status, part);
    assert_null(data);
}

/* Which image of make_idx a sample is: its first pixel is 37 times its number, modulo 256. */
static int image_of(tutti_reader *reader, tutti_split split, uint32_t id)
{
    float sample[STRIDE];
    int label, image = 0;
    assert_ok(tutti_reader_fetch(reader, split, 0, id, sample, &label));
    while (pixel_of(image, 0) != lround(255.0 * (double)sample[0])) image++;
    assert_in_range(image, 0, TRAIN - 1);
    assert_int_equal(label, image % 3);
    return image;
}

/* seen[n]: 1 if image n is for training, 2 if for validation; each once, in the file's order. */
static void look(tutti_data *data, int seen[TRAIN])
{
    static const tutti_split splits[] = {TUTTI_SPLIT_TRAIN, TUTTI_SPLIT_VAL};
    tutti_reader *reader = NULL;
    memset(seen, 0, TRAIN * sizeof *seen);
    assert_ok(tutti_reader_create(&reader, data));
    for (int i = 0; i < 2; i++) {
        int before = -1;
        for (uint32_t id = 0; id < (uint32_t)tutti_data_count(data, splits[i]); id++) {
            const int image = image_of(reader, splits[i], id);
            assert_true(image > before);
            assert_int_equal(seen[image], 0);
            seen[before = image] = 1 + i;
        }
    }
    tutti_reader_destroy(&reader);
    for (int n = 0; n < TRAIN; n++) assert_true(seen[n]);
}

static void each_sample_is_in_one_part(void **state)
{
    scratch *s = *state;
    int seen[TRAIN];
    make_idx(s, TRAIN, TEST, 4, 5);
    for (int percent = 2; percent <= 90; percent += 11) {
        char keys[64];
        snprintf(keys, sizeof keys, ",mean=0,std=1,val=%d", percent);
        tutti_data *data = open_set(spec_of("idx", s, keys), 0, false);
        assert_int_equal(tutti_data_count(data, TUTTI_SPLIT_VAL), TRAIN * percent / 100);
        assert_int_equal(tutti_data_count(data, TUTTI_SPLIT_TRAIN), TRAIN - TRAIN * percent / 100);
        assert_int_equal(tutti_data_count(data, TUTTI_SPLIT_TEST), TEST);
        look(data, seen);
        tutti_data_close(&data);
    }
}

static void the_seed_draws_nothing(void **state)
{
    scratch *s = *state;
    int first[TRAIN], again[TRAIN];
    char hash[80] = "";
    make_idx(s, TRAIN, TEST, 4, 5);
    for (uint64_t seed = 0; seed < 5; seed++) {
        tutti_data *data = open_set(spec_of("idx", s, ",mean=0,std=1,val=20"), seed, false);
        look(data, seed ? again : first);
        if (seed) assert_memory_equal(first, again, sizeof first);
        if (seed) assert_string_equal(hash, tutti_data_hash(data));
        snprintf(hash, sizeof hash, "%s", tutti_data_hash(data));
        tutti_data_close(&data);
    }
    tutti_data *data = open_set(spec_of("idx", s, ",mean=0,std=1,val=22"), 0, false);
    assert_string_not_equal(hash, tutti_data_hash(data));
    assert_non_null(strstr(tutti_data_description(data), "42 + 7 samples"));
    assert_non_null(strstr(tutti_data_description(data), "11 more for validation"));
    tutti_data_close(&data);
}

/* The mean and deviation are those of the whole training set, divided or not. */
static void normalisation_stays(void **state)
{
    scratch *s = *state;
    make_idx(s, TRAIN, TEST, 4, 5);
    tutti_data *whole = open_set(spec_of("idx", s, ""), 0, false);
    tutti_data *divided = open_set(spec_of("idx", s, ",val=50"), 0, false);
    assert_memory_equal(tutti_data_normalise(whole).mean, tutti_data_normalise(divided).mean, 4);
    assert_memory_equal(tutti_data_normalise(whole).std, tutti_data_normalise(divided).std, 4);
    tutti_data_close(&whole);
    tutti_data_close(&divided);
}

/* Of ten classes that take turns, a tenth that is evenly spaced would have one. */
static void classes_that_take_turns_are_all_there(void **state)
{
    (void)state;
    float sample[STRIDE];
    int label, found[10] = {0};
    tutti_reader *reader = NULL;
    tutti_data *data =
        open_set("synthetic,shape=4x5x1,classes=10,train=1000,test=3,val=10", 0, false);
    assert_int_equal(tutti_data_count(data, TUTTI_SPLIT_VAL), 100);
    assert_ok(tutti_reader_create(&reader, data));
    for (uint32_t id = 0; id < 100; id++) {
        assert_ok(tutti_reader_fetch(reader, TUTTI_SPLIT_VAL, 0, id, sample, &label));
        found[label]++;
    }
    for (int c = 0; c < 10; c++) assert_in_range(found[c], 1, 30); /* 10 expected */
    tutti_reader_destroy(&reader);
    tutti_data_close(&data);
}

static void loaders_give_each_once(void **state)
{
    scratch *s = *state;
    tutti_loader *loader = NULL;
    tutti_loader_options o = tutti_loader_defaults();
    make_idx(s, TRAIN, TEST, 4, 5);
    tutti_data *data = open_set(spec_of("idx", s, ",mean=0,std=1,val=50"), 0, false);
    o.split = TUTTI_SPLIT_VAL;
    o.batch = o.end = 10;
    assert_ok(tutti_loader_create(&loader, data, &o));
    assert_int_equal(tutti_loader_steps(loader), 3);
    for (uint32_t next = 0, step = 0; step < 4; step++) {
        tutti_batch batch;
        assert_ok(tutti_loader_next(loader, &batch));
        assert_int_equal(batch.count, step < 2 ? 10 : step < 3 ? 6 : 0);
        for (int i = 0; i < batch.count; i++) assert_int_equal(batch.ids[i], next++);
    }
    tutti_loader_destroy(&loader);
    tutti_data_close(&data);
}

/* A label that CIFAR-10 has not: left out of the count, as in a test set. */
static void damaged_ones_are_left_out(void **state)
{
    scratch *s = *state;
    static float sample[3 * 32 * 32];
    static bytes b;
    int label, none = 0;
    tutti_reader *reader = NULL;
    make_cifar(s, 2);
    for (int file = 0; file < 5; file++) {
        char name[32];
        snprintf(name, sizeof name, "data_batch_%d.bin", file + 1);
        put_cifar(&b, 2 * file, 2);
        b.data[0] = 10;
        write_bytes(scratch_file(s, name), b.data, b.count);
    }
    tutti_data *data = open_set(spec_of("cifar10", s, ",val=80"), 0, true);
    assert_int_equal(tutti_data_count(data, TUTTI_SPLIT_VAL), 8);
    assert_ok(tutti_reader_create(&reader, data));
    for (uint32_t id = 0; id < 8; id++) {
        assert_ok(tutti_reader_fetch(reader, TUTTI_SPLIT_VAL, 0, id, sample, &label));
        none += label == TUTTI_LABEL_NONE;
    }
    assert_in_range(none, 3, 5); /* five of ten are damaged, two are not here */
    assert_int_equal(tutti_data_bad_count(data), none);
    tutti_reader_destroy(&reader);
    tutti_data_close(&data);
}

static void values_are_checked(void **state)
{
    scratch *s = *state;
    make_idx(s, TRAIN, TEST, 4, 5);
    must_fail(spec_of("idx", s, ",val=0"), TUTTI_ARGUMENT, "whole number of percent from 1 to 90");
    must_fail(spec_of("idx", s, ",val=91"), TUTTI_ARGUMENT, "from 1 to 90");
    must_fail(spec_of("idx", s, ",val=0.1"), TUTTI_ARGUMENT, "(val=10: a tenth)");
    must_fail(spec_of("idx", s, ",val=nan"), TUTTI_ARGUMENT, "from 1 to 90");
    must_fail(spec_of("idx", s, ",val=1e300"), TUTTI_ARGUMENT, "from 1 to 90");
    must_fail(spec_of("idx", s, ",val=list.txt"), TUTTI_ARGUMENT, "val=list.txt must be");
    must_fail(spec_of("idx", s, ",val=1"), TUTTI_DATA, "1 % of 53 training samples is none");
    must_fail(spec_of("idx", s, ",value=1"), TUTTI_ARGUMENT, "known: val,");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SCRATCH_TEST(each_sample_is_in_one_part),
        SCRATCH_TEST(the_seed_draws_nothing),
        SCRATCH_TEST(normalisation_stays),
        SCRATCH_TEST(classes_that_take_turns_are_all_there),
        SCRATCH_TEST(loaders_give_each_once),
        SCRATCH_TEST(damaged_ones_are_left_out),
        SCRATCH_TEST(values_are_checked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
