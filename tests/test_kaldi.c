/* Kaldi's archives: every form of matrix, windows of frames, labels, and damage. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <math.h>
#include <cmocka.h>

#include "data/ark.h"
#include "data_files.h"

enum { COLUMNS = 3 };

static double value(int utterance, int row, int column)
{
    return utterance + row / 8.0 - column / 4.0;
}

static void put_sizes(bytes *b, int rows)
{
    put_byte(b, 4);
    put_int(b, rows);
    put_byte(b, 4);
    put_int(b, COLUMNS);
}

static void put_fm(bytes *b, int u, int rows)
{
    put(b, "\0BFM ", 5);
    put_sizes(b, rows);
    for (int i = 0; i < rows * COLUMNS; i++)
        put_float(b, (float)value(u, i / COLUMNS, i % COLUMNS));
}

static void put_dm(bytes *b, int u, int rows)
{
    put(b, "\0BDM ", 5);
    put_sizes(b, rows);
    for (int i = 0; i < rows * COLUMNS; i++) {
        const double v = value(u, i / COLUMNS, i % COLUMNS);
        put(b, &v, sizeof v);
    }
}

static void put_global(bytes *b, float low, float range, int rows)
{
    put_float(b, low);
    put_float(b, range);
    put_int(b, rows);
    put_int(b, COLUMNS);
}

static void put_cm2(bytes *b, int u, int rows)
{
    put(b, "\0BCM2 ", 6);
    put_global(b, (float)u - 1, 65535 / 1024.0f, rows); /* steps of 1/1024 */
    for (int i = 0; i < rows * COLUMNS; i++) {
        const double v = value(u, i / COLUMNS, i % COLUMNS);
        const uint16_t n = (uint16_t)lround((v - (u - 1)) * 1024);
        put(b, &n, sizeof n);
    }
}

static void put_cm3(bytes *b, int u, int rows)
{
    put(b, "\0BCM3 ", 6);
    put_global(b, (float)u - 1, 255 / 8.0f, rows); /* steps of 1/8 */
    for (int i = 0; i < rows * COLUMNS; i++)
        put_byte(b, (int)lround((value(u, i / COLUMNS, i % COLUMNS) - (u - 1)) * 8));
}

/* Each column from p0 = -1 to p100 with the quartiles on the straight line in between: 64, 192 and
 * 255 steps of 1/8. */
static void put_cm(bytes *b, int u, int rows)
{
    put(b, "\0BCM ", 5);
    put_global(b, (float)u - 1, 65535 / 8.0f, rows);
    for (int c = 0; c < COLUMNS; c++) {
        const uint16_t percentile[4] = {0, 64, 192, 255};
        put(b, percentile, sizeof percentile);
    }
    for (int c = 0; c < COLUMNS; c++)
        for (int r = 0; r < rows; r++) put_byte(b, (int)lround((value(u, r, c) - (u - 1)) * 8));
}

typedef void put_fn(bytes *b, int u, int rows);
static put_fn *const forms[] = {put_fm, put_dm, put_cm, put_cm2, put_cm3};

/* Utterance u is "u<u>" of 4 + u rows, its form taken in turn. */
static void put_archive(bytes *b, int utterances)
{
    b->count = 0;
    for (int u = 0; u < utterances; u++) {
        char key[16];
        snprintf(key, sizeof key, "u%d ", u);
        put_text(b, key);
        forms[u % 5](b, u, 4 + u);
    }
}

static const char *archive_spec(const scratch *s, const char *keys)
{
    static char spec[1024];
    snprintf(spec, sizeof spec, "kaldi:%s/f.ark,%s/l.txt%s", s->path, s->path, keys);
    return spec;
}

static void write_archive(const scratch *s, int utterances)
{
    static bytes b;
    put_archive(&b, utterances);
    write_bytes(scratch_file(s, "f.ark"), b.data, b.count);
}

