/* The loader: the same batches as a plain loop, for any threads, ranks and place to begin. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "data/loader.h"
#include "data/order.h"
#include "data_files.h"

enum { STRIDE = 32, SEED = 11 };

static tutti_data *open_data(const scratch *s, int train, int test, bool skip_bad)
{
    tutti_data *data = NULL;
    tutti_data_options o = tutti_data_defaults();
    o.seed = SEED;
    o.skip_bad = skip_bad;
    make_idx(s, train, test, 4, 5);
    assert_ok(tutti_data_open(&data, spec_of("idx", s, ",pad=1,flip=on,mean=0,std=1"), &o));
    assert_int_equal(tutti_data_stride(data), STRIDE);
    return data;
}

static tutti_loader *open_loader(tutti_data *data, int batch, int first, int end, int threads)
{
    tutti_loader *loader = NULL;
    tutti_loader_options o = tutti_loader_defaults();
    o.seed = SEED;
    o.batch = batch;
    o.first = first;
    o.end = end;
    o.threads = threads;
    assert_ok(tutti_loader_create(&loader, data, &o));
    return loader;
}

/* What place 'at' of the training stream must hold. */
static void check_sample(tutti_data *data, tutti_reader *reader, int64_t at, const tutti_batch *b,
                         int i)
{
    const uint32_t count = (uint32_t)tutti_data_count(data, TUTTI_SPLIT_TRAIN);
    const uint32_t epoch = (uint32_t)(at / count);
    const uint32_t id = tutti_order_id(SEED, epoch, count, (uint32_t)(at % count));
    float want[STRIDE];
    int label;
    assert_int_equal(b->ids[i], id);
    assert_int_equal(b->epochs[i], epoch);
    assert_ok(tutti_reader_fetch(reader, TUTTI_SPLIT_TRAIN, epoch, id, want, &label));
    assert_int_equal(b->labels[i], label);
    assert_memory_equal(b->samples + i * STRIDE, want, sizeof want);
}

static void check_steps(tutti_data *data, tutti_loader *loader, int64_t step, int steps, int batch,
                        int first, int end)
{
    tutti_reader *reader = NULL;
    assert_ok(tutti_reader_create(&reader, data));
    for (int s = 0; s < steps; s++, step++) {
        tutti_batch b;
        assert_ok(tutti_loader_next(loader, &b));
        assert_int_equal(b.step, step);
        assert_int_equal(b.count, end - first);
        assert_true(b.waited >= 0);
        for (int i = 0; i < b.count; i++)
            check_sample(data, reader, step * batch + first + i, &b, i);
    }
    tutti_reader_destroy(&reader);
}

static void batches_are_those_of_a_plain_loop(void **state)
{
    tutti_data *data = open_data(*state, 53, 7, false);
    for (int threads = 1; threads <= 5; threads++)
        for (int batch = 1; batch <= 130; batch = 3 * batch + 1) { /* up to two epochs a step */
            tutti_loader *loader = open_loader(data, batch, 0, batch, threads);
            check_steps(data, loader, 0, 200 / batch + 3, batch, 0, batch);
            tutti_loader_destroy(&loader);
        }
    tutti_data_close(&data);
}

/* Each rank gets its places of the same global batch. */
static void any_number_of_ranks_sees_the_same_stream(void **state)
{
    tutti_data *data = open_data(*state, 53, 7, false);
    for (int ranks = 1; ranks <= 9; ranks++)
        for (int rank = 0; rank < ranks; rank++) {
            const int first = 24 * rank / ranks, end = 24 * (rank + 1) / ranks;
            tutti_loader *loader = open_loader(data, 24, first, end, 2);
            check_steps(data, loader, 0, 6, 24, first, end);
            tutti_loader_destroy(&loader);
        }
    tutti_data_close(&data);
}

