/* Pictures with a mask each, and targets from arrays: whatever is cut and mirrored, picture and
 * mask stay together. */
#define _GNU_SOURCE
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/random.h"
#include "data/loader.h"
#include "data/mask_png.h"
#include "data_files.h"

enum { SIDE = 20, CLASSES = 5, PICTURES = 10 };

static tutti_data_options with_target(tutti_target_form form, int c, int h, int w)
{
    tutti_data_options o = tutti_data_defaults();
    o.shape = (tutti_sample_shape){1, SIDE, SIDE};
    o.target_count = 1;
    o.targets[0] = (tutti_target){form, c, h, w};
    return o;
}

static void must_fail(const char *spec, const tutti_data_options *o, tutti_status status,
                      const char *part)
{
    tutti_data *data = NULL;
    assert_fails(tutti_data_open(&data, spec, o), status, part);
    assert_null(data);
}

static void write_grey_png(const char *path, int height, int width, const uint8_t *grey)
{
    png_image png = {.version = PNG_IMAGE_VERSION,
                     .width = (unsigned)width,
                     .height = (unsigned)height,
                     .format = PNG_FORMAT_GRAY};
    if (!png_image_write_to_file(&png, path, 0, grey, 0, NULL)) abort();
}

static size_t read_all(const char *path, uint8_t *out, size_t size)
{
    FILE *f = fopen(path, "rb");
    if (!f) abort();
    const size_t count = fread(out, 1, size, f);
    fclose(f);
    return count;
}

/* Grey pictures are masks, too, of classes 0, 1, ... whose pictures are 0, 40, 80, ... */
static void write_pair(const scratch *s, const char *folder, const char *name, int height,
                       int width, int number)
{
    static uint8_t mask[64 * 64], grey[64 * 64];
    char path[96];
    for (int i = 0; i < height * width; i++) {
        mask[i] = (uint8_t)((i / width / 3 + i % width / 4 + number) % CLASSES);
        grey[i] = (uint8_t)(40 * mask[i]);
    }
    snprintf(path, sizeof path, "x/%s%s", folder, name);
    write_grey_png(scratch_file(s, path), height, width, grey);
    snprintf(path, sizeof path, "m/%s%s", folder, name);
    assert_ok(tutti_write_mask(scratch_file(s, path), height, width, mask));
}

static void make_pairs(const scratch *s)
{
    make_folder(s, "x"), make_folder(s, "m");
    make_folder(s, "x/deep"), make_folder(s, "m/deep");
    for (int i = 0; i < PICTURES; i++) {
        char name[16];
        snprintf(name, sizeof name, "p%d.png", i);
        write_pair(s, i % 2 ? "deep/" : "", name, SIDE, SIDE + 2 * i, i);
    }
}

static const char *pairs_of(const scratch *s, const char *keys)
{
    static char spec[1200];
    snprintf(spec, sizeof spec, "images:%s/x,masks=%s/m,mean=0,std=1%s", s->path, s->path, keys);
    return spec;
}

/* Greys are those of the class wherever a pixel was not made of several. Returns how many are. */
static int count_agreeing(const float *sample, const int32_t *mask, int *ignored)
{
    int agree = 0;
    for (int i = 0; i < SIDE * SIDE; i++) {
        if (mask[i] == TUTTI_IGNORED) {
            assert_true(sample[i] == 0); /* beyond the border */
            ++*ignored;
        } else agree += fabsf(sample[i] * 255 - 40 * (float)mask[i]) < 0.5f;
    }
    return agree;
}

static int pairs_agree(const char *spec, uint32_t epochs, int *ignored)
{
    const tutti_data_options o = with_target(TUTTI_TARGET_PIXELS, CLASSES, SIDE, SIDE);
    tutti_data *data = NULL;
    tutti_reader *reader = NULL;
    int worst = SIDE * SIDE;
    assert_ok(tutti_data_open(&data, spec, &o));
    assert_ok(tutti_reader_create(&reader, data));
    assert_true(tutti_data_has_goals(data));
    assert_int_equal(tutti_data_classes(data), CLASSES);
    assert_int_equal(tutti_data_count(data, TUTTI_SPLIT_TRAIN), PICTURES - 1);
    for (uint32_t k = 0; k < epochs * (PICTURES - 1); k++) {
        float sample[SIDE * SIDE];
        int32_t mask[SIDE * SIDE], label;
        int none = 0;
        const tutti_sample_room room = {sample, &label, {mask}};
        assert_ok(tutti_reader_fetch_all(reader, TUTTI_SPLIT_TRAIN, k / (PICTURES - 1),
                                         k % (PICTURES - 1), &room));
        const int agree = count_agreeing(sample, mask, &none);
        if (agree + none < worst) worst = agree + none;
        *ignored += none;
    }
    tutti_reader_destroy(&reader);
    tutti_data_close(&data);
    return worst;
}

