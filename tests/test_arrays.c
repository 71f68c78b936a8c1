/* Arrays of NumPy: every type and layout gives its numbers, and everything else a sentence. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <math.h>
#include <cmocka.h>

#include "data/npy.h"
#include "data_files.h"

/* A file as np.save writes it; shape is "(3, 4)". */
static void begin_npy(bytes *b, const char *descr, const char *shape)
{
    char text[256];
    snprintf(text, sizeof text, "{'descr': '%s', 'fortran_order': False, 'shape': %s, }\n", descr,
             shape);
    b->count = 0;
    put(b, "\x93NUMPY\1", 8);
    put_byte(b, (int)strlen(text));
    put_byte(b, 0);
    put_text(b, text);
}

static void write_npy(const scratch *s, const char *name, const bytes *b)
{
    write_bytes(scratch_file(s, name), b->data, b->count);
}

static void write_labels(const scratch *s, const char *name, int count)
{
    static bytes b;
    char shape[32];
    snprintf(shape, sizeof shape, "(%d,)", count);
    begin_npy(&b, "<i8", shape);
    for (int i = 0; i < count; i++) {
        const int64_t label = i % 3;
        put(&b, &label, sizeof label);
    }
    write_npy(s, name, &b);
}

/* Floats 0.25 * i, 'count' of them. */
static void write_floats(const scratch *s, const char *name, const char *shape, int count)
{
    static bytes b;
    begin_npy(&b, "<f4", shape);
    for (int i = 0; i < count; i++) put_float(&b, 0.25f * (float)i);
    write_npy(s, name, &b);
}

static tutti_data *open_shape(const scratch *s, const char *keys, tutti_sample_shape shape)
{
    tutti_data *data = NULL;
    tutti_data_options o = tutti_data_defaults();
    char spec[2048];
    snprintf(spec, sizeof spec, "npy:%s/x.npy,%s/y.npy%s", s->path, s->path, keys);
    o.shape = shape;
    assert_ok(tutti_data_open(&data, spec, &o));
    return data;
}

static void must_fail(const scratch *s, const char *keys, tutti_sample_shape shape,
                      tutti_status status, const char *part)
{
    tutti_data *data = NULL;
    tutti_data_options o = tutti_data_defaults();
    char spec[2048];
    snprintf(spec, sizeof spec, "npy:%s/x.npy,%s/y.npy%s", s->path, s->path, keys);
    o.shape = shape;
    assert_fails(tutti_data_open(&data, spec, &o), status, part);
    assert_null(data);
}

static const float *fetch(tutti_data *data, tutti_split split, uint32_t id, int *label)
{
    static float sample[1 << 16];
    tutti_reader *reader = NULL;
    assert_ok(tutti_reader_create(&reader, data));
    assert_ok(tutti_reader_fetch(reader, split, 0, id, sample, label));
    tutti_reader_destroy(&reader);
    return sample;
}

#define AS_STORED ",mean=0,std=1,holdout=0"
static const tutti_sample_shape any = {0};

static void every_type_gives_its_numbers(void **state)
{
    static const struct {
        const char *descr;
        int bytes;
        uint8_t number[8]; /* -3, 3, 1 or 51 / 255 */
        float value;
    } cases[] = {
        {"|i1", 1, {0xfd}, -3},
        {"|u1", 1, {51}, 0.2f},
        {"|b1", 1, {1}, 1},
        {"<u2", 2, {3}, 3},
        {"<i2", 2, {0xfd, 0xff}, -3},
        {"<u4", 4, {3}, 3},
        {"<i4", 4, {0xfd, 0xff, 0xff, 0xff}, -3},
        {"<u8", 8, {3}, 3},
        {"<i8", 8, {0xfd, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}, -3},
        {"<f2", 2, {0x00, 0xc2}, -3},
        {"<f2", 2, {0x01, 0x00}, 0x1p-24f},
        {"<f4", 4, {0, 0, 0x40, 0xc0}, -3},
        {"<f8", 8, {0, 0, 0, 0, 0, 0, 0x08, 0xc0}, -3},
    };
    const scratch *s = *state;
    static bytes b;
    write_labels(s, "y.npy", 2);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        begin_npy(&b, cases[i].descr, "(2, 3)");
        for (int k = 0; k < 6; k++) put(&b, cases[i].number, (size_t)cases[i].bytes);
        write_npy(s, "x.npy", &b);
        tutti_data *data = open_shape(s, AS_STORED, any);
        int label;
        const float *sample = fetch(data, TUTTI_SPLIT_TRAIN, 1, &label);
        assert_int_equal(label, 1);
        for (int k = 0; k < 3; k++)
            if (sample[k] != cases[i].value) fail_msg("%s: %g", cases[i].descr, sample[k]);
        tutti_data_close(&data);
    }
}

