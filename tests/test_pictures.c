/* What the pixels of picture files are: those of PIL's Image.open(file).convert("RGB") and ("L"),
 * for every form a PNG can have, and for JPEG.
 *
 *     test_pictures FOLDER    also keeps every picture there, and its pixels as NAME.rgb and
 *                             NAME.grey, for tests/check_pil.py */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "data/image.h"
#include "data_files.h"

enum { HEIGHT = 9, WIDTH = 11, PIXELS = HEIGHT * WIDTH };

static const char *kept_in;

static void keep(const char *name, const char *kind, const void *bytes_, size_t count)
{
    char path[512];
    if (!kept_in) return;
    snprintf(path, sizeof path, "%s/%s%s", kept_in, name, kind);
    write_bytes(path, bytes_, count);
}

/* ------------------------------------------------------------------------- a PNG's forms */

typedef struct form {
    int colour, depth, interlace, gamma; /* gamma as in gAMA, 0: none */
    bool transparent;                    /* tRNS, bKGD: pixels are what they are nevertheless */
} form;

static const int channels_of[] = {[PNG_COLOR_TYPE_GRAY] = 1,
                                  [PNG_COLOR_TYPE_RGB] = 3,
                                  [PNG_COLOR_TYPE_PALETTE] = 1,
                                  [PNG_COLOR_TYPE_GRAY_ALPHA] = 2,
                                  [PNG_COLOR_TYPE_RGB_ALPHA] = 4};

/* The stored number of channel c of pixel i; of greys with 16 bits every other is below 256. */
static int stored(const form *f, int i, int c)
{
    const int value = (i * 7919 + c * 104729 + i * i * 31) & ((1 << f->depth) - 1);
    const bool grey16 = f->depth == 16 && f->colour == PNG_COLOR_TYPE_GRAY;
    return grey16 && i % 2 ? value & 255 : value;
}

static png_color palette_entry(int i)
{
    return (png_color){(png_byte)(i * 83), (png_byte)(255 - i * 59), (png_byte)(i * 17 + 5)};
}

/* What PIL makes of a stored number: the upper eight bits of 16, but greys of 16 bits are clipped;
 * fewer than eight bits are spread over 0 to 255. */
static int shown(const form *f, int value)
{
    if (f->depth < 8) return value * 255 / ((1 << f->depth) - 1);
    if (f->depth == 8) return value;
    if (f->colour == PNG_COLOR_TYPE_GRAY) return value > 255 ? 255 : value;
    return value >> 8;
}

static void expected(const form *f, int i, uint8_t rgb[3])
{
    const bool colours = f->colour & PNG_COLOR_MASK_COLOR;
    if (f->colour == PNG_COLOR_TYPE_PALETTE) {
        const png_color entry = palette_entry(stored(f, i, 0));
        rgb[0] = entry.red, rgb[1] = entry.green, rgb[2] = entry.blue;
    } else {
        for (int c = 0; c < 3; c++) rgb[c] = (uint8_t)shown(f, stored(f, i, colours ? c : 0));
    }
}

/* PIL's: BT.601 in 16 bits, rounded. */
static uint8_t grey(const uint8_t rgb[3])
{
    return (uint8_t)((rgb[0] * 19595 + rgb[1] * 38470 + rgb[2] * 7471 + 0x8000) >> 16);
}

static void put_row(const form *f, int y, uint8_t *row)
{
    const int channels = channels_of[f->colour];
    memset(row, 0, (size_t)WIDTH * 8);
    for (int i = 0; i < WIDTH * channels; i++) {
        const int value = stored(f, y * WIDTH + i / channels, i % channels);
        if (f->depth == 16) {
            row[2 * i] = (uint8_t)(value >> 8);
            row[2 * i + 1] = (uint8_t)value;
        } else {
            const int bit = i * f->depth;
            row[bit / 8] |= (uint8_t)(value << (8 - f->depth - bit % 8));
        }
    }
}

static void set_extras(const form *f, png_structp png, png_infop info)
{
    png_color palette[256];
    png_byte alpha[256];
    const int entries = f->depth < 8 ? 1 << f->depth : 256;
    png_color_16 colour = {.index = 1, .red = 1, .green = 1, .blue = 1, .gray = 1};
    for (int i = 0; i < entries; i++) {
        palette[i] = palette_entry(i);
        alpha[i] = (png_byte)(i * 97);
    }
    if (f->colour == PNG_COLOR_TYPE_PALETTE) png_set_PLTE(png, info, palette, entries);
    if (f->gamma) png_set_gAMA_fixed(png, info, f->gamma);
    if (!f->transparent) return;
    png_set_bKGD(png, info, &colour);
    if (!(f->colour & PNG_COLOR_MASK_ALPHA)) png_set_tRNS(png, info, alpha, entries, &colour);
}

static void append(png_structp png, png_bytep data, size_t count)
{
    put(png_get_io_ptr(png), data, count);
}

static void make_png(bytes *out, const form *f)
{
    static uint8_t rows[HEIGHT][WIDTH * 8];
    png_bytep row[HEIGHT];
    png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, NULL, NULL, NULL);
    png_infop info = png_create_info_struct(png);
    out->count = 0;
    png_set_write_fn(png, out, append, NULL);
    png_set_IHDR(png, info, WIDTH, HEIGHT, f->depth, f->colour, f->interlace, 0, 0);
    set_extras(f, png, info);
    for (int y = 0; y < HEIGHT; y++) put_row(f, y, row[y] = rows[y]);
    png_set_rows(png, info, row);
    png_write_png(png, info, PNG_TRANSFORM_IDENTITY, NULL);
    png_destroy_write_struct(&png, &info);
}