static void a_mask_moves_with_its_picture(void **state)
{
    scratch *s = *state;
    int ignored = 0;
    make_pairs(s);
    /* as large as they are: every pixel */
    assert_int_equal(pairs_agree(pairs_of(s, ""), 20, &ignored), SIDE * SIDE);
    assert_int_equal(ignored, 0);
    assert_int_equal(pairs_agree(pairs_of(s, ",pad=6"), 20, &ignored), SIDE * SIDE);
    assert_true(ignored > 0);
    /* scaled: half of the pixels are mixed of classes; of a mask elsewhere a tenth would agree */
    assert_true(pairs_agree(pairs_of(s, ",resize=40,jitter=0.5"), 20, &ignored) > SIDE * SIDE / 3);
}

static void a_loader_gives_masks_in_place(void **state)
{
    scratch *s = *state;
    const tutti_data_options o = with_target(TUTTI_TARGET_PIXELS, CLASSES, SIDE / 2, SIDE / 4);
    tutti_loader_options l = tutti_loader_defaults();
    tutti_data *data = NULL;
    tutti_loader *loader = NULL;
    tutti_batch batch;
    make_pairs(s);
    assert_ok(tutti_data_open(&data, pairs_of(s, ",holdout=50"), &o));
    l.split = TUTTI_SPLIT_TEST;
    l.batch = l.end = 4;
    l.threads = 3;
    assert_ok(tutti_loader_create(&loader, data, &l));
    assert_ok(tutti_loader_next(loader, &batch));
    assert_int_equal(batch.count, 4);
    tutti_reader *reader = NULL;
    assert_ok(tutti_reader_create(&reader, data));
    for (int i = 0; i < 4; i++) {
        float sample[SIDE * SIDE];
        int32_t mask[SIDE * SIDE / 8], label;
        const tutti_sample_room room = {sample, &label, {mask}};
        assert_ok(tutti_reader_fetch_all(reader, TUTTI_SPLIT_TEST, 0, batch.ids[i], &room));
        assert_memory_equal((const int32_t *)batch.targets[0] + i * SIDE * SIDE / 8, mask,
                            sizeof mask);
    }
    tutti_reader_destroy(&reader);
    tutti_loader_destroy(&loader);
    tutti_data_close(&data);
}

static void wrong_masks_are_named(void **state)
{
    scratch *s = *state;
    tutti_data_options o = with_target(TUTTI_TARGET_PIXELS, 3, SIDE, SIDE);
    tutti_data *data = NULL;
    tutti_reader *reader = NULL;
    float sample[SIDE * SIDE];
    int32_t mask[SIDE * SIDE], label;
    const tutti_sample_room room = {sample, &label, {mask}};
    make_pairs(s);
    assert_ok(tutti_data_open(&data, pairs_of(s, ""), &o));
    assert_ok(tutti_reader_create(&reader, data));
    assert_fails(tutti_reader_fetch_all(reader, TUTTI_SPLIT_TRAIN, 0, 0, &room), TUTTI_DATA,
                 "but the net tells 3 classes apart");
    tutti_reader_destroy(&reader);
    tutti_data_close(&data);
    o.targets[0].c = CLASSES;
    write_grey_png(scratch_file(s, "x/alone.png"), 30, 30, (const uint8_t[900]){0});
    must_fail(pairs_of(s, ""), &o, TUTTI_DATA, "alone.png' has no mask");
    o.targets[0] = (tutti_target){TUTTI_TARGET_VALUES, 1, 1, 1};
    must_fail(pairs_of(s, ""), &o, TUTTI_ARGUMENT, "end the net in pixelsoftmax");
    must_fail("fashion-mnist", &o, TUTTI_ARGUMENT, "there is a class for each sample");
}

/* Any PNG that is no palette or grey of 8 bits or fewer, or of another size than its picture. */
static void what_is_no_mask_is_refused(void **state)
{
    scratch *s = *state;
    tutti_image mask = {0};
    static bytes b;
    write_png(scratch_file(s, "colour.png"), 10, 10, 0);
    b.count = read_all(scratch_file(s, "colour.png"), b.data, sizeof b.data);
    assert_fails(tutti_decode_mask(&mask, "colour.png", b.data, b.count), TUTTI_DATA,
                 "a palette or a grey PNG");
    write_grey_png(scratch_file(s, "grey.png"), 10, 10, (const uint8_t[100]){7, 255});
    b.count = read_all(scratch_file(s, "grey.png"), b.data, sizeof b.data);
    assert_ok(tutti_decode_mask(&mask, "grey.png", b.data, b.count));
    assert_true(mask.height == 10 && mask.width == 10);
    assert_true(mask.pixels[0] == 7 && mask.pixels[1] == 255 && mask.pixels[2] == 0);
    for (size_t cut = 0; cut < b.count; cut += 5)
        assert_int_not_equal(tutti_decode_mask(&mask, "cut", b.data, cut), TUTTI_OK);
    tutti_image_deinit(&mask);
}

