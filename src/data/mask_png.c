#include "data/mask_png.h"

#include <errno.h>
#include <setjmp.h>
#include <stdio.h>
#include <string.h>
#include <png.h>

typedef struct coding {
    png_structp png;
    png_infop info;
    const uint8_t *at; /* what is left of a file that is read */
    size_t left;
    tutti_image *mask; /* likewise */
    FILE *file;        /* that is written */
    int height, width;
    const uint8_t *classes;
    char why[80];
} coding;

static void keep_reason(png_structp png, png_const_charp why)
{
    coding *c = png_get_error_ptr(png);
    snprintf(c->why, sizeof c->why, "%s", why);
    png_longjmp(png, 1);
}

static void ignore(png_structp png, png_const_charp why)
{
    (void)png, (void)why;
}

/* libpng reports failures by a jump: nothing but *c may change below this one. */
static bool guard(coding *c, void (*work)(coding *))
{
    if (setjmp(png_jmpbuf(c->png))) return false;
    work(c);
    return true;
}

/* ---- reading ---- */

static void take_bytes(png_structp png, png_bytep out, size_t count)
{
    coding *c = png_get_io_ptr(png);
    if (count > c->left) png_error(png, "it ends too early");
    memcpy(out, c->at, count);
    c->at += count;
    c->left -= count;
}

static void read_head(coding *c)
{
    png_set_read_fn(c->png, c, take_bytes);
    png_set_keep_unknown_chunks(c->png, PNG_HANDLE_CHUNK_NEVER, NULL, -1);
    png_read_info(c->png, c->info);
    c->height = (int)png_get_image_height(c->png, c->info);
    c->width = (int)png_get_image_width(c->png, c->info);
    const int colour = png_get_color_type(c->png, c->info);
    if (colour != PNG_COLOR_TYPE_PALETTE && colour != PNG_COLOR_TYPE_GRAY)
        png_error(c->png, "it has colours or alpha; a mask is a palette or a grey PNG");
    if (png_get_bit_depth(c->png, c->info) > 8)
        png_error(c->png, "it has 16 bits; a mask has at most 8");
    png_set_packing(c->png);
    (void)png_set_interlace_handling(c->png);
    png_read_update_info(c->png, c->info);
}

static void read_rows(coding *c)
{
    const int passes = png_get_interlace_type(c->png, c->info) == PNG_INTERLACE_ADAM7 ? 7 : 1;
    if (png_get_rowbytes(c->png, c->info) != (size_t)c->width) png_error(c->png, "odd rows");
    for (int pass = 0; pass < passes; pass++)
        for (int y = 0; y < c->height; y++)
            png_read_row(c->png, c->mask->pixels + (size_t)y * (size_t)c->width, NULL);
    png_read_end(c->png, NULL);
}

static tutti_status decode(coding *c, const char *name)
{
    if (!guard(c, read_head)) return tutti_fail(TUTTI_DATA, "'%s' is no mask: %s", name, c->why);
    if (tutti_image_reserve(c->mask, c->height, c->width, 1))
        return tutti_fail(TUTTI_DATA, "'%s' is no mask: %s", name, tutti_message());
    if (!guard(c, read_rows))
        return tutti_fail(TUTTI_DATA, "'%s' is a damaged PNG file: %s", name, c->why);
    return TUTTI_OK;
}

tutti_status tutti_decode_mask(tutti_image *mask, const char *name, const void *bytes, size_t size)
{
    coding c = {.at = bytes, .left = size, .mask = mask};
    c.png = png_create_read_struct(PNG_LIBPNG_VER_STRING, &c, keep_reason, ignore);
    if (c.png) c.info = png_create_info_struct(c.png);
    const tutti_status s =
        c.info ? decode(&c, name) : tutti_fail(TUTTI_MEMORY, "not enough memory for libpng");
    png_destroy_read_struct(&c.png, &c.info, NULL);
    return s;
}

/* ---- writing ---- */

/* Bit b of a class, from the highest down, goes to one colour after another. */
static void fill_palette(png_color palette[256])
{
    for (int class = 0; class < 256; class ++) {
        png_byte colour[3] = {0};
        for (int b = 0; b < 8; b++) colour[b % 3] |= (png_byte)((class >> b & 1) << (7 - b / 3));
        palette[class] = (png_color){colour[0], colour[1], colour[2]};
    }
}

static void write_all(coding *c)
{
    png_color palette[256];
    fill_palette(palette);
    png_init_io(c->png, c->file);
    png_set_IHDR(c->png, c->info, (png_uint_32)c->width, (png_uint_32)c->height, 8,
                 PNG_COLOR_TYPE_PALETTE, PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT,
                 PNG_FILTER_TYPE_DEFAULT);
    png_set_PLTE(c->png, c->info, palette, 256);
    png_write_info(c->png, c->info);
    for (int y = 0; y < c->height; y++)
        png_write_row(c->png, c->classes + (size_t)y * (size_t)c->width);
    png_write_end(c->png, NULL);
}

static tutti_status write_failure(const char *path, const char *why)
{
    return tutti_fail(TUTTI_IO, "cannot write '%s': %s", path, why);
}

tutti_status tutti_write_mask(const char *path, int height, int width, const uint8_t *classes)
{
    coding c = {.height = height, .width = width, .classes = classes};
    c.file = fopen(path, "wb");
    if (!c.file) return write_failure(path, strerror(errno));
    c.png = png_create_write_struct(PNG_LIBPNG_VER_STRING, &c, keep_reason, ignore);
    if (c.png) c.info = png_create_info_struct(c.png);
    const bool written = c.info && guard(&c, write_all);
    png_destroy_write_struct(&c.png, &c.info);
    if (fclose(c.file) || !written) return write_failure(path, c.why[0] ? c.why : strerror(errno));
    return TUTTI_OK;
}
