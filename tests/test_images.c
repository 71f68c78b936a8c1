/* Folders of pictures: finding them, decoding, scaling and cropping them, and what is not one. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <math.h>
#include <cmocka.h>

#include "data_files.h"

enum { SIDE = 24, FLOATS = 3 * SIDE * SIDE };

static tutti_data_options small(void)
{
    tutti_data_options o = tutti_data_defaults();
    o.shape = (tutti_sample_shape){3, SIDE, SIDE};
    return o;
}

static void must_fail(const char *spec, tutti_status status, const char *part)
{
    tutti_data *data = NULL;
    const tutti_data_options o = small();
    assert_fails(tutti_data_open(&data, spec, &o), status, part);
    assert_null(data);
}

/* Two classes, ten files each, JPEG and PNG, and what does not belong. */
static void make_classes(const scratch *s)
{
    make_folder(s, "cat");
    make_folder(s, "dog");
    for (int i = 0; i < 10; i++) {
        char name[32];
        snprintf(name, sizeof name, "cat/c%d.%s", i, i % 2 ? "jpg" : "PNG");
        if (i % 2) write_jpeg(scratch_file(s, name), 40 + i, 30 + i, 10 * i);
        else write_png(scratch_file(s, name), 40 + i, 30 + i, 10 * i);
        snprintf(name, sizeof name, "dog/d%d.JPEG", i);
        write_jpeg(scratch_file(s, name), 30, 50, 200);
    }
    write_text(scratch_file(s, "dog/README.txt"), "not a picture");
    write_text(scratch_file(s, "dog/.hidden.jpg"), "not a picture");
    write_text(scratch_file(s, "LICENSE"), "not a folder");
}

static void a_folder_is_a_class(void **state)
{
    scratch *s = *state;
    tutti_data *data = NULL;
    const tutti_data_options o = small();
    make_classes(s);
    assert_ok(tutti_data_open(&data, spec_of("images", s, ""), &o));
    assert_int_equal(tutti_data_count(data, TUTTI_SPLIT_TRAIN), 18);
    assert_int_equal(tutti_data_count(data, TUTTI_SPLIT_TEST), 2);
    assert_int_equal(tutti_data_classes(data), 2);
    assert_string_equal(tutti_data_class_name(data, 0), "cat");
    assert_string_equal(tutti_data_class_name(data, 1), "dog");
    assert_non_null(strstr(tutti_data_description(data), "10 % of each class held out"));
    tutti_reader *reader = NULL;
    assert_ok(tutti_reader_create(&reader, data));
    for (uint32_t id = 0; id < 18; id++) {
        float sample[FLOATS];
        int label;
        assert_ok(tutti_reader_fetch(reader, TUTTI_SPLIT_TRAIN, 0, id, sample, &label));
        assert_int_equal(label, id >= 9);
        for (int i = 0; i < FLOATS; i++) assert_true(isfinite(sample[i]));
    }
    tutti_reader_destroy(&reader);
    tutti_data_close(&data);
}

static void trees_for_training_and_testing(void **state)
{
    scratch *s = *state;
    tutti_data *data = NULL;
    const tutti_data_options o = small();
    static const char *const folders[] = {"train", "train/a", "train/b", "val", "val/a", "val/b"};
    for (int i = 0; i < 6; i++) make_folder(s, folders[i]);
    write_png(scratch_file(s, "train/a/1.png"), 30, 30, 0);
    write_png(scratch_file(s, "train/b/1.png"), 30, 30, 0);
    write_png(scratch_file(s, "train/b/2.png"), 30, 30, 0);
    write_png(scratch_file(s, "val/b/3.png"), 30, 30, 0);
    assert_ok(tutti_data_open(&data, spec_of("images", s, ""), &o));
    assert_int_equal(tutti_data_count(data, TUTTI_SPLIT_TRAIN), 3);
    assert_int_equal(tutti_data_count(data, TUTTI_SPLIT_TEST), 1);
    tutti_data_close(&data);

    rmdir(scratch_file(s, "val/a")); /* a class without test samples */
    tutti_reader *reader = NULL;
    float sample[FLOATS];
    int label = -1;
    assert_ok(tutti_data_open(&data, spec_of("images", s, ""), &o));
    assert_ok(tutti_reader_create(&reader, data));
    assert_ok(tutti_reader_fetch(reader, TUTTI_SPLIT_TEST, 0, 0, sample, &label));
    assert_int_equal(label, 1);
    tutti_reader_destroy(&reader);
    tutti_data_close(&data);
    make_folder(s, "val/c");
    assert_ok(tutti_data_open(&data, spec_of("images", s, ""), &o)); /* nothing in it: no class */
    tutti_data_close(&data);
    write_png(scratch_file(s, "val/c/4.png"), 30, 30, 0);
    must_fail(spec_of("images", s, ""), TUTTI_DATA, "the class 'c'");
}