/* [h][w][c] and [c][h][w] of the same numbers give the same samples, however many channels. */
static void both_layouts_give_the_same_samples(void **state)
{
    const scratch *s = *state;
    static float plain[1 << 12], want[1 << 12];
    static bytes b;
    write_labels(s, "y.npy", 1);
    for (int i = 0; i < AWKWARD_SHAPES; i++) {
        const tutti_sample_shape n = awkward_shapes[i];
        const int pixels = n.height * n.width;
        char shape[64];
        for (int k = 0; k < pixels * n.channels; k++) plain[k] = (float)k - 7;
        lay_out(want, plain, n);
        for (int planar = 0; planar < 2; planar++) {
            if (planar)
                snprintf(shape, sizeof shape, "(1, %d, %d, %d)", n.channels, n.height, n.width);
            else snprintf(shape, sizeof shape, "(1, %d, %d, %d)", n.height, n.width, n.channels);
            begin_npy(&b, "<f4", shape);
            for (int k = 0; k < pixels * n.channels; k++)
                put_float(&b, planar ? plain[k % pixels * n.channels + k / pixels] : plain[k]);
            write_npy(s, "x.npy", &b);
            tutti_data *data =
                open_shape(s, planar ? AS_STORED ",layout=chw" : AS_STORED ",layout=hwc", n);
            int label;
            const float *sample = fetch(data, TUTTI_SPLIT_TRAIN, 0, &label);
            assert_int_equal(tutti_data_stride(data), floats_of(n));
            assert_memory_equal(sample, want, floats_of(n) * sizeof *want);
            tutti_data_close(&data);
        }
    }
}

static void the_net_decides_the_layout(void **state)
{
    const scratch *s = *state;
    write_labels(s, "y.npy", 2);
    write_floats(s, "x.npy", "(2, 4, 5, 6)", 240);
    tutti_data *data = open_shape(s, AS_STORED, (tutti_sample_shape){4, 5, 6});
    int label;
    assert_true(fetch(data, TUTTI_SPLIT_TRAIN, 0, &label)[1] == 0.25f * 30); /* chw: channel 1 */
    tutti_data_close(&data);
    data = open_shape(s, AS_STORED, (tutti_sample_shape){6, 4, 5});
    assert_true(fetch(data, TUTTI_SPLIT_TRAIN, 0, &label)[1] == 0.25f);
    tutti_data_close(&data);
    must_fail(s, "", (tutti_sample_shape){5, 4, 6}, TUTTI_ARGUMENT, "layout=hwc or layout=chw");
    must_fail(s, ",layout=up", any, TUTTI_ARGUMENT, "layout=up must be hwc or chw");
    must_fail(s, ",layout=hwc", (tutti_sample_shape){4, 5, 6}, TUTTI_SHAPE, "4 channels of 5x6");
    data = open_shape(s, AS_STORED ",layout=hwc", (tutti_sample_shape){120, 1, 1});
    assert_true(fetch(data, TUTTI_SPLIT_TRAIN, 1, &label)[119] == 0.25f * 239);
    tutti_data_close(&data);
    write_floats(s, "x.npy", "(2, 3, 3, 3)", 54);
    must_fail(s, "", (tutti_sample_shape){3, 3, 3}, TUTTI_ARGUMENT, "layout=hwc or layout=chw");
    write_floats(s, "x.npy", "(2, 11, 40)",
                 880); /* frames of 40 numbers, for convolutions in time */
    data = open_shape(s, AS_STORED, (tutti_sample_shape){40, 11, 1});
    tutti_data_close(&data);
}

static void bytes_are_pictures(void **state)
{
    const scratch *s = *state;
    static bytes b;
    int label;
    write_labels(s, "y.npy", 8);
    begin_npy(&b, "|u1", "(8, 3, 4, 5)");
    for (int i = 0; i < 8 * 60; i++) put_byte(&b, pixel_of(0, i));
    write_npy(s, "x.npy", &b);
    tutti_data *data = open_shape(s, ",mean=0,std=1,holdout=0", (tutti_sample_shape){3, 4, 5});
    const float *sample = fetch(data, TUTTI_SPLIT_TRAIN, 2, &label);
    assert_int_equal(tutti_data_manner(data).picture.channels, 3);
    for (int p = 0; p < 20; p++)
        for (int c = 0; c < 3; c++) {
            const double want = pixel_of(0, 120 + c * 20 + p) / 255.0;
            if (fabs(sample[3 * p + c] - want) > 1e-6) fail_msg("%d %d", p, c);
        }
    tutti_data_close(&data);
    data = open_shape(s, ",layout=chw,flip=on,pad=1,resize=8", (tutti_sample_shape){1, 8, 8});
    tutti_data_close(&data);
}

