#include "format/text.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"

void tutti_text_deinit(tutti_text *text)
{
    tutti_free(text->data);
    *text = (tutti_text){0};
}

void tutti_text_clear(tutti_text *text)
{
    text->length = 0;
    if (text->data) text->data[0] = 0;
}

tutti_status tutti_text_status(const tutti_text *text)
{
    return text->status;
}

/* Room for 'count' more bytes and the final 0. */
static tutti_status reserve(tutti_text *text, size_t count)
{
    const size_t needed = text->length + count + 1;
    if (text->status || needed <= text->capacity) return text->status;

    char *larger = NULL;
    const size_t capacity = needed < 128 ? 256 : 2 * needed;
    text->status = tutti_alloc(&larger, capacity, 1);
    if (text->status) return text->status;
    if (text->length) memcpy(larger, text->data, text->length);
    tutti_free(text->data);
    text->data = larger;
    text->capacity = capacity;
    return TUTTI_OK;
}

void tutti_text_append(tutti_text *text, const char *bytes, size_t count)
{
    if (reserve(text, count)) return;
    memcpy(text->data + text->length, bytes, count);
    text->length += count;
    text->data[text->length] = 0;
}

void tutti_text_printf(tutti_text *text, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    const int count = vsnprintf(NULL, 0, format, args);
    va_end(args);
    TUTTI_ASSERT(count >= 0);
    if (reserve(text, (size_t)count)) return;
    va_start(args, format);
    vsnprintf(text->data + text->length, (size_t)count + 1, format, args);
    va_end(args);
    text->length += (size_t)count;
}

static void json_char(tutti_text *text, char c)
{
    static const char *const escapes[128] = {
        ['"'] = "\\\"", ['\\'] = "\\\\", ['\n'] = "\\n", ['\t'] = "\\t", ['\r'] = "\\r"};
    const unsigned char u = (unsigned char)c;
    if (u < 128 && escapes[u]) tutti_text_append(text, escapes[u], 2);
    else if (u < 32 || u == 127) tutti_text_printf(text, "\\u%04x", u);
    else tutti_text_append(text, &c, 1);
}

void tutti_json_string(tutti_text *text, const char *value)
{
    tutti_text_append(text, "\"", 1);
    for (; *value; value++) json_char(text, *value);
    tutti_text_append(text, "\"", 1);
}

void tutti_json_real(tutti_text *text, double value, int digits)
{
    if (isfinite(value)) tutti_text_printf(text, "%.*g", digits, value);
    else tutti_text_append(text, "null", 4);
}

void tutti_json_key(tutti_text *text, const char *key)
{
    if (text->length && !strchr("{[", text->data[text->length - 1]))
        tutti_text_append(text, ",", 1);
    tutti_json_string(text, key);
    tutti_text_append(text, ":", 1);
}

void tutti_json_member_string(tutti_text *text, const char *key, const char *value)
{
    tutti_json_key(text, key);
    tutti_json_string(text, value);
}

void tutti_json_member_int(tutti_text *text, const char *key, int64_t value)
{
    tutti_json_key(text, key);
    tutti_text_printf(text, "%lld", (long long)value);
}

void tutti_json_member_real(tutti_text *text, const char *key, double value, int digits)
{
    tutti_json_key(text, key);
    tutti_json_real(text, value, digits);
}
