/* A file of sealed lines that grows, line by line. What is not a whole line as it was written is
 * counted and passed over; a line that has no end yet is waited for. When the file is replaced by
 * another, or gets shorter, it is read again from its beginning. */
#ifndef TUTTI_WATCH_TAIL_H
#define TUTTI_WATCH_TAIL_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/stat.h>

#include "format/json.h"

enum { TUTTI_LONGEST_LINE = 4 << 20 }; /* bytes; longer ones are damaged */

typedef struct tutti_tail {
    char *path;
    int fd;
    struct stat info;  /* of what is open */
    off_t at;          /* bytes read */
    tutti_string rest; /* read, not given yet, from 'given' on */
    size_t given;
    char behind; /* what stood behind the line that was given last, where a 0 is now */
    bool cut;    /* there is one */
    bool skips;  /* to the end of a line that is too long */
    int64_t lines, damaged;
} tutti_tail;

/* A file that is not there yet is waited for. */
tutti_status tutti_tail_open(tutti_tail *tail, const char *run, const char *name) TUTTI_MUST_CHECK;
void tutti_tail_close(tutti_tail *tail); /* all zero is fine */

/* Reads what was added, up to about 'most' bytes. *anew: the file is another one, and its lines
 * begin again. Returns whether there is something to give. */
bool tutti_tail_read(tutti_tail *tail, size_t most, bool *anew);

/* The next whole line with its newline, a 0 behind it, and its step; NULL: read again. Valid until
 * the next read. */
const char *tutti_tail_next(tutti_tail *tail, size_t *length, int64_t *step);

#endif