/* Keeps the last line, and counts them. */
typedef struct heard {
    int lines;
    char last[512];
} heard;

static void hear(void *user, tutti_log_level level, const char *line)
{
    heard *h = user;
    (void)level;
    h->lines++;
    snprintf(h->last, sizeof h->last, "%s", line);
}

/* What archives, desktops and mistakes leave behind is no class and no sample. */
static void folders_without_pictures_are_left_out(void **state)
{
    scratch *s = *state;
    tutti_data *data = NULL;
    heard h = {0};
    tutti_log log = {.sink = hear, .user = &h, .level = TUTTI_LOG_INFO, .rank = -1};
    tutti_data_options o = small();
    o.log = &log;
    make_classes(s);
    make_folder(s, "__MACOSX");
    make_folder(s, "__MACOSX/cat");
    make_folder(s, "bird");
    make_folder(s, ".git");
    write_text(scratch_file(s, "__MACOSX/cat/._c1.jpg"), "a resource fork");
    write_text(scratch_file(s, "__MACOSX/._cat.jpg"), "a resource fork");
    write_text(scratch_file(s, "cat/._c1.jpg"), "a resource fork");
    write_text(scratch_file(s, "cat/.DS_Store"), "of the Finder");
    write_text(scratch_file(s, "cat/Thumbs.db"), "of the Explorer");
    write_jpeg(scratch_file(s, ".git/x.jpg"), 30, 30, 0);
    assert_ok(tutti_data_open(&data, spec_of("images", s, ""), &o));
    assert_int_equal(tutti_data_classes(data), 2);
    assert_string_equal(tutti_data_class_name(data, 0), "cat");
    assert_string_equal(tutti_data_class_name(data, 1), "dog");
    assert_int_equal(tutti_data_count(data, TUTTI_SPLIT_TRAIN), 18);
    assert_int_equal(h.lines, 1);
    assert_non_null(strstr(h.last, "left out 2 folders without JPEG or PNG files: __MACOSX, bird"));
    tutti_data_close(&data);
    log.rank = 1; /* one rank speaks for all */
    assert_ok(tutti_data_open(&data, spec_of("images", s, ""), &o));
    assert_int_equal(h.lines, 1);
    tutti_data_close(&data);
}

static void holdout_does_not_go_with_tests(void **state)
{
    scratch *s = *state;
    make_classes(s);
    write_text(scratch_file(s, "train.txt"), "cat/c1.jpg\n");
    must_fail(spec_of("images", s, ",train=train.txt,test=train.txt,holdout=20"), TUTTI_ARGUMENT,
              "holdout= is for data without samples to test on");
    must_fail(spec_of("images", s, ",train=train.txt,holdout=20"), TUTTI_ARGUMENT, "test=");
    static const char *const folders[] = {"train", "train/a", "test", "test/a"};
    for (int i = 0; i < 4; i++) make_folder(s, folders[i]);
    write_png(scratch_file(s, "train/a/1.png"), 30, 30, 0);
    must_fail(spec_of("images", s, ",holdout=20"), TUTTI_ARGUMENT, "in test: leave it out");
}

static void lists_of_bare_names_with_labels(void **state)
{
    scratch *s = *state;
    tutti_data *data = NULL;
    const tutti_data_options o = small();
    make_classes(s);
    write_text(scratch_file(s, "train.txt"),
               "d1.JPEG 1\nc1.jpg 2\nd2.JPEG 1\r\n\n# no\nc3.jpg 2\n");
    write_text(scratch_file(s, "test.txt"), "c5.jpg 2");
    assert_ok(tutti_data_open(&data, spec_of("images", s, ",train=train.txt,test=test.txt"), &o));
    assert_int_equal(tutti_data_count(data, TUTTI_SPLIT_TRAIN), 4);
    assert_int_equal(tutti_data_count(data, TUTTI_SPLIT_TEST), 1);
    assert_int_equal(tutti_data_classes(data), 2);
    assert_string_equal(tutti_data_class_name(data, 0), "dog");
    assert_string_equal(tutti_data_class_name(data, 1), "cat");
    tutti_data_close(&data);
}

