/* Small texts that people read at a glance. */
#ifndef TUTTI_FORMAT_HUMAN_H
#define TUTTI_FORMAT_HUMAN_H

#include <stdint.h>

/* "1,234,567"; "01:02:03", "00:41"; "12.3 MiB". Return 'out'. */
char *tutti_format_count(char out[32], int64_t count);
char *tutti_format_time(char out[32], double seconds);
char *tutti_format_bytes(char out[32], double bytes);

#endif
