#include "format/json.h"

#include <math.h>
#include <stdarg.h>
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
    for (; *value; value++) json_char(s, *value);
    tutti_string_append(s, "\"", 1);
}

void tutti_json_real(tutti_string *s, double value, int digits)
{
    if (isfinite(value)) tutti_string_printf(s, "%.*g", digits, value);
    else tutti_string_append(s, "null", 4);
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