static void lists_of_paths_by_folder(void **state)
{
    scratch *s = *state;
    tutti_data *data = NULL;
    tutti_reader *reader = NULL;
    float sample[FLOATS];
    int label;
    const tutti_data_options o = small();
    make_classes(s);
    make_folder(s, "ant"); /* refers to nothing: not a class */
    write_text(scratch_file(s, "train.txt"), "dog/d1.JPEG\ncat/c1.jpg\n");
    assert_ok(tutti_data_open(&data, spec_of("images", s, ",train=train.txt"), &o));
    assert_int_equal(tutti_data_classes(data), 2);
    assert_string_equal(tutti_data_class_name(data, 1), "dog");
    assert_ok(tutti_reader_create(&reader, data));
    assert_ok(tutti_reader_fetch(reader, TUTTI_SPLIT_TRAIN, 0, 0, sample, &label));
    assert_int_equal(label, 1);
    tutti_reader_destroy(&reader);
    tutti_data_close(&data);
}

static void lists_and_trees_for_validation(void **state)
{
    scratch *s = *state;
    tutti_data *data = NULL;
    tutti_reader *reader = NULL;
    float sample[FLOATS];
    int label;
    const tutti_data_options o = small();
    make_classes(s);
    write_text(scratch_file(s, "train.txt"), "c1.jpg\nc3.jpg\nd1.JPEG\n");
    write_text(scratch_file(s, "dev.txt"), "d2.JPEG\nc5.jpg\n");
    assert_ok(tutti_data_open(&data, spec_of("images", s, ",train=train.txt,val=dev.txt"), &o));
    assert_int_equal(tutti_data_count(data, TUTTI_SPLIT_TRAIN), 3);
    assert_int_equal(tutti_data_count(data, TUTTI_SPLIT_TEST), 0);
    assert_int_equal(tutti_data_count(data, TUTTI_SPLIT_VAL), 2);
    assert_ok(tutti_reader_create(&reader, data));
    assert_ok(tutti_reader_fetch(reader, TUTTI_SPLIT_VAL, 0, 0, sample, &label));
    assert_int_equal(label, 1);
    tutti_reader_destroy(&reader);
    tutti_data_close(&data);
    write_text(scratch_file(s, "dev.txt"), "d2.JPEG 1\n");
    must_fail(spec_of("images", s, ",train=train.txt,val=dev.txt"), TUTTI_DATA, "only one of");
    must_fail(spec_of("images", s, ",train=train.txt,val=no.txt"), TUTTI_DATA, "no.txt");
    must_fail(spec_of("images", s, ",val=dev.txt"), TUTTI_ARGUMENT, "neither a percentage");

    static const char *const folders[] = {"train", "train/a", "test", "test/a", "val", "val/a"};
    for (int i = 0; i < 6; i++) make_folder(s, folders[i]);
    for (int i = 0; i < 4; i++) {
        static const char *const names[] = {"train/a/1.png", "train/a/2.png", "test/a/1.png",
                                            "val/a/1.png"};
        write_png(scratch_file(s, names[i]), 30, 30, 0);
    }
    write_png(scratch_file(s, "test/a/2.png"), 30, 30, 0);
    static const struct {
        const char *keys;
        int train, test, val;
    } cases[] = {
        {"", 2, 1, 0}, {",val=val", 2, 2, 1}, {",val=test", 2, 1, 2}, {",val=50", 1, 1, 1}};
    for (int i = 0; i < 4; i++) {
        assert_ok(tutti_data_open(&data, spec_of("images", s, cases[i].keys), &o));
        assert_int_equal(tutti_data_count(data, TUTTI_SPLIT_TRAIN), cases[i].train);
        assert_int_equal(tutti_data_count(data, TUTTI_SPLIT_TEST), cases[i].test);
        assert_int_equal(tutti_data_count(data, TUTTI_SPLIT_VAL), cases[i].val);
        tutti_data_close(&data);
    }
}

