/* PNG files become what PIL's Image.open(file).convert("RGB") makes of them (("L") for nets
 * that take grey): gamma, profiles and background colours are ignored, alpha is dropped, of 16 bits
 * the upper 8 count. The one exception is PIL's as well: greys of 16 bits above 255 are white. */
#include <setjmp.h>
#include <stdio.h>
#include <string.h>
#include <png.h>

#include "data/image.h"

typedef struct reading {
    png_structp png;
    png_infop info;
    const uint8_t *at; /* what is left of the file */
    size_t left;
    int width, height, passes;
    int channels; /* 1 or 3, as stored */
    bool deep;    /* two bytes for each grey */
    uint8_t *rows;
    char why[80];
} reading;

static void keep_reason(png_structp png, png_const_charp why)
{
    reading *r = png_get_error_ptr(png);
    snprintf(r->why, sizeof r->why, "%s", why);
    png_longjmp(png, 1);
}

static void ignore(png_structp png, png_const_charp why)
{
    (void)png, (void)why;
}

static void take_bytes(png_structp png, png_bytep out, size_t count)
{
    reading *r = png_get_io_ptr(png);
    if (count > r->left) png_error(png, "it ends too early");
    memcpy(out, r->at, count);
    r->at += count;
    r->left -= count;
}

static void read_head(reading *r)
{
    png_set_read_fn(r->png, r, take_bytes);
    png_set_keep_unknown_chunks(r->png, PNG_HANDLE_CHUNK_NEVER, NULL, -1);
    png_read_info(r->png, r->info);
    const int colour = png_get_color_type(r->png, r->info);
    const int depth = png_get_bit_depth(r->png, r->info);
    r->deep = colour == PNG_COLOR_TYPE_GRAY && depth == 16;
    r->channels = colour & PNG_COLOR_MASK_COLOR ? 3 : 1;
    if (colour == PNG_COLOR_TYPE_PALETTE) png_set_palette_to_rgb(r->png);
    if (colour == PNG_COLOR_TYPE_GRAY && depth < 8) png_set_expand_gray_1_2_4_to_8(r->png);
    if (!r->deep) png_set_strip_16(r->png);
    png_set_strip_alpha(r->png);
    r->passes = png_set_interlace_handling(r->png);
    png_read_update_info(r->png, r->info);
    r->width = (int)png_get_image_width(r->png, r->info);
    r->height = (int)png_get_image_height(r->png, r->info);
}

static size_t row_bytes(const reading *r)
{
    return (size_t)r->width * (size_t)r->channels * (r->deep ? 2 : 1);
}

static void read_rows(reading *r)
{
    if (png_get_rowbytes(r->png, r->info) != row_bytes(r)) png_error(r->png, "odd rows");
    for (int pass = 0; pass < r->passes; pass++)
        for (int y = 0; y < r->height; y++)
            png_read_row(r->png, r->rows + (size_t)y * row_bytes(r), NULL);
}

/* libpng reports failures by a jump: nothing but *r may change below this one. */
static tutti_status guard(reading *r, void (*work)(reading *), const char *name)
{
    if (!setjmp(png_jmpbuf(r->png))) {
        work(r);
        return TUTTI_OK;
    }
    return tutti_fail(TUTTI_DATA, "'%s' is a damaged PNG file: %s", name, r->why);
}

/* In place: the first byte of a grey is the upper one. */
static bool clip(uint8_t *greys, size_t count)
{
    bool clipped = false;
    for (size_t i = 0; i < count; i++) {
        clipped |= greys[2 * i] != 0;
        greys[i] = greys[2 * i] ? 255 : greys[2 * i + 1];
    }
    return clipped;
}

static tutti_status decode(reading *r, tutti_image *image, int channels, tutti_buffer *scratch,
                           const char *name)
{
    TUTTI_TRY(guard(r, read_head, name));
    if (tutti_image_reserve(image, r->height, r->width, channels))
        return tutti_fail(TUTTI_DATA, "'%s' is a damaged PNG file: %s", name, tutti_message());
    const bool direct = r->channels == channels && !r->deep;
    if (!direct) TUTTI_TRY(tutti_buffer_reserve(scratch, (size_t)r->height * row_bytes(r)));
    r->rows = direct ? image->pixels : scratch->bytes;
    TUTTI_TRY(guard(r, read_rows, name));
    if (r->deep) image->clipped = clip(r->rows, (size_t)r->height * (size_t)r->width);
    if (!direct) tutti_image_convert(image, r->rows, r->channels);
    return TUTTI_OK;
}

tutti_status tutti_decode_png(tutti_image *image, int channels, tutti_buffer *scratch,
                              const char *name, const void *bytes, size_t size)
{
    reading r = {.at = bytes, .left = size};
    r.png = png_create_read_struct(PNG_LIBPNG_VER_STRING, &r, keep_reason, ignore);
    if (r.png) r.info = png_create_info_struct(r.png);
    const tutti_status s = r.info ? decode(&r, image, channels, scratch, name)
                                  : tutti_fail(TUTTI_MEMORY, "not enough memory for libpng");
    png_destroy_read_struct(&r.png, &r.info, NULL);
    return s;
}