/* The mean and the deviation are those of the samples that are left to train on. */
static void channels_are_normalised(void **state)
{
    const scratch *s = *state;
    write_labels(s, "y.npy", 100);
    write_floats(s, "x.npy", "(100, 2, 3)", 600);
    tutti_data *data = open_shape(s, ",layout=hwc", any);
    double sum[3] = {0}, square[3] = {0};
    const int count = tutti_data_count(data, TUTTI_SPLIT_TRAIN);
    assert_int_equal(count, 90);
    assert_int_equal(tutti_data_count(data, TUTTI_SPLIT_TEST), 10);
    for (int id = 0; id < count; id++) {
        int label;
        const float *sample = fetch(data, TUTTI_SPLIT_TRAIN, (uint32_t)id, &label);
        for (int i = 0; i < 6; i++) sum[i % 3] += sample[i], square[i % 3] += sample[i] * sample[i];
    }
    for (int c = 0; c < 3; c++) {
        assert_true(fabs(sum[c] / (2 * count)) < 1e-5);
        assert_true(fabs(square[c] / (2 * count) - 1) < 1e-4);
    }
    tutti_data_close(&data);
    must_fail(s, ",layout=hwc,mean=1/2,std=1/1", any, TUTTI_ARGUMENT, "must both have 3 numbers");
    data = open_shape(s, ",layout=hwc,mean=0/1/2,std=1/1/2", any);
    assert_true(tutti_data_normalise(data).mean[2] == 2);
    tutti_data_close(&data);
}

/* The parts are disjoint, together they are everything, and labels go along. */
static void samples_are_held_out(void **state)
{
    const scratch *s = *state;
    bool seen[300] = {false};
    write_labels(s, "y.npy", 300);
    write_floats(s, "x.npy", "(300,)", 300);
    tutti_data *data = open_shape(s, ",mean=0,std=1,holdout=20,val=25", any);
    static const int want[TUTTI_SPLITS] = {180, 60, 60};
    for (int split = 0; split < TUTTI_SPLITS; split++) {
        assert_int_equal(tutti_data_count(data, split), want[split]);
        int classes[3] = {0};
        for (uint32_t id = 0; id < (uint32_t)want[split]; id++) {
            int label;
            const int number = (int)(4 * fetch(data, split, id, &label)[0]);
            assert_false(seen[number]);
            assert_int_equal(label, number % 3);
            seen[number] = true;
            classes[label]++;
        }
        for (int c = 0; c < 3; c++) assert_true(classes[c] > want[split] / 6);
    }
    tutti_data_close(&data);
}

static void test_and_val_may_be_files(void **state)
{
    const scratch *s = *state;
    char keys[1200];
    int label;
    write_labels(s, "y.npy", 4);
    write_floats(s, "x.npy", "(4, 2)", 8);
    write_labels(s, "y2.npy", 2);
    write_floats(s, "x2.npy", "(2, 2)", 4);
    snprintf(keys, sizeof keys, ",test=%s,test-labels=%s,val=%s,val-labels=%s,mean=0,std=1",
             scratch_file(s, "x2.npy"), scratch_file(s, "y2.npy"), scratch_file(s, "x2.npy"),
             scratch_file(s, "y2.npy"));
    tutti_data *data = open_shape(s, keys, any);
    assert_int_equal(tutti_data_count(data, TUTTI_SPLIT_TRAIN), 4);
    assert_int_equal(tutti_data_count(data, TUTTI_SPLIT_TEST), 2);
    assert_int_equal(tutti_data_count(data, TUTTI_SPLIT_VAL), 2);
    assert_true(fetch(data, TUTTI_SPLIT_TEST, 1, &label)[1] == 0.75f);
    tutti_data_close(&data);
    snprintf(keys, sizeof keys, ",test=%s", scratch_file(s, "x2.npy"));
    must_fail(s, keys, any, TUTTI_ARGUMENT, "test-labels=Y.npy");
    write_floats(s, "x2.npy", "(2, 3)", 6);
    snprintf(keys, sizeof keys, ",test=%s,test-labels=%s", scratch_file(s, "x2.npy"),
             scratch_file(s, "y2.npy"));
    must_fail(s, keys, any, TUTTI_DATA, "differ in type or in the shape");
}