static tutti_data *open_data(const char *spec, bool skip_bad)
{
    tutti_data *data = NULL;
    tutti_data_options o = tutti_data_defaults();
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

/* A sample as it is stored, back from its normalisation. */
static const double *fetch(tutti_data *data, tutti_split split, uint32_t epoch, uint32_t id,
                           int *label)
{
    static double raw[4096];
    float sample[4096];
    tutti_reader *reader = NULL;
    const tutti_normalisation n = tutti_data_normalise(data);
    assert_ok(tutti_reader_create(&reader, data));
    assert_ok(tutti_reader_fetch(reader, split, epoch, id, sample, label));
    tutti_reader_destroy(&reader);
    assert_int_equal(n.count, COLUMNS);
    for (int i = 0; i < tutti_data_shape(data).channels; i++)
        raw[i] = (double)sample[i] * n.std[i % COLUMNS] + n.mean[i % COLUMNS];
    return raw;
}

static void check_frames(const double *sample, int u, int first, int window)
{
    for (int i = 0; i < window * COLUMNS; i++) {
        int row = first + i / COLUMNS;
        if (row < 0) row = 0;
        if (row > 3 + u) row = 3 + u;
        const double want = value(u, row, i % COLUMNS);
        if (fabs(sample[i] - want) > 1e-4)
            fail_msg("utterance %d, first %d, number %d: %g, want %g", u, first, i, sample[i],
                     want);
    }
}

static void every_form_gives_any_rows(void **state)
{
    (void)state;
    for (int f = 0; f < 5; f++)
        for (int first = 0; first < 9; first++)
            for (int count = 1; first + count <= 9; count++) {
                static bytes b;
                tutti_file file;
                tutti_ark_matrix m;
                tutti_buffer scratch_rows = {0};
                uint64_t end;
                float out[9 * COLUMNS];
                b.count = 0;
                forms[f](&b, 5, 9);
                assert_ok(tutti_file_wrap(&file, "memory", b.data, b.count));
                assert_ok(tutti_ark_head(&m, &file, 0, &end));
                assert_int_equal(end, b.count);
                assert_ok(tutti_ark_rows(&m, first, count, &scratch_rows, out));
                for (int i = 0; i < count * COLUMNS; i++)
                    if (fabs(out[i] - value(5, first + i / COLUMNS, i % COLUMNS)) > 1e-4)
                        fail_msg("form %d row %d: %g", f, first + i / COLUMNS, out[i]);
                tutti_buffer_deinit(&scratch_rows);
                tutti_file_close(&file);
            }
}

static void frames_between_their_neighbours(void **state)
{
    scratch *s = *state;
    write_archive(s, 6);
    write_text(scratch_file(s, "l.txt"), "u5 1\nu4 0\nu3 1\nu2 2\nu1 1\nu0 0\n");
    tutti_data *data = open_data(archive_spec(s, ",context=2,holdout=0"), false);
    assert_int_equal(tutti_data_count(data, TUTTI_SPLIT_TRAIN), 4 + 5 + 6 + 7 + 8 + 9);
    assert_int_equal(tutti_data_count(data, TUTTI_SPLIT_TEST), 0);
    assert_int_equal(tutti_data_shape(data).channels, 15);
    static const int labels[] = {0, 1, 2, 1, 0, 1};
    uint32_t id = 0;
    for (int u = 0; u < 6; u++)
        for (int frame = 0; frame < 4 + u; frame++, id++) {
            int label;
            check_frames(fetch(data, TUTTI_SPLIT_TRAIN, 0, id, &label), u, frame - 2, 5);
            assert_int_equal(label, labels[u]);
        }
    tutti_data_close(&data);
}

static void a_label_for_each_frame(void **state)
{
    scratch *s = *state;
    write_archive(s, 2);
    write_text(scratch_file(s, "l.txt"), "u0 3 1 4 1\nu1 5 9 2 6 5\n");
    tutti_data *data = open_data(archive_spec(s, ",holdout=0"), false);
    assert_int_equal(tutti_data_shape(data).channels, 11 * COLUMNS);
    assert_int_equal(tutti_data_classes(data), 10);
    static const int want[] = {3, 1, 4, 1, 5, 9, 2, 6, 5};
    for (uint32_t id = 0; id < 9; id++) {
        int label;
        const int u = id >= 4, frame = (int)id - 4 * u;
        check_frames(fetch(data, TUTTI_SPLIT_TRAIN, 0, id, &label), u, frame - 5, 11);
        assert_int_equal(label, want[id]);
    }
    tutti_data_close(&data);
    write_text(scratch_file(s, "l.txt"), "u0 3 1 4 1\nu1 5 9 2 6\n");
    must_fail(archive_spec(s, ""), TUTTI_DATA, "'u1' has 5 frames, but 4 labels");
    data = open_data(archive_spec(s, ",holdout=0"), true);
    assert_int_equal(tutti_data_count(data, TUTTI_SPLIT_TRAIN), 4);
    tutti_data_close(&data);
}

static void stretches_of_utterances(void **state)
{
    scratch *s = *state;
    int label, starts[6] = {0};
    write_archive(s, 6);
    write_text(scratch_file(s, "l.txt"), "u0 0\nu1 1\nu2 0\nu3 1\nu4 0\nu5 1\n");
    tutti_data *data = open_data(archive_spec(s, ",frames=5,holdout=20"), false);
    assert_int_equal(tutti_data_count(data, TUTTI_SPLIT_TRAIN), 5);
    assert_int_equal(tutti_data_count(data, TUTTI_SPLIT_TEST), 1);
    check_frames(fetch(data, TUTTI_SPLIT_TEST, 0, 0, &label), 4, 1, 5);   /* the middle of 8 */
    check_frames(fetch(data, TUTTI_SPLIT_TRAIN, 0, 0, &label), 0, -1, 5); /* only 4 frames */
    for (uint32_t epoch = 0; epoch < 200; epoch++) {
        const double *sample = fetch(data, TUTTI_SPLIT_TRAIN, epoch, 4, &label);
        const int first = (int)lround((sample[0] - 5) * 8);
        assert_in_range(first, 0, 4);
        check_frames(sample, 5, first, 5);
        starts[first]++;
    }
    for (int i = 0; i < 5; i++) assert_in_range(starts[i], 15, 70); /* 40 expected */
    tutti_data_close(&data);
}

static void the_net_decides_the_window(void **state)
{
    scratch *s = *state;
    tutti_data *data = NULL;
    tutti_data_options o = tutti_data_defaults();
    write_archive(s, 3);
    write_text(scratch_file(s, "l.txt"), "u0 0\nu1 1\nu2 0\n");
    o.shape = (tutti_sample_shape){1, 5, COLUMNS}; /* as a picture of frames */
    assert_ok(tutti_data_open(&data, archive_spec(s, ""), &o));
    assert_int_equal(tutti_data_shape(data).height, 5);
    assert_int_equal(tutti_data_stride(data), 16);
    tutti_data_close(&data);
    o.shape = (tutti_sample_shape){16, 1, 1};
    assert_fails(tutti_data_open(&data, archive_spec(s, ""), &o), TUTTI_SHAPE, "takes 16 numbers");
}

/* Frames as channels and pixels of an image: a vector's numbers, in the order the contract says. */
static void windows_may_be_images(void **state)
{
    enum { NUMBERS = 34 * COLUMNS };
    static const tutti_sample_shape shapes[] = {{1, 34, 3}, {3, 34, 1}, {6, 1, 17}, {17, 2, 3},
                                                {17, 6, 1}, {34, 3, 1}, {51, 1, 2}, {102, 1, 1}};
    scratch *s = *state;
    static float got[1 << 10], want[1 << 10];
    write_archive(s, 50);
    write_text(scratch_file(s, "l.txt"), "u1 0\nu34 1\nu45 0\nu49 1\n");
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        tutti_data *data[2] = {NULL, NULL};
        tutti_reader *reader[2] = {NULL, NULL};
        for (int j = 0; j < 2; j++) {
            tutti_data_options o = tutti_data_defaults();
            o.shape = j ? shapes[i] : (tutti_sample_shape){NUMBERS, 1, 1};
            assert_ok(tutti_data_open(&data[j], archive_spec(s, ",holdout=0"), &o));
            assert_ok(tutti_reader_create(&reader[j], data[j]));
        }
        assert_int_equal(tutti_data_stride(data[1]), floats_of(shapes[i]));
        for (uint32_t id = 0; id < 4; id++) {
            int label;
            float numbers[112];
            assert_ok(tutti_reader_fetch(reader[0], TUTTI_SPLIT_TRAIN, i, id, numbers, &label));
            lay_out(want, numbers, shapes[i]);
            memset(got, 0xff, sizeof got);
            assert_ok(tutti_reader_fetch(reader[1], TUTTI_SPLIT_TRAIN, i, id, got, &label));
            assert_memory_equal(got, want, floats_of(shapes[i]) * sizeof *got);
        }
        for (int j = 0; j < 2; j++) {
            tutti_reader_destroy(&reader[j]);
            tutti_data_close(&data[j]);
        }
    }
}