/* Decodes it at its full size; gives the pixels to a judge. */
static void decode(tutti_image *image, int channels, const char *name, const uint8_t *data,
                   size_t size)
{
    tutti_decoder *decoder = NULL;
    const tutti_fit whole = {.height = 1, .width = 1};
    assert_ok(tutti_decoder_create(&decoder));
    assert_ok(tutti_decode(decoder, image, channels, &whole, name, data, size));
    assert_int_equal(image->channels, channels);
    tutti_decoder_destroy(&decoder);
    keep(name, channels == 3 ? ".rgb" : ".grey", image->pixels,
         (size_t)(image->height * image->width * channels));
}

static void check_form(const form *f)
{
    static bytes b;
    tutti_image image = {0};
    char name[64];
    uint8_t rgb[3];
    snprintf(name, sizeof name, "colour%d-%dbit-%s-gamma%d%s.png", f->colour, f->depth,
             f->interlace ? "adam7" : "plain", f->gamma, f->transparent ? "-trns" : "");
    make_png(&b, f);
    keep(name, "", b.data, b.count);
    decode(&image, 3, name, b.data, b.count);
    assert_int_equal(image.height, HEIGHT);
    assert_int_equal(image.width, WIDTH);
    for (int i = 0; i < PIXELS; i++) {
        expected(f, i, rgb);
        for (int c = 0; c < 3; c++)
            if (image.pixels[3 * i + c] != rgb[c])
                fail_msg("%s: pixel %d channel %d is %d, PIL has %d", name, i, c,
                         image.pixels[3 * i + c], rgb[c]);
    }
    decode(&image, 1, name, b.data, b.count);
    for (int i = 0; i < PIXELS; i++) {
        expected(f, i, rgb);
        if (image.pixels[i] != grey(rgb))
            fail_msg("%s: grey %d is %d, PIL has %d", name, i, image.pixels[i], grey(rgb));
    }
    assert_int_equal(image.clipped, f->depth == 16 && f->colour == PNG_COLOR_TYPE_GRAY);
    tutti_image_deinit(&image);
}

static void every_png_is_as_in_pil(void **state)
{
    static const struct {
        int colour, least, most;
    } kinds[] = {{PNG_COLOR_TYPE_GRAY, 1, 16},
                 {PNG_COLOR_TYPE_RGB, 8, 16},
                 {PNG_COLOR_TYPE_PALETTE, 1, 8},
                 {PNG_COLOR_TYPE_GRAY_ALPHA, 8, 16},
                 {PNG_COLOR_TYPE_RGB_ALPHA, 8, 16}};
    static const int gammas[] = {0, 45455, 100000};
    (void)state;
    for (int k = 0; k < 5; k++)
        for (int depth = kinds[k].least; depth <= kinds[k].most; depth *= 2)
            for (int g = 0; g < 3; g++)
                for (int more = 0; more < 4; more++)
                    check_form(&(form){kinds[k].colour, depth, more & 1, gammas[g], more & 2});
}

/* ------------------------------------------------------------------------- JPEG */

/* Says that the camera was held upright; viewers turn the picture, PIL's convert does not. */
static const uint8_t turned[] = {0xff, 0xe1, 0, 34, 'E', 'x', 'i', 'f', 0, 0,    'M', 'M',
                                 0,    42,   0, 0,  0,   8,   0,   1,   1, 0x12, 0,   3,
                                 0,    0,    0, 1,  0,   6,   0,   0,   0, 0,    0,   0};

static void orientation_is_ignored(void **state)
{
    static bytes b;
    uint8_t *jpeg = NULL;
    tutti_image upright = {0}, image = {0};
    (void)state;
    const size_t size = make_jpeg(&jpeg, HEIGHT, WIDTH, 90);
    b.count = 0;
    put(&b, jpeg, 2);
    put(&b, turned, sizeof turned);
    put(&b, jpeg + 2, size - 2);
    keep("turned.jpg", "", b.data, b.count);
    decode(&upright, 3, "plain", jpeg, size);
    decode(&image, 3, "turned.jpg", b.data, b.count);
    assert_int_equal(image.height, HEIGHT);
    assert_memory_equal(image.pixels, upright.pixels, PIXELS * 3);
    tutti_image_deinit(&image);
    tutti_image_deinit(&upright);
    tjFree(jpeg);
}

/* Those that fuzzing starts from: every kind of JPEG; their pixels are judged by check_pil.py. */
static void seeds_have_pixels(void **state)
{
    static const char *const names[] = {"baseline.jpg", "cmyk.jpg", "grey.jpg", "progressive.jpg"};
    (void)state;
    for (int i = 0; i < 4; i++) {
        static bytes b;
        char path[512];
        tutti_image image = {0};
        snprintf(path, sizeof path, "%s/fuzz/seeds/picture/%s", TESTS_DIR, names[i]);
        FILE *f = fopen(path, "rb");
        assert_non_null(f);
        b.count = fread(b.data, 1, sizeof b.data, f);
        fclose(f);
        keep(names[i], "", b.data, b.count);
        decode(&image, 3, names[i], b.data, b.count);
        tutti_image_deinit(&image);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_png_is_as_in_pil),
        cmocka_unit_test(orientation_is_ignored),
        cmocka_unit_test(seeds_have_pixels),
    };
    if (argc > 1) kept_in = argv[1];
    return cmocka_run_group_tests(tests, NULL, NULL);
}
