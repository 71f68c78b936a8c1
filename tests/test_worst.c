/* The samples with the greatest losses: in one order, whoever finds them, and as pictures. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <math.h>
#include <cmocka.h>

#include "base/memory.h"
#include "data/image.h"
#include "data/thumbnail.h"
#include "data_files.h"
#include "format/json.h"
#include "train/worst.h"

enum { ANSWERS = 200 };

/* Few different losses, so that many are equal; some are no numbers. */
static tutti_bad_answer answer(int i)
{
    const int x = (i * 7919 + 13) % 23;
    return (tutti_bad_answer){.loss = x == 22 ? NAN : (double)(x / 2), .id = i};
}

static int by_order(const void *a, const void *b)
{
    const tutti_bad_answer *x = a, *y = b;
    const double u = isnan(x->loss) ? INFINITY : x->loss, v = isnan(y->loss) ? INFINITY : y->loss;
    if (u != v) return u < v ? 1 : -1;
    return (x->id > y->id) - (x->id < y->id);
}

static void ranks_find_the_same_ones(void **state)
{
    (void)state;
    tutti_bad_answer all[ANSWERS];
    for (int i = 0; i < ANSWERS; i++) all[i] = answer(i);
    qsort(all, ANSWERS, sizeof *all, by_order);
    for (int ranks = 1; ranks <= 5; ranks++) {
        tutti_worst of[5] = {{{{0}}, 0}};
        for (int i = 0; i < ANSWERS; i++) {
            const tutti_bad_answer one = answer(i);
            tutti_worst_add(&of[i % ranks], &one);
        }
        for (int r = 1; r < ranks; r++) tutti_worst_merge(&of[0], &of[r]);
        assert_int_equal(of[0].count, TUTTI_MOST_WORST);
        for (int i = 0; i < TUTTI_MOST_WORST; i++) assert_int_equal(of[0].list[i].id, all[i].id);
    }
}

static void few_are_all(void **state)
{
    (void)state;
    tutti_worst w = {{{0}}, 0}, none = {{{0}}, 0};
    tutti_worst_add(&w, &(tutti_bad_answer){.loss = 1, .id = 4});
    tutti_worst_add(&w, &(tutti_bad_answer){.loss = 2, .id = 9});
    tutti_worst_merge(&w, &none);
    assert_int_equal(w.count, 2);
    assert_int_equal(w.list[0].id, 9);
}

static void bytes_are_written_in_base64(void **state)
{
    (void)state;
    static const char *const want[] = {"\"\"", "\"Zg==\"", "\"Zm8=\"", "\"Zm9v\"", "\"Zm9vYg==\""};
    for (size_t n = 0; n < sizeof want / sizeof *want; n++) { /* of RFC 4648 */
        tutti_string s = {0};
        tutti_json_base64(&s, "foobar", n);
        assert_string_equal(s.data, want[n]);
        tutti_string_deinit(&s);
    }
}

/* The picture of a test sample, decoded again: [height][width][channels]. */
static tutti_image picture_of(tutti_data *data, uint32_t id, int side, int channels)
{
    tutti_reader *reader = NULL;
    tutti_decoder *decoder = NULL;
    tutti_buffer file = {0};
    tutti_image image = {0};
    const tutti_fit whole = {.height = 1, .width = 1, .zoom = 0};
    size_t size;
    assert_ok(tutti_reader_create(&reader, data));
    assert_ok(tutti_reader_thumbnail(reader, TUTTI_SPLIT_TEST, id, side, &file, &size));
    assert_ok(tutti_decoder_create(&decoder));
    assert_ok(tutti_decode(decoder, &image, channels, &whole, "it", file.bytes, size));
    tutti_decoder_destroy(&decoder);
    tutti_buffer_deinit(&file);
    tutti_reader_destroy(&reader);
    return image;
}

