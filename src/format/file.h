/* Files, whole or not at all: the loops and sentences around the system calls. */
#ifndef TUTTI_FORMAT_FILE_H
#define TUTTI_FORMAT_FILE_H

#include <stddef.h>
#include <stdint.h>
#include "base/status.h"

/* All of these fail with TUTTI_IO, on a full disk with TUTTI_DISK_FULL, and a sentence with the
 * path and the system's reason. */

/* That failure: "cannot 'verb' 'path'", and why by errno. */
tutti_status tutti_file_failure(const char *verb, const char *path);

/* Reads or writes exactly 'count' bytes at 'offset'. 'path' is for messages. */
tutti_status tutti_file_read_at(int fd, const char *path, void *bytes, size_t count,
                                uint64_t offset) TUTTI_MUST_CHECK;
tutti_status tutti_file_write_at(int fd, const char *path, const void *bytes, size_t count,
                                 uint64_t offset) TUTTI_MUST_CHECK;

/* Gives a file's bytes (tutti_free), with a 0 after them; more than 'limit' is TUTTI_DATA. */
tutti_status tutti_file_load(char **out, size_t *length, const char *path,
                             size_t limit) TUTTI_MUST_CHECK;

/* Writes a new file and waits until it is on the disk. */
tutti_status tutti_file_save(const char *path, const char *bytes, size_t count) TUTTI_MUST_CHECK;

/* The same under a name that others may be reading: they see the old file or the new one, whole,
 * and so does who comes after a crash. */
tutti_status tutti_file_replace(const char *path, const char *bytes, size_t count) TUTTI_MUST_CHECK;

/* Could a file be written there, as far as can be told now? For what comes at the end of long work.
 * NULL: nothing will be. */
tutti_status tutti_file_check_place(const char *path) TUTTI_MUST_CHECK;

/* Waits until a directory's entries are on the disk. */
tutti_status tutti_file_sync_directory(const char *path) TUTTI_MUST_CHECK;

/* Creates a directory and any missing ones above it. */
tutti_status tutti_file_make_directories(const char *path) TUTTI_MUST_CHECK;

#endif
