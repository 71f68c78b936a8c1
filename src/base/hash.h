/* SHA-256, for checkpoints and for comparing weights: libcrypto's. */
#ifndef TUTTI_BASE_HASH_H
#define TUTTI_BASE_HASH_H

#include <stddef.h>
#include "base/status.h"

enum { TUTTI_HASH_HEX = 65 }; /* 64 hexadecimal digits and the final 0 */

typedef struct tutti_hash tutti_hash;

tutti_status tutti_hash_create(tutti_hash **out) TUTTI_MUST_CHECK;
void tutti_hash_destroy(tutti_hash **hash);

/* Adds bytes; any split of the same bytes gives the same hash. */
void tutti_hash_add(tutti_hash *hash, const void *bytes, size_t count);

/* Forgets the bytes added so far. */
void tutti_hash_restart(tutti_hash *hash);

/* Writes the hash of all bytes added so far in lower-case digits and starts again from none. */
void tutti_hash_finish(tutti_hash *hash, char hex[TUTTI_HASH_HEX]);

/* The hash of one block of memory; of a file (TUTTI_IO if it cannot be read). */
tutti_status tutti_hash_bytes(char hex[TUTTI_HASH_HEX], const void *bytes,
                              size_t count) TUTTI_MUST_CHECK;
tutti_status tutti_hash_file(char hex[TUTTI_HASH_HEX], const char *path) TUTTI_MUST_CHECK;

#endif