static tutti_data *open_plainly(const char *spec, tutti_sample_shape shape)
{
    tutti_data *data = NULL;
    tutti_data_options o = tutti_data_defaults();
    o.shape = shape;
    assert_ok(tutti_data_open(&data, spec, &o));
    assert_true(tutti_data_can_be_seen(data));
    return data;
}

/* Smooth greys: what JPEG changes is little. */
static void greys_look_as_they_are(void **state)
{
    const scratch *s = *state;
    static bytes b;
    make_idx(s, 3, 2, 16, 24);
    put_idx_images(&b, 2, 16, 24);
    for (int i = 0; i < 2 * 16 * 24; i++) b.data[16 + i] = (uint8_t)(40 + 6 * (i % 24));
    write_bytes(scratch_file(s, "t10k-images-idx3-ubyte"), b.data, b.count);
    tutti_data *data = open_plainly(spec_of("idx", s, ""), (tutti_sample_shape){0});
    tutti_image image = picture_of(data, 1, 96, 1);
    assert_int_equal(image.height, 16);
    assert_int_equal(image.width, 24);
    for (int i = 0; i < 16 * 24; i++) assert_true(abs(image.pixels[i] - (40 + 6 * (i % 24))) <= 6);
    tutti_image_deinit(&image);
    image = picture_of(data, 1, 12, 1); /* means of 2 x 2 */
    assert_int_equal(image.height, 8);
    assert_int_equal(image.width, 12);
    for (int i = 0; i < 8 * 12; i++) assert_true(abs(image.pixels[i] - (43 + 12 * (i % 12))) <= 6);
    tutti_image_deinit(&image);
    assert_null(tutti_data_place(data, TUTTI_SPLIT_TEST, 1));
    tutti_data_close(&data);
}

static void photos_keep_their_colours_and_names(void **state)
{
    const scratch *s = *state;
    mkdir(scratch_file(s, "cat"), 0700);
    for (int i = 0; i < 20; i++) {
        char name[32];
        snprintf(name, sizeof name, "cat/%02d.jpg", i);
        write_jpeg(scratch_file(s, name), 64, 64, 10 * i);
    }
    tutti_data *data =
        open_plainly(spec_of("images", s, ",holdout=10"), (tutti_sample_shape){3, 64, 64});
    const char *place = tutti_data_place(data, TUTTI_SPLIT_TEST, 0);
    int number = -1;
    assert_int_equal(sscanf(place, "cat/%d.jpg", &number), 1);
    tutti_image image = picture_of(data, 0, 96, 3);
    const uint8_t *middle = image.pixels + 3 * (32 * image.width + 32);
    assert_int_equal(image.height, 64);
    assert_true(abs(middle[0] - 128) < 12 && abs(middle[1] - 128) < 12);
    assert_true(abs(middle[2] - 10 * number) < 12);
    tutti_image_deinit(&image);
    tutti_data_close(&data);
}

static void vectors_cannot_be_seen(void **state)
{
    (void)state;
    static const struct {
        tutti_sample_shape shape;
        bool seen;
    } of[] = {{{40, 1, 1}, false}, {{3, 8, 8}, true}, {{1, 8, 8}, true}, {{2, 8, 8}, false}};
    for (size_t i = 0; i < sizeof of / sizeof *of; i++) {
        tutti_data *data = NULL;
        tutti_data_options o = tutti_data_defaults();
        o.shape = of[i].shape;
        o.classes = 3;
        assert_ok(tutti_data_open(&data, "synthetic", &o));
        assert_int_equal(tutti_data_can_be_seen(data), of[i].seen);
        tutti_data_close(&data);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranks_find_the_same_ones),        cmocka_unit_test(few_are_all),
        cmocka_unit_test(bytes_are_written_in_base64),     SCRATCH_TEST(greys_look_as_they_are),
        SCRATCH_TEST(photos_keep_their_colours_and_names), cmocka_unit_test(vectors_cannot_be_seen),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