/* Batches of images of any number of channels, in memory that held others before. */
static void batches_have_the_layout_of_the_net(void **state)
{
    enum { BATCH = 6, STEPS = 5 };
    (void)state;
    static float numbers[1 << 12], want[1 << 12];
    for (int i = 0; i < AWKWARD_SHAPES; i++) {
        const tutti_sample_shape s = awkward_shapes[i];
        tutti_data *image = NULL, *vector = NULL;
        tutti_reader *reader = NULL;
        tutti_data_options o = tutti_data_defaults();
        o.shape = s;
        assert_ok(tutti_data_open(&image, "synthetic", &o));
        o.shape = (tutti_sample_shape){s.channels * s.height * s.width, 1, 1};
        assert_ok(tutti_data_open(&vector, "synthetic", &o));
        assert_ok(tutti_reader_create(&reader, vector));
        tutti_loader *loader = open_loader(image, BATCH, 1, BATCH, 2);
        for (int step = 0; step < STEPS; step++) {
            tutti_batch b;
            assert_ok(tutti_loader_next(loader, &b));
            for (int j = 0; j < b.count; j++) {
                int label;
                assert_ok(tutti_reader_fetch(reader, TUTTI_SPLIT_TRAIN, b.epochs[j], b.ids[j],
                                             numbers, &label));
                lay_out(want, numbers, s);
                assert_int_equal(b.labels[j], label);
                assert_memory_equal(b.samples + (size_t)j * floats_of(s), want,
                                    floats_of(s) * sizeof *want);
            }
        }
        tutti_loader_destroy(&loader);
        tutti_reader_destroy(&reader);
        tutti_data_close(&image);
        tutti_data_close(&vector);
    }
}

static void it_resumes_anywhere(void **state)
{
    tutti_data *data = open_data(*state, 53, 7, false);
    tutti_loader *loader = open_loader(data, 10, 2, 9, 3);
    check_steps(data, loader, 0, 4, 10, 2, 9);
    tutti_loader_seek(loader, 1000000007);
    check_steps(data, loader, 1000000007, 4, 10, 2, 9);
    tutti_loader_seek(loader, 2);
    tutti_loader_seek(loader, 3);
    check_steps(data, loader, 3, 4, 10, 2, 9);
    tutti_loader_destroy(&loader);
    tutti_data_close(&data);
}

static void without_shuffle_ids_are_in_order(void **state)
{
    tutti_data *data = open_data(*state, 53, 7, false);
    tutti_loader *loader = NULL;
    tutti_loader_options o = tutti_loader_defaults();
    o.shuffle = false;
    o.batch = o.end = 20;
    assert_ok(tutti_loader_create(&loader, data, &o));
    for (uint32_t step = 0; step < 6; step++) {
        tutti_batch b;
        assert_ok(tutti_loader_next(loader, &b));
        for (uint32_t i = 0; i < 20; i++) {
            assert_int_equal(b.ids[i], (step * 20 + i) % 53);
            assert_int_equal(b.epochs[i], (step * 20 + i) / 53);
        }
    }
    tutti_loader_destroy(&loader);
    tutti_data_close(&data);
}

/* Every test sample once, over any number of ranks, and again after a seek. */
static void testing_visits_each_sample_once(void **state)
{
    enum { TEST = 23, BATCH = 8 };
    tutti_data *data = open_data(*state, 5, TEST, false);
    for (int ranks = 1; ranks <= BATCH; ranks++) {
        int seen[TEST] = {0};
        for (int rank = 0; rank < ranks; rank++) {
            tutti_loader *loader = NULL;
            tutti_loader_options o = tutti_loader_defaults();
            o.split = TUTTI_SPLIT_TEST;
            o.batch = BATCH;
            o.first = BATCH * rank / ranks;
            o.end = BATCH * (rank + 1) / ranks;
            assert_ok(tutti_loader_create(&loader, data, &o));
            assert_int_equal(tutti_loader_steps(loader), 3);
            for (int pass = 0; pass < 3; pass++, tutti_loader_seek(loader, 0)) {
                tutti_batch b;
                for (int step = 0; step < 3; step++) {
                    assert_ok(tutti_loader_next(loader, &b));
                    for (int i = 0; i < b.count; i++) {
                        assert_int_equal(b.ids[i], step * BATCH + o.first + i);
                        seen[b.ids[i]]++;
                    }
                }
                assert_ok(tutti_loader_next(loader, &b));
                assert_int_equal(b.count, 0);
            }
            tutti_loader_destroy(&loader);
        }
        for (int i = 0; i < TEST; i++) assert_int_equal(seen[i], 3);
    }
    tutti_data_close(&data);
}

