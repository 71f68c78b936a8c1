/* Tiny data sets that tests write for themselves. Pixel i of image n is pixel_of(n, i). */
#ifndef TUTTI_TESTS_DATA_FILES_H
#define TUTTI_TESTS_DATA_FILES_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <png.h>
#include <turbojpeg.h>
#include <zlib.h>

#include "data/data.h"
#include "scratch.h"

typedef struct bytes {
    uint8_t data[1 << 18];
    size_t count;
} bytes;

static inline void put(bytes *b, const void *data, size_t count)
{
    if (b->count + count > sizeof b->data) abort();
    memcpy(b->data + b->count, data, count);
    b->count += count;
}

static inline void put_byte(bytes *b, int value)
{
    const uint8_t byte = (uint8_t)value;
    put(b, &byte, 1);
}

static inline void put_big(bytes *b, uint32_t value)
{
    for (int shift = 24; shift >= 0; shift -= 8) put_byte(b, (int)(value >> shift & 255));
}

static inline void put_int(bytes *b, int32_t value)
{
    put(b, &value, sizeof value);
}

static inline void put_float(bytes *b, float value)
{
    put(b, &value, sizeof value);
}

static inline void put_text(bytes *b, const char *text)
{
    put(b, text, strlen(text));
}

static inline void write_bytes(const char *path, const void *data, size_t count)
{
    FILE *f = fopen(path, "wb");
    if (!f || fwrite(data, 1, count, f) != count || fclose(f)) abort();
}

static inline void write_text(const char *path, const char *text)
{
    write_bytes(path, text, strlen(text));
}

static inline void write_gzip(const char *path, const bytes *b)
{
    gzFile f = gzopen(path, "wb");
    if (!f || gzwrite(f, b->data, (unsigned)b->count) != (int)b->count || gzclose(f)) abort();
}

/* Where channel c of pixel (y, x) is in a sample: images of fewer than 16 channels are
 * [y][x][c], all others [c/16][y][x][16]. */
static inline size_t place_of(tutti_sample_shape s, int y, int x, int c)
{
    const int pixels = s.height * s.width, pixel = y * s.width + x;
    return (size_t)(s.channels < 16 ? pixel * s.channels + c
                                    : (c / 16 * pixels + pixel) * 16 + c % 16);
}

/* Floats of such a sample, filled up to whole blocks of 16. */
static inline size_t floats_of(tutti_sample_shape s)
{
    const int pixels = s.height * s.width,
              whole = s.channels < 16 ? s.channels * pixels : s.channels;
    return (size_t)((whole + 15) / 16 * 16 * (s.channels < 16 ? 1 : pixels));
}

/* The sample of shape s that has the numbers plain[y][x][c] and is zero elsewhere. */
static inline void lay_out(float *sample, const float *plain, tutti_sample_shape s)
{
    for (size_t i = 0; i < floats_of(s); i++) sample[i] = 0;
    for (int y = 0; y < s.height; y++)
        for (int x = 0; x < s.width; x++)
            for (int c = 0; c < s.channels; c++) sample[place_of(s, y, x, c)] = *plain++;
}

/* Shapes whose channels do not fill a block of 16, fill it, and go beyond it. */
static const tutti_sample_shape awkward_shapes[] = {
    {1, 5, 3},  {3, 5, 3},  {15, 5, 3}, {16, 5, 3}, {17, 5, 3}, {32, 5, 3}, {33, 5, 3},
    {48, 5, 3}, {17, 2, 1}, {17, 1, 2}, {33, 2, 1}, {15, 1, 1}, {17, 1, 1}, {33, 1, 1},
};
enum { AWKWARD_SHAPES = sizeof awkward_shapes / sizeof *awkward_shapes };

static inline uint8_t pixel_of(int image, int i)
{
    return (uint8_t)(image * 37 + i * 11 + (i >> 3));
}

/* An idx file of 'count' images of height x width, and one of their labels i % 3. */
static inline void put_idx_images(bytes *b, int count, int height, int width)
{
    b->count = 0;
    put_big(b, 0x803);
    put_big(b, (uint32_t)count);
    put_big(b, (uint32_t)height);
    put_big(b, (uint32_t)width);
    for (int n = 0; n < count; n++)
        for (int i = 0; i < height * width; i++) put_byte(b, pixel_of(n, i));
}

