/* Numbers out of a line that was written by this library, and whose sum is right: no parser could
 * read ten million rows in time. */
#ifndef TUTTI_WATCH_SCAN_H
#define TUTTI_WATCH_SCAN_H

#include <stdbool.h>
#include <stddef.h>

/* The value of "key": in a line that ends with a 0, NaN if it has none or it is no number. */
double tutti_scan_number(const char *line, const char *key);

/* The numbers of "key":[...], NaN for null; gives how many there are, at most 'most'. */
int tutti_scan_numbers(const char *line, const char *key, float *out, int most);

/* Is "phase" this one? */
bool tutti_scan_is_phase(const char *line, const char *phase);

/* The text of "key":"..." without escapes in it, cut to fit; "" where there is none. */
void tutti_scan_text(const char *line, const char *key, char *out, size_t size);

#endif
