#include "base/hash.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <openssl/evp.h>

#include "base/memory.h"

struct tutti_hash {
    EVP_MD_CTX *context;
};

/* With the built-in SHA-256 and sound arguments these calls cannot fail. */
static void start(tutti_hash *hash)
{
    TUTTI_ASSERT(EVP_DigestInit_ex(hash->context, EVP_sha256(), NULL) == 1);
}

tutti_status tutti_hash_create(tutti_hash **out)
{
    tutti_hash *hash = NULL;
    TUTTI_TRY(tutti_alloc(&hash, 1, sizeof *hash));
    hash->context = EVP_MD_CTX_new();
    if (!hash->context) {
        tutti_hash_destroy(&hash);
        return tutti_fail(TUTTI_MEMORY, "cannot allocate a SHA-256 context");
    }
    start(hash);
    *out = hash;
    return TUTTI_OK;
}

void tutti_hash_destroy(tutti_hash **hash)
{
    if (!*hash) return;
    EVP_MD_CTX_free((*hash)->context);
    tutti_free(*hash);
    *hash = NULL;
}

void tutti_hash_add(tutti_hash *hash, const void *bytes, size_t count)
{
    TUTTI_ASSERT(EVP_DigestUpdate(hash->context, bytes, count) == 1);
}

void tutti_hash_restart(tutti_hash *hash)
{
    start(hash);
}

void tutti_hash_finish(tutti_hash *hash, char hex[TUTTI_HASH_HEX])
{
    unsigned char digest[EVP_MAX_MD_SIZE];
    TUTTI_ASSERT(EVP_DigestFinal_ex(hash->context, digest, NULL) == 1);
    for (int i = 0; i < (TUTTI_HASH_HEX - 1) / 2; i++) snprintf(hex + 2 * i, 3, "%02x", digest[i]);
    start(hash);
}

tutti_status tutti_hash_bytes(char hex[TUTTI_HASH_HEX], const void *bytes, size_t count)
{
    tutti_hash *hash = NULL;
    TUTTI_TRY(tutti_hash_create(&hash));
    tutti_hash_add(hash, bytes, count);
    tutti_hash_finish(hash, hex);
    tutti_hash_destroy(&hash);
    return TUTTI_OK;
}

tutti_status tutti_hash_file(char hex[TUTTI_HASH_HEX], const char *path)
{
    enum { PIECE = 1 << 16 };
    char piece[PIECE];
    tutti_hash *hash = NULL;
    tutti_status s = TUTTI_OK;
    FILE *file = fopen(path, "rb");
    if (!file) return tutti_fail(TUTTI_IO, "cannot open '%s': %s", path, strerror(errno));

    if ((s = tutti_hash_create(&hash))) goto out;
    for (size_t n; (n = fread(piece, 1, PIECE, file)) > 0;) tutti_hash_add(hash, piece, n);
    if (ferror(file)) {
        s = tutti_fail(TUTTI_IO, "cannot read '%s': %s", path, strerror(errno));
        goto out;
    }
    tutti_hash_finish(hash, hex);
out:
    tutti_hash_destroy(&hash);
    fclose(file);
    return s;
}