static void scripts_point_into_archives(void **state)
{
    scratch *s = *state;
    write_archive(s, 2);
    write_text(scratch_file(s, "l.txt"), "a 1\nb 0\n");
    /* u0 is 3 bytes of key and 5+10+48 of matrix, so is its key. */
    write_text(scratch_file(s, "f.scp"), "b f.ark:69\na f.ark:3\n");
    char spec[1024];
    snprintf(spec, sizeof spec, "kaldi:%s/f.scp,%s/l.txt,context=0,holdout=0", s->path, s->path);
    tutti_data *data = open_data(spec, false);
    int label;
    check_frames(fetch(data, TUTTI_SPLIT_TRAIN, 0, 0, &label), 1, 0, 1);
    assert_int_equal(label, 0);
    check_frames(fetch(data, TUTTI_SPLIT_TRAIN, 0, 5, &label), 0, 0, 1);
    tutti_data_close(&data);
    write_text(scratch_file(s, "f.scp"), "b f.ark:70\n");
    must_fail(spec, TUTTI_DATA, "f.scp:1: ");
    write_text(scratch_file(s, "f.scp"), "b copy-feats f.ark - |\n");
    must_fail(spec, TUTTI_DATA, "is not FILE:OFFSET");
}

static void folders_and_names(void **state)
{
    scratch *s = *state;
    static bytes b;
    put_archive(&b, 4);
    write_bytes(scratch_file(s, "feats_train.ark"), b.data, b.count);
    write_bytes(scratch_file(s, "feats_test.ark"), b.data, b.count);
    write_text(scratch_file(s, "words.txt"), "yes 1\nno 0\nmaybe 2\n");
    write_text(scratch_file(s, "utt2label_train.txt"), "u0 yes\nu1 no\nu2 1\n");
    write_text(scratch_file(s, "utt2label_test.txt"), "u3 no\n");
    tutti_data *data = open_data(spec_of("kaldi", s, ""), false);
    assert_int_equal(tutti_data_count(data, TUTTI_SPLIT_TRAIN), 3);
    assert_int_equal(tutti_data_count(data, TUTTI_SPLIT_TEST), 1);
    assert_int_equal(tutti_data_classes(data), 3);
    assert_string_equal(tutti_data_class_name(data, 1), "yes");
    int label;
    fetch(data, TUTTI_SPLIT_TRAIN, 0, 0, &label);
    assert_int_equal(label, 1);
    tutti_data_close(&data);
    write_text(scratch_file(s, "utt2label_train.txt"), "u0 perhaps\n");
    must_fail(spec_of("kaldi", s, ""), TUTTI_DATA, "utt2label_train.txt:1: 'perhaps' is not");
}