static void lists_that_do_not_fit(void **state)
{
    scratch *s = *state;
    make_classes(s);
    write_text(scratch_file(s, "dog/c1.jpg"), "in both folders");
    static const struct {
        const char *text, *part;
    } lists[] = {
        {"nowhere.jpg 1\n", "train.txt:1: 'nowhere.jpg' is in no folder"},
        {"c3.jpg 1\nc1.jpg 1\n", "train.txt:2: 'c1.jpg' is in several folders"},
        {"c3.jpg 1\nc5.jpg\n", "train.txt:2: some lines have labels"},
        {"c3.jpg one\n", "train.txt:1: 'one' is not a label"},
        {"c3.jpg -1\n", "train.txt:1: '-1' is not a label"},
        {"c3.jpg 99999999999999999999\n", "is not a label"},
        {"cat/missing.jpg 1\n", "'cat/missing.jpg' is not in"},
        {"# nothing\n\n", "lists no files"},
    };
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        write_text(scratch_file(s, "train.txt"), lists[i].text);
        must_fail(spec_of("images", s, ",train=train.txt"), TUTTI_DATA, lists[i].part);
    }
    must_fail(spec_of("images", s, ",train=missing.txt"), TUTTI_DATA, "missing.txt");
    must_fail(spec_of("images", s, ",test=train.txt"), TUTTI_DATA, "train.txt");
    must_fail("images:/no/such/folder", TUTTI_DATA, "/no/such/folder");
}

static void a_folder_without_pictures(void **state)
{
    scratch *s = *state;
    must_fail(spec_of("images", s, ""), TUTTI_DATA, "no folder with JPEG or PNG");
    make_folder(s, "a");
    write_text(scratch_file(s, "a/b.txt"), "text");
    must_fail(spec_of("images", s, ""), TUTTI_DATA, "no folder with JPEG or PNG");
}

/* ------------------------------------------------------------------------------- damage */

static void damaged_pictures_are_named(void **state)
{
    scratch *s = *state;
    static uint8_t garbage[2000];
    uint8_t *jpeg = NULL;
    static bytes png;
    const size_t size = make_jpeg(&jpeg, 60, 60, 7);
    for (size_t i = 0; i < sizeof garbage; i++) garbage[i] = (uint8_t)(i * i);
    make_folder(s, "a");
    write_png(scratch_file(s, "a/0.png"), 60, 60, 7);
    FILE *f = fopen(scratch_file(s, "a/0.png"), "rb");
    png.count = fread(png.data, 1, sizeof png.data, f);
    fclose(f);
    write_bytes(scratch_file(s, "a/1.png"), png.data, png.count / 2);
    png.data[16] = 0x7f; /* a width of two billion; the checksum is wrong as well */
    write_bytes(scratch_file(s, "a/2.png"), png.data, png.count);
    write_bytes(scratch_file(s, "a/3.jpg"), garbage, sizeof garbage);
    write_bytes(scratch_file(s, "a/4.jpg"), garbage, 0);
    write_bytes(scratch_file(s, "a/5.jpg"), jpeg, size / 2);
    write_bytes(scratch_file(s, "a/6.jpg"), jpeg, 30);
    write_text(scratch_file(s, "a/7.jpg"), "\xff\xd8\xff");
    write_jpeg(scratch_file(s, "a/8.jpg"), 60, 60, 200);
    tjFree(jpeg);

    tutti_data *data = NULL;
    tutti_reader *reader = NULL;
    float sample[FLOATS], want[FLOATS];
    int label;
    tutti_data_options o = small();
    assert_ok(tutti_data_open(&data, spec_of("images", s, ",holdout=0"), &o));
    assert_ok(tutti_reader_create(&reader, data));
    for (uint32_t id = 1; id < 8; id++) {
        char name[16];
        snprintf(name, sizeof name, "a/%u.", id);
        assert_fails(tutti_reader_fetch(reader, TUTTI_SPLIT_TRAIN, 0, id, sample, &label),
                     TUTTI_DATA, name);
        assert_non_null(strstr(tutti_message(), "--skip-bad"));
    }
    unlink(scratch_file(s, "a/7.jpg"));
    assert_fails(tutti_reader_fetch(reader, TUTTI_SPLIT_TRAIN, 0, 7, sample, &label), TUTTI_DATA,
                 "No such file");
    tutti_reader_destroy(&reader);
    tutti_data_close(&data);

    o.skip_bad = true;
    write_text(scratch_file(s, "a/7.jpg"), "x");
    assert_ok(tutti_data_open(&data, spec_of("images", s, ",holdout=0"), &o));
    assert_ok(tutti_reader_create(&reader, data));
    assert_ok(tutti_reader_fetch(reader, TUTTI_SPLIT_TRAIN, 4, 8, want, &label));
    assert_ok(tutti_reader_fetch(reader, TUTTI_SPLIT_TRAIN, 4, 1, sample, &label));
    assert_memory_equal(sample, want, sizeof want);
    assert_int_equal(tutti_data_bad_count(data), 7);
    tutti_reader_destroy(&reader);
    tutti_data_close(&data);
}

