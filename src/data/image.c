#include "data/image.h"

#include <stdbool.h>
#include <string.h>
#include <turbojpeg.h>

#include "base/memory.h"

/* 200 MB of colours; anything larger is damage or an attack. */
enum { MAX_SIDE = 65535, MAX_PIXELS = 1 << 26 };

struct tutti_decoder {
    tjhandle jpeg;
    tutti_buffer raw; /* CMYK before it becomes RGB, rows of a PNG */
};

tutti_status tutti_image_reserve(tutti_image *image, int height, int width, int channels)
{
    if (height < 1 || width < 1 || height > MAX_SIDE || width > MAX_SIDE ||
        (int64_t)height * width > MAX_PIXELS)
        return tutti_fail(TUTTI_DATA, "it claims %d x %d pixels; at most %d in all are possible",
                          width, height, (int)MAX_PIXELS);
    TUTTI_TRY(
        tutti_buffer_reserve(&image->buffer, (size_t)height * (size_t)width * (size_t)channels));
    image->pixels = image->buffer.bytes;
    image->height = image->file_height = height;
    image->width = image->file_width = width;
    image->channels = channels;
    image->clipped = false;
    return TUTTI_OK;
}

void tutti_image_deinit(tutti_image *image)
{
    tutti_buffer_deinit(&image->buffer);
    *image = (tutti_image){0};
}

static uint8_t grey_of(const uint8_t *rgb)
{
    return (uint8_t)((rgb[0] * 19595 + rgb[1] * 38470 + rgb[2] * 7471 + 0x8000) >> 16);
}

void tutti_image_convert(tutti_image *image, const uint8_t *pixels, int from)
{
    const size_t count = (size_t)image->height * (size_t)image->width;
    uint8_t *out = image->pixels;
    if (from == image->channels) memcpy(out, pixels, count * (size_t)from);
    else if (from == 3)
        for (size_t i = 0; i < count; i++) out[i] = grey_of(pixels + 3 * i);
    else
        for (size_t i = 0; i < 3 * count; i++) out[i] = pixels[i / 3];
}

static double larger(double a, double b)
{
    return a > b ? a : b;
}

double tutti_fit_scale(const tutti_fit *fit, int height, int width)
{
    if (fit->range) {
        const tutti_crop crop = tutti_crop_draw(fit->range, fit->random, height, width);
        return larger((double)fit->height / crop.height, (double)fit->width / crop.width);
    }
    if (fit->zoom == 0) return 1;
    return fit->zoom * larger((double)fit->height / height, (double)fit->width / width);
}

tutti_status tutti_decoder_create(tutti_decoder **out)
{
    tutti_decoder *d = NULL;
    TUTTI_TRY(tutti_alloc(&d, 1, sizeof *d));
    d->jpeg = tjInitDecompress();
    if (!d->jpeg) {
        tutti_decoder_destroy(&d);
        return tutti_fail(TUTTI_MEMORY, "not enough memory for libturbojpeg");
    }
    *out = d;
    return TUTTI_OK;
}

void tutti_decoder_destroy(tutti_decoder **decoder)
{
    tutti_decoder *d = *decoder;
    if (!d) return;
    if (d->jpeg) tjDestroy(d->jpeg);
    tutti_buffer_deinit(&d->raw);
    tutti_free(d);
    *decoder = NULL;
}

/* Only these factors: the others (3/8, 5/8, ...) have no vector code in libturbojpeg and take
 * longer than decoding everything. */
static tjscalingfactor factor_for(double scale)
{
    int denominator = 1;
    while (denominator < 8 && scale * 2 * denominator <= 1) denominator *= 2;
    return (tjscalingfactor){1, denominator};
}

/* Decoders report stray bytes between segments and go on, which many good pictures need; but a
 * picture that ends early is damaged. */
static tutti_status jpeg_status(tutti_decoder *d, int result, const char *name)
{
    if (!result) return TUTTI_OK;
    const char *why = tjGetErrorStr2(d->jpeg);
    if (tjGetErrorCode(d->jpeg) == TJERR_WARNING && !strstr(why, "remature end")) return TUTTI_OK;
    return tutti_fail(TUTTI_DATA, "'%s' is a damaged JPEG file: %s", name, why);
}

/* Adobe's CMYK is stored inverted: 255 is no ink. */
static void ink_to_colours(tutti_image *image, const uint8_t *ink)
{
    const size_t count = (size_t)image->height * (size_t)image->width;
    for (size_t i = 0; i < count; i++) {
        uint8_t rgb[3];
        for (int c = 0; c < 3; c++)
            rgb[c] = (uint8_t)((ink[4 * i + (size_t)c] * ink[4 * i + 3] + 127) / 255);
        if (image->channels == 3) memcpy(image->pixels + 3 * i, rgb, 3);
        else image->pixels[i] = grey_of(rgb);
    }
}

static tutti_status jpeg_pixels(tutti_decoder *d, tutti_image *image, bool is_ink, const char *name,
                                const void *bytes, size_t size)
{
    const int flags = TJFLAG_ACCURATEDCT | TJFLAG_LIMITSCANS;
    const size_t count = (size_t)image->height * (size_t)image->width;
    const int format = is_ink ? TJPF_CMYK : image->channels == 3 ? TJPF_RGB : TJPF_GRAY;
    if (is_ink) TUTTI_TRY(tutti_buffer_reserve(&d->raw, 4 * count));
    uint8_t *out = is_ink ? d->raw.bytes : image->pixels;
    TUTTI_TRY(jpeg_status(d,
                          tjDecompress2(d->jpeg, bytes, (unsigned long)size, out, image->width, 0,
                                        image->height, format, flags),
                          name));
    if (is_ink) ink_to_colours(image, out);
    return TUTTI_OK;
}

static tutti_status decode_jpeg(tutti_decoder *d, tutti_image *image, int channels,
                                const tutti_fit *fit, const char *name, const void *bytes,
                                size_t size)
{
    int width = 0, height = 0, sampling = 0, colours = 0;
    const int result = tjDecompressHeader3(d->jpeg, bytes, (unsigned long)size, &width, &height,
                                           &sampling, &colours);
    TUTTI_TRY(jpeg_status(d, result, name));
    if (width < 1 || height < 1)
        return tutti_fail(TUTTI_DATA, "'%s' is a damaged JPEG file: no size", name);
    const tjscalingfactor factor = factor_for(tutti_fit_scale(fit, height, width));
    if (tutti_image_reserve(image, TJSCALED(height, factor), TJSCALED(width, factor), channels))
        return tutti_fail(TUTTI_DATA, "'%s' is a damaged JPEG file: %s", name, tutti_message());
    image->file_height = height;
    image->file_width = width;
    const bool is_ink = colours == TJCS_CMYK || colours == TJCS_YCCK;
    return jpeg_pixels(d, image, is_ink, name, bytes, size);
}

tutti_status tutti_decode(tutti_decoder *d, tutti_image *image, int channels, const tutti_fit *fit,
                          const char *name, const void *bytes, size_t size)
{
    static const uint8_t jpeg[] = {0xff, 0xd8, 0xff}, png[] = {0x89, 'P', 'N', 'G'};
    if (size > sizeof jpeg && !memcmp(bytes, jpeg, sizeof jpeg))
        return decode_jpeg(d, image, channels, fit, name, bytes, size);
    if (size > sizeof png && !memcmp(bytes, png, sizeof png))
        return tutti_decode_png(image, channels, &d->raw, name, bytes, size);
    return tutti_fail(TUTTI_DATA, "'%s' is neither a JPEG nor a PNG file%s", name,
                      size ? "" : ": it is empty");
}