static void damage_has_a_sentence(void **state)
{
    scratch *s = *state;
    static bytes b;
    const char *labels = "u0 0\nu1 1\nu2 0\n";
    must_fail("kaldi:/no/such.ark", TUTTI_ARGUMENT, "kaldi:FEATS,LABELS");
    must_fail(archive_spec(s, ""), TUTTI_DATA, "l.txt");
    write_text(scratch_file(s, "l.txt"), labels);
    must_fail(archive_spec(s, ""), TUTTI_DATA, "f.ark");

    put_archive(&b, 3);
    const size_t whole = b.count;
    write_bytes(scratch_file(s, "f.ark"), b.data, whole - 1);
    must_fail(archive_spec(s, ""), TUTTI_DATA, "is cut off in the 6 x 3 matrix");
    tutti_data *data = open_data(archive_spec(s, ",holdout=0"), true);
    assert_int_equal(tutti_data_count(data, TUTTI_SPLIT_TRAIN), 2);
    tutti_data_close(&data);
    for (size_t cut = 0; cut < whole; cut++) { /* wherever it ends: a sentence or fewer samples */
        write_bytes(scratch_file(s, "f.ark"), b.data, cut);
        const tutti_data_options o = tutti_data_defaults();
        if (tutti_data_open(&data, archive_spec(s, ",holdout=0"), &o))
            assert_true(tutti_message()[0] != 0);
        else assert_in_range(tutti_data_count(data, TUTTI_SPLIT_TRAIN), 1, 2);
        tutti_data_close(&data);
    }
    b.data[7] = 'X'; /* u0's FM */
    write_bytes(scratch_file(s, "f.ark"), b.data, whole);
    must_fail(archive_spec(s, ""), TUTTI_DATA, "byte 3: not a matrix of form FM");
    put_archive(&b, 3);
    memset(b.data + 9, 0x7f, 4);
    write_bytes(scratch_file(s, "f.ark"), b.data, whole);
    must_fail(archive_spec(s, ""), TUTTI_DATA, "byte 3: a matrix of 2139062143 x 3");
    write_text(scratch_file(s, "f.ark"), "u0  [\n 1 2 3\n 4 5 6 ]\n");
    must_fail(archive_spec(s, ""), TUTTI_DATA, "not a binary matrix");
    put_archive(&b, 3);
    write_bytes(scratch_file(s, "f.ark"), b.data, whole);
    write_text(scratch_file(s, "l.txt"), "x 0\n");
    must_fail(archive_spec(s, ""), TUTTI_DATA, "no utterance of");
    write_text(scratch_file(s, "l.txt"), "u0 0\nu0 0\n");
    must_fail(archive_spec(s, ""), TUTTI_DATA, "'u0' twice");
    write_text(scratch_file(s, "l.txt"), "u0\n");
    must_fail(archive_spec(s, ""), TUTTI_DATA, "l.txt:1: 'u0' has no label");
}

