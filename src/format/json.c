#include "format/json.h"

#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"

void tutti_string_deinit(tutti_string *s)
{
    tutti_free(s->data);
    *s = (tutti_string){0};
}

void tutti_string_clear(tutti_string *s)
{
    s->length = 0;
    if (s->data) s->data[0] = 0;
}

tutti_status tutti_string_status(const tutti_string *s)
{
    return s->status;
}

/* Room for 'count' more bytes and the final 0. */
static tutti_status reserve(tutti_string *s, size_t count)
{
    const size_t needed = s->length + count + 1;
    if (s->status || needed <= s->capacity) return s->status;

    char *larger = NULL;
    const size_t capacity = needed < 128 ? 256 : 2 * needed;
    s->status = tutti_alloc(&larger, capacity, 1);
    if (s->status) return s->status;
    if (s->length) memcpy(larger, s->data, s->length);
    tutti_free(s->data);
    s->data = larger;
    s->capacity = capacity;
    return TUTTI_OK;
}

void tutti_string_append(tutti_string *s, const char *bytes, size_t count)
{
    if (reserve(s, count)) return;
    memcpy(s->data + s->length, bytes, count);
    s->length += count;
    s->data[s->length] = 0;
}

void tutti_string_printf(tutti_string *s, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    const int count = vsnprintf(NULL, 0, format, args);
    va_end(args);
    TUTTI_ASSERT(count >= 0);
    if (reserve(s, (size_t)count)) return;
    va_start(args, format);
    vsnprintf(s->data + s->length, (size_t)count + 1, format, args);
    va_end(args);
    s->length += (size_t)count;
}

/* Bytes of the character at 'text' in UTF-8; 0 where it is none. */
static size_t utf8_length(const char *text)
{
    const unsigned char *u = (const unsigned char *)text;
    const size_t n = *u < 0x80   ? 1
                     : *u < 0xc2 ? 0
                     : *u < 0xe0 ? 2
                     : *u < 0xf0 ? 3
                     : *u < 0xf5 ? 4
                                 : 0;
    for (size_t i = 1; i < n; i++)
        if ((u[i] & 0xc0) != 0x80) return 0;
    const bool is_long = (*u == 0xe0 && u[1] < 0xa0) || (*u == 0xf0 && u[1] < 0x90);
    const bool is_none = (*u == 0xed && u[1] >= 0xa0) || (*u == 0xf4 && u[1] >= 0x90);
    return n && (is_long || is_none) ? 0 : n;
}

/* The character at 'text' unless it is ASCII; a byte that is none as Latin-1's. Returns how many
 * bytes of the text it was. */
static size_t append_utf8(tutti_string *s, const char *text)
{
    const unsigned char byte = (unsigned char)*text;
    const size_t n = utf8_length(text);
    const char latin1[2] = {(char)(0xc0 | byte >> 6), (char)(0x80 | (byte & 0x3f))};
    if (n > 1) tutti_string_append(s, text, n);
    else if (!n) tutti_string_append(s, latin1, 2);
    return n ? n : 1;
}

void tutti_string_utf8(tutti_string *s, const char *text)
{
    for (; *text; text += append_utf8(s, text))
        if ((unsigned char)*text < 0x80) tutti_string_append(s, text, 1);
}

static void json_char(tutti_string *s, char c)
{
    static const char *const escapes[128] = {
        ['"'] = "\\\"", ['\\'] = "\\\\", ['\n'] = "\\n", ['\t'] = "\\t", ['\r'] = "\\r"};
    const unsigned char u = (unsigned char)c;
    if (u < 128 && escapes[u]) tutti_string_append(s, escapes[u], 2);
    else if (u < 32 || u == 127) tutti_string_printf(s, "\\u%04x", u);
    else tutti_string_append(s, &c, 1);
}

void tutti_json_string(tutti_string *s, const char *value)
{
    tutti_string_append(s, "\"", 1);
    for (; *value; value += append_utf8(s, value))
        if ((unsigned char)*value < 0x80) json_char(s, *value);
    tutti_string_append(s, "\"", 1);
}

void tutti_json_real(tutti_string *s, double value, int digits)
{
    if (isfinite(value)) tutti_string_printf(s, "%.*g", digits, value);
    else tutti_string_append(s, "null", 4);
}

void tutti_json_base64(tutti_string *s, const void *bytes, size_t count)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const uint8_t *in = bytes;
    tutti_string_append(s, "\"", 1);
    for (size_t i = 0; i < count; i += 3) {
        char four[4] = {'=', '=', '=', '='};
        const size_t left = count - i;
        const uint32_t three = (uint32_t)in[i] << 16 | (left > 1 ? (uint32_t)in[i + 1] << 8 : 0u) |
                               (left > 2 ? in[i + 2] : 0u);
        for (size_t d = 0; d < 4 && d <= left; d++) four[d] = digits[three >> (18 - 6 * d) & 63];
        tutti_string_append(s, four, sizeof four);
    }
    tutti_string_append(s, "\"", 1);
}

void tutti_json_key(tutti_string *s, const char *key)
{
    if (s->length && !strchr("{[", s->data[s->length - 1])) tutti_string_append(s, ",", 1);
    tutti_json_string(s, key);
    tutti_string_append(s, ":", 1);
}

void tutti_json_field_string(tutti_string *s, const char *key, const char *value)
{
    tutti_json_key(s, key);
    tutti_json_string(s, value);
}

void tutti_json_field_int(tutti_string *s, const char *key, int64_t value)
{
    tutti_json_key(s, key);
    tutti_string_printf(s, "%lld", (long long)value);
}

void tutti_json_field_real(tutti_string *s, const char *key, double value, int digits)
{
    tutti_json_key(s, key);
    tutti_json_real(s, value, digits);
}
