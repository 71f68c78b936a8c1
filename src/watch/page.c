#include "watch/page.h"

#include <string.h>

#include "format/file.h"

/* No text of a run can end the element that the data are in. */
static void append_escaped(tutti_string *out, const char *json, size_t length)
{
    for (size_t at = 0; at < length;) {
        const char *from = json + at;
        size_t plain = 0;
        while (at + plain < length && !strchr("<>&", from[plain])) plain++;
        tutti_string_append(out, from, plain);
        at += plain;
        if (at < length) tutti_string_printf(out, "\\u%04x", (unsigned)(unsigned char)json[at++]);
    }
}

void tutti_page_write(tutti_string *out, const char *json, size_t length)
{
    tutti_string_append(out, tutti_page_head, tutti_page_head_length);
    append_escaped(out, json, length);
    tutti_string_append(out, tutti_page_tail, tutti_page_tail_length);
}

tutti_status tutti_page_save(const char *path, const tutti_string *json)
{
    tutti_string page = {0};
    TUTTI_TRY(tutti_string_status(json));
    tutti_page_write(&page, json->data, json->length);
    tutti_status s = tutti_string_status(&page);
    if (s == TUTTI_OK) s = tutti_file_replace(path, page.data, page.length);
    tutti_string_deinit(&page);
    return s;
}