static void numbers_that_are_none(void **state)
{
    scratch *s = *state;
    static bytes b;
    tutti_reader *reader = NULL;
    float sample[64];
    int label;
    put_archive(&b, 2);
    const float nan_value = NAN;
    memcpy(b.data + 3 + 5 + 10 + 4 * COLUMNS, &nan_value, 4); /* u0's second frame */
    write_bytes(scratch_file(s, "f.ark"), b.data, b.count);
    write_text(scratch_file(s, "l.txt"), "u0 0\nu1 1\n");
    tutti_data *data = open_data(archive_spec(s, ",context=0,holdout=0"), false);
    assert_ok(tutti_reader_create(&reader, data));
    assert_ok(tutti_reader_fetch(reader, TUTTI_SPLIT_TRAIN, 0, 0, sample, &label));
    assert_fails(tutti_reader_fetch(reader, TUTTI_SPLIT_TRAIN, 0, 1, sample, &label), TUTTI_DATA,
                 "frame 1");
    tutti_reader_destroy(&reader);
    tutti_data_close(&data);
}

/* The mean is that of actual numbers: u0 and u1 have 4 and 5 frames, and one value is NaN. */
static void what_is_no_number_does_not_count(void **state)
{
    scratch *s = *state;
    static bytes b;
    double mean = 0;
    const float nan_value = NAN;
    put_archive(&b, 2);
    memcpy(b.data + 3 + 5 + 10 + 4 * COLUMNS, &nan_value, 4); /* u0's second frame */
    write_bytes(scratch_file(s, "f.ark"), b.data, b.count);
    write_text(scratch_file(s, "l.txt"), "u0 0\nu1 1\n");
    for (int i = 0; i < 9; i++) mean += i == 1 ? 0 : value(i > 3, i > 3 ? i - 4 : i, 0) / 8;
    tutti_data *data = open_data(archive_spec(s, ",context=0,holdout=0"), true);
    assert_true(fabs(tutti_data_normalise(data).mean[0] - mean) < 1e-6);
    tutti_data_close(&data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SCRATCH_TEST(every_form_gives_any_rows),  SCRATCH_TEST(frames_between_their_neighbours),
        SCRATCH_TEST(a_label_for_each_frame),     SCRATCH_TEST(stretches_of_utterances),
        SCRATCH_TEST(the_net_decides_the_window), SCRATCH_TEST(scripts_point_into_archives),
        SCRATCH_TEST(folders_and_names),

        SCRATCH_TEST(damage_has_a_sentence),      SCRATCH_TEST(what_is_no_number_does_not_count),
        SCRATCH_TEST(numbers_that_are_none),      SCRATCH_TEST(windows_may_be_images),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