/* ------------------------------------------------------------------------------ scaling */

static void fetch_file(const scratch *s, const char *keys, const char *name, float *sample)
{
    tutti_data *data = NULL;
    tutti_reader *reader = NULL;
    const tutti_data_options o = small();
    char spec[256];
    snprintf(spec, sizeof spec, ",mean=0/0/0,std=1/1/1%s", keys);
    assert_ok(tutti_data_open(&data, spec_of("images", s, spec), &o));
    assert_ok(tutti_reader_create(&reader, data));
    assert_ok(tutti_reader_fetch_file(reader, scratch_file(s, name), sample));
    tutti_reader_destroy(&reader);
    tutti_data_close(&data);
}

/* The gradient's value at the centre of an output pixel is known for every scale. */
static void check_gradient(const scratch *s, const char *name, int height, int width,
                           double tolerance)
{
    static float sample[FLOATS];
    fetch_file(s, ",resize=28", name, sample);
    const double scale = 28.0 / (height < width ? height : width);
    const double top = floor((floor(height * scale + 0.5) - SIDE) / 2);
    const double left = floor((floor(width * scale + 0.5) - SIDE) / 2);
    for (int y = 0; y < SIDE; y++)
        for (int x = 0; x < SIDE; x++) {
            const double red = ((x + left + 0.5) / scale - 0.5) / width;
            const double green = ((y + top + 0.5) / scale - 0.5) / height;
            const float *p = sample + 3 * (y * SIDE + x);
            if (fabs(p[0] - red) > tolerance || fabs(p[1] - green) > tolerance ||
                fabs(p[2] - 100 / 255.0) > tolerance)
                fail_msg("%s at (%d,%d): %g %g %g, want %g %g", name, y, x, p[0], p[1], p[2], red,
                         green);
        }
}

static void scaling_keeps_gradients(void **state)
{
    scratch *s = *state;
    static const int sizes[][2] = {{28, 28}, {24, 24}, {20, 31}, {100, 60}, {57, 230}, {300, 301}};
    make_folder(s, "a");
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        const int h = sizes[i][0], w = sizes[i][1];
        write_png(scratch_file(s, "a/x.png"), h, w, 100);
        check_gradient(s, "a/x.png", h, w, 0.008);
        write_jpeg(scratch_file(s, "a/x.png"), h, w, 100); /* told apart by content */
        check_gradient(s, "a/x.png", h, w, 0.02);
    }
}

/* A checkerboard of single pixels, made smaller, is grey: no pixel is skipped. */
static void shrinking_averages(void **state)
{
    scratch *s = *state;
    enum { LARGE = 240 };
    static uint8_t board[LARGE * LARGE];
    static float sample[FLOATS];
    for (int i = 0; i < LARGE * LARGE; i++) board[i] = (i / LARGE + i) % 2 ? 255 : 0;
    png_image png = {
        .version = PNG_IMAGE_VERSION, .width = LARGE, .height = LARGE, .format = PNG_FORMAT_GRAY};
    make_folder(s, "a");
    assert_true(png_image_write_to_file(&png, scratch_file(s, "a/x.png"), 0, board, 0, NULL));
    fetch_file(s, "", "a/x.png", sample);
    for (int i = 0; i < FLOATS; i++) assert_true(fabs(sample[i] - 0.5) < 0.03);
}