/* ---- arrays ---- */

static void write_array(const char *path, const char *descr, const char *shape, const void *numbers,
                        size_t size)
{
    static bytes b;
    char text[128];
    const int used =
        snprintf(text, sizeof text, "{'descr': '%s', 'fortran_order': False, 'shape': (%s), }\n",
                 descr, shape);
    b.count = 0;
    put(&b, "\x93NUMPY\1\0", 8);
    put_byte(&b, used & 255), put_byte(&b, used >> 8);
    put_text(&b, text);
    put(&b, numbers, size);
    write_bytes(path, b.data, b.count);
}

/* Both orders of channels, in blocks of 16; and a mask with 255 and negative numbers. */
static void arrays_give_values_and_classes(void **state)
{
    enum { N = 20, C = 17, H = 2, W = 3, PIXELS = H * W };
    static float x[N], chw[N * C * PIXELS], hwc[N * C * PIXELS], got[32 * PIXELS],
        again[32 * PIXELS];
    static int16_t classes[N * PIXELS];
    scratch *s = *state;
    char spec[1200];
    for (int n = 0; n < N; n++)
        for (int c = 0; c < C; c++)
            for (int p = 0; p < PIXELS; p++)
                chw[(n * C + c) * PIXELS + p] = hwc[(n * PIXELS + p) * C + c] =
                    (float)(n * 1000 + c * 10 + p);
    for (int i = 0; i < N * PIXELS; i++) classes[i] = (int16_t)(i % 5 ? i % 4 : i % 2 ? 255 : -1);
    write_array(scratch_file(s, "x.npy"), "<f4", "20,", x, sizeof x);
    write_array(scratch_file(s, "chw.npy"), "<f4", "20, 17, 2, 3", chw, sizeof chw);
    write_array(scratch_file(s, "hwc.npy"), "<f4", "20, 2, 3, 17", hwc, sizeof hwc);
    write_array(scratch_file(s, "y.npy"), "<i2", "20, 2, 3", classes, sizeof classes);
    tutti_data_options o = with_target(TUTTI_TARGET_VALUES, C, H, W);
    o.shape = (tutti_sample_shape){1, 1, 1};
    o.target_count = 3;
    o.targets[1] = o.targets[0];
    o.targets[2] = (tutti_target){TUTTI_TARGET_PIXELS, 4, H, W};
    snprintf(spec, sizeof spec,
             "npy:%s/x.npy,%s/chw.npy,%s/hwc.npy,%s/y.npy,holdout=0,mean=0,std=1", s->path, s->path,
             s->path, s->path);
    tutti_data *data = NULL;
    tutti_reader *reader = NULL;
    assert_ok(tutti_data_open(&data, spec, &o));
    assert_ok(tutti_reader_create(&reader, data));
    for (uint32_t id = 0; id < N; id++) {
        float sample[16];
        int32_t mask[PIXELS], label;
        const tutti_sample_room room = {sample, &label, {got, again, mask}};
        assert_ok(tutti_reader_fetch_all(reader, TUTTI_SPLIT_TRAIN, 0, id, &room));
        assert_memory_equal(got, again, sizeof got);
        for (int c = 0; c < 32; c++)
            for (int p = 0; p < PIXELS; p++)
                assert_true(got[(c / 16 * PIXELS + p) * 16 + c % 16] ==
                            (c < C ? (float)(id * 1000 + (uint32_t)(c * 10 + p)) : 0));
        for (int p = 0; p < PIXELS; p++) {
            const int at = (int)id * PIXELS + p;
            assert_int_equal(mask[p], at % 5 ? at % 4 : TUTTI_IGNORED);
        }
    }
    tutti_reader_destroy(&reader);
    tutti_data_close(&data);
    o.targets[1].c = 16;
    must_fail(spec, &o, TUTTI_SHAPE, "the net's outputs are 16 of 2x3");
    o.target_count = 2;
    must_fail(spec, &o, TUTTI_ARGUMENT, "the net has 2 targets");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SCRATCH_TEST(a_mask_moves_with_its_picture),  SCRATCH_TEST(a_loader_gives_masks_in_place),
        SCRATCH_TEST(wrong_masks_are_named),          SCRATCH_TEST(what_is_no_mask_is_refused),
        SCRATCH_TEST(arrays_give_values_and_classes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
