/* The page: one file without requests, whose sources are in page/, with data in it. */
#ifndef TUTTI_WATCH_PAGE_H
#define TUTTI_WATCH_PAGE_H

#include <stddef.h>

#include "format/json.h"

/* As it was put together when the library was built (page/build): what stands before the data, and
 * behind them. */
extern const char tutti_page_head[], tutti_page_tail[];
extern const size_t tutti_page_head_length, tutti_page_tail_length;

/* Appends the page with these data, a JSON text in which '<', '>' and '&' occur in strings only. */
void tutti_page_write(tutti_string *out, const char *json, size_t length);

/* Writes such a page into a file: the old one or the new one, whole. */
tutti_status tutti_page_save(const char *path, const tutti_string *json) TUTTI_MUST_CHECK;

#endif