/* Greys of 16 bits above 255 are white, as in PIL: said once for all pictures. */
static void white_greys_are_mentioned(void **state)
{
    scratch *s = *state;
    tutti_data *data = NULL;
    tutti_reader *reader = NULL;
    heard h = {0};
    const tutti_log log = {.sink = hear, .user = &h, .level = TUTTI_LOG_INFO, .rank = -1};
    tutti_data_options o = small();
    static uint16_t linear[32 * 32];
    static float sample[FLOATS];
    int label;
    o.log = &log;
    for (int i = 0; i < 32 * 32; i++) linear[i] = 256;
    png_image png = {
        .version = PNG_IMAGE_VERSION, .width = 32, .height = 32, .format = PNG_FORMAT_LINEAR_Y};
    make_folder(s, "a");
    for (int i = 0; i < 2; i++)
        assert_true(png_image_write_to_file(&png, scratch_file(s, i ? "a/1.png" : "a/0.png"), 0,
                                            linear, 0, NULL));
    assert_ok(tutti_data_open(&data, spec_of("images", s, ",holdout=0,mean=0/0/0,std=1/1/1"), &o));
    assert_ok(tutti_reader_create(&reader, data));
    for (uint32_t id = 0; id < 2; id++) {
        assert_ok(tutti_reader_fetch(reader, TUTTI_SPLIT_TRAIN, 0, id, sample, &label));
        assert_true(fabs((double)sample[FLOATS / 2] - 1) < 1e-5);
    }
    assert_int_equal(h.lines, 1);
    assert_non_null(strstr(h.last, "a/0.png' has greys of 16 bits"));
    tutti_reader_destroy(&reader);
    tutti_data_close(&data);
}

static void jitter_is_a_function_of_the_key(void **state)
{
    scratch *s = *state;
    tutti_data *data = NULL;
    tutti_reader *reader = NULL;
    static float first[FLOATS], again[FLOATS];
    int label, different = 0;
    const tutti_data_options o = small();
    make_classes(s);
    assert_ok(tutti_data_open(&data, spec_of("images", s, ",jitter=1"), &o));
    assert_ok(tutti_reader_create(&reader, data));
    for (uint32_t epoch = 0; epoch < 10; epoch++) {
        assert_ok(tutti_reader_fetch(reader, TUTTI_SPLIT_TRAIN, epoch, 3, again, &label));
        different += memcmp(first, again, sizeof first) != 0;
        memcpy(first, again, sizeof first);
        assert_ok(tutti_reader_fetch(reader, TUTTI_SPLIT_TRAIN, 0, 8, again, &label));
        assert_ok(tutti_reader_fetch(reader, TUTTI_SPLIT_TRAIN, epoch, 3, again, &label));
        assert_memory_equal(first, again, sizeof first);
    }
    assert_int_equal(different, 10);
    for (uint32_t epoch = 0; epoch < 3; epoch++) { /* testing varies nothing */
        assert_ok(tutti_reader_fetch(reader, TUTTI_SPLIT_TEST, epoch, 0, again, &label));
        if (epoch) assert_memory_equal(first, again, sizeof first);
        memcpy(first, again, sizeof first);
    }
    tutti_reader_destroy(&reader);
    tutti_data_close(&data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SCRATCH_TEST(a_folder_is_a_class),
        SCRATCH_TEST(trees_for_training_and_testing),
        SCRATCH_TEST(folders_without_pictures_are_left_out),
        SCRATCH_TEST(holdout_does_not_go_with_tests),
        SCRATCH_TEST(lists_of_bare_names_with_labels),
        SCRATCH_TEST(lists_of_paths_by_folder),
        SCRATCH_TEST(lists_and_trees_for_validation),
        SCRATCH_TEST(lists_that_do_not_fit),
        SCRATCH_TEST(a_folder_without_pictures),
        SCRATCH_TEST(damaged_pictures_are_named),
        SCRATCH_TEST(scaling_keeps_gradients),
        SCRATCH_TEST(shrinking_averages),
        SCRATCH_TEST(jitter_is_a_function_of_the_key),
        SCRATCH_TEST(white_greys_are_mentioned),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
