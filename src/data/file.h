/* Files of samples: read at any offset by any thread, without locks or a position of their own. */
#ifndef TUTTI_DATA_FILE_H
#define TUTTI_DATA_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/status.h"

/* A buffer that only grows: a reader's memory settles at its largest sample. */
typedef struct tutti_buffer {
    void *bytes;
    size_t capacity;
} tutti_buffer;

tutti_status tutti_buffer_reserve(tutti_buffer *buffer, size_t bytes) TUTTI_MUST_CHECK;
void tutti_buffer_deinit(tutti_buffer *buffer);

/* A plain file is read with pread; a gzipped one is unpacked into memory when it is opened. */
typedef struct tutti_file {
    char *path;
    int fd;                /* -1 when it is in memory */
    const uint8_t *memory; /* all of it, or NULL */
    uint64_t bytes;        /* unpacked */
    void *owned;           /* memory to free */
} tutti_file;

/* Fails with TUTTI_DATA when there is no such file or its packing is damaged, with TUTTI_IO when
 * the system cannot read it. */
tutti_status tutti_file_open(tutti_file *file, const char *path) TUTTI_MUST_CHECK;
void tutti_file_close(tutti_file *file); /* a zeroed one is fine; leaves it zeroed */

/* Makes a file of 'bytes' bytes at 'memory', which is borrowed. */
tutti_status tutti_file_wrap(tutti_file *file, const char *name, const void *memory,
                             size_t bytes) TUTTI_MUST_CHECK;

/* Reads exactly 'bytes' bytes at 'offset'; TUTTI_DATA if the file ends earlier. */
tutti_status tutti_file_read(const tutti_file *file, uint64_t offset, void *out,
                             size_t bytes) TUTTI_MUST_CHECK;

/* All of a small text, with a 0 after it; to be given to tutti_free. */
tutti_status tutti_file_text(char **out, const char *path) TUTTI_MUST_CHECK;

/* Cuts the next line off *cursor, without its end; false when there is none left. */
bool tutti_next_line(char **cursor, char **line);

/* Cuts the next word (between blanks) off *cursor, or NULL. */
char *tutti_next_word(char **cursor);

/* "DIR/NAME" in a new string; just NAME if it is absolute. */
tutti_status tutti_path_join(char **out, const char *dir, const char *name) TUTTI_MUST_CHECK;

const char *tutti_path_base(const char *path); /* what follows the last slash */

bool tutti_path_is_file(const char *path);
bool tutti_path_is_dir(const char *path);

/* The names in a folder, sorted by bytes, without those that begin with a dot. */
typedef struct tutti_names {
    char **name;
    int count, capacity;
} tutti_names;

tutti_status tutti_names_of_dir(tutti_names *names, const char *dir) TUTTI_MUST_CHECK;
tutti_status tutti_names_add(tutti_names *names, const char *name) TUTTI_MUST_CHECK;
void tutti_names_deinit(tutti_names *names);

/* Adds 'path' itself, or all pictures in the folder of that name and below it, in the order of
 * bytes. */
tutti_status tutti_pictures_below(tutti_names *pictures, const char *path) TUTTI_MUST_CHECK;

#endif