static inline void put_idx_labels(bytes *b, int count)
{
    b->count = 0;
    put_big(b, 0x801);
    put_big(b, (uint32_t)count);
    for (int n = 0; n < count; n++) put_byte(b, n % 3);
}

static inline void make_idx(const scratch *s, int train, int test, int height, int width)
{
    static bytes b;
    put_idx_images(&b, train, height, width);
    write_bytes(scratch_file(s, "train-images-idx3-ubyte"), b.data, b.count);
    put_idx_labels(&b, train);
    write_bytes(scratch_file(s, "train-labels-idx1-ubyte"), b.data, b.count);
    put_idx_images(&b, test, height, width);
    write_bytes(scratch_file(s, "t10k-images-idx3-ubyte"), b.data, b.count);
    put_idx_labels(&b, test);
    write_bytes(scratch_file(s, "t10k-labels-idx1-ubyte"), b.data, b.count);
}

/* CIFAR-10 with 'records' records in each of its six files; label n % 10. */
static inline void put_cifar(bytes *b, int first, int records)
{
    b->count = 0;
    for (int n = first; n < first + records; n++) {
        put_byte(b, n % 10);
        for (int i = 0; i < 3072; i++) put_byte(b, pixel_of(n, i));
    }
}

static inline void make_cifar(const scratch *s, int records)
{
    static bytes b;
    for (int file = 0; file < 6; file++) {
        char name[32];
        snprintf(name, sizeof name, file < 5 ? "data_batch_%d.bin" : "test_batch.bin", file + 1);
        put_cifar(&b, file * records, records);
        write_bytes(scratch_file(s, name), b.data, b.count);
    }
}

/* A picture with a smooth gradient, which JPEG keeps nearly as it is. */
static inline void gradient(uint8_t *rgb, int height, int width, int shade)
{
    for (int y = 0; y < height; y++)
        for (int x = 0; x < width; x++) {
            uint8_t *p = rgb + 3 * (y * width + x);
            p[0] = (uint8_t)(255 * x / width);
            p[1] = (uint8_t)(255 * y / height);
            p[2] = (uint8_t)shade;
        }
}

static inline size_t make_jpeg(uint8_t **out, int height, int width, int shade)
{
    uint8_t *rgb = malloc((size_t)(3 * height * width));
    unsigned long size = 0;
    tjhandle handle = tjInitCompress();
    gradient(rgb, height, width, shade);
    *out = NULL;
    if (tjCompress2(handle, rgb, width, 0, height, TJPF_RGB, out, &size, TJSAMP_444, 95, 0))
        abort();
    tjDestroy(handle);
    free(rgb);
    return size;
}

static inline void write_jpeg(const char *path, int height, int width, int shade)
{
    uint8_t *data = NULL;
    const size_t size = make_jpeg(&data, height, width, shade);
    write_bytes(path, data, size);
    tjFree(data);
}

static inline void write_png(const char *path, int height, int width, int shade)
{
    uint8_t *rgb = malloc((size_t)(3 * height * width));
    png_image png = {.version = PNG_IMAGE_VERSION,
                     .width = (unsigned)width,
                     .height = (unsigned)height,
                     .format = PNG_FORMAT_RGB};
    gradient(rgb, height, width, shade);
    if (!png_image_write_to_file(&png, path, 0, rgb, 0, NULL)) abort();
    free(rgb);
}

static inline void make_folder(const scratch *s, const char *name)
{
    if (mkdir(scratch_file(s, name), 0755)) abort();
}

/* "KIND:FOLDER,KEYS" in a static buffer. */
static inline const char *spec_of(const char *kind, const scratch *s, const char *keys)
{
    static char spec[1024];
    snprintf(spec, sizeof spec, "%s:%s%s", kind, s->path, keys);
    return spec;
}

/* Fails the test with the library's sentence. */
#define assert_ok(call)                                                     \
    do {                                                                    \
        if ((call) != TUTTI_OK) fail_msg("%s: %s", #call, tutti_message()); \
    } while (0)

/* Fails unless the call fails with this status and a sentence that holds 'part'. */
#define assert_fails(call, want, part)                                 \
    do {                                                               \
        assert_int_equal(call, want);                                  \
        if (!strstr(tutti_message(), part))                            \
            fail_msg("'%s' does not say '%s'", tutti_message(), part); \
    } while (0)

#endif