static tutti_data *damaged_cifar(const scratch *s, bool skip_bad)
{
    static bytes b;
    tutti_data *data = NULL;
    tutti_data_options o = tutti_data_defaults();
    o.skip_bad = skip_bad;
    make_cifar(s, 4);
    put_cifar(&b, 4, 4);
    b.data[3073] = 99; /* sample 5 */
    write_bytes(scratch_file(s, "data_batch_2.bin"), b.data, b.count);
    assert_ok(tutti_data_open(&data, spec_of("cifar10", s, ",mean=0/0/0,std=1/1/1"), &o));
    return data;
}

static void damage_stops_the_step_it_is_in(void **state)
{
    tutti_data *data = damaged_cifar(*state, false);
    tutti_loader *loader = NULL;
    tutti_loader_options o = tutti_loader_defaults();
    o.shuffle = false;
    o.batch = o.end = 4;
    o.threads = 3;
    assert_ok(tutti_loader_create(&loader, data, &o));
    tutti_batch b;
    assert_ok(tutti_loader_next(loader, &b));
    for (int again = 0; again < 2; again++)
        assert_fails(tutti_loader_next(loader, &b), TUTTI_DATA, "record 1 (byte 3073): label 99");
    tutti_loader_seek(loader, 2);
    assert_ok(tutti_loader_next(loader, &b));
    assert_int_equal(b.ids[0], 8);
    tutti_loader_destroy(&loader);
    tutti_data_close(&data);

    data = damaged_cifar(*state, true);
    assert_ok(tutti_loader_create(&loader, data, &o));
    assert_ok(tutti_loader_next(loader, &b));
    assert_ok(tutti_loader_next(loader, &b));
    assert_int_equal(b.labels[1], 6);
    assert_int_equal(b.labels[2], 6);
    assert_int_equal(tutti_data_bad_count(data), 1);
    tutti_loader_destroy(&loader);
    tutti_data_close(&data);
}

static void it_can_be_closed_at_any_time(void **state)
{
    tutti_data *data = open_data(*state, 53, 7, false);
    for (int i = 0; i < 50; i++) {
        tutti_loader *loader = open_loader(data, 64, 0, 64, 1 + i % 4);
        tutti_batch b;
        for (int step = 0; step < i % 3; step++) assert_ok(tutti_loader_next(loader, &b));
        tutti_loader_destroy(&loader);
        assert_null(loader);
    }
    tutti_data_close(&data);
}

static void nonsense_is_refused(void **state)
{
    tutti_data *data = open_data(*state, 5, 2, false);
    tutti_loader *loader = NULL;
    tutti_loader_options o = tutti_loader_defaults();
    assert_fails(tutti_loader_create(&loader, data, &o), TUTTI_ARGUMENT, "a batch of 0");
    o.batch = 4;
    o.end = 5;
    assert_fails(tutti_loader_create(&loader, data, &o), TUTTI_ARGUMENT, "a batch of 4");
    o.end = 4;
    o.threads = 1000;
    assert_fails(tutti_loader_create(&loader, data, &o), TUTTI_ARGUMENT, "not 1000");
    tutti_data_close(&data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SCRATCH_TEST(batches_are_those_of_a_plain_loop),
        SCRATCH_TEST(any_number_of_ranks_sees_the_same_stream),
        SCRATCH_TEST(batches_have_the_layout_of_the_net),
        SCRATCH_TEST(it_resumes_anywhere),
        SCRATCH_TEST(without_shuffle_ids_are_in_order),
        SCRATCH_TEST(testing_visits_each_sample_once),
        SCRATCH_TEST(damage_stops_the_step_it_is_in),
        SCRATCH_TEST(it_can_be_closed_at_any_time),
        SCRATCH_TEST(nonsense_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