static void damage_gets_a_sentence(void **state)
{
    static const struct {
        const char *text;
        tutti_status status;
        const char *part;
    } cases[] = {
        {"{'descr': '>f4', 'fortran_order': False, 'shape': (2, 2), }", TUTTI_DATA,
         "astype('<f4')"},
        {"{'descr': '<f4', 'fortran_order': True, 'shape': (2, 2), }", TUTTI_DATA, "ascontiguous"},
        {"{'descr': '<c8', 'fortran_order': False, 'shape': (2, 2), }", TUTTI_DATA, "'<c8'"},
        {"{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (2,), }", TUTTI_DATA,
         "header"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (), }", TUTTI_DATA, "0 dimensions"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (2, 0), }", TUTTI_DATA, "is 0"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (0, 2), }", TUTTI_DATA, "2 labels"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (2, 99999999999999999999), }",
         TUTTI_DATA, "dimension 2 of 2"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (2, 9), }", TUTTI_DATA, "cut off"},
        {"{'descr': '<f4', 'shape': (2, 2), }", TUTTI_DATA, "header is damaged"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (2, 2)", TUTTI_DATA, "damaged"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (2, 1, 1, 1, 2), }", TUTTI_DATA,
         "at most three"},
    };
    const scratch *s = *state;
    static bytes b;
    write_labels(s, "y.npy", 2);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        b.count = 0;
        put(&b, "\x93NUMPY\1", 8);
        put_byte(&b, (int)strlen(cases[i].text));
        put_byte(&b, 0);
        put_text(&b, cases[i].text);
        for (int k = 0; k < 4; k++) put_float(&b, 1);
        write_npy(s, "x.npy", &b);
        must_fail(s, "", any, cases[i].status, cases[i].part);
    }
    write_text(scratch_file(s, "x.npy"), "PK");
    must_fail(s, "", any, TUTTI_DATA, "not a .npy file");
}

static void labels_are_checked(void **state)
{
    const scratch *s = *state;
    static bytes b;
    write_floats(s, "x.npy", "(2, 2)", 4);
    write_floats(s, "y.npy", "(2,)", 2);
    must_fail(s, "", any, TUTTI_DATA, "astype('int64')");
    write_labels(s, "y.npy", 3);
    must_fail(s, "", any, TUTTI_DATA, "3 labels");
    begin_npy(&b, "|i1", "(2, 1)");
    put_byte(&b, 0);
    put_byte(&b, 255);
    write_npy(s, "y.npy", &b);
    must_fail(s, "", any, TUTTI_DATA, "label 1 is -1");
    tutti_data *data = NULL;
    const tutti_data_options o = tutti_data_defaults();
    char spec[600];
    snprintf(spec, sizeof spec, "npy:%s", scratch_file(s, "x.npy"));
    assert_fails(tutti_data_open(&data, spec, &o), TUTTI_ARGUMENT, "npy:X.npy,Y.npy");
}

static void a_number_that_is_none_is_damage(void **state)
{
    const scratch *s = *state;
    static bytes b;
    int label = 0;
    float sample[16];
    tutti_reader *reader = NULL;
    write_labels(s, "y.npy", 2);
    begin_npy(&b, "<f4", "(2, 2)");
    for (int i = 0; i < 4; i++) put_float(&b, i == 2 ? NAN : 1.0f);
    write_npy(s, "x.npy", &b);
    tutti_data *data = open_shape(s, AS_STORED, any);
    assert_ok(tutti_reader_create(&reader, data));
    assert_fails(tutti_reader_fetch(reader, TUTTI_SPLIT_TRAIN, 0, 1, sample, &label), TUTTI_DATA,
                 "sample 1 has a value that is not a number");
    tutti_reader_destroy(&reader);
    tutti_data_close(&data);
}

/* What predict writes is read again. */
static void a_header_is_read_again(void **state)
{
    (void)state;
    uint8_t bytes_of[TUTTI_NPY_HEADER + 24];
    tutti_file file;
    tutti_npy npy;
    for (int64_t rows = 0; rows < INT64_C(1) << 31; rows = 9 * rows + 2) {
        const size_t size = tutti_npy_header(bytes_of, rows, 3);
        assert_int_equal(size % 64, 0);
        assert_ok(tutti_file_wrap(&file, "written", bytes_of, size + 24));
        assert_ok(tutti_npy_read(&npy, &file));
        assert_int_equal(npy.header, size);
        assert_int_equal(npy.size[0], rows);
        assert_int_equal(npy.item, 3);
        tutti_file_close(&file);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SCRATCH_TEST(every_type_gives_its_numbers),
        SCRATCH_TEST(both_layouts_give_the_same_samples),
        SCRATCH_TEST(the_net_decides_the_layout),
        SCRATCH_TEST(bytes_are_pictures),
        SCRATCH_TEST(channels_are_normalised),
        SCRATCH_TEST(samples_are_held_out),
        SCRATCH_TEST(test_and_val_may_be_files),
        SCRATCH_TEST(damage_gets_a_sentence),
        SCRATCH_TEST(labels_are_checked),
        SCRATCH_TEST(a_number_that_is_none_is_damage),
        cmocka_unit_test(a_header_is_read_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
